"""`creperie compare`: comparing runs."""

from __future__ import annotations

import math
from pathlib import Path

import click

from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, p_value, print_table, say, show_notes, table_width, text_result
from creperie.cli.score_text import matrix_text, show_matrix
from creperie.cli.table import TableOutput
from creperie.core import percent, points
from creperie.metrics import MetricSettings
from creperie.scoring import CompareOptions, ComparisonRow, Comparisons, load_run, rank_runs
from creperie.scoring import compare as compare_runs

#: with more runs than this, runs are ranked; --details compares them pair by pair
MOST_PAIRED = 6
COLUMNS = ["task", "subset", "n", "accuracy A", "accuracy B", "A − B", "p", "Holm", "only A / only B", "McNemar"]
#: what stays in a narrow terminal, so that a row is one line
NARROW = ["subset", "n", "accuracy A", "accuracy B", "A − B", "Holm", "only A / only B"]
#: characters from which on all columns fit
ALL_FIT = 110
NOTES = (
    "A − B in points, 95 % interval; p: 1 − the level at which it touches 0; Holm over a task's tests;",
    "only A / only B: items that only one of them gets right, with McNemar's p",
)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…|FOLDER")
@options_of("options", CompareOptions)
@options_of("settings", MetricSettings)
@click.option("--details", is_flag=True, help="Compare every pair of runs by subset, even if there are many.")
@options_of("output", TableOutput)
@answers
def compare(
    runs: tuple[str, ...], options: CompareOptions, settings: MetricSettings, details: bool, output: TableOutput
) -> CommandResult:
    """Compare runs: paired tests on the same items; with three or more models, ranks and correlations.

    The interval and the p-value of a difference take into account that items share images; McNemar's test is exact if
    items are independent. Holm's method corrects for all tests of a task. A folder as an argument means all runs in
    this folder. If there are more than six runs, they are ranked, and models that do not differ significantly are
    grouped. With --details, they are compared in pairs instead.
    """
    from creperie.reporting import runs_in

    places = runs_in(runs)
    if len(places) > MOST_PAIRED and not (details or options.common or options.against):
        return _standings(places, options.tasks, settings, output)
    comparisons = compare_runs(places, options=options, settings=settings)
    if output != TableOutput():
        from creperie.reporting import render_rows

        heads = ["benchmark", "A", "B", *COLUMNS]
        rows = [[r.benchmark, r.comparison.a, r.comparison.b, *_cells(r)] for r in comparisons.rows]
        text = render_rows(heads, rows, output.form, left=5, notes=(*NOTES, *comparisons.notes))
        return text_result(comparisons.document(), text, output.out)
    return CommandResult(comparisons.document(), lambda: _show(comparisons))


def _standings(
    places: list[Path], tasks: tuple[str, ...], settings: MetricSettings, output: TableOutput
) -> CommandResult:
    """Rank many runs on every benchmark and return the result. Models that do not differ significantly in a joint test
    of all pairs of models form a group.
    """
    ranked = rank_runs([load_run(path) for path in places], tasks=tasks, settings=settings)

    def show() -> None:
        show_matrix(ranked)
        say("[dim]--details lists every pair of runs, by subset[/dim]")

    document = {"standings": ranked.document(), "runs": [str(path) for path in places]}
    if output == TableOutput():
        return CommandResult(document, show)
    return text_result(document, matrix_text(ranked, output.form), output.out)


def _show(comparisons: Comparisons) -> None:
    show_notes(comparisons.notes)
    pairs = list(dict.fromkeys((r.benchmark, r.comparison.a, r.comparison.b) for r in comparisons.rows))
    for benchmark, a, b in pairs:
        say("[bold]{}[/bold]  A {}  against  B {}", benchmark, a, b)
        _show_rows(comparisons, benchmark, a, b)
        say()
    if comparisons.rows:
        for line in NOTES:
            say(f"[dim]{line}[/dim]")
    if comparisons.ranks:
        say()
        ranked = []
        for one in comparisons.ranks:
            cells = zip(one.values, one.ranks, (f" ({gain:+d})" if gain else "" for gain in one.gains), strict=True)
            ranked.append((one.name, *(f"{percent(value)}  #{rank}{moved}" for value, rank, moved in cells)))
        title = "accuracy in % and rank (places won or lost against the first column)"
        print_table(["model", *comparisons.columns], ranked, title=title)
    if comparisons.correlations:
        say()
        rows = []
        for c in comparisons.correlations:
            r = c.correlation
            interval = "" if math.isnan(r.low) else f"[{r.low:.2f}, {r.high:.2f}]"
            rows.append((c.a, c.b, r.kind, f"{r.n}", f"{r.value:.3f}", interval, p_value(r.p)))
        print_table(["", "against", "kind", "models", "r", "95 %", "p"], rows)


def _show_rows(comparisons: Comparisons, benchmark: str, a: str, b: str) -> None:
    own = [r for r in comparisons.rows if (r.benchmark, r.comparison.a, r.comparison.b) == (benchmark, a, b)]
    if table_width() >= ALL_FIT:
        print_table(COLUMNS, [_cells(row) for row in own])
        return
    short = {"accuracy A": "A, %", "accuracy B": "B, %", "only A / only B": "only A / B"}
    heads = [short.get(name, name) for name in NARROW]
    for task in dict.fromkeys(row.task for row in own):
        say("{}", task)
        rows = [dict(zip(COLUMNS, _cells(row), strict=True)) for row in own if row.task == task]
        print_table(heads, [[row[name] for name in NARROW] for row in rows])
    say("[dim]p and McNemar's p: in a wider terminal, or with --json[/dim]")


def _cells(row: ComparisonRow) -> list[str]:
    c = row.comparison
    difference = points(c.difference, c.low, c.high)
    only = f"{c.mcnemar.only_a:,} / {c.mcnemar.only_b:,}"
    figures = [f"{c.n:,}", percent(c.accuracy_a), percent(c.accuracy_b), difference]
    return [row.task, row.subset, *figures, p_value(c.p), p_value(c.p_holm), only, p_value(c.mcnemar.p)]
