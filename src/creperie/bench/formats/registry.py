"""The registry of formats: it finds a format by name, reads a benchmark in it, and writes one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from creperie.bench.benchmark import Benchmark
from creperie.bench.formats.format import Files, Format, parse_source, with_images_beside
from creperie.bench.images import ImageStore
from creperie.bench.storage import new_folder
from creperie.core import UsageError, load_plugin, packaged_toml, write_bytes

MODULES: dict[str, list[str]] = packaged_toml("creperie.bench.formats", "modules.toml")
PLUGINS = "creperie.formats"


def list_formats() -> list[Format]:
    """Return all built-in formats, in the order of the documentation."""
    return [format for module in MODULES for format in _formats(module)]


def _formats(module: str) -> tuple[Format, ...]:
    return import_module(f"creperie.bench.formats.{module}").FORMATS


def find_format(name: str) -> Format:
    """Return the format with this name or alias. Plug-ins are searched only if no built-in format has this name."""
    lowered = name.lower()
    for module, names in MODULES.items():
        if lowered in names:
            return next(f for f in _formats(module) if f.name == lowered)
    aliases = {alias: format for format in list_formats() for alias in format.aliases}
    if lowered in aliases:
        return aliases[lowered]
    own = [n for names in MODULES.values() for n in names]
    loaded = load_plugin(PLUGINS, "format", name, own)
    return loaded if isinstance(loaded, Format) else Format(name, name, "", loaded)


def read_format(format: Format, path: str, images: ImageStore | None = None) -> Benchmark:
    """Return the benchmark in a file or folder. `path` is written `PATH?option=value`.

    If no image store is given, the images beside the files are used: those in a folder `images`, in `images.zip`, or at
    the paths that the items name.
    """
    source = parse_source(format, path)
    bench = format.read(source)
    return with_images_beside(bench, source.path) if images is None else replace(bench, images=images)


def write_format(format: Format, bench: Benchmark, target: str | Path, *, force: bool = False) -> list[Path]:
    """Write a benchmark in a published format, atomically, and return the paths of the files.

    `target` is a folder. If only one file is written, it may also be a file with the same suffix.
    """
    if format.write is None:
        raise UsageError(f"the format {format.name!r} is read-only", hint="export as jsonl, which holds every item")
    if not len(bench):
        raise UsageError("there is no item to write", where=bench.name, hint="export a benchmark that is not empty")
    files = format.write(bench)
    for name in files:
        _check_inside(name)
    out = Path(target)
    if len(files) == 1 and out.suffix and out.suffix == Path(next(iter(files))).suffix and not out.is_dir():
        if out.exists() and not force:
            raise UsageError("this file already exists", where=out, hint="choose another, or pass `force=True`")
        write_bytes(out, next(iter(files.values())))
        return [out]
    return _write_folder(out, files, force)


def _check_inside(name: str) -> None:
    parts = Path(name).parts
    hidden = any(part.startswith(".") for part in parts)  # includes `..` and the file name of an empty subset
    if not parts or hidden or Path(name).is_absolute() or "\0" in name or len(name.encode()) > 1000:
        raise UsageError(f"no file in the folder can be called {name[:200]!r}", hint="give the subset another name")


def _write_folder(folder: Path, files: Files, force: bool) -> list[Path]:
    """Write all files into a folder and return their paths.

    The folder must be new unless `force` is set. Other files in the folder are kept.
    """
    if folder.is_dir() and force:
        with tempfile.TemporaryDirectory(prefix=".creperie.", dir=folder) as draft:
            _write_below(Path(draft), files)
            for name in files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(draft) / name).replace(folder / name)
    else:
        with new_folder(folder) as fresh:
            _write_below(fresh, files)
    return [folder / name for name in files]


def _write_below(folder: Path, files: Files) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
