"""How a file was written, so that it can be written again: its text, with holes where the items' content stood.

Most records of a file are written alike, so their *form* is kept once: literal pieces of text, and holes named by a
field. A field whose text cannot be made again from the item (a set in another order, a number with zeros at its end)
keeps its own text, used as long as the item still says the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, Self

from creperie.bench.formats.record import Record
from creperie.core import DataError

#: A piece of a form: text; [field], a hole; [field, digest, text], a hole with a text of its own; [], all of a record.
Piece = str | list[str]
Fields = Mapping[str, Any]


class Style(Protocol):
    """How a kind of file is read and written."""

    @property
    def head(self) -> str: ...
    @property
    def gap(self) -> str: ...
    @property
    def tail(self) -> str: ...
    def scan(self, text: str, file: str) -> list[Record]: ...
    def fitted(self, text: str) -> Self: ...
    def details(self) -> dict[str, Any]: ...
    def encode(self, value: Any) -> str: ...
    def spans(self, record: Record) -> list[tuple[str, int, int]]: ...
    def record(self, fields: Fields) -> str: ...


def layout_of(
    path: str, subset: str, style: Style, records: Sequence[Record], made: Sequence[Fields | None]
) -> dict[str, Any]:
    """The layout of one file. `made` has, for each record, the fields its item can make again; None for no item."""
    text = records[0].text if records else ""
    layout: dict[str, Any] = {"path": path, "subset": subset, "style": style.details()}
    if not records:
        return layout
    layout["head"] = text[: records[0].start]
    layout["tail"] = text[records[-1].end :]
    gaps = [text[a.end : b.start] for a, b in pairwise(records)]
    layout["gap"] = max(set(gaps), key=gaps.count) if gaps else style.gap
    layout["gaps"] = {str(i + 1): gap for i, gap in enumerate(gaps) if gap != layout["gap"]}
    layout["ids"] = [record.key for record in records]
    layout["skipped"] = {str(i): text[r.start : r.end] for i, r in enumerate(records) if made[i] is None}
    numbers: dict[tuple[Any, ...], int] = {}
    forms: list[list[Piece]] = []
    which: list[int] = []
    for record, fields in zip(records, made, strict=True):
        if fields is None:
            which.append(0)
            continue
        form = _form(record, fields, style)
        key = tuple(piece if isinstance(piece, str) else tuple(piece) for piece in form)
        if key not in numbers:
            numbers[key] = len(forms)
            forms.append(form)
        which.append(numbers[key])
    layout["forms"] = forms
    if len(forms) > 1:
        layout["form"] = which
    return layout


def _form(record: Record, fields: Fields, style: Style) -> list[Piece]:
    if style.record(fields) == record.text[record.start : record.end]:
        return [[]]
    pieces: list[Piece] = []
    position = record.start
    for name, start, end in style.spans(record):
        if name not in fields:
            continue
        encoded = style.encode(fields[name])
        if position < start:
            pieces.append(record.text[position:start])
        raw = record.text[start:end]
        pieces.append([name] if encoded == raw else [name, _digest(encoded), raw])
        position = end
    if position < record.end:
        pieces.append(record.text[position : record.end])
    return pieces


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def files_of(layout: Mapping[str, Any], format: str) -> list[Mapping[str, Any]]:
    """The layouts of the files of a benchmark that was read from this format; none for any other benchmark."""
    files = layout.get("files", []) if layout.get("format") == format else []
    right = isinstance(files, list) and all(
        isinstance(f, Mapping) and isinstance(f.get("path"), str) and isinstance(f.get("subset"), str) for f in files
    )
    if not right:
        raise DataError("the layout of its files cannot be used", where=format, hint="load the published files again")
    return list(files)


def text_of_file(layout: Mapping[str, Any], style: Style, made: Mapping[str, Fields]) -> str | None:
    """The file again, with the items that are still there; None when none of its items is.

    Records that were not items come back only if all items of the file do; new items are appended in the plain style.
    """
    try:
        return _text_of_file(layout, style, made)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as e:
        what = f"its layout cannot be used ({type(e).__name__}: {e})"
        raise DataError(what, where=layout["path"][:200], hint="load the published files again") from None


def _text_of_file(layout: Mapping[str, Any], style: Style, made: Mapping[str, Fields]) -> str | None:
    ids: list[str] = layout.get("ids", [])
    skipped: Mapping[str, str] = layout.get("skipped", {})
    which: list[int] = layout.get("form") or [0] * len(ids)
    whole = all(id_ in made for i, id_ in enumerate(ids) if str(i) not in skipped)
    parts: list[str] = []
    for i, id_ in enumerate(ids):
        if str(i) in skipped:
            record = skipped[str(i)] if whole else None
        else:
            record = _filled(layout["forms"][which[i]], made[id_], style) if id_ in made else None
        if record is not None:
            parts += ([layout["gaps"].get(str(i), layout["gap"])] if parts else []) + [record]
    known = set(ids)
    for id_, fields in made.items():
        if id_ not in known:
            parts += ([layout.get("gap", style.gap)] if parts else []) + [style.record(fields)]
    if not parts:
        return None
    return str(layout.get("head", style.head)) + "".join(parts) + str(layout.get("tail", style.tail))


def _filled(form: Sequence[Piece], fields: Fields, style: Style) -> str:
    done: list[str] = []
    for piece in form:
        if isinstance(piece, str):
            done.append(piece)
            continue
        if not piece:
            done.append(style.record(fields))
            continue
        encoded = style.encode(fields[piece[0]])
        done.append(piece[2] if len(piece) == 3 and piece[1] == _digest(encoded) else encoded)
    return "".join(done)
