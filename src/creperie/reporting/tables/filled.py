"""Published tables filled with runs. Each model has one row, with its difference from the printed row and whether the
difference may be due to chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from creperie.core import Document, Json, UsageError, counted, listing, unknown
from creperie.metrics import task
from creperie.models import parse_uri, prompt_name, prompts_of
from creperie.reporting.gather import HUMAN
from creperie.reporting.tables.facts import STAND_IN_SETS, TIES, FactRow, annotators
from creperie.reporting.tables.measure import MeasuredCell, average, change, measured_cell
from creperie.reporting.tables.published import (
    PublishedRow,
    PublishedTable,
    asked_alike,
    known_model,
    model_label,
    same_model,
)
from creperie.scoring import Run, load_run

AVERAGE = (
    "the mean of each one's share, as in SugarCrepe++; n counts answers, the score interval is over images, with "
    "Student's t"
)
VOTES = "all answers to an item are pooled and a tie is wrong; not compared"
OUR_WORDS = "creperie's words, not the paper's (cook and score take these with --prompts FILE)"
COMBINED = "/everybody"  #: how the URI of a study's combined votes ends
GENERATIVE = ("vlm", "api")  #: kinds of models that only belong in tables about ways of scoring


class NoColumnError(UsageError):
    """Raised for a run that fills no column of a table."""

    def __init__(self, table: PublishedTable, run: Run, why: str) -> None:
        self.run = run
        others = run.benchmark not in table.item_names()
        hint = f"table {table.key} is filled by runs on {', '.join(table.benchmarks())}" if others else ""
        super().__init__(f"this run fills no column: {why}", where=str(run.path or run.name), hint=hint)


@dataclass(frozen=True)
class OurRow:
    """A model's results by column, and the printed row of the same model if there is one.

    `label` names the model, and the benchmark if it is not the table's. `stands_in` is True if the results come from
    another model, or from scripts in place of people. The row is then shown below the printed row, but not compared
    with it.
    """

    model: str
    figures: Mapping[str, MeasuredCell]
    row: PublishedRow | None = None
    benchmarks: tuple[str, ...] = ()
    label: str = ""
    group: str = ""
    stands_in: bool = False
    by: str = "model"  #: what gave the figures (`BY`)

    def difference(self, name: str) -> float | None:
        """Return our result minus the printed one in the column `name`. Return None if the two cannot be compared."""
        printed = self.printed(name)
        return None if printed is None else self.figures[name].value - printed

    def within(self, name: str) -> bool | None:
        """Return whether the printed result lies in our interval. Return None if either is missing or the two cannot be
        compared.
        """
        printed, ours = self.printed(name), self.figures.get(name)
        if printed is None or ours is None or math.isnan(ours.low):
            return None
        half = self._half_a_digit(name)
        return ours.low - half <= printed <= ours.high + half

    def equal(self, name: str) -> bool | None:
        """Return whether our result equals the printed one to its last digit. Return None if the two cannot be
        compared.
        """
        apart = self.difference(name)
        return None if apart is None else abs(apart) <= self._half_a_digit(name) + 1e-9

    def compared(self, name: str) -> bool:
        """Return whether our result in the column `name` may be compared with the printed one.

        The row must be of the printed model (or of people, or a count), and computed on the published items of the
        column. All comparisons rely on this method.
        """
        cell = self.figures.get(name)
        return self.row is not None and not self.stands_in and cell is not None and cell.published

    def printed(self, name: str) -> float | None:
        """Return the printed result with which ours is compared. Return None if no result is printed, or if the two
        cannot be compared.
        """
        cell = self.row.cells.get(name, "") if self.row and self.compared(name) else ""
        return float(cell) if cell else None

    def _half_a_digit(self, name: str) -> float:
        assert self.row is not None
        _, _, digits = self.row.cells[name].partition(".")
        return float(0.5 * 10.0 ** -len(digits))


@dataclass(frozen=True)
class FilledTable:
    """A published table with rows of our own results."""

    table: PublishedTable
    ours: tuple[OurRow, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def document(self) -> Json:
        """Return the table as the document that `--json` prints."""
        columns = [{**vars(c), "benchmark": c.benchmark or None} for c in self.table.columns]
        return {
            "table": self.table.key,
            "paper": self.table.title,
            "citation": self.table.citation,
            "where": self.table.where,
            "caption": self.table.caption,
            "columns": columns,
            "rows": [*map(_printed_document, self.table.rows), *(_our_document(row, self.table) for row in self.ours)],
            "notes": [*self.table.notes, *self.notes],
        }


def _printed_document(row: PublishedRow) -> Json:
    values = {name: _number(cell) for name, cell in row.cells.items()}
    return {"model": row.model, "source": "published", "group": row.group, "uris": list(row.uris), **values}


_PARTS = ("n", "ties", "low", "high", "chance")


def _our_document(row: OurRow, table: PublishedTable) -> Json:
    cells = row.figures
    return {
        "model": row.label or row.model,
        "uri": row.model,
        "source": "run",
        "published": row.row.model if row.row else None,
        "stands_in": row.stands_in,
        "by": row.by,
        "group": row.row.group if row.row else row.group,
        "benchmarks": list(row.benchmarks),
        "released": bool(row.benchmarks) and set(row.benchmarks) <= table.item_names(),
        "runs": sorted({cell.run for cell in cells.values()}),
        **{part: {k: getattr(cell, part) for k, cell in cells.items()} for part in _PARTS},
        **{part: {k: getattr(row, part)(k) for k in cells} for part in ("difference", "within", "equal")},
        **{k: cell.value for k, cell in cells.items()},
    }


def _number(cell: str) -> float | str | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell


def fill_table(
    table: PublishedTable,
    runs: Sequence[Run | str | Path] = (),
    *,
    rows: Sequence[FactRow] = (),
    sets: Sequence[Document] = (),
    same: Mapping[str, str] | None = None,
    any_benchmark: bool = False,
    partial: bool = False,
) -> FilledTable:
    """Return a published table with the results of runs, one row per model. `rows` are further rows, from stages of a
    recipe. `sets` describe the benchmarks on which these rows were computed.

    `same` maps a run's model URI to the name of a printed row. It is needed if the model is the paper's but was loaded
    from another place. With `any_benchmark`, runs on benchmarks with other names are also used, if their subsets match.

    A run that fills no column raises an error. With `partial`, such a run is left out with a note; an error is raised
    only if no run fills a column.
    """
    loaded = [run if isinstance(run, Run) else load_run(run) for run in runs]
    if loaded and not table.fillable:
        raise UsageError(f"table {table.key} holds {table.rows_are}, which no run can give", hint="leave out the runs")
    by_model: dict[tuple[str, str, str | None], list[Run]] = {}
    for run in sorted(loaded, key=lambda run: run.model.endswith(COMBINED)):  # below the average over people
        by_model.setdefault(_row_key(table, run), []).append(run)
    made: list[tuple[OurRow, Sequence[Run]]] = []
    refused: list[NoColumnError] = []
    for (model, *_), own in by_model.items():
        while own:
            try:
                made.append((_our_row(table, model, own, same or {}, any_benchmark), own))
                break
            except NoColumnError as e:
                refused.append(e)
                own = [run for run in own if run is not e.run]
    if refused and not (partial and made):
        raise refused[0]
    ours = tuple(_with_changes(table, row, own, made) for row, own in made)
    ours += tuple(_fact_row(table, row) for row in rows)
    about: dict[str, list[Document]] = {}  # a part of a set may bear its name
    for head in (*sets, *(run.document["benchmark"] for run in loaded)):
        about.setdefault(head["name"], []).append(head)
    left_out = [f"{e.run.name}: {e.what}" for e in refused]
    return FilledTable(table, ours, (*_said_of_sets(table, ours, about), *_notes(table, ours), *left_out))


def _row_key(table: PublishedTable, run: Run) -> tuple[str, str, str | None]:
    """Return the key shared by the runs that form one row: the model, or the study whose annotators are averaged."""
    if run.model.startswith(HUMAN):
        return run.model if run.model.endswith(COMBINED) else run.model.rpartition("/")[0], "", None
    group = table.group_of(_score_of(run.model), run.benchmark)
    return run.model, str(run.document["model"].get("key", "")), group


def _our_row(
    table: PublishedTable, model: str, runs: Sequence[Run], same: Mapping[str, str], any_benchmark: bool
) -> OurRow:
    figures: dict[str, MeasuredCell] = {}
    used: set[int] = set()
    reasons, own = dict[int, str](), dict[int, str]()  # of columns about other items, and about those of the run
    for column in (column for column in table.columns if column.measured):
        fitting: dict[int, MeasuredCell] = {}
        for i, run in enumerate(runs):
            free = any_benchmark and run.benchmark not in table.item_names()  # a published set fills its own columns
            cell = _asked_otherwise(table, run) or measured_cell(run, column, table.item_names(column), free)
            if isinstance(cell, str):
                (own if run.benchmark in table.item_names(column) else reasons).setdefault(i, cell)
            else:
                fitting[i] = cell
        if any(cell.published for cell in fitting.values()):  # runs on the published items go before others
            fitting = {i: cell for i, cell in fitting.items() if cell.published}
        if fitting:
            cells = [(runs[i], cell) for i, cell in fitting.items()]
            people = model.startswith(HUMAN) and not model.endswith(COMBINED)  # averaged, as in the papers
            if len(cells) > 1 and not people:
                both = (
                    f"two runs of {model} fill column {column.title!r}: {' and '.join(cell.run for _, cell in cells)}"
                )
                raise UsageError(both, hint="leave out one of them")
            figures[column.name] = average(cells, column) if people else cells[0][1]
            used |= set(fitting)
    for i, run in enumerate(runs):
        if i not in used:
            why = (reasons | own).get(i, "other runs of this model are on the published items")
            raise NoColumnError(table, run, why)
    benchmarks = tuple(dict.fromkeys(run.benchmark for i, run in enumerate(runs) if i in used))
    group = table.group_of(_score_of(model), benchmarks[0])
    who, stands_in = _who(table, model, runs, figures)
    printed = _printed_row(table, model, same, group)
    if printed is None and table.prompts:  # another model that is asked as the paper's was
        alike = (row for row in table.rows if any(asked_alike(model, uri) for uri in row.uris))
        printed, stands_in = None if model.startswith(HUMAN) else next(alike, None), True
    label = _with_items(table, who, benchmarks)
    return OurRow(model, figures, printed, benchmarks, label, group or "", stands_in=stands_in)


def _with_changes(
    table: PublishedTable, row: OurRow, runs: Sequence[Run], made: Sequence[tuple[OurRow, Sequence[Run]]]
) -> OurRow:
    """Fill the columns of the row that show changes, and return the row. A change is the difference, paired by item,
    from the same model's result in another group of rows. `made` are the earlier rows, each with its runs.
    """
    changes = {
        c.name: change(row.figures[c.change_of], runs[0], theirs[0])
        for c in table.columns
        for base, theirs in made
        if c.since == base.group != row.group and base.model == row.model
        if c.change_of in row.figures and c.change_of in base.figures
    }
    return replace(row, figures={**row.figures, **changes}) if changes else row


def _who(
    table: PublishedTable, model: str, runs: Sequence[Run], figures: Mapping[str, MeasuredCell]
) -> tuple[str, bool]:
    """Return the name of a row made from runs, and whether the row only stands in for the printed one, so that the two
    must not be compared. This is so if the answers are scripted, the votes are combined, or the prompt is not worded as
    in the paper.
    """
    if not model.startswith(HUMAN):
        return model_label(model), _wording(table, model) == OUR_WORDS
    about = runs[0].document.get("people", {})
    combined = model.endswith(COMBINED)
    n = about.get("number") if combined else max((cell.people for cell in figures.values()), default=0)
    scripted = bool(about.get("scripted"))
    return f"{annotators(n, scripted)}, {'combined votes' if combined else 'average'}", scripted or combined


def _with_items(table: PublishedTable, who: str, benchmarks: Sequence[str]) -> str:
    """Return a row's name. If the row was computed on benchmarks that are not the table's, their names follow."""
    others = [b for b in benchmarks if b not in table.item_names()]
    return who + (f" on {', '.join(others)}" if others else "")


def by_scripts(about: Document) -> str:
    """Return a phrase on how many items were checked by scripts in place of people. It is empty if scripts checked no
    item. `about` is a run's description of its benchmark, whose history names the studies.
    """
    tasks = dict.fromkeys(str(m.get("task")) for m in _mappings(about.get("provenance")) if m.get("scripted") is True)
    counts = {task: n for task in tasks if (n := about.get("checked", {}).get(f"people.{task}", 0))}
    counts_text = " and ".join(f"{n:,} (task {task})" for task, n in counts.items())
    return f"{counts_text} of {about['items']:,} items" if counts else ""


def _chosen_by(about: Document) -> str:
    """Return the names of the attackers whose scores a refinement used to choose the items, joined by "and". `about` is
    a run's description of its benchmark.
    """
    refinements = (step.get("args", {}) for step in _mappings(about.get("provenance")) if step.get("op") == "refine")
    return " and ".join(dict.fromkeys(name for args in refinements for name in args.get("attackers", ())))


def _mappings(history: Any) -> Iterator[Document]:
    """Yield every mapping in a benchmark's history, at any depth."""
    if isinstance(history, Mapping):
        yield history
        history = list(history.values())
    for part in history if isinstance(history, list | tuple) else ():
        yield from _mappings(part)


def _all_refined(history: Sequence[Document]) -> bool:
    """Return whether a refinement chose all items of a benchmark with this history. For a joined benchmark, the items
    of every part must have been chosen in this way.
    """
    joined = [step.get("args", {}).get("history") or [] for step in history]
    return any(step.get("op") == "refine" for step in history) or any(
        parts and all(map(_all_refined, parts)) for parts in joined
    )


def _refined_parts(history: Sequence[Document]) -> Iterator[str]:
    """Yield the names of those parts of a joined benchmark whose items were all chosen by a refinement. `history` is
    the benchmark's history.
    """
    for args in (step.get("args", {}) for step in history):
        parts = zip(args.get("names", ()), args.get("history") or (), strict=False)
        yield from (name for name, part in parts if _all_refined(part))


def _score_of(model: str) -> str:
    return "" if model.startswith(HUMAN) else str(parse_uri(model).options.get("score", ""))


def _asked_otherwise(table: PublishedTable, run: Run) -> str:
    """Return why the model of the run was asked in a way that the table does not cover, for example with another
    prompt. The text is empty if the table covers it.
    """
    if not table.scores or run.model.startswith(HUMAN):
        return ""
    if _score_of(run.model) not in table.scores:
        return f"the table is about models scored by ?score={' or '.join(table.scores)}"
    name, _ = prompt_name(parse_uri(run.model))
    other = table.prompts and name not in table.prompts and name in {p.id for p in prompts_of("")}
    return f"the table is about the prompts {', '.join(table.prompts)}" if other else ""


def _wording(table: PublishedTable, model: str) -> str:
    """Return a label for the source of the prompt that a model's row used. It is "the words given with --prompts", or
    the label for creperie's own prompt. It is empty if the table does not compare prompts.
    """
    if not table.prompts or model.startswith(HUMAN):
        return ""
    return "the words given with --prompts" if prompt_name(parse_uri(model))[1] else OUR_WORDS


def _fact_row(table: PublishedTable, fact: FactRow) -> OurRow:
    own = bool(fact.benchmarks) and set(fact.benchmarks) <= table.item_names()
    cells = {
        c.name: replace(fact.cells[c.name], run=fact.label, published=own)
        for c in table.columns
        if c.name in fact.cells
    }
    printed = next((r for r in table.rows if (r.model, r.group) == (fact.model, fact.group)), None)
    label = _with_items(table, fact.label, fact.benchmarks)
    return OurRow(fact.label, cells, printed, fact.benchmarks, label, fact.group, fact.stands_in, fact.by)


def _printed_row(
    table: PublishedTable, model: str, same: Mapping[str, str], group: str | None = None
) -> PublishedRow | None:
    if model.startswith(HUMAN):
        return next((row for row in table.rows if row.model == "Human"), None)
    if model in same:
        names = {row.model: row for row in table.rows}
        if same[model] not in names:
            raise unknown(f"row of table {table.key}", same[model], names)
        return names[same[model]]
    rows = [row for row in table.rows if group is None or row.group == group]
    return next((row for row in rows if any(same_model(model, uri) for uri in row.uris)), None)


def misplaced(table: PublishedTable, run: Run) -> str:
    """Return why a run does not belong in a table although it could fill some of its columns. The text is empty if the
    run belongs there.
    """
    if run.model.startswith(HUMAN):
        return "" if any(row.model == "Human" for row in table.rows) else "the table has no row for people"
    images = [c for c in table.columns if c.measured and task(c.tasks[0]).needs == "image_text"]
    if images and not any(task(name).needs in run.inputs for c in images for name in c.tasks):
        return "the table is about models that see the image"
    if table.rows_are == "models" and not any(row.uris for row in table.rows):
        return "the table is about models that were trained for it"
    if table.fillable and not images and "image_text" in run.inputs:
        return "the table is about text encoders"
    if not table.scores and parse_uri(run.model).kind in GENERATIVE:
        return "the table is not about generative models"
    if table.rows_are == "models" and known_model(run.model) and _printed_row(table, run.model, {}) is None:
        return "the papers have this model in other tables"
    return ""


def _said_of_sets(table: PublishedTable, ours: Sequence[OurRow], about: Mapping[str, Sequence[Document]]) -> list[str]:
    """Return notes on the benchmarks of our rows. A note says that a benchmark stands in for a published one, was seen
    with other images than its own, contains items chosen by attackers' scores, or was checked by scripts. `about` maps
    the name of a benchmark to its descriptions in our runs.
    """
    names_by_note: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for row in ours for name in row.benchmarks):
        made = [text for word, text in STAND_IN_SETS.items() if f"{word}-" in name and name not in table.item_names()]
        parts = [" and ".join(made) + "; no item of a published set"] * bool(made)
        parts += ["seen with other images in place of its own"] * ("~" in name)
        chosen = dict.fromkeys(filter(None, map(_chosen_by, about.get(name, ()))))
        histories = [each.get("provenance") or [] for each in about.get(name, ())]
        refined = list(dict.fromkeys(part for history in histories for part in _refined_parts(history)))
        which = f"only {listing(refined)} among its parts" if refined else "only some parts of it"
        parts += [
            f"items of it were chosen by the scores of {', '.join(chosen)}, which come nearer to chance by that"
            if all(map(_all_refined, histories))
            else f"{which} came out of a refinement, by the scores of {', '.join(chosen)}: on the whole these need not "
            "come near chance"
        ] * bool(chosen)
        checked = dict.fromkeys(filter(None, map(by_scripts, about.get(name, ()))))
        parts += [f"scripts, not people, checked {', '.join(checked)}"] * bool(checked)
        names_by_note.setdefault("; ".join(parts), []).append(name)
    return [f"{', '.join(names)}: {text}." for text, names in names_by_note.items() if text]


def _notes(table: PublishedTable, ours: Sequence[OurRow]) -> list[str]:
    """Return notes on our rows; rows with the same note share it."""
    rows_by_note: dict[str, list[str]] = {}
    for row in ours:
        for text in _said_of(table, row):
            rows_by_note.setdefault(text, []).append(row.label or row.model)
    rows = len(ours)
    return [
        f"{'All our rows' if len(names) == rows > 1 else '; '.join(names)}: {text}."
        for text, names in rows_by_note.items()
    ]


def _said_of(table: PublishedTable, row: OurRow) -> Iterator[str]:
    """Yield the notes on one of our rows: on the source of its prompt, on its numbers of items if they differ from the
    published ones, on how people's answers and ties were counted, on chance levels that differ between columns, and on
    items that share a picture.
    """
    cells = {c: row.figures[c.name] for c in table.columns if c.name in row.figures}
    own = {c: cell.n for c, cell in cells.items() if c.n and cell.published}
    if sizes := [f"{c.title} {n:,} for {c.n:,}" for c, n in own.items() if n != c.n]:
        yield f"other numbers of items than the paper's: {', '.join(sizes)}"
    if cells and (words := _wording(table, row.model) if ":" in row.model else ""):
        yield f"asked in {words}"
    votes = row.model.startswith(HUMAN)
    if votes:
        yield VOTES if row.model.endswith(COMBINED) else AVERAGE
        if "scripted" in row.label:
            yield "scripts look at no picture: with and without images are not two measurements"
    if tied := [(c.title, cell) for c, cell in cells.items() if cell.ties]:
        rule = tied[0][1].tie_rule
        yield f"{TIES[rule]}: {', '.join(f'{title} {cell.ties:,} of {cell.n:,}' for title, cell in tied)}"
    levels = {c.title: f"{cell.chance:.1f}" for c, cell in cells.items() if not math.isnan(cell.chance)}
    if len(set(levels.values())) > 1:
        yield f"chance, %: {', '.join(f'{title} {level}' for title, level in levels.items())}"
    alone = [(c.title, cell) for c, cell in cells.items() if cell.clusters and c.over != "sd" and math.isnan(cell.low)]
    if alone:
        counts = ", ".join(f"{title} ({counted(cell.clusters, 'picture')})" for title, cell in alone)
        yield f"too few pictures for an interval: {counts}"
    shared = [(c.title, cell) for c, cell in cells.items() if 0 < cell.clusters < cell.n and not math.isnan(cell.low)]
    if shared and not votes:
        counts = ", ".join(f"{title} {cell.n:,} items about {cell.clusters:,} pictures" for title, cell in shared)
        yield f"items about one picture depend on each other, which intervals take into account: {counts}"
        if alike := [title for title, cell in shared if cell.value in (0, 100)]:
            yield (
                "where all answers are right or all are wrong, nothing shows how much items about one picture depend "
                f"on each other, and intervals can be those of independent items: {', '.join(alike)}"
            )
