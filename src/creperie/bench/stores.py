"""Image stores: a folder, a zip or tar file, or Parquet files with an image column.

In all stores, nothing is listed or read before it is needed, and several threads may read at once. Stores can be
pickled; another process then opens them again.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import threading
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import IO, Any

from creperie.bench.images import MAX_BYTES, ImageError, picture_type, safe_path
from creperie.core import (
    DataError,
    cache_home,
    check_members,
    open_parquet,
    reading_parquet,
    sha256_of_text,
    write_bytes,
)


def pictures_in_memory() -> Path:
    """Return the cache folder for images that were given in memory. Each file is named by a hash of its content."""
    folder = cache_home() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep_picture(picture: Any, where: str = "") -> str:
    """Write an image to creperie's cache, unless it is there already, and return its key. `picture` is a PIL image, an
    array or encoded bytes.

    Raise an ImageError if the bytes are not an image.
    """
    data = picture if isinstance(picture, bytes) else _encoded(picture, where)
    try:
        path = pictures_in_memory() / f"{sha256_of_text(data)[:32]}{picture_type(data)}"
    except ImageError as e:
        raise ImageError(e.code, e.what, where=where) from None
    if not path.exists():
        write_bytes(path, data)
    return path.name


def _from_array(picture: Any) -> Any:
    """Return an array or tensor as a PIL image; return any other object unchanged. Channels may be the first or the
    last dimension; values are bytes (0 to 255) or floats from 0 to 1.
    """
    import numpy as np
    from PIL import Image

    values = np.asarray(picture)
    if values.ndim == 3 and values.shape[0] in (1, 3) and values.shape[2] not in (1, 3):
        values = values.transpose(1, 2, 0)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if np.issubdtype(values.dtype, np.floating) and values.size and values.min() >= 0 and values.max() <= 1:
        values = np.rint(values * 255).astype(np.uint8)
    shaped = values.ndim == 2 or (values.ndim == 3 and values.shape[2] in (3, 4))
    return Image.fromarray(np.ascontiguousarray(values)) if values.dtype == np.uint8 and shaped else picture


def _encoded(picture: Any, where: str) -> bytes:
    """Return a PIL image, an array or a tensor encoded as PNG, which is lossless."""
    from PIL import Image

    if hasattr(picture, "__array__") and not isinstance(picture, Image.Image):
        picture = _from_array(picture)
    if not isinstance(picture, Image.Image):
        raise DataError(
            f"is of type {type(picture).__name__}, which is not an image",
            where=where,
            hint="give PIL images, arrays of integers (0 to 255) or floats (0 to 1), bytes of image files, or paths; "
            "or give image keys and pass `images=`",
        )
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def open_store(location: str | Path, *, follow_links: bool = True) -> KeyedImageStore:
    """Return the store at a location: a folder, a zip file, tar files, or Parquet files with an image column.

    A key is first looked up as it is. Then its leading folders are removed one at a time (`val2017/7.jpg`, then
    `7.jpg`). If it is still not found, it is looked up in the top-level folders of the store. Exactly one of them must
    contain the image: `7.jpg` finds `val2017/7.jpg`.
    """
    path = Path(location)
    name = path.name.lower()
    if path.is_dir():
        if shards := parquet_shards(path):
            return ParquetStore(path, shards)
        files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
        tars = bool(files) and all(file.suffix == ".tar" for file in files)
        return TarStore(path, tuple(files)) if tars else FolderStore(path, follow_links=follow_links)
    if not path.exists():
        raise DataError("there is no such images folder or file", where=path, hint="check `images=`")
    if name.endswith(".zip"):
        return ZipStore(path)
    if name.endswith(".tar"):
        return TarStore(path, (path,))
    if name.endswith(".parquet"):
        return ParquetStore(path, (path,))
    raise DataError(
        "is neither a folder nor an archive of images",
        where=path,
        hint="pass a folder, .zip, .tar or .parquet; unpack a compressed tar file",
    )


class KeyedImageStore(ABC):
    """The base class of stores. It finds the entry for a key; subclasses read entries by their exact names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()

    @property
    def location(self) -> str:
        return str(self.path)

    @abstractmethod
    def _has(self, name: str) -> bool:
        """Return whether there is an entry with exactly this name."""

    @abstractmethod
    def _bytes(self, name: str) -> bytes:
        """Return the bytes of an existing entry."""

    @property
    @abstractmethod
    def _tops(self) -> tuple[str, ...]:
        """The names of the top-level folders."""

    @abstractmethod
    def keys(self) -> Iterator[str]:
        """Return the names of all entries."""

    def resolve(self, key: str) -> str:
        """Return the name of the entry for a key; raise an ImageError unless there is exactly one."""
        parts = key.split("/")
        for start in range(len(parts)):
            name = "/".join(parts[start:])
            if name and self._has(name):
                return name
        candidates = [f"{top}/{key}" for top in self._tops if self._has(f"{top}/{key}")] if key else []
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise ImageError(
                "missing-image",
                f"is in several folders: {', '.join(candidates[:4])}",
                where=f"{self.path}/{key}",
                hint="pass one of these folders with `images=`",
            )
        raise ImageError("missing-image", "there is no such image", where=f"{self.path}/{key}")

    def read(self, key: str) -> bytes:
        return self._bytes(self.resolve(key))

    def __contains__(self, key: str) -> bool:
        try:
            self.resolve(key)
        except ImageError:
            return False
        return True

    def repeated(self) -> list[str]:
        """Return the names that occur more than once. Only the last entry with such a name can be read."""
        return []

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(open_store, follow_links=getattr(self, "follow_links", True)), (str(self.path),)


def _check_size(size: int, where: object) -> None:
    if size > MAX_BYTES:
        hint = f"save it smaller: at most {MAX_BYTES:,} bytes are read"
        raise ImageError("image-too-large", f"is too large: it has {size:,} bytes", where=where, hint=hint)


class FolderStore(KeyedImageStore):
    """A store of the files in a folder and its subfolders.

    With `follow_links`, symbolic links are followed wherever they lead; this is meant for folders that the user named.
    Otherwise, no link may lead out of the folder.
    """

    def __init__(self, path: Path, *, follow_links: bool = True) -> None:
        super().__init__(path)
        self.follow_links = follow_links

    @cached_property
    def _root(self) -> Path:
        return self.path.resolve()

    def _has(self, name: str) -> bool:
        try:
            return safe_path(self.path, name).is_file()
        except (OSError, ValueError, ImageError):
            return False  # a name that no file in the folder can have: too long, not encodable, or leading out of it

    def leads_out(self, key: str) -> bool:
        """Return whether the file with this key is a link to a place outside of the folder."""
        return not safe_path(self.path, self.resolve(key)).resolve().is_relative_to(self._root)

    def _bytes(self, name: str) -> bytes:
        path = safe_path(self.path, name)
        if not self.follow_links and not path.resolve().is_relative_to(self._root):
            raise ImageError("unsafe-image", "is a link that leads out of the images folder", where=path)
        try:
            _check_size(path.stat().st_size, path)
            return path.read_bytes()
        except OSError as e:
            raise ImageError("missing-image", f"cannot be read ({e.strerror})", where=path) from None

    @cached_property
    def _tops(self) -> tuple[str, ...]:
        with os.scandir(self.path) as entries:
            return tuple(sorted(e.name for e in entries if e.is_dir() and not e.name.startswith(".")))

    def keys(self) -> Iterator[str]:
        for folder, subfolders, files in os.walk(self.path):
            subfolders[:] = sorted(s for s in subfolders if not s.startswith("."))
            for name in sorted(files):
                path = Path(folder, name)
                if not name.startswith(".") and path.is_file():
                    yield path.relative_to(self.path).as_posix()


class Archive(KeyedImageStore):
    """A store with a table of contents: a mapping from entry names to their positions in the archive."""

    @cached_property
    def _entries(self) -> dict[str, Any]:
        with self._lock:
            return self._list()

    @abstractmethod
    def _list(self) -> dict[str, Any]: ...

    def _has(self, name: str) -> bool:
        return name in self._entries

    @cached_property
    def _tops(self) -> tuple[str, ...]:
        return tuple(sorted({name.split("/", 1)[0] for name in self._entries if "/" in name}))

    def keys(self) -> Iterator[str]:
        return iter(self._entries)

    def repeated(self) -> list[str]:
        _ = self._entries
        return sorted(name for name, n in self._counts.items() if n > 1)

    _counts: Counter[str]


def _entry_name(name: str) -> str:
    """Return the normalised name of an archive entry, without `./`; empty for a metadata file of macOS."""
    path = PurePosixPath(name)
    hidden = any(part.startswith("._") or part == "__MACOSX" for part in path.parts)
    return "" if hidden else "/".join(p for p in path.parts if p not in (".", "/"))


class ZipStore(Archive):
    """A store of the entries of a zip file. Only one thread can read at a time."""

    # Decoding an image takes longer than reading it, and other threads can decode meanwhile.

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError, ValueError) as e:
            raise DataError(
                f"is not a zip file that can be read ({e})", where=self.path, hint="copy it again"
            ) from None

    def _list(self) -> dict[str, Any]:
        check_members(len(self._zip.infolist()), str(self.path))
        named = [(name, i) for i in self._zip.infolist() if not i.is_dir() and (name := _entry_name(i.filename))]
        self._counts = Counter(name for name, _ in named)
        return dict(named)

    def _bytes(self, name: str) -> bytes:
        info = self._entries[name]
        where = f"{self.path}/{name}"
        _check_size(info.file_size, where)
        try:
            with self._lock, self._zip.open(info) as entry:
                return entry.read(MAX_BYTES)
        except RuntimeError:
            raise ImageError(
                "undecodable-image", "the entry is encrypted", where=where, hint="unpack it first"
            ) from None
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as e:
            raise ImageError("undecodable-image", f"the zip file is damaged here ({e})", where=where) from None


class TarStore(Archive):
    """A store of the files in uncompressed tar files, such as WebDataset shards.

    A sample's JSON file may list other names of the sample's images, as `export_webdataset` does. Images can be found
    by these names, too.
    """

    def __init__(self, path: Path, files: tuple[Path, ...]) -> None:
        super().__init__(path)
        self.files = files

    def _list(self) -> dict[str, Any]:
        self._counts = Counter()
        entries: dict[str, tuple[Path, int, int]] = {}
        for file in self.files:
            for _, members, read in tar_samples(file):
                places = {name: (file, m.offset_data, m.size) for m in members if (name := _entry_name(m.name))}
                self._counts.update(name for m in members if (name := _entry_name(m.name)))
                about = next((m for m in members if m.name.endswith(".json")), None)
                given = images_listed(read(about)) if about else []
                pictures = [place for name, place in places.items() if not name.endswith((".json", ".txt"))]
                entries |= places | (dict(zip(given, pictures)) if len(given) == len(pictures) else {})
            check_members(len(entries), str(self.path))
        return entries

    def _bytes(self, name: str) -> bytes:
        path, start, size = self._entries[name]
        with path.open("rb") as file:
            file.seek(start)
            return file.read(min(size, MAX_BYTES))


def tar_samples(
    file: str | Path, opened: IO[bytes] | None = None
) -> Iterator[tuple[str, list[tarfile.TarInfo], Callable[[tarfile.TarInfo], bytes]]]:
    """Yield each sample of a tar file: its name (up to the first dot), its files, and a function that reads one of
    these files. If the file is already `opened`, samples are read from its position on.
    """
    try:
        with tarfile.open(file, "r:", opened) as tar:
            members = (m for m in tar if m.isfile())
            for key, own in groupby(members, lambda m: re.sub(r"\.[^/]*$", "", m.name)):
                yield key, list(own), lambda member: tar.extractfile(member).read(MAX_BYTES)  # type: ignore[union-attr]
                tar.members = []  # type: ignore[attr-defined]  # tarfile would remember every member
    except (tarfile.TarError, OSError) as e:
        raise DataError(f"is not a tar file that can be read ({e})", where=file, hint="copy it again") from None


def images_listed(sample: bytes) -> list[str]:
    """Return the names of images that the JSON document of a sample lists; empty if it lists none."""
    try:
        names = json.loads(sample)["images"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def parquet_shards(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files in a folder or, if it has none, in its subfolder `data`. Return an empty tuple if the
    first file has no image column or cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(folder.glob("*.parquet")) or sorted((folder / "data").glob("*.parquet"))
    try:
        return tuple(files) if files and image_columns(pq.read_schema(files[0])) else ()
    except (pa.ArrowException, OSError):
        return ()


def image_columns(schema: Any) -> list[str]:
    """Return the names of the image columns of an Arrow schema. Their type is struct<bytes, path>, which `datasets`
    uses for images, or a list of it.
    """
    import pyarrow as pa

    def is_image(type_: Any) -> bool:
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            type_ = type_.value_type
        return pa.types.is_struct(type_) and {"bytes", "path"} <= {type_.field(i).name for i in range(type_.num_fields)}

    return [field.name for field in schema if is_image(field.type)]


#: where an image is in a `ParquetStore`: its file, row group, column, and number among the images there
Place = tuple[int, int, str, int]


class ParquetStore(Archive):
    """A store of the images in the image columns of Parquet files.

    The name of an image is the `path` stored with it. Without one, it is `<column>/<row>` (rows are counted over all
    files) or, in a column of lists, `<column>/<row>/<index>`. Every image can also be found by this numbered name.
    """

    _cache_bytes = 256 * 2**20

    def __init__(self, path: Path, files: tuple[Path, ...]) -> None:
        super().__init__(path)
        self.files = files
        self._groups: OrderedDict[tuple[int, int, str], Any] = OrderedDict()

    @cached_property
    def _readers(self) -> list[Any]:
        with reading_parquet(self.path):
            return [open_parquet(f) for f in self.files]

    def _list(self) -> dict[str, Any]:
        columns = image_columns(self._readers[0].schema_arrow)
        if not columns:
            what = "has no image column (a struct of bytes and path)"
            raise DataError(what, where=self.path, hint="pass the folder of the images instead")
        self._rows: dict[str, Place] = {}
        self._names: dict[str, list[list[tuple[str, str]]]] = {column: [] for column in columns}
        self._places: dict[str, list[Place]] = {}
        for f, reader in enumerate(self._readers):
            for g in range(reader.num_row_groups):
                for column in columns:
                    self._list_group(f, g, column)
        return {name: places[-1] for name, places in self._places.items()}

    def _list_group(self, f: int, g: int, column: str) -> None:
        """Index the images in one column of a row group, by name and by row."""
        cells = self._leaf(f, g, column, "path").to_pylist()
        row, place = len(self._names[column]), 0
        for i, cell in enumerate(cells):
            names = []
            for k, inner in enumerate(cell if isinstance(cell, list) else [cell]):
                numbered = f"{column}/{row + i}/{k}" if isinstance(cell, list) else f"{column}/{row + i}"
                name = (inner or {}).get("path") or numbered
                names.append((name, numbered))
                self._rows[numbered] = (f, g, column, place)
                self._places.setdefault(name, []).append((f, g, column, place))
                place += 1
            self._names[column].append(names)

    def _leaf(self, f: int, g: int, column: str, leaf: str) -> Any:
        """Return one field (`leaf`: bytes or path) of the images in a column, for row group `g` of file `f`."""
        schema = self._readers[f].schema
        paths = [schema.column(i).path for i in range(len(schema))]
        chosen = [p for p in paths if p.split(".")[0] == column and p.endswith(f".{leaf}")]
        return self._readers[f].read_row_group(g, columns=chosen).column(0).combine_chunks()

    def row_names(self, column: str) -> list[list[str]]:
        """Return, for each row, the names of its images in this column. If different images share a name, their
        numbered names (such as `<column>/<row>`) are returned instead.
        """
        _ = self._entries
        different = set(self.repeated())
        return [[numbered if name in different else name for name, numbered in names] for names in self._names[column]]

    def repeated(self) -> list[str]:
        """Return the names that several different images share."""
        _ = self._entries
        shared = {name: places for name, places in self._places.items() if len(places) > 1}
        return sorted(name for name, places in shared.items() if len(set(map(self._at, places))) > 1)

    def _has(self, name: str) -> bool:
        return name in self._entries or name in self._rows

    def _bytes(self, name: str) -> bytes:
        data = self._at(self._entries.get(name) or self._rows[name])
        if data is None:
            raise ImageError(
                "missing-image",
                "the table holds no bytes for this image, only its path",
                where=f"{self.path}/{name}",
                hint="pass the folder of the images with `images=`",
            )
        return data

    def _at(self, place: Place) -> bytes | None:
        f, g, column, i = place
        return self._group(f, g, column)[i].as_py()

    def _group(self, f: int, g: int, column: str) -> Any:
        """Return the images in one column of a row group. Recently used groups are cached."""
        # Neighbouring rows are often read next.
        import pyarrow as pa

        place = (f, g, column)
        with self._lock:
            if place not in self._groups:
                try:
                    array = self._leaf(f, g, column, "bytes")
                except (pa.ArrowException, OSError) as e:
                    raise ImageError(
                        "undecodable-image", f"a row group cannot be read ({str(e)[:120]})", where=self.files[f]
                    ) from None
                self._groups[place] = (array if pa.types.is_struct(array.type) else array.flatten()).field("bytes")
                while len(self._groups) > 1 and sum(a.nbytes for a in self._groups.values()) > self._cache_bytes:
                    self._groups.popitem(last=False)
            self._groups.move_to_end(place)
            return self._groups[place]
