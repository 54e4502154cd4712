"""Figures drawn from what `creperie sensitivity --to … --json` wrote: shuffles, three cases, noise for images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import DataError, UsageError, read_json
from creperie.reporting.figures.accuracy import Series
from creperie.reporting.figures.bars import drops, grouped_bars
from creperie.reporting.figures.catalog import FigureOptions
from creperie.reporting.figures.gaps import Box, boxes_by_model
from creperie.reporting.gather import model_tail

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_shuffles(sources: Sequence[str], options: FigureOptions) -> Figure:
    found = _probe(sources, "order", "spreads")
    panels: dict[str, dict[str, Box]] = {}
    for spread in found["spreads"]:
        box = Box(tuple(spread["quartiles"]), spread["mean"])
        name = f"{spread.get('metric', '')}\n{model_tail(spread['model'])}".strip()  # older files do not name the score
        panels.setdefault(name, {})[spread["kind"]] = box
    return boxes_by_model(panels, title=f"{found['benchmark']}: scores of captions and their shuffles")


def draw_cases(sources: Sequence[str], options: FigureOptions) -> Figure:
    found = _probe(sources, "cases", "rows")
    by: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in found["rows"]:
        values = tuple(math.nan if row[k] is None else float(row[k]) for k in ("accuracy", "low", "high"))
        by.setdefault(model_tail(row["model"]), {})[row["subset"]] = (values[0], values[1], values[2])
    chance = {row["subset"]: float(row["chance"]) for row in found["rows"] if row["chance"] is not None}
    series = [Series(model, values) for model, values in by.items()]
    return grouped_bars(series, chance=chance, title=f"{found['benchmark']}: three cases")


def draw_noise(sources: Sequence[str], options: FigureOptions) -> Figure:
    found = _probe(sources, "images", "rows")
    several = len({row["model"] for row in found["rows"]}) > 1
    rows = [
        (f"{model_tail(r['model'])} {r['subset']}" if several else r["subset"], r["accuracy"], r["noise"]["accuracy"])
        for r in found["rows"]
        if r["subset"] != "macro" and r["accuracy"] is not None and r["noise"]["accuracy"] is not None
    ]
    chance = {row["chance"] for row in found["rows"]}
    level = float(chance.pop()) if len(chance) == 1 and None not in chance else math.nan
    return drops(rows, chance=level, title=f"{found['benchmark']}: noise in place of the images")


def _probe(sources: Sequence[str], probe: str, part: str) -> Mapping[str, Any]:
    if len(sources) != 1:
        raise UsageError(f"{len(sources)} files, this figure takes one")
    path = Path(sources[0])
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path), hint=f"`creperie sensitivity … --to {probe} --json`")
    found = read_json(path)
    if not isinstance(found, dict) or found.get("probe") != probe or not found.get(part):
        raise DataError(
            f"is not a probe {probe!r}", where=str(path), hint=f"`creperie sensitivity … --to {probe} --json`"
        )
    return found
