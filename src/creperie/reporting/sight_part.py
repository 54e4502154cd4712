"""The section of a page on what the picture adds. Runs are compared with the same models' runs without the real images
(blind twins).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from creperie.core import UsageError, points
from creperie.metrics import compare as compare_outcomes
from creperie.reporting.gather import RunGroup, short_labels
from creperie.reporting.html_tables import HtmlCell, number, part, percent, table, task_table, text
from creperie.statistics import answers_of, picture_gain

if TYPE_CHECKING:
    from markupsafe import Markup


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
        rows.append([text(label, "name"), percent(c.accuracy_b), percent(c.accuracy_a), adds, number(c.n)])
    heads = ["model", "right without, %", "right with, %", "the picture adds, points", "n"]
    gain = picture_gain(answers.right, unseen, answers.chance)
    ids = zip(gain.solved_by, answers.first.subsets, answers.first.table.column("id").to_pylist())
    keys = [(by, f"{subset}/{key}") for by, subset, key in ids]
    solved = [(kind, [key for by, key in keys if by == kind]) for kind in ("text", "picture", "neither")]
    return table(heads, rows, label=f"What the picture adds, {answers.task}, {blind.name}", text=("model",)), solved
