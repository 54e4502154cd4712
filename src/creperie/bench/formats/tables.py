"""Any table with a column of captions: CSV, TSV, JSON Lines, Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from creperie.bench.benchmark import Benchmark, Info, ProvenanceStep, SkippedRecord, check_keys
from creperie.bench.formats.assemble import Roles, items_of_chunk
from creperie.bench.formats.chunks import TableFile, open_table
from creperie.bench.formats.columns import Columns
from creperie.bench.formats.format import FormatSource, described, with_images_beside
from creperie.bench.formats.native import is_native, read_native, write_delimited, write_jsonl, write_parquet
from creperie.bench.formats.textfile import file_digest
from creperie.bench.item import TAG_PREFIX
from creperie.core import DataError, Progress, UsageError, silent, unknown

TABLE_KINDS = ("csv", "tsv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_GUESSES = {
    "image": r"image|images|filename|file_name|file|image_?file|image_?path|filepath|img",
    "positive": r"(positive|caption|true_caption|pos)(_?\d+)?",
    "negative": r"(negative|negative_caption|false_caption|foil|neg|neg_caption)(_?\d+)?",
    "subset": r"subset|kind|category",
    "id": r"id",
}


def kind_of_file(path: Path) -> str:
    """The kind of table a file is, by its ending."""
    kind = "parquet" if path.suffix.lower() == ".parquet" else _ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(
            "its ending does not say what it is", where=str(path), hint=f"add `format=` {'|'.join(TABLE_KINDS)}"
        )
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
    """A benchmark from a table. Without roles, columns are taken by their names, if these are clear enough."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    table = open_table(path, kind, delimiter=delimiter, quotes=quotes)
    if (roles is None or roles == Roles()) and is_native(table.names, kind):
        return read_native(path, kind, table)
    found = resolve(roles or Roles(), table)
    columns = Columns(typed=table.text)
    skipped: list[SkippedRecord] = []
    with progress("read", None, "rows") as advance:
        for chunk in table.chunks(found.columns):
            items, left_out = items_of_chunk(chunk, table, found, columns.count + len(skipped))
            columns.add_table(items)
            skipped += left_out
            advance(len(chunk.places))
    if not columns.count:
        raise DataError("holds no row with a caption", where=str(path))
    step = ProvenanceStep("import", {"format": kind, "columns": _said(found), "sha256": {path.name: file_digest(path)}})
    bench = Benchmark(
        path.stem, columns.table(), info=Info(title=path.stem), provenance=(step,), skipped=tuple(skipped)
    )
    check_keys(bench)
    return with_images_beside(bench, path)


# -- which column is what --------------------------------------------------------------------------------------------


def resolve(roles: Roles, table: TableFile) -> Roles:
    """The roles with columns that exist: those given, else those whose names say what they are."""
    given = {role: _existing(getattr(roles, role), role, table) for role in Roles.__dataclass_fields__}
    # Where captions are named, only what would be lost in silence is still found by its name.
    named = bool(given["positive"] or given["negative"])
    for role in ("image", "subset") if named else _GUESSES:
        if not given[role]:
            taken = {name for names in given.values() for name in names}
            names = [n for n in table.names if re.fullmatch(_GUESSES[role], n.lower()) and n not in taken]
            given[role] = tuple(names if role in ("positive", "negative") else names[:1])
    if not named and not given["tag"]:
        given["tag"] = tuple(n for n in table.names if n.startswith(TAG_PREFIX))
    if not given["positive"]:
        shown = ", ".join(n[:40] for n in table.names[:30])
        if len(table.names) == 1 and (found_in := re.search("[;|\t]", shown)):
            shown += f". Is {found_in.group()!r} the separator? A .csv file has commas, a .tsv file tabs"
        hint = f"`positive='COLUMN'`; there are: {shown}"
        raise UsageError("no column is named as the true caption", where=str(table.path), hint=hint)
    for role in ("subset", "id"):
        if len(given[role]) > 1:
            raise UsageError(f"`{role}=` takes one column, not {len(given[role])}", where=str(table.path))
    found = Roles(**given)
    _check_shape(found, table)
    return found


def _existing(names: Sequence[str], role: str, table: TableFile) -> tuple[str, ...]:
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


def _check_shape(roles: Roles, table: TableFile) -> None:
    if len(roles.image) > 2 or (len(roles.image) == 2 and (len(roles.positive) != 2 or roles.negative)):
        raise UsageError(
            f"{len(roles.image)} image columns for {len(roles.positive)} true and {len(roles.negative)} false captions",
            where=str(table.path),
            hint="give one image column, or two with one true caption each",
        )


def _said(roles: Roles) -> dict[str, list[str]]:
    return {role: list(getattr(roles, role)) for role in Roles.__dataclass_fields__ if getattr(roles, role)}


# -- the formats -----------------------------------------------------------------------------------------------------


def _reader(kind: str) -> Callable[[FormatSource], Benchmark]:
    def read(source: FormatSource) -> Benchmark:
        names = Roles.__dataclass_fields__
        roles = Roles(**{r: (source.options[r],) for r in names if source.options.get(r)})
        quotes = source.choice("quotes", ("yes", "no")) == "yes"
        return read_table(source.path, kind, roles, delimiter=source.options.get("delimiter", ""), quotes=quotes)

    return read


FORMATS = (
    described("csv", _reader("csv"), lambda bench: write_delimited(bench, "csv")),
    described("tsv", _reader("tsv"), lambda bench: write_delimited(bench, "tsv")),
    described("jsonl", _reader("jsonl"), write_jsonl),
    described("parquet", _reader("parquet"), write_parquet),
)
