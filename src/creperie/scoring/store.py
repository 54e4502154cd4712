"""The store: a cache of all embeddings and scores computed on this machine, by content and model.

    CREPERIE_CACHE/                 or XDG_CACHE_HOME/creperie, or ~/.cache/creperie
      store/<model>/model.json      which model this is, for people
      store/<model>/<kind>/*.seg    kind: an ability, such as image, text or pair
      store/<model>/answers.jsonl   what a generative model wrote, with its thoughts
      memo/<kind>/*.seg             digests of files by path, size and time of change

A key is the SHA-256 of the content: the encoded image with its crop box, the caption, or both for a pair. Each model
has a folder, named by its fingerprint. Benchmarks with the same content therefore share results, but two models never
do.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from creperie.core import CreperieError, UsageError, cache_home, read_json, unknown, write_json
from creperie.models import ABILITIES, Fingerprint
from creperie.scoring.segments import KEY, SUFFIX, Census, SegmentFolder, Writer, in_use

#: what is stored: the vectors or numbers of each ability; choices are stored as scores of pairs
KINDS = tuple(name for name, ability in ABILITIES.items() if ability.gives in ("vectors", "numbers"))
DEFAULT_SIZE = "20G"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """Return the number of bytes that a text such as 20G stands for: a number with or without a unit.

    >>> parse_size("1.5G"), parse_size("200M"), parse_size("4096")
    (1610612736, 209715200, 4096)
    """
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if not parts:
        raise UsageError(f"{text!r} is not a size", where="CREPERIE_CACHE_SIZE", hint="write, for example, 20G or 500M")
    return int(float(parts[1]) * _UNITS[parts[2].upper()])


def text_keys(texts: Sequence[str]) -> np.ndarray:
    """Return the keys of captions, the SHA-256 of their bytes, as an array of n × 32 bytes."""
    joined = b"".join([hashlib.sha256(t.encode("utf-8", "surrogatepass")).digest() for t in texts])
    return np.frombuffer(joined, np.uint8).reshape(len(texts), KEY)


def pair_keys(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Return the keys of (image, caption) pairs, computed from the keys of the images and of the captions."""
    both = np.concatenate([images, texts], axis=1)
    joined = b"".join([hashlib.sha256(row).digest() for row in both])
    return np.frombuffer(joined, np.uint8).reshape(len(both), KEY)


@dataclass(frozen=True)
class Vectors:
    """Vectors found in the store, with the positions of their keys among the wanted keys. Each is a float32 vector or
    number. `cut` says how many tokens of each input were cut off.
    """

    rows: np.ndarray
    vectors: np.ndarray
    cut: np.ndarray


class VectorShelf:
    """The stored vectors of one model for one kind of content."""

    def __init__(self, shelf: SegmentFolder) -> None:
        self.shelf = shelf
        self._writer: Writer | None = None

    def find(self, keys: np.ndarray) -> Vectors:
        stored = self.shelf.find(keys)
        n = len(stored.rows)
        if n == 0:
            return Vectors(stored.rows, np.zeros((0,), np.float32), np.zeros(0, np.int32))
        words = stored.values.view("<f4")
        cut = np.ascontiguousarray(stored.values[:, :4]).view("<i4")[:, 0]
        return Vectors(stored.rows, words[:, 1:].reshape(n, *[s for s in stored.shape if s]), cut)

    def add(self, keys: np.ndarray, vectors: np.ndarray, cut: np.ndarray | None = None) -> None:
        """Store the vectors of a finished batch. Once this returns, they are not lost if the process ends."""
        n = len(keys)
        if not n:
            return
        words = np.empty((n, 1 + vectors.size // n), "<f4")
        words[:, 1:] = vectors.reshape(n, -1)
        words.view("<i4")[:, 0] = 0 if cut is None else cut
        shape = (*vectors.shape[1:], 0, 0)[:2]
        if self._writer is None:
            self._writer = self.shelf.writer()
        self._writer.append(keys, words.view(np.uint8).reshape(n, -1), (int(shape[0]), int(shape[1])))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self.shelf.merge()


@dataclass(frozen=True)
class StoreEntry:
    """A model in the store: what identifies it, and counts of its stored results by kind."""

    key: str
    uri: str
    architecture: str
    dtype: str
    kinds: dict[str, Census]

    @property
    def bytes(self) -> int:
        return sum(c.bytes for c in self.kinds.values())

    @property
    def records(self) -> int:
        return sum(c.records for c in self.kinds.values())


class ResultStore:
    """The store of results in one cache folder."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or cache_home()
        self.root = self.home / "store"

    def shelf(self, fingerprint: Fingerprint, kind: str) -> VectorShelf:
        """Return the shelf (a folder of records) with a model's results of one `kind`. A kind is an ability, such as
        "image". If the model's folder has no description of the model yet, write one.
        """
        folder = self.root / fingerprint.key
        if not (about := folder / "model.json").exists():
            write_json(about, vars(fingerprint))
        return VectorShelf(SegmentFolder(folder / kind))

    def answers(self, fingerprint: Fingerprint) -> Path:
        """Return the file that holds what a generative model wrote."""
        return self.root / fingerprint.key / "answers.jsonl"

    def memo(self, kind: str) -> SegmentFolder:
        """Return the folder that stores digests of files of one `kind`, such as "image", so that unchanged files need
        not be read again.
        """
        return SegmentFolder(self.home / "memo" / kind)

    # -- maintenance ---------------------------------------------------------------------------------------------

    def entries(self, verify: bool = False) -> list[StoreEntry]:
        """Return one entry per model in the store; with `verify`, recompute all checksums."""
        entries = []
        for folder in sorted(self.root.glob("*/")):
            about = _read_description(folder)
            kinds = {k: SegmentFolder(folder / k).census(verify) for k in KINDS if (folder / k).is_dir()}
            entries.append(StoreEntry(folder.name, about["uri"], about["architecture"], about["dtype"], kinds))
        return entries

    def clear(self, model: str | None = None) -> int:
        """Delete the stored results of one model, or everything if `model` is None. `model` is a URI, a key or the
        beginning of a key. Return the number of bytes freed.
        """
        entries = self.entries()
        if model is not None:
            names = {e.uri for e in entries} | {e.key for e in entries}
            entries = [e for e in entries if model == e.uri or (len(model) >= 4 and e.key.startswith(model))]
            if not entries:
                raise unknown("model in the store", model, names, where=self.root)
        for entry in entries:
            shutil.rmtree(self.root / entry.key, ignore_errors=True)
        freed = sum(e.bytes for e in entries)
        if model is None:
            memo = self.home / "memo"
            freed += sum(f.stat().st_size for f in memo.rglob(f"*{SUFFIX}"))
            shutil.rmtree(memo, ignore_errors=True)
        return freed

    def repair(self) -> None:
        """Rewrite every shelf (folder of records) without its damaged and incomplete blocks."""
        for folder in sorted(self.root.glob("*/")):
            for kind in KINDS:
                SegmentFolder(folder / kind).merge(at_least=1)

    def trim(self, limit: int | None = None) -> int:
        """Delete the least recently used files until the store has at most `limit` bytes (by default
        CREPERIE_CACHE_SIZE); return the number of bytes freed.
        """
        if limit is None:
            limit = parse_size(os.environ.get("CREPERIE_CACHE_SIZE", DEFAULT_SIZE))
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        freed = 0
        for _, size, path in files:
            if total - freed <= limit:
                break
            if not in_use(path):
                path.unlink(missing_ok=True)
                freed += size
        return freed

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        for path in self.root.rglob(f"[!.]*{SUFFIX}"):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            yield stat.st_mtime, stat.st_size, path


def _read_description(folder: Path) -> dict[str, Any]:
    try:
        document = read_json(folder / "model.json")
        return {k: str(document.get(k, "?")) for k in ("uri", "architecture", "dtype")}
    except (CreperieError, AttributeError):
        return {"uri": "?", "architecture": "?", "dtype": "?"}
