"""Captions in text files (one per line, a column of a TSV or a field of JSON lines) and in WebDataset shards (tar files
in which the files of one sample share a name and follow each other), with random access by piece.

Only the byte offsets of the pieces are kept in memory, whatever the size of the file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import pyarrow as pa

from creperie.bench import tar_samples
from creperie.core import DataError, parse_json, unknown
from creperie.engine.files import leave_open, open_at, open_file
from creperie.engine.pieces import ROWS, FilePieces, caption_table

#: Longest line in bytes: a longer one means that the file is not text, or not one caption per line.
LONGEST = 1 << 20


@dataclass(frozen=True)
class Lines(FilePieces):
    """A text file with one caption per line, in pieces.

    `text`, `image` and `id` name the column (counted from zero) or the JSON field of the caption, the image and the id.
    By default the whole line is the caption, there is no image, and the id is the line number.
    """

    text: int | str | None = None
    image: int | str | None = None
    id: str | None = None

    def piece(self, number: int) -> pa.Table:
        first = number * self.size
        file = open_at(self.path, self.starts[number])
        lines = list(islice(file, self.size))
        leave_open(self.path, self.starts[number] + sum(map(len, lines)), file)
        return caption_table([self._row(line, first + k) for k, line in enumerate(lines, 1)])

    def _row(self, line: bytes, number: int) -> tuple[str, str, str | None]:
        where = f"{self.path}:{number}"
        try:
            content = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            raise DataError("is not UTF-8 text", where=where, hint="convert the file to UTF-8") from None
        if number == 1:
            content = content.removeprefix("\ufeff")
        if self.text is None:
            return str(number), content, None
        if isinstance(self.text, str):
            return self._fields(parse_json(content, where), str(number), where)
        assert not isinstance(self.image, str)
        cells = content.split("\t")
        last_column = max(self.text, self.image or 0)
        if len(cells) <= last_column:
            what = f"has {len(cells)} columns, but column {last_column} is needed"
            raise DataError(what, where=where, hint="count columns from 0; tabs separate them")
        return str(number), cells[self.text], None if self.image is None else cells[self.image]

    def _fields(self, record: Any, number: str, where: str) -> tuple[str, str, str | None]:
        """Return the id, the caption and the image of a JSON record. Without a field for ids, the id is `number`;
        without an image, the third value is None.
        """
        names = [name for name in (self.text, self.image, self.id) if isinstance(name, str)]
        if not isinstance(record, dict):
            raise DataError("is not a JSON object", where=where, hint="write one object per line")
        for name in names:
            if name not in record:
                raise unknown("field", name, record, where=where)
        if not isinstance(record[names[0]], str):
            raise DataError(f"{names[0]!r} is not text", where=where, hint="name a field of text: ?text=FIELD")
        image = None if self.image is None else str(record[self.image])
        return str(record[self.id]) if self.id else number, record[names[0]], image


def open_lines(
    path: str,
    *,
    size: int = ROWS,
    text: int | str | None = None,
    image: int | str | None = None,
    id: str | None = None,
) -> Lines:
    """Return a text file of captions as pieces of `size` lines each. The file is read once to find where the pieces
    begin.
    """
    starts: list[int] = []
    position = rows = 0
    for line in _bounded(path):
        if rows % size == 0:
            starts.append(position)
        position += len(line)
        rows += 1
    return Lines(path, tuple(starts), rows, size, text, image, id)


def _bounded(path: str) -> Iterator[bytes]:
    """Yield the lines of a file; raise a DataError for a very long line (`LONGEST` bytes or more)."""
    number = 1
    try:
        with open_file(path) as file:
            while line := file.readline(LONGEST):
                if len(line) == LONGEST:
                    what = f"is a line of more than {LONGEST >> 20} MB"
                    raise DataError(what, where=f"{path}:{number}", hint="name a text file, one caption per line")
                yield line
                number += 1
    except (OSError, EOFError, zlib.error) as e:
        raise DataError(f"cannot be unpacked ({str(e)[:80]})", where=path, hint="fetch it again") from None


# -- WebDataset --------------------------------------------------------------------------------------------------------

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
