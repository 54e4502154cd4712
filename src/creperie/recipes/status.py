"""The status of the papers' tables and figures: which were reproduced, by which command, and which numbers agree.

The status is read from the folders of recipe runs; `creperie cook status` writes it to docs/papers.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from creperie.core import Document, __version__, read_json
from creperie.recipes.claims import Direction
from creperie.recipes.figure_prompts import papers
from creperie.recipes.kitchen import RECORD, read_card
from creperie.recipes.verify import run_digest
from creperie.reporting import BY, PublishedTable, published_tables

EXACT, PARTLY = "whose computed results agree", "whose computed results agree in part"
FILLED, OPEN = "with stand-ins only", "not made"
DRAWN, WORDED, NOTHING = "drawn", "prompts in creperie's words", "nothing to compute"


@dataclass(frozen=True)
class AgreedCell:
    """A result printed in a paper, and the same result computed here. `by` says how it was computed: by a model on the
    released items, from released files, or from released answers.
    """

    model: str
    column: str
    printed: float
    ours: float
    equal: bool
    by: str = "model"  #: what computed it: a model, a count of released files, or released answers (`BY`)
    group: str = ""


@dataclass(frozen=True)
class PaperPart:
    """The status of one table or figure of a paper."""

    paper: str
    kind: str  #: table or figure
    number: str
    what: str
    status: str
    command: str
    agreed: tuple[AgreedCell, ...] = ()
    rows: tuple[str, ...] = ()  #: rows that recipe runs added
    needs: str = ""  #: what is needed to reproduce it exactly
    why: str = ""
    printed: int = 0  #: how many results the paper prints in it: numbers that it measured
    missing: tuple[str, ...] = ()  #: models in its rows that creperie cannot load
    prompts: tuple[str, ...] = ()  #: prompts in creperie's wording, because the paper's were not given
    repeats: str = ""  #: the table whose results it prints again; they are counted there


@dataclass
class _RunOutput:
    """What the runs of one recipe produced: tables as documents, and the numbers of the figures that were drawn."""

    tables: dict[str, list[Document]] = field(default_factory=dict)
    figures: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    worded: set[str] = field(default_factory=set)  #: prompts that were given in the paper's wording


def paper_status(folders: Sequence[Path]) -> list[PaperPart]:
    """Return the status of every table and figure of the five papers. `folders` are the recipe runs to consider."""
    made = _gather(folders)
    tables = {table.key.lower(): table for table in published_tables()}
    parts = []
    for paper in papers():
        own = made.get(paper["recipe"], _RunOutput())
        for entry in paper["tables"]:
            key = f"{paper['name']}/{entry['number']}"
            table = tables.get(key.lower())
            parts.append(_table(paper, entry, table, own) if table else _described(paper, "table", entry, own))
        parts += [_described(paper, "figure", entry, own) for entry in paper["figures"]]
    return parts


def _gather(folders: Sequence[Path]) -> dict[str, _RunOutput]:
    made: dict[str, _RunOutput] = {}
    for folder in folders:
        card = read_card(folder)
        own = made.setdefault(card["recipe"], _RunOutput())
        own.worded |= set(card.get("prompts", ()))
        for stage in sorted(folder.glob(f"*/{RECORD}")):
            if stage.parent.name not in card.get("stages", [stage.parent.name]):
                continue  # from an earlier version of the recipe
            summary = read_json(stage)["summary"]
            for key in summary.get("tables", {}):
                document = read_json(stage.parent / f"{key.replace('/', '-')}.json")
                own.tables.setdefault(key.lower(), []).append(document)
            own.figures |= set(summary.get("figures", {}))
            own.failed |= summary.get("not_drawn", {})
    return made


def _table(paper: Document, entry: Document, table: PublishedTable, own: _RunOutput) -> PaperPart:
    """Return the status of a table. The table agrees if results were computed on the published items and all of them
    equal the printed ones.
    """
    documents = own.tables.get(table.key.lower(), [])
    found = (cell for document in documents for cell in _agreed(document) if table.is_result(cell.group, cell.column))
    cells = tuple({(c.group, c.model, c.column): c for c in found}.values())
    ours = (row for document in documents for row in document["rows"] if row["source"] == "run")
    added = ((row["model"], row["group"], row["published"]) for row in ours if not _is_repeated(row))
    rows = tuple(name for name, *_ in dict.fromkeys(added))
    agree = sum(cell.equal for cell in cells)
    status = EXACT if cells and agree == len(cells) else PARTLY if agree else FILLED if rows else OPEN
    command = f"creperie cook {paper['recipe']}" + " --profile local --data DIR" * bool(cells)
    loaded = table.rows_are == "models" and not entry.get("trained")
    absent = dict.fromkeys(row.model for row in table.rows if loaded and not row.uris and not row.answered)
    return PaperPart(
        *(paper["name"], "table", entry["number"], table.caption, status, command, cells, rows),
        needs=entry.get("needs", ""),
        printed=len(table.results),
        missing=tuple(absent),
        prompts=_own_words(table.prompts or entry.get("prompts", ()), own),
        repeats=entry.get("repeats", ""),
    )


def _own_words(prompts: Sequence[str], own: _RunOutput) -> tuple[str, ...]:
    """Return the prompts of a table for which creperie's wording was used instead of the paper's."""
    return tuple(name for name in prompts if name not in own.worded)


def _agreed(document: Document) -> Iterator[AgreedCell]:
    """Yield an AgreedCell for each number in a paper's table that was computed again from what the paper released. It
    holds the printed and the computed number, and says whether they are equal.
    """
    published = {(row["group"], row["model"]): row for row in document["rows"] if row["source"] == "published"}
    for row in filter(_is_repeated, document["rows"]):
        printed = published[row["group"], row["published"]]
        for name, equal in row["equal"].items():
            if equal is not None:
                numbers = (float(printed[name]), float(row[name]), equal)
                yield AgreedCell(row["published"], name, *numbers, row.get("by", "model"), row["group"])


def _is_repeated(row: Document) -> bool:
    """Return True if the row comes from a run of the paper's model on the paper's items."""
    return bool(row["source"] == "run" and row["published"] and row.get("released") and not row.get("stands_in"))


def _described(paper: Document, kind: str, entry: Document, own: _RunOutput) -> PaperPart:
    """Return the status of a figure, or of a table that is not transcribed: of what a run draws, or of prompts."""
    prompts, number = entry.get("prompts", ()), entry["number"]
    command = " && ".join(f"creperie prompts show {name}" for name in prompts)
    status, why = WORDED if command else NOTHING, entry.get("none", "")
    if "draw" in entry:
        command, status, why = f"creperie cook {paper['recipe']}", OPEN, own.failed.get(number, "")
        if number in own.figures:
            status, why = DRAWN, entry.get("of", "these runs' items and models")
    about = (paper["name"], kind, number, entry["what"], status, command)
    return PaperPart(*about, needs=entry.get("needs", ""), why=why, prompts=_own_words(prompts, own))


# -- the page --------------------------------------------------------------------------------------------------------

HEADS = ("table", "results", "computed", "agree", "stand-ins", "missing", "our prompts")
READING = """*Yes* and *no* are beyond the intervals, on the papers' items. *Stand-in: agrees* or *disagrees*: beyond
them too, but on other items or models, which are no evidence about the papers'. *By construction*: items were chosen
by the very score. *Not shown*: neither, or there is no interval, as one between trainings takes three seeds.
A claim over several columns holds or fails only if more than half of them say so, beyond both intervals; on other items
a lead of the models without the image counts only in columns where the model with the image is above chance."""
DIRECTION_HEADS = ("paper, profile", "claim", "model", "numbers", "holds")


def totals(parts: Sequence[PaperPart]) -> dict[str, int]:
    """Return counts of results: how many the tables print, how many of these were computed, and how many of the
    computed ones agree. The last two are counted in total and for each way of computing: by a model, from released
    files, or from released answers.
    """
    cells = [cell for part in parts for cell in part.agreed if not part.repeats]
    whole = {"printed": sum(p.printed for p in parts)} | _computed(cells)
    return whole | {
        f"{name}_{by}": n for by in BY for name, n in _computed([cell for cell in cells if cell.by == by]).items()
    }


def _computed(cells: Sequence[AgreedCell]) -> dict[str, int]:
    return {"computed": len(cells), "agree": sum(cell.equal for cell in cells)}


def computed_words(whole: Mapping[str, int]) -> str:
    """Return a phrase that says how many results were computed, how, and how many of them agree with the paper.

    >>> computed_words({"computed_model": 17, "agree_model": 12, "computed_files": 1, "agree_files": 1})
    '17 by a model on the published items (12 agree), 1 counted from released files (it agrees)'
    """
    phrases = []
    for by, words in BY.items():
        if n := whole.get(f"computed_{by}", 0):
            agree = whole[f"agree_{by}"]
            all_agree = "it agrees" if n == 1 else "all agree"
            phrases.append(f"{n:,} {words} ({all_agree if agree == n else f'{agree:,} agree'})")
    return ", ".join(phrases)


def runs_said(folders: Sequence[Path]) -> str:
    """Return sentences that list the given runs, each with its profile and number of stages. The sentences also name
    the recipes without a run.
    """
    cards = [(folder, read_card(folder)) for folder in folders]
    made = [(card, sum((folder / name / RECORD).is_file() for name in card["stages"])) for folder, card in cards]
    named = [
        f"{card['recipe']}, {card['profile']} ({n} of {len(card['stages'])} stages, {run_digest(folder)})"
        for (folder, _), (card, n) in zip(cards, made, strict=True)
    ]
    run = {(card["recipe"], card["profile"]) for card, _ in made}
    expected = [(paper["recipe"], profile) for profile in ("small", "local") for paper in papers()]
    absent = [", ".join(one) for one in expected if one not in run]
    about_digests = (
        "The eight characters in brackets are the digest of a run's results, which `cook` prints: after a change of a "
        "maker or of a note below a table it is another."
    )
    return f"From runs of {'; '.join(named)}. {about_digests}" + (
        f" No run was given of: {'; '.join(absent)}." if absent else ""
    )


def status_page(parts: Sequence[PaperPart], claims: Sequence[Direction], command: str, runs: str = "") -> str:
    """Return the status page as Markdown. `runs` is a sentence about the runs on which it is based."""
    counts = ", ".join(f"{n} {name}" for name, n in Counter(p.status for p in parts).most_common())
    whole = totals(parts)
    lines = f"""# The papers, table by table

Written by `{command}` (creperie {__version__}) from recipe runs and the transcribed tables. The lines
"Needed for" are written by hand, all others are derived.

{len(parts)} entries for tables and figures: {counts}. The tables print {whole["printed"]:,} results.
{whole["computed"]:,} of these were computed from what the authors released: {computed_words(whole)}.
To agree is to be the same to the last printed digit; a result in two tables counts once, agreeing or not.

A *result* is a number that the paper measured: an accuracy, a score, a rating, an effect, a size of the set
that it made. Dimensions, numbers of weights, sizes of training data and chance are none.
`creperie cook RECIPE` makes the tables; `--profile local --data DIR` computes on the published items.
*Stand-ins* are rows of other models or items, named and not compared; *missing* are models that no URI
loads; *our prompts* are prompts in creperie's words (`--prompts FILE` takes the paper's, by name).
`creperie cook status --json` has every row and cell.
""".split("\n")
    for paper in dict.fromkeys(p.paper for p in parts):
        lines += [f"## {paper}", "", *_paper_lines([p for p in parts if p.paper == paper])]
    rows = [(f"{c.recipe}, {c.profile}", c.claim, c.who, c.numbers, c.holds) for c in claims]
    about_runs = [runs, ""] if runs else []
    return "\n".join([*lines, "## Directions", "", *about_runs, READING, "", *_markdown(DIRECTION_HEADS, rows)])


def _paper_lines(parts: Sequence[PaperPart]) -> Iterator[str]:
    """Yield the Markdown lines about one paper: a table of counts, then notes. Each note names the tables and figures
    it is about.
    """
    counted = [p for p in parts if p.printed]
    yield from _markdown(HEADS, [(p.number, *map(str, _counts(p))) for p in counted])
    for number, cell in ((p.number, cell) for p in counted for cell in p.agreed if not cell.equal and not p.repeats):
        what = f"table {number}, {cell.model}, {cell.column}"
        yield f"- Differs: {what}: {round(cell.ours, 2):g}, printed {cell.printed:g}."
    if absent := dict.fromkeys(model for p in counted for model in p.missing):
        yield f"- Missing: {', '.join(absent)}."
    yield from (f"- Needed for {where}: {needs}." for needs, where in _grouped(parts, lambda p: p.needs))
    yield from (f"- Drawn, of {of}: {where}." for of, where in _grouped(parts, lambda p: p.status == DRAWN and p.why))
    yield from (f"- Not made: {where}: {why}." for why, where in _grouped(parts, lambda p: p.status == OPEN and p.why))
    if shown := [f"{p.kind} {p.number} ({', '.join(p.prompts)})" for p in parts if p.status == WORDED and p.prompts]:
        yield f"- In creperie's words, not the paper's, by `creperie prompts show NAME`: {', '.join(shown)}."
    nothing = _grouped(parts, lambda p: p.status == NOTHING and p.why)
    yield from (f"- Nothing to compute in {where}: {why}." for why, where in nothing)
    yield ""


def _counts(part: PaperPart) -> tuple[int, ...]:
    agree = sum(cell.equal for cell in part.agreed)
    return part.printed, len(part.agreed), agree, len(part.rows), len(part.missing), len(part.prompts)


def _grouped(parts: Sequence[PaperPart], key: Callable[[PaperPart], str | bool]) -> Iterator[tuple[str, str]]:
    """Yield each value of `key` once, with a phrase that lists the tables and figures with this value."""
    numbers: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        if value := key(part):
            numbers.setdefault(str(value), {}).setdefault(part.kind, []).append(part.number)
    for value, kinds in numbers.items():
        yield value, ", ".join(f"{kind}{'s' * (len(own) > 1)} {', '.join(own)}" for kind, own in kinds.items())


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"|{'|'.join(cell.replace('|', chr(92) + '|') for cell in cells)}|"
    yield ""
