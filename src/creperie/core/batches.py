"""Cutting work into batches, and sorting it by keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in slices of `size`; the last may be shorter.

    >>> list(batched("abcde", 2))
    ['ab', 'cd', 'e']
    """
    for start in range(0, len(items), size):
        yield items[start : start + size]


def by_key(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Return the values of each key, in the order in which they come.

    >>> by_key([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    values: dict[K, list[T]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values
