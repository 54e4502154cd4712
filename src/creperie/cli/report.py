"""`creperie report`: runs as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.output import CommandResult, answers, bar, say
from creperie.core import UsageError

if TYPE_CHECKING:
    from creperie.reporting import RunGroup


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmark, where it is not found by itself.")
@click.option("--images", type=click.Path(exists=True), help="Folder, zip, tar or Parquet with the images.")
@click.option(
    "--audit", "audits", multiple=True, type=click.Path(path_type=Path, exists=True), help="What `audit --json` wrote."
)
@click.option("--no-audit", is_flag=True, help="Leave the audit out; else a short one is made.")
@click.option("--no-figures", is_flag=True, help="Leave the figures out.")
@click.option("--thumbnails", default=16.0, show_default=True, metavar="MB", help="Room for pictures; 0 for none.")
@click.option("--title", default="", help="The page's title.")
@answers
def report(
    runs: tuple[str, ...],
    html: Path,
    benches: tuple[str, ...],
    images: str | None,
    audits: tuple[Path, ...],
    no_audit: bool,
    no_figures: bool,
    thumbnails: float,
    title: str,
) -> CommandResult:
    """Write RUN… as one HTML page that opens from disk: results, figures, comparisons, the audit, every item.

    A folder that holds runs stands for all of them. The folder of a `creperie train study` becomes a page of its own:
    Tables 5 and 10, the gains and a chart of them.
    """
    from creperie.reporting import (
        Contents,
        gather_runs,
        read_audits,
        report_page,
        runs_in,
        study_in,
        write_report,
    )

    if study := study_in(runs):
        return _study(study, html, title, not no_figures)
    if audits and no_audit:
        raise UsageError("--audit and --no-audit exclude each other")
    groups = gather_runs(runs_in(runs), benches=benches, images=images)
    documents, untold = ({}, []) if audits or no_audit else _own_audits(groups)
    documents |= read_audits(audits, groups)
    contents = Contents(
        title=title, audits=documents, figures=not no_figures, thumbnail_bytes=round(thumbnails * 2**20)
    )
    page = report_page(groups, contents, progress=bar)
    write_report(page.html, html)
    size = html.stat().st_size
    names = [run.name for group in groups for run in group.runs]
    document = {
        "html": str(html),
        "bytes": size,
        "items": page.items,
        "runs": names,
        "benchmarks": [group.name for group in groups],
        "pictures": {"shown": page.pictures, "unreadable": page.missing, "left_out": page.left_out},
        "verdicts": {group.name: documents[h]["verdict"] for group in groups if (h := group.runs[0].hash) in documents},
        "notes": [*page.notes, *untold],
    }

    def show() -> None:
        from rich.markup import escape

        for note in (*page.notes, *untold):
            say(f"[yellow]note[/yellow]: {escape(note)}")
        if page.missing:
            say(f"[yellow]{page.missing:,} pictures cannot be read[/yellow]")
        if page.left_out:
            say(f"[yellow]{page.left_out:,} pictures did not fit; give more room with --thumbnails[/yellow]")
        count = "1 run" if len(names) == 1 else f"{len(names)} runs"
        say(f"{escape(str(html))}: {count}, {page.items:,} items, {size / 2**20:.1f} MB")

    return CommandResult(document, show)


#: more benchmarks than this are not audited by the report itself: that takes longer than everything else
MOST_AUDITED = 2


def _own_audits(groups: list[RunGroup]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    from creperie.reporting import make_audits

    if len(groups) > MOST_AUDITED:
        hint = "run `creperie audit BENCH --json > FILE` and pass --audit FILE for each"
        return {}, [f"{len(groups)} benchmarks are not audited here; {hint}"]
    return make_audits(groups, progress=bar)


def _study(path: Path, html: Path, title: str, figures: bool) -> CommandResult:
    from creperie.reporting import load_study, study_page, write_report

    found = load_study(path)
    write_report(study_page(found, title=title, figures=figures), html)
    size = html.stat().st_size
    document = {"html": str(html), "bytes": size, "study": str(path.parent), "trainings": len(found.sat)}
    return CommandResult(document, lambda: say(f"{html}: {len(found.sat)} trainings, {size / 2**10:,.0f} kB"))
