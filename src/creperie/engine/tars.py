"""Captions in WebDataset shards: tar files in which the files of one sample share a name and follow each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO

import pyarrow as pa

from creperie.bench import tar_samples
from creperie.core import DataError
from creperie.engine.files import open_file
from creperie.engine.pieces import ROWS, FilePieces, caption_table

PICTURES = ("jpg", "jpeg", "png", "webp", "gif", "bmp")


@dataclass(frozen=True)
class Samples(FilePieces):
    """Captions in a tar file, in pieces. `text` is the suffix of the caption file (txt), or its suffix and a field
    (json.caption).
    """

    text: str = "txt"

    def piece(self, number: int) -> pa.Table:
        with open_file(self.path) as file:
            file.seek(self.starts[number])
            found = islice(samples_of(file, self.path, self.text), self.size)
            return caption_table([(key, self._caption(data, key), image) for key, _, data, image in found])

    def _caption(self, data: bytes | None, key: str) -> str:
        where = f"{self.path}/{key}"
        if data is None:
            hint = "name the suffix of the files that hold captions: ?text=SUFFIX"
            raise DataError(f"has no .{self.text.partition('.')[0]} file", where=where, hint=hint)
        try:
            field = self.text.partition(".")[2]
            if not field:
                return data.decode("utf-8")
            document = json.loads(data)
            if isinstance(document, dict) and isinstance(document.get(field), str):
                return str(document[field])
        except ValueError as e:
            what = f"the caption cannot be read ({type(e).__name__}: {str(e)[:60]})"
            raise DataError(what, where=where, hint="name another: ?text=SUFFIX or ?text=json.FIELD") from None
        fields = document.items() if isinstance(document, dict) else ()
        texts = [name for name, value in fields if isinstance(value, str)]
        what = f"the field {field!r} is not text"
        raise DataError(what, where=where, hint=f"name a field of text: {', '.join(texts)}" if texts else "")


def samples_of(file: IO[bytes], path: str, text: str) -> Iterator[tuple[str, int, bytes | None, str | None]]:
    """Yield each sample of a tar file: its name, the position of its first byte, the content of its caption file, and
    the name of its image.

    `text` names the caption as in `Samples`.
    """
    for key, members, read in tar_samples(path, file):
        suffixes = {member.name[len(key) + 1 :].lower(): member for member in members}
        caption = suffixes.get(text.partition(".")[0])
        image = next((member.name for suffix, member in reversed(suffixes.items()) if suffix in PICTURES), None)
        yield key, members[0].offset, read(caption) if caption else None, image


def open_samples(path: str, *, size: int = ROWS, text: str = "txt") -> Samples:
    """Return a tar file as a source of pieces. The file is read once to find where the pieces begin."""
    starts, rows = [], 0
    with open_file(path) as file:
        for _, first, _, _ in samples_of(file, path, text):
            if rows % size == 0:
                starts.append(first)
            rows += 1
    return Samples(path, tuple(starts), rows, size, text)
