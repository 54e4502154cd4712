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
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """The position of one block in its file."""

    start: int  #: of the body
    count: int
    width: int
    shape: tuple[int, int]
    check: bytes

    @property
    def end(self) -> int:
        return self.start + self.count * (KEY + self.width)


@dataclass
class Segment:
    """A memory-mapped file and the blocks that its headers list. `torn` is the number of bytes outside of all
    blocks.
    """

    path: Path
    data: mmap.mmap | bytes
    blocks: list[BlockSpan]
    torn: int
    _sound: dict[int, bool] = field(default_factory=dict)

    def keys(self, block: BlockSpan) -> np.ndarray:
        flat = np.frombuffer(self.data, np.uint8, block.count * KEY, block.start)
        return flat.reshape(block.count, KEY)

    def values(self, block: BlockSpan) -> np.ndarray:
        flat = np.frombuffer(self.data, np.uint8, block.count * block.width, block.start + block.count * KEY)
        return flat.reshape(block.count, block.width)

    def sound(self, number: int) -> bool:
        """Return whether the content of block `number` matches its checksum; the answer is cached."""
        if number not in self._sound:
            block = self.blocks[number]
            body = memoryview(self.data)[block.start : block.end]
            self._sound[number] = _digest(body) == block.check
        return self._sound[number]


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


def _read_blocks(data: mmap.mmap | bytes, size: int) -> tuple[list[BlockSpan], int]:
    """Return the blocks of a file and the number of bytes outside of them; damaged headers are skipped."""
    blocks: list[BlockSpan] = []
    good = position = 0
    while position + HEADER <= size:
        head = data[position : position + _FIELDS.size]
        if data[position + _FIELDS.size : position + HEADER] == _digest(head) and head.startswith(MAGIC):
            _, count, width, a, b, check = _FIELDS.unpack(head)
            block = BlockSpan(position + HEADER, count, width, (a, b), check)
            if block.end <= size:
                blocks.append(block)
                good += HEADER + block.end - block.start
                position = block.end
                continue
        following = data.find(MAGIC, position + 1)
        if following < 0:
            break
        position = following
    return blocks, size - good


def open_segment(path: Path) -> Segment:
    with path.open("rb") as f:
        size = os.fstat(f.fileno()).st_size
        data: mmap.mmap | bytes = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ) if size else b""
    return Segment(path, data, *_read_blocks(data, size))


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
        empty = Found(np.zeros(0, np.int64), np.zeros((0, 0), np.uint8))
        segments = self.segments() if len(keys) else []
        places = [(s, n) for s, segment in enumerate(segments) for n in range(len(segment.blocks))]
        if not places:
            return empty
        shape, width = _newest_form(segments)
        places = [(s, n) for s, n in places if _form(segments[s].blocks[n]) == (shape, width)]
        while places:
            place, row, question = _match(segments, places, keys)
            used = np.unique(place)
            bad = {int(p) for p in used if not segments[places[p][0]].sound(places[p][1])}
            if not bad:
                values = np.empty((len(question), width), np.uint8)
                for p, rows in by_group(place):
                    segment = segments[places[p][0]]
                    values[rows] = segment.values(segment.blocks[places[p][1]])[row[rows]]
                _mark_used(segments, {places[int(p)][0] for p in used})
                return Found(question, values, shape)
            places = [place for p, place in enumerate(places) if p not in bad]
        return empty

    def census(self, verify: bool = False) -> Census:
        """Return counts of what is stored; with `verify`, recompute every checksum."""
        files = records = size = damaged = torn = 0
        for segment in self.segments():
            files += 1
            size += len(segment.data)
            torn += segment.torn
            for n, block in enumerate(segment.blocks):
                if verify and not segment.sound(n):
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
            segments = [open_segment(p) for p, _ in locked]
            with Writer(self.folder) as writer:
                for keys, values, shape in _distinct(segments):
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


def _form(block: BlockSpan) -> tuple[tuple[int, int], int]:
    return block.shape, block.width


def _newest_form(segments: Sequence[Segment]) -> tuple[tuple[int, int], int]:
    last = next(s for s in reversed(segments) if s.blocks)
    return _form(last.blocks[-1])


def _match(
    segments: Sequence[Segment], places: Sequence[tuple[int, int]], keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays with one entry per key found: its block, its row in the block, and its position in `keys`.
    `places` lists the blocks to search, as (segment, block).

    Candidates are looked up by their first eight bytes and then compared in full. If two keys have the same first
    bytes, one of them may not be found; the only consequence is that its value is computed again.
    """
    stored = np.concatenate([segments[s].keys(segments[s].blocks[n]) for s, n in places])
    counts = [segments[s].blocks[n].count for s, n in places]
    place = np.repeat(np.arange(len(places)), counts)
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


def _mark_used(segments: Sequence[Segment], used: set[int]) -> None:
    """Update the modification times of used files, at most once per hour, because the least recently used files are
    deleted first.
    """
    now = time.time()
    for s in used:
        try:
            if now - segments[s].path.stat().st_mtime > 3600:
                os.utime(segments[s].path)
        except OSError:
            continue  # another process evicted it, or the cache is read-only


def _distinct(segments: Sequence[Segment]) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[int, int]]]:
    """Yield blocks of the valid records of several files as (keys, values, shape). Each key occurs only once, and a
    block has at most `MERGED_BLOCK` records.
    """
    forms: dict[tuple[tuple[int, int], int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for segment in segments:
        for n, block in enumerate(segment.blocks):
            if segment.sound(n):
                forms.setdefault(_form(block), []).append((segment.keys(block), segment.values(block)))
    for (shape, _), parts in forms.items():
        keys = np.concatenate([k for k, _ in parts])
        _, first = np.unique(keys.view(f"V{KEY}").ravel(), return_index=True)
        first.sort()
        ends = np.cumsum([len(k) for k, _ in parts])
        for chunk in np.split(first, range(MERGED_BLOCK, len(first), MERGED_BLOCK)):
            part = np.searchsorted(ends, chunk, side="right")
            values = [parts[p][1][i - ends[p]] for p, i in zip(part, chunk, strict=True)]  # a negative index
            yield keys[chunk], np.stack(values), shape
