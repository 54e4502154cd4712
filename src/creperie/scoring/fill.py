"""Fill the score columns of a plan with a model's results: stored results are reused, all others computed and
stored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from creperie.core import ModelError, Progress, one_line, silent
from creperie.metrics import Input
from creperie.scoring.choice import fill_by_choice
from creperie.scoring.filler import Filler
from creperie.scoring.forecast import remember_rates
from creperie.scoring.handle import Handle
from creperie.scoring.plan import ScoringPlan, pair_cells
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
) -> Filler:
    """Fill the requested score columns (`inputs`) for all benchmarks of a plan, and return them with findings, counts,
    timings and notes. Each distinct score is computed only once.
    """
    filler = Filler(plan, handle, store or ResultStore(), batch_size=batch_size, progress=progress)
    routes = handle.routes(inputs)
    if "towers" in routes.values() or "text" in routes.values():
        _fill_by_towers(filler, routes)
    if "choice" in routes.values():
        fill_by_choice(filler)
    for route in ("pair", "between", "joint"):
        if route in routes.values():
            _fill_by_pairs(filler, route)
    if "blind" in routes.values():
        sheet = filler.blind()
        for part, columns in zip(plan.parts, filler.columns, strict=True):
            columns["text"] = sheet.numbers(part.captions)
        _report(filler, [], sheet)
    if handle.loaded:
        filler.notes.extend(getattr(handle.model, "notes", ()))
    if handle.loaded and handle.stored:
        remember_rates(filler.store, handle, filler.timings)
    return filler


def _fill_by_towers(filler: Filler, routes: Mapping[Input, str]) -> None:
    image_sheet, text_sheet = filler.vectors(images=routes.get("image_text") == "towers", captions=True)
    texts = text_sheet.vectors
    for part, columns in zip(filler.plan.parts, filler.columns, strict=True):
        with filler.timings.stage("product"):
            if routes.get("image_text") == "towers":
                image, caption = part.pairs
                columns["image_text"] = products(image_sheet.vectors, image, texts, caption)
            if routes.get("text_text") == "text":
                _, a, b = part.caption_pairs  # s(a, b) and s(b, a) are the same number
                columns["text_text"] = products(texts, np.minimum(a, b), texts, np.maximum(a, b))
    _report(filler, image_sheet.faults, text_sheet)


def _fill_by_pairs(filler: Filler, route: str) -> None:
    """Fill the score column that the model computes pair by pair, by one of three routes.

    - `pair` fills image_text, with one score per pair of an image and a caption;
    - `between` fills text_text, with one score per pair of captions;
    - `joint` fills text_text, too. Each caption is encoded together with the item's image, and the score is the product
      of two such vectors. Items without exactly one image stay NaN.
    """
    cells = pair_cells(filler.plan, route)
    sheet = filler.between(cells) if route == "between" else filler.pairs(cells)
    needs: Input = "image_text" if route == "pair" else "text_text"
    faults = [*sheet.faults, *sheet.cut_rows]
    for i, (places, *others) in enumerate(cells.places):
        part = filler.plan.parts[i]
        if others:
            with filler.timings.stage("product"):
                filler.columns[i][needs] = products(sheet.vectors, places, sheet.vectors, others[0])
        else:
            filler.columns[i][needs] = sheet.numbers(places)
        starts = part.layout.starts(needs)
        filler.findings[i].add_faults(part, faults, places, starts)
        if route == "pair" and filler.log.answers:
            asked = [cells.keys[rows[rows >= 0]] for rows in np.split(places, starts[1:])]
            answers = {k: list(filler.log.of(key.tobytes().hex() for key in keys)) for k, keys in enumerate(asked)}
            filler.keep_answers(i, answers)


def _report(filler: Filler, images: Sequence[Fault], texts: Sheet) -> None:
    """Add findings about items with an unusable image or caption, and about items with a caption that was cut off."""
    quoted = [
        replace(fault, message=f"{fault.message}: {one_line(filler.plan.texts[fault.row], 60)!r}")
        for fault in (*texts.faults, *texts.cut_rows)
    ]
    for findings, part in zip(filler.findings, filler.plan.parts, strict=True):
        findings.add_faults(part, images, part.images, part.image_starts)
        findings.add_faults(part, quoted, part.captions, part.caption_starts)


#: numbers gathered at a time on each side: few enough to stay in the CPU cache
GATHERED = 1 << 18
#: with fewer pairs than this, threads are not worth their start-up
MANY = 1 << 16


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
