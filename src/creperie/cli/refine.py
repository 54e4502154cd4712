"""`creperie refine`: finding the largest part of a benchmark that no blind model can solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.auditing import AttackerModels
from creperie.bench import PartOptions, load_part
from creperie.cli.options import engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar
from creperie.cli.refine_text import show_refined
from creperie.core import UsageError, option
from creperie.refining import RefinePlan, refine_document, write_refined
from creperie.refining import refine as run_refine

if TYPE_CHECKING:
    from creperie.engine import Engine


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
    return CommandResult(shown, lambda: show_refined(refined), code=refined.judgement.code)
