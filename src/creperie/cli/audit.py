"""`creperie audit` and `creperie atlas`: is it hackable, through what, how sure are we; many audits as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.audit_text import show_audit, show_comparison
from creperie.cli.options import engine_options, load_part, names, option, option_group, options_of
from creperie.cli.output import CommandResult, answers, bar, say
from creperie.core import DataError, UsageError, read_json, write_text

if TYPE_CHECKING:
    from creperie.auditing import AttackerModels, TreeParser
    from creperie.bench import Benchmark
    from creperie.engine import Engine
    from creperie.reporting import BaselineResult

_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class CiOutputs:
    """What serves continuous integration: what an audit is compared with, and the files that are written beside it."""

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


#: Options that name the attackers' models and the seed.
arms_options = option_group(
    "models",
    "creperie.auditing:AttackerModels",
    click.option(
        "--lm", default="", metavar="URI", help="A language model, for lm-mean, lm-sum and syntaxbias; `none` for none."
    ),
    click.option(
        "--encoder", default="", metavar="URI", help="A text encoder, for embeddings and finetuned; `none` for none."
    ),
    click.option("--plausibility", default="", metavar="URI", help="A Vera checkpoint, for plausibility."),
    click.option("--grammar", default="", metavar="URI", help="A CoLA classifier, for grammar (else link-grammar)."),
    click.option("--judge", default="", metavar="URI", help="A chat model, for judge: which describes a photograph?"),
    click.option("--transfer", default="", metavar="SPECS", help="Benchmarks that transfer learns from, by comma."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of draws, folds and models."),
)


@click.command()
@click.argument("bench", nargs=-1, required=True, metavar="BENCH [BENCH]")
@click.option("--attackers", default="", callback=names, help="Names, by comma; +NAME adds to the standard battery.")
@click.option("--subset", "subsets", multiple=True, callback=names, help="Only these subsets, by comma or repeated.")
@click.option("--limit", type=click.IntRange(1), help="At most N items per subset, drawn by --seed.")
@arms_options
@click.option("--threshold", default=0.55, show_default=True, help="The blind accuracy that is tolerated.")
@click.option("--syntax", is_flag=True, help="Also compare the captions' trees, by link-grammar, on a sample.")
@click.option(
    "--parser",
    "by",
    default="",
    metavar="SPEC",
    help="Parse by stanford:FOLDER, benepar:MODEL or pcfg:TREEBANK instead.",
)
@click.option("--trees", type=click.Path(path_type=Path), help="Trees in brackets to compare: JSONL of {text, tree}.")
@engine_options
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the audit as one HTML page.")
@ci_options
@answers
def audit(
    bench: tuple[str, ...],
    attackers: tuple[str, ...],
    subsets: tuple[str, ...],
    limit: int | None,
    models: AttackerModels,
    threshold: float,
    syntax: bool,
    by: str,
    trees: Path | None,
    engine: Engine | None,
    html: Path | None,
    ci: CiOutputs,
) -> CommandResult:
    """Attack BENCH with models that do not see its images, and say through what it leaks.

    Exit codes: 0 clean, 1 leaks, 3 not shown (too few items) or incomplete (attackers that could not be run). With two
    benchmarks that were made from the same captions, compare their negatives.
    """
    if len(bench) > 2:
        raise UsageError(f"{len(bench)} benchmarks given", hint="audit one, or compare two")
    parts = [load_part(spec, subsets=subsets, limit=limit, seed=models.seed) for spec in bench]
    if len(parts) == 2:
        return _compare(parts[0], parts[1], attackers, models)
    given = {"threshold": None if threshold == 0.55 else threshold, "syntax": syntax, "parser": by, "trees": trees}
    options = audit_options(attackers, limit, models, subsets, **given)
    found = _audit(parts[0], bench[0], options, attackers, models, threshold, _parser(syntax, by, trees), engine, html)
    return with_ci(found, ci, bench[0])


def audit_options(
    attackers: Sequence[str], limit: int | None, models: AttackerModels, subsets: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """The options of an audit that differ from their defaults: with the content and the version they decide it."""
    given = {"attackers": ",".join(attackers), "subset": ",".join(subsets), "limit": limit, **asdict(models), **more}
    return {name: value if value is True else str(value) for name, value in given.items() if value}


def _audit(
    bench: Benchmark,
    spec: str,
    options: Mapping[str, Any],
    attackers: Sequence[str],
    models: AttackerModels,
    threshold: float,
    parser: TreeParser | None,
    engine: Engine | None,
    html: Path | None,
) -> CommandResult:
    from creperie.auditing import audit as run_audit
    from creperie.auditing import audit_document, keep_audit, write_audit_page
    from creperie.bench import record_audit

    found = run_audit(bench, attackers, models, threshold=threshold, parser=parser, engine=engine, progress=bar)
    found = replace(found, whole=replace(found.whole, spec=spec))
    if html:
        write_audit_page(found, html)
    document = audit_document(found, options=options)
    keep_audit(document)
    record_audit(Path(spec), document)
    shown = document | ({"html": str(html)} if html else {})
    return CommandResult(shown, lambda: show_audit(found, html), code=found.code)


def _compare(a: Benchmark, b: Benchmark, attackers: Sequence[str], models: AttackerModels) -> CommandResult:
    from creperie.auditing import compare_pairwise, make_attackers, scoring_attackers, sendable

    sent = scoring_attackers(make_attackers(sendable(attackers, models)[0], models))
    rows = compare_pairwise(a, b, sent, progress=bar)
    shown = {"first": a.name, "second": b.name, "results": [asdict(row) for row in rows]}
    return CommandResult(shown, lambda: show_comparison(a.name, b.name, rows))


def _parser(syntax: bool, by: str, trees: Path | None) -> TreeParser | None:
    from creperie.auditing import linkage_tree, read_trees

    if trees is not None:
        known = read_trees(trees)
        return known.get
    if by:
        from creperie.lang import open_constituency_parser

        return open_constituency_parser(by)
    return linkage_tree if syntax else None


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
    from creperie.auditing import audit, audit_document, keep_audit, kept_audit

    bench, options = load_part(spec, limit=limit, seed=models.seed), audit_options(attackers, limit, models)
    if keep and (kept := kept_audit(bench.name, bench.hash, options, keep)):
        return kept
    document = audit_document(audit(bench, attackers, models, progress=bar), spec, options)
    if keep:
        keep_audit(document, keep)
    return document
