"""Random numbers that are the same on every machine: integers from PCG64's raw stream, nothing else."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")
_BLOCK = 1024


def key_of(name: str) -> int:
    """Return a number computed from a name, for use in the key of `Dice`."""
    return zlib.crc32(name.encode())


class Dice:
    """A stream of random integers, determined by its `key`.

    >>> dice, again, other = Dice(0, 5), Dice(0, 5), Dice(1, 5)
    >>> rolls = [dice.roll(6) for _ in range(20)]
    >>> rolls == [again.roll(6) for _ in range(20)], rolls == [other.roll(6) for _ in range(20)]
    (True, False)
    """

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))
        self._block: list[int] = []

    def _refill(self) -> list[int]:
        self._block = (self._bits.random_raw(_BLOCK) >> np.uint64(32)).tolist()
        return self._block

    def roll(self, n: int) -> int:
        """Return a random integer from 0 to n − 1."""
        block = self._block or self._refill()
        return (block.pop() * n) >> 32

    def coin(self) -> bool:
        return self.roll(2) == 1

    def chance(self, percent: int) -> bool:
        return self.roll(100) < percent

    def between(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + self.roll(high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.roll(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        rest = list(options)
        for i in range(len(rest) - 1, 0, -1):
            j = self.roll(i + 1)
            rest[i], rest[j] = rest[j], rest[i]
        return rest

    def tape(self) -> Tape:
        """Return the next numbers of the stream as a tape, which can be replayed any number of times."""
        return Tape([self.roll(1 << 32) for _ in range(256)])


class UnfitError(Exception):
    """Raised when random choices do not lead to usable scenes; the caller then draws again."""


class TapeEnd(UnfitError):  # noqa: N818
    """Raised when all numbers of a tape have been used."""


class Tape(Dice):
    """Recorded random numbers. If two scenes are laid out with the same tape, they differ only in the things and
    relations that differ between their drafts.
    """

    def __init__(self, values: list[int]) -> None:
        self._values = values
        self._block = list(values)

    def _refill(self) -> list[int]:
        raise TapeEnd

    def replay(self) -> Tape:
        """Return a tape with the same numbers, rewound to its beginning."""
        return Tape(self._values)
