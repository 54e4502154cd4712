"""Two runs side by side: the verdict, the difference by subset, and the items on which the runs disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import numpy as np

from creperie.core import Json, UsageError
from creperie.metrics import task
from creperie.reporting.html_tables import comparison_table, p_text
from creperie.reporting.studio.browse import Browser
from creperie.reporting.studio.items import ItemFilter, ItemIndex, shared_tasks, signed
from creperie.reporting.studio.query import StudioQuery
from creperie.reporting.studio.shelf import Shelf
from creperie.scoring import Run, compare

SHOWN = 24  #: items


def compared(shelf: Shelf, index: Callable[[str], ItemIndex], runs: Sequence[Run], query: StudioQuery) -> Json:
    """Return what the page about two runs shows. `show` in the query selects the items to list: "a" for those that only
    the first run gets right, "b" for those that only the second does, and "neither".
    """
    labels = [shelf.board().label_of[run.name] for run in runs]
    shared = shared_tasks(*runs)
    name = query.get("task") or shared[0]
    if name not in shared:
        raise UsageError(f"the two runs do not share the task {name[:40]!r}", hint=f"choose: {', '.join(shared)}")
    rows = compare(runs, tasks=[name], ties=runs[0].settings.ties).rows
    whole = next(row.comparison for row in rows if row.subset == "all")
    parts = [row for row in rows if row.subset not in ("all", "macro")]
    results = [next(r for r in run.results if r["task"] == name and r["subset"] == "all") for run in runs]
    return {
        "labels": labels,
        "task": name,
        "tasks": shared,
        "what": task(name).what,
        "benchmark": shelf.board().bench_name(runs[0]),
        "results": results,
        "whole": {"c": whole, "p": p_text(whole.p), "holm": p_text(whole.p_holm), "sure": whole.p_holm < 0.05},
        "parts": len(parts),
        "by_subset": comparison_table(parts, dict(zip("AB", labels)), "Differences by subset", pair=True)
        if parts
        else "",
        "sure": sum(row.comparison.p_holm < 0.05 for row in parts),
        "left": max(r["n"] + r["void"] for r in results) - whole.n,
        **_disagreements(shelf, index, runs, labels, query, name),
    }


def _disagreements(
    shelf: Shelf,
    index: Callable[[str], ItemIndex],
    runs: Sequence[Run],
    labels: Sequence[str],
    query: StudioQuery,
    name: str,
) -> Json:
    """Return what the page shows of the items that only one of two runs gets right, or that neither does. If the folder
    does not contain the benchmark of the runs, the lists are empty.
    """
    where = next((n for n, bench in shelf.readable()[0].items() if bench.hash == runs[0].hash), "")
    if not where:
        return {"kinds": [], "cards": [], "all": "", "count": 0}
    own, (a, b) = index(where), (run.name for run in runs)
    outcomes = [(run.settings, own.outcomes(run, name)) for run in runs]
    right_a, right_b = (rule.right(judged) for rule, judged in outcomes)
    wrong_a, wrong_b = (rule.wrong(judged) for rule, judged in outcomes)
    kinds = {
        "a": (right_a & wrong_b, ItemFilter(where, right=a, wrong=b, task=name)),
        "b": (wrong_a & right_b, ItemFilter(where, right=b, wrong=a, task=name)),
        "neither": (wrong_a & wrong_b, ItemFilter(where, wrong=a, task=name)),
    }
    show = query.get("show", "") if query.get("show") in kinds else "a"
    chosen, item_filter = kinds[show]
    rows = np.flatnonzero(chosen)
    here = {"a": a, "b": b, **({"task": query["task"]} if query.get("task") else {})}
    chips = [
        (kind, int(own_rows.sum()), f"/compare?{urlencode({**here, 'show': kind})}", kind == show)
        for kind, (own_rows, _) in kinds.items()
    ]
    leads = [(label, own.margins(run, name)) for label, run in zip(labels, runs)]
    cards = Browser(shelf, own, item_filter).cards(rows[:SHOWN])
    for row, card in zip(rows.tolist(), cards, strict=False):
        shown = (f"{label} {signed(v[row])}" for label, v in leads if v is not None and v[row] == v[row])
        card["right"] = ", ".join(shown)  # empty if the task has no margins
    return {
        "kinds": chips,
        "cards": cards,
        "all": item_filter.address() if show != "neither" else "",
        "count": len(rows),
    }
