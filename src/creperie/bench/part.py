"""Loading a part of a benchmark: some of its subsets, with a limited number of items each."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace

import numpy as np

from creperie.bench.benchmark import Benchmark
from creperie.bench.spec import BenchmarkSpec, load
from creperie.core import UsageError, option, seeded


@dataclass(frozen=True)
class ImageOptions:
    """Options that say where the images of a benchmark are."""

    images: str | None = option(None, "Where the images are: a folder, zip or Parquet file.", metavar="DIR")


@dataclass(frozen=True)
class PartOptions(ImageOptions):
    """Options that select a part of a benchmark."""

    subsets: tuple[str, ...] = option(
        (), "Only these subsets, by comma or repeated.", flags="--subset", metavar="NAMES"
    )
    limit: float | None = option(
        None, "At most N items per subset, or a share such as 0.1: the first, or drawn by a seed.", metavar="N"
    )

    def __post_init__(self) -> None:
        if self.limit is not None and not (0 < self.limit < 1 or (self.limit >= 1 and self.limit == int(self.limit))):
            what = f"`limit={self.limit:g}` is neither a number of items nor a share"
            raise UsageError(what, hint="write 100 for a hundred items of each subset, or 0.1 for a tenth")
        if self.limit is not None and self.limit >= 1:
            object.__setattr__(self, "limit", int(self.limit))

    @property
    def typed(self) -> str:
        """The options for images and subsets as text, to be appended to a suggested command. The limit is left out, so
        that the command uses all items.

        >>> PartOptions(subsets=("swap", "add"), limit=9).typed
        ' --subset swap,add'
        """
        given = {"--images": self.images, "--subset": ",".join(self.subsets)}
        return "".join(f" {flag} {shlex.quote(value)}" for flag, value in given.items() if value)


@dataclass(frozen=True)
class DrawOptions(PartOptions):
    """Options that select a part of a benchmark, possibly at random."""

    seed: int | None = option(None, "Seed for drawing `limit=` items and for the intervals (0).")


@dataclass(frozen=True)
class NamingOptions:
    """Options for the name and the licence of a new benchmark."""

    name: str = option("", "The benchmark's name (default: that of its source).")
    licence: str = option(
        "", "The benchmark's licence, such as CC-BY-4.0.", flags="--licence --license", metavar="LICENCE"
    )

    def named(self, bench: Benchmark) -> Benchmark:
        """Return a copy of the benchmark with the name and the licence in these options. An option that is not given
        leaves the benchmark's own value.
        """
        title = "" if self.name else bench.info.title  # of the published set, which a part under another name is not
        info = replace(bench.info, licence=self.licence or bench.info.licence, title=title)
        return replace(bench, name=self.name or bench.name, info=info)


def load_part(spec: BenchmarkSpec, part: PartOptions, seed: int | None = None) -> Benchmark:
    """Load a benchmark and return the part of it that the options select."""
    bench = spec if isinstance(spec, Benchmark) else load(spec, images=part.images)
    if part.limit:  # before the subsets, so that a subset has the same items when selected alone
        bench = limited(bench, part.limit, seed)
    return bench.only(part.subsets) if part.subsets else bench


def limited(bench: Benchmark, limit: float, seed: int | None = None) -> Benchmark:
    """Return at most `limit` items of every subset. These are the first ones or, with a seed, a random sample in the
    original order.

    A limit below 1 is the fraction of each subset to keep, rounded up to whole items.
    """
    if seed is None and limit >= 1:
        return bench.head(int(limit))
    rng = seeded(seed or 0)
    codes = bench.column("subset").combine_chunks().dictionary_encode().indices.to_numpy()
    keep = np.zeros(len(bench), bool)
    for code in range(int(codes.max(initial=-1)) + 1):
        own = np.flatnonzero(codes == code)
        most = int(limit) if limit >= 1 else math.ceil(limit * len(own))
        keep[(own if seed is None else rng.permutation(own))[:most]] = True
    return bench.filter(keep, why=f"limit {limit:g} a subset" + ("" if seed is None else f", seed {seed}"))
