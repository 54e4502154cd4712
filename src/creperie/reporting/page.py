"""A report on runs as one HTML page that opens from disk: nothing is fetched, all is inside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from creperie.core import Progress, silent, write_text
from creperie.metrics import task
from creperie.reporting.browser import PagePictures, browser_data
from creperie.reporting.gather import RunGroup
from creperie.reporting.html_tables import audit_part, comparison_table, summary_table, task_table
from creperie.reporting.matrix_table import standings_table
from creperie.reporting.page_figures import page_figures, rank_figure
from creperie.reporting.thumbnails import BUDGET, Thumbnails, thumbnails
from creperie.scoring import ComparisonRow, compare, rank_runs

#: more runs than this on one benchmark are ranked, not compared pair by pair
MOST_COMPARED = 6


@dataclass(frozen=True)
class Contents:
    """What goes into a page beside the runs. Audits are documents, by the benchmark's content hash."""

    title: str = ""
    audits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    comparisons: bool = True
    figures: bool = True
    thumbnail_bytes: int = BUDGET
    address: str = ""  #: where a server gives the pictures; then none is inlined


@dataclass(frozen=True)
class Page:
    """A page, and what can be said about it."""

    html: str
    items: int
    pictures: int
    missing: int  #: pictures that cannot be read
    left_out: int  #: pictures for which there was no room
    notes: tuple[str, ...]


def report_page(groups: Sequence[RunGroup], contents: Contents | None = None, *, progress: Progress = silent) -> Page:
    """The whole page."""
    contents = contents or Contents()
    thumbs = [_pictures(g, contents, progress) for g in groups]
    lines = list(chain.from_iterable(t.pictures.values() for t in thumbs))
    starts = [sum(len(t.pictures) for t in thumbs[:k]) for k in range(len(groups))]
    benches = [
        browser_data(
            group, PagePictures({r: start + i for i, r in enumerate(t.pictures)}, _address(contents, k, group))
        )
        for k, (group, t, start) in enumerate(zip(groups, thumbs, starts, strict=True))
    ]
    notes = [f"{g.name}: {note}" for g in groups for note in g.notes]
    sections = [*_sections(groups, contents, progress), ("items", "Items", asset("browser.html"))]
    html = _document(contents.title or _title(groups), sections, notes, {"benches": benches}, lines)
    missing, left_out = sum(len(t.failed) for t in thumbs), sum(t.left_out for t in thumbs)
    return Page(html, sum(map(len, groups)), len(lines), missing, left_out, tuple(notes))


def write_report(html: str, path: Path) -> None:
    """Write a page, completely or not at all."""
    write_text(path, html)


def _pictures(group: RunGroup, contents: Contents, progress: Progress) -> Thumbnails:
    if group.bench is None or contents.address:
        return Thumbnails()
    references: list[str] = group.bench.ragged("images")[1].to_pylist()
    return thumbnails(group.bench.images, references, budget=contents.thumbnail_bytes, progress=progress)


def _address(contents: Contents, number: int, group: RunGroup) -> str:
    """Where a server gives the group's pictures; empty where there are none to give."""
    at_hand = group.bench is not None and bool(group.bench.images.location)
    return f"{contents.address}{number}/" if contents.address and at_hand else ""


# -- sections --------------------------------------------------------------------------------------------------------


def _sections(groups: Sequence[RunGroup], contents: Contents, progress: Progress) -> list[tuple[str, str, str]]:
    """(id, heading, HTML) of what comes before the items. Several benchmarks have a tab each."""
    found = [("summary", "Summary", _summary(groups))]
    if len(groups) == 1:
        return [*found, *_of_benchmark(groups[0], contents, progress)]
    if contents.figures and (drawn := rank_figure(groups)):
        found.append(("ranks", "Ranks", drawn))
    panels = []
    for k, group in enumerate(groups):
        parts = _of_benchmark(group, contents, progress)
        inner = "".join(f"<h3>{escape(heading)}</h3>{html}" for _, heading, html in parts)
        panels.append(
            f'<div class="panel" id="bench-{k}" role="tabpanel" aria-label="{escape(group.name)}">{inner}</div>'
        )
    tabs = "".join(f'<a role="tab" href="#bench-{k}">{escape(g.name)}</a>' for k, g in enumerate(groups))
    html = f'<div class="tabs"><div role="tablist" aria-label="Benchmarks">{tabs}</div>{"".join(panels)}</div>'
    return [*found, ("benchmarks", "By benchmark", html)]


def _of_benchmark(group: RunGroup, contents: Contents, progress: Progress) -> list[tuple[str, str, str]]:
    """(id, heading, HTML) of one benchmark: its results, figures, comparisons and audit."""
    found = [("results", "Results", _results(group))]
    if contents.figures and (drawn := page_figures(group)):
        found.append(("figures", "Figures", drawn))
    if contents.comparisons and (compared := _comparisons(group, progress)):
        found.append(("comparisons", "Comparisons", compared))
    if audit := contents.audits.get(group.runs[0].hash):
        found.append(("audit", "Audit", audit_part(audit)))
    return found


def _summary(groups: Sequence[RunGroup]) -> str:
    facts = []
    for group in groups:
        run = group.runs[0]
        facts.append(
            f"<li><b>{escape(group.name)}</b> {len(group):,} items in {len(set(run.subsets))} subsets, "
            f"{len(group.runs)} {'model' if len(group.runs) == 1 else 'models'} "
            f"<small>content <code>{escape(run.hash[:12])}</code></small></li>"
        )
    rules = sorted({run.document["ties"] for g in groups for run in g.runs})
    level = groups[0].runs[0].settings.level
    legend = (
        f"<p class=soft>Accuracy with its {100 * level:g} % interval (line), chance (tick) and, where a paper prints "
        f"one, people's level (diamond). A tie counts as {' or '.join(rules)}.</p>"
    )
    shown = f"{summary_table(groups)}{legend}"
    if len(groups) > 1:
        names = {run.model: label for group in groups for run, label in zip(group.runs, group.labels, strict=True)}
        runs = [run for group in groups for run in group.runs]
        links = {group.runs[0].hash: f"#bench-{k}" for k, group in enumerate(groups)}
        shown = standings_table(rank_runs(runs, names=names), links)
        shown += f"<details><summary>All results as a list</summary>{summary_table(groups)}{legend}</details>"
    return f'<ul class="facts">{"".join(facts)}</ul>{shown}{_findings(groups)}'


def _findings(groups: Sequence[RunGroup]) -> str:
    lines = []
    for group in groups:
        for run, label in zip(group.runs, group.labels, strict=True):
            for code, n in run.document["finding_counts"].items():
                first = next((f["message"] for f in run.findings if f["code"] == code), "")
                lines.append(f"<li><b>{escape(label)}</b> {escape(code)}: {n:,} items <small>{escape(first)}</small>")
            lines += [f"<li><b>{escape(label)}</b> {escape(note)}" for note in run.document.get("notes", [])]
    return (
        f'<details open><summary>Findings</summary><ul class="facts">{"".join(lines)}</ul></details>' if lines else ""
    )


def _results(group: RunGroup) -> str:
    return "".join(
        f"<h3><code>{escape(name)}</code> {escape(task(name).what)}</h3>{task_table(group, name)}"
        for name in group.tasks
    )


def _comparisons(group: RunGroup, progress: Progress) -> str:
    """Paired tests of every pair of runs; of many runs, who is ahead of whom."""
    if len(group.runs) > MOST_COMPARED:
        names = {run.model: label for run, label in zip(group.runs, group.labels, strict=True)}
        pairs = len(group.runs) * (len(group.runs) - 1) // 2
        note = f"<p class=soft>{pairs:,} pairs: <code>creperie compare</code> lists them.</p>"
        return standings_table(rank_runs(group.runs, names=names)) + note
    jobs = [
        (name, having)
        for name in group.tasks
        if task(name).by_item and len(having := [r for r in group.runs if name in r.tasks]) > 1
    ]
    parts = []
    with progress("paired tests", len(jobs), "tasks") as advance:
        for name, having in jobs:
            parts.append(_compared(group, name, compare(having, tasks=[name]).rows))
            advance(1)
    if not parts:
        return ""
    note = (
        "<p class=soft>Sign-flip test over images; Holm's correction over all tests of a task; only A, only "
        "B: items that one of them alone gets right. Bold where the corrected p is below 0.05.</p>"
    )
    return "".join(parts) + note


def _compared(group: RunGroup, name: str, rows: Sequence[ComparisonRow]) -> str:
    names = dict(zip([r.model for r in group.runs], group.labels, strict=True))
    names |= dict(zip([r.name for r in group.runs], group.labels, strict=True))
    whole, parts = ([r for r in rows if (r.subset == "all") is wanted] for wanted in (True, False))
    more = f"<details><summary>By subset</summary>{comparison_table(parts, names)}</details>" if parts else ""
    return f"<h3><code>{escape(name)}</code></h3>{comparison_table(whole, names)}{more}"


# -- the document ----------------------------------------------------------------------------------------------------


def _title(groups: Sequence[RunGroup]) -> str:
    return "Report on " + ", ".join(dict.fromkeys(g.name for g in groups))


def _document(
    title: str,
    sections: Sequence[tuple[str, str, str]],
    notes: Sequence[str],
    data: Mapping[str, Any],
    lines: Sequence[str],
) -> str:
    scripts = "".join(asset(name) for name in ("tables.js", "columns.js", "browser.js"))
    return (
        f"{head(title)}{_body(title, sections, notes)}"
        f'<script type="text/plain" id="pictures">{chr(10).join(lines)}</script>\n'
        f'<script type="application/json" id="data">{inlined(data)}</script>\n'
        f"<script>\n{scripts}</script>\n</body>\n</html>\n"
    )


def plain_page(title: str, sections: Sequence[tuple[str, str, str]], notes: Sequence[str] = ()) -> str:
    """A page of (id, heading, HTML) with tables that sort, and no items."""
    body = _body(title, sections, notes)
    return f"{head(title)}{body}<script>\n{asset('tables.js')}</script>\n</body>\n</html>\n"


def _body(title: str, sections: Sequence[tuple[str, str, str]], notes: Sequence[str]) -> str:
    """From the body's beginning to the end of what is read."""
    links = "".join(f'<a href="#{key}">{escape(heading)}</a>' for key, heading, _ in sections)
    told = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    body = "".join(f'<section id="{key}"><h2>{escape(heading)}</h2>{html}</section>' for key, heading, html in sections)
    return (
        f'<body class="report">\n<header class="top"><h1>{escape(title)}</h1>'
        f'<nav aria-label="Sections">{links}</nav></header>\n<main>{told}{body}</main>\n'
    )


def head(title: str) -> str:
    """The beginning of a page in the house style, up to its body."""
    style = files("creperie.auditing").joinpath("page.css").read_text(encoding="utf-8") + asset("report.css")
    icon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' "
    icon += "r='7' fill='%23d9a441'/%3E%3Ccircle cx='8' cy='8' r='4' fill='%23f3d9a0'/%3E%3C/svg%3E"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="{icon}">\n<style>\n{style}</style>\n</head>\n'
    )


def inlined(value: Any) -> str:
    """JSON that can stand inside a script element, whatever the captions hold.

    >>> inlined({"caption": "</script><b>&"})
    '{"caption":"\\\\u003c/script>\\\\u003cb>\\\\u0026"}'
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign, code in (("<", "\\u003c"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        written = written.replace(sign, code)
    return written


def asset(name: str) -> str:
    """A script, style or fragment that comes with the room."""
    return files("creperie.reporting").joinpath("assets").joinpath(name).read_text(encoding="utf-8")
