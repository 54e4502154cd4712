"""Any table with a column of captions: CSV, TSV, JSON Lines, Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, Skipped, Step, check_keys
from creperie.bench.formats.chunks import Chunk, Table, open_table
from creperie.bench.formats.columns import Columns
from creperie.bench.formats.format import Files, Format, Source
from creperie.bench.formats.native import is_native, read_native, write_delimited, write_jsonl, write_parquet
from creperie.bench.formats.record import kind_of, tag_of
from creperie.bench.formats.textfile import file_digest, stem_of
from creperie.bench.item import TAG_PREFIX, Tag
from creperie.errors import DataError, UsageError, unknown
from creperie.progress import Progress, silent

KINDS = ("csv", "tsv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_GUESSES = {
    "image": r"image|images|filename|file_name|file|image_?file|image_?path|filepath|img",
    "positive": r"(positive|caption|true_caption|pos)(_?\d+)?",
    "negative": r"(negative|negative_caption|false_caption|foil|neg|neg_caption)(_?\d+)?",
    "subset": r"subset|kind|category",
    "id": r"id",
}
_OPTIONS = ("image", "positive", "negative", "subset", "id", "tag", "delimiter", "quotes")


@dataclass(frozen=True)
class Roles:
    """Which columns hold what. Several columns may hold captions; two images may have a caption each."""

    image: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    subset: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """All columns, each once."""
        return list(dict.fromkeys(self.image + self.positive + self.negative + self.subset + self.id + self.tag))


def kind_of_file(path: Path) -> str:
    """The kind of table a file is, by its ending."""
    kind = "parquet" if path.suffix.lower() == ".parquet" else _ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise UsageError("its ending does not say what it is", where=str(path), mend=f"add --format {'|'.join(KINDS)}")
    return kind


def read_table(
    path: Path,
    kind: str,
    roles: Roles | None = None,
    *,
    delimiter: str = "",
    quotes: bool = True,
    progress: Progress = silent,
) -> Benchmark:
    """A benchmark from a table. Without roles, columns are taken by their names, if these are plain enough."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    table = open_table(path, kind, delimiter=delimiter, quotes=quotes)
    if (roles is None or roles == Roles()) and is_native(table.names, kind):
        return read_native(path, kind, table)
    found = resolve(roles or Roles(), table)
    columns = Columns(typed=table.text)
    skipped: list[Skipped] = []
    with progress("read", None, "rows") as advance:
        for chunk in table.chunks(found.columns):
            _add_rows(chunk, table, found, columns, skipped)
            advance(len(chunk.places))
    if not columns.count:
        raise DataError("holds no row with a caption", where=str(path))
    step = Step("import", {"format": kind, "columns": _said(found), "sha256": {path.name: file_digest(path)}})
    bench = Benchmark(
        path.stem, columns.table(), info=Info(title=path.stem), provenance=(step,), skipped=tuple(skipped)
    )
    check_keys(bench)
    return bench


# -- which column is what --------------------------------------------------------------------------------------------


def resolve(roles: Roles, table: Table) -> Roles:
    """The roles with columns that exist: those given, else those whose names say what they are."""
    given = {role: _existing(getattr(roles, role), role, table) for role in Roles.__dataclass_fields__}
    if not given["positive"] and not given["negative"]:
        taken = {name for names in given.values() for name in names}
        for role, pattern in _GUESSES.items():
            if not given[role]:
                names = [n for n in table.names if re.fullmatch(pattern, n.lower()) and n not in taken]
                given[role] = tuple(names if role in ("positive", "negative") else names[:1])
        if not given["tag"]:
            given["tag"] = tuple(n for n in table.names if n.startswith(TAG_PREFIX))
    if not given["positive"]:
        shown = ", ".join(n[:40] for n in table.names[:30])
        raise UsageError(
            "no column is named as the true caption",
            where=str(table.path),
            mend=f"--positive COLUMN; there are: {shown}",
        )
    for role in ("subset", "id"):
        if len(given[role]) > 1:
            raise UsageError(f"--{role} takes one column, not {len(given[role])}", where=str(table.path))
    found = Roles(**given)
    _check_shape(found, table)
    return found


def _existing(names: Sequence[str], role: str, table: Table) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        parts = [name] if name in table.names else [part.strip() for part in name.split(",")]
        for part in parts:
            if part == "*" and role == "tag":
                found += [n for n in table.names if n not in found]
            elif part not in table.names:
                raise unknown("column", part, [n[:60] for n in table.names], where=str(table.path))
            else:
                found.append(part)
    return tuple(dict.fromkeys(found))


def _check_shape(roles: Roles, table: Table) -> None:
    if len(roles.image) > 2 or (len(roles.image) == 2 and (len(roles.positive) != 2 or roles.negative)):
        raise UsageError(
            f"{len(roles.image)} image columns for {len(roles.positive)} true and {len(roles.negative)} false captions",
            where=str(table.path),
            mend="give one image column, or two with one true caption each",
        )


def _said(roles: Roles) -> dict[str, list[str]]:
    return {role: list(getattr(roles, role)) for role in Roles.__dataclass_fields__ if getattr(roles, role)}


# -- rows into items -------------------------------------------------------------------------------------------------


def _add_rows(chunk: Chunk, table: Table, roles: Roles, columns: Columns, skipped: list[Skipped]) -> None:
    values = chunk.columns
    tags = [(name.removeprefix(TAG_PREFIX), values[name]) for name in roles.tag]
    subsets = values[roles.subset[0]] if roles.subset else None
    ids = values[roles.id[0]] if roles.id else None
    missing = ("", None) if table.text else (None,)
    paired = len(roles.image) == 2
    first = columns.count + len(skipped)
    for i, place in enumerate(chunk.places):
        id_ = str(first + i) if ids is None else _key(ids[i], roles.id[0], table, place)
        subset = stem_of(table.path.name) if subsets is None else _subset(subsets[i], roles.subset[0], table, place)
        images = _texts(values, roles.image, i, missing, table, place)
        positives = _texts(values, roles.positive, i, missing, table, place)
        negatives = _texts(values, roles.negative, i, missing, table, place)
        reason = _lack(roles, subset, images, positives, negatives)
        if reason:
            skipped.append(Skipped(subset, id_, reason))
            continue
        match = [True, False, False, True] if paired else [True] * len(positives) + [False] * len(negatives)
        own: dict[str, Tag | None] = {name: tag_of(column[i]) for name, column in tags}
        columns.add(id_, subset, images, positives + negatives, match, own)


def _lack(roles: Roles, subset: str, images: list[str], positives: list[str], negatives: list[str]) -> str:
    """Why a row is no item; empty when it is one."""
    if roles.subset and not subset:
        return f"no subset in {roles.subset[0]!r}"
    if len(images) != len(roles.image):
        return f"no image in {', '.join(roles.image)}" if len(images) < len(roles.image) else "more than one image"
    if not positives or (len(roles.image) == 2 and len(positives) != 2):
        return f"no true caption in {', '.join(roles.positive)}"
    return f"no false caption in {', '.join(roles.negative)}" if roles.negative and not negatives else ""


def _texts(
    values: dict[str, list[Any]], names: tuple[str, ...], row: int, missing: tuple[Any, ...], table: Table, place: int
) -> list[str]:
    """The texts of a row in these columns, lists of texts opened, missing ones left out."""
    texts: list[str] = []
    for name in names:
        value = values[name][row]
        for text in value if isinstance(value, list) else (value,):
            if text in missing:
                continue
            if not isinstance(text, str):
                raise DataError(f"{name!r} is {kind_of(text)}, expected text", where=table.where(place))
            texts.append(text if text.isascii() else _unicode(text, name, table, place))
    return texts


def _unicode(text: str, name: str, table: Table, place: int) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{name!r} holds half of a surrogate pair", where=table.where(place)) from None
    return text


def _key(value: Any, name: str, table: Table, place: int) -> str:
    if type(value) is int or (isinstance(value, str) and value):
        return _unicode(str(value), name, table, place)
    raise DataError(
        f"{name!r} is {kind_of(value) if value != '' else 'empty'}, expected an id", where=table.where(place)
    )


def _subset(value: Any, name: str, table: Table, place: int) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        raise DataError(f"{name!r} is {kind_of(value)}, expected text", where=table.where(place))
    return _unicode(str(value), name, table, place)


# -- the formats -----------------------------------------------------------------------------------------------------


def _reader(kind: str) -> Callable[[Source], Benchmark]:
    def read(source: Source) -> Benchmark:
        names = Roles.__dataclass_fields__
        roles = Roles(**{r: (source.options[r],) for r in names if source.options.get(r)})
        quotes = source.choice("quotes", ("yes", "no")) == "yes"
        return read_table(source.path, kind, roles, delimiter=source.options.get("delimiter", ""), quotes=quotes)

    return read


def _format(kind: str, title: str, about: str, write: Callable[[Benchmark], Files]) -> Format:
    return Format(kind, title, about, _reader(kind), write, options=_OPTIONS)


FORMATS = (
    _format("csv", "CSV", "any table with a column of captions", lambda bench: write_delimited(bench, "csv")),
    _format("tsv", "TSV", "any table with a column of captions", lambda bench: write_delimited(bench, "tsv")),
    _format(
        "jsonl",
        "JSON Lines",
        "any lines (or list) of objects with captions; every item as creperie writes it",
        write_jsonl,
    ),
    _format(
        "parquet",
        "Parquet",
        "any Parquet file with a column of captions; every item as creperie writes it",
        write_parquet,
    ),
)
