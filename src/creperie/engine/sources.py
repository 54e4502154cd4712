"""Captions from files larger than memory: text, TSV and Parquet.

captions.txt                          one caption per line
cc3m.tsv?text=0&image=1               columns by tabs
shards/*.parquet?text=TEXT&image=URL  columns by name
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from creperie.bench import is_file_name
from creperie.core import UsageError, unknown
from creperie.engine.columns import open_columnar
from creperie.engine.files import listed
from creperie.engine.lines import open_lines
from creperie.engine.pieces import ROWS, Pieces

#: kind → (suffixes, options)
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "parquet": ((".parquet",), ("text", "id", "image")),
    "tsv": ((".tsv",), ("text", "image")),
    "lines": ((".txt",), ()),
}


def open_captions(spec: str, *, size: int = ROWS) -> Pieces:
    """Return the captions of a file, a folder or a pattern as pieces with the columns id, text and image."""
    path, options = split_spec(spec)
    files = listed(path)
    if not files:
        raise UsageError("names no file", where=path, hint="check the pattern or the folder")
    kind = kind_of(files[0])
    if kind is None:
        known = ", ".join(s for suffixes, _ in KINDS.values() for s in suffixes)
        raise UsageError(
            "is not a file of captions that can be streamed",
            where=files[0],
            hint=f"known: {known}; unpack archives and fetch remote files first",
        )
    for name in options:
        if name not in KINDS[kind][1]:
            raise unknown(f"option of {kind} captions", name, KINDS[kind][1], where=spec)
    if kind == "parquet":
        return open_columnar(files, size=size, **options)
    if len(files) > 1:
        raise UsageError(f"names {len(files)} text files", where=path, hint="name one, or Parquet files")
    if kind == "lines":
        return open_lines(files[0], size=size)
    columns = {name: _column(value, name, spec) for name, value in options.items()}
    return open_lines(files[0], size=size, text=columns.get("text", 0), image=columns.get("image"))


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its suffix (lines, tsv or parquet); None if it is another.

    >>> kind_of("cc3m.tsv"), kind_of("notes.doc")
    ('tsv', None)
    """
    return next((kind for kind, (suffixes, _) in KINDS.items() if path.lower().endswith(suffixes)), None)


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Return the path and the options of a spec such as `cc3m.tsv?text=0`; the name of an existing file has no options.

    >>> split_spec("cc3m.tsv?text=0&image=1")
    ('cc3m.tsv', {'text': '0', 'image': '1'})
    """
    path, mark, query = spec.partition("?")
    if not mark or (is_file_name(spec) and Path(spec).exists()) or "=" not in query:
        return spec, {}
    return path, dict(parse_qsl(query, keep_blank_values=True))


def _column(value: str, name: str, spec: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise UsageError(f"{name}={value} is not a column", where=spec, hint="columns of a TSV are counted from 0")
    return int(value)
