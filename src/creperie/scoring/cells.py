"""The distinct pairs (an image and a caption, or two captions) that a plan needs scores for, and their keys in the
cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from creperie.scoring.plan import BenchmarkPart, ScoringPlan
from creperie.scoring.store import pair_keys


@dataclass(frozen=True)
class PairCells:
    """The distinct pairs to score. Each is an image and a caption or, if `kind` is "between", two captions."""

    kind: str
    first: np.ndarray  #: sorted
    second: np.ndarray
    keys: np.ndarray
    #: per benchmark, for every cell the number of its pair, −1 for none; of kind `joint`, of its two pairs
    places: list[tuple[np.ndarray, ...]]


def pair_cells(plan: ScoringPlan, kind: str) -> PairCells:
    """Return the distinct pairs whose scores fill the score matrices of a plan.

    `kind` says what is scored: "pair" (an image with a caption), "between" (two captions) or "joint" (two captions,
    each together with the image).
    """
    captions = max(1, len(plan.texts))
    cells = [_PAIRS[kind](part, captions) for part in plan.parts]
    every = np.concatenate([codes for own in cells for codes in own])
    distinct = np.unique(every[every >= 0])
    first, second = np.divmod(distinct, captions)
    keys = pair_keys((plan.text_keys if kind == "between" else plan.image_keys)[first], plan.text_keys[second])
    places = [tuple(np.where(c >= 0, np.searchsorted(distinct, np.maximum(c, 0)), -1) for c in own) for own in cells]
    return PairCells(kind, first, second, keys, places)


def _coded(first: np.ndarray, second: np.ndarray, captions: int) -> np.ndarray:
    return np.where(first >= 0, first * captions + second, -1)


def _image_and_caption(part: BenchmarkPart, captions: int) -> tuple[np.ndarray, ...]:
    return (_coded(*part.pairs, captions),)


def _two_captions(part: BenchmarkPart, captions: int) -> tuple[np.ndarray, ...]:
    """Return a tuple with one array. It has a number for each cell of the captions × captions matrices; two cells have
    the same number if they compare the same two captions, in either order.
    """
    _, a, b = part.caption_pairs
    return (_coded(np.minimum(a, b), np.maximum(a, b), captions),)


def _two_captions_with_the_image(part: BenchmarkPart, captions: int) -> tuple[np.ndarray, ...]:
    """Return two arrays with one entry per cell of the captions × captions matrices. A cell compares two captions of an
    item. The first array has the number of the pair (image, first caption), the second that of the pair (image, second
    caption). Both are −1 for items that do not have exactly one image.
    """
    owner, a, b = part.caption_pairs
    single = np.diff(part.image_starts) == 1
    image = np.where(single, part.images[part.image_starts[:-1] * single] if len(part.images) else -1, -1)[owner]
    return _coded(image, np.minimum(a, b), captions), _coded(image, np.maximum(a, b), captions)


_PAIRS: dict[str, Callable[[BenchmarkPart, int], tuple[np.ndarray, ...]]] = {
    "pair": _image_and_caption,
    "joint": _two_captions_with_the_image,
    "between": _two_captions,
}
