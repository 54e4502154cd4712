"""Word statistics of a caption corpus: which words are neighbours, and which occur in the same captions.

They rank the foils of a caption: foils whose words occur together in the corpus come first. They are also the evidence
that a foil is plausible if no rule says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

from creperie.lang import words
from creperie.making.checks import stem
from creperie.making.data import read_data
from creperie.making.options import MakerOptions
from creperie.making.source import Captions, read_captions

#: Maximum number of captions counted; of a larger corpus, captions at even distances are counted.
MOST_COUNTED = 50_000
_DETERMINERS = frozenset(read_data("function_words")["determiners"])
_FUNCTION_WORDS = _DETERMINERS.union(*(read_data("function_words")[name] for name in ("agreeing", "english")))
#: Words of place, whose neighbours tell what is said: nobody sits `in` a bicycle.
_LINKS = frozenset(read_data("function_words")["links"])
_LEAST_SEEN = 3
#: Two words do not fit together if they share less than this part of the captions that they would share by chance.
ALIEN = 0.35


@dataclass(frozen=True)
class WordCounts:
    """Counts of words, of neighbouring words, and of pairs of words in the same caption."""

    captions: int = 0
    seen: Counter[str] = field(default_factory=Counter)  #: number of captions with this word
    next_to: Counter[tuple[str, str]] = field(default_factory=Counter)  #: neighbours, with and without articles
    together: Counter[tuple[str, str]] = field(default_factory=Counter)  #: pairs in one caption, alphabetically
    beside: set[tuple[str, str]] = field(default_factory=set)  #: pairs of neighbouring words, as stems

    def follows(self, left: str, right: str) -> int:
        """Return how often the word `right` follows the word `left`."""
        return self.next_to[left, right]

    def shared(self, word: str, other: str) -> int:
        """Return the number of captions in which both words occur."""
        return self.together[min(word, other), max(word, other)]

    def association(self, word: str, other: str) -> float | None:
        """Return the log ratio of the number of captions with both words to the number expected by chance; −inf if
        hardly any caption has both, None if `other` is rare or the same word.
        """
        if self.seen[other] < _LEAST_SEEN or other == word:
            return None
        shared = self.shared(word, other)
        expected = self.seen[word] * self.seen[other] / self.captions
        if shared + 0.5 < ALIEN * (expected + 0.5) or (expected > 0.5 and not shared):
            return -math.inf
        return math.log((shared + 0.5) / (expected + 0.5))

    def mean_association(self, word: str, scene: Iterable[str]) -> float:
        known = [ratio for other in scene if (ratio := self.association(word, other)) is not None]
        return sum(known) / len(known) if known else 0.0

    def attests(self, foil: str, caption: str) -> bool:
        """Return whether every pair of neighbouring words that is in the foil but not in the caption occurs in the
        corpus.

        >>> corpus = count_words(["A man blows a trumpet.", "A violin lies on the table."])
        >>> corpus.attests("A man blows a violin.", "A man blows a horn.")
        False
        """
        known = set(joints(caption))
        return all(pair in self.beside for pair in joints(foil) if pair not in known)

    def support(self, foil: str, caption: str) -> float:
        """Return how strongly the corpus supports a foil: the share of the foil's new pairs of neighbouring words that
        occur in the corpus. The value is lowered by one if an added word hardly ever occurs in a corpus caption
        together with the foil's other words.
        """
        old, now = words(caption), words(foil)
        known = set(neighbours(caption))
        new = [pair for pair in neighbours(foil) if pair not in known]
        seen = sum(pair in self.beside for pair in new) / len(new) if new else 1.0
        kept = [w for w in old if w in now]
        added = [w for w in now if w not in old and w not in _FUNCTION_WORDS]
        alien = any(self.mean_association(w, kept) == -math.inf for w in added)
        return seen - alien


def neighbours(text: str) -> list[tuple[str, str]]:
    """Return the pairs of content words, as stems, with only function words between them.

    >>> neighbours("A dog sleeps on the green grass.")
    [('dog', 'sleep'), ('sleep', 'green'), ('green', 'grass')]
    """
    return list(pairwise(stem(w) for w in words(text) if w not in _FUNCTION_WORDS))


def joints(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `neighbours`, and also pairs of a content word and a word of place, such as `sleeps on` and
    `on grass`.

    >>> list(joints("A dog sleeps on the grass."))
    [('dog', 'sleep'), ('sleep', 'grass'), ('sleep', 'on'), ('on', 'grass')]
    """
    yield from neighbours(text)
    linked = [w if w in _LINKS else stem(w) for w in words(text) if w in _LINKS or w not in _FUNCTION_WORDS]
    yield from (pair for pair in pairwise(linked) if pair[0] in _LINKS or pair[1] in _LINKS)


def count_words(texts: Iterable[str]) -> WordCounts:
    """Return the word counts of some captions.

    >>> corpus = count_words(["A dog chases a cat.", "The dog sleeps."])
    >>> corpus.seen["dog"], corpus.follows("a", "dog")
    (2, 1)
    """
    corpus, total = WordCounts(), 0
    for text in texts:
        total += 1
        tokens = words(text)
        line = ["<s>", *tokens, "</s>"]
        for k, (left, right) in enumerate(pairwise(line)):
            corpus.next_to[left, right] += 1
            if left in _DETERMINERS:
                lead = line[k - 2 : k] if line[k - 1] == "of" else line[k - 1 : k]  # `on (a small) bench`, `front of a`
                corpus.next_to.update((word, head) for head in line[k + 1 : k + 3] for word in lead)
        content = sorted({w for w in tokens if len(w) > 2 and w not in _DETERMINERS})
        corpus.seen.update(content)
        corpus.together.update(combinations(content, 2))
        corpus.beside.update(joints(text))
    return replace(corpus, captions=total)


def corpus_of(options: MakerOptions, captions: Captions) -> WordCounts:
    """Return the word counts of the corpus that the options name. If they name none, count the words of all captions,
    even if only a sample of these are sources.
    """
    sources = read_captions(options.corpus).sources if options.corpus else captions.drawn_from or captions.sources
    step = max(1, -(-len(sources) // MOST_COUNTED))
    return count_words(s.text for k, s in enumerate(sources) if k % step == 0)
