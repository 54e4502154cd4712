"""The catalog as data: the files, images, taxonomy and other facts of each benchmark."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from creperie.core import packaged, unknown


@dataclass(frozen=True)
class File:
    """A published file: addresses to try in order, the name to save it under, and its size and checksum if known."""

    urls: tuple[str, ...]
    saved_as: str
    size: int | None = None
    sha256: str | None = None
    optional: bool = False
    picture: bool = False


@dataclass(frozen=True)
class ImageSource:
    """A place from which single images can be fetched. It has the images whose keys match `pattern`."""

    name: str
    folder: str
    pattern: str
    saved_as: str
    urls: tuple[str, ...]
    mean_bytes: int

    def find(self, key: str) -> File | None:
        """Return the file with the image `key`; None if the key does not match the pattern of this source."""
        match = re.search(self.pattern, key)
        if match is None:
            return None
        parts = match.groupdict()
        return File(tuple(url.format(**parts) for url in self.urls), self.saved_as.format(**parts), picture=True)


@dataclass(frozen=True)
class Images:
    """The images that a benchmark needs.

    `inside` is True if the images come with the items. `by_hand` says how to get images that have no address.
    """

    sources: tuple[ImageSource, ...] = ()
    count: int | None = None
    by_hand: str = ""
    inside: bool = False

    @property
    def folder(self) -> str:
        return self.sources[0].folder if self.sources else ""

    def find(self, key: str) -> File | None:
        return next((file for source in self.sources if (file := source.find(key))), None)

    def bytes_of(self, count: int) -> int:
        """Return the approximate size in bytes of `count` images."""
        return count * max((s.mean_bytes for s in self.sources), default=0)


@dataclass(frozen=True)
class CatalogSource:
    """Where a benchmark comes from: the source and, for a pinned release, the commit."""

    repository: str = ""
    commit: str = ""
    mirror: str = ""

    @property
    def page(self) -> str:
        if not self.repository:
            return ""
        return f"https://{self.repository if '.' in self.repository.split('/')[0] else 'github.com/' + self.repository}"


@dataclass(frozen=True)
class Taxonomy:
    """A benchmark's row in the taxonomy: the properties of compositionality that it tests, how the captions of an item
    differ (for example, by swapped words), and the linguistic phenomena involved.
    """

    properties: Mapping[str, tuple[str, ...]]
    difference: str
    type: str
    phenomena: tuple[str, ...]
    tabulated: bool  # listed in Table 1 of "Hit or Be Hit"
    size: int | None = None  # of its whole family, as that table states it
    tuned: bool | None = None  # whether its own paper fine-tunes models on it: the table's column "Tests"

    @property
    def tested(self) -> str:
        return "; ".join(f"{kind} ({', '.join(what)})" for kind, what in self.properties.items())


@dataclass(frozen=True)
class CatalogEntry:
    """A benchmark in the catalog."""

    name: str
    title: str
    items: int | None
    counted: bool  # True if counted in the release; otherwise the number is the one the authors state
    shape: str
    licence: str
    chance: Mapping[str, float | None]
    format: str
    source: CatalogSource
    taxonomy: Taxonomy
    images: Images
    files: tuple[File, ...] = ()
    read: str = ""  # the file in `files` to read; empty to read the folder
    own_copy: str = ""
    paper: str = ""
    notes: tuple[str, ...] = ()
    subsets: Mapping[str, int] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """How to get the benchmark. `download` means that creperie downloads it. `own copy` means that the user must
        have a copy. `import` means that creperie has no reader for the benchmark; the user must import it with
        `data import`.
        """
        if not self.format:
            return "import"
        return "download" if self.files and not self.own_copy else "own copy"

    @property
    def size(self) -> int | None:
        """The size of the required files in bytes; None if a size is not known."""
        required = [f for f in self.files if not f.optional]
        return total_size(required) if required else None


def total_size(files: Iterable[File]) -> int | None:
    """Return the total size of the files in bytes; None if any size is not known."""
    sizes = [f.size for f in files]
    return None if None in sizes else sum(s or 0 for s in sizes)


def catalog_entries() -> tuple[CatalogEntry, ...]:
    """Return all benchmarks of the catalog, in catalog order."""
    return tuple(_catalog().values())


def list_benchmarks() -> list[str]:
    """Return the names of the benchmarks that can be loaded by name, in catalog order."""
    return list(_catalog())


def find_entry(name: str) -> CatalogEntry:
    """Return the catalog entry with this name or alias; raise an error if there is none.

    >>> find_entry("SugarCrepe_PP").name
    'sugarcrepe++'
    """
    lowered = name.strip().lower()
    for entry in _catalog().values():
        if lowered == entry.name or lowered in entry.aliases:
            return entry
    raise unknown("benchmark", name, _catalog())


@cache
def _catalog() -> Mapping[str, CatalogEntry]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(packaged("creperie.bench.catalog", "benchmarks.yaml"), Loader=loader)
    lines = packaged("creperie.bench.catalog", "files.csv").splitlines()
    rows: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(lines):
        rows.setdefault(row["benchmark"], []).append(row)
    sources = {
        name: ImageSource(name, s["folder"], s["pattern"], s["saved_as"], tuple(s["urls"]), s["mean_bytes"])
        for name, s in document["image_sources"].items()
    }
    return {name: _entry(name, e, rows.get(name, []), sources) for name, e in document["benchmarks"].items()}


#: fields that are copied from benchmarks.yaml unchanged
_SAME = ("title", "items", "shape", "licence", "chance", "format", "read", "own_copy", "paper", "subsets")


def _entry(
    name: str, e: dict[str, Any], rows: list[dict[str, str]], sources: Mapping[str, ImageSource]
) -> CatalogEntry:
    images = e["images"]
    notes = (e.get(k, "") for k in ("note", "licence_note", "chance_note"))
    at = e["source"]
    return CatalogEntry(
        name=name,
        counted=e.get("counted", e["items"] is not None),
        source=CatalogSource(at["repository"], str(at.get("commit", "")), at.get("mirror", "")),
        taxonomy=_taxonomy(e["taxonomy"]),
        images=Images(**images | {"sources": tuple(sources[s] for s in images.get("sources", ()))}),
        files=_files(at, rows),
        notes=tuple(n for n in notes if n),
        aliases=tuple(e.get("aliases", ())),
        **{"format": ""} | {key: e[key] for key in _SAME if key in e},
    )


def _taxonomy(row: dict[str, Any]) -> Taxonomy:
    what, seen = {kind: tuple(what) for kind, what in row["property"].items()}, tuple(row["phenomena"])
    return Taxonomy(
        what, row["difference"], row["type"], seen, row.get("table", False), row.get("size"), row.get("tuned")
    )


def _files(source: dict[str, Any], rows: list[dict[str, str]]) -> tuple[File, ...]:
    if "files" not in source:
        return ()
    base = source["files"].format(repository=source["repository"], commit=source.get("commit", ""))
    return tuple(
        File(
            urls=tuple(base + path for path in row["path"].split("|")),
            saved_as=row["saved_as"],
            size=int(row["bytes"]) if row["bytes"] else None,
            sha256=row["sha256"] or None,
            optional=row["need"] == "optional",
        )
        for row in rows
    )
