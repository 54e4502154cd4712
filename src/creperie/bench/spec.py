"""Loading a benchmark from a catalog name, a folder that creperie wrote, `format:path`, a table or a data frame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, contained_benchmark
from creperie.bench.catalog.places import MANIFEST_FILE, find_installed
from creperie.bench.roles import Roles
from creperie.bench.storage import load_folder
from creperie.bench.stores import open_store
from creperie.core import UsageError, with_options

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
    """Return a benchmark unchanged. For a result with a benchmark, return that benchmark. For anything else, return
    what `load` returns.
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
