"""Ragged rows as numbers: equal rows get equal numbers, so that a million of them compare without a Python loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Ragged = tuple[np.ndarray, pa.Array]


def value_codes(values: pa.Array) -> np.ndarray:
    """Return a number for each value, the same for equal values.

    >>> value_codes(pa.array(["a dog", "a cat", "a dog"])).tolist()
    [0, 1, 0]
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    codes = values.dictionary_encode(null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int32)


def list_codes(ragged: Ragged) -> np.ndarray:
    """Return a number for each list, the same for equal lists.

    >>> list_codes((np.array([0, 2, 3, 5]), pa.array(["a", "b", "c", "a", "b"]))).tolist()
    [0, 1, 0]
    """
    offsets, values = ragged
    return number_list_codes(offsets, value_codes(values))


def number_list_codes(offsets: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return a number for each list of numbers, the same for equal lists."""
    flat = np.ascontiguousarray(numbers)
    # A list of fixed-width numbers is a byte string, and those Arrow can tell apart.
    ends = pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64) * flat.itemsize)
    joined = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, ends, pa.py_buffer(flat)])
    return value_codes(joined)


def pair_codes(*parts: np.ndarray) -> np.ndarray:
    """Return a number for each row of several columns of numbers.

    >>> pair_codes(np.array([0, 0, 1]), np.array([5, 5, 5])).tolist()
    [0, 0, 1]
    """
    codes = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        span = int(part.max()) + 1 if len(part) else 1
        codes = value_codes(pa.array(codes * span + part)).astype(np.int64)
    return codes


def ordinals(codes: np.ndarray) -> np.ndarray:
    """Return how many earlier rows have the same number.

    >>> ordinals(np.array([3, 7, 3, 3, 7])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    begins = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(codes) else np.zeros(0, dtype=np.int64)
    sizes = np.diff(np.r_[begins, len(codes)])
    counts = np.empty(len(codes), dtype=np.int64)
    counts[order] = np.arange(len(codes)) - np.repeat(begins, sizes)
    return counts


def first_rows(codes: np.ndarray) -> np.ndarray:
    """For each row, the first row that has the same number.

    >>> first_rows(np.array([3, 7, 3, 3, 7])).tolist()
    [0, 1, 0, 0, 1]
    """
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def owners(offsets: np.ndarray) -> np.ndarray:
    """For each flat value, the row that owns it.

    >>> owners(np.array([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
