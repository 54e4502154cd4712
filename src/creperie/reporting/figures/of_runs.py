"""Figures drawn from runs, from the output of `creperie sensitivity --to … --json`, and from published tables: ImageNet
accuracy against SugarCrepe, as in its Figure 5.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from creperie.core import DataError, Document, UsageError, packaged, read_json, unknown
from creperie.metrics import Correlation, Outrank, accuracy, aligned, margins, pearson, rank_table, task
from creperie.reporting.figures.bars import Levels, Series, accuracy_by_subset, drops, grouped_bars
from creperie.reporting.figures.catalog import FigureOptions
from creperie.reporting.figures.gaps import Box, boxes_by_model, margin_histograms
from creperie.reporting.figures.ranks import Confusion, confusion, confusion_squares, rank_changes, scatter
from creperie.reporting.gather import (
    RunGroup,
    covered,
    gather_runs,
    model_tail,
    runs_in,
    short_labels,
    value_and_interval,
)
from creperie.reporting.tables.filled import fill_table
from creperie.reporting.tables.published import published_table, same_model
from creperie.scoring import Run, human_level, load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def series_of(group: RunGroup, name: str) -> tuple[list[Series], Levels]:
    """Return (series, levels) for the task `name`. The series are the accuracies of every model by subset; the levels
    are the accuracies of chance and of people by subset.
    """
    series: list[Series] = []
    chance: dict[str, float] = {}
    for run, label in group.labelled:
        if task(name).needs not in run.inputs:
            continue
        stored = [r for r in run.results if r["task"] == name]
        results = stored or [r.as_dict() for r in run.evaluate([name])]
        shown = [r for r in results if r["n"] and r["subset"] != "macro"]
        counts = {r["subset"]: covered(r["n"], r["void"]) for r in shown}
        series.append(Series(label, {r["subset"]: value_and_interval(r) for r in shown if r["n"] > 1}, counts))
        chance |= {r["subset"]: math.nan if r["chance"] is None else r["chance"] for r in shown}
    human = {s: human_level(group.name, name, s) for s in chance}
    return series, Levels(chance, {s: v for s, v in human.items() if not math.isnan(v)})


def draw_accuracy(sources: Sequence[str], options: FigureOptions) -> Figure:
    group, name = _one_group(sources, options)
    series, levels = _shares(group, name)
    if name == "blind" and not options.tasks and "itt" in group.tasks:  # add the models that see the image
        series, name = [*series, *_shares(group, "itt")[0]], "blind, and itt with images"
    return accuracy_by_subset(series, levels, title=f"{group.short}: {name}")


def _shares(group: RunGroup, name: str) -> tuple[list[Series], Levels]:
    if task(name).is_rank:
        raise UsageError(f"task {name!r} gives ranks, but this figure shows shares", hint="choose another `task=`")
    return series_of(group, name)


def draw_margins(sources: Sequence[str], options: FigureOptions) -> Figure:
    group, name = _one_group(sources, options)
    return margins_figure(group, name)


def margins_figure(group: RunGroup, name: str) -> Figure:
    """Return histograms of every model's margins on the task `name`."""
    chosen = task(name)
    if not isinstance(chosen.rule, Outrank):
        raise UsageError(f"task {name!r} has no margins", hint="choose itt, tot or blind")
    having = [(r, label) for r, label in group.labelled if chosen.needs in r.inputs]
    by_model = {label: margins(chosen, run.layout, run.scores(chosen.needs)) for run, label in having}
    return margin_histograms(by_model, title=f"{group.short}: {name}")


def draw_confusion(sources: Sequence[str], options: FigureOptions) -> Figure:
    (group,) = gather_runs(runs_in(sources), benches=options.benches)[:1]
    if len(group.runs) != 1:
        raise UsageError(f"expected one run, got {len(group.runs)}", hint="name one run folder")
    names = [group.runs[0].scored_task(t).name for t in options.tasks or ("itt", "tot")]
    if len(names) != 2:
        raise UsageError("expected two tasks to compare", hint="pass `task=` itt,tot")
    return confusion_figure(group, 0, (names[0], names[1]), examples=True)[0]


def confusion_figure(
    group: RunGroup, number: int, names: tuple[str, str], *, examples: bool
) -> tuple[Figure, Confusion]:
    """Count the items of one run by their outcomes on two tasks, and return (figure, counts). `number` is the run's
    index in the group, and `names` are the tasks. With `examples`, the figure also shows captions of example items.
    """
    run, label = group.runs[number], group.labels[number]
    crossed = confusion(run.outcomes(names[0]), run.outcomes(names[1]), names)
    captions = {}
    if examples and group.bench is not None:
        items = {cell: group.bench[row] for cell, row in crossed.first_items.items()}
        captions = {
            cell: [f"{'✓' if any(r[j] for r in i.match) else '✗'} {c}" for j, c in enumerate(i.captions)]
            for cell, i in items.items()
        }
    return confusion_squares(crossed, captions, title=f"{group.short}: {label}"), crossed


def columns_of(runs: Sequence[Run], labels: Sequence[str], tasks: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the accuracies over all items as {benchmark and task: {model: accuracy}}. `labels` are the names of the
    models, one per run.
    """
    task_names = [task(t).name for t in tasks]
    several = len({r.benchmark for r in runs}) > 1
    table: dict[str, dict[str, float]] = {}
    for run, label in zip(runs, labels, strict=True):
        for name in task_names or [t for t in run.tasks if task(t).by_item]:
            if task(name).needs in run.inputs:
                column = f"{run.benchmark} {name}" if several else name
                table.setdefault(column, {})[label] = accuracy(run.outcomes(name), run.settings.ties)
    return table


def draw_ranks(sources: Sequence[str], options: FigureOptions) -> Figure:
    runs = [load_run(p) for p in runs_in(sources)]
    table = columns_of(runs, model_labels(runs), options.tasks)
    ranking = rank_table(table)
    if len(table) < 2 or len(ranking) < 2:
        raise UsageError(
            f"expected at least 2 models and 2 measures, got {len(ranking)} and {len(table)}",
            hint="give runs of two or more models, and two tasks (`task=` sc,sc++) or benchmarks",
        )
    return rank_changes(list(table), ranking, title="rank by accuracy, %")


def draw_scatter(sources: Sequence[str], options: FigureOptions) -> Figure:
    if options.against is None or not options.column:
        raise UsageError("no values to correlate with", hint="pass `against='FILE.csv'` and `column='imagenet'`")
    runs = [load_run(p) for p in runs_in(sources)]
    external = options.values()
    table = columns_of(runs, [r.model for r in runs], options.tasks)
    column, ours = next(iter(table.items()))
    shared, x, y = aligned(external, ours)
    if len(shared) < 2:
        what = f"has values for {len(shared)} of the runs' models, expected at least 2"
        raise UsageError(what, where=options.against, hint="name the models in the file by their URIs")
    names = dict(zip([r.model for r in runs], model_labels(runs), strict=True))
    correlation = pearson(x, np.array(y))
    points = {names[m]: 100 * ours[m] for m in shared}
    other = {names[m]: external[m] for m in shared}
    return scatter(other, points, correlation, labels=(options.column, f"{runs[0].benchmark} {column}, %"))


def model_labels(runs: Sequence[Run]) -> list[str]:
    """Return a short name for each run. Runs of one model on several benchmarks get the same name."""
    one_each = {r.model: r for r in runs}
    return [dict(zip(one_each, short_labels(list(one_each.values())), strict=True))[r.model] for r in runs]


def _one_group(sources: Sequence[str], options: FigureOptions) -> tuple[RunGroup, str]:
    """Return (runs, task to draw). The task is the one chosen in the options, or else the task that most runs have.
    Raise a UsageError if the runs are on different benchmarks.
    """
    groups = gather_runs([load_run(Path(p)) for p in runs_in(sources)], benches=options.benches)
    if len(groups) > 1:
        names = ", ".join(g.name for g in groups)
        raise UsageError(f"the runs are on different items ({names})", hint="draw one benchmark at a time")
    (group,) = groups
    if options.tasks:
        return group, task(options.tasks[0]).name
    return group, max(group.tasks, key=lambda t: sum(t in r.tasks for r in group.runs))


def draw_shuffles(sources: Sequence[str], options: FigureOptions) -> Figure:
    probe = _probe(sources, "order", "spreads")
    panels: dict[str, dict[str, Box]] = {}
    for spread in probe["spreads"]:
        box = Box(tuple(spread["quartiles"]), spread["mean"])
        name = f"{spread.get('metric', '')}\n{model_tail(spread['model'])}".strip()  # older files do not name the score
        panels.setdefault(name, {})[spread["kind"]] = box
    title = f"{probe['benchmark']}: scores of captions and their shuffles, {_numbers(probe['spreads'])}"
    return boxes_by_model(panels, title=title)


def draw_cases(sources: Sequence[str], options: FigureOptions) -> Figure:
    probe = _probe(sources, "cases", "rows")
    by: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in probe["rows"]:
        by.setdefault(model_tail(row["model"]), {})[row["subset"]] = value_and_interval(row)
    chance = {row["subset"]: float(row["chance"]) for row in probe["rows"] if row["chance"] is not None}
    series = [Series(model, values) for model, values in by.items()]
    return grouped_bars(series, chance=chance, title=f"{probe['benchmark']}: three cases, {_numbers(probe['rows'])}")


def draw_noise(sources: Sequence[str], options: FigureOptions) -> Figure:
    probe = _probe(sources, "images", "rows")
    several = len({row["model"] for row in probe["rows"]}) > 1
    rows = [
        (f"{model_tail(r['model'])} " * several + f"{r['subset']}, n = {r['n']}", r["accuracy"], r["noise"]["accuracy"])
        for r in probe["rows"]
        if r["subset"] != "macro" and r["accuracy"] is not None and r["noise"]["accuracy"] is not None
    ]
    chance = {row["chance"] for row in probe["rows"]}
    level = float(chance.pop()) if len(chance) == 1 and None not in chance else math.nan
    return drops(rows, chance=level, title=f"{probe['benchmark']}: noise in place of the images")


def _numbers(rows: Sequence[Document]) -> str:
    sizes = sorted({int(row["n"]) for row in rows})
    return f"n = {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else "")


def _probe(sources: Sequence[str], probe: str, part: str) -> Document:
    if len(sources) != 1:
        raise UsageError(
            f"expected one file, got {len(sources)}", hint="give one file that `creperie sensitivity --json` wrote"
        )
    path, command = Path(sources[0]), f"`creperie sensitivity … --to {probe} --json`"
    if not path.is_file():
        raise UsageError("no such file", where=str(path), hint=f"write it with {command}")
    document = read_json(path)
    if not isinstance(document, dict) or document.get("probe") != probe or not document.get(part):
        what = f"does not hold the results of the probe {probe!r}"
        raise DataError(what, where=str(path), hint=f"write the file with {command}")
    return document


# -- ImageNet --------------------------------------------------------------------------------------------------------

TABLE = "sugarcrepe/6"


@cache
def imagenet_accuracy() -> Mapping[str, tuple[str, float]]:
    """Return published zero-shot top-1 accuracies on ImageNet, as a mapping from a model's name in the papers to (URI,
    percent).

    >>> imagenet_accuracy()["RN50"]
    ('open_clip:RN50-quickgelu/openai', 59.82)
    """
    text = packaged("creperie.reporting", "published", "imagenet.csv")
    return {row["model"]: (row["uri"], float(row["imagenet"])) for row in csv.DictReader(text.splitlines())}


def imagenet_correlation(column: str) -> Correlation:
    """Return Pearson's r between ImageNet accuracy and a column of SugarCrepe's Table 6, over the 17 CLIP models.

    >>> round(imagenet_correlation("swap_obj").value, 2)  # the paper prints 0.78
    0.78
    """
    printed = _printed(column)
    return pearson(np.array([imagenet_accuracy()[m][1] for m in printed]), np.array(list(printed.values())))


def _printed(column: str) -> dict[str, float]:
    table = published_table(TABLE)
    names = [c.name for c in table.columns if c.measured]
    if column not in names:
        raise unknown("column", column, names, where=TABLE)
    return {row.model: float(row.cells[column]) for row in table.rows if row.model in imagenet_accuracy()}


def draw_imagenet(sources: Sequence[str], options: FigureOptions) -> Figure:
    """Return a scatter plot of ImageNet accuracy against accuracy on SugarCrepe. It shows the models of SugarCrepe's
    Table 6, and models of the runs with a published ImageNet accuracy.
    """
    column = options.column or "average"
    points = dict(_printed(column))
    other = {model: imagenet_accuracy()[model][1] for model in points}
    for run in map(load_run, runs_in(sources) if sources else ()):
        known = next((value for uri, value in imagenet_accuracy().values() if same_model(run.model, uri)), None)
        if known is not None:
            cells = fill_table(published_table(TABLE), [run], any_benchmark=True).ours[0].figures
            if column in cells:
                points[f"{run.model} (run)"], other[f"{run.model} (run)"] = cells[column].value, known
    labels = ("ImageNet top-1, %: open_clip's results", f"SugarCrepe {column}, %: its Table 6")
    return scatter(other, points, imagenet_correlation(column), labels=labels, title="computed here:")
