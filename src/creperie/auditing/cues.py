"""Find the words and marks that tell the true caption from the false one, with counts and examples.

A cue counts for a pair if exactly one of its captions carries it. Without a leak that would be the true caption half of
the time; a cue is reported if it differs significantly from this, after correction for all the cues that were tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.auditing.features import run_digests, token_digests
from creperie.auditing.pairs import Pairs
from creperie.lang import marks, tokens
from creperie.metrics import normal_quantile

LONGEST = 3
#: Fewest pairs in which a cue must occur on one side only.
FEWEST = 5
#: Pairs tokenised at once.
PIECE = 8192


@dataclass(frozen=True)
class Cue:
    """A word n-gram or a mark of style that one caption of a pair carries and the other does not."""

    kind: str  #: "words" or "style"
    text: str
    positives: int  #: pairs where only the true caption carries it
    negatives: int  #: pairs where only the false one does
    accuracy: float  #: of an attacker that uses this cue alone; ties count half
    example: int  #: index of a pair with this cue on one side only

    @property
    def z(self) -> float:
        return (self.positives - self.negatives) / math.sqrt(max(1, self.positives + self.negatives))


def telling_cues(pairs: Pairs, *, most: int = 12, level: float = 0.05) -> list[Cue]:
    """Return the cues that reveal which caption is true, most significant first, without overlapping ones."""
    style, words = (_tally(pairs, kind) if len(pairs) else np.zeros((5, 0)) for kind in (_marks, _ngrams))
    if not len(style.T) + len(words.T):
        return []
    enough = normal_quantile(1 - level / 2 / (len(style.T) + len(words.T)))
    cues = []
    for kind, (digest, positives, negatives, first, second) in (("style", style), ("words", words)):
        z = (positives.astype(np.float64) - negatives) / np.sqrt(positives + negatives)
        for k in np.flatnonzero(np.abs(z) > enough).tolist():
            p, n = int(positives[k]), int(negatives[k])
            shown = int(first[k] if p >= n else second[k])
            caption = pairs.texts[(pairs.left if p >= n else pairs.right)[shown]]
            text = MARK_NAMES[digest[k]] if kind == "style" else _run_of(caption, digest[k])
            cues.append(Cue(kind, text, p, n, 0.5 + abs(p - n) / 2 / len(pairs), shown))
    return _different(sorted(cues, key=lambda c: (-abs(c.z), c.kind, c.text)), most)


#: A function from rows of pairs to the cues that only one caption of a pair has: digests, pairs, and True where it is
#: the true caption.
OneSided = Callable[[Pairs, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _tally(pairs: Pairs, alone: OneSided) -> np.ndarray:
    """Return, for cues that occur in enough pairs, the digest, the number of pairs in which only the true and only the
    false caption has it, and the first pair of each kind.
    """
    table = np.zeros((5, 0), np.uint64)
    for rows in np.array_split(np.arange(len(pairs)), max(1, len(pairs) // PIECE)):
        digest, pair, true = alone(pairs, rows)
        first, second = np.where(true, pair, len(pairs)), np.where(true, len(pairs), pair)
        new = np.stack([digest, *(part.astype(np.uint64) for part in (true, ~true, first, second))])
        table = _summed(np.concatenate([table, new], axis=1))
    return table[:, table[1] + table[2] >= FEWEST]


def _summed(table: np.ndarray) -> np.ndarray:
    """Return a tally with one column per cue: counts are added, and the first pairs kept."""
    table = table[:, np.argsort(table[0], kind="stable")]
    begin = np.flatnonzero(np.diff(table[0], prepend=~table[0][:1]))
    counts = [np.add.reduceat(part, begin) for part in table[1:3]]
    return np.stack([table[0][begin], *counts, *(np.minimum.reduceat(part, begin) for part in table[3:])])


def _ngrams(pairs: Pairs, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the n-grams (with at least one word) that only one caption of a pair has, in the form of `OneSided`."""
    texts, at = np.unique(np.stack([pairs.left[rows], pairs.right[rows]], axis=1), return_inverse=True)
    cut = [tokens(t) for t in pairs.said(texts)]
    pieces = [cut[k] for k in at.ravel().tolist()]
    flat = [token for piece in pieces for token in piece]
    lengths = np.array([*map(len, pieces)], np.int64)
    digest, start, size = run_digests(token_digests(flat), lengths, LONGEST)
    words = np.r_[0, np.cumsum([token[0].isalnum() or any(map(str.isalnum, token)) for token in flat])]
    worded = words[start + size] > words[start]
    digest, piece = digest[worded], np.repeat(np.arange(len(pieces)), lengths)[start[worded]]
    gram = np.unique(digest, return_inverse=True)[1]
    _, first, cue = np.unique(gram * len(rows) + piece // 2, return_index=True, return_inverse=True)
    carried = np.zeros((2, len(first)), bool)
    carried[piece % 2, cue] = True
    alone = carried[0] != carried[1]
    return digest[first[alone]], rows[piece[first[alone]] // 2], carried[0][alone]


def _run_of(caption: str, digest: np.uint64) -> str:
    """Return the n-gram of a caption that has this digest."""
    cut = tokens(caption)
    digests, start, size = run_digests(token_digests(cut), np.array([len(cut)]), LONGEST)
    at = int(np.flatnonzero(digests == digest)[0])
    return " ".join(cut[start[at] : start[at] + size[at]])


MARK_NAMES = tuple(marks(""))


def _marks(pairs: Pairs, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    texts, at = np.unique(np.stack([pairs.left[rows], pairs.right[rows]], axis=1), return_inverse=True)
    carried = np.array([[*marks(t).values()] for t in pairs.said(texts)], bool)[at.reshape(-1, 2)]
    pair, mark = np.nonzero(carried[:, 0] != carried[:, 1])
    return mark.astype(np.uint64), rows[pair], carried[pair, 0, mark]


def _different(cues: Sequence[Cue], most: int) -> list[Cue]:
    """Return the first `most` cues, without n-grams that contain, or are part of, a better one."""
    chosen: list[Cue] = []
    for cue in cues:
        padded = f" {cue.text} "
        same = (k for k in chosen if k.kind == cue.kind and (f" {k.text} " in padded or padded in f" {k.text} "))
        if not any(k.kind == "words" for k in same):
            chosen.append(cue)
        if len(chosen) == most:
            break
    return chosen


def surest(pairs: Pairs, margins: np.ndarray, count: int) -> list[int]:
    """Return the pairs that an attacker wins by the widest margin, at most one per item."""
    chosen: dict[int, int] = {}
    for pair in np.argsort(-np.nan_to_num(margins), kind="stable").tolist():
        if not margins[pair] > 0 or len(chosen) == count:
            break
        chosen.setdefault(int(pairs.item[pair]), pair)
    return list(chosen.values())
