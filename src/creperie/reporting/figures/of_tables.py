"""Figures drawn from published tables: ImageNet accuracy against SugarCrepe, as in its Figure 5."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from creperie.core import packaged, unknown
from creperie.metrics import Correlation, pearson
from creperie.reporting.figures.catalog import FigureOptions
from creperie.reporting.figures.ranks import scatter
from creperie.reporting.gather import runs_in
from creperie.reporting.tables.filled import fill_table
from creperie.reporting.tables.published import published_table, same_model
from creperie.scoring import load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
