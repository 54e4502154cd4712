"""The figures of a report page, drawn from the runs as SVG in the page's colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from creperie.core import csv_text
from creperie.metrics import margins, rank_table, task
from creperie.reporting.gather import RunGroup
from creperie.reporting.html_tables import part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 2_000  #: items whose margins a page lists for download
BOUNDS = ("accuracy", "low", "high")
MOST_MODELS = 12  #: with more models than this, no figure is drawn: the tables show them
#: a figure, its caption, and what it shows as a table: headings, rows
Drawn = tuple["Figure", str, Sequence[str], Iterable[Sequence[Any]]]
SHARES = ("share", "captions", "foils", "balanced", "lower", "pooled", "precision", "f1", "auroc")


def page_figures(group: RunGroup) -> str:
    """Return the figures of one benchmark as HTML. The text is empty if matplotlib is not installed or there is nothing
    to draw.
    """
    return _figures_part(_figures(group), f"figure-{group.runs[0].hash[:8]}")


def rank_figure(groups: Sequence[RunGroup]) -> str:
    """Return a figure of how ranks change between tasks and benchmarks, as HTML. The text is empty if there is nothing
    to draw.
    """
    return _figures_part(_ranked(groups), "ranks")


def _figures_part(figures: Iterator[Drawn], prefix: str) -> str:
    if find_spec("matplotlib") is None:
        return ""
    parts = [figure_html(f"{prefix}-{number}", *drawn) for number, drawn in enumerate(figures)]
    return part("figures", parts) if parts else ""


def figure_html(name: str, figure: Figure, caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return HTML of a figure with its caption and downloads. `heads` and `rows` are the table of its data. `name` must
    be unique within the page.
    """
    from markupsafe import Markup

    from creperie.reporting.figures.style import inline_svg

    svg = inline_svg(figure, name)
    wide = round(float(figure.get_figwidth()) * 72)  # small figures stay small, wide ones scroll on a phone
    limits = f"min-width:min(25rem,{wide}px);max-width:{2 * wide}px"
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" style="{limits}" ', 1)
    return part("figure", Markup(svg), caption, csv_text(heads, rows))


def _figures(group: RunGroup) -> Iterator[Drawn]:
    for name in group.tasks:
        yield from _of_task(group, name)
    yield from _crossed(group)
    yield from _ranked([group])


def _of_task(group: RunGroup, name: str) -> Iterator[Drawn]:
    from creperie.reporting.figures.bars import accuracy_by_subset
    from creperie.reporting.figures.of_runs import margins_figure, series_of

    series, levels = series_of(group, name)
    if not 0 < len(series) <= MOST_MODELS:
        return
    if task(name).value in SHARES:
        caption = f"{group.short}, {name}: accuracy by subset with intervals, against chance"
        rows = [[one.name, s, one.counts[s], *values] for one in series for s, values in one.values.items()]
        drawn = accuracy_by_subset(series, levels, title=name)
        yield drawn, caption + (" and people" if levels.human else ""), ["model", "subset", "n", *BOUNDS], rows
    if task(name).has_margins:
        own = {r.name: margins(task(name), r.layout, r.scores(task(name).needs)) for r in group.runs if name in r.tasks}
        keys = zip(group.runs[0].subsets, group.runs[0].table.column("id").to_pylist(), strict=True)
        items = [[*key, *values] for key, *values in zip(keys, *own.values())] if len(group) <= MOST_ROWS else []
        caption = f"{group.short}, {name}: items by margin; left of zero the model is wrong"
        yield margins_figure(group, name), caption, ["subset", "id", *own], items


def _crossed(group: RunGroup) -> Iterator[Drawn]:
    from creperie.reporting.figures.of_runs import confusion_figure

    for number, (run, label) in enumerate(group.labelled):
        if {"itt", "tot"} <= set(run.tasks) and number < MOST_MODELS:
            caption = f"{group.short}, {label}: items that pass with the image (itt) and between captions (tot)"
            figure, crossed = confusion_figure(group, number, ("itt", "tot"), examples=False)
            yield figure, caption, ["itt", "tot", "items"], [[*cell, n] for cell, n in crossed.counts.items()]


def _ranked(groups: Sequence[RunGroup]) -> Iterator[Drawn]:
    from creperie.reporting.figures.of_runs import columns_of, model_labels
    from creperie.reporting.figures.ranks import rank_changes

    runs = [run for group in groups for run in group.runs]
    table = columns_of(runs, model_labels(runs), ())
    wide = {name: by for name, by in table.items() if len(by) > 2}
    ranking = rank_table(wide)
    if len(wide) > 1 and 2 < len(ranking) <= MOST_MODELS:
        rows = [[one.name, *one.values] for one in ranking]
        caption = "Ranks of the models by accuracy, from task to task"
        yield rank_changes(list(wide), ranking, title="rank"), caption, ["model", *wide], rows
