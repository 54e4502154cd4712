"""The published adversarial refinement: mirrored cells of the gap grid are cut to the same size."""

from __future__ import annotations

import numpy as np

from creperie.refining.cells import row_codes, signed_bins, unit_gaps

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
    # One code a mirror pair: a cell and its mirror image share the lexicographically larger of the two.
    leading = _leading_sign(cells)
    codes = row_codes(np.column_stack([zero.any(axis=1), cells * leading[:, None]]))
    rows = np.flatnonzero(~keep)
    rows = rows[np.random.Generator(np.random.PCG64(seed)).permutation(len(rows))]
    keep[_as_many_as_mirrored(rows, 2 * codes[rows] + (leading[rows] < 0))] = True
    return keep


def _as_many_as_mirrored(rows: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Of the rows in cell 2c and in cell 2c + 1 the first so many, as many of the one as of the other."""
    order = np.argsort(cell, kind="stable")
    names, starts, counts = np.unique(cell[order], return_index=True, return_counts=True)
    place = np.minimum(np.searchsorted(names, names ^ 1), max(len(names) - 1, 0))
    size = np.where(names[place] == names ^ 1, np.minimum(counts, counts[place]), 0) if len(names) else counts
    rank = np.arange(len(order)) - np.repeat(starts, counts)
    return rows[order][rank < np.repeat(size, counts)]


def _leading_sign(cells: np.ndarray) -> np.ndarray:
    """The sign of each row's first non-zero entry; 0 for a row of zeros."""
    signs = np.sign(cells)
    first = (signs != 0).argmax(axis=1)
    return np.take_along_axis(signs, first[:, None], axis=1)[:, 0]
