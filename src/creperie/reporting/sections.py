"""Two sections of a page: how far a ranking of models depends on choices of the analysis, and what the picture adds.

For the latter, runs are compared with the same models' runs without the real images (blind twins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from creperie.core import UsageError, percent, points
from creperie.metrics import Ranking, task
from creperie.metrics import compare as compare_outcomes
from creperie.reporting.gather import RunGroup, short_labels, tasks_by_coverage
from creperie.reporting.html_tables import HtmlCell, number, part, table, task_table, text
from creperie.reporting.html_tables import percent as percent_cell
from creperie.scoring import Run
from creperie.statistics import Robustness, answers_of, picture_gain

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


# -- what the picture adds -------------------------------------------------------------------------------------------


def sight_part(group: RunGroup, number: int) -> Markup:
    """Return the section on the value of the pictures: what they add for each model, which items are solved without
    them, and the results of blind twins. `number` is the benchmark's index in the item browser.
    """
    shown = []
    for content in dict.fromkeys(run.content for run in group.twins):
        twins = tuple(run for run in group.twins if run.content == content)
        blind = RunGroup(twins[0].benchmark, twins, short_labels(twins), None)
        tables = [(name, "", task_table(blind, name)) for name in blind.tasks]
        try:
            added, solved = _added(group, blind)
        except UsageError as e:  # such as no task in common
            added, solved = part("soft", str(e)), []
        results = part("folded", "Results without the picture", part("by_task", tables))
        shown.append((twins[0].blinded, added, solved, results))
    return part("sight", shown, number)


def _added(group: RunGroup, blind: RunGroup) -> tuple[Markup, list[tuple[str, list[str]]]]:
    """Return two values: a table of what pictures add for each model, and named lists of items. The lists hold the
    items that are solved by text, by picture or by neither.
    """
    twins = {run.model: run for run in blind.runs}
    seeing = {run.model: (run, label) for run, label in group.labelled if run.model in twins}
    if not seeing:
        what = "no model has both a run with the images and a blind twin"
        raise UsageError(what, hint="score a model again with `--image noise`")
    runs = [run for run, _ in seeing.values()] + [twins[model] for model in seeing]
    answers, unseen = answers_of(runs).split(list(seeing))
    rows = []
    for run, label in seeing.values():
        outcomes = [one.outcomes(answers.task) for one in (run, twins[run.model])]
        c = compare_outcomes(*outcomes, clusters=run.clusters, settings=run.settings)
        adds = HtmlCell(points(c.difference, c.low, c.high), c.difference)
        rows.append([text(label, "name"), percent_cell(c.accuracy_b), percent_cell(c.accuracy_a), adds, number(c.n)])
    heads = ["model", "right without, %", "right with, %", "the picture adds, points", "n"]
    gain = picture_gain(answers.right, unseen, answers.chance)
    ids = zip(gain.solved_by, answers.first.subsets, answers.first.table.column("id").to_pylist())
    keys = [(by, f"{subset}/{key}") for by, subset, key in ids]
    solved = [(kind, [key for by, key in keys if by == kind]) for kind in ("text", "picture", "neither")]
    return table(heads, rows, label=f"What the picture adds, {answers.task}, {blind.name}", text=("model",)), solved
