"""The published adversarial refinement: mirrored cells of the gap grid are cut to the same size."""

from __future__ import annotations

import numpy as np

from creperie.debias.cells import signed_bins, unit_gaps

BINS = 50  #: per sign and axis: the paper's 100 × 100 grid over [-1, 1]²
FACE_BINS = 10  #: for items on which some attacker has a gap of exactly zero


def grid(gaps: np.ndarray, *, seed: int = 0, bins: int = BINS, face_bins: int = FACE_BINS) -> np.ndarray:
    """Which items to keep: a mask in the order of the input.

    An item's cell is the vector of its signed bins. Cells that mirror each other at the origin keep as many items as
    the smaller of the two has, drawn without replacement. Items on which every attacker has no opinion are kept.
    Items on which some have none are balanced apart, on the other axes and with wider bins, as published.

    With any number of attackers, #(gap > 0) = #(gap < 0) for each of them among the kept items.
    """
    scaled = unit_gaps(gaps)
    zero = scaled == 0
    fine = signed_bins(scaled, bins)
    wide = signed_bins(scaled, face_bins)
    cells = np.where(zero.any(axis=1, keepdims=True), wide, fine)
    keep = zero.all(axis=1)
    rng = np.random.Generator(np.random.PCG64(seed))
    # One code a mirror pair: a cell and its mirror image share the lexicographically larger of the two.
    leading = _leading_sign(cells)
    folded = cells * leading[:, None]
    face = zero.any(axis=1)
    codes = np.unique(np.column_stack([face, folded]), axis=0, return_inverse=True)[1].reshape(-1)
    for members in _groups(codes, ~keep):
        ahead, behind = members[leading[members] > 0], members[leading[members] < 0]
        size = min(len(ahead), len(behind))
        for side in (ahead, behind):
            chosen = side if len(side) == size else rng.choice(side, size, replace=False)
            keep[chosen] = True
    return keep


def _leading_sign(cells: np.ndarray) -> np.ndarray:
    """The sign of each row's first non-zero entry; 0 for a row of zeros."""
    signs = np.sign(cells)
    first = (signs != 0).argmax(axis=1)
    return np.take_along_axis(signs, first[:, None], axis=1)[:, 0]


def _groups(codes: np.ndarray, among: np.ndarray) -> list[np.ndarray]:
    """Item indices by code, in the order of the codes, each in the order of the input."""
    items = np.flatnonzero(among)
    order = items[np.argsort(codes[items], kind="stable")]
    if len(order) == 0:
        return []
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    return np.split(order, cuts)
