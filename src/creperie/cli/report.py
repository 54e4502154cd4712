"""`creperie report`: runs as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.output import CommandResult, answers, bar, say, show_notes
from creperie.core import UsageError, counted, write_text


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmark, if it is not found automatically.")
@click.option("--images", type=click.Path(exists=True), help="Folder, zip or Parquet with the images.")
@click.option(
    "--audit", "audits", multiple=True, type=click.Path(path_type=Path, exists=True), help="A file of `audit --json`."
)
@click.option("--no-audit", is_flag=True, help="Leave the audit out; otherwise a short one is run.")
@click.option("--no-figures", is_flag=True, help="Leave the figures out.")
@click.option("--thumbnails", default=7.0, show_default=True, metavar="MB", help="Room for pictures; 0 for none.")
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
    """Write RUN… as one HTML page that opens from disk: results, figures, comparisons, the audit and every item.

    A folder that holds runs stands for all of them. The folder of a `creperie train study` becomes a page of its own,
    with Tables 5 and 10 of SugarCrepe, the gains, and a chart of the gains.
    """
    from creperie.reporting import Contents, report_document, study_in

    if study := study_in(runs):
        return _study(study, html, title, not no_figures)
    if audits and no_audit:
        raise UsageError("--audit and --no-audit exclude each other", hint="leave out one of them")
    contents = Contents(title=title, figures=not no_figures, thumbnail_bytes=round(thumbnails * 2**20))
    given = audits or (() if no_audit else None)
    document = report_document(runs, html, contents, benches=benches, images=images, audits=given, progress=bar)
    pictures, number = document["pictures"], counted(len(document["runs"]), "run")

    def show() -> None:
        show_notes(document["notes"])
        if pictures["unreadable"]:
            say(f"[yellow]{pictures['unreadable']:,} pictures cannot be read[/yellow]")
        if pictures["left_out"]:
            say(f"[yellow]{pictures['left_out']:,} pictures did not fit; give more room with --thumbnails[/yellow]")
        say("{}: {}", document["html"], f"{number}, {document['items']:,} items, {document['bytes'] / 2**20:.1f} MB")

    return CommandResult(document, show)


def _study(path: Path, html: Path, title: str, figures: bool) -> CommandResult:
    from creperie.reporting import load_study, study_page

    study = load_study(path)
    write_text(html, study_page(study, title=title, figures=figures))
    size = html.stat().st_size
    document = {"html": str(html), "bytes": size, "study": str(path.parent), "trainings": len(study.sat)}
    return CommandResult(document, lambda: say(f"{html}: {len(study.sat)} trainings, {size / 2**10:,.0f} kB"))
