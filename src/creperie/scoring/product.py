"""From vectors to score columns: one gather and one product in float32."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from creperie.scoring.plan import BenchmarkPart

#: numbers gathered at a time on each side: small enough to stay in the processor's cache
GATHERED = 1 << 18
#: pairs from which on several threads are worth their start
MANY = 1 << 16


def image_text(part: BenchmarkPart, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """The flat images × captions column of a benchmark; NaN where an image or a caption has no vector."""
    image, caption = part.pairs
    return products(images, image, texts, caption)


def text_text(part: BenchmarkPart, texts: np.ndarray) -> np.ndarray:
    """The flat captions × captions column. s(a, b) and s(b, a) are one number."""
    _, a, b = part.caption_pairs
    return products(texts, np.minimum(a, b), texts, np.maximum(a, b))


def products(left: np.ndarray, a: np.ndarray, right: np.ndarray, b: np.ndarray) -> np.ndarray:
    """left[a] · right[b], row by row; −1 and rows without a vector give NaN. Of (n, q, d) the best of q counts.

    Every different pair is computed once, so equal pairs have equal scores to the bit, wherever they stand.

    >>> v = np.eye(3, dtype=np.float32)
    >>> products(v, np.array([0, 1, -1]), v, np.array([0, 2, 1])).tolist()
    [1.0, 0.0, nan]
    """
    scores = np.full(len(a), np.nan, np.float32)
    if left.size == 0 or right.size == 0:
        return scores
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
