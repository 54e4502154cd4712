"""Benchmarks from what is in hand: data frames, lists of dictionaries, data sets, pictures in memory.

Pictures in memory are written once into creperie's cache, under names made from their content. Saving a benchmark
copies them.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench.benchmark import Benchmark, from_items
from creperie.bench.formats.native import is_native, items_of_columns
from creperie.bench.formats.tablefile import TableSource, table_of_records
from creperie.bench.formats.tables import Roles, benchmark_of_table, resolve, roles_of
from creperie.bench.images import ImageError, ImageStore, picture_type
from creperie.bench.item import Item
from creperie.bench.stores import open_store, pictures_in_memory
from creperie.core import DataError, UsageError, check_columns, write_bytes

Columns = str | Sequence[str]  #: the name of a column, or several


def from_pandas(
    frame: Any,
    *,
    image: Columns = (),
    positive: Columns = (),
    negative: Columns = (),
    subset: Columns = (),
    id: Columns = (),
    tag: Columns = (),
    images: str | Path | None = None,
    name: str = "frame",
) -> Benchmark:
    """Return a benchmark from a table in memory: one row per item, columns with true and false captions.

    `frame` is a frame of pandas or polars, an Arrow table, a `datasets.Dataset`, or a list of dictionaries. Columns
    with plain names (image, caption, negative, subset, id …) need not be named. An image is a PIL image, encoded
    bytes, a path, or a key in `images` (a folder, zip or Parquet file).
    """
    columns = _columns_of(frame, name)
    named = roles_of(image=image, positive=positive, negative=negative, subset=subset, id=id, tag=tag)
    if named == Roles() and is_native(list(columns), "parquet"):
        return _from_native(columns, name, images)
    table = table_of_columns(name, columns)
    roles = resolve(named, table)
    store: ImageStore | None = None if images is None else open_store(images)
    for column in roles.image:
        columns[column] = _picture_keys(columns[column], f"{name}[{column!r}]")
    if store is None:
        store = _store_of(columns, roles)
    bench = benchmark_of_table(name, table_of_columns(name, columns), roles, {"format": type(frame).__name__})
    return bench if store is None else replace(bench, images=store)


def _from_native(columns: dict[str, list[Any]], name: str, images: str | Path | None) -> Benchmark:
    """Return the benchmark of a frame that `to_pandas`, or an export for `datasets`, gave."""
    keys = [_picture_keys(cells, f"{name}['images']") for cells in columns["images"]]
    bench = from_items(name, items_of_columns({**columns, "images": keys}, name))
    if images is None and _in_cache(key for row in keys for key in row):
        images = pictures_in_memory()
    return bench if images is None else replace(bench, images=open_store(images))


def from_objects(objects: Any, name: str = "frame") -> Benchmark:
    """Return a benchmark from items, or from anything that `from_pandas` takes with columns of plain names."""
    if isinstance(objects, Iterable) and not isinstance(objects, (Mapping, str, bytes)):
        first = next(iter(objects), None) if isinstance(objects, Sequence) else None
        if isinstance(first, Item):
            return from_items(name, objects)
    return from_pandas(objects, name=name)


# -- columns -----------------------------------------------------------------------------------------------------------


def _columns_of(frame: Any, name: str) -> dict[str, list[Any]]:
    """Return the columns of a frame as lists, missing values as None."""
    if isinstance(frame, Mapping):
        return {str(column): list(values) for column, values in frame.items()}
    if isinstance(frame, Sequence) and not isinstance(frame, (str, bytes)):
        return _columns_of_records(frame, name)
    if hasattr(frame, "features") and hasattr(frame, "with_format"):  # a data set: its pictures stay encoded
        frame = frame.with_format("arrow")[:]
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return {column: frame.column(column).to_pylist() for column in frame.schema.names}
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        check_columns(len(frame.columns), name)
        return {str(column): _values(frame[column]) for column in frame.columns}
    if hasattr(frame, "__arrow_c_stream__"):
        return _columns_of(pa.table(frame), name)
    what = f"{type(frame).__name__} is not a benchmark"
    hint = "pass a name, a path, a Benchmark, a data frame, or a list of items or of dictionaries"
    raise UsageError(what, hint=hint)


def _columns_of_records(records: Sequence[Any], name: str) -> dict[str, list[Any]]:
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise DataError(f"is {type(record).__name__}, expected a dictionary", where=f"{name}[{number}]")
    table = table_of_records(name, lambda: ((f"{name}[{i}]", record) for i, record in enumerate(records)))
    rows = [values for _, values in table.rows(table.names)]
    return {column: [row[k] for row in rows] for k, column in enumerate(table.names)}


def _values(series: Any) -> list[Any]:
    """Return the values of a column; those that Arrow does not know, such as pictures, as they are."""
    if str(getattr(series, "dtype", "")) == "Object":  # of polars, which gives Arrow addresses in memory
        return list(series)
    try:
        arrow = hasattr(series, "__arrow_c_stream__")
        return list((pa.chunked_array(series) if arrow else pa.array(series, from_pandas=True)).to_pylist())
    except (pa.ArrowException, TypeError, ValueError):
        return list(series)


def table_of_columns(name: str, columns: Mapping[str, Sequence[Any]]) -> TableSource:
    """Return a table whose columns are in memory; they have one length."""
    check_columns(len(columns), name)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise DataError(f"has columns of different lengths: {', '.join(map(str, sorted(lengths)))}", where=name)

    def rows(wanted: Sequence[str]) -> Any:
        chosen = [columns[column] for column in wanted]
        return ((f"{name} (row {i})", values) for i, values in enumerate(zip(*chosen, strict=True)))

    return TableSource(name, list(columns), False, rows)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _picture_keys(cells: Sequence[Any], where: str) -> list[Any]:
    """Keys for a column of pictures: those in memory are stored, paths and keys are as they are."""
    return [_picture_key(cell, f"{where}[{i}]") for i, cell in enumerate(cells)]


def _picture_key(cell: Any, where: str) -> Any:
    if isinstance(cell, Mapping) and {"bytes", "path"} <= set(cell):  # as `datasets` keeps pictures
        cell = cell["path"] if cell["bytes"] is None else cell["bytes"]
    if isinstance(cell, os.PathLike):
        cell = os.fspath(cell)
    if cell is None or isinstance(cell, str):
        return cell
    data = cell if isinstance(cell, bytes) else _encoded(cell, where)
    try:
        path = pictures_in_memory() / f"{hashlib.sha256(data).hexdigest()[:32]}{picture_type(data)}"
    except ImageError as e:
        raise ImageError(e.code, e.what, where=where) from None
    if not path.exists():
        write_bytes(path, data)
    return path.name


def _encoded(picture: Any, where: str) -> bytes:
    """Return a PIL image as PNG, which loses nothing."""
    from PIL import Image

    if not isinstance(picture, Image.Image):
        hint = "give PIL images, encoded bytes, paths, or keys with `images=`"
        raise DataError(f"is {type(picture).__name__}, which is not a picture", where=where, hint=hint)
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _in_cache(keys: Iterable[str]) -> bool:
    return all(Path(key).name == key and (pictures_in_memory() / key).is_file() for key in keys)


def _store_of(columns: dict[str, list[Any]], roles: Roles) -> ImageStore | None:
    """Return the store of the pictures: the cache, or the folder that all paths have in common, in which paths become
    keys."""
    keys = {key for column in roles.image for key in columns[column] if isinstance(key, str)}
    if not keys:
        return None
    if _in_cache(keys):
        return open_store(pictures_in_memory())
    if not all(Path(key).is_file() for key in keys):
        return None
    root = Path(os.path.commonpath([Path(key).absolute().parent for key in keys]))
    for column in roles.image:
        columns[column] = [
            Path(key).absolute().relative_to(root).as_posix() if isinstance(key, str) else key
            for key in columns[column]
        ]
    return open_store(root)
