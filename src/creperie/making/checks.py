"""Checks that accept or reject a candidate. Each returns a reason, or None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from creperie.lang import lemma, tidy, words
from creperie.making.candidate import Candidate, Check
from creperie.making.source import SourceCaption

if TYPE_CHECKING:
    from creperie.models import TextScorer


@lru_cache(maxsize=4096)  # a source is compared with each of its candidates, and those with each other
def word_key(text: str) -> tuple[str, ...]:
    """What is left of a caption when case, marks and blanks are not looked at."""
    plain = tidy(text).casefold()
    return tuple(words(plain)) or (plain,)


def not_identical(source: SourceCaption, candidate: Candidate) -> str | None:
    """A candidate must differ from its source in its words, not in style only.

    >>> not_identical(SourceCaption("1", "a dog"), Candidate("1", "A dog.", "negative", "swap", "m", ""))
    'identical to the source'
    """
    if not candidate.text.strip():
        return "empty"
    return "identical to the source" if word_key(source.text) == word_key(candidate.text) else None


def not_another_caption(source: SourceCaption, candidate: Candidate) -> str | None:
    """A foil must not be what somebody else truly said of the same image."""
    if candidate.role == "negative" and word_key(candidate.text) in {word_key(o) for o in source.others}:
        return "a known true caption of the image"
    return None


def vocabulary_kept(source: SourceCaption, candidate: Candidate) -> str | None:
    """A swap uses the words of its source, each as often; `a` and `an` count as one.

    >>> swap = Candidate("1", "A cat chases an owl", "negative", "swap", "m", "")
    >>> vocabulary_kept(SourceCaption("1", "an owl chases a cat"), swap)
    >>> vocabulary_kept(SourceCaption("1", "an owl chases two cats"), swap)
    'other words than the source'
    """
    return None if _bag(source.text) == _bag(candidate.text) else "other words than the source"


def vocabulary_followed(source: SourceCaption, candidate: Candidate) -> str | None:
    """A swap by a language model uses the words of its source; agreement, articles, case and inflection may follow.

    >>> from dataclasses import replace
    >>> source = SourceCaption("1", "Two men are holding awards next to a woman who sees him.")
    >>> swap = Candidate("1", "A woman is holding awards next to the two men who see him.", "negative", "s", "m", "")
    >>> vocabulary_followed(source, swap)
    >>> vocabulary_followed(source, replace(swap, text="A woman is holding two prizes next to men who see him."))
    'other words than the source'
    """
    return None if _stems(source.text) == _stems(candidate.text) else "other words than the source"


_FREE = frozenset(("a", "an", "the", "is", "are", "was", "were", "am", "be", "being", "been", "has", "have", "had"))
_CASES = {"him": "he", "her": "she", "his": "he", "hers": "she", "them": "they", "their": "they", "me": "i", "us": "we"}


def _stems(text: str) -> Counter[str]:
    """Words without what grammar adds to them, articles and auxiliaries left out."""
    found = (_CASES.get(w, w) for w in word_key(text) if w not in _FREE)
    return Counter(lemma(lemma(w, "NNS"), "VBZ") for w in found)


def vocabulary_extended(source: SourceCaption, candidate: Candidate) -> str | None:
    """An addition keeps all words of its source and has more."""
    missing = _bag(source.text) - _bag(candidate.text)
    more = _bag(candidate.text) - _bag(source.text)
    return None if more and not missing else "not an addition to the source"


def _bag(text: str) -> Counter[str]:
    return Counter("a" if w == "an" else w for w in word_key(text))


@dataclass(frozen=True)
class EditSize:
    """At least `least` and at most `most` words of the source are changed (added, removed or replaced)."""

    least: int = 1
    most: int = 1_000

    def __call__(self, source: SourceCaption, candidate: Candidate) -> str | None:
        changed = word_edits(word_key(source.text), word_key(candidate.text))
        if changed < self.least:
            return "edit too small"
        return "edit too large" if changed > self.most else None


def word_edits(left: Sequence[str], right: Sequence[str]) -> int:
    """The Levenshtein distance in words.

    >>> word_edits("a dog and a cat".split(), "a cat and a dog".split())
    2
    """
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


@dataclass(frozen=True)
class LengthMatched:
    """A foil is at most `words` words longer or shorter than its source: else its length gives it away."""

    words: int = 2

    def __call__(self, source: SourceCaption, candidate: Candidate) -> str | None:
        if candidate.role == "positive":
            return None
        apart = abs(len(word_key(source.text)) - len(word_key(candidate.text)))
        return f"more than {self.words} words longer or shorter" if apart > self.words else None


@dataclass(frozen=True)
class ScoredAlike:
    """A blind model finds the candidate at most `margin` worse than its source: grammar, fluency, plausibility."""

    uri: str
    margin: float
    reason: str

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        """The model by URI scores sources and candidates, each text once."""
        scorer = text_scorer(self.uri)
        texts = list(dict.fromkeys(t for s, c in pairs for t in (s.text, c.text)))
        scores = dict(zip(texts, scorer.score_texts(texts).tolist())) if texts else {}
        return [None if scores[c.text] >= scores[s.text] - self.margin else self.reason for s, c in pairs]


@cache
def text_scorer(uri: str) -> TextScorer:
    """The blind model of this name, loaded once."""
    from creperie.core import UsageError
    from creperie.models import TextScorer, load_model

    scorer = load_model(uri)
    if not isinstance(scorer, TextScorer):
        raise UsageError(f"{uri} does not score texts", hint="name a blind model, such as blind:grammar")
    return scorer


#: What every candidate must pass, whoever made it.
ALWAYS: tuple[Check, ...] = (not_identical, not_another_caption)
