"""From what a user writes to a benchmark: a catalog name, a folder that creperie wrote, or `format:path`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark
from creperie.bench.catalog.places import MANIFEST_FILE, find_installed
from creperie.bench.storage import load_folder
from creperie.bench.stores import open_store
from creperie.core import UsageError

#: Files that `load` reads as tables of captions, with or without the names of their columns.
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")


def is_file_name(text: str) -> bool:
    """Can a file have this name? Some are too long for any, or hold what none may.

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


#: Wherever a benchmark is meant: the benchmark, what `load` takes, or what `from_pandas` takes with plain column names.
BenchmarkSpec = Any


def as_benchmark(bench: BenchmarkSpec) -> Benchmark:
    """Return the benchmark itself, the one that a spec names, or the one made from a data frame or from a list."""
    if isinstance(bench, Benchmark):
        return bench
    if isinstance(bench, (str, Path)):
        return load(bench)
    from creperie.bench.frames import from_objects

    return from_objects(bench)


def load(
    spec: str | Path,
    *,
    images: str | Path | None = None,
    image: str | Sequence[str] = (),
    positive: str | Sequence[str] = (),
    negative: str | Sequence[str] = (),
    subset: str = "",
    id: str = "",
    tag: str | Sequence[str] = (),
) -> Benchmark:
    """Load a benchmark: a catalog name, a folder that creperie wrote, `FORMAT:PATH`, or a table of captions.

    `images` is the folder, zip or Parquet file with the images, where they are not part of the benchmark. For a
    table (.csv, .tsv, .jsonl, .parquet), `positive`, `negative` and so on name its columns: `load("my.csv",
    image="file", positive="caption", negative=["foil", "foil2"])`.
    """
    from creperie.bench.formats import find_format, read_format

    text = str(spec)
    if not is_file_name(text):
        shown = ascii(text)[1:60] + "…"
        raise UsageError("not a valid file name", where=shown, hint="name a folder or FORMAT:PATH")
    store = open_store(str(images)) if images is not None else None
    named = {"image": image, "positive": positive, "negative": negative, "subset": subset, "id": id, "tag": tag}
    if Path(text).is_file() and Path(text).suffix.lower() in TABLE_ENDINGS:
        from creperie.bench.formats.tables import kind_of_file, read_table, roles_of

        bench = read_table(Path(text), kind_of_file(Path(text)), roles_of(**named))
        return bench if store is None else replace(bench, images=store)
    if any(named.values()):
        hint = f"give a file that ends with {', '.join(TABLE_ENDINGS)}"
        raise UsageError("columns are named, but this is not a table", where=text, hint=hint)
    if (Path(text) / MANIFEST_FILE).is_file():
        return load_folder(text, images=store)
    name, colon, path = text.partition(":")
    if colon and (len(name) > 1):  # one letter before the colon is a drive
        return read_format(find_format(name), path, images=store)
    if Path(text).exists():
        from creperie.bench.formats.image_parquet import is_image_parquet

        if is_image_parquet(Path(text)):
            return read_format(find_format("datasets"), text, images=store)
        hint = f"name its format, FORMAT:{text}, or run `creperie data import {text} --format NAME --out DIR`"
        raise UsageError("not a creperie benchmark", where=text, hint=hint)
    return load_folder(find_installed(text), images=store)
