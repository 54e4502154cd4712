"""Integer codes for rows of any length. Equal rows have equal codes, so millions of rows can be compared without a
Python loop.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Ragged = tuple[np.ndarray, pa.Array]


def value_codes(values: pa.Array) -> np.ndarray:
    """Return an integer code for each value; equal values have equal codes.

    >>> value_codes(pa.array(["a dog", "a cat", "a dog"])).tolist()
    [0, 1, 0]
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    codes = values.dictionary_encode(null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int32)


def list_codes(ragged: Ragged) -> np.ndarray:
    """Return an integer code for each list; equal lists have equal codes.

    >>> list_codes((np.array([0, 2, 3, 5]), pa.array(["a", "b", "c", "a", "b"]))).tolist()
    [0, 1, 0]
    """
    offsets, values = ragged
    return number_list_codes(offsets, value_codes(values))


def number_list_codes(offsets: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return an integer code for each list of numbers; equal lists have equal codes."""
    flat = np.ascontiguousarray(numbers)
    # A list of fixed-width numbers is treated as a byte string, which Arrow can dictionary-encode.
    ends = pa.py_buffer(np.ascontiguousarray(offsets, np.int64) * flat.itemsize)
    joined = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, [None, ends, pa.py_buffer(flat)])
    return value_codes(joined)


def pair_codes(*parts: np.ndarray) -> np.ndarray:
    """Return an integer code for each row, given several columns of codes; equal rows have equal codes.

    >>> pair_codes(np.array([0, 0, 1]), np.array([5, 5, 5])).tolist()
    [0, 0, 1]
    """
    codes = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        span = int(part.max()) + 1 if len(part) else 1
        codes = value_codes(pa.array(codes * span + part)).astype(np.int64)
    return codes


def ordinals(codes: np.ndarray) -> np.ndarray:
    """Return, for each row, the number of earlier rows with the same code.

    >>> ordinals(np.array([3, 7, 3, 3, 7])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    begins = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(codes) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[begins, len(codes)])
    counts = np.empty(len(codes), np.int64)
    counts[order] = np.arange(len(codes)) - np.repeat(begins, sizes)
    return counts


def first_rows(codes: np.ndarray) -> np.ndarray:
    """Return, for each row, the index of the first row with the same code.

    >>> first_rows(np.array([3, 7, 3, 3, 7])).tolist()
    [0, 1, 0, 0, 1]
    """
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return first[inverse]


def owners(offsets: np.ndarray) -> np.ndarray:
    """Return, for each flat value of a list column, the index of its row. `offsets` are the positions at which the rows
    begin, followed by the end of the last row.

    >>> owners(np.array([0, 2, 2, 3])).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
