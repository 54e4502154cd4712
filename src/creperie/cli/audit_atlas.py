"""`creperie atlas`: many audits as one page."""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.output import CommandResult, answers, say
from creperie.core import DataError, UsageError, read_json, write_text


@click.command()
@click.argument("audits", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="AUDIT.json…")
@click.option("--out", type=click.Path(path_type=Path), help="Write the page in Markdown.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the page in HTML.")
@answers
def atlas(audits: tuple[Path, ...], out: Path | None, html: Path | None) -> CommandResult:
    """Put audits that `creperie audit --json` wrote on one page: benchmarks by families of attackers."""
    from creperie.auditing import atlas_markdown, atlas_page

    if out is None and html is None:
        raise UsageError("nothing to write", hint="pass `out=` or `html=`")
    found = []
    for file in audits:
        read = read_json(file)
        if not isinstance(read, dict) or not {"verdict", "text", "results", "subsets", "attackers"} <= set(read):
            raise DataError("is not an audit", where=str(file), hint="write one with `creperie audit BENCH --json`")
        found.append(read)
    for path, page in ((out, atlas_markdown), (html, atlas_page)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, page(found))
    written = [str(path) for path in (out, html) if path]
    document = {"benchmarks": {a["benchmark"]: a["verdict"] for a in found}, "written": written}
    return CommandResult(document, lambda: say(f"{len(found)} audits written to {', '.join(written)}"))
