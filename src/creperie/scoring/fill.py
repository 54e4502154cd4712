"""Fill the score columns of a plan with a model's results: stored results are reused, all others computed and
stored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from creperie.core import ModelError, Progress, silent
from creperie.metrics import Input
from creperie.scoring.choice import fill_by_choice
from creperie.scoring.filler import FilledScores, Filler
from creperie.scoring.findings import Findings, cell_findings, cut_message, item_findings
from creperie.scoring.forecast import remember_rates
from creperie.scoring.handle import Handle
from creperie.scoring.plan import BenchmarkPart, ScoringPlan, pair_cells
from creperie.scoring.sheet import Fault, Sheet
from creperie.scoring.store import ResultStore


def fill(
    plan: ScoringPlan,
    handle: Handle,
    inputs: Iterable[Input],
    *,
    store: ResultStore | None = None,
    batch_size: int | None = None,
    progress: Progress = silent,
) -> FilledScores:
    """Return the requested score columns (`inputs`) for all benchmarks of a plan. Each distinct score is computed only
    once.
    """
    filler = Filler(plan, handle, store or ResultStore(), batch_size=batch_size, progress=progress)
    filled = FilledScores(
        [{} for _ in plan.parts], [Findings() for _ in plan.parts], filler.work, filler.timings, filler.notes
    )
    routes = handle.routes(inputs)
    if "towers" in routes.values() or "text" in routes.values():
        _fill_by_towers(filler, filled, routes)
    if "choice" in routes.values():
        fill_by_choice(filler, filled)
    for route in ("pair", "between", "joint"):
        if route in routes.values():
            _fill_by_pairs(filler, filled, route)
    if "blind" in routes.values():
        _fill_blind(filler, filled)
    if handle.loaded:
        filler.notes.extend(getattr(handle.model, "notes", ()))
    if handle.loaded and handle.stored:
        remember_rates(filler.store, handle, filler.timings)
    return filled


def _fill_by_towers(filler: Filler, filled: FilledScores, routes: Mapping[Input, str]) -> None:
    images, captions = routes.get("image_text") == "towers", routes.get("text_text") == "text"
    image_sheet, text_sheet = filler.vectors(images=images, captions=True)
    for part, columns in zip(filler.plan.parts, filled.columns, strict=True):
        with filler.timings.stage("product"):
            if images:
                columns["image_text"] = image_text(part, image_sheet.vectors, text_sheet.vectors)
            if captions:
                columns["text_text"] = text_text(part, text_sheet.vectors)
    _report(filler, filled, image_sheet.faults, text_sheet)


def _fill_blind(filler: Filler, filled: FilledScores) -> None:
    sheet = filler.blind()
    for part, columns in zip(filler.plan.parts, filled.columns, strict=True):
        columns["text"] = sheet.numbers(part.captions)
    _report(filler, filled, [], sheet)


def _fill_by_pairs(filler: Filler, filled: FilledScores, route: str) -> None:
    """Fill the score column that the model computes pair by pair, by one of three routes.

    - `pair` fills image_text, with one score per pair of an image and a caption;
    - `between` fills text_text, with one score per pair of captions;
    - `joint` fills text_text, too. Each caption is encoded together with the item's image, and the score is the product
      of two such vectors. Items without exactly one image stay NaN.
    """
    cells = pair_cells(filler.plan, route)
    sheet = filler.between(cells) if route == "between" else filler.pairs(cells)
    needs: Input = "image_text" if route == "pair" else "text_text"
    cut = [Fault(int(r), "caption-cut", cut_message(int(sheet.cut[r]))) for r in np.flatnonzero(sheet.cut)]
    for i, (places, *others) in enumerate(cells.places):
        part = filler.plan.parts[i]
        if others:
            with filler.timings.stage("product"):
                filled.columns[i][needs] = products(sheet.vectors, places, sheet.vectors, others[0])
        else:
            filled.columns[i][needs] = sheet.numbers(places)
        starts = part.layout.starts(needs)
        filled.findings[i].merge(cell_findings(part, [*sheet.faults, *cut], places, starts))
        if route == "pair" and filler.log.answers:
            asked = [cells.keys[rows[rows >= 0]] for rows in np.split(places, starts[1:])]
            answers = {k: list(filler.log.of(key.tobytes().hex() for key in keys)) for k, keys in enumerate(asked)}
            filled.keep_answers(i, part, answers)


def _report(filler: Filler, filled: FilledScores, images: Iterable[Fault], texts: Sheet) -> None:
    faults = list(images)
    cut = {int(row): int(texts.cut[row]) for row in np.flatnonzero(texts.cut)}
    for i, part in enumerate(filler.plan.parts):
        filled.findings[i].merge(item_findings(part, faults, texts.faults, cut, filler.plan))


#: numbers gathered at a time on each side: few enough to stay in the CPU cache
GATHERED = 1 << 18
#: with fewer pairs than this, threads are not worth their start-up
MANY = 1 << 16


def image_text(part: BenchmarkPart, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Return the images × captions scores of a benchmark as a flat array; NaN where an image or a caption has no
    vector.
    """
    image, caption = part.pairs
    return products(images, image, texts, caption)


def text_text(part: BenchmarkPart, texts: np.ndarray) -> np.ndarray:
    """Return the captions × captions scores of a benchmark as a flat array; s(a, b) and s(b, a) are the same number."""
    _, a, b = part.caption_pairs
    return products(texts, np.minimum(a, b), texts, np.maximum(a, b))


def products(left: np.ndarray, a: np.ndarray, right: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot product of left[a] and right[b] for each pair of rows. The result is NaN for row −1 and for rows
    without a vector.

    `left` may have q vectors per row, as an array (n, q, d). The result for a pair is then the highest of its q
    products.

    Every distinct pair is computed once, so a pair has bit-identical scores wherever it occurs.

    >>> v = np.eye(3, dtype=np.float32)
    >>> products(v, np.array([0, 1, -1]), v, np.array([0, 2, 1])).tolist()
    [1.0, 0.0, nan]
    """
    scores = np.full(len(a), np.nan, np.float32)
    if left.size == 0 or right.size == 0:
        return scores
    if left.shape[-1] != right.shape[-1]:
        what = f"image vectors have {left.shape[-1]} dimensions, but caption vectors have {right.shape[-1]}"
        raise ModelError(what, hint="return the projected vectors of both encoders")
    there = np.flatnonzero((a >= 0) & (b >= 0))
    codes, back = np.unique(a[there] * len(right) + b[there], return_inverse=True)
    i, j = np.divmod(codes, len(right))
    values = np.empty(len(codes), np.float32)
    step = max(1, GATHERED // int(np.prod(left.shape[1:])))

    def multiply(start: int) -> None:
        part = slice(start, start + step)
        ours, theirs = left.take(i[part], axis=0), right.take(j[part], axis=0)
        if left.ndim == 2:
            values[part] = np.einsum("nd,nd->n", ours, theirs)
        else:
            values[part] = np.einsum("nqd,nd->nq", ours, theirs).max(axis=1)

    starts = range(0, len(codes), step)
    if len(codes) < MANY:
        for start in starts:
            multiply(start)
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(multiply, starts))
    scores[there] = values[back]
    return scores
