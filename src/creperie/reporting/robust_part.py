"""The section of a page on how far a ranking of models depends on choices of the analysis, such as the rule for
ties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from creperie.core import percent, points
from creperie.metrics import Ranking, task
from creperie.reporting.gather import tasks_by_coverage
from creperie.reporting.html_tables import HtmlCell, number, part, table, text
from creperie.scoring import Run
from creperie.statistics import Robustness

if TYPE_CHECKING:
    from markupsafe import Markup


def ranked_and_blind(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return two lists: the runs to rank, and the paths of runs by blind models. All ranked runs have the task that
    covers most items. The blind runs show which items can be solved without the images. If fewer than two models see
    the images, all runs are ranked and the second list is empty.
    """
    blind, seeing = ([run for run in runs if run.model.startswith("blind:") is kind] for kind in (True, False))
    ranked, attackers = (seeing, blind) if len(seeing) > 1 else (runs, [])
    most = next((name for name in tasks_by_coverage(ranked) if task(name).by_item), "")
    return [run for run in ranked if most in run.tasks], [str(run.path) for run in attackers if run.path]


def robust_part(robustness: Robustness, names: Mapping[str, str]) -> Markup:
    """Return HTML with the models' ranks under each choice of the analysis, and the tests of pairs of models. `names`
    maps models to labels.
    """
    rows = [
        [text(names.get(row.name, row.name), "name"), *(_ranked(row, k) for k in range(len(robustness.choices)))]
        for row in robustness.ranks
    ]
    ranks = table(["model", *robustness.choices], rows, label="Places under every choice", text=("model",))
    pairs = [
        [
            text(names.get(pair.a, pair.a), "name"),
            text(names.get(pair.b, pair.b), "name"),
            HtmlCell(points(pair.difference, pair.low, pair.high).replace("-", "−"), pair.difference),
            text("yes" if pair.equivalent else "known to differ" if pair.different else "not known"),
            number(pair.reversing),
            *([] if pair.survives is None else [text("yes" if pair.survives else "no")]),
        ]
        for pair in robustness.pairs
    ]
    heads = ["A", "B", "A − B, points, 90 %", "equivalent", "wrong labels that reverse them"]
    heads += ["survives wrong labels"] if robustness.ceiling else []
    moved = [choice for k, choice in enumerate(robustness.choices) if any(row.gains[k] for row in robustness.ranks)]
    below = table(heads, pairs, label="Pairs of models", text=("A", "B", "equivalent"))
    notes = [(names.get(who, who), what) for who, _, what in (note.partition(": ") for note in robustness.notes)]
    return part("robust", ranks, below, moved, robustness.accuracies, names, robustness.margin, notes)


def _ranked(row: Ranking, k: int) -> HtmlCell:
    moved = f" ({row.gains[k]:+d})".replace("-", "−") if row.gains[k] else ""
    shown = part("bold", percent(row.values[k]), f"place {row.ranks[k]}{moved}")
    return HtmlCell(shown, row.values[k], "sure" if moved else "")
