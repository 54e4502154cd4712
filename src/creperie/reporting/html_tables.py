"""Tables of a report: results with their intervals drawn in the cell, comparisons, the audit's verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from creperie.metrics import task
from creperie.reporting.gather import RunGroup
from creperie.scoring import ComparisonRow, human_level, human_source

WHOLE = ("all", "macro")


@dataclass(frozen=True)
class HtmlCell:
    """What stands in a table's cell: HTML, and the value that it sorts by."""

    html: str
    value: float | str | None = None
    kind: str = ""


def table(columns: Sequence[str], rows: Iterable[Sequence[HtmlCell]], *, label: str, text: Sequence[str] = ()) -> str:
    """A table whose columns sort on a click; columns named in `text` are read from the left."""
    head = "".join(
        f'<th scope="col"{" class=text" if name in text else ""}><button type="button">{escape(name)}</button></th>'
        for name in columns
    )
    body = "".join(
        f"<tr{_row_class(row)}>{''.join(_td(c, name in text) for c, name in zip(row, columns, strict=True))}</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _row_class(row: Sequence[HtmlCell]) -> str:
    return ' class="whole"' if row and row[0].value in WHOLE else ""


def _td(cell: HtmlCell, text: bool) -> str:
    kind = " ".join(filter(None, (cell.kind, "text" if text else "")))
    value = cell.value if cell.value is not None and cell.value == cell.value else ""
    return f'<td{f" class={kind!r}" if kind else ""} data-v="{escape(str(value))}">{cell.html}</td>'


def text(value: str, kind: str = "") -> HtmlCell:
    return HtmlCell(escape(value), value, kind)


def number(value: float | None, form: str = ",") -> HtmlCell:
    """A number; a dash where there is none."""
    if value is None or math.isnan(value):
        return HtmlCell("–", None)
    return HtmlCell(format(value, form), value)


def percent(value: float | None) -> HtmlCell:
    return HtmlCell("–") if value is None or math.isnan(value) else HtmlCell(f"{100 * value:.1f}", value)


# -- results ---------------------------------------------------------------------------------------------------------


def result_cell(result: Mapping[str, Any] | None, human: float = math.nan) -> HtmlCell:
    """An accuracy with its interval, drawn on a line from 0 to 100 with chance and people's level marked."""
    if result is None or result["accuracy"] is None or not result["n"]:
        return HtmlCell("–")
    value, low, high = (math.nan if result[k] is None else float(result[k]) for k in ("accuracy", "low", "high"))
    if task(result["task"]).value in ("mean-rank", "median-rank"):
        return HtmlCell(f"<b>{value:.2f}</b><small>{low:.2f} to {high:.2f}</small>", value)
    span = "" if math.isnan(low) else f"<small>{100 * low:.1f}–{100 * high:.1f}</small>"
    ties = f", {result['ties']:,} ties" if result["ties"] else ""
    about = f"{result['hits']:,} of {result['n']:,} {result['unit']}{ties}"
    drawn = interval_line(value, (low, high), result["chance"], human)
    return HtmlCell(f'<b title="{escape(about)}">{100 * value:.1f}</b>{span}{drawn}', value, "result")


def interval_line(value: float, span: tuple[float, float], chance: float | None, human: float) -> str:
    """A dot on a line with its interval; a tick at chance, a diamond where people are."""
    low, high = (value, value) if math.isnan(span[0]) else span
    marks = [f'<rect class="span" x="{100 * low:.1f}" y="4" width="{max(0.6, 100 * (high - low)):.1f}" height="4"/>']
    if chance is not None and not math.isnan(chance):
        marks.append(f'<rect class="chance" x="{100 * chance - 0.5:.1f}" y="0" width="1" height="12"/>')
    if not math.isnan(human):
        x = 100 * human
        marks.append(f'<path class="human" d="M{x:.1f} 1l2.5 5-2.5 5-2.5-5z"/>')
    marks.append(f'<rect class="dot" x="{100 * value - 1.5:.1f}" y="2" width="3" height="8" rx="1"/>')
    return (
        '<svg class="line" viewBox="-2 0 104 12" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" x="0" y="5.5" width="100" height="1"/>{"".join(marks)}</svg>'
    )


def summary_table(groups: Sequence[RunGroup]) -> str:
    """One row a run and task, over all items."""
    several = len(groups) > 1
    columns = [*(["benchmark"] if several else []), "model", "task", "n", "accuracy, %", "chance", "human", "ties"]
    columns += ["not covered", "findings"]
    rows = []
    for group in groups:
        for run, label in zip(group.runs, group.labels, strict=True):
            for result in run.results:
                if result["subset"] != "all":
                    continue
                human = human_level(group.name, result["task"], "all")
                found = sum(run.document["finding_counts"].values())
                first = [text(group.name)] if several else []
                named = HtmlCell(f'<span title="{escape(run.model)}">{escape(label)}</span>', label, "name")
                rows.append(
                    [
                        *first,
                        named,
                        text(result["task"]),
                        number(result["n"]),
                        result_cell(result, human),
                        percent(result["chance"]),
                        percent(human),
                        number(result["ties"]),
                        number(result["void"]),
                        number(found),
                    ]
                )
    keep = [i for i, name in enumerate(columns) if name != "human" or any(r[i].value is not None for r in rows)]
    shown = [[r[i] for i in keep] for r in rows]
    return table([columns[i] for i in keep], shown, label="Summary", text=("benchmark", "model", "task"))


def task_table(group: RunGroup, name: str) -> str:
    """A row a subset, a column a model."""
    having = [(r, label) for r, label in zip(group.runs, group.labels, strict=True) if name in r.tasks]
    found = [{x["subset"]: x for x in run.results if x["task"] == name} for run, _ in having]
    subsets = [s for s in dict.fromkeys(s for by in found for s in by) if any(by[s]["n"] for by in found if s in by)]
    humans = [human_level(group.name, name, s) for s in subsets]
    with_human = not all(map(math.isnan, humans))
    rows = []
    for subset, human in zip(subsets, humans, strict=True):
        one = next(by[subset] for by in found if subset in by)
        cells = [result_cell(by.get(subset), human) for by in found]
        rows.append(
            [
                text(subset),
                number(one["n"]),
                *cells,
                percent(one["chance"]),
                *([percent(human)] if with_human else []),
                number(sum(by[subset]["ties"] for by in found if subset in by)),
            ]
        )
    labels = [label for _, label in having]
    columns = ["subset", "n", *labels, "chance", *(["human"] if with_human else []), "ties"]
    source = human_source(group.name, name) if with_human else ""
    note = f"<p class=soft>human: {escape(source)}</p>" if source else ""
    return table(columns, rows, label=f"{name} by subset", text=("subset",)) + note


# -- comparisons -----------------------------------------------------------------------------------------------------


def comparison_table(rows: Sequence[ComparisonRow], names: Mapping[str, str]) -> str:
    """Paired tests; `names` are short names of models."""
    columns = ["task", "subset", "A", "B", "n", "A, %", "B, %", "A − B, points", "p", "p (Holm)", "only A", "only B"]
    shown = []
    for row in rows:
        c = row.comparison
        sure = c.p_holm < 0.05
        difference = f"<b>{100 * c.difference:+.1f}</b><small>{100 * c.low:+.1f} to {100 * c.high:+.1f}</small>"
        shown.append(
            [
                text(row.task),
                text(row.subset),
                text(names.get(c.a, c.a), "name"),
                text(names.get(c.b, c.b), "name"),
                number(c.n),
                percent(c.accuracy_a),
                percent(c.accuracy_b),
                HtmlCell(difference, c.difference, "sure" if sure else ""),
                HtmlCell(p_text(c.p), c.p),
                HtmlCell(p_text(c.p_holm), c.p_holm),
                number(c.mcnemar.only_a),
                number(c.mcnemar.only_b),
            ]
        )
    return table(columns, shown, label="Paired comparisons", text=("task", "subset", "A", "B"))


def p_text(value: float) -> str:
    """
    >>> p_text(0.0004), p_text(0.25), p_text(float("nan"))
    ('&lt;0.001', '0.250', '–')
    """
    if math.isnan(value):
        return "–"
    return "&lt;0.001" if value < 0.001 else f"{value:.3f}"


# -- the audit -------------------------------------------------------------------------------------------------------

_WORDS = {"leaks": "Leaks", "clean": "Clean", "unsolvable": "Unsolvable items"}


def audit_part(audit: Mapping[str, Any]) -> str:
    """The verdict of an audit's document, and how well its attackers do."""
    verdict, said = str(audit["verdict"]), str(audit["text"])
    sentence = said[:1].upper() + said[1:] + "."
    names = [a["name"] for a in audit["attackers"]]
    cells = {(r["subset"], r["attacker"]): r for r in audit["results"]}
    subsets = list(dict.fromkeys(r["subset"] for r in audit["results"]))
    rows = [[text(s), *[_heat(cells.get((s, name))) for name in names]] for s in subsets]
    heat = table(["subset", *names], rows, label="Blind accuracy", text=("subset",))
    return (
        f'<div class="verdict {escape(verdict)}"><strong>{escape(_WORDS.get(verdict, verdict))}</strong>'
        f"<p>{escape(sentence)}</p></div>"
        f'<div class="heat">{heat}</div>'
        "<p class=soft>Percent of true–false pairs that an attacker without images gets right; chance is 50. "
        "* better than chance after correction, and above the threshold.</p>"
    )


def _heat(row: Mapping[str, Any] | None) -> HtmlCell:
    if row is None or row["accuracy"] is None:
        return HtmlCell("–")
    heat = max(0.0, min(1.0, (row["accuracy"] - 0.5) * 2)) * 0.75
    interval = f"<small>{100 * row['low']:.0f}–{100 * row['high']:.0f}</small>"
    kind = "leak" if row["leaks"] else ""
    html = f'<span class="cell" style="--heat:{heat:.2f}" title="{escape(row["choice"])}">'
    return HtmlCell(f"{html}<b>{100 * row['accuracy']:.1f}</b>{interval}</span>", row["accuracy"], kind)
