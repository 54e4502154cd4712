"""Croissant metadata: the same description of the items for every tool that reads the standard."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark
from creperie.bench.item import TAG_PREFIX
from creperie.core import packaged, packaged_toml

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"

#: the standard's terms (cr:); everything else is schema.org's
CONTEXT: dict[str, Any] = json.loads(packaged("creperie.bench", "croissant.json"))

LICENCE_URLS: dict[str, str] = packaged_toml("creperie.bench", "cards.toml")["licence_urls"]


def croissant(bench: Benchmark, files: Mapping[str, str], columns: Mapping[str, str], licence: str) -> dict[str, Any]:
    """The JSON-LD document. `files` are the Parquet files with their sha256, `columns` what the columns mean."""
    info = bench.info
    title = " ".join((info.title or bench.name).split())
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": _identifier(bench.name),
        "alternateName": title,
        "description": info.description or f"{title}: a vision-language compositionality benchmark.",
        "conformsTo": CONFORMS_TO,
        "citeAs": info.citation or f"{title}, content hash {bench.hash}",
        "license": LICENCE_URLS.get(licence) or info.licence or "unknown",
        **_url(info.source),
        "version": "1.0.0",
        "datePublished": _today(),
        "distribution": [_file(path, digest) for path, digest in files.items()],
        "recordSet": [_records(bench, next(iter(files)), columns)],
    }


def _file(path: str, digest: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def _records(bench: Benchmark, file: str, columns: Mapping[str, str]) -> dict[str, Any]:
    schema = bench.schema
    return {
        "@type": "cr:RecordSet",
        "@id": "items",
        "name": "items",
        "description": "One record an item: its images, its captions, and which caption is true of which image.",
        "key": [{"@id": "items/subset"}, {"@id": "items/id"}],
        "field": [_field(schema.field(name), id_, file, columns.get(name, "")) for name, id_ in _ids(bench).items()],
    }


def _ids(bench: Benchmark) -> dict[str, str]:
    """Column names with ids for them, which may hold no blanks."""
    ids: dict[str, str] = {}
    for i, name in enumerate(bench.columns):
        plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
        ids[name] = f"items/{plain}" if plain == name else f"items/{plain}-{i}"
    return ids


def _field(column: pa.Field, id_: str, file: str, text: str) -> dict[str, Any]:
    repeated = pa.types.is_list(column.type)
    kind = column.type.value_type if repeated else column.type
    data_type = "sc:Boolean" if pa.types.is_boolean(kind) else "sc:Text" if pa.types.is_string(kind) else "sc:Float"
    return {
        "@type": "cr:Field",
        "@id": id_,
        "name": column.name,
        "description": text or f"The tag {column.name.removeprefix(TAG_PREFIX)}.",
        "dataType": data_type,
        **({"repeated": True} if repeated else {}),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }


def _identifier(name: str) -> str:
    """A name without the characters that the standard forbids.

    >>> _identifier("sugarcrepe++ (mine)")
    'sugarcrepe-mine'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "benchmark"


def _url(source: str) -> dict[str, str]:
    found = re.search(r"https?://[^\s,;)]+", source)
    return {"url": found.group()} if found else {}


def _today() -> str:
    """The day of writing; builds that must come out the same twice set SOURCE_DATE_EPOCH."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.fromtimestamp(int(fixed), dt.UTC) if fixed.isdigit() else dt.datetime.now(dt.UTC)
    return now.date().isoformat()
