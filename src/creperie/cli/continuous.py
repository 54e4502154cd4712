"""The options of `creperie audit` that serve continuous integration: a baseline, and files that CI systems read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.options import option, options_of
from creperie.cli.output import CommandResult, say
from creperie.core import write_text

if TYPE_CHECKING:
    from creperie.reporting import BaselineResult


_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class CiOutputs:
    """What an audit is compared with, and the files that are written beside it."""

    baseline: Path | None = option(type=_FILE, metavar="FILE", help="An earlier `audit --json`: fail only when worse.")
    junit: Path | None = option(type=_FILE, metavar="FILE", help="Write JUnit XML.")
    sarif: Path | None = option(type=_FILE, metavar="FILE", help="Write SARIF, for code-scanning pages.")
    markdown: Path | None = option(type=_FILE, metavar="FILE", help="Append a summary for a pull request.")
    badge: Path | None = option(type=_FILE, metavar="FILE", help="Write a badge (SVG).")
    strict: bool = option(is_flag=True, help="Exit code 3 if packages of attackers are missing, even with a baseline.")


#: --baseline and the output files.
ci_options = options_of("ci", CiOutputs)


def with_ci(answer: CommandResult, ci: CiOutputs, place: str) -> CommandResult:
    """The answer of an audit, with the files of CI written; a baseline decides the exit code where there is one."""
    from creperie.reporting import against_baseline, badge_svg, junit_xml, markdown_summary, read_baseline, sarif_log

    audit = answer.document
    result: BaselineResult | None = against_baseline(audit, read_baseline(ci.baseline)) if ci.baseline else None
    if ci.junit:
        write_text(ci.junit, junit_xml(audit, result))
    if ci.sarif:
        write_text(ci.sarif, sarif_log(audit, _relative(place), result))
    if ci.badge:
        write_text(ci.badge, badge_svg(audit))
    if ci.markdown:  # appended: $GITHUB_STEP_SUMMARY is shared by all steps of a job
        ci.markdown.parent.mkdir(parents=True, exist_ok=True)
        with ci.markdown.open("a", encoding="utf-8") as file:
            file.write(markdown_summary(audit, result))
    incomplete = ci.strict and any("pip install" in why for why in audit["not_sent"].values())
    if result is None:
        return replace(answer, code=answer.code or 3 * incomplete)

    def show() -> None:
        from rich.markup import escape

        answer.show()
        say(f"[bold]{escape(result.text)}[/bold]")

    code = result.code or 3 * incomplete
    return replace(answer, document={**audit, "baseline": result.document()}, show=show, code=code)


def _relative(place: str) -> str:
    """A path as code-scanning pages want it: relative to the repository, with slashes."""
    path = Path(place.partition(":")[2] or place) if ":" in place and not Path(place).exists() else Path(place)
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return path.as_posix()
