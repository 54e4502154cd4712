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
from functools import cached_property
from itertools import combinations
from typing import Any

from creperie.lang import words
from creperie.making.options import MakerOptions
from creperie.making.source import Captions, read_captions

#: Captions that are counted; of more, this many are taken at even distances.
MOST_COUNTED = 20_000
#: With fewer captions the table knows too little to reject a word, and makers rely on their own word lists.
ENOUGH_CAPTIONS = 400
_DETERMINERS = frozenset(
    ("a", "an", "the", "his", "her", "their", "its", "two", "three", "four", "five", "six", "several", "some", "many")
)
_LEAST_SEEN = 3


@dataclass(frozen=True)
class Slots:
    """Counts of words, neighbours, and pairs of words in one caption."""

    captions: int = 0
    seen: Counter[str] = field(default_factory=Counter)  #: captions with this word
    next_to: Counter[tuple[str, str]] = field(default_factory=Counter)  #: neighbours in order
    together: Counter[tuple[str, str]] = field(default_factory=Counter)  #: words of one caption, in alphabetical order
    determined: Counter[str] = field(default_factory=Counter)  #: after an article, a number or a possessive

    @property
    def knows_enough(self) -> bool:
        return self.captions >= ENOUGH_CAPTIONS

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """Words that these captions use as nouns: often right after an article or a number."""
        least = max(_LEAST_SEEN, self.captions // 4000)
        return tuple(w for w, n in self.determined.items() if n >= least and w.isalpha() and n >= 0.2 * self.seen[w])

    def fits_scene(self, word: str, others: Sequence[str]) -> float:
        """How much more often a word shares captions with `others` than chance would have it: mean log ratio."""
        known = [w for w in others if self.seen[w] >= _LEAST_SEEN and w != word]
        ratios = [math.log((self.shared(word, w) + 0.5) / (self.expected(word, w) + 0.5)) for w in known]
        return sum(ratios) / len(ratios) if ratios else 0.0

    def shared(self, word: str, other: str) -> int:
        """How many captions have both."""
        return self.together[min(word, other), max(word, other)]

    def expected(self, word: str, other: str) -> float:
        """How many captions would have both by chance."""
        return self.seen[word] * self.seen[other] / max(1, self.captions)

    def follows(self, left: str, right: str) -> int:
        """How often two words stand side by side."""
        return self.next_to[left, right]


def count_slots(texts: Iterable[str]) -> Slots:
    """Slots of some captions.

    >>> slots = count_slots(["A dog chases a cat.", "The dog sleeps."])
    >>> slots.seen["dog"], slots.follows("a", "dog"), slots.determined["dog"]
    (2, 1, 2)
    """
    slots, total = Slots(), 0
    for text in texts:
        total += 1
        found = words(text)
        for left, right in zip(["<s>", *found], [*found, "</s>"]):
            slots.next_to[left, right] += 1
            if left in _DETERMINERS:
                slots.determined[right] += 1
        content = sorted({w for w in found if len(w) > 2 and w not in _DETERMINERS})
        slots.seen.update(content)
        slots.together.update(combinations(content, 2))
    return Slots(total, slots.seen, slots.next_to, slots.together, slots.determined)


def slots_of(sources: Sequence[Any]) -> Slots:
    """Slots of the captions that a batch is made from, or of a fixed number of them at even distances."""
    step = max(1, -(-len(sources) // MOST_COUNTED))
    return count_slots(s.text for k, s in enumerate(sources) if k % step == 0)


def corpus_slots(options: MakerOptions, captions: Captions) -> Slots:
    """What the corpus that was named, or else the captions themselves, say about words. Published rules need none."""
    if options.as_published:
        return Slots()
    return slots_of((read_captions(options.corpus) if options.corpus else captions).sources)
