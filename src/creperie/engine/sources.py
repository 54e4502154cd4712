"""Captions from files of one format, which may be remote (hf://, s3://) and larger than memory.

captions.txt, captions.txt.gz, .zst   one caption per line
cc3m.tsv?text=0&image=1               columns separated by tabs
captions.jsonl?text=caption&image=url fields of JSON lines
shards/*.parquet?text=TEXT&image=URL  columns by name; an image column may hold pictures
shards/*.tar?text=json.caption        WebDataset
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from creperie.bench import is_file_name
from creperie.core import UsageError, query_options, unknown
from creperie.engine.columns import open_columnar
from creperie.engine.files import listed
from creperie.engine.lines import open_lines, open_samples
from creperie.engine.pieces import ROWS, Pieces

#: kind → (suffixes, options)
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "parquet": ((".parquet",), ("text", "id", "image")),
    "tsv": ((".tsv",), ("text", "image")),
    "json": ((".jsonl", ".ndjson"), ("text", "id", "image")),
    "tar": ((".tar",), ("text",)),
    "lines": ((".txt",), ()),
}


@dataclass(frozen=True)
class Joined(Pieces):
    """Several sources joined into one. If the files have ids of their own (`given`), these are kept. Otherwise each id
    is prefixed with the number of its source.
    """

    parts: tuple[Pieces, ...]
    given: bool = False

    @property
    def counts(self) -> Sequence[int]:
        return [count for part in self.parts for count in part.counts]

    def piece(self, number: int) -> pa.Table:
        for k, part in enumerate(self.parts):
            if number < len(part):
                table = part.piece(number)
                if self.given:
                    return table
                ids = pa.array([f"{k}.{id_}" for id_ in table.column("id").to_pylist()], pa.string())
                return table.set_column(0, "id", ids)
            number -= len(part)
        raise IndexError(f"there is no piece {number}")


def open_captions(spec: str, *, size: int = ROWS) -> Pieces:
    """Return the captions in the files that `spec` names, in pieces with the columns id, text and image.

    Each line of `spec` is a file, a folder or a pattern.
    """
    if len(several := spec.splitlines()) > 1 and not Path(spec).exists():
        return Joined(tuple(open_captions(one, size=size) for one in several))
    path, options = split_spec(spec)
    files = listed(path)
    if not files:
        raise UsageError("matches no file", where=path, hint="check the pattern or the folder")
    chosen = [name for name in files if kind_of(name)]
    kinds = sorted({str(kind_of(name)) for name in chosen})
    if len(kinds) != 1:
        endings = ", ".join(s for suffixes, _ in KINDS.values() for s in suffixes)
        what = f"names {' and '.join(kinds)} files" if kinds else "is not a file of captions that can be streamed"
        hint = f"name files of one kind: {endings}, compressed by .gz or .zst or not"
        raise UsageError(what, where=path if kinds else files[0], hint=hint)
    (kind,) = kinds
    known = KINDS[kind][1]
    for name in options:
        if not known:
            what = "a text file of one caption per line has no options"
            raise UsageError(what, where=spec, hint=f"leave out ?{name}=")
        if name not in known:
            raise unknown(f"option of {kind} captions", name, known, where=spec)
    if kind == "parquet":
        return open_columnar(chosen, size=size, **options)
    parts = tuple(_open_text(name, kind, options, spec, size) for name in chosen)
    return Joined(parts, "id" in options) if len(parts) > 1 else parts[0]


def _open_text(path: str, kind: str, options: Mapping[str, str], spec: str, size: int) -> Pieces:
    if kind == "tar":
        return open_samples(path, size=size, **options)
    if kind == "lines":
        return open_lines(path, size=size)
    if kind == "json":
        return open_lines(path, size=size, **{"text": "caption", **options})
    for name, value in options.items():
        if not value.isascii() or not value.isdigit():
            what = f"{name}={value} is not a column"
            raise UsageError(what, where=spec, hint="columns of a TSV are counted from 0")
    columns = {name: int(value) for name, value in options.items()}
    return open_lines(path, size=size, text=columns.get("text", 0), image=columns.get("image"))


def kind_of(path: str) -> str | None:
    """Return the kind of a file, judged by its suffix. Return None if the suffix is unknown. A suffix for compression
    is ignored.

    >>> kind_of("cc3m.tsv.gz"), kind_of("notes.doc")
    ('tsv', None)
    """
    plain = path.lower().removesuffix(".gz").removesuffix(".zst")
    kind = next((kind for kind, (suffixes, _) in KINDS.items() if plain.endswith(suffixes)), None)
    return None if kind in ("parquet", "tar") and plain != path.lower() else kind  # these need random access


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Return the path and the options of a spec such as `cc3m.tsv?text=0`. The name of an existing file is never split.

    >>> split_spec("cc3m.tsv?text=0&image=1")
    ('cc3m.tsv', {'text': '0', 'image': '1'})
    """
    path, mark, query = spec.partition("?")
    if not mark or (is_file_name(spec) and Path(spec).exists()) or "=" not in query:
        return spec, {}
    return path, query_options(query, spec)
