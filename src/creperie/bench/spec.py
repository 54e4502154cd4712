"""From what a user writes to a benchmark: a catalog name, a folder that creperie wrote, or `format:path`."""

from __future__ import annotations

from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.storage import MANIFEST_FILE, load_folder
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


def load(spec: str | Path, *, images: str | Path | None = None) -> Benchmark:
    """Load a benchmark.

    `images` is the folder, zip, tar or Parquet file that holds the images, where the benchmark does not bring them.
    """
    from creperie.bench.catalog import find_installed
    from creperie.bench.formats import find_format, read_format

    text = str(spec)
    if not is_file_name(text):
        shown = ascii(text)[1:60] + "…"
        raise UsageError("this is no name that a file can have", where=shown, hint="name a folder or FORMAT:PATH")
    store = open_store(str(images)) if images is not None else None
    if (Path(text) / MANIFEST_FILE).is_file():
        return load_folder(text, images=store)
    name, colon, path = text.partition(":")
    if colon and (len(name) > 1):  # one letter before the colon is a drive
        return read_format(find_format(name), path, images=store)
    if Path(text).exists():
        raise UsageError(
            "this is no benchmark that creperie wrote",
            where=text,
            hint=f"say what it is: FORMAT:{text} (`creperie data list` shows the formats), or `creperie data import`",
        )
    return load_folder(find_installed(text), images=store)
