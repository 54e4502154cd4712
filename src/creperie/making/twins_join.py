"""Captions that differ in one phrase or in their order, found by hash joins in flat memory.

A caption is a sequence of word numbers: lower case, without marks and articles, each word by its dictionary form. Two
captions are neighbours when they have a *key* in common:

- the order key: the hash of all words, sorted. Equal keys, other order: the same words arranged differently;
- a deletion key for every span of one or two words: the hash of what stands before and after it. Equal keys, other
  spans: the same sentence with another phrase in one place.

Keys are written to files by their first bits, and every file is sorted on its own, so memory depends on the size of a
file and not on the number of captions.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.making.twins_words import SILENT, base, joined_phrases

ORDER, PHRASE = 0, 1
SPANS = (1, 2)  #: how many words a phrase may have, articles not counted
#: Longer captions are seldom a neighbour of anything, and cost a key per word and span.
MOST_WORDS = 40
_MARKS = r"[^\p{L}\p{N}\s'-]+"
#: `key` ends in the kind, `rest` is half of the filler's hash and the number of the caption
_ROW = np.dtype([("key", np.uint64), ("rest", np.uint64)])
_HALF, _LOW, _ONE = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1)


@dataclass(frozen=True)
class JoinLimits:
    """How much is looked at where many captions share a key. What is left out is counted."""

    per_filler: int = 10  #: captions per key with the same words
    per_key: int = 1_000  #: pairs per key
    files: int = 64


@dataclass
class JoinCounts:
    """What a join saw."""

    captions: int = 0
    keys: int = 0
    repeated: int = 0  #: captions beyond `per_filler` with the same words under the same key
    crowded: int = 0  #: pairs beyond `per_key`


@dataclass(frozen=True)
class TwinJoin:
    """Joins captions given in batches of text. `words` maps a word to its dictionary form."""

    words: Callable[[str], str] = base
    limits: JoinLimits = JoinLimits()
    counts: JoinCounts = field(default_factory=JoinCounts)

    def pairs(self, batches: Iterable[list[str]], folder: str | Path | None = None) -> Iterator[np.ndarray]:
        """Pairs of caption numbers with what joined them: arrays of rows (left, right, kind)."""
        with tempfile.TemporaryDirectory(prefix="creperie-twins-", dir=folder) as held:
            files = [Path(held) / f"{k:03d}" for k in range(self.limits.files)]
            self._spill(batches, files)
            for path in files:
                if path.stat().st_size:
                    found = self._join(np.fromfile(path, dtype=_ROW))
                    path.unlink()
                    if len(found):
                        yield found

    def _spill(self, batches: Iterable[list[str]], files: list[Path]) -> None:
        handles = [path.open("wb") for path in files]
        try:
            for texts in batches:
                rows = self._rows(texts, self.counts.captions)
                self.counts.captions += len(texts)
                self.counts.keys += len(rows)
                part = ((rows["key"] >> np.uint64(40)) % np.uint64(len(files))).astype(np.uint16)  # sorted by radix
                order = np.argsort(part, kind="stable")
                ends = np.searchsorted(part[order], np.arange(len(files) + 1))
                rows = rows[order]
                for k, handle in enumerate(handles):
                    rows[ends[k] : ends[k + 1]].tofile(handle)
        finally:
            for handle in handles:
                handle.close()

    def _rows(self, texts: list[str], first: int) -> np.ndarray:
        """All keys of some captions."""
        starts, codes = tokenised(texts, self.words)
        lengths = np.diff(starts)
        owner = np.repeat(np.arange(len(texts)), lengths)
        place = np.arange(len(codes)) - starts[owner]
        back = lengths[owner] - place
        before = _prefix(_mixed(codes, place * 2 + 1))  # what stands before: by its place from the front
        after = _prefix(_mixed(codes, -back * 2))  # what stands after: by its place from the end
        usable = (lengths >= 2) & (lengths <= MOST_WORDS)
        parts = [self._order_rows(codes, owner, place, starts, usable)]
        for span in SPANS:
            at = np.flatnonzero(usable[owner] & (back >= span) & (lengths[owner] > span))
            one = owner[at]
            key = before[at] - before[starts[one]] + after[starts[one + 1]] - after[at + span]
            inside = np.zeros(len(at), np.uint64)
            for k in range(span):
                inside += _mixed(codes[at + k], np.full(len(at), 101 + k))
            parts.append(_table(key, inside, one, PHRASE))
        found = np.concatenate(parts)
        found["rest"] += np.uint64(first)
        return found

    @staticmethod
    def _order_rows(
        codes: np.ndarray, owner: np.ndarray, place: np.ndarray, starts: np.ndarray, usable: np.ndarray
    ) -> np.ndarray:
        bag = _prefix(_mixed(codes, np.full(len(codes), 7)))
        line = _prefix(_mixed(codes, place * 2 + 1))
        key, filler = (np.diff(total[starts]) for total in (bag, line))
        which = np.flatnonzero(usable)
        return _table(key[which], filler[which], which, ORDER)

    def _join(self, rows: np.ndarray) -> np.ndarray:
        """Pairs of captions under the same key with other fillers."""
        rows = _shared(rows)
        rows = rows[np.lexsort((rows["rest"], rows["key"]))]
        new_filler = _begins(rows["key"]) | _begins(rows["rest"] >> _HALF)
        # several captions with the same words under the same key: the first few stand for them
        rank = np.arange(len(rows)) - np.flatnonzero(new_filler)[np.cumsum(new_filler) - 1]
        few = rank < self.limits.per_filler
        self.counts.repeated += int((~few).sum())
        rows = rows[few]
        starts = np.flatnonzero(_begins(rows["key"]))
        sizes = np.diff(np.r_[starts, len(rows)])
        return self._paired(rows, np.repeat(sizes, sizes))

    def _paired(self, rows: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Each row with the next one under its key, the second next, and so on, as far as the limit allows."""
        farthest = np.minimum(size - 1, np.maximum(self.limits.per_filler, self.limits.per_key // np.maximum(size, 1)))
        self.counts.crowded += int(((size - 1 - farthest) * (size - farthest) / size / 2).sum()) if len(size) else 0
        key, filler, caption = rows["key"].copy(), rows["rest"] >> _HALF, rows["rest"] & _LOW
        found = [np.zeros(0, np.uint64)]
        left = np.flatnonzero(farthest > 0)
        step = 1
        while len(left):
            left = left[(farthest[left] >= step) & (left + step < len(rows))]
            right = left + step
            apart = (key[left] == key[right]) & (filler[left] != filler[right]) & (caption[left] != caption[right])
            one, two = caption[left[apart]], caption[right[apart]]
            found.append(np.minimum(one, two) << _HALF | np.maximum(one, two) << _ONE | key[left[apart]] & _ONE)
            step += 1
        pairs = np.unique(np.concatenate(found))
        return np.column_stack([pairs >> _HALF, (pairs & _LOW) >> _ONE, pairs & _ONE]).astype(np.int64)


def _begins(values: np.ndarray) -> np.ndarray:
    """True where a sorted value differs from the one before."""
    return np.r_[True, values[1:] != values[:-1]] if len(values) else np.zeros(0, dtype=bool)


def _shared(rows: np.ndarray) -> np.ndarray:
    """The rows whose key another row has, too; most have none, and sorting them by more would be in vain."""
    order = np.argsort(rows["key"])
    first = _begins(rows["key"][order])
    alone = first & np.r_[first[1:], True]
    return rows[order[~alone]]


def tokenised(texts: list[str], words: Callable[[str], str]) -> tuple[np.ndarray, np.ndarray]:
    """Where each caption starts, and the hash of each of its words; articles and marks are left out."""
    plain = pc.replace_substring_regex(pc.utf8_lower(pa.array(texts, pa.string())), _MARKS, " ")
    split = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(plain))
    if isinstance(split, pa.ChunkedArray):
        split = split.combine_chunks()
    starts = split.offsets.to_numpy()
    flat = split.flatten().dictionary_encode()
    said: list[str] = flat.dictionary.to_pylist()
    hashes = np.array([_word_hash(words(w)) if w and w not in SILENT else 0 for w in said], np.uint64)
    indices = flat.indices.to_numpy()
    codes = hashes[indices] if len(hashes) else np.zeros(0, np.uint64)
    _join_phrases(codes, indices, said, starts - starts[0])
    kept = codes != 0
    total = np.r_[0, np.cumsum(kept)]
    return total[starts - starts[0]], codes[kept]


def _join_phrases(codes: np.ndarray, indices: np.ndarray, said: list[str], starts: np.ndarray) -> None:
    """Phrases that count as one word get its hash at their first word; their other words fall silent."""
    number = {word: k for k, word in enumerate(said)}
    free = np.ones(len(codes) + 1, dtype=bool)
    for phrase in joined_phrases():
        parts = [number.get(word) for word in phrase.split()]
        if None in parts:
            continue
        at = np.flatnonzero(indices[: len(indices) - len(parts) + 1] == parts[0])
        for k, part in enumerate(parts):
            at = at[(indices[at + k] == part) & free[at + k]]
        ends = starts[np.searchsorted(starts, at, side="right")]
        at = at[at + len(parts) <= ends]
        codes[at] = _word_hash(phrase.replace(" ", "-"))
        free[at] = False
        for k in range(1, len(parts)):
            codes[at + k], free[at + k] = 0, False


@lru_cache(maxsize=1 << 20)
def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") | 1


def _mixed(codes: np.ndarray, salt: np.ndarray) -> np.ndarray:
    """Word hashes salted by a place (splitmix64), so that sums of them are a hash of the sequence."""
    x = codes + (salt.astype(np.int64).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _prefix(values: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])


def _table(key: np.ndarray, filler: np.ndarray, caption: np.ndarray, kind: int) -> np.ndarray:
    rows = np.empty(len(key), _ROW)
    rows["key"], rows["rest"] = key & ~_ONE | np.uint64(kind), filler & ~_LOW | caption.astype(np.uint64)
    return rows
