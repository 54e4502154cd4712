"""What a set of captions says about words: which follow each other, and which are seen in one scene.

Makers replace and insert words where people would have used them. `Slots` counts, without parsing, the words of a
caption corpus (by default the captions that foils are made from), their neighbours, and the words they share captions
with. It answers two questions: does this word fit between its neighbours, and does it belong to this scene?
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

from creperie.lang import words
from creperie.making.atoms import phrase
from creperie.making.options import MakerOptions
from creperie.making.source import Captions, read_captions

#: Captions that are counted; of more, this many are taken at even distances.
MOST_COUNTED = 20_000
#: With fewer captions the table knows too little to reject a word, and makers rely on their own word lists.
ENOUGH_CAPTIONS = 400
_DETERMINERS = frozenset(
    ("a", "an", "the", "his", "her", "their", "its", "two", "three", "four", "five", "six", "several", "some", "many")
)
_PLACED = ("in", "on", "at")
_LEAST_SEEN = 3
#: Two words do not go together if they share fewer than this part of the captions that they would share by chance.
ALIEN = 0.35
#: Captions that two words would share by chance, from which on sharing none says that they do not go together.
MISSED = 0.5


@dataclass(frozen=True)
class Slots:
    """Counts of words, neighbours, and pairs of words in one caption."""

    captions: int = 0
    seen: Counter[str] = field(default_factory=Counter)  #: captions with this word
    next_to: Counter[tuple[str, str]] = field(default_factory=Counter)  #: neighbours in order, articles left out or not
    together: Counter[tuple[str, str]] = field(default_factory=Counter)  #: words of one caption, in alphabetical order

    @property
    def knows_enough(self) -> bool:
        return self.captions >= ENOUGH_CAPTIONS

    def fits_scene(self, word: str, others: Sequence[str]) -> float:
        """How much more often a word shares captions with `others` than chance would have it: mean log ratio."""
        return Company(self, word).mean(others)

    def fits_slot(self, noun: Any, new: str, doc: Any) -> bool:
        """Whether people say a word behind the one before a noun phrase: `at a desk`, never `at a couch`."""
        return self.fits_after(doc[start - 1].lower_ if (start := phrase(noun)[0]) else "<s>", new)

    def fits_after(self, before: str, new: str) -> bool:
        word = words(new)[0]
        usual = max(self.follows(p, word) for p in _PLACED) if before in _PLACED else 0  # `on`, never `in a beach`
        return not self.knows_enough or not before.isalpha() or self.follows(before, word) > usual / 12

    def shared(self, word: str, other: str) -> int:
        """How many captions have both."""
        return self.together.get((word, other) if word < other else (other, word), 0)

    def expected(self, word: str, other: str) -> float:
        """How many captions would have both by chance."""
        return self.seen[word] * self.seen[other] / max(1, self.captions)

    def follows(self, left: str, right: str) -> int:
        """How often two words stand side by side."""
        return self.next_to.get((left, right), 0)

    def times_said(self, phrase: str) -> float:
        """In how many captions people say a word or a short phrase, or about."""
        row = words(phrase)
        short = sum(self.follows(row[0], d) for d in _DETERMINERS)  # `on`, `in`: too short to be counted alone
        return 0.5 + (min(self.follows(a, b) for a, b in pairwise(row)) if row[1:] else self.seen[row[0]] or short)

    def often(self, said: Sequence[str]) -> float:
        """How often a thing, the last word, is said after a preposition, the first, and how often it is called so."""
        called = ((self.follows(a, b) + 0.5) / (self.seen[b] + 1) for a, b in pairwise(said[1:]))
        return math.prod(called, start=self.follows(said[0], said[-1]) + 0.5)


class Company(dict[str, tuple[float | None, bool]]):
    """How often a word is said with others: the log ratio to chance (None: not known), and whether too seldom."""

    def __init__(self, slots: Slots, word: str, missed: float = MISSED) -> None:
        self.slots, self.word, self.missed = slots, word, missed
        self.is_rare = slots.seen[word] <= slots.captions // 600

    def __missing__(self, other: str) -> tuple[float | None, bool]:
        shared, expected = self.slots.shared(self.word, other), self.slots.expected(self.word, other)
        known = self.slots.seen[other] >= _LEAST_SEEN and other != self.word
        ratio = math.log((shared + 0.5) / (expected + 0.5)) if known else None
        apart = shared + 0.5 < ALIEN * (expected + 0.5) or (expected > self.missed and not shared)
        return self.setdefault(other, (ratio, apart))

    def mean(self, others: Sequence[str]) -> float:
        ratios = [ratio for w in others if (ratio := self[w][0]) is not None]
        return sum(ratios) / len(ratios) if ratios else 0.0

    def fit(self, others: Sequence[str]) -> float:
        """The mean, or less than all numbers where one of the others is hardly ever seen with the word."""
        return -math.inf if True in [self[w][1] for w in others] else self.mean(others)


def count_slots(texts: Iterable[str]) -> Slots:
    """Slots of some captions.

    >>> slots = count_slots(["A dog chases a cat.", "The dog sleeps."])
    >>> slots.seen["dog"], slots.follows("a", "dog")
    (2, 1)
    """
    slots, total = Slots(), 0
    for text in texts:
        total += 1
        found = words(text)
        line = ["<s>", *found, "</s>"]
        for k, (left, right) in enumerate(pairwise(line)):
            slots.next_to[left, right] += 1
            if left in _DETERMINERS:
                lead = line[k - 2 : k] if line[k - 1] == "of" else line[k - 1 : k]  # `on (a small) bench`, `front of a`
                slots.next_to.update((word, head) for head in line[k + 1 : k + 3] for word in lead)
        content = sorted({w for w in found if len(w) > 2 and w not in _DETERMINERS})
        slots.seen.update(content)
        slots.together.update(combinations(content, 2))
    return Slots(total, slots.seen, slots.next_to, slots.together)


def slots_of(sources: Sequence[Any]) -> Slots:
    """Slots of the captions that a batch is made from, or of a fixed number of them at even distances."""
    step = max(1, -(-len(sources) // MOST_COUNTED))
    return count_slots(s.text for k, s in enumerate(sources) if k % step == 0)


def corpus_slots(options: MakerOptions, captions: Captions) -> Slots:
    """What the corpus that was named, or else the captions themselves, say about words. Published rules need none."""
    if options.as_published:
        return Slots()
    return slots_of((read_captions(options.corpus) if options.corpus else captions).sources)
