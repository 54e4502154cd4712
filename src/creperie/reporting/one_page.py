"""The report of runs as one HTML page, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from creperie.core import Progress, silent
from creperie.reporting.audited import make_audits, read_audits
from creperie.reporting.gather import gather_runs, runs_in
from creperie.reporting.page import Contents, report_page, write_report
from creperie.scoring import Run


def report(
    runs: Sequence[Run | str | Path],
    html: str | Path,
    *,
    benches: Sequence[str] = (),
    images: str | Path | None = None,
    audits: Sequence[Path] | None = None,
    title: str = "",
    progress: Progress = silent,
) -> Path:
    """Write runs as one HTML page that opens from disk: results, figures, comparisons, an audit, every item.

    `runs` are runs, their folders, or folders that hold some. `audits` are files that `audit --json` wrote; without
    them a short audit is made, with an empty list there is none.
    """
    given: list[Run | Path] = []
    for run in runs:
        given += [run] if isinstance(run, Run) else runs_in([str(run)])
    groups = gather_runs(given, benches=tuple(benches), images=str(images) if images is not None else None)
    documents = make_audits(groups, progress=progress)[0] if audits is None else read_audits(tuple(audits), groups)
    page = report_page(groups, Contents(title=title, audits=documents), progress=progress)
    write_report(page.html, Path(html))
    return Path(html)
