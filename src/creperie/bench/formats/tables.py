"""Reading any table with a column of captions: CSV, TSV, JSON Lines or Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.columns import Columns
from creperie.bench.formats.format import FormatSource, described, with_images_beside
from creperie.bench.formats.native import is_native, read_native, write_delimited, write_jsonl, write_parquet
from creperie.bench.formats.record import kind_of, tag_of
from creperie.bench.formats.tablefile import TableSource, open_table
from creperie.bench.formats.textfile import file_digest, stem_of
from creperie.bench.item import TAG_PREFIX, is_unicode
from creperie.bench.roles import Roles
from creperie.core import DataError, Progress, UsageError, silent, unknown

TABLE_KINDS = ("csv", "tsv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_ENDINGS[".parquet"] = "parquet"
_GUESSES = {
    "image": r"image|images|filename|file_name|file|image_?file|image_?path|filepath|img",
    "positive": r"(positive|caption|true_caption|pos)(_?\d+)?",
    "negative": r"(negative|negative_caption|false_caption|foil|neg|neg_caption)s?(_?\d+)?",
    "subset": r"subset|kind|category",
    "id": r"id",
}


def kind_of_file(path: Path) -> str:
    """Return which kind of table a file contains, by its suffix; raise a UsageError if the suffix is not known."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(
            "the file ending is not that of a table", where=path, hint=f"pass `format=`: {', '.join(TABLE_KINDS)}"
        )
    return _ENDINGS[path.suffix.lower()]


def read_table(
    path: Path,
    kind: str,
    roles: Roles | None = None,
    *,
    delimiter: str = "",
    quotes: bool = True,
    progress: Progress = silent,
) -> Benchmark:
    """Return the benchmark in a table. Roles that are not given are guessed from the names of the columns."""
    if not path.is_file():
        raise UsageError("there is no such file", where=path, hint="check the path")
    table = open_table(path, kind, delimiter=delimiter, quotes=quotes)
    if (roles is None or roles == Roles()) and is_native(table.names, kind):
        return read_native(path, kind, table)
    detail = {"format": kind, "sha256": {path.name: file_digest(path)}}
    bench = benchmark_of_table(path.stem, table, roles or Roles(), detail, progress=progress)
    return with_images_beside(bench, path) if table.images is None else replace(bench, images=table.images)


def benchmark_of_table(
    name: str, table: TableSource, roles: Roles, detail: dict[str, Any], *, progress: Progress = silent
) -> Benchmark:
    """Return a benchmark whose items are the rows of a table. A row from which no item can be made becomes a skipped
    record.

    `detail` is recorded in the provenance.
    """
    chosen = resolve(roles, table)
    columns = Columns(typed=table.text)
    skipped: list[SkippedRecord] = []
    with progress("read", None, "rows") as advance:
        for number, (where, values) in enumerate(table.rows(chosen.columns)):
            row = _Row(dict(zip(chosen.columns, values, strict=True)), where, table.text)
            left_out = row.add_to(columns, chosen, number, stem_of(name))
            skipped += [left_out] if left_out else []
            advance(1)
    if not columns.count:
        raise DataError(
            "contains no row with a caption", where=table.where, hint="name the column of captions: `positive='COLUMN'`"
        )
    step = ProvenanceStep("import", {**detail, "columns": chosen.document()})
    bench = Benchmark(name, columns.table(), info=Info(title=name), provenance=(step,), skipped=tuple(skipped))
    check_keys(bench)
    return bench


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a table: its cells by column, its location, and whether an empty cell means a missing value."""

    cells: dict[str, Any]
    where: str
    text: bool

    def add_to(self, columns: Columns, roles: Roles, number: int, subset: str) -> SkippedRecord | None:
        """Add the item in this row to the columns and return None. If no item can be made from the row, add nothing and
        return a skipped record.
        """
        roles_of_texts = (roles.image, roles.positive, roles.negative)
        images, true, false = ([text for name in names for text in self.texts(name)] for names in roles_of_texts)
        id_ = self.id(roles.id[0]) if roles.id else str(number)
        subset = self.subset(roles.subset[0]) if roles.subset else subset
        if reason := _reason(roles, subset, images, true, false):
            return SkippedRecord(subset, id_, reason)
        pair = [True, False, False, True]  # two images: each caption is true of one of them
        match = pair if len(roles.image) == 2 else [True] * len(true) + [False] * len(false)
        cells = {name.removeprefix(TAG_PREFIX): self.cells[name] for name in roles.tag}
        tags = cells if self.text else {name: tag_of(cell) for name, cell in cells.items()}
        columns.add(id_, subset, images, true + false, match, tags)
        return None

    def texts(self, name: str) -> list[str]:
        """Return the texts in a cell. A cell is a text or a list of texts. Missing values are left out."""
        cell = self.cells[name]
        values = [v for v in cell if v is not None] if isinstance(cell, list) else [] if cell is None else [cell]
        for value in values:
            if not isinstance(value, str):
                raise DataError(f"{name!r} is {kind_of(value)}, expected text", where=self.where)
            if not is_unicode(value):
                what = f"{name!r} holds an unpaired surrogate, which is not a character"
                raise DataError(what, where=self.where, hint="write the file again as UTF-8")
        return [v for v in values if v] if self.text else values

    def id(self, name: str) -> str:
        value = self.cells[name]
        if type(value) is not int and not (isinstance(value, str) and value and is_unicode(value)):
            shown = "empty" if value == "" else kind_of(value)
            raise DataError(f"{name!r} is {shown}, expected an id", where=self.where)
        return str(value)

    def subset(self, name: str) -> str:
        value = self.cells[name]
        text = "" if value is None else str(value)
        if isinstance(value, (list, dict, bytes)) or not is_unicode(text):
            raise DataError(f"{name!r} is {kind_of(value)}, expected the name of a subset", where=self.where)
        return text


def _reason(roles: Roles, subset: str, images: list[str], true: list[str], false: list[str]) -> str:
    """Return the reason why no item can be made from a row; an empty string if one can be made."""
    if not subset:
        return f"no subset in {', '.join(roles.subset) or 'the file name'}"
    if len(images) != len(roles.image) and (images or len(roles.image) == 2):
        return f"{'no image' if len(images) < len(roles.image) else 'several images'} in {', '.join(roles.image)}"
    if not true or (len(roles.image) == 2 and len(true) != 2):
        return f"no true caption in {', '.join(roles.positive)}"
    return f"no false caption in {', '.join(roles.negative)}" if roles.negative and not false else ""


# -- which column is what --------------------------------------------------------------------------------------------


def resolve(roles: Roles, table: TableSource) -> Roles:
    """Return the roles, with missing ones guessed from the names of the table's columns. Raise an error if a given
    column is missing or no column holds true captions.
    """
    given = {f.name: _existing(getattr(roles, f.name), f.name, table) for f in fields(Roles)}
    # If captions are named, only the image, subset and id columns are guessed.
    named = bool(given["positive"] or given["negative"])
    for role in ("image", "subset", "id") if named else _GUESSES:
        if not given[role]:
            taken = {name for names in given.values() for name in names}
            names = [n for n in table.names if re.fullmatch(_GUESSES[role], n.lower()) and n not in taken]
            given[role] = tuple(names if role in ("positive", "negative") else names[:1])
    two = tuple(n for n in table.names if re.fullmatch(r"(image|img)_?\d", n.lower()))
    if not given["image"] and len(two) == len(given["positive"]) == 2 and not given["negative"]:
        given["image"] = two  # each caption is true of one image, as in Winoground
    if not named and not given["tag"]:
        given["tag"] = tuple(n for n in table.names if n.startswith(TAG_PREFIX))
    if not given["positive"]:
        shown = ", ".join(n[:40] for n in table.names[:30])
        raise UsageError(
            "no column name says which column has the true captions",
            where=table.where,
            hint=f"pass `positive='COLUMN'`, one of: {shown}",
        )
    for role in ("subset", "id"):
        if len(given[role]) > 1:
            raise UsageError(f"`{role}=` takes one column, not {len(given[role])}", where=table.where)
    chosen = Roles(**given)
    images, positives, negatives = len(chosen.image), len(chosen.positive), len(chosen.negative)
    if images > 2 or (images == 2 and (positives != 2 or negatives)):
        raise UsageError(
            f"{images} image columns do not fit {positives} columns of true and {negatives} of false captions",
            where=table.where,
            hint="give one image column, or two image columns and two columns of true captions",
        )
    return chosen


def _existing(names: Sequence[str], role: str, table: TableSource) -> tuple[str, ...]:
    known = dict.fromkeys(table.names)
    columns: dict[str, None] = {}
    for name in names:
        for part in [name] if name in known else [part.strip() for part in name.split(",")]:
            if part == "*" and role == "tag":
                columns |= known
            elif part not in known:
                raise unknown("column", part, [n[:60] for n in table.names], where=table.where)
            else:
                columns[part] = None
    return tuple(columns)


# -- the formats -----------------------------------------------------------------------------------------------------


def _reader(kind: str) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        roles = Roles(**{f.name: (source.options[f.name],) for f in fields(Roles) if source.options.get(f.name)})
        quotes = source.choice("quotes", ("yes", "no")) == "yes"
        return read_table(source.path, kind, roles, delimiter=source.options.get("delimiter", ""), quotes=quotes)

    return read


FORMATS = (
    described("csv", _reader("csv"), lambda bench: write_delimited(bench, "csv")),
    described("tsv", _reader("tsv"), lambda bench: write_delimited(bench, "tsv")),
    described("jsonl", _reader("jsonl"), write_jsonl),
    described("parquet", _reader("parquet"), write_parquet),
)
