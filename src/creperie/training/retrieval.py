"""Recall at 1, 5 and 10: how well a model finds an image's captions among all captions of a benchmark, and a caption's
image among all images.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from creperie.bench import Benchmark, open_image
from creperie.core import DataError, ModelError, Progress, batched, silent
from creperie.metrics import share_interval
from creperie.models import ImageEncoder, TextEncoder, load_model

RECALLS = (1, 5, 10)
CHUNK = 64


@dataclass(frozen=True)
class RecallRow:
    """A recall in percent with its 95 % interval, computed by resampling images together with their captions."""

    direction: str
    at: int
    percent: float
    low: float
    high: float
    n: int
    interval: str


@dataclass(frozen=True)
class Retrieval:
    """A model's recalls on the images and captions of a benchmark. `tied` counts the queries for which the right answer
    and a wrong one have the same score.
    """

    model: str
    bench: str
    images: int
    captions: int
    tied: int
    rows: tuple[RecallRow, ...]

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


def recalls(bench: Benchmark, model: str, *, device: str, progress: Progress = silent) -> Retrieval:
    """Return the recall of a model in both directions, for k = 1, 5 and 10.

    From image to text, recall is how often one of an image's own captions is among the k captions with the highest
    scores. From text to image, it is how often a caption's image is among the k images with the highest scores.
    """
    encoder = load_model(model, device=device)
    if not isinstance(encoder, ImageEncoder) or not isinstance(encoder, TextEncoder):
        raise ModelError("retrieval needs a dual encoder", where=model, hint="name one that encodes images and texts")
    items = [item for item in bench if item.images]
    if not items:
        raise DataError("no item has an image", where=bench.name, hint="pass the images folder as `images=`")
    owner = np.repeat(np.arange(len(items)), [sum(item.match[0]) for item in items])
    texts = [t for item in items for t, holds in zip(item.captions, item.match[0], strict=True) if holds]
    images = []
    with progress("encode images", len(items), "images") as advance:
        for part in batched(items, CHUNK):
            images.append(encoder.encode_images([open_image(bench.images, item.images[0]) for item in part]))
            advance(len(part))
    scores = np.concatenate(images) @ encoder.encode_texts(texts).T
    forth, back = image_ranks(scores, owner), caption_ranks(scores, owner)
    rows = (*_rows("image to text", forth, None), *_rows("text to image", back, owner))
    tied = int((forth % 1 > 0).sum() + (back % 1 > 0).sum())
    return Retrieval(model, bench.name, len(items), len(texts), tied, rows)


def image_ranks(scores: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the rank of each image's best caption, counted from 1. `owner` has the number of each caption's image.

    Wrong captions with the same score as the best caption are ranked above it. The rank then gets 0.5 added, as a mark
    of the tie.

    >>> image_ranks(np.array([[0.9, 0.1, 0.5], [0.2, 0.3, 0.3]]), np.array([0, 0, 1])).tolist()
    [1.0, 2.5]
    """
    ranks = np.empty(len(scores))
    for i, row in enumerate(scores):
        own = owner == i
        best, wrong = row[own].max(), row[~own]
        ranks[i] = 1 + (wrong >= best).sum() + 0.5 * bool((wrong == best).any())
    return ranks


def caption_ranks(scores: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the rank of each caption's image, with ties as in `image_ranks`."""
    right = scores[owner, np.arange(len(owner))]
    before, same = (scores >= right).sum(axis=0), (scores == right).sum(axis=0)
    return before + 0.5 * (same > 1)


def _rows(direction: str, ranks: np.ndarray, clusters: np.ndarray | None) -> list[RecallRow]:
    rows = []
    for k in RECALLS:
        hit = (np.floor(ranks) <= k).astype(np.float64)
        interval = share_interval(hit, clusters)
        share, low, high = (100 * float(x) for x in (hit.mean(), interval.low, interval.high))
        rows.append(RecallRow(direction, k, share, low, high, len(hit), interval.method))
    return rows
