"""`creperie robust`: how much a ranking of models depends on choices in the analysis (tie rule, task, weights of
subsets, items).
"""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.options import FILE, options_of
from creperie.cli.output import CommandResult, answers, p_value, print_table, say, show_notes
from creperie.core import counted, listing, percent, points, with_interval
from creperie.metrics import MetricSettings
from creperie.statistics import RobustOptions, robustness


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…|FOLDER")
@options_of("options", RobustOptions)
@options_of("settings", MetricSettings)
@click.option("--plot", type=FILE, metavar="FILE", help="Draw the ranks: .svg, .pdf, .png.")
@answers
def robust(runs: tuple[str, ...], options: RobustOptions, settings: MetricSettings, plot: Path | None) -> CommandResult:
    """Rank runs of one benchmark by every tie rule, task and weighting, and test which models are equivalent.

    With --wrong, accuracies and rankings also take wrong labels into account. The exit code is 1 if a model's rank
    depends on the tie rule, task or weighting.
    """
    from creperie.reporting import ranks_by_choice, runs_in, save_figure

    rankings = robustness(runs_in(runs), options=options, settings=settings)
    if plot:
        save_figure(ranks_by_choice(rankings), plot)

    def show() -> None:
        show_notes(rankings.notes)
        rows = [
            [r.name, *(f"{percent(v)} #{k}" for v, k in zip(r.values, r.ranks, strict=True))] for r in rankings.ranks
        ]
        print_table(["model", *rankings.choices], rows, title="accuracy in % and rank")
        pairs = [
            [
                p.a,
                p.b,
                points(p.difference, p.low, p.high),
                p_value(p.p_equivalent),
                "yes" if p.equivalent else "known to differ" if p.different else "not known",
                "none" if p.reversing is None else p.reversing,
                *([] if p.survives is None else ["yes" if p.survives else "no"]),
            ]
            for p in rankings.pairs
        ]
        heads = ["A", "B", "A − B, 90 %", "p", "equivalent", "labels that reverse"]
        heads += ["survives wrong labels"] if options.wrong else []
        print_table(heads, pairs)
        margin = f"{100 * options.margin:g} points"
        say(f"p: of the test whether A and B differ by {margin} or more; equivalent: they surely differ by less")
        alike = [f"{p.a} and {p.b}" for p in rankings.pairs if p.equivalent]
        listed = f": {listing(alike)}" if alike else ""
        say("{}", f"{len(alike):,} of {counted(len(pairs), 'pair')} equivalent{listed}")
        for r in rankings.ranks:
            choices = zip(rankings.choices, r.ranks, r.gains, strict=True)
            moved = [f"#{rank} {'' if c.startswith('without') else 'by '}{c}" for c, rank, gain in choices if gain]
            if moved:
                say("{} is #{} by {}, but {}", r.name, r.ranks[0], rankings.choices[0], ", ".join(moved))
        if rankings.ceiling:
            noisy = []
            for n in rankings.accuracies:
                right = with_interval(n.corrected, n.corrected_low, n.corrected_high)
                noisy.append((n.model, with_interval(n.accuracy, n.low, n.high), right))
            print_table(["model", "on these labels, %", "on right labels, %"], noisy)
            say("a perfect model would reach {} % [{}, {}] on these labels".format(*map(percent, rankings.ceiling)))
        if plot:
            say("wrote {}", plot)

    return CommandResult(rankings.document(), show, ok=not any(any(r.gains) for r in rankings.ranks))
