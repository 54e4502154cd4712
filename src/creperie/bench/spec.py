"""From what a user writes to a benchmark: a catalog name, a folder that creperie wrote, or `format:path`."""

from __future__ import annotations

from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.catalog.places import MANIFEST_FILE
from creperie.bench.storage import load_folder
from creperie.bench.stores import open_store
from creperie.core import UsageError


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


#: Wherever a benchmark is meant: the benchmark, or what `load` takes.
BenchmarkSpec = Benchmark | str | Path


def as_benchmark(bench: BenchmarkSpec) -> Benchmark:
    """The benchmark itself, or the one that a spec names."""
    return bench if isinstance(bench, Benchmark) else load(bench)


def load(spec: str | Path, *, images: str | Path | None = None) -> Benchmark:
    """Load a benchmark: a catalog name, a folder that creperie wrote, or `FORMAT:PATH`.

    `images` is the folder, zip, tar or Parquet file with the images, where they are not part of the benchmark.
    """
    from creperie.bench.catalog.places import find_installed
    from creperie.bench.formats import find_format, read_format

    text = str(spec)
    if not is_file_name(text):
        shown = ascii(text)[1:60] + "…"
        raise UsageError("not a valid file name", where=shown, hint="name a folder or FORMAT:PATH")
    store = open_store(str(images)) if images is not None else None
    if (Path(text) / MANIFEST_FILE).is_file():
        return load_folder(text, images=store)
    name, colon, path = text.partition(":")
    if colon and (len(name) > 1):  # one letter before the colon is a drive
        return read_format(find_format(name), path, images=store)
    if Path(text).exists():
        kind = Path(text).suffix[1:] if Path(text).suffix in (".csv", ".tsv", ".jsonl", ".parquet") else "FORMAT"
        hint = f"name its format, {kind}:{text}, or run `creperie data import {text} --out DIR`"
        raise UsageError("not a creperie benchmark", where=text, hint=hint)
    return load_folder(find_installed(text), images=store)
