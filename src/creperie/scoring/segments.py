"""A shelf: records of fixed width, each with a 32-byte key, in append-only files that survive a crash at any point.

A file is a sequence of blocks. A block is written by one `append`: a header, n keys, n values, and a checksum over all
of it. A reader uses only blocks with a valid checksum. An incomplete write, a flipped bit or a lost page therefore
costs the records of that block (they are computed again), but never gives a wrong value. Every writer keeps its own
file locked, so several processes can write at the same time.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from creperie.core import lock_file

MAGIC = b"CREPSEG1"
KEY = 32
_FIELDS = struct.Struct("<8sIIII16s")  # magic, records, bytes per value, two numbers for the caller, body checksum
_CHECK = 16
HEADER = _FIELDS.size + _CHECK
ROTATE = 128 << 20
MERGE_AT = 16
MERGED_BLOCK = 4096
CLOEXEC = getattr(os, "O_CLOEXEC", 0)  #: Windows does not have this flag and does not need it
SUFFIX = ".seg"


@dataclass(frozen=True, eq=False)
class Block:
    """One block of a memory-mapped file. `start` is the position of its body, after the header."""

    path: Path
    data: mmap.mmap | bytes
    start: int
    count: int
    width: int
    shape: tuple[int, int]
    check: bytes

    @property
    def end(self) -> int:
        return self.start + self.count * (KEY + self.width)

    @property
    def form(self) -> tuple[tuple[int, int], int]:
        return self.shape, self.width

    @property
    def keys(self) -> np.ndarray:
        return np.frombuffer(self.data, np.uint8, self.count * KEY, self.start).reshape(self.count, KEY)

    @property
    def values(self) -> np.ndarray:
        flat = np.frombuffer(self.data, np.uint8, self.count * self.width, self.start + self.count * KEY)
        return flat.reshape(self.count, self.width)

    @cached_property
    def sound(self) -> bool:
        """True if the content matches its checksum."""
        return _digest(memoryview(self.data)[self.start : self.end]) == self.check


@dataclass(frozen=True)
class Segment:
    """The blocks that the headers of a file list. `size` is the size of the file, and `torn` the number of bytes
    outside of all blocks.
    """

    blocks: list[Block]
    size: int
    torn: int


@dataclass(frozen=True)
class Found:
    """The result of a search for keys: `rows` are the positions of the found keys among those searched for, and
    `values` has one row for each found key.
    """

    rows: np.ndarray
    values: np.ndarray
    shape: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Census:
    """Counts of what a folder of records holds: files, records, bytes and damage."""

    files: int = 0
    records: int = 0
    bytes: int = 0
    damaged: int = 0  #: blocks whose checksum fails
    torn: int = 0  #: bytes outside of all blocks


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()[:_CHECK]


def _encode_block(keys: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> bytes:
    body = np.ascontiguousarray(keys).tobytes() + np.ascontiguousarray(values).tobytes()
    head = _FIELDS.pack(MAGIC, len(keys), values.shape[1], *shape, _digest(body))
    return head + _digest(head) + body


def open_segment(path: Path) -> Segment:
    """Map a file into memory and read the headers of its blocks; damaged headers are skipped."""
    with path.open("rb") as f:
        size = os.fstat(f.fileno()).st_size
        data: mmap.mmap | bytes = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ) if size else b""
    blocks: list[Block] = []
    torn, position = size, 0
    while 0 <= position <= size - HEADER:
        head = data[position : position + _FIELDS.size]
        if data[position + _FIELDS.size : position + HEADER] == _digest(head) and head.startswith(MAGIC):
            _, count, width, a, b, check = _FIELDS.unpack(head)
            block = Block(path, data, position + HEADER, count, width, (a, b), check)
            if block.end <= size:
                blocks.append(block)
                torn -= block.end - position
                position = block.end
                continue
        position = data.find(MAGIC, position + 1)
    return Segment(blocks, size, torn)


@dataclass(frozen=True)
class SegmentFolder:
    """A folder that stores records of one kind: values of a fixed size by 32-byte key."""

    folder: Path

    # -- reading -------------------------------------------------------------------------------------------------

    def segments(self) -> list[Segment]:
        """Return all files, oldest first, except those that another process has just merged or deleted."""
        opened = []
        for path in sorted(self.folder.glob(f"[!.]*{SUFFIX}")):
            try:
                opened.append(open_segment(path))
            except FileNotFoundError:
                continue
        return opened

    def find(self, keys: np.ndarray) -> Found:
        """Find keys, given as an array (n × 32 bytes). Return the stored values of the keys in this folder, after
        verifying checksums.
        """
        blocks = [block for segment in self.segments() for block in segment.blocks] if len(keys) else []
        blocks = [block for block in blocks if block.form == blocks[-1].form]  # of the newest form
        while blocks:
            place, row, question = _match(blocks, keys)
            used = [blocks[p] for p in np.unique(place)]
            if all(block.sound for block in used):
                values = np.empty((len(question), blocks[0].width), np.uint8)
                for p, rows in by_group(place):
                    values[rows] = blocks[p].values[row[rows]]
                _mark_used({block.path for block in used})
                return Found(question, values, blocks[0].shape)
            blocks = [block for block in blocks if block not in used or block.sound]
        return Found(np.zeros(0, np.int64), np.zeros((0, 0), np.uint8))

    def census(self, verify: bool = False) -> Census:
        """Return counts of what is stored; with `verify`, recompute every checksum."""
        files = records = size = damaged = torn = 0
        for segment in self.segments():
            files += 1
            size += segment.size
            torn += segment.torn
            for block in segment.blocks:
                if verify and not block.sound:
                    damaged += 1
                else:
                    records += block.count
        return Census(files, records, size, damaged, torn)

    # -- writing -------------------------------------------------------------------------------------------------

    def writer(self) -> Writer:
        return Writer(self.folder)

    def merge(self, at_least: int = MERGE_AT) -> bool:
        """Merge small files into one if there are at least `at_least` of them, and return whether any were merged. With
        `at_least=1`, files of any size are merged. Duplicates and damaged blocks are dropped.

        Files that are being written are skipped.
        """
        largest = ROTATE // 2 if at_least > 1 else None
        paths = [p for p in sorted(self.folder.glob(f"[!.]*{SUFFIX}")) if largest is None or _size(p) < largest]
        if len(paths) < at_least:
            return False
        locked = [(p, handle) for p in paths if (handle := _try_lock(p)) is not None]
        try:
            if len(locked) < at_least:
                return False
            blocks = [block for p, _ in locked for block in open_segment(p).blocks]
            with Writer(self.folder) as writer:
                for keys, values, shape in _distinct(blocks):
                    writer.append(keys, values, shape)
            for p, _ in locked:
                p.unlink(missing_ok=True)
            return True
        finally:
            for _, handle in locked:
                os.close(handle)


class Writer:
    """Appends blocks to its own file, which gets its final name only after it is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._handle: int | None = None
        self._size = 0

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, keys: np.ndarray, values: np.ndarray, shape: tuple[int, int] = (0, 0)) -> None:
        """Write one block of keys and values. Once this returns, its records are not lost if the process ends. `shape`
        is the shape of one value; 0 stands for a dimension that it does not have.
        """
        if len(keys) == 0:
            return
        if self._handle is not None and self._size > ROTATE:
            self.close()
        if self._handle is None:
            self._handle, self._size = _new_file(self.folder), 0
        block = memoryview(_encode_block(keys, values, shape))
        self._size += len(block)
        while block:
            block = block[os.write(self._handle, block) :]

    def close(self) -> None:
        if self._handle is not None:
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = None


def _new_file(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(3)}{SUFFIX}"
    draft = folder / f".{name}"
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | CLOEXEC, 0o644)
    lock_file(handle)
    draft.rename(folder / name)
    return handle


def _try_lock(path: Path) -> int | None:
    """Return a handle that holds the file's lock; None if another process is writing the file, or if it was deleted."""
    try:
        handle = os.open(path, os.O_RDONLY | CLOEXEC)
    except FileNotFoundError:
        return None
    if not lock_file(handle):
        os.close(handle)
        return None
    return handle


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def in_use(path: Path) -> bool:
    """Return True if another process is writing this file."""
    handle = _try_lock(path)
    if handle is None:
        return path.exists()
    os.close(handle)
    return False


def _match(blocks: Sequence[Block], keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays with one entry per key found: its block, its row in the block, and its position in `keys`.

    Candidates are looked up by their first eight bytes and then compared in full. If two keys have the same first
    bytes, one of them may not be found; the only consequence is that its value is computed again.
    """
    stored = np.concatenate([block.keys for block in blocks])
    counts = [block.count for block in blocks]
    place = np.repeat(np.arange(len(blocks)), counts)
    row = np.arange(len(stored)) - np.repeat(np.cumsum(counts) - counts, counts)
    prefix = stored.view("<u8")[:, 0]
    order = np.argsort(prefix, kind="stable")
    asked = np.ascontiguousarray(keys)
    slot = np.searchsorted(prefix[order], asked.view("<u8")[:, 0], side="right") - 1
    candidate = order[np.maximum(slot, 0)]
    question = np.flatnonzero((stored[candidate] == asked).all(axis=1))
    candidate = candidate[question]
    return place[candidate], row[candidate], question


def by_group(group: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each group number with the positions at which it occurs."""
    if not len(group):  # numpy would split an empty array into one empty part
        return
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    for start, rows in zip(starts, np.split(order, starts[1:]), strict=True):
        yield int(group[order[start]]), rows


def _mark_used(paths: set[Path]) -> None:
    """Update the modification times of used files, at most once per hour, because the least recently used files are
    deleted first.
    """
    now = time.time()
    for path in paths:
        try:
            if now - path.stat().st_mtime > 3600:
                os.utime(path)
        except OSError:
            continue  # another process evicted it, or the cache is read-only


def _distinct(blocks: Sequence[Block]) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[int, int]]]:
    """Yield the records of the valid blocks as new blocks (keys, values, shape). Each key occurs only once, and a new
    block has at most `MERGED_BLOCK` records.
    """
    forms: dict[tuple[tuple[int, int], int], list[Block]] = {}
    for block in blocks:
        if block.sound:
            forms.setdefault(block.form, []).append(block)
    for (shape, _), parts in forms.items():
        keys = np.concatenate([block.keys for block in parts])
        _, first = np.unique(keys.view(f"V{KEY}").ravel(), return_index=True)
        first.sort()
        stored, ends = [block.values for block in parts], np.cumsum([block.count for block in parts])
        for chunk in np.split(first, range(MERGED_BLOCK, len(first), MERGED_BLOCK)):
            part = np.searchsorted(ends, chunk, side="right")
            values = [stored[p][i - ends[p]] for p, i in zip(part, chunk, strict=True)]  # a negative index
            yield keys[chunk], np.stack(values), shape
