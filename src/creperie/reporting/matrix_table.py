"""Models × benchmarks as one table: accuracies with ranks, groups and a sparkline of the subsets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from creperie.core import percent
from creperie.reporting.html_tables import HtmlCell, number, table
from creperie.scoring import Standing, Standings, StandingsColumn

_NOTE = (
    "Accuracy in %, with its interval; # is the rank: one more than the number of models that are significantly better "
    "(sign-flip test over images, Holm's correction over all pairs of a column, 5 %). Models that share a letter do "
    "not differ significantly. The small bars are the subsets, from 0 to 100 %; the line is chance."
)


def standings_table(ranked: Standings, links: Mapping[str, str] | None = None) -> str:
    """The table with its filter and notes; `links` are addresses by benchmark hash."""
    columns = ["model", *(column.name for column in ranked.columns)]
    several = len(ranked.columns) > 1
    rows = []
    for model in ranked.models:
        cells = [_cell(column, column.models.get(model)) for column in ranked.columns]
        ends = [number(_percent(ranked.mean[model]), ".1f"), number(ranked.mean_rank[model], ".1f")] if several else []
        rows.append([HtmlCell(escape(model), model, "name"), *cells, *ends])
    shown = table([*columns, *(["mean", "mean rank"] if several else [])], rows, label="Models and benchmarks",
                  text=("model",))  # fmt: skip
    for column in ranked.columns:
        if links and column.hash in links:
            old = f'<button type="button">{escape(column.name)}</button>'
            link = f'<a class="more" href="{escape(links[column.hash])}" title="report">→</a>'
            shown = shown.replace(old, old + link, 1)
    notes = "".join(f"<li>{escape(note)}</li>" for note in ranked.notes)
    told = f'<ul class="facts soft">{notes}</ul>' if notes else ""
    return (
        '<div class="matrix"><label class="filter">Filter models '
        '<input type="search" data-filter placeholder="clip, blind …"></label>'
        f'{shown}<p class="soft">{_NOTE}</p>{told}</div>'
    )


def _percent(share: float) -> float:
    return 100 * share


def _cell(column: StandingsColumn, standing: Standing | None) -> HtmlCell:
    if standing is None or math.isnan(standing.accuracy):
        return HtmlCell("–")
    ties = f", {standing.ties:,} ties" if standing.ties else ""
    about = f"{standing.n:,} items{ties}"
    span = "" if math.isnan(standing.low) else f"<small>{percent(standing.low)}–{percent(standing.high)}</small>"
    place = f'<small class="place">#{standing.rank} {escape(standing.groups)}</small>'
    html = f'<b title="{escape(about)}">{percent(standing.accuracy)}</b>{span}{place}{_sparkline(column, standing)}'
    best = "result best" if standing.rank == 1 else "result"
    return HtmlCell(html, standing.accuracy, best)


def _sparkline(column: StandingsColumn, standing: Standing) -> str:
    """One bar per subset; a line at chance."""
    if len(standing.subsets) < 2:
        return ""
    width = 100 / len(standing.subsets)
    bars = []
    for k, (name, value) in enumerate(zip(column.subsets, standing.subsets, strict=True)):
        if math.isnan(value):
            continue
        title = f"<title>{escape(name)}: {percent(value)}</title>"
        x, high = k * width + 0.08 * width, max(0.4, 20 * value)
        bars.append(
            f'<rect x="{x:.1f}" y="{20 - high:.1f}" width="{0.84 * width:.1f}" height="{high:.1f}">{title}</rect>'
        )
    y = 20 - 20 * column.chance
    chance = "" if math.isnan(column.chance) else f'<line x1="0" x2="100" y1="{y:.1f}" y2="{y:.1f}"/>'
    label = escape(", ".join(f"{n} {percent(v)}" for n, v in zip(column.subsets, standing.subsets, strict=True)))
    return (
        f'<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{''.join(bars)}{chance}</svg>"
    )
