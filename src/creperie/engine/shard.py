"""Shards: parts of a job that run independently of each other, as in a SLURM array."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from creperie.core import DataError, UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Part `number` of `count`, counted from one. Shards are contiguous, so that merging them preserves the order."""

    count: int
    number: int

    def range(self, n: int) -> range:
        """Return the indices that belong to this shard if there are `n` elements.

        >>> [list(Shard(3, k).range(8)) for k in (1, 2, 3)]
        [[0, 1], [2, 3, 4], [5, 6, 7]]
        """
        return range(n * (self.number - 1) // self.count, n * self.number // self.count)

    def of(self, things: Sequence[T]) -> Sequence[T]:
        """Return the `things` that belong to this shard. Raise a UsageError if the shard is empty."""
        own = self.range(len(things))
        if not own:
            raise UsageError(f"shard {self} is empty: there are only {len(things)} elements", hint="use fewer shards")
        return things[own.start : own.stop]

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Return the shard written as a text such as `3/16`.

    >>> str(parse_shard("3/16"))
    '3/16'
    """
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a shard", hint="write `shard='3/16'` for the third of sixteen")
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        raise UsageError(f"there is no shard {number} of {count}", hint=f"count from 1/{count} to {count}/{count}")
    return Shard(count, number)


def check_complete(shards: Iterable[tuple[Shard, str, Mapping[str, Any]]]) -> None:
    """Raise a DataError unless the shards belong to one job and each of its shards occurs exactly once.

    `shards` holds (shard, path of its result, description of its job) for each shard.
    """
    places: dict[int, str] = {}
    count = 0
    first: tuple[str, Mapping[str, Any]] | None = None
    for shard, place, job in shards:
        first = first or (place, job)
        if different := ", ".join(sorted(k for k in {*job, *first[1]} if job.get(k) != first[1].get(k))):
            what = f"was computed with different {different} than {first[0]}"
            raise DataError(what, where=place, hint="merge shards of one job")
        if count and shard.count != count:
            raise DataError(
                f"is shard {shard}, but the others are of a job of {count} shards",
                where=place,
                hint="merge shards of one job",
            )
        count = shard.count
        if shard.number in places:
            what = f"is shard {shard}, and so is {places[shard.number]}"
            raise DataError(what, where=place, hint="name every shard once")
        places[shard.number] = place
    missing = [str(k) for k in range(1, count + 1) if k not in places]
    if missing or not count:
        shown = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
        what = f"{len(missing)} of {count} shards are missing: {shown}" if count else "there are no shards"
        raise DataError(what, hint="run the missing shards with `shard=`, then merge again")
