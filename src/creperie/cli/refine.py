"""`creperie refine`: keep the largest set that no blind model can solve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.audit import arms_options
from creperie.cli.options import as_one, load_part, names
from creperie.cli.output import CommandResult, answers, bar
from creperie.cli.refine_text import show_refined, show_rotation
from creperie.core import UsageError

if TYPE_CHECKING:
    from creperie.auditing import AttackerModels
    from creperie.refining import RefinePlan


class _MethodOption(click.Option):
    """`--method`, whose help lists the registry of methods; it is imported when somebody asks."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from creperie.refining import METHODS

        self.help = "How to choose. " + " ".join(f"{m.name}: {m.does}." for m in METHODS.values())
        return super().get_help_record(ctx)


@click.command()
@click.argument("bench")
@click.option("--method", cls=_MethodOption, default="grid", show_default=True)
@click.option("--attackers", default="", callback=names, help="Select against these (by default the method's own).")
@click.option(
    "--held-out", default="", callback=names, help="The final audit sends these, not the whole standard battery."
)
@click.option("--subset", "subsets", multiple=True, callback=names, help="Only these subsets, by comma or repeated.")
@click.option("--repair", is_flag=True, help="First give the captions of every item one surface style.")
@click.option("--bins", type=int, help="Bins per sign of a gap (grid 50, others 10); 1 balances signs alone.")
@click.option("--joint", is_flag=True, help="Also balance sums and differences of every two attackers.")
@click.option("--balance", default="", metavar="TAG", help="Rare values of this tag (or `subset`) are worth more.")
@click.option("--together", is_flag=True, help="Choose from all subsets at once, not from each on its own.")
@click.option("--threshold", type=float, help="Of syntaxbias, -1 to 1; searched where not given.")
@click.option(
    "--time-limit", type=float, default=60.0, show_default=True, help="Seconds per subset to prove the optimum."
)
@click.option("--audit/--no-audit", default=True, show_default=True, help="End with an audit of what stays.")
@arms_options
@click.option("--images", metavar="DIR", help="Where the images are: a folder, zip, tar or Parquet file.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write.")
@click.option("--force", is_flag=True, help="Replace the folder if it is there.")
@click.option("--dry-run", is_flag=True, help="Choose and measure, but write nothing.")
@click.option("--rotate", is_flag=True, help="Hold out one family of attackers after the other; writes nothing.")
@as_one("plan", "creperie.refining:RefinePlan")
@answers
def refine(
    bench: str,
    subsets: tuple[str, ...],
    images: str | None,
    out: Path | None,
    force: bool,
    dry_run: bool,
    rotate: bool,
    plan: RefinePlan,
    models: AttackerModels,
) -> CommandResult:
    """Leave items out of BENCH until blind attackers have no edge; keep as many as possible.

    It ends with an audit of what stays, by attackers that the selection never saw, too: the last lines and the exit
    code are that audit's (0 clean, 1 leaks or nothing left, 3 not shown, incomplete or --no-audit). Every removed item
    is in removed.parquet, with its reason.
    """
    from dataclasses import replace

    from creperie.refining import refine as run_refine
    from creperie.refining import refine_document, write_refined
    from creperie.refining import rotate as run_rotate

    if rotate:
        found = run_rotate(
            load_part(bench, images, subsets),
            models,
            attackers=plan.attackers,
            held_out=plan.held_out,
            repair=plan.repair,
            progress=bar,
        )
        return CommandResult(found.document(), lambda: show_rotation(found), ok=found.withstands)
    if out is None and not dry_run:
        raise UsageError("no output folder given", hint="pass --out DIR, or --dry-run to look first")
    if out is not None and not force and out.is_dir() and any(out.iterdir()):
        raise UsageError("this folder is not empty", where=str(out), hint="choose another, or pass --force")
    refined = run_refine(load_part(bench, images, subsets), plan, models, progress=bar)
    if out is not None and not dry_run and len(refined.bench):
        refined = replace(refined, folder=str(out))
        write_refined(refined, out, force=force)
    shown = refine_document(refined) | {"folder": refined.folder or None}
    return CommandResult(shown, lambda: show_refined(refined), code=refined.judgement.code)
