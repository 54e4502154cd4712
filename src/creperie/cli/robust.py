"""`creperie robust`: how far a ranking of models depends on choices."""

from __future__ import annotations

import click

from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, p_value, print_table, say
from creperie.core import percent, points
from creperie.metrics import MetricSettings
from creperie.statistics import RobustOptions


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…|FOLDER")
@options_of("options", RobustOptions)
@options_of("settings", MetricSettings)
@answers
def robust(runs: tuple[str, ...], options: RobustOptions, settings: MetricSettings) -> CommandResult:
    """Rank runs of one benchmark by every tie rule, task and weighting; test which models are equivalent.

    With --wrong, accuracies and rankings also allow for wrong labels. Exit code 1 when a choice changes a rank.
    """
    from creperie.reporting import runs_in
    from creperie.statistics import robustness

    found = robustness(runs_in(runs), options=options, settings=settings)

    def show() -> None:
        rows = [[r.name, *(f"{percent(v)} #{k}" for v, k in zip(r.values, r.ranks, strict=True))] for r in found.ranks]
        print_table("accuracy in % and rank", ["model", *found.choices], rows)
        pairs = [
            [p.a, p.b, points(p.difference, p.low, p.high), p_value(p.p_equivalent), "yes" if p.equivalent else "no"]
            + [f"{p.reversing:,}", "" if p.survives is None else "yes" if p.survives else "no"]
            for p in found.pairs
        ]
        heads = ["A", "B", "A − B, 90 %", "p", "equivalent", "labels that reverse", "survives wrong labels"]
        print_table("", heads, pairs, right=heads[2:])
        noisy = [
            [n.model, f"{percent(n.accuracy)} [{percent(n.low)}, {percent(n.high)}]"]
            + [f"{percent(n.corrected)} [{percent(n.corrected_low)}, {percent(n.corrected_high)}]"]
            for n in found.accuracies
        ]
        if found.ceiling:
            print_table("", ["model", "on these labels, %", "on right labels, %"], noisy)
            say("a perfect model would reach {} % [{}, {}] on these labels".format(*map(percent, found.ceiling)))

    return CommandResult(found.document(), show, ok=not any(any(r.gains) for r in found.ranks))
