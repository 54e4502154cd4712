"""New benchmarks in the studio from imported tables and their pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from creperie.bench import (
    CODES,
    NO_IMAGES,
    Benchmark,
    Roles,
    check,
    open_image,
    open_store,
    open_table,
    read_table,
    save,
)
from creperie.core import CreperieError, Json, UsageError, counted, split_names
from creperie.reporting.studio.making import new_place

MOST_OPENED = 500  #: items whose pictures are opened after an import
#: columns of a table that can be named in the form: the role in `Roles`, and the field's label
COLUMNS = {
    "positive": "Columns of true captions",
    "negative": "Columns of false captions",
    "subset": "Column of the subset",
    "image": "Column of the picture",
}
#: what a preview calls the columns of a table
ROLES = {"positive": "true", "negative": "false", "subset": "subset", "image": "picture", "id": "id", "tag": "tag"}


def import_table(form: Mapping[str, str], folder: Path) -> Benchmark:
    """Save a table (CSV, TSV or JSON lines) as a benchmark and return the benchmark. Columns that the user did not
    choose are recognised by their names.
    """
    place = new_place(form, folder)
    with _table_file(form, place.name) as (file, kind):
        bench = read_table(file, kind, _roles(form))
    pictures = (folder / form["pictures"].replace("\0", "")).resolve() if form.get("pictures") else None
    if pictures and not (pictures.exists() and pictures.is_relative_to(folder)):
        what = "there is no such folder or zip in the studio's folder"
        raise UsageError(what, where=form["pictures"], hint="copy the pictures into the studio's folder first")
    return save(replace(bench, images=open_store(pictures) if pictures else NO_IMAGES), place)


def oddities(bench: Benchmark, pictures: bool) -> list[str]:
    """Return what is odd about an imported benchmark: rows that were left out, and problems that `check` finds, each
    with the number of rows. If the user gave pictures (`pictures`) but no item has one, the first entry says so. The
    pictures of a large benchmark are not opened.
    """
    found: dict[str, list[str]] = {}
    for one in check(bench, images=len(bench) <= MOST_OPENED and bench.images is not NO_IMAGES):
        if one.code in ("skipped-record", "empty-reference"):
            found.setdefault(f"left out: {one.message}", []).append(one.item)
        elif one.code != "images-not-checked":
            found.setdefault(CODES[one.code], []).append(one.item)
    odd = [f"{counted(len(ids), 'row')} (such as {ids[0]}): {what}" for what, ids in found.items()]
    unnamed = f"no item has a picture: name their column in the import form (“{COLUMNS['image']}”)"
    return [unnamed, *odd] if pictures and not len(bench.ragged("images")[1]) else odd


def preview(form: Mapping[str, str]) -> Json:
    """Return the preview of a table: its columns, what each is imported as, and the first rows. If the table can be
    read but not imported, the preview also says why.
    """
    shown: Json = {"columns": [], "rows": [], "problem": "", "odd": [], "cut": form.get("cut", "")}
    try:
        with _table_file(form, "table") as (file, kind):
            table = open_table(file, kind)
            shown["rows"] = [row for _, row in islice(table.rows(table.names), 4)]
            shown["columns"] = [(name, "") for name in table.names]
            bench = read_table(file, kind, _roles(form))
            roles = bench.provenance[-1].args.get("columns", {})
            role_of = {name: ROLES[role] for role, names in roles.items() for name in names}
            shown["columns"] = [(name, role_of.get(name, "")) for name in table.names]
            shown["items"], shown["odd"] = counted(len(bench), "item"), oddities(bench, bool(form.get("pictures")))
    except CreperieError as e:
        shown["problem"] = str(e) if form.get("table") else ""
    return shown


@contextmanager
def _table_file(form: Mapping[str, str], name: str) -> Iterator[tuple[Path, str]]:
    """Write the table that was sent with the form to a temporary file, and yield (path of the file, kind of table).
    Error messages name the file that the user chose (or the pasted table) and the fields of the form.
    """
    table = form.get("table", "").lstrip("\ufeff")
    heading = table.partition("\n")[0]
    kind = "jsonl" if heading.startswith("{") else "tsv" if "\t" in heading else "csv"
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{name}.{kind}"
        file.write_text(table, encoding="utf-8")
        try:
            yield file, kind
        except CreperieError as e:
            where = e.where.replace(str(file), form.get("file") or "the pasted table")
            hint = _named_fields(e.hint)
            raise UsageError(_named_fields(e.what), where=where, hint="" if "`" in hint else hint) from None


def _named_fields(words: str) -> str:
    """Return a message with the fields of the form in place of Python arguments.

    >>> _named_fields("pass `positive='COLUMN'`, one of: true, false")
    'fill in “Columns of true captions”, one of: true, false'
    """
    arguments = f"(pass )?`({'|'.join(COLUMNS)})=[^`]*`"
    return re.sub(arguments, lambda a: f"{'fill in ' if a[1] else ''}“{COLUMNS[a[2]]}”", words)


def _roles(form: Mapping[str, str]) -> Roles:
    return Roles(**{role: tuple(split_names(form.get(role, ""))) for role in COLUMNS})


def keep_picture(folder: Path, name: str, path: str, data: bytes) -> None:
    """Store a picture from a dropped folder in `NAME-pictures`. The benchmark that is imported next will use it."""
    place = new_place({"name": name}, folder)
    parts = PurePosixPath(path).parts
    if not parts or any(part.startswith((".", "/")) or "\0" in part or "\\" in part for part in parts):
        what = "the path of a picture does not lead into its folder"
        raise UsageError(what, where=path[:80], hint="drag the folder onto the page again")
    open_image(NO_IMAGES, path, data=data)
    file = place.with_name(f"{place.name}-pictures").joinpath(*parts)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
