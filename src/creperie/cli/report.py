"""`creperie report` and `creperie serve`: runs as one HTML page, and as a leaderboard in the browser."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.output import CommandResult, answers, bar, echo, say
from creperie.core import UsageError, missing_extra

if TYPE_CHECKING:
    from creperie.reporting import RunGroup


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmark, if it is not found automatically.")
@click.option("--images", type=click.Path(exists=True), help="Folder, zip, tar or Parquet with the images.")
@click.option(
    "--audit", "audits", multiple=True, type=click.Path(path_type=Path, exists=True), help="What `audit --json` wrote."
)
@click.option("--no-audit", is_flag=True, help="Leave the audit out; otherwise a short one is run.")
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
    from creperie.reporting import Contents, gather_runs, read_audits, report_page, runs_in, study_in, write_report

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

    return CommandResult(document, lambda: _show_report(document))


def _show_report(document: dict[str, Any]) -> None:
    from rich.markup import escape

    pictures, count = document["pictures"], len(document["runs"])
    for note in document["notes"]:
        say(f"[yellow]note[/yellow]: {escape(note)}")
    if pictures["unreadable"]:
        say(f"[yellow]{pictures['unreadable']:,} pictures cannot be read[/yellow]")
    if pictures["left_out"]:
        say(f"[yellow]{pictures['left_out']:,} pictures did not fit; give more room with --thumbnails[/yellow]")
    runs = "1 run" if count == 1 else f"{count} runs"
    say(f"{escape(document['html'])}: {runs}, {document['items']:,} items, {document['bytes'] / 2**20:.1f} MB")


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


@click.command()
@click.argument("runs", type=click.Path(path_type=Path), metavar="RUNS")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback: only this machine. There is no login.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmarks, if they are not found automatically.")
@click.option("--export", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write a static site.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON document.")
def serve(runs: Path, port: int, host: str, benches: tuple[str, ...], export: Path | None, as_json: bool) -> int:
    """Show the folder RUNS as a live leaderboard, with the report of every run. Ctrl-C ends it.

    With --export DIR the leaderboard, the table of all models and benchmarks, and one report per benchmark are written
    as files that any web host can show; nothing is served.
    """
    if export is not None:
        return _export(runs, export, benches, as_json)
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise missing_extra(package, "report")
    import uvicorn

    from creperie.reporting import listen, make_app, trusted_hosts

    app = make_app(runs, benches=benches, hosts=trusted_hosts(host))
    bound = listen(host, port)
    number = bound.getsockname()[1]
    url = f"http://{f'[{host}]' if ':' in host else host}:{number}/"
    echo(json.dumps({"url": url, "folder": str(runs)}) if as_json else f"{url}  (Ctrl-C ends it)")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    with suppress(KeyboardInterrupt):  # the way to end it, not a mishap
        server.run(sockets=[bound])
    return 0


def _export(runs: Path, out: Path, benches: tuple[str, ...], as_json: bool) -> int:
    from creperie.cli.output import bar
    from creperie.reporting import export_site

    if not runs.is_dir():
        raise UsageError(
            "there is no such folder", where=str(runs), hint="give the folder that `score --out` writes to"
        )
    written = export_site(runs, out, benches=benches, progress=bar)
    size = sum(written.values())
    told = f"{out / 'index.html'}: {len(written)} pages, {size / 2**20:.1f} MB"
    echo(json.dumps({"site": str(out), "pages": written}) if as_json else told)
    return 0
