"""Loading a benchmark from a catalog name, a folder that creperie wrote, `format:path`, a table or a data frame, or
only a part of it: some of its subsets, with a limited number of items each.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench.benchmark import Benchmark, contained_benchmark
from creperie.bench.catalog.places import MANIFEST_FILE, find_installed
from creperie.bench.roles import Roles
from creperie.bench.storage import load_folder
from creperie.bench.stores import open_store
from creperie.core import UsageError, option, seeded, with_options

#: Endings of the files that `load` reads as tables of captions.
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")


def is_file_name(text: str) -> bool:
    """Return whether a text can be a file name: it is not too long and has no invalid characters.

    >>> is_file_name("out/mine"), is_file_name("a\\0b"), is_file_name("x" * 5000)
    (True, False, False)
    """
    try:
        Path(text).lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return True
    except (OSError, ValueError):
        return False
    return True


#: The type of arguments that mean a benchmark: a Benchmark, what `load` takes, or what `from_pandas` takes.
BenchmarkSpec = Any


def as_benchmark(bench: BenchmarkSpec) -> Benchmark:
    """Return `bench` itself if it is a benchmark. If it is a result that holds a benchmark, return that benchmark. Pass
    anything else to `load`.
    """
    return contained_benchmark(bench) or load(bench)


@with_options(roles=Roles)
def load(spec: BenchmarkSpec, *, images: str | Path | None = None, roles: Roles) -> Benchmark:
    """Load a benchmark. `spec` is its name in the catalog, a folder that creperie wrote, `FORMAT:PATH`, a table of
    captions, or anything that `from_pandas` takes.

    `images` is the folder, zip or Parquet file with the images, if they are not part of the benchmark. For a table
    (.csv, .tsv, .jsonl, .parquet), the fields of `Roles` are keywords that name its columns: `load("my.csv",
    image="file", positive="caption", negative=["foil", "foil2"])`.
    """
    if not isinstance(spec, (str, Path)):
        from creperie.bench.frames import from_pandas

        return from_pandas(spec, images=images, roles=roles)
    from creperie.bench.formats.registry import find_format, read_format

    text = str(spec)
    if not is_file_name(text):
        shown = ascii(text)[1:60] + "…"
        raise UsageError("not a valid file name", where=shown, hint="name a folder or FORMAT:PATH")
    store = open_store(str(images)) if images is not None else None
    if Path(text).is_file() and Path(text).suffix.lower() in TABLE_ENDINGS:
        from creperie.bench.formats.tables import kind_of_file, read_table

        bench = read_table(Path(text), kind_of_file(Path(text)), roles)
        return bench if store is None else replace(bench, images=store)
    if not Path(text).exists() and (Path(text).suffix.lower() in TABLE_ENDINGS or Path(text).parent != Path()):
        if ":" not in text:
            raise UsageError("there is no such file or folder", where=text, hint="check the path")
    elif roles != Roles():
        raise UsageError(
            "column names were given, but this is not a table",
            where=text,
            hint=f"give a file that ends with {', '.join(TABLE_ENDINGS)}",
        )
    if (Path(text) / MANIFEST_FILE).is_file():
        return load_folder(text, images=store)
    name, colon, path = text.partition(":")
    if colon and len(name) > 1:  # a single letter before the colon is a Windows drive
        return read_format(find_format(name), path, images=store)
    if Path(text).exists():
        from creperie.bench.formats.with_images import is_image_parquet

        if is_image_parquet(Path(text)):
            return read_format(find_format("datasets"), text, images=store)
        if (Path(text) / "run.json").is_file():
            raise UsageError("is a run, not a benchmark", where=text, hint="read it with `creperie.load_run`")
        raise UsageError(
            "not a creperie benchmark",
            where=text,
            hint=f"name its format, FORMAT:{text}, or run `creperie data import {text} --format NAME --out DIR`",
        )
    return load_folder(find_installed(text), images=store)


# -- a part of a benchmark ---------------------------------------------------------------------------------------------


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
        """Return a copy of the benchmark with the name and the licence in these options. Where an option is not given,
        the copy keeps the benchmark's own value.
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
