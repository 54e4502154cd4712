"""Import a response matrix as runs. A response matrix is a table of models × items whose cells say right or wrong, or
are scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from creperie.bench import Benchmark, Item, ProvenanceStep, choice, from_items
from creperie.core import DataError, UsageError, csv_rows, listing, option
from creperie.scoring.logs import UnmatchedRow, check_matched, table_separator
from creperie.scoring.plan import layout_of_bench
from creperie.scoring.replies import answered_run
from creperie.scoring.run import NO_IMAGE, Run

#: cells that are no numbers → right (1), wrong (0) or no answer
ANSWERS = {
    **dict.fromkeys(("true", "right", "correct"), 1.0),
    **dict.fromkeys(("false", "wrong", "incorrect"), 0.0),
    **dict.fromkeys(("", "na", "n/a", "none", "null", "-"), np.nan),
}
#: first cells of the header that say that rows are items, and columns models
ITEM_HEADS = {"item", "items", "item_id", "question", "question_id", "sample"}
#: columns of tables with one row per item: a table with one of them is no response matrix
ROW_COLUMNS = {"id", "scores", "score_0", "choice", "prediction", "doc_id"}
MOST_ITEMS = 1_000_000


@dataclass(frozen=True)
class ResponseOptions:
    """Options for reading a response matrix."""

    choices: int | None = option(
        None,
        "Matrix: number of options per item, which sets chance; for open questions a large number: 100.",
        minimum=2,
    )
    above: float | None = option(None, "Matrix of scores: an answer is right if its score is above this.")
    columns: str = option("", "Matrix: only columns that match this pattern are items.", metavar="PATTERN")
    blind: str = option("", "Matrix: prefix of columns that repeat the items without images.", metavar="PREFIX")
    group: str = option("", "Matrix: a regular expression; what it matches in an item's name is the subset.")


def is_response_matrix(path: str | Path) -> bool:
    """Return whether a file is a response matrix: a CSV or TSV table without any of the `ROW_COLUMNS`. Those columns,
    such as `id`, `scores` or `choice`, occur in tables with one row per item.
    """
    mark = table_separator(Path(path))
    return bool(mark) and not ROW_COLUMNS & set(next(csv_rows(Path(path), mark, most=MOST_ITEMS))[1])


def import_responses(
    path: str | Path, bench: Benchmark | None = None, options: ResponseOptions | None = None, *, partial: bool = False
) -> list[Run]:
    """Return one run per model of a response matrix. With the option `blind`, each model has a second run, made from
    its answers without images.

    Rows are models and columns are items. If the first cell of the header is a word such as "item", rows are items and
    columns are models. Without `bench`, the runs get a benchmark that is made from the names of the items, with
    placeholders for the captions.

    With `bench`, items are named by id or by subset/id. If more than a tenth of the names match no item, an
    `UnmatchedError` is raised, unless `partial` is set.
    """
    how, file = options or ResponseOptions(), Path(path)
    models, cells = _cells(file, how)
    blind = {n.removeprefix(how.blind): v for n, v in cells.items() if how.blind and n.startswith(how.blind)}
    if how.blind and not blind:
        raise UsageError(f"no column begins with {how.blind!r}", where=file, hint="check `blind=`")
    seen = {n: v for n, v in cells.items() if not (how.blind and n.startswith(how.blind))}
    seen = {n: v for n, v in seen.items() if fnmatchcase(n, how.columns or "*")}
    if not cells:
        raise DataError("has only one column", where=file, hint="separate cells by commas (.csv) or tabs (.tsv)")
    if not seen:
        raise UsageError(f"no column matches {how.columns!r}", where=file, hint="check `columns=`")
    if not how.columns:
        _check_conditions(seen, str(file))
    known = bench or _bench(file, list(seen), how)
    names, unmatched = _item_numbers(known, list(seen), str(file))
    notes = check_matched(unmatched, len(seen), str(file), partial=partial)
    if len(models) > len(seen):
        notes.append(f"{len(models):,} models × {len(seen):,} items: if rows are items, begin the header with `item`")
    runs = []
    for answers, mark in ((seen, ""), (blind, f"~{NO_IMAGE}")):
        marked = replace(known, name=known.name + mark)
        grid = np.full((len(models), len(known)), np.nan)
        for name, column in answers.items():
            if name in names:
                grid[:, names[name]] = column
        for model, row in zip(models, grid if answers else (), strict=False):
            runs.append(answered_run(marked, _scores(marked, row, how), f"table:{model}", notes=notes))
    return runs


def _cells(file: Path, how: ResponseOptions) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the names of the models, and a mapping from the name of each item to the models' answers."""
    rows = csv_rows(file, table_separator(file), most=MOST_ITEMS)
    _, (corner, *names) = next(rows)
    turned = corner.strip().lower() in ITEM_HEADS
    values: dict[str, list[float]] = {}
    for line, (name, *cells) in rows:
        if name in values:
            what = f"has the {'item' if turned else 'model'} {name!r} twice"
            raise DataError(what, where=f"{file}:{line}", hint="rename or remove one of the rows")
        values[name] = [_number(cell, f"{file}:{line}", column, how) for column, cell in zip(names, cells, strict=True)]
    if not values:
        raise DataError("has no rows", where=file, hint="give one row per model, one column per item")
    if turned:
        return names, {name: np.array(row) for name, row in values.items()}
    return list(values), dict(zip(names, np.array(list(values.values())).T, strict=True))


def _check_conditions(names: Iterable[str], where: str) -> None:
    """Raise an error if the matrix seems to have each item in several conditions. This is the case if some names
    consist of a prefix and another name, such as "blind_q1" beside "q1". `where` is the file.
    """
    known = set(names)
    ends = ((name, k) for name in known for k, mark in enumerate(name[:-1], 1) if not mark.isalnum())
    prefixes = Counter(name[:k] for name, k in ends if name[k:] in known)
    if prefixes:
        listed = listing(sorted(prefixes))
        what = f"{prefixes.total():,} of {len(known):,} columns are named like another one after the prefix {listed}"
        hint = "name the items: `columns=`, such as '[0-9]*' ('*': all); `blind=` is the prefix of items without images"
        raise UsageError(what, where=where, hint=hint)


def _number(cell: str, where: str, name: str, how: ResponseOptions) -> float:
    text = cell.strip().lower()
    try:
        value = ANSWERS[text] if text in ANSWERS else float(text)
    except ValueError:
        what = f"{name}: {cell[:40]!r} is neither right, wrong nor a number"
        raise DataError(what, where=where, hint="write 1 or `right`, 0 or `wrong`, or a score") from None
    if how.above is None and value not in (0, 1) and not np.isnan(value):
        raise UsageError(
            f"{name}: {value:g} is neither 1 (right) nor 0 (wrong)",
            where=where,
            hint="if cells are scores, pass `above=`, the highest score of a wrong answer",
        )
    return value


def _bench(file: Path, names: list[str], how: ResponseOptions) -> Benchmark:
    """Return a benchmark whose items have these names, with placeholders for the captions."""
    if how.choices is None:
        hint = "pass `choices=`, such as 4; for open questions a large number, such as 100"
        raise UsageError("the matrix does not say how many options each item offers", where=file, hint=hint)
    captions = ("the right answer", *(f"wrong answer {k}" for k in range(1, how.choices)))
    made = choice(1, how.choices - 1)
    items = [
        Item(name, subset, (), captions, made, {})
        for name, subset in zip(names, _subsets(names, how.group, file), strict=True)
    ]
    step = ProvenanceStep("import matrix", {"file": file.name, "choices": how.choices})
    return from_items(file.stem, items, provenance=(step,))


def _subsets(names: list[str], group: str, file: Path) -> list[str]:
    """Return each item's subset, which the regular expression `group` finds in the item's name. The subset is the match
    of the first capturing group or, if there is no group, the whole match.
    """
    if not group:
        return ["items"] * len(names)
    try:
        found = [re.search(group, name) for name in names]
    except re.error as e:
        raise UsageError(
            f"`group={group!r}` is not a regular expression: {e}", hint=r"write, for instance, '^\d+'"
        ) from None
    if not any(found):
        what = f"`group={group!r}` matches none of the {len(names):,} item names, of which the first is {names[0]!r}"
        raise UsageError(what, where=file, hint="adapt the expression to the items' names, which are in the header")
    subsets = [str(m[1] if m.re.groups else m[0]) if m else "items" for m in found]
    return [f"{name} items" if name in ("all", "macro") else name for name in subsets]  # names of rows over all subsets


def _item_numbers(bench: Benchmark, names: list[str], where: str) -> tuple[Mapping[str, int], list[UnmatchedRow]]:
    """Find the items with these names (an id, or subset/id). Return the item's number for each name that matches
    exactly one item, and an `UnmatchedRow` for every other name. `where` names the file in errors.
    """
    by_id: dict[str, list[int]] = {}
    for number, (subset, id_) in enumerate(bench.item_keys):
        for key in (id_, f"{subset}/{id_}"):
            by_id.setdefault(key, []).append(number)
    places = {name: by_id[name][0] for name in names if len(by_id.get(name, ())) == 1}
    owners: dict[int, str] = {}
    for name, number in places.items():
        if owners.setdefault(number, name) != name:
            what = f"columns {owners[number]!r} and {name!r} are the same item"
            raise DataError(what, where=where, hint="remove one of them")
    others = [name for name in names if name not in places]
    return places, [UnmatchedRow(f"column {n}", f"{len(by_id.get(n, ()))} items have this id") for n in others]


def _scores(bench: Benchmark, row: np.ndarray, how: ResponseOptions) -> np.ndarray:
    """Return a model's image-text scores, given its `row` of the response matrix. Each true caption of an item gets the
    item's number in that row. If `how.above` is set, each false caption gets `how.above`, the value that a right answer
    must exceed. Otherwise it gets one minus the item's number.
    """
    layout = layout_of_bench(bench)
    cells = np.repeat(row, layout.widths("image_text"))
    if how.above is None:
        false = 1 - cells
    else:  # a score that is not above is wrong, also an equal one
        false = np.where(np.isnan(cells), np.nan, np.where(cells == how.above, cells + 1, how.above))
    return np.where(layout.match, cells, false).astype(np.float32)
