"""Checks that accept or reject a candidate. Each returns the reason for a rejection, or None."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache

from creperie.core import MissingExtraError, ModelError, installed
from creperie.lang import COMPATIBLE, ENTAILED, UNKNOWN, Truth, language_of, lemma, read_together, tidy, truth, words
from creperie.making.candidate import Candidate, Check
from creperie.making.data import read_data
from creperie.making.source import SourceCaption
from creperie.models import LoadedNetwork, read_network


@lru_cache(maxsize=4096)  # a source is compared with each of its candidates, and these with each other
def word_key(text: str) -> tuple[str, ...]:
    """Return the words of a caption without case, punctuation and blanks, to compare captions."""
    plain = tidy(text).casefold()
    return tuple(words(plain)) or (plain,)


def not_identical(source: SourceCaption, candidate: Candidate) -> str | None:
    """Reject a candidate that is empty or has the same words as its source. Case, punctuation and blanks may differ.
    Return the reason; None if the candidate is accepted.

    >>> not_identical(SourceCaption("1", "a dog"), Candidate("1", "A dog.", "negative", "swap", "m", ""))
    'identical to the source'
    """
    if not candidate.text.strip():
        return "empty"
    return "identical to the source" if word_key(source.text) == word_key(candidate.text) else None


def not_another_caption(source: SourceCaption, candidate: Candidate) -> str | None:
    """Reject a foil that equals a known true caption of the same image. Return the reason; None if the foil is
    accepted.
    """
    if candidate.role == "negative" and word_key(candidate.text) in {word_key(o) for o in source.others}:
        return "a known true caption of the image"
    return None


def vocabulary_followed(source: SourceCaption, candidate: Candidate) -> str | None:
    """Reject a swap that does not consist of the words of its source. Articles, case, inflection and agreement may
    differ. Return the reason; None if the swap is accepted.

    >>> from dataclasses import replace
    >>> source = SourceCaption("1", "Two men are holding awards next to a woman who sees him.")
    >>> swap = Candidate("1", "A woman is holding awards next to the two men who see him.", "negative", "s", "m", "")
    >>> vocabulary_followed(source, swap)
    >>> vocabulary_followed(source, replace(swap, text="A woman is holding two prizes next to men who see him."))
    'other words than the source'
    """
    return None if _stems(source.text) == _stems(candidate.text) else "other words than the source"


def _stems(text: str) -> Counter[str]:
    """Count the lemmas in a text, leaving out articles and auxiliaries."""
    lists = read_data("function_words")
    plain = (lists["cases"].get(w, w) for w in word_key(text) if w not in lists["agreeing"])
    return Counter(
        "he" if w == "she" else stem(w.removesuffix("'s")) for w in plain
    )  # a man and a woman change places with their pronouns


@cache
def stem(word: str) -> str:
    """Return the lemma of a word with unknown part of speech: its lemma as a noun or as a verb, whichever differs from
    the word. If both differ, return the shorter one.
    """
    forms = [form for form in (lemma(word, "NNS"), lemma(word, "VBZ")) if form != word]
    return min(forms, key=len, default=word)


def vocabulary_extended(source: SourceCaption, candidate: Candidate) -> str | None:
    """Reject an addition that drops a word of its source, or adds no word. Return the reason; None if the addition is
    accepted.
    """
    missing = _bag(source.text) - _bag(candidate.text)
    more = _bag(candidate.text) - _bag(source.text)
    return None if more and not missing else "not an addition to the source"


def _bag(text: str) -> Counter[str]:
    return Counter("a" if w == "an" else w for w in word_key(text))


def truth_of(source: SourceCaption, text: str) -> Truth:
    """Return whether `text` is true of the picture that the source describes, as judged from the captions by
    `creperie.lang.truth`. The verdict is "unknown" if the packages that this needs are not installed.
    """
    try:
        return truth(source.text, text, source.others)
    except MissingExtraError:
        return Truth(UNKNOWN, "the packages of the truth layer are not installed")


def read_ahead(texts: Iterable[str]) -> None:
    """Parse captions together, five times as fast as one by one, and keep the results for `truth_of`."""
    with suppress(MissingExtraError):
        read_together(texts)


def true_too(source: SourceCaption, text: str) -> str:
    """Return why a caption may be true of the same picture as its source; empty if nothing suggests that.

    >>> true_too(SourceCaption("1", "A cat sleeps."), "An animal sleeps.")
    'may be true as well: one is a kind of the other'
    """
    verdict = truth_of(source, text)
    return f"may be true as well: {verdict.reason.partition(':')[0]}" if verdict.word in (ENTAILED, COMPATIBLE) else ""


def not_true_too(source: SourceCaption, candidate: Candidate) -> str | None:
    """Reject a replacement that may be true of the same picture as its source. Return the reason, or None if nothing
    suggests that.
    """
    return true_too(source, candidate.text) or None


@dataclass(frozen=True)
class EditSize:
    """A check that a candidate differs from its source by at most `most` added, removed or replaced words."""

    most: int

    def __call__(self, source: SourceCaption, candidate: Candidate) -> str | None:
        levenshtein = installed("rapidfuzz.distance").Levenshtein
        changed = levenshtein.distance(word_key(source.text), word_key(candidate.text))
        return "edit too large" if changed > self.most else None


@dataclass(frozen=True)
class LengthMatched:
    """A check that a foil is at most `words` words longer or shorter than its source: a larger difference could reveal
    the foil.
    """

    words: int

    def __call__(self, source: SourceCaption, candidate: Candidate) -> str | None:
        apart = abs(len(word_key(source.text)) - len(word_key(candidate.text)))
        return f"more than {self.words} words longer or shorter" if apart > self.words else None


#: The checks that every candidate must pass, whichever maker proposed it.
ALWAYS: tuple[Check, ...] = (not_identical, not_another_caption)


BATCH = 64
LABEL = "entailment"


@dataclass(frozen=True)
class NotEntailed:
    """A check that rejects foils that the true caption entails. `most` is the highest allowed P(entailment)."""

    uri: str
    most: float = 0.5

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        foils = [(s.text, c.text) for s, c in pairs if c.role == "negative"]
        entailed = iter(entailment(self.uri).probabilities(foils) if foils else [])
        reason = "entailed by the source"
        return [reason if c.role == "negative" and next(entailed) > self.most else None for _, c in pairs]


@dataclass(frozen=True)
class Entailment:
    """A classifier with a label "entailment". It gives the probability that a premise entails a hypothesis."""

    network: LoadedNetwork
    label: int

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        probabilities: list[float] = []
        for start in range(0, len(pairs), BATCH):
            premises, hypotheses = zip(*pairs[start : start + BATCH], strict=True)
            logits = self.network(self.network.read(premises, hypotheses)).logits.float()
            probabilities += logits.softmax(dim=-1)[:, self.label].tolist()
        return probabilities


@cache
def entailment(uri: str) -> Entailment:
    """Return the classifier at a URI such as `hf:cross-encoder/nli-deberta-v3-base`, or in a folder. It is loaded only
    once.
    """
    network = read_network(uri, "AutoModelForSequenceClassification")
    labels = {str(name).lower(): number for number, name in network.model.config.id2label.items()}
    if LABEL not in labels:
        hint = "name a model for natural language inference, such as hf:cross-encoder/nli-deberta-v3-base"
        raise ModelError(f"none of the model's labels is {LABEL!r}: {', '.join(labels)}", where=uri, hint=hint)
    return Entailment(network, int(labels[LABEL]))


MOST_WORDS = 100
_MARKUP = re.compile(r"</?[a-zA-Z!][^>]*>|\{\{|\}\}|\[\[|\]\]|https?://|&[a-z]{2,6};|&#\d+;|```")
#: Characters of plain text, which never form markup.
_ORDINARY = frozenset("\t\n\r .,!?'\"-()" + string.ascii_letters + string.digits)
_UNPRINTED = ("Cs", "Cc", "Co", "Cn")
_SYMBOLS = ("So", "Sk", "Me", "Cf")


def why_unfit(text: str, language: str = "") -> str | None:
    """Return why makers skip a caption; None if they do not. `language` is the code of its language, if known.

    >>> why_unfit("A dog chases a cat."), why_unfit("  "), why_unfit("Un uomo in bicicletta")
    (None, 'empty', 'not in English (it)')
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
        return "tokenised quotation marks (``)" if "``" in text else "emoji or symbols"
    spoken = words(text)
    if len(spoken) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    if len(spoken) > 2 and text.isupper():
        return "all capitals"
    parts = [part for part in re.split("[,;|#]", text) if part.strip()]
    if len(parts) > 2 and all(len(p) < 3 and _function_words()[0].isdisjoint(p) for p in map(words, parts)):
        return "a list of tags"
    if text.count('"') % 2 or text.count("“") != text.count("”") or text.count("(") != text.count(")"):
        return "unbalanced quotes or brackets"
    if language:
        return None if language.lower().startswith("en") else f"not in English ({language})"
    return _foreign(text, spoken)


#: How certain it must be that a caption is in another language.
CERTAIN = 0.99


def _foreign(text: str, spoken: Sequence[str]) -> str | None:
    """Return why a caption does not seem to be in English; None if it may be English. The reason names the language if
    it is certain.
    """
    if not text.isascii():
        letters = [c for c in text if c.isalpha()]
        if sum(c.isascii() for c in letters) < 0.8 * len(letters):
            return "not in English"
    english, foreign = _function_words()
    if foreign.isdisjoint(spoken) and sum(w in english for w in spoken) > 1:
        return None
    try:
        known, certainty = language_of(text)
    except MissingExtraError:  # without wordfreq, function words decide
        strange = sum(w in foreign for w in spoken)
        return "not in English" if strange > sum(w in english for w in spoken) else None
    return f"not in English ({known})" if known != "en" and certainty > CERTAIN else None


@cache
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return two sets: the function words of English, and those of other languages in Latin script, without any that
    are also English words.
    """
    lists = read_data("function_words")
    return frozenset(lists["english"]), frozenset(lists["foreign"])
