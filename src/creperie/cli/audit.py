"""`creperie audit` says whether a benchmark leaks, through which cues, and how certain that is. `creperie atlas` shows
many audits on one page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

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
from creperie.cli.options import FILE, engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import Json, UsageError, as_flags, option, write_text

if TYPE_CHECKING:
    from creperie.auditing import Judgement, PairwiseRow
    from creperie.engine import Engine
    from creperie.reporting import BaselineResult

COLOURS = {"leaks": "red", "anti-learned": "red", "nothing left": "red", "clean": "green"}  #: others are yellow
MOST_CUES = 6
AROUND = 16  #: characters of a caption shown before a cue
TAILS = ("trailing blank", "no final period")  #: cues at the end of a caption


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
    """Options that say where the atlas and its audits are written."""

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
    """Return, by subset, the highest accuracy that a model can reach if it ignores word order. Only items that the
    audit attacks are counted.
    """
    from creperie.statistics import ceilings

    part = attacked_part(bench, models.seed, full=options.full)
    return {"ceilings": [ceiling.document() for ceiling in ceilings(part)]}


# -- showing ---------------------------------------------------------------------------------------------------------


def show_audit(audit: Audit, html: Path | None) -> None:
    """Print the verdict, the table of attackers, and the cues through which the benchmark leaks."""
    missing = audit.items - audit.attackable
    chance = f"{missing:,} have no true–false pair" if missing else "chance is 50 %, ties count half"
    say(f"[bold]{escape(audit.name)}[/bold]: {audit.items:,} items, attacked blindly; {chance}")
    if audit.symmetry and audit.symmetry[-1].images.pairs:
        say(f"symmetry: {escape(audit.symmetry[-1].words)}")
    if audit.whole.power:
        say(f"[dim]{escape(audit.whole.power)}[/dim]")
    say()
    _attack_table(audit)
    say()
    for judgement in audit.judgements if len(audit.judgements) > 1 else ():
        colour = COLOURS.get(judgement.verdict, "yellow")
        say(f"[bold]{escape(judgement.subset)}[/bold] [{colour}]{escape(judgement.text)}[/]")
    say()
    _cue_table(audit)
    _likeness_table(audit)
    for reason in dict.fromkeys(audit.not_sent.values()):
        names = ", ".join(name for name, why in audit.not_sent.items() if why == reason)
        say(f"not run: {escape(names)}: {escape(as_flags(reason))}")
    if html:
        say(f"page: {escape(str(html))}")
    show_verdict(audit.whole, audit.next)


def show_verdict(judgement: Judgement, next: str) -> None:
    """Print the sentence of the verdict, then the command to run next. They are the last two lines of a command's
    output.
    """
    say(f"[bold {COLOURS.get(judgement.verdict, 'yellow')}]verdict: {escape(judgement.text)}[/]")
    say(f"next: {escape(next)}")


def _attack_table(audit: Audit) -> None:
    """Print a table with one row per subset and one column per attacker. A star marks a leak."""
    names = [a.name for a in audit.attackers]
    cells = {(r.view, r.subset, r.attacker): r for r in (*audit.rows, *audit.views)}
    rows = []
    for view, subset in dict.fromkeys((r.view, r.subset) for r in (*audit.rows, *audit.views)):
        mine = [cells.get((view, subset, name)) for name in names]
        ran = [r for r in mine if r]
        best = max(ran, key=lambda r: (r.leaks or not r.cue, r.measure.accuracy, r.attacker == "ensemble"))
        label, most = f"{subset} {view}".strip(), max(r.measure.n for r in ran)
        bits = max(r.measure.bits for r in ran)
        shown = [f"{100 * r.measure.accuracy:.1f}{'*' if r.leaks else ' '}" if r else "–" for r in mine]
        interval = f"{100 * best.measure.low:.1f}–{100 * best.measure.high:.1f}"
        rows.append([label, most, *shown, interval, f"{bits:.2f}"])
        fewer = [f"{r.measure.n:,} " if r and r.measure.n < most else "" for r in mine]
        if any(fewer):
            rows.append(["  on", "", *fewer, best.measure.n, ""])
    heads = [name.replace("-", "\n", 1) for name in names]
    print_table(
        ["subset", "n", *heads, "headline\n95 %", "bits"],
        rows,
        title="Blind accuracy, % (* leaks)",
    )


def _cue_table(audit: Audit) -> None:
    rows = []
    for subset, cues in audit.cues.items():
        for cue, example in cues[:MOST_CUES]:
            caption = example.positive if cue.positives >= cue.negatives else example.negative
            start = len(caption) - AROUND if cue.text in TAILS else caption.lower().find(cue.text) - AROUND // 2
            caption = "…" + caption[start:] if start > 0 else caption
            shown = cue.text if cue.kind == "style" else f"“{cue.text}”"
            counts = [cue.positives, cue.negatives, f"{100 * cue.accuracy:.1f}"]
            rows.append([subset, shown, *counts, repr(caption)])
    if rows:
        columns = ["subset", "cue", "in true", "in false", "alone, %", "for example"]
        print_table(columns, rows, brief="for example", title="What tells true from false captions")
        say()


def _likeness_table(audit: Audit) -> None:
    rows = []
    measures = list(dict.fromkeys(m for a in audit.likeness for c in a.couples for m in c.measures))
    for alike in audit.likeness:
        for couple in alike.couples:
            values = [couple.measures.get(m) for m in measures]
            rows.append([alike.subset, couple.kind, *[f"{v.mean:.3f}" if v and v.n else "–" for v in values]])
    if rows:
        print_table(["subset", "pair", *measures], rows, title="How alike captions are (mean)")
        say()


def show_comparison(first: str, second: str, rows: Sequence[PairwiseRow]) -> None:
    """Print a comparison of two benchmarks as in Table 4 of SugarCrepe. For each score, such as fluency, the table has
    the mean over the foils of each benchmark, and says how often the second benchmark's foil scores better.
    """
    columns = ["kind", "score", "n", first, second, f"{second} better, %", "95 %", "ties"]
    print_table(
        columns,
        [
            [r.kind, r.attacker, r.n, f"{r.first:.3f}", f"{r.second:.3f}", f"{100 * r.better:.1f}"]
            + [f"{100 * r.low:.1f}–{100 * r.high:.1f}", r.ties]
            for r in rows
        ],
        title="Negatives of the same source, pairwise",
    )
