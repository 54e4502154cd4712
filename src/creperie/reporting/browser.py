"""The items of a group of runs as compact columns, for the item browser of a report page.

Numbers are typed little-endian arrays in base64 (5.3 characters per score, nothing to parse). Each text is stored once
and identified by its index. `templates/browser.js` reads the columns; the two files must use the same keys.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import TAG_PREFIX
from creperie.core import Json
from creperie.metrics import TIE, Layout, margins, task
from creperie.reporting.gather import RunGroup
from creperie.scoring import Run

#: Text tags with more distinct values than this are shown with an item but offered no filter.
MOST_VALUES = 60


def packed(values: Sequence[int] | np.ndarray, kind: str) -> str:
    """Return numbers of the type `kind` as base64 text.

    >>> packed([1, 2], "<u2")
    'AQACAA=='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind)).tobytes()).decode("ascii")


def browser_data(group: RunGroup, pictures: Mapping[str, int], failed: Mapping[str, str]) -> Json:
    """Return the data of the item browser for a group of runs.

    The page holds its images in a list, one per line. `pictures` maps an image reference to the number of its line.
    `failed` maps the reference of an image that cannot be shown to the reason.
    """
    first = group.runs[0]
    layout = first.layout
    subsets = first.table.column("subset").combine_chunks().dictionary_encode()
    return {
        "name": group.title,
        "n": len(group),
        "ids": first.table.column("id").to_pylist(),
        "subsets": subsets.dictionary.to_pylist(),
        "subset": packed(subsets.indices.to_numpy(), "<u2"),
        "rows": packed(layout.rows, "<u2"),
        "cols": packed(layout.columns, "<u2"),
        "match": packed(layout.match, "u1"),
        **_captions(group),
        **_images(first, pictures, failed),
        "hidden": group.hidden,
        "tags": _tags(group),
        "runs": [_run(run, label) for run, label in group.labelled],
    }


def _captions(group: RunGroup) -> Json:
    if group.bench is None:
        return {"texts": None, "cap": ""}
    coded = group.bench.ragged("captions")[1].dictionary_encode()
    return {"texts": coded.dictionary.to_pylist(), "cap": packed(coded.indices.to_numpy(), "<u4")}


def _images(run: Run, pictures: Mapping[str, int], failed: Mapping[str, str]) -> Json:
    column = run.table.column("images")
    flat = pc.list_flatten(column)
    coded = (flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat).dictionary_encode()
    names: list[str] = coded.dictionary.to_pylist()
    return {
        "images": names,
        "image": packed(coded.indices.to_numpy(), "<u4"),
        "nimages": packed(pc.list_value_length(column).to_numpy(), "<u2"),
        "why": {k: failed[name] for k, name in enumerate(names) if name in failed},
        "line": packed([pictures.get(name, -1) for name in names], "<i4"),
    }


def _tags(group: RunGroup) -> list[Json]:
    if group.bench is None:
        return []
    names = [n for n in group.bench.columns if n.startswith(TAG_PREFIX)]
    return [_tag(n[len(TAG_PREFIX) :], group.bench.column(n)) for n in names]


def _tag(name: str, column: pa.ChunkedArray) -> Json:
    if pa.types.is_floating(column.type):
        numbers = column.fill_null(float("nan")).to_numpy()
        few = len(np.unique(numbers[~np.isnan(numbers)])) <= MOST_VALUES
        if not few:
            return {"name": name, "kind": "number", "numbers": packed(numbers, "<f4")}
        column = pa.chunked_array([[None if np.isnan(v) else f"{v:g}" for v in numbers]], pa.string())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    coded = column.combine_chunks().dictionary_encode()
    values = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(-1).to_numpy()
    return {"name": name, "kind": "text", "values": values, "codes": packed(codes, "<i4")}


def _run(run: Run, label: str) -> Json:
    return {
        "label": label,
        "model": run.model,
        "name": run.name,
        "tasks": [_task(run, name) for name in run.tasks if task(name).by_item],
        "scores": {  # pairs of captions have a symmetric matrix
            needs: packed(upper(run.layout, scores) if needs == "text_text" else scores, "<f4")
            for needs in run.inputs
            for scores in [run.scores(needs)]
        },
        "findings": _findings(run),
        "answers": run.answers,
    }


def _task(run: Run, name: str) -> Json:
    chosen = task(name)
    margin = margins(chosen, run.layout, run.scores(chosen.needs)) if chosen.has_margins else ()
    return {
        "name": name,
        "what": chosen.what,
        "outcome": packed(run.outcomes(name), "i1"),
        "margin": packed(margin, "<f4"),
        "tie": int(run.settings.right(np.array(TIE))),  # what a tie counts as
    }


def upper(layout: Layout, scores: np.ndarray) -> np.ndarray:
    """Return, for each item, the cells above the diagonal of its captions × captions matrix, row by row.

    >>> from creperie.metrics.layout import layout_of
    >>> upper(layout_of([[[1, 1, 0]]]), np.arange(9)).tolist()
    [1, 2, 5]
    """
    width = np.repeat(layout.columns, layout.widths("text_text"))
    within = np.arange(len(width)) - np.repeat(layout.starts("text_text"), layout.widths("text_text"))
    return scores[within // np.maximum(width, 1) < within % np.maximum(width, 1)]


def _findings(run: Run) -> dict[int, list[str]]:
    if not run.findings:
        return {}
    keys = zip(run.subsets, run.table.column("id").to_pylist(), strict=True)
    rows = {key: row for row, key in enumerate(keys)}
    messages: dict[int, list[str]] = {}
    for finding in run.findings:
        row = rows.get((finding["subset"], finding["item"]))
        if row is not None:
            messages.setdefault(row, []).append(f"{finding['code']}: {finding['message']}")
    return messages
