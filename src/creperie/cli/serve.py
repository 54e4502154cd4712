"""`creperie serve`: a folder of runs as a live leaderboard."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from creperie.core import UsageError, missing_extra


@click.command()
@click.argument("runs", type=click.Path(path_type=Path), metavar="RUNS")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback: only this machine. There is no login.")
@click.option("--bench", "benches", multiple=True, help="The runs' benchmarks, where they are not found by themselves.")
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
    print(json.dumps({"url": url, "folder": str(runs)}) if as_json else f"{url}  (Ctrl-C ends it)")
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
    print(json.dumps({"site": str(out), "pages": written}) if as_json else told)
    return 0
