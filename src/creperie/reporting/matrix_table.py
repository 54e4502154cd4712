"""Models × benchmarks as one table: accuracies with ranks, groups and a sparkline of the subsets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from creperie.reporting.html_tables import HtmlCell, number, part, table, text
from creperie.scoring import Standing, Standings, StandingsColumn

if TYPE_CHECKING:
    from markupsafe import Markup


def standings_table(ranked: Standings, links: Mapping[str, str] | None = None) -> Markup:
    """The table with its filter and notes; `links` are addresses by benchmark hash."""
    columns = ["model", *(column.name for column in ranked.columns)]
    several = len(ranked.columns) > 1
    rows = []
    for model in ranked.models:
        cells = [_cell(column, column.models.get(model)) for column in ranked.columns]
        ends = [number(100 * ranked.mean[model], ".1f"), number(ranked.mean_rank[model], ".1f")] if several else []
        rows.append([text(model, "name"), *cells, *ends])
    columns += ["mean", "mean rank"] if several else []
    reports = {column.name: links[column.hash] for column in ranked.columns if links and column.hash in links}
    shown = table(columns, rows, label="Models and benchmarks", text=("model",), links=reports)
    return part("matrix", shown, ranked.notes)


def _cell(column: StandingsColumn, standing: Standing | None) -> HtmlCell:
    if standing is None or math.isnan(standing.accuracy):
        return HtmlCell("–")
    best = "result best" if standing.rank == 1 else "result"
    return HtmlCell(part("standing", column, standing), standing.accuracy, best)
