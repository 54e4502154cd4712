"""Published benchmarks whose records are described by templates in `listed.yaml`; they can only be read."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, SkippedRecord
from creperie.bench.formats.format import FormatSource, described, title_of
from creperie.bench.formats.published import finished
from creperie.bench.formats.record import Record, kind_of, read_records, tags_of
from creperie.bench.formats.textfile import find_files
from creperie.bench.images import image_reference, split_reference
from creperie.bench.item import Item
from creperie.bench.stores import open_store
from creperie.core import DataError, packaged, parse_yaml, read_json

_FLAGS = {"true": True, "false": False}


class _Strict(string.Formatter):
    """Formats strings as `str.format` does, but only with texts and integers. If a record contains any other value, the
    file is wrong, and formatting raises an error.
    """

    def format_field(self, value: Any, spec: str) -> str:
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            raise ValueError(f"is {kind_of(value)}, expected text")
        return str(format(value, spec))


def _texts(record: Record, template: str, values: Sequence[Any]) -> list[str]:
    """Return the texts that result from filling a record's fields into the template, usually one text.

    If the template contains `*name`, the field `name` must be a list, and one text is returned for each of its
    elements. If the record itself is a list, the template refers to its elements (`values`) by position.
    """
    before, star, name = template.partition("*")
    try:
        texts = record.fields[name] if star else [template]
        if not isinstance(texts, list):
            raise ValueError(f"is {kind_of(texts)}, expected a list of texts")
        made = [_Strict().vformat(before + "{x}" if star else t, values, {**record.fields, "x": t}) for t in texts]
        for text in made:
            text.encode("utf-8")
        return made
    except (LookupError, TypeError, AttributeError) as e:
        raise record.error(
            f"has no value for {template!r} ({type(e).__name__}: {e})",
            f"its fields are: {', '.join(map(str, record.fields))[:200]}",
        ) from None
    except ValueError as e:  # also raised for an unpaired surrogate
        raise record.error(f"{template!r} {e}") from None


def _match(record: Record, true: Any, images: int, captions: int) -> tuple[tuple[bool, ...], ...]:
    if isinstance(true, list):
        return tuple(tuple(map(bool, row)) for row in true)
    right, count = record.fields.get(true, 0 if true is None else None), max(images, captions)
    if type(right) is not int or not 0 <= right < count:
        raise record.error(f"{true!r} is not the number of a candidate", f"expected 0 to {count - 1}")
    flags = [k == right for k in range(count)]
    return (tuple(flags),) if captions > 1 else tuple((flag,) for flag in flags)


def _subset(record: Record, part: Mapping[str, Any], file: str, values: Sequence[Any]) -> str:
    rule = part.get("subset")
    if isinstance(rule, dict):
        flags = {name: _FLAGS.get(str(record.fields.get(name)).lower()) for name in rule}
        if None in flags.values():
            wrong = next(name for name, set_ in flags.items() if set_ is None)
            raise record.error(f"the flag {wrong!r} is missing, or is neither true nor false")
        chosen = [rule[name] for name, set_ in flags.items() if set_]
        return str(chosen[0]) if len(chosen) == 1 else ""
    return _texts(record, rule, values)[0].split("/")[0] if rule else file


def _item(record: Record, part: Mapping[str, Any], file: str) -> Item | None:
    values = record.value if isinstance(record.value, list) else ()
    images = [t for template in part["images"] for t in _texts(record, template, values)]
    captions = [t for template in part["captions"] for t in _texts(record, template, values)]
    if not captions or not images:
        raise record.error(f"has no {'images' if captions else 'captions'}")
    match = _match(record, part.get("match"), len(images), len(captions))
    subset = _subset(record, part, file, values)
    key = _texts(record, part["id"], values)[0] if "id" in part else record.key
    references = tuple(image_reference(re.sub("//+", "/", image)) for image in images)
    return (
        Item(key, subset, references, tuple(captions), match, tags_of(record, part.get("tags", ()))) if subset else None
    )


# -- files whose records are not simply listed -------------------------------------------------------------------------


def _foils(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield each foil of FOIL it! as a record. Its field `original` is the caption that the foil was made from."""
    # In the file, a foil and its caption have the same id.
    document = read_json(path, strict=True)
    rows = document.get("annotations") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError("has no list of annotations", where=path, hint="give the file as published")
    split = "train" if "train" in path.name else "val"
    originals = {str(row.get("id")): row.get("caption") for row in rows if row.get("foil") is False}
    for row in rows:
        if row.get("foil") is not False:
            yield {**row, "original": originals.get(str(row.get("id"))), "split": split}


def _sets(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield each description of ImageCoDe as a record that also lists the images in the description's folder.

    The file has the form {folder: {number: description}}. Images are sorted by the number in their file name.
    """
    document = read_json(path, strict=True)
    if not isinstance(document, dict) or not all(isinstance(descriptions, dict) for descriptions in document.values()):
        raise DataError(
            "is not an object that maps folders to descriptions", where=path, hint="give the file as published"
        )
    places = [path.parent / name for name in ("image-sets", "images", ".")]
    for folder, descriptions in document.items():
        inside = (re.sub(r"[^\w-]", "?", folder) or "?") + "/img*.jpg"  # keeps the pattern inside the folder
        files = [f.name for p in places for f in p.glob(inside)]
        if not files:
            raise DataError(
                f"has no images for {folder[:80]!r}",
                where=path,
                hint="unpack image-sets.zip into the folder of this file: the names of the images hold their numbers",
            )
        images = sorted(set(files), key=lambda name: int(re.sub(r"\D", "", name) or 0))
        for number, caption in descriptions.items():
            right = int(number) if number.isdecimal() and number.isascii() and len(number) < 6 else -1
            row = {"directory": folder, "number": right, "caption": caption}
            yield {**row, "images": [f"{folder}/{name}" for name in images]}


def _records(path: Path, part: Mapping[str, Any], name: str, first: int) -> list[Record]:
    special = {"foil-it": _foils, "imagecode": _sets}.get(name)
    if special is not None:
        return [Record(str(i), row, row, f"{path} (row {i})") for i, row in enumerate(special(path))]
    records = read_records(path, first=first)
    size = part.get("rows", 1)
    if size == 1:
        return records
    if len(records) % size:
        raise records[-1].error(f"has no partner: {size} rows make one record")
    rows = [[list(record.fields.values()) for record in records[i : i + size]] for i in range(0, len(records), size)]
    return [replace(records[i * size], value=row, fields={}) for i, row in enumerate(rows)]


def _read(name: str, source: FormatSource) -> Benchmark:
    parts = [(re.compile(f"(?:.*/)?(?:{part['files']})"), part) for part in _entries()[name]["parts"]]
    files = find_files(
        source.path, lambda n: any(p.fullmatch(n) for p, _ in parts), f"file of {title_of(name)}", deep=True
    )
    items: list[Item] = []
    skipped: list[SkippedRecord] = []
    for file, path in files:
        pattern, part = next(((p, part) for p, part in parts if p.fullmatch(file)), parts[0])
        groups = m.groups() if (m := pattern.fullmatch(file)) else ()
        subset = groups[0] if groups else path.parent.name if "{file}" in str(part) else name
        for record in _records(path, part, name, len(items)):
            own = dict(record.fields) | {"file": subset}
            item = _item(replace(record, fields=own), part, subset)
            if item is None:
                skipped.append(SkippedRecord(subset, record.key, "differs in more than one way, or in none"))
            else:
                items.append(item)
    bench = finished(name, items, files, skipped)
    here = open_store(source.path if any(path.suffix == ".parquet" for _, path in files) else files[0][1].parent)
    for place in (here, open_store(source.path) if source.path.is_dir() else here):
        if split_reference(items[0].images[0])[0] in place:
            return replace(bench, images=place)
    return bench


@cache
def _entries() -> Mapping[str, Any]:
    return dict(parse_yaml(packaged("creperie.bench.formats", "listed.yaml"), "listed.yaml"))


FORMATS = tuple(described(name, partial(_read, name)) for name in _entries())
