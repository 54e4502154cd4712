"""`creperie audit` says whether a benchmark leaks, through which cues, and how certain that is. `creperie atlas` shows
many audits on one page.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.auditing import (
    AttackerModels,
    Audit,
    AuditOptions,
    atlas_markdown,
    atlas_page,
    attacked_part,
    audit_document,
    audit_origin,
    changed_options,
    compare_pairwise,
    keep_audit,
    kept_audit,
    make_attackers,
    read_audit,
    runnable_attackers,
    scoring_attackers,
    write_audit_page,
)
from creperie.auditing import audit as run_audit
from creperie.bench import Benchmark, PartOptions, load_part, record_audit
from creperie.cli.audit_text import show_audit, show_comparison
from creperie.cli.options import FILE, engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar, say
from creperie.core import Json, UsageError, option, write_text

if TYPE_CHECKING:
    from creperie.engine import Engine
    from creperie.reporting import BaselineResult


@dataclass(frozen=True)
class CiOutputs:
    """Options for continuous integration: the baseline to compare with, and the files to write."""

    baseline: Path | None = option(None, "Fail only if worse than this file of `audit --json`.", metavar="FILE")
    junit: Path | None = option(None, "Write JUnit XML.", metavar="FILE")
    sarif: Path | None = option(None, "Write SARIF, for code-scanning pages.", metavar="FILE")
    markdown: Path | None = option(None, "Append a summary for a pull request.", metavar="FILE")
    badge: Path | None = option(None, "Write a badge (SVG).", metavar="FILE")
    strict: bool = option(False, "Exit code 3 if packages of attackers are missing, even with a baseline.")


#: --baseline and the output files.
ci_options = options_of("ci", CiOutputs)


def with_ci(answer: CommandResult, ci: CiOutputs, place: str) -> CommandResult:
    """Write the files that `ci` asks for. Return `answer`, the result of an audit, with the exit code for continuous
    integration.

    If `ci` names a baseline, the exit code says whether the audit is worse than the baseline. `place` is the path of
    the audited benchmark, as written into some of the files.
    """
    from creperie.reporting import against_baseline, badge_svg, junit_xml, markdown_summary, sarif_log

    audit = answer.document
    result: BaselineResult | None = against_baseline(audit, read_audit(ci.baseline)) if ci.baseline else None
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
        answer.show()
        say("[bold]{}[/bold]", result.text)

    code = result.code or 3 * incomplete
    return replace(answer, document={**audit, "baseline": result.document()}, show=show, code=code)


def _relative(place: str) -> str:
    """Return a path in the form that code-scanning pages expect: relative to the repository, with forward slashes."""
    path = Path(place.partition(":")[2] or place) if ":" in place and not Path(place).exists() else Path(place)
    try:
        return path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return path.as_posix()


@click.command()
@click.argument("bench", nargs=-1, required=True, metavar="BENCH [BENCH]")
@options_of("options", AuditOptions)
@options_of("part", PartOptions)
@options_of("models", AttackerModels)
@engine_options
@click.option("--html", type=FILE, metavar="FILE", help="Write the audit as one HTML page.")
@ci_options
@answers
def audit(
    bench: tuple[str, ...],
    options: AuditOptions,
    part: PartOptions,
    models: AttackerModels,
    engine: Engine | None,
    html: Path | None,
    ci: CiOutputs,
) -> CommandResult:
    """Attack BENCH with models that do not see its images, and say through which cues it leaks.

    Exit codes: 0 clean, 1 leaks, 3 no verdict (too few items, or some attackers could not be run). If two benchmarks
    made from the same captions are given, their false captions are compared.
    """

    if len(bench) > 2:
        raise UsageError(f"expected one or two benchmarks, got {len(bench)}", hint="audit one, or compare two")
    parts = [load_part(spec, part, models.seed) for spec in bench]
    if len(parts) == 2:
        sent = scoring_attackers(make_attackers(runnable_attackers(options.attackers, models)[0], models))
        first, second = (part.name for part in parts)
        rows = compare_pairwise(parts[0], parts[1], sent, progress=bar)
        shown: Json = {"first": first, "second": second, "results": [asdict(row) for row in rows]}
        return CommandResult(shown, lambda: show_comparison(first, second, rows))
    blind_audit = _run(parts[0], options, models, engine)
    blind_audit = replace(blind_audit, spec=bench[0], part=part.typed)
    changed = changed_options(options, part, models)
    document = audit_document(blind_audit, options=changed) | _ceilings(parts[0], options, models)
    if html:
        write_audit_page(document, html, bench[0])
    keep_audit(document, audit_origin(parts[0], options, models, changed))
    record_audit(Path(bench[0]), document)
    shown = document | ({"html": str(html)} if html else {})
    return with_ci(CommandResult(shown, lambda: show_audit(blind_audit, html), code=blind_audit.code), ci, bench[0])


def _run(bench: Benchmark, options: AuditOptions, models: AttackerModels, engine: Engine | None = None) -> Audit:
    def announce(line: str) -> None:
        click.echo(line, err=True)

    return run_audit(bench, options=options, models=models, engine=engine, progress=bar, announce=announce)


@dataclass(frozen=True)
class AtlasOutput:
    """Options for where the atlas and its audits are written."""

    keep: Path | None = option(None, "Store the audits in this folder, and reuse those in it.", metavar="DIR")
    out: Path | None = option(None, "Write the page in Markdown.", metavar="FILE")
    html: Path | None = option(None, "Write the page in HTML.", metavar="FILE")


@click.command()
@click.argument("audits", nargs=-1, required=True, metavar="BENCH|AUDIT.json…")
@options_of("options", AuditOptions)
@options_of("part", PartOptions)
@options_of("models", AttackerModels)
@options_of("output", AtlasOutput)
@answers
def atlas(
    audits: tuple[str, ...], options: AuditOptions, part: PartOptions, models: AttackerModels, output: AtlasOutput
) -> CommandResult:
    """Audit benchmarks, or read what `creperie audit --json` wrote, and show all results on one page."""

    out, html = output.out, output.html
    if out is None and html is None:
        raise UsageError("no output file given", hint="pass `out=` or `html=`")
    documents = []
    for given in audits:
        is_file = given.endswith(".json")
        documents.append(read_audit(Path(given)) if is_file else _audited(given, output.keep, options, part, models))
    for path, page in ((out, atlas_markdown), (html, atlas_page)):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, page(documents))
    written = [str(path) for path in (out, html) if path]
    document = {"benchmarks": {a["benchmark"]: a["verdict"] for a in documents}, "written": written}
    return CommandResult(document, lambda: say(f"{len(documents)} audits written to {', '.join(written)}"))


def _audited(spec: str, keep: Path | None, options: AuditOptions, part: PartOptions, models: AttackerModels) -> Any:
    """Return the audit of a benchmark. An audit stored in the folder `keep` is used if it is up to date."""
    bench, changed = load_part(spec, part, models.seed), changed_options(options, part, models)
    origin = audit_origin(bench, options, models, changed)
    if keep and (kept := kept_audit(bench.name, origin, keep)):
        return kept
    document = audit_document(_run(bench, options, models), spec, changed) | _ceilings(bench, options, models)
    if keep:
        keep_audit(document, origin, keep)
    return document


def _ceilings(bench: Benchmark, options: AuditOptions, models: AttackerModels) -> Json:
    """Return, by subset, the highest accuracy that a model can reach without word order. Only items that the audit
    attacks are counted.
    """
    from creperie.statistics import ceilings

    part = attacked_part(bench, models.seed, full=options.full)
    return {"ceilings": [ceiling.document() for ceiling in ceilings(part)]}
