"""The catalog as data: what every benchmark is, where it comes from, what it tests."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from creperie.core import packaged, unknown


@dataclass(frozen=True)
class File:
    """One published file: the addresses to try in turn, the name it is kept under, and what is known of its content."""

    urls: tuple[str, ...]
    saved_as: str
    size: int | None = None
    sha256: str | None = None
    optional: bool = False
    picture: bool = False


@dataclass(frozen=True)
class ImageSource:
    """Where single images can be fetched from, for the keys that match a pattern."""

    name: str
    folder: str
    pattern: str
    saved_as: str
    urls: tuple[str, ...]
    mean_bytes: int

    def find(self, key: str) -> File | None:
        """Return the file behind an image key, or None when the key does not belong to this source."""
        match = re.search(self.pattern, key)
        if match is None:
            return None
        parts = match.groupdict()
        return File(tuple(url.format(**parts) for url in self.urls), self.saved_as.format(**parts), picture=True)


@dataclass(frozen=True)
class Images:
    """Which images a benchmark needs. `inside`: they come with the text; `by_hand`: what no address exists for."""

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
        """About how large so many images are."""
        return count * max((s.mean_bytes for s in self.sources), default=0)


@dataclass(frozen=True)
class CatalogSource:
    """Where a benchmark comes from. Without a commit it is not pinned."""

    repository: str = ""
    commit: str = ""
    mirror: str = ""

    @property
    def pinned(self) -> bool:
        return bool(self.commit)

    @property
    def page(self) -> str:
        if not self.repository:
            return ""
        return f"https://{self.repository if '.' in self.repository.split('/')[0] else 'github.com/' + self.repository}"


@dataclass(frozen=True)
class Taxonomy:
    """A row of the taxonomy: which property of compositionality, by which minimal difference, in which phenomena."""

    properties: Mapping[str, tuple[str, ...]]
    difference: str
    type: str
    phenomena: tuple[str, ...]
    tabulated: bool  # in Table 1 of "Hit or Be Hit", not only here
    tests: bool | None = None  # does its paper test differences statistically, as that table says

    @property
    def tested(self) -> str:
        return "; ".join(f"{kind} ({', '.join(what)})" for kind, what in self.properties.items())


@dataclass(frozen=True)
class CatalogEntry:
    """A benchmark that has a name."""

    name: str
    title: str
    items: int | None
    counted: bool  # in the release; otherwise the number is what the authors state
    shape: str
    licence: str
    chance: Mapping[str, float | None]
    format: str
    source: CatalogSource
    taxonomy: Taxonomy
    images: Images
    files: tuple[File, ...] = ()
    read: str = ""  # the file to read among them; empty for the folder
    own_copy: str = ""
    paper: str = ""
    notes: tuple[str, ...] = ()
    subsets: Mapping[str, int] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """How a user gets it: `download`; `own copy`; or `import`, where creperie has no reader for it."""
        if not self.format:
            return "import"
        return "download" if self.files and not self.own_copy else "own copy"

    @property
    def size(self) -> int | None:
        """The size of the text, where every file's size is known."""
        sizes = [f.size for f in self.files if not f.optional]
        return None if None in sizes or not sizes else sum(s for s in sizes if s is not None)


def catalog_entries() -> tuple[CatalogEntry, ...]:
    """Return every benchmark of the catalog, in its order."""
    return tuple(_catalog().values())


def find_entry(name: str) -> CatalogEntry:
    """Return the benchmark of a name or of another spelling of it.

    >>> find_entry("SugarCrepe_PP").name
    'sugarcrepe++'
    """
    wanted = name.strip().lower()
    for entry in _catalog().values():
        if wanted == entry.name or wanted in entry.aliases:
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


#: fields that benchmarks.yaml writes as they are
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
    return Taxonomy(what, row["difference"], row["type"], seen, row.get("table", False), row.get("tests"))


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
