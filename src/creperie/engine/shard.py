"""Shards: a share of the work for each of several jobs that know nothing of each other, as in a SLURM array."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from creperie.core import DataError, UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Share `number` of `count`, counted from one. Shares are contiguous, so that order survives a merge."""

    count: int
    number: int

    def range(self, n: int) -> range:
        """Which of n things are its own.

        >>> [list(Shard(3, k).range(8)) for k in (1, 2, 3)]
        [[0, 1], [2, 3, 4], [5, 6, 7]]
        """
        return range(n * (self.number - 1) // self.count, n * self.number // self.count)

    def of(self, things: Sequence[T]) -> Sequence[T]:
        own = self.range(len(things))
        return things[own.start : own.stop]

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """
    >>> str(parse_shard("3/16"))
    '3/16'
    """
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a shard", hint="write `shard=` 3/16 for the third of sixteen")
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        raise UsageError(f"there is no shard {number} of {count}", hint=f"count from 1/{count} to {count}/{count}")
    return Shard(count, number)


def check_complete(shards: Iterable[tuple[Shard, str]]) -> None:
    """Refuse gaps and overlaps. Each shard comes with its place, for the message."""
    found: dict[int, str] = {}
    count = 0
    for shard, place in shards:
        if count and shard.count != count:
            raise DataError(f"is shard {shard}, others are of {count}", where=place, hint="merge shards of one cut")
        count = shard.count
        if shard.number in found:
            what = f"is shard {shard}, and so is {found[shard.number]}"
            raise DataError(what, where=place, hint="name every shard once")
        found[shard.number] = place
    missing = [str(k) for k in range(1, count + 1) if k not in found]
    if missing or not count:
        shown = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
        what = f"{len(missing)} of {count} shards are missing: {shown}" if count else "there are no shards"
        raise DataError(what, hint="make them with `shard=`, then merge again")
