"""Words and style marks as attackers: how well does one word or style mark, by itself, tell true captions from false
ones?

A cue decides a pair if exactly one caption of the pair contains it; other pairs are ties. Which cues are tested depends
on how often they occur, never on which caption contains them.

A cue is frequent if it decides so many pairs that its accuracy could exceed the threshold. It is then measured like any
attacker (under `cues`, or under `surface` for style marks), and its p-value is multiplied by the number of frequent
cues. Rarer cues are listed if they differ significantly from chance after correction for all cues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.auditing.attackers import Attacker
from creperie.auditing.features import run_digests, token_digests
from creperie.auditing.measure import LEVEL, AttackerMargins, against_chance, calibrated, mean_of
from creperie.auditing.pairs import Pairs, item_wins
from creperie.auditing.registry import entry_of
from creperie.core import Progress, silent
from creperie.lang import marks, tokens
from creperie.metrics import normal_quantile, share_interval

LONGEST = 3
#: Fewest pairs in which a cue must occur on one side only.
FEWEST = 5
#: Most cues of a subset that are listed.
LISTED = 12
#: Pairs tokenised at once.
PIECE = 8192
#: So small a p-value stays significant whatever else is tested: of such cues the most accurate is the strongest.
SURE = 1e-6


@dataclass(frozen=True)
class Cue:
    """A cue: a word n-gram or a style mark (such as a missing full stop) that one caption of a pair contains and the
    other does not.
    """

    kind: str  #: "words" or "style"
    text: str
    positives: int  #: pairs where only the true caption carries it
    negatives: int  #: pairs where only the false one does
    accuracy: float  #: of an attacker that uses this cue alone; ties count half
    example: int  #: index of a pair with this cue on one side only
    p: float = 1.0  #: against chance, corrected for the cues that were tested beside it
    high: float = 0.5  #: the upper limit of its accuracy

    @property
    def z(self) -> float:
        return (self.positives - self.negatives) / math.sqrt(max(1, self.positives + self.negatives))

    @property
    def name(self) -> str:
        return self.text if self.kind == "style" else f"“{self.text}”"


@dataclass(frozen=True)
class CueAttacker:
    """The attacker that tries each word n-gram and style mark as a cue by itself. It skips the style marks in `tested`,
    because the attacker `surface` already tries them.
    """

    tested: tuple[str, ...] = ()
    name: str = "cues"
    prefers: str = entry_of("cues").prefers
    otherwise: str = entry_of("cues").otherwise
    directed: bool = False

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        margins = np.zeros(len(pairs), np.float32)
        for s in np.unique(pairs.subset):
            mine = pairs.subset == s
            margins[mine[pairs.item]] = strongest_cue(self, blank(pairs.of_items(mine)), 0.5).answers.raw
        return margins


def blank(pairs: Pairs) -> AttackerMargins:
    """Return the answers of an attacker that has no preference: all margins are zero."""
    return AttackerMargins(pairs, np.zeros(len(pairs), np.float32), np.zeros(len(pairs)), False, np.ones(pairs.n_items))


@dataclass(frozen=True, eq=False)
class StrongestCue:
    """The strongest of an attacker's cues, and the results of using that cue alone."""

    answers: AttackerMargins
    cue: str = ""  #: empty if it is the attacker's own score
    tried: int = 1
    high: float = 0.0  #: the highest upper limit of any cue
    cues: tuple[Cue, ...] = ()  #: all cues that differ from chance or were tested, uncorrected for other attackers


def strongest_cue(
    attacker: Attacker, answers: AttackerMargins, threshold: float, seed: int = 0, progress: Progress = silent
) -> StrongestCue:
    """Return the strongest cue of an attacker that tests several cues one by one. For any other attacker, return its
    own answers.

    Only cues with an accuracy above the threshold are considered. Of those with a tiny corrected p-value (below
    `SURE`), the most accurate is the strongest. If no p-value is that small, the most significant cue is the strongest.
    If no cue has an accuracy above the threshold, the most accurate of all cues is returned.
    """
    names = getattr(attacker, "marks", ())
    every = isinstance(attacker, CueAttacker)
    pairs = answers.pairs
    if not (every or names) or not len(pairs):
        return StrongestCue(answers)
    kinds = {"style": _marks, "words": _ngrams} if every else {"style": _marks}
    tallies = {kind: (alone, _tallied(pairs, alone, kind, progress)) for kind, alone in kinds.items()}
    tested = [] if every else [_measured_cue(pairs, Cue("", "", 0, 0, 0, 0), answers.raw)]
    for kind, (alone, tally) in tallies.items():
        common = tally[:, (tally[1] + tally[2]) / len(pairs) > max(0.0, 2 * threshold - 1)]
        shown = [_cue_of(pairs, kind, column) for column in common.T]
        found = zip(shown, _margins(pairs, alone, common[0]))
        tested += [_measured_cue(pairs, cue, margins) for cue, margins in found if every or cue.text in names]
    tried = _different_answers(margins for _, margins in tested) + every
    tested_cues = tuple(replace(cue, p=min(1.0, cue.p * tried)) for cue, _ in tested) if every else ()
    rare = _rare_cues(pairs, tallies, {(cue.kind, cue.text) for cue, _ in tested}) if every else []
    candidates = [(cue, margins) for cue, margins in tested if cue.text not in getattr(attacker, "tested", ())]
    high = max((cue.high for cue in [*(cue for cue, _ in candidates), *rare]), default=0.0)
    if not candidates:
        return StrongestCue(answers, "", tried, high, (*tested_cues, *rare))
    cue, margins = _strongest(candidates, tried, threshold)
    chosen = answers if margins is answers.raw else calibrated(pairs, margins, directed=False, seed=seed)
    return StrongestCue(chosen, cue.name if cue.text else "", tried, high, (*tested_cues, *rare))


def cues_to_list(cues: Sequence[Cue], threshold: float, tests: int) -> list[Cue]:
    """Return at most `LISTED` of the cues, to be listed in a table: those whose accuracy differs significantly from
    chance. For cues with an accuracy above the threshold, the p-value is first multiplied by `tests`, the number of
    tests in the audit.
    """
    # N-grams that contain, or are part of, an n-gram already listed are skipped.
    sure = [cue for cue in cues if cue.p * (tests if cue.accuracy > threshold else 1) < 0.05]
    listed: list[Cue] = []
    for cue in sorted(sure, key=lambda c: (-abs(c.z), c.kind, c.text)):
        texts = [f" {other.text} " for other in listed if other.kind == cue.kind == "words"]
        if not any(f" {cue.text} " in text or text in f" {cue.text} " for text in texts):
            listed.append(cue)
    return listed[:LISTED]


def _cue_of(pairs: Pairs, kind: str, column: np.ndarray) -> Cue:
    """Return the cue that one column of the array from `_tallied` describes. `kind` is "words" or "style"."""
    digest, p, n, first, second = column
    shown = int(first if p >= n else second)
    caption = pairs.texts[(pairs.left if p >= n else pairs.right)[shown]]
    text = MARK_NAMES[digest] if kind == "style" else _ngram_with(caption, digest)
    return Cue(kind, text, int(p), int(n), 0.5 + abs(int(p) - int(n)) / 2 / len(pairs), shown)


def _measured_cue(pairs: Pairs, cue: Cue, margins: np.ndarray) -> tuple[Cue, np.ndarray]:
    """Return the cue with its accuracy, upper limit and p-value filled in, followed by `margins`, unchanged. The three
    figures are computed as for an attacker with these margins.
    """
    there = pairs.per_item > 0
    wins, clusters = item_wins(pairs, margins)[there], pairs.cluster[there]
    wins = wins if mean_of(wins) >= 0.5 else 1 - wins
    sure = share_interval(wins, clusters, LEVEL)
    return replace(cue, accuracy=mean_of(wins), high=sure.high, p=against_chance(wins, clusters)), margins


def _strongest(tested: Sequence[tuple[Cue, np.ndarray]], tried: int, threshold: float) -> tuple[Cue, np.ndarray]:
    above = [one for one in tested if one[0].accuracy > threshold]
    sure = [one for one in above if one[0].p * tried < SURE]
    if above and not sure:
        return min(above, key=lambda one: (one[0].p, -one[0].accuracy, not one[0].text, one[0].text))
    return min(sure or tested, key=lambda one: (-one[0].accuracy, one[0].p, not one[0].text, one[0].text))


def _different_answers(answers: Iterable[np.ndarray]) -> int:
    """Return how many different cues there are. `answers` holds the margins of each cue. Two cues count as one if their
    margins have the same sign for all pairs, or opposite signs for all pairs.
    """
    signs = [np.sign(margins).astype(np.int8) for margins in answers]
    return len({(s * s[np.flatnonzero(s)[:1]].sum()).tobytes() for s in signs})


def _rare_cues(
    pairs: Pairs, tallies: Mapping[str, tuple[OneSided, np.ndarray]], tested: set[tuple[str, str]]
) -> list[Cue]:
    """Return the cues not in `tested` whose results differ significantly from chance, after correction for all cues.
    Their p-values are from the normal approximation.
    """
    count, cues = sum(len(tally.T) for _, tally in tallies.values()), []
    for kind, (_, tally) in tallies.items():
        seen = (tally[1] + tally[2]).astype(np.float64)
        z = np.abs(tally[1].astype(np.float64) - tally[2]) / np.sqrt(seen)
        for k in np.flatnonzero(z > normal_quantile(1 - 0.025 / max(1, count))).tolist():
            cue = _cue_of(pairs, kind, tally[:, k])
            if (kind, cue.text) not in tested:
                wide = normal_quantile(0.5 + LEVEL / 2) * math.sqrt(seen[k]) / 2 / len(pairs)
                p = min(1.0, count * math.erfc(z[k] / math.sqrt(2)))
                cues.append(replace(cue, p=p, high=min(1.0, cue.accuracy + wide)))
    return cues


def _margins(pairs: Pairs, alone: OneSided, digests: np.ndarray) -> Iterator[np.ndarray]:
    """Yield one array for each cue, with one entry per pair. The entry is 1 if only the true caption contains the cue,
    −1 if only the false one does, and 0 otherwise.
    """
    parts = []
    for rows in _pieces(pairs) if len(digests) else []:
        digest, pair, true = alone(pairs, rows)
        order = np.argsort(digests)
        at = order[np.searchsorted(digests, digest, sorter=order).clip(max=len(digests) - 1)]
        mine = digests[at] == digest
        parts.append((at[mine].astype(np.int32), pair[mine].astype(np.int32), true[mine]))
    if not parts:
        return
    cue, pair, true = (np.concatenate(part) for part in zip(*parts))
    for k in range(len(digests)):
        margins = np.zeros(len(pairs), np.float32)
        margins[pair[cue == k]] = np.where(true[cue == k], 1, -1)
        yield margins


#: A function from rows of pairs to the cues that only one caption of a pair has: digests, pairs, and True where it is
#: the true caption.
OneSided = Callable[[Pairs, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _tallied(pairs: Pairs, alone: OneSided, kind: str, progress: Progress) -> np.ndarray:
    """Return an array with one column for each cue that decides enough pairs (at least `FEWEST`). Row 0 is the digest
    of the cue. Row 1 counts the pairs in which only the true caption contains the cue, and row 3 is the first of these
    pairs. Rows 2 and 4 are the same for the false caption.
    """
    table = np.zeros((5, 0), np.uint64)
    with progress(f"cues of {kind}", len(pairs), "pairs") as advance:
        for rows in _pieces(pairs):
            digest, pair, true = alone(pairs, rows)
            first, second = np.where(true, pair, len(pairs)), np.where(true, len(pairs), pair)
            new = np.stack([digest, *(part.astype(np.uint64) for part in (true, ~true, first, second))])
            table = _merged(np.concatenate([table, new], axis=1))
            advance(len(rows))
    return table[:, table[1] + table[2] >= FEWEST]


def _pieces(pairs: Pairs) -> list[np.ndarray]:
    return np.array_split(np.arange(len(pairs)), max(1, len(pairs) // PIECE))


def _merged(table: np.ndarray) -> np.ndarray:
    """Return an array like that of `_tallied`, with all columns of the same cue merged. The counts are added, and the
    earliest example pairs are kept.
    """
    table = table[:, np.argsort(table[0], kind="stable")]
    begin = np.flatnonzero(np.diff(table[0], prepend=~table[0][:1]))
    counts = [np.add.reduceat(part, begin) for part in table[1:3]]
    return np.stack([table[0][begin], *counts, *(np.minimum.reduceat(part, begin) for part in table[3:])])


def _ngrams(pairs: Pairs, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the n-grams that only one caption of a pair contains, as three arrays: their digests, their pairs, and
    whether the true caption contains them. N-grams that consist of punctuation only are left out.
    """
    texts, at = np.unique(np.stack([pairs.left[rows], pairs.right[rows]], axis=1), return_inverse=True)
    cut = [tokens(t) for t in pairs.captions_at(texts)]
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


def _ngram_with(caption: str, digest: np.uint64) -> str:
    """Return the n-gram of the caption that has this digest."""
    cut = tokens(caption)
    digests, start, size = run_digests(token_digests(cut), np.array([len(cut)]), LONGEST)
    at = int(np.flatnonzero(digests == digest)[0])
    return " ".join(cut[start[at] : start[at] + size[at]])


MARK_NAMES = tuple(marks(""))


def _marks(pairs: Pairs, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    texts, at = np.unique(np.stack([pairs.left[rows], pairs.right[rows]], axis=1), return_inverse=True)
    carried = np.array([[*marks(t).values()] for t in pairs.captions_at(texts)], bool)[at.reshape(-1, 2)]
    pair, mark = np.nonzero(carried[:, 0] != carried[:, 1])
    return mark.astype(np.uint64), rows[pair], carried[pair, 0, mark]


def surest(pairs: Pairs, margins: np.ndarray, count: int) -> list[int]:
    """Return the indices of up to `count` pairs, at most one per item: those that an attacker gets right with the
    largest margins.
    """
    chosen: dict[int, int] = {}
    for pair in np.argsort(-np.nan_to_num(margins), kind="stable").tolist():
        if not margins[pair] > 0 or len(chosen) == count:
            break
        chosen.setdefault(int(pairs.item[pair]), pair)
    return list(chosen.values())
