"""What a format is, and what a user points it at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from creperie.bench.benchmark import Benchmark, image_keys
from creperie.bench.stores import FolderStore, open_store
from creperie.core import UsageError, packaged_toml, unknown


@dataclass(frozen=True)
class FormatSource:
    """A file or folder, and the options written after it: `valse:data/valse?valid=all`."""

    path: Path
    options: Mapping[str, str] = field(default_factory=dict)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the value of an option that is one of a few words; the first is the default."""
        value = self.options.get(name, choices[0])
        if value not in choices:
            raise unknown(f"value of option {name!r}", value, choices)
        return value


#: Where a benchmark's pictures lie when nobody says where.
_BESIDE = ("images", "images.zip")


def with_images_beside(bench: Benchmark, path: Path) -> Benchmark:
    """Return the benchmark with the pictures that lie beside its files: in a place of a usual name, or just where it
    says."""
    folder = path if path.is_dir() else path.parent
    for place in (root / name for root in (folder, folder / "data") for name in _BESIDE):
        if place.exists():
            return replace(bench, images=open_store(place, follow_links=False))
    own = FolderStore(folder, follow_links=False)
    beside = any(key in own and own.resolve(key) == key for key in image_keys(bench)[:100])
    return replace(bench, images=own) if beside else bench


#: What a writer makes: relative path → content of the file.
Files = dict[str, bytes]


@dataclass(frozen=True)
class Format:
    """A published format: how its files become a benchmark, and how a benchmark becomes its files.

    `write` is None where a format is only read.
    """

    name: str
    title: str
    about: str
    read: Callable[[FormatSource], Benchmark]
    write: Callable[[Benchmark], Files] | None = None
    aliases: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def described(
    name: str, read: Callable[[FormatSource], Benchmark], write: Callable[[Benchmark], Files] | None = None
) -> Format:
    """Return a format with its title and the rest that `formats.toml` says about it."""
    about = _about()[name]
    lists = {key: tuple(about.get(key, ())) for key in ("aliases", "options")}
    return Format(name, about["title"], about["about"], read, write, **lists)


@cache
def _about() -> Mapping[str, Any]:
    return packaged_toml("creperie.bench.formats", "formats.toml")


def parse_source(format: Format, text: str) -> FormatSource:
    """Split `PATH?option=value&option=value`. A path that exists as it is written has no options."""
    path, mark, query = text.rpartition("?")
    if not mark or Path(text).exists():
        return FormatSource(Path(text))
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in format.options:
            if not format.options:
                raise UsageError(
                    f"the format {format.name!r} has no options", where=text, hint="leave out what follows ?"
                )
            raise unknown(f"option of the format {format.name!r}", name, format.options)
        if name in options:
            raise UsageError(f"the option {name!r} is given twice", where=text)
        options[name] = value
    return FormatSource(Path(path), options)
