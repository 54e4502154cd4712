"""The cells in which refinements count items, and the grid method, which balances these counts.

An attacker's gap on an item says how much the attacker prefers the true caption. Each gap falls into a signed bin. The
bins of all attackers together are the item's cell.
"""

from __future__ import annotations

import numpy as np

from creperie.core import DataError, Progress, seeded
from creperie.refining.select import Choice, ChoiceSettings, RefinementMethod, SelectionPool, by_gaps


def unit_gaps(gaps: np.ndarray) -> np.ndarray:
    """Return the attackers' gaps on items (items × attackers) as float64, scaled to [-1, 1]. A gap says how much an
    attacker prefers the true caption. If any gap of an attacker is outside [-1, 1], all gaps of this attacker are
    divided by the largest |gap| among them.

    Zero stays zero and signs do not change: each attacker still prefers the same caption.

    >>> unit_gaps(np.array([[0.5, 4.0], [-0.25, -2.0]])).tolist()
    [[0.5, 1.0], [-0.25, -0.5]]
    """
    columns = np.asarray(gaps, np.float64)
    if columns.ndim == 1:
        columns = columns[:, None]
    if not np.isfinite(columns).all():
        rows = np.flatnonzero(~np.isfinite(columns).all(axis=1))
        raise DataError(
            f"{len(rows)} items have a gap that is not finite (the first is item {rows[0]})",
            hint="leave out these items, or the attackers whose gaps are not finite",
        )
    largest = np.abs(columns).max(axis=0, initial=0.0)
    return columns / np.where(largest > 1.0, largest, 1.0)


def signed_bins(gaps: np.ndarray, bins: int) -> np.ndarray:
    """Return the signed bin of each gap: sign · (floor(|gap| · bins) + 1), or 0 if the gap is zero. |gap| = 1 falls
    into the last bin.

    >>> signed_bins(np.array([[0.0, 0.58, -1.0, 0.02]]), 50).tolist()
    [[0, 29, -50, 2]]
    """
    # As in the published code, the product is taken in float64: 0.58 · 50 is 28.999…, so it lies in bin 29.
    steps = np.minimum(np.floor(np.abs(gaps) * bins), bins - 1).astype(np.int64) + 1
    return np.where(gaps == 0, 0, np.sign(gaps).astype(np.int64) * steps)


BINS = 50  #: per sign and axis: the paper's 100 × 100 grid over [-1, 1]²
FACE_BINS = 10  #: for items on which some attacker has a gap of exactly zero


def grid_selection(gaps: np.ndarray, *, seed: int = 0, bins: int = BINS) -> np.ndarray:
    """Return a mask of the items to keep, chosen by the grid method. For each attacker, equally many of these items
    have a positive gap (the attacker prefers the true caption) and a negative gap (it prefers the false one).

    The cell of an item is the vector of its signed bins, one per attacker. Every cell has an opposite cell, in which
    all signs are reversed. Of two opposite cells, the smaller one keeps all its items. The larger one keeps equally
    many, drawn at random.

    Items with a gap of zero for every attacker are kept. Items with a gap of zero for only some attackers are balanced
    separately, as published: by the gaps of the other attackers, in wider bins.
    """
    scaled = unit_gaps(gaps)
    face = (scaled == 0).any(axis=1)
    keep = (scaled == 0).all(axis=1)
    cells = np.zeros(scaled.shape, np.int32)
    for k, column in enumerate(scaled.T):
        cells[:, k] = np.where(face, signed_bins(column, FACE_BINS), signed_bins(column, bins))
    # One code per mirror pair: a cell and its mirror image share that of the lexicographically larger one.
    leading, codes = _leading_sign(cells), face.astype(np.int64)
    for column in cells.T:
        shifted = codes * (2 * max(bins, FACE_BINS) + 1) + column * leading + max(bins, FACE_BINS)
        codes = np.unique(shifted, return_inverse=True)[1]
    rows = np.flatnonzero(~keep)
    rows = rows[seeded(seed).permutation(len(rows))]
    sided = 2 * codes[rows] + (leading[rows] < 0)
    counts = np.bincount(sided, minlength=2 * (int(codes.max(initial=0)) + 1)).reshape(-1, 2)
    keep[first_of_each(rows, sided, counts.min(axis=1).repeat(2))] = True
    return keep


def first_of_each(rows: np.ndarray, codes: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Return the rows to keep: for each code c, the first `amounts[c]` rows with this code."""
    order = np.argsort(codes, kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(codes[order], codes[order])
    return rows[order][rank < amounts[codes[order]]]


def _leading_sign(cells: np.ndarray) -> np.ndarray:
    """Return the sign of each row's first non-zero entry; 0 for a row of zeros."""
    signs = np.sign(cells)
    first = (signs != 0).argmax(axis=1)
    return np.take_along_axis(signs, first[:, None], axis=1)[:, 0]


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    return by_gaps(pool, settings, lambda gaps, _: (grid_selection(gaps, seed=settings.seed, bins=settings.bins), None))


METHOD = RefinementMethod(
    name="grid",
    does="balance mirrored cells of the attackers' gaps (the published algorithm)",
    reason="cell",
    why="its cell of the gap grid held more items than the mirrored cell",
    choose=_choose,
    attackers=("length-words", "surface"),
    bins=BINS,
)
