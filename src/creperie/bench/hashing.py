"""The content hash of a benchmark. It depends on the items, but not on how they are chunked or stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench.item import CORE_COLUMNS, TAG_PREFIX

HASH_CHUNK = 65_536


def content_hash(table: pa.Table) -> str:
    """Return the sha256 of ids, subsets, image references, captions, match matrices and tags.

    The order of the items matters, and so does every byte of a caption. Chunking, compression and the order of tag
    columns do not matter.
    """
    return hash_pieces(table.column_names, [table])


def hash_pieces(columns: Iterable[str], pieces: Iterable[pa.Table]) -> str:
    """Return the content hash of a table that is read in pieces, of any size."""
    names = list(columns)
    hashing = ContentHash(names)
    waiting: list[pa.Table] = []
    for piece in pieces:
        whole = pa.concat_tables([*waiting, piece.select(names)], promote_options="default")
        full = whole.num_rows - whole.num_rows % HASH_CHUNK
        for start in range(0, full, HASH_CHUNK):
            hashing.feed(whole.slice(start, HASH_CHUNK))
        waiting = [whole.slice(full)]
    for rest in waiting:
        if rest.num_rows:
            hashing.feed(rest)
    return hashing.hexdigest()


class ContentHash:
    """A content hash that is computed from successive tables. Every table has `HASH_CHUNK` rows, a fixed number; only
    the last one may have fewer.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        names = list(CORE_COLUMNS.names) + sorted(n for n in columns if n.startswith(TAG_PREFIX))
        self._digests = {name: hashlib.sha256() for name in names}
        self._carried = set(CORE_COLUMNS.names)  # tag columns without any value do not count

    def feed(self, piece: pa.Table) -> None:
        for name, digest in self._digests.items():
            part = piece.column(name).combine_chunks()
            if part.null_count < len(part):
                self._carried.add(name)
            _feed(digest, part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part)

    def hexdigest(self) -> str:
        whole = hashlib.sha256(b"creperie-items-1")
        for name, digest in self._digests.items():
            if name in self._carried:
                whole.update(name.encode() + b"\0" + digest.digest())
        return whole.hexdigest()


def _feed(digest: hashlib._Hash, array: pa.Array) -> None:
    """Update the digest with the validity, lengths and values of an array, but not with buffer padding or offsets."""
    digest.update(_type_name(array.type).encode() + b"\0")
    digest.update(np.packbits(np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False))).tobytes())
    if pa.types.is_list(array.type):
        digest.update(pc.fill_null(pc.list_value_length(array), 0).to_numpy().astype("<i8").tobytes())
        _feed(digest, pc.list_flatten(array))
    elif pa.types.is_string(array.type):
        filled = pc.fill_null(array, "")
        digest.update(pc.binary_length(filled).to_numpy().astype("<i8").tobytes())
        digest.update(_string_bytes(filled))
    elif pa.types.is_boolean(array.type):
        digest.update(np.packbits(pc.fill_null(array, False).to_numpy(zero_copy_only=False)).tobytes())
    else:
        numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype("<f8")
        digest.update(np.where(np.isnan(numbers), np.nan, numbers).tobytes())  # normalise the bits of NaN


def _type_name(type_: pa.DataType) -> str:
    """Return the name of a column type: "number" for any number, and "list<…>" with the name of the element type for a
    list.
    """
    if pa.types.is_list(type_):
        return f"list<{_type_name(type_.value_type)}>"
    return "number" if pa.types.is_floating(type_) or pa.types.is_integer(type_) else str(type_)


def _string_bytes(array: pa.Array) -> memoryview:
    """Return the concatenated bytes of a string array, without a copy."""
    _, offsets, data = array.buffers()
    if data is None or len(array) == 0:
        return memoryview(b"")
    ends = np.frombuffer(offsets, dtype=np.int32)
    return memoryview(data)[ends[array.offset] : ends[array.offset + len(array)]]
