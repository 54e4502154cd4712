"""The classes `Format` and `FormatSource`. A `FormatSource` is a path with options, from which a format is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from creperie.bench.benchmark import Benchmark, image_keys
from creperie.bench.stores import FolderStore, open_store
from creperie.core import UsageError, packaged_toml, query_options, unknown


@dataclass(frozen=True)
class FormatSource:
    """A file or folder to read, with options, written like `valse:data/valse?valid=all`."""

    path: Path
    options: Mapping[str, str] = field(default_factory=dict)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the value of an option. It must be one of `choices`; the first of these is the default."""
        value = self.options.get(name, choices[0])
        if value not in choices:
            raise unknown(f"value of option {name!r}", value, choices)
        return value


#: Default names of the image folder or archive beside the files of a benchmark.
_BESIDE = ("images", "images.zip")


def with_images_beside(bench: Benchmark, path: Path) -> Benchmark:
    """Return the benchmark with the images that are stored beside its files, if there are any.

    Images are searched for in a folder `images` or an archive `images.zip`, and then at the paths in the items.
    """
    folder = path if path.is_dir() else path.parent
    for place in (root / name for root in (folder, folder / "data") for name in _BESIDE):
        if place.exists():
            return replace(bench, images=open_store(place, follow_links=False))
    own = FolderStore(folder, follow_links=False)
    beside = any(key in own and own.resolve(key) == key for key in image_keys(bench)[:100])
    return replace(bench, images=own) if beside else bench


#: The output of a writer: relative path → content of the file.
Files = dict[str, bytes]


@dataclass(frozen=True)
class Format:
    """A published format. It has a function that reads its files as a benchmark, and one that writes a benchmark as
    such files.

    `write` is None for a format that can only be read.
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
    """Return the format called `name`, with its title, description, aliases and options from `formats.toml`."""
    about = _about()[name]
    lists = {key: tuple(about.get(key, ())) for key in ("aliases", "options")}
    return Format(name, about["title"], about["about"], read, write, **lists)


def title_of(name: str) -> str:
    return str(_about()[name]["title"])


@cache
def _about() -> Mapping[str, Any]:
    return packaged_toml("creperie.bench.formats", "formats.toml")


def parse_source(format: Format, text: str) -> FormatSource:
    """Return the source that a string such as `PATH?option=value&option=value` describes.

    If the whole text is the path of an existing file, it has no options.
    """
    path, mark, query = text.rpartition("?")
    if not mark or Path(text).exists():
        return FormatSource(Path(text))
    options = query_options(query, text)
    if options and not format.options:
        hint = "leave out the `?` and everything after it"
        raise UsageError(f"the format {format.name!r} has no options", where=text, hint=hint)
    for name in options:
        if name not in format.options:
            raise unknown(f"option of the format {format.name!r}", name, format.options)
    return FormatSource(Path(path), options)
