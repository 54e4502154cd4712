"""A report on runs as one self-contained HTML page. It opens from disk and loads no other files.

`report` creates it in one call, with the audits of the runs' benchmarks.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from creperie.auditing import (
    AttackerModels,
    AuditOptions,
    audit,
    audit_answer,
    audit_document,
    audit_origin,
    blind_rows,
    keep_audit,
    kept_audit,
    kept_audits,
    read_audit,
)
from creperie.bench import Benchmark, recorded_audit
from creperie.core import DataError, Document, Json, Progress, UsageError, counted, render, silent, write_text
from creperie.metrics import task
from creperie.reporting.browser import browser_data
from creperie.reporting.gather import RunGroup, best_result, gather_runs, runs_in
from creperie.reporting.html_tables import (
    comparison_table,
    part,
    standings_table,
    summary_table,
    task_table,
)
from creperie.reporting.page_figures import page_figures, rank_figure
from creperie.reporting.sections import ranked_and_blind, robust_part, sight_part
from creperie.reporting.thumbnails import BUDGET, Thumbnails, thumbnails
from creperie.scoring import ComparisonRow, Run, compare, rank_runs
from creperie.statistics import robustness

#: with more runs than this on one benchmark, runs are ranked, not compared pair by pair
MOST_COMPARED = 6
#: the options of the audit that a report makes where there is none
QUICK_AUDIT = {"attackers": "quick"}
_QUICK = AuditOptions(attackers=(QUICK_AUDIT["attackers"],))
#: with more benchmarks than this, the report makes no audits: they would take longer than everything else
MOST_AUDITED = 2
#: id, heading and HTML
Section = tuple[str, str, str]


@dataclass(frozen=True)
class Contents:
    """What a page contains besides the runs. `audits` maps the content hash of a benchmark to its audit."""

    title: str = ""
    audits: Mapping[str, Document] = field(default_factory=dict)
    comparisons: bool = True
    figures: bool = True
    thumbnail_bytes: int = BUDGET
    back: str = ""  #: address of the link back


@dataclass(frozen=True)
class Page:
    """An HTML page, and counts of what it shows."""

    html: str
    items: int
    pictures: int
    missing: int  #: images that cannot be read
    left_out: int  #: images for which there was no room
    notes: tuple[str, ...]


def report_page(groups: Sequence[RunGroup], contents: Contents | None = None, *, progress: Progress = silent) -> Page:
    """Return the report page for groups of runs."""
    from markupsafe import Markup

    contents, groups = contents or Contents(), [group.apart() for group in groups]
    thumbs = [_pictures(g, contents, progress) for g in groups]
    lines = list(chain.from_iterable(t.pictures.values() for t in thumbs))
    starts = [sum(len(t.pictures) for t in thumbs[:k]) for k in range(len(groups))]
    benches = [
        browser_data(group, {r: start + i for i, r in enumerate(t.pictures)}, t.failed)
        for group, t, start in zip(groups, thumbs, starts, strict=True)
    ]
    names = dict.fromkeys(g.title for g in groups)
    notes = [f"{g.title}: {note}" for g in groups for note in g.notes]
    sections = [*_sections(groups, contents, progress), ("items", "Items", Markup(render("reporting", "items.html")))]
    html = page_of(
        contents.title or "Report on " + (", ".join(names) if len(names) < 3 else counted(len(names), "benchmark")),
        back=contents.back,
        sections=sections,
        notes=notes,
        data=Markup(inlined({"benches": benches})),
        pictures=Markup("\n".join(lines)),
    )
    missing, left_out = sum(len(t.failed) for t in thumbs), sum(t.left_out for t in thumbs)
    return Page(html, sum(map(len, groups)), len(lines), missing, left_out, tuple(notes))


def _pictures(group: RunGroup, contents: Contents, progress: Progress) -> Thumbnails:
    if group.bench is None:
        return Thumbnails()
    references: list[str] = group.bench.ragged("images")[1].to_pylist()
    return thumbnails(group.bench.images, references, budget=contents.thumbnail_bytes, progress=progress)


# -- sections --------------------------------------------------------------------------------------------------------


def _sections(groups: Sequence[RunGroup], contents: Contents, progress: Progress) -> Iterator[Section]:
    """Yield the sections of the page above the list of items. If there are several benchmarks, each has a tab."""
    yield "summary", "Summary", _summary(groups, contents.audits)
    if len(groups) == 1:
        yield from _of_benchmark(groups[0], contents, progress)
        return
    if contents.figures and (drawn := rank_figure(groups)):
        yield "ranks", "Ranks", drawn
    panels = [(group.title, list(_of_benchmark(group, contents, progress, k))) for k, group in enumerate(groups)]
    yield "benchmarks", "By benchmark", part("tabs", panels)


def _of_benchmark(group: RunGroup, contents: Contents, progress: Progress, number: int = 0) -> Iterator[Section]:
    """Yield the sections of one benchmark: results, figures, comparisons and audit. `number` is its index among the
    benchmarks of the page.
    """
    tables = [(name, task(name).what, task_table(group, name)) for name in group.tasks]
    yield "results", "Results", part("by_task", tables)
    if contents.figures and (drawn := page_figures(group)):
        yield "figures", "Figures", drawn
    if contents.comparisons and (compared := _comparisons(group, progress)):
        yield "comparisons", "Comparisons", compared
        ranked, blind = ranked_and_blind(group.runs)
        if 1 < len(ranked) <= MOST_COMPARED:
            yield "robustness", "Robustness", robust_part(robustness(ranked, blind=blind), _names(group))
    if group.twins:
        yield "picture", "What the picture adds", sight_part(group, number)
    if audit := contents.audits.get(group.runs[0].hash):
        yield "audit", "Audit", part("audit", audit, blind_rows(audit), audit_answer(audit))


def _summary(groups: Sequence[RunGroup], audits: Mapping[str, Document]) -> str:
    rules = sorted({run.document["ties"] for g in groups for run in g.runs})
    listed = summary_table(groups) + part("legend", groups[0].runs[0].settings.level, rules)
    if len(groups) > 1:
        names = {run.model: label for group in groups for run, label in group.labelled}
        runs = [run for group in groups for run in group.runs]
        links = {group.runs[0].hash: f"#bench-{k}" for k, group in enumerate(groups)}
        listed = standings_table(rank_runs(runs, names=names), links) + part("folded", "All results as a list", listed)
    findings = list(_findings(groups))
    audited = []
    for k, group in enumerate(groups):
        audit = audits.get(group.runs[0].hash)
        link = "#audit" if len(groups) == 1 else f"#bench-{k}"
        command = f"creperie audit {shlex.quote(group.place or 'BENCH')}"
        audited.append((group, best_result(group.labelled), audit, audit and audit_answer(audit), link, command))
    return part("benchmarks", audited) + listed + (part("findings", findings) if findings else "")


def _findings(groups: Sequence[RunGroup]) -> Iterator[tuple[str, str, str | None]]:
    """Yield (label of the run, finding or note, example or None) for each finding code and each note of all runs."""
    for group in groups:
        for run, label in group.labelled:
            for code, n in run.document["finding_counts"].items():
                first = next((f["message"] for f in run.findings if f["code"] == code), "")
                yield label, f"{code}: {n:,} items", first
            for note in run.document.get("notes", []):
                yield label, note, None


def _comparisons(group: RunGroup, progress: Progress) -> str:
    """Return HTML with the paired tests of all pairs of runs. If there are many runs, return a table of ranks
    instead.
    """
    if len(group.runs) > MOST_COMPARED:
        pairs = len(group.runs) * (len(group.runs) - 1) // 2
        return standings_table(rank_runs(group.runs, names=_names(group))) + part("listed_by_compare", pairs)
    jobs = [
        (name, having)
        for name in group.tasks
        if task(name).by_item and len(having := [r for r in group.runs if name in r.tasks]) > 1
    ]
    parts = []
    with progress("paired tests", len(jobs), "tasks") as advance:
        for name, having in jobs:
            parts.append(_compared(group, name, compare(having, tasks=[name], ties=having[0].settings.ties).rows))
            advance(1)
    return part("compared", parts) if parts else ""


def _compared(group: RunGroup, name: str, rows: Sequence[ComparisonRow]) -> tuple[str, str, str]:
    names = _names(group)
    whole, parts = ([r for r in rows if (r.subset == "all") is is_whole] for is_whole in (True, False))
    shown = comparison_table(whole, names, f"Paired tests of {name}")
    if parts:
        shown += part("folded", "By subset", comparison_table(parts, names, f"Paired tests of {name} by subset"))
    return name, "", shown


def _names(group: RunGroup) -> dict[str, str]:
    """Return the labels of a group's runs, both by the URI of the model and by the name of the run."""
    return {key: label for run, label in group.labelled for key in (run.model, run.name)}


# -- the document ----------------------------------------------------------------------------------------------------


def page_of(title: str, **values: Any) -> str:
    """Return an HTML page in the house style. `values` are the variables of the template: `sections`, a list of (id,
    heading, HTML), or else `shown`, a single block of HTML.
    """
    known: Json = {"back": "", "sections": (), "notes": (), "data": "", "shown": ""}
    return render("reporting", "report.html", title=title, **(known | values))


def inlined(value: Any) -> str:
    """Return a value as JSON. It is safe inside a script element, whatever captions it contains.

    >>> inlined({"caption": "</script><b>&"})
    '{"caption":"\\\\u003c/script>\\\\u003cb>\\\\u0026"}'
    """
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign, code in (("<", "\\u003c"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        written = written.replace(sign, code)
    return written


def _saved_audit(bench: Benchmark) -> Json | None:
    """Return the audit saved beside a benchmark, else one in the cache. Return None if there is neither."""
    if recorded := recorded_audit(bench):
        return recorded
    models = AttackerModels()
    for options, changed in ((AuditOptions(), {}), (_QUICK, QUICK_AUDIT)) if kept_audits(bench.name) else ():
        if kept := kept_audit(bench.name, audit_origin(bench, options, models, changed)):
            return kept
    return None


def standing_audit(bench: Benchmark, *, progress: Progress = silent) -> Json:
    """Return an audit of a benchmark as a document. A saved audit is used if there is one, so that a report gives the
    same verdict as `creperie audit`. Otherwise a quick audit, which loads no language model, is made and cached.
    """
    if saved := _saved_audit(bench):
        return saved
    document = audit_document(audit(bench, **QUICK_AUDIT, progress=progress), options=QUICK_AUDIT)
    keep_audit(document, audit_origin(bench, _QUICK, AttackerModels(), QUICK_AUDIT))
    return document


def read_audits(files: Sequence[Path], groups: Sequence[RunGroup]) -> dict[str, Json]:
    """Read audits from JSON files, and return them by the content hash of the benchmark. Raise a UsageError if an audit
    is of a benchmark on which there is no run.
    """
    audits: dict[str, Json] = {}
    for file in files:
        read = read_audit(file)
        if str(read["hash"]) not in {g.runs[0].hash for g in groups}:
            what = "none of the runs is on the benchmark of this audit"
            raise UsageError(
                what, where=str(file), hint="leave this audit out, or audit the benchmark that the runs are on"
            )
        audits[read["hash"]] = read
    return audits


def make_audits(groups: Sequence[RunGroup], *, progress: Progress = silent) -> tuple[dict[str, Json], list[str]]:
    """Return the audits of the groups' benchmarks by content hash, and notes that say why other benchmarks have no
    audit. If there are many benchmarks, only saved audits are used.
    """
    documents: dict[str, Json] = {}
    notes, many, left = [], len(groups) > MOST_AUDITED, 0
    for group in groups:
        if group.bench is None:
            left += many
            continue
        try:
            found = _saved_audit(group.bench) if many else standing_audit(group.bench, progress=progress)
        except DataError as e:
            notes.append(f"no audit: {e}")
            continue
        if found:
            documents[group.runs[0].hash] = found
        left += not found
    if left:
        hint = "run `creperie audit BENCH --json > FILE` and pass --audit FILE for each"
        notes.append(f"{counted(left, 'benchmark')} {'is' if left == 1 else 'are'} not audited here; {hint}")
    return documents, notes


@dataclass(frozen=True)
class ReportPage:
    """A report that displays itself in a notebook, and can be saved as one HTML file."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" title="report" width="100%" height="700"></iframe>'

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return the path."""
        write_text(Path(path), self.html)
        return Path(path)


def report(
    runs: Run | str | Path | Sequence[Run | str | Path],
    out: str | Path | None = None,
    *,
    benches: Sequence[str] = (),
    images: str | Path | None = None,
    audits: Sequence[Path] | None = None,
    title: str = "",
    progress: Progress = silent,
) -> ReportPage:
    """Return a self-contained HTML page about runs: results, figures, comparisons, an audit, and every item. It can be
    opened from disk.

    If `out` is given, the page is also written to that file. `runs` are runs, their folders, or folders of runs.
    `benches` are benchmarks that may contain the runs' items, and `images` is the folder of their images. `audits` are
    files written by `audit --json`. If `audits` is None, the saved audit of each benchmark is used, or a quick audit is
    made. If it is an empty list, the page has no audit.
    """
    if isinstance(out, Run):
        raise UsageError(
            "the second argument must be a file name", hint="pass several runs as a list: `report([a, b])`"
        )
    with TemporaryDirectory() as folder:
        place, contents = Path(out or f"{folder}/report.html"), Contents(title=title)
        several = [runs] if isinstance(runs, (Run, str, Path)) else runs
        report_document(several, place, contents, benches=benches, images=images, audits=audits, progress=progress)
        return ReportPage(place.read_text(encoding="utf-8"))


def report_document(
    runs: Sequence[Run | str | Path],
    html: Path,
    contents: Contents,
    *,
    benches: Sequence[str] = (),
    images: str | Path | None = None,
    audits: Sequence[Path] | None = None,
    progress: Progress = silent,
) -> Json:
    """Write the page that `report` returns to the file `html`, and return the document of `creperie report --json`."""
    given: list[Run | Path] = []
    for run in runs:
        given += [run] if isinstance(run, Run) else runs_in([str(run)])
    groups = gather_runs(given, benches=tuple(benches), images=images)
    own, notes = make_audits(groups, progress=progress) if audits is None else (read_audits(tuple(audits), groups), [])
    page = report_page(groups, replace(contents, audits=own), progress=progress)
    write_text(html, page.html)
    return {
        "html": str(html),
        "bytes": html.stat().st_size,
        "items": page.items,
        "runs": [run.name for group in groups for run in group.runs],
        "benchmarks": [group.name for group in groups],
        "pictures": {"shown": page.pictures, "unreadable": page.missing, "left_out": page.left_out},
        "verdicts": {group.name: own[h]["verdict"] for group in groups if (h := group.runs[0].hash) in own},
        "notes": [*page.notes, *notes],
    }
