"""`creperie studio` (formerly `creperie serve`): a folder in the browser, or a leaderboard as files."""

from __future__ import annotations

import json
import secrets
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from creperie.cli.options import FILE
from creperie.cli.output import bar, echo
from creperie.core import UsageError, missing_extra


@click.command()
@click.argument("folder", type=FILE, default=Path(), metavar="[FOLDER]")
@click.option("--port", default=8766, show_default=True, type=click.IntRange(0, 65535), help="0 chooses a free one.")
@click.option("--export", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write a static site.")
@click.option("--bench", "benches", multiple=True, help="With --export: the runs' benchmarks, if they are not found.")
@click.option(
    "--images",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR",
    help="Show pictures of DIR, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the link as one JSON document.")
def studio(
    folder: Path, port: int, export: Path | None, benches: tuple[str, ...], images: tuple[Path, ...], as_json: bool
) -> int:
    """Open FOLDER (default: the current folder) in the browser: benchmarks, audits, foils, runs and studies. Ctrl-C
    ends it.

    The studio can be reached only from this machine, and only with the link that it prints. Pictures outside FOLDER are
    shown only if they are in a folder given with --images. With --export DIR no server is started. Instead, the
    leaderboard of FOLDER's runs and one report per benchmark are written to DIR, as files that any web host can serve.
    """
    if export is not None:
        from creperie.reporting import export_site

        if not folder.is_dir():
            hint = "give the folder that `score --out` writes to"
            raise UsageError("there is no such folder", where=folder, hint=hint)
        written = export_site(folder, export, benches=benches, progress=bar)
        summary = f"{export / 'index.html'}: {len(written)} pages, {sum(written.values()) / 2**20:.1f} MB"
        echo(json.dumps({"site": str(export), "pages": written}) if as_json else summary)
        return 0
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise missing_extra(package, "report")
    import uvicorn

    from creperie.reporting import listen, make_studio

    token = secrets.token_urlsafe(24)
    app, bound = make_studio(folder, token, images=images), listen(port)
    url = f"http://127.0.0.1:{bound.getsockname()[1]}/?token={token}"
    echo(json.dumps({"url": url, "folder": str(folder)}) if as_json else f"Open {url}  (Ctrl-C ends it)")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    with suppress(KeyboardInterrupt):  # the normal way to end it
        server.run(sockets=[bound])
    return 0


#: the old name, kept for one release
serve = click.Command(
    "serve",
    params=studio.params,
    callback=studio.callback,
    help="The old name of `creperie studio`.",
    deprecated="use `creperie studio`",
)
