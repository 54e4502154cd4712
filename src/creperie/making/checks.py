"""Checks that accept or reject a candidate. Each returns a reason, or None."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from creperie.core import ModelError, missing_extra
from creperie.lang import lemma, tidy, words
from creperie.making.candidate import Candidate, Check
from creperie.making.data import read_data
from creperie.making.source import SourceCaption
from creperie.models import LoadedNetwork, read_network

if TYPE_CHECKING:
    from creperie.models import TextScorer


@lru_cache(maxsize=4096)  # a source is compared with each of its candidates, and those with each other
def word_key(text: str) -> tuple[str, ...]:
    """Return what is left of a caption without case, marks and blanks."""
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
        changed = _levenshtein()(word_key(source.text), word_key(candidate.text))
        if changed < self.least:
            return "edit too small"
        return "edit too large" if changed > self.most else None


@cache
def _levenshtein() -> Callable[[Sequence[str], Sequence[str]], int]:
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise missing_extra("rapidfuzz", "lang") from None
    distance: Callable[[Sequence[str], Sequence[str]], int] = Levenshtein.distance
    return distance


@dataclass(frozen=True)
class LengthMatched:
    """A foil is at most `words` words longer or shorter than its source: else its length gives it away."""

    words: int = 2

    def __call__(self, source: SourceCaption, candidate: Candidate) -> str | None:
        if candidate.role == "positive":
            return None
        apart = abs(len(word_key(source.text)) - len(word_key(candidate.text)))
        return f"more than {self.words} words longer or shorter" if apart > self.words else None


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


BATCH = 64
LABEL = "entailment"


@dataclass(frozen=True)
class NotEntailed:
    """A foil that follows from the true caption is true as well. `most` is the probability that is tolerated."""

    uri: str
    most: float = 0.5

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        foils = [(s.text, c.text) for s, c in pairs if c.role == "negative"]
        found = iter(entailment(self.uri).probabilities(foils) if foils else [])
        reason = "entailed by the source"
        return [reason if c.role == "negative" and next(found) > self.most else None for _, c in pairs]


@dataclass(frozen=True)
class Entailment:
    """P(entailment) of premise and hypothesis, by a sequence classifier one of whose labels is so called."""

    network: LoadedNetwork
    label: int

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        found: list[float] = []
        for start in range(0, len(pairs), BATCH):
            premises, hypotheses = zip(*pairs[start : start + BATCH], strict=True)
            logits = self.network(self.network.read(premises, hypotheses)).logits.float()
            found += logits.softmax(dim=-1)[:, self.label].tolist()
        return found


@cache
def entailment(uri: str) -> Entailment:
    """Load a classifier: `hf:cross-encoder/nli-deberta-v3-base`, or a folder."""
    network = read_network(uri, "AutoModelForSequenceClassification")
    labels = {str(name).lower(): number for number, name in network.model.config.id2label.items()}
    if LABEL not in labels:
        hint = "name a model of natural language inference"
        raise ModelError(f"none of its labels is {LABEL!r}: {', '.join(labels)}", where=uri, hint=hint)
    return Entailment(network, int(labels[LABEL]))


MOST_WORDS = 100
_MARKUP = re.compile(r"</?[a-zA-Z!][^>]*>|\{\{|\}\}|\[\[|\]\]|https?://|&[a-z]{2,6};|&#\d+;|```")
#: Letters and marks of plain text, of which no markup is made.
_ORDINARY = frozenset("\t\n\r .,!?'\"-()" + string.ascii_letters + string.digits)
_UNPRINTED = ("Cs", "Cc", "Co", "Cn")
_SYMBOLS = ("So", "Sk", "Me", "Cf")


def why_unfit(text: str) -> str | None:
    """Why makers skip a caption, or None.

    >>> why_unfit("A dog chases a cat."), why_unfit("  "), why_unfit("Ein Hund jagt eine Katze auf dem Sofa")
    (None, 'empty', 'not in English')
    >>> why_unfit("A DOG ON A SOFA"), why_unfit("dog, red sofa, indoor, cute"), why_unfit("USA, NATO")
    ('all capitals', 'a list of tags', None)
    """
    if not text.strip():
        return "empty"
    kinds = {unicodedata.category(c) for c in set(text) - _ORDINARY}
    if not kinds.isdisjoint(_UNPRINTED):
        return "control characters"
    if not any(c.isalpha() for c in text):
        return "no words"
    if kinds and _MARKUP.search(text):
        return "markup"
    if not kinds.isdisjoint(_SYMBOLS):
        return "emoji or symbols"
    found = words(text)
    if len(found) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    if len(found) > 2 and text.isupper():
        return "all capitals"
    parts = [part for part in re.split("[,;|#]", text) if part.strip()]
    if len(parts) > 2 and all(len(p) < 3 and _function_words()[0].isdisjoint(p) for p in map(words, parts)):
        return "a list of tags"
    if text.count('"') % 2 or text.count("“") != text.count("”") or text.count("(") != text.count(")"):
        return "unbalanced quotes or brackets"
    return "not in English" if _is_foreign(text, found) else None


def _is_foreign(text: str, found: Sequence[str]) -> bool:
    if not text.isascii():
        letters = [c for c in text if c.isalpha()]
        if sum(c.isascii() for c in letters) < 0.8 * len(letters):
            return True
    english, foreign = _function_words()
    strange = 0 if foreign.isdisjoint(found) else sum(w in foreign for w in found)
    return strange > 0 and strange > sum(w in english for w in found)


@cache
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    """Words that tell a language; those of others that share the alphabet, without what is English too."""
    lists = read_data("function_words")
    return frozenset(lists["english"]), frozenset(lists["foreign"])
