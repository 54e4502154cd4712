"""`creperie power`: how many items, images and raters a claim needs."""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.options import FILE, options_of
from creperie.cli.output import CommandResult, answers, say
from creperie.core import percent
from creperie.statistics import PowerOptions
from creperie.statistics import power as simulated


@click.command()
@click.argument("claim", type=click.Choice(["compare", "interval", "clean", "leak", "kappa"]))
@click.argument("runs", nargs=-1, metavar="[RUN RUN]")
@options_of("options", PowerOptions)
@click.option("--plot", type=FILE, metavar="FILE", help="Draw power by items: .svg, .pdf, .png.")
@answers
def power(claim: str, runs: tuple[str, ...], options: PowerOptions, plot: Path | None) -> CommandResult:
    """Plan a study by simulating it many times. Each simulated study is analysed as the real one will be.

    The study should show one of these:

    \b
    compare    one model is better than another; two runs show how models differ on your images
    interval   an accuracy is known to ± --width
    clean      an audit calls the benchmark clean
    leak       an audit finds a cue that one attacker uses
    kappa      raters agree better than --least

    The exit code is 1 if the planned number of items does not reach the target power.
    """
    from creperie.reporting import power_curve, save_figure
    from creperie.scoring import load_run

    plan = simulated(claim, [load_run(run) for run in runs], options=options)
    if plot:
        save_figure(power_curve(plan), plot)

    def show() -> None:
        reached = f"{percent(plan.power)} % (± {100 * 1.96 * plan.error:.0f})"
        models = "models that err as these runs do" if runs else "two models"
        claimed = {
            "compare": f"a difference of {100 * plan.difference:.3g} points between {models}",
            "interval": f"an accuracy to ± {100 * options.width:g} points",
            "clean": f"no attacker above {percent(options.threshold)} %",
            "leak": f"a cue above {percent(options.threshold)} % that {options.through} sees",
            "kappa": f"an agreement above {options.least:g}",
        }[claim]
        say(f"{claimed}: {plan.items:,} items show it in {reached} of studies; target {percent(plan.target)} %")
        say(f"about {plan.needed:,} items reach it" if plan.needed else "more than 100,000 items would be needed")
        if plot:
            say("wrote {}", plot)

    return CommandResult(plan.document(), show, ok=plan.power >= plan.target)
