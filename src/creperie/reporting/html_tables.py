"""Tables of a report: results with their intervals drawn in the cell, comparisons, ranks, and the verdict of the
audit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from creperie.core import Document, fragment, points
from creperie.core import percent as as_percent
from creperie.metrics import task
from creperie.reporting.gather import RunGroup, covered, value_and_interval
from creperie.reporting.run_tables import RunTable, TableValue
from creperie.scoring import ComparisonRow, Standing, Standings, StandingsColumn, human_level, human_source

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class HtmlCell:
    """The content of a table's cell, and the value by which the cell is sorted. The content is text, or markup from a
    template.
    """

    html: str
    value: float | str | None = None
    kind: str = ""


def part(macro: str, *values: Any) -> Markup:
    """Render a macro of report_parts.html with these values."""
    return fragment("reporting", "report_parts.html", macro, *values)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    label: str,
    text: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    seldom: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Markup:
    """Return an HTML table whose columns can be sorted by clicking. Columns named in `text` are left-aligned. Columns
    named in `seldom` are left out if all their values are zero or missing, columns named in `without` always.
    """
    cells = list(rows)
    empty = [name for k, name in enumerate(columns) if name in seldom and not any(row[k].value for row in cells)]
    keep = [k for k, name in enumerate(columns) if name not in (*empty, *without)]
    return part(
        "table", [columns[k] for k in keep], [[row[k] for k in keep] for row in cells], label, text, links or {}
    )


def text(value: str, kind: str = "") -> HtmlCell:
    return HtmlCell(value, value, kind)


def number(value: float | None, form: str = ",") -> HtmlCell:
    """Return a cell with a number. If the value is missing, the cell has a dash."""
    if value is None or math.isnan(value):
        return HtmlCell("–", None)
    return HtmlCell(format(value, form), value)


def percent(value: float | None, kind: str = "") -> HtmlCell:
    return HtmlCell(as_percent(value), None if value is None or math.isnan(value) else value, kind)


# -- results ---------------------------------------------------------------------------------------------------------


def result_cell(result: Document | None, human: float = math.nan, *, counts: bool = False) -> HtmlCell:
    """Return a cell with an accuracy and its interval. The interval is drawn on a line from 0 to 100, with marks for
    chance and the accuracy of people.

    With `counts`, a cell whose result does not cover all items also says how many it covers. Tables with a column for
    the number of items do not need this.
    """
    if result is None or result["accuracy"] is None or not result["n"]:
        return HtmlCell("–")
    value, low, high = value_and_interval(result)
    if task(result["task"]).is_rank:
        shown = task(result["task"]).text
        return HtmlCell(part("bold", shown(value), f"{shown(low)} to {shown(high)}"), value)
    ties = f", {result['ties']:,} ties" if result["ties"] else ""
    about = f"{result['hits']:,} of {result['n']:,} {result['unit']}{ties}"
    partly = covered(result["n"], result["void"]) if counts and result["void"] else ""
    return HtmlCell(part("accuracy", about, value, low, high, result["chance"], human, partly), value, "result")


def count_cell(n: int, void: int) -> HtmlCell:
    """Return a cell with the number of items that a result covers. If some items are not covered, the number of all
    items follows.
    """
    return HtmlCell(covered(n, void), n)


def summary_table(groups: Sequence[RunGroup]) -> Markup:
    """Return a table with one row per run and task, over all items."""
    several = len(groups) > 1
    columns = [*(["benchmark"] if several else []), "model", "task", "accuracy, %", "n", "chance", "human", "ties"]
    columns += ["not covered", "findings"]
    rows = []
    for group in groups:
        for run, label in group.labelled:
            for result in run.results:
                if result["subset"] != "all":
                    continue
                human = human_level(group.name, result["task"], "all")
                first = [text(group.title)] if several else []
                named = HtmlCell(part("titled", run.model, label), label, "name")
                rows.append(
                    [
                        *first,
                        named,
                        text(result["task"]),
                        result_cell(result, human),
                        count_cell(result["n"], result["void"]),
                        HtmlCell(task(result["task"]).text(result["chance"]), result["chance"]),
                        percent(human),
                        number(result["ties"]),
                        number(result["void"]),
                        number(sum(run.document["finding_counts"].values())),
                    ]
                )
    seldom = ("human", "ties", "not covered", "findings")
    return table(columns, rows, label="Summary", text=("benchmark", "model", "task"), seldom=seldom)


def task_table(group: RunGroup, name: str) -> Markup:
    """Return a table of the accuracies on the task `name`, with one row per subset and one column per model."""
    having = [(r, label) for r, label in group.labelled if name in r.tasks]
    by_model = [{x["subset"]: x for x in run.results if x["task"] == name} for run, _ in having]
    subsets = [
        s for s in dict.fromkeys(s for by in by_model for s in by) if any(by[s]["n"] for by in by_model if s in by)
    ]
    humans = [human_level(group.name, name, s) for s in subsets]
    with_human = not all(map(math.isnan, humans))
    rows = []
    for subset, human in zip(subsets, humans, strict=True):
        one = max((by[subset] for by in by_model if subset in by), key=lambda result: result["n"])
        cells = [result_cell(by.get(subset), human, counts=True) for by in by_model]
        rows.append(
            [
                text(subset),
                number(one["n"]),
                *cells,
                percent(one["chance"]),
                *([percent(human)] if with_human else []),
                number(sum(by[subset]["ties"] for by in by_model if subset in by)),
            ]
        )
    labels = [label for _, label in having]
    columns = ["subset", "n", *labels, "chance", *(["human"] if with_human else []), "ties"]
    source = human_source(group.name, name) if with_human else ""
    shown = table(columns, rows, label=f"{name} by subset", text=("subset",))
    return shown + part("soft", f"human: {source}") if source else shown


def run_table_html(made: RunTable) -> Markup:
    """Return a table of runs as HTML for a notebook, in the style of the tables of a report."""
    best = made.best()
    rows: list[list[HtmlCell]] = []
    for row in made.rows:
        cells = (
            (made.cells.get((row, column)), "result best" if (row, column) in best else "result")
            for column in made.columns
        )
        rows.append([*(text(name) for name in row), *(_value_cell(made, value, kind) for value, kind in cells)])
    heads = [*made.choice.rows, *(" ".join(column) for column in made.columns)]
    return part("notebook", table(heads, rows, label="Results", text=made.choice.rows), made.caption)


def _value_cell(made: RunTable, value: TableValue | None, kind: str) -> HtmlCell:
    """Return a cell of a table of runs: the number, its interval drawn as a line, and the number of items it is based
    on. `kind` is the cell's class on the page.
    """
    if value is None or math.isnan(value.value):
        return HtmlCell("–")
    if value.task.is_rank or not made.choice.intervals:
        return HtmlCell(part("bold", value.text(made.choice.digits), value.partly), value.value, kind)
    about = f"{covered(value.n, value.void)} items, {value.ties:,} ties"
    shown = part(
        "accuracy", about, value.value, value.low, value.high, None, math.nan, value.partly.removesuffix(" items")
    )
    return HtmlCell(shown, value.value, kind)


# -- comparisons -----------------------------------------------------------------------------------------------------


def comparison_table(
    rows: Sequence[ComparisonRow], names: Mapping[str, str], label: str, *, pair: bool = False
) -> Markup:
    """Return a table of paired tests. `names` are short names of models. `label` must be unique on the page.

    `pair` means that all tests are of the same two models on one task. The page has named these already, so their
    columns are left out.
    """
    a, b = names.values() if pair else ("A", "B")
    columns = ["task", "subset", "A", "B", "n", f"{a}, %", f"{b}, %", "A − B, points", "p", "p (Holm)"]
    columns += [f"only {a}", f"only {b}"]
    widest = max((abs(v) for row in rows for v in _span(row) if v == v), default=0) or 0.01
    shown = []
    for row in rows:
        c = row.comparison
        span = points(c.difference, c.low, c.high, "{1} to {2}").replace("-", "−")
        sure = " *" if c.p_holm < 0.05 else ""
        difference = part(
            "bold", f"{100 * c.difference:+z.1f}{sure}".replace("-", "−"), "" if math.isnan(c.low) else span
        )
        low, at, high = (round(50 * v / widest, 2) for v in _span(row))
        drawn = part("difference", {"low": low, "at": at, "high": high})
        shown.append(
            [
                text(row.task),
                text(row.subset),
                text(names.get(c.a, c.a), "name"),
                text(names.get(c.b, c.b), "name"),
                number(c.n),
                percent(c.accuracy_a, "a"),
                percent(c.accuracy_b, "b"),
                HtmlCell(difference + drawn, c.difference, "result sure" if sure else "result"),
                HtmlCell(p_text(c.p), c.p),
                HtmlCell(p_text(c.p_holm), c.p_holm),
                number(c.mcnemar.only_a),
                number(c.mcnemar.only_b),
            ]
        )
    said = ("task", "A", "B") if pair else ()
    return table(columns, shown, label=label, text=("task", "subset", "A", "B"), without=said)


def _span(row: ComparisonRow) -> tuple[float, float, float]:
    """Return (low, difference, high). Without an interval, all three are the difference."""
    c = row.comparison
    low, high = (c.difference if math.isnan(end) else end for end in (c.low, c.high))
    return low, c.difference, high


def p_text(value: float) -> str:
    """Return a p-value as text.

    >>> p_text(0.0004), p_text(0.25), p_text(float("nan"))
    ('<0.001', '0.250', '–')
    """
    if math.isnan(value):
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# -- models × benchmarks --------------------------------------------------------------------------------------------


def standings_table(ranked: Standings, links: Mapping[str, str] | None = None) -> Markup:
    """Return the table of models × benchmarks with its filter and notes. `links` maps hashes of benchmarks to
    addresses.
    """
    columns = ["model", *(column.name for column in ranked.columns)]
    several = sum(not math.isnan(mean) for mean in ranked.mean.values()) > 1  # one mean compares nothing
    rows = []
    for model in ranked.models:
        cells = [_standing(column, column.models.get(model)) for column in ranked.columns]
        mean, own = number(None), [s for column in ranked.columns if (s := column.models.get(model))]
        if not math.isnan(value := ranked.mean[model]):
            items = covered(sum(s.n for s in own), sum(s.void for s in own))
            mean = HtmlCell(part("bold", f"{100 * value:.1f}", f"n {items}"), value)
        ends = [mean, number(ranked.mean_rank[model], ".1f")] if several else []
        rows.append([text(model, "name"), *cells, *ends])
    columns += ["mean", "mean rank"] if several else []
    reports = {column.name: links[column.hash] for column in ranked.columns if links and column.hash in links}
    shown = table(columns, rows, label="Models and benchmarks", text=("model",), links=reports)
    return part("matrix", shown, ranked.notes)


def _standing(column: StandingsColumn, standing: Standing | None) -> HtmlCell:
    if standing is None or math.isnan(standing.accuracy):
        return HtmlCell("–")
    best = "result best" if standing.rank == 1 else "result"
    return HtmlCell(part("standing", column, standing), standing.accuracy, best)
