"""Benchmarks from objects in memory: data frames, lists of dictionaries, data sets and images.

Images in memory are written to creperie's cache, under names derived from their content. When a benchmark is saved,
they are copied into its folder.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, contained_benchmark, from_items
from creperie.bench.formats.native import is_native, items_of_columns
from creperie.bench.formats.tablefile import TableSource, table_of_records
from creperie.bench.formats.tables import benchmark_of_table, resolve
from creperie.bench.images import NO_IMAGES, ImageStore, NoImages, image_reference, split_reference
from creperie.bench.item import Item
from creperie.bench.roles import Roles
from creperie.bench.stores import keep_picture, open_store, pictures_in_memory
from creperie.core import DataError, UsageError, check_columns, counted, with_options


@with_options(roles=Roles)
def from_pandas(frame: Any, *, images: str | Path | None = None, name: str = "frame", roles: Roles) -> Benchmark:
    """Return a benchmark made from a table in memory. The table has one row per item, and columns with true and false
    captions.

    `frame` is a pandas or polars data frame, an Arrow table, a `datasets.Dataset`, or a list or torch `Dataset`. The
    elements of a list or `Dataset` are items, dictionaries or tuples (image, caption, foil, …).

    Columns with usual names (image, caption, negative, subset, id and so on) are recognised. Name other columns in
    `roles` or as keyword arguments, for example `positive="text"`. An image is a PIL image, an array or tensor, encoded
    bytes, a path, or a key in `images` (a folder, zip or Parquet file).
    """
    if (own_bench := contained_benchmark(frame)) is not None:
        return own_bench
    if not isinstance(frame, (Sequence, Mapping)) and not hasattr(frame, "columns") and _is_dataset(frame):
        frame = [frame[i] for i in range(len(frame))]
    if isinstance(frame, Sequence) and frame and isinstance(frame[0], Item):
        return _from_items(frame, name, images)
    columns = _columns_of(frame, name)
    if roles == Roles() and is_native(list(columns), "parquet"):
        cells = columns["images"]
        columns["images"] = [[_picture_key(one, f"{name}['images']") for one in row] for row in cells]
        return _from_items(items_of_columns(columns, name), name, images)
    roles = resolve(roles, table_of_columns(name, columns))
    cells = [cell for column in roles.image for cell in columns[column]]
    keys, store = _pictures(cells, f"{name}[{', '.join(roles.image)}]", images)
    rows = len(cells) // max(1, len(roles.image))
    columns |= {column: keys[i * rows : (i + 1) * rows] for i, column in enumerate(roles.image)}
    bench = benchmark_of_table(name, table_of_columns(name, columns), roles, {"format": type(frame).__name__})
    _warn_of_losses(bench, roles)
    return replace(bench, images=store)


def _from_items(items: Sequence[Item], name: str, images: str | Path | None) -> Benchmark:
    """Return a benchmark of items whose images are keys or paths."""
    keys, store = _pictures([key for item in items for key in item.images], name, images)
    rest, placed = iter(keys), []
    for item in items:
        own = [next(rest) for _ in item.images]
        if len(own) > 1 and None in own:
            what = "one of its images is missing"
            raise DataError(what, where=f"item {item.subset}/{item.id}", hint="give the image, or leave the item out")
        placed.append(replace(item, images=tuple(key for key in own if key is not None)))
    return from_items(name, placed, images=store)


def _warn_of_losses(bench: Benchmark, roles: Roles) -> None:
    """Warn if items have no image, or if rows were left out because no item could be made from them; say how many."""
    without = sum(not images for images in bench.column("images").to_pylist()) if roles.image else 0
    if without:
        warnings.warn(f"{without:,} of {len(bench):,} items have no image", stacklevel=4)
    if bench.skipped:
        counts = Counter(row.reason for row in bench.skipped)
        first = {row.reason: row.id for row in reversed(bench.skipped)}
        reasons = "; ".join(f"{n:,} × {reason} (row {first[reason]} first)" for reason, n in counts.items())
        warnings.warn(f"{counted(len(bench.skipped), 'row')} left out: {reasons}", stacklevel=4)


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns_of(frame: Any, name: str) -> dict[str, list[Any]]:
    """Return the columns of a frame as lists, with None for missing values."""
    if isinstance(frame, Mapping) and any(hasattr(part, "features") for part in frame.values()):
        raise UsageError(f"has several splits: {', '.join(frame)}", where=name, hint="choose one: `frame['…']`")
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        raise UsageError("is a lazy data frame", where=name, hint="pass `frame.collect()`")
    if isinstance(frame, Mapping):
        if wrong := [str(column) for column, values in frame.items() if not isinstance(values, Iterable)]:
            what = f"the column {wrong[0]!r} is not a list of values"
            raise UsageError(what, where=name, hint="give one value per item")
        return {str(column): list(values) for column, values in frame.items()}
    if isinstance(frame, Sequence) and not isinstance(frame, (str, bytes)):
        return _columns_of_records(frame, name)
    if hasattr(frame, "features") and hasattr(frame, "with_format"):  # a `datasets.Dataset`; its images stay encoded
        frame = frame.with_format("arrow")[:]
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return {column: frame.column(column).to_pylist() for column in frame.schema.names}
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        check_columns(len(frame.columns), name)
        return {str(column): _python_values(frame[column]) for column in frame.columns}
    if hasattr(frame, "__arrow_c_stream__"):
        return _columns_of(pa.table(frame), name)
    raise UsageError(
        f"{type(frame).__name__} is not a benchmark",
        hint="pass a name, a path, a Benchmark, a data frame, or a list of items or of dictionaries",
    )


def _is_dataset(frame: Any) -> bool:
    """Return True for an object with a length and integer indices, such as a torch dataset."""
    known = hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "features")
    return hasattr(frame, "__getitem__") and hasattr(frame, "__len__") and not known


def _columns_of_records(records: Sequence[Any], name: str) -> dict[str, list[Any]]:
    if records and all(isinstance(record, tuple) and len(record) >= 3 for record in records):
        foils = max(len(record) for record in records) - 2
        names = ("image", "caption", *(f"negative{k + 1 if k else ''}" for k in range(foils)))
        records = [dict(zip(names, record)) for record in records]
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            what = f"is {type(record).__name__}, expected a dictionary or a tuple (image, caption, foil)"
            raise DataError(what, where=f"{name}[{number}]", hint="see help(creperie.from_pandas)")
    table = table_of_records(name, lambda: ((f"{name}[{i}]", record) for i, record in enumerate(records)))
    rows = [values for _, values in table.rows(table.names)]
    return {column: [row[k] for row in rows] for k, column in enumerate(table.names)}


def _python_values(series: Any) -> list[Any]:
    """Return the values in a column as Python objects. Images and other objects that Arrow cannot represent are
    returned unchanged.
    """
    if str(getattr(series, "dtype", "")) == "Object":  # of polars, which would give Arrow memory addresses
        return list(series)
    try:
        arrow = hasattr(series, "__arrow_c_stream__")
        return list((pa.chunked_array(series) if arrow else pa.array(series, from_pandas=True)).to_pylist())
    except (pa.ArrowException, TypeError, ValueError):
        return list(series)


def table_of_columns(name: str, columns: Mapping[str, Sequence[Any]]) -> TableSource:
    """Return a table over columns in memory; raise a DataError if their lengths differ."""
    check_columns(len(columns), name)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        what = f"has columns of different lengths: {', '.join(map(str, sorted(lengths)))}"
        raise DataError(what, where=name, hint="give one value per item in every column")

    def rows(names: Sequence[str]) -> Any:
        chosen = [columns[column] for column in names]
        return ((f"{name} (row {i})", values) for i, values in enumerate(zip(*chosen, strict=True)))

    return TableSource(name, list(columns), False, rows)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _picture_key(cell: Any, where: str) -> str | None:
    """Return the key of an image; None if the cell is empty. An image in memory is first written to the cache."""
    if isinstance(cell, Mapping) and {"bytes", "path"} <= set(cell):  # as `datasets` stores images
        cell = cell["path"] if cell["bytes"] is None else cell["bytes"]
    if isinstance(cell, (str, os.PathLike)):
        return os.fspath(cell) or None
    missing = cell is None or type(cell).__name__ == "NAType" or (isinstance(cell, float) and cell != cell)
    return None if missing else keep_picture(cell, where)


def _pictures(
    cells: Sequence[Any], where: str, images: str | Path | None
) -> tuple[list[str | None], ImageStore | NoImages]:
    """Return the image keys of the cells (None for an empty cell), and the store that has the images.

    The store is `images` if given. If some images were given in memory, it is the cache. Otherwise it is the folder
    that contains all the image files that the cells name. If only some of these files exist, the keys of the missing
    ones are None, and a warning is issued.
    """
    keys = [_picture_key(cell, f"{where}[{i}]") for i, cell in enumerate(cells)]
    named = {key: split_reference(key) for key in keys if key is not None}
    cached = {key: key for key, (name, _) in named.items() if _is_cached(name)}
    files = {key: Path(name).absolute() for key, (name, _) in named.items() if key not in cached and _is_file(name)}
    if images is not None:
        return keys, open_store(images)
    if missing := [key for key in named if key not in cached and key not in files]:
        what = f"{len(missing):,} of {len(named):,} images are missing: {missing[0]}"
        warnings.warn(what + (", …" if len(missing) > 1 else ""), stacklevel=4)
    if not (cached or files):
        return keys, NO_IMAGES
    if cached:  # images in memory and in files: all go into the cache
        root = pictures_in_memory()
        names = {key: keep_picture(path.read_bytes(), key) for key, path in files.items()}
    else:
        root = Path(os.path.commonpath([path.parent for path in files.values()]))
        names = {key: path.relative_to(root).as_posix() for key, path in files.items()}
    placed = cached | {key: image_reference(name, named[key][1]) for key, name in names.items()}
    return [None if key is None else placed.get(key) for key in keys], open_store(root)


def _is_cached(name: str) -> bool:
    return Path(name).name == name and (pictures_in_memory() / name).is_file()


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # the name is too long
        return False
