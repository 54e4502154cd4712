"""`creperie atlas`: many audits as one page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.audit import arms_options, audit_command
from creperie.cli.options import load_part, names
from creperie.cli.output import CommandResult, answers, bar, say
from creperie.core import DataError, UsageError, read_json, write_json, write_text

if TYPE_CHECKING:
    from creperie.auditing import AttackerModels


@click.command()
@click.argument("audits", nargs=-1, required=True, metavar="BENCH|AUDIT.json…")
@click.option(
    "--attackers",
    default="",
    callback=names,
    help="For benchmarks: names, by comma; +NAME adds to the standard battery.",
)
@click.option("--limit", type=click.IntRange(1), help="For benchmarks: at most N items per subset, drawn by --seed.")
@arms_options
@click.option("--keep", type=click.Path(path_type=Path), help="Keep each audit in this folder; do not repeat them.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the page in Markdown.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the page in HTML.")
@answers
def atlas(
    audits: tuple[str, ...],
    attackers: tuple[str, ...],
    limit: int | None,
    models: AttackerModels,
    keep: Path | None,
    out: Path | None,
    html: Path | None,
) -> CommandResult:
    """Audit benchmarks, or read what `creperie audit --json` wrote, and put all on one page."""
    from creperie.auditing import atlas_markdown, atlas_page

    if out is None and html is None:
        raise UsageError("nothing to write", hint="pass `out=` or `html=`")
    found = []
    for given in audits:
        read = read_json(Path(given)) if given.endswith(".json") else _audited(given, keep, attackers, limit, models)
        if not isinstance(read, dict) or not {"verdict", "text", "results", "subsets", "attackers"} <= set(read):
            raise DataError("is not an audit", where=given, hint="write one with `creperie audit BENCH --json`")
        found.append(read)
    for path, page in ((out, atlas_markdown), (html, atlas_page)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, page(found))
    written = [str(path) for path in (out, html) if path]
    document = {"benchmarks": {a["benchmark"]: a["verdict"] for a in found}, "written": written}
    return CommandResult(document, lambda: say(f"{len(found)} audits written to {', '.join(written)}"))


def _audited(
    spec: str, keep: Path | None, attackers: tuple[str, ...], limit: int | None, models: AttackerModels
) -> Any:
    """The audit of a benchmark: as kept, or made now."""
    from creperie.auditing import audit, audit_document

    command = audit_command(spec, attackers, limit, models)
    file = keep / f"{re.sub(r'[^A-Za-z0-9]+', '-', spec).strip('-')}.json" if keep else None
    if file and file.is_file() and (read := read_json(file)).get("command") == command:
        return read
    found = audit(load_part(spec, limit=limit, seed=models.seed), attackers, models, progress=bar)
    document = audit_document(found) | {"command": command}
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, document)
    return document
