"""`creperie refine`: finding the largest part of a benchmark that no blind model can solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from creperie.auditing import AttackerModels
from creperie.bench import PartOptions, load_part
from creperie.cli.audit import show_verdict
from creperie.cli.options import engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError, option, with_interval
from creperie.refining import REASONS, RefinePlan, reasons_of, refine_document, write_refined
from creperie.refining import refine as run_refine

if TYPE_CHECKING:
    from creperie.auditing import Measure
    from creperie.engine import Engine
    from creperie.refining import Refined, SubsetOutcome


BLOCKS = "▁▂▃▄▅▆▇█"
#: beginning of an attacker's name → what to do about a cue that selection cannot remove
HINTS = {
    "length": "write foils of the same length",
    "surface": "try --repair",
    "negation": "write foils without the negation",
    "learned": "rewrite the foils, in the manner of the true captions",
}


@dataclass(frozen=True)
class RefineOutput:
    """Options for what `creperie refine` writes."""

    out: Path | None = option(None, "The folder to write.", metavar="DIR")
    force: bool = option(False, "Replace the folder if it exists.")
    dry_run: bool = option(False, "Choose and measure, but write nothing.")


@click.command()
@click.argument("bench")
@options_of("plan", RefinePlan)
@options_of("part", PartOptions)
@options_of("models", AttackerModels)
@options_of("output", RefineOutput)
@engine_options
@answers
def refine(
    bench: str,
    plan: RefinePlan,
    part: PartOptions,
    models: AttackerModels,
    output: RefineOutput,
    engine: Engine | None,
) -> CommandResult:
    """Remove items from BENCH until blind attackers have no advantage, and keep as many items as possible.

    At the end the remaining items are audited, also by attackers that the selection did not use. The last lines and the
    exit code are those of this audit: 0 clean; 1 leaks, or no items are left; 3 no verdict (too few items, some
    attackers could not be run, or --no-audit). Every removed item is in removed.parquet, with the reason.
    """
    out = output.out
    if out is None and not output.dry_run:
        raise UsageError("no output folder given", hint="pass --out DIR, or --dry-run to write nothing")
    if out is not None and not output.force and out.is_dir() and any(out.iterdir()):
        raise UsageError("this folder is not empty", where=out, hint="choose another, or pass --force")
    refined = run_refine(load_part(bench, part, models.seed), plan=plan, models=models, engine=engine, progress=bar)
    refined = replace(refined, spec=bench, part=part.typed)
    if out is not None and not output.dry_run and len(refined.bench):
        refined = replace(refined, folder=str(out))
        write_refined(refined, out, force=output.force)
    shown = refine_document(refined) | {"folder": refined.folder or None}
    return CommandResult(shown, lambda: _show(refined), code=refined.judgement.code)


# -- showing ---------------------------------------------------------------------------------------------------------


def _show(refined: Refined) -> None:
    """Print what remains, the accuracies of attackers before and after, and the verdict of the final audit."""
    total = len(refined.original)
    share = f"{100 * len(refined.bench) / total:.1f} %" if total else "–"
    seen = ", ".join(s.name for s in refined.standings if not s.held_out)
    say(f"[bold]{escape(refined.original.name)}[/bold] by {refined.plan.method} against {escape(seen)}")
    say(f"[bold]{len(refined.bench):,} of {total:,} items stay[/bold] ({share})")
    say()
    _attackers(refined)
    say()
    _subsets(refined)
    _reasons(refined)
    say()
    for line in advice(refined):
        say(line)
    show_verdict(refined.judgement, refined.next)


def _attackers(refined: Refined) -> None:
    rows = []
    repaired = refined.plan.repair
    for standing in refined.standings:
        if standing.silent:
            continue
        middle = [percent(standing.repaired.get("all"))] if repaired else []
        subsets = [name for name in standing.leaks if name != "all"]
        where = f" on {', '.join(subsets)}" if len(standing.after) > 2 and subsets else ""
        notes = ["held out" if standing.held_out else "", f"leaks{where}" if standing.leaks else ""]
        before, after = (percent(figures.get("all")) for figures in (standing.before, standing.after))
        rows.append([standing.name, before, *middle, after, ", ".join(filter(None, notes))])
    columns = ["attacker", "before", *(["repaired"] if repaired else []), "after", ""]
    if rows:
        print_table(columns, rows, title="Blind accuracy, % with 95 % interval (chance is 50)")
    quiet = [s.name for s in refined.standings if s.silent]
    if quiet:
        say(f"[dim]no opinion on any item: {escape(', '.join(quiet))}[/dim]")


def percent(figure: Measure | None) -> str:
    """Return an accuracy with its interval, in percent, as text."""
    return with_interval(figure.accuracy, figure.low, figure.high) if figure else "–"


def _subsets(refined: Refined) -> None:
    rows = []
    for outcome in refined.outcomes:
        chosen = outcome.choice.selection
        most = "" if chosen is None else f"{max(0, round(chosen.bound)):,}" + ("" if chosen.proven else " (not proven)")
        sizes = [kept for _, kept in outcome.choice.curve]
        share = f"{100 * outcome.kept / outcome.items:.1f}" if outcome.items else "–"
        path = " → ".join(f"{size:,}" for size in sizes)
        rows.append([outcome.name, outcome.items, outcome.kept, share, most, f"{sparkline(sizes)}  {path}"])
    columns = ["subset", "items", "kept", "%", "at most", "as conditions are added"]
    print_table(columns, rows)


def sparkline(values: list[int]) -> str:
    """Return the values as a line of bars, with the tallest bar for the largest value.

    >>> sparkline([1413, 900, 547])
    '█▆▄'
    """
    top = max(values, default=0)
    return "".join(BLOCKS[max(0, -(-v * len(BLOCKS) // top) - 1)] for v in values) if top else ""


def _reasons(refined: Refined) -> None:
    for code, items in reasons_of(refined.removed).items():
        say(f"[dim]{items:,} left: {REASONS[code]}[/dim]")
    for outcome in refined.outcomes:
        for f in outcome.choice.filtered:
            say(
                f"{escape(outcome.name)}: threshold {f.threshold:.4f}, mean of what stays {f.mean:+.4f}, "
                f"accuracy {100 * f.accuracy:.1f} % [{100 * f.low:.1f}, {100 * f.high:.1f}], "
                f"p = {f.p_value:.3g} ({f.test}, a preference below {f.limit:g})"
            )


def advice(refined: Refined) -> list[str]:
    """Return lines of text on the selection: the cues that cannot be removed, whether the selection is provably
    optimal, and where it was written.
    """
    lines = [_structural(o) for o in refined.outcomes if o.choice.structural]
    if not len(refined.bench):
        return [*lines, "[red]nothing was written[/red]"]
    unproven = [o for o in refined.outcomes if o.choice.selection and not o.choice.selection.proven]
    if unproven:
        names = ", ".join(o.name for o in unproven)
        missed = sum(o.choice.selection.off for o in unproven if o.choice.selection)
        bins = f"; bins miss {missed} items in all, the signs balance" if missed else ""
        lines.append(f"[dim]the time limit decided for {escape(names)}: --time-limit gives more{bins}[/dim]")
    lines.append(f"written to {escape(refined.folder)}" if refined.folder else "[dim]nothing was written[/dim]")
    return lines


def _structural(outcome: SubsetOutcome) -> str:
    sentences = []
    for s in outcome.choice.structural:
        hint = next((hint for start, hint in HINTS.items() if s.attacker.startswith(start)), "rewrite the foils")
        sentences.append(f"balancing {s.attacker} can leave {100 * s.share:.1f} % at most: {hint}")
    return f"[red]structural[/red], {escape(outcome.name)}: {escape('; '.join(sentences))}"
