"""Words of captions for twin mining: dictionary forms, which words exclude each other, and which may both be true."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.core import MissingExtraError
from creperie.lang import (
    CONTRADICTED,
    HYPERNYM,
    HYPONYM,
    excludes,
    facts,
    in_one_group,
    kind_of,
    lemma,
    open_wordnet,
    truth,
)
from creperie.making.data import read_data

#: Words without which a caption says the same: articles, and forms of "be" before a participle.
SILENT = frozenset({"a", "an", "the", "is", "are", "was", "were", "being"})
_TOKEN = re.compile(r"[\w'-]*\w")
#: How many senses of a word are looked at; rare senses join what nobody would join.
SENSES = 3
#: Kinds of things of which a photograph that shows one need not show another beside it.
ONE_THING = frozenset(("animal", "vehicle", "gear", "furniture", "handheld", "food"))


@dataclass(frozen=True, slots=True)
class CaptionWord:
    """A word of a caption, by its dictionary form, and where it stands in the text."""

    base: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two words that cannot both be true in one place."""

    name: str  #: the class that both belong to, "colour" or "disjoint nouns"
    kind: str  #: the kind of item; empty where the parse says
    left: str
    right: str


@cache
def _data() -> dict[str, Any]:
    found: dict[str, Any] = read_data("twins")
    return found


@cache
def _table() -> dict[str, dict[str, tuple[str, list[frozenset[str]]]]]:
    """Every word of the exclusion classes: class → kind and the groups that the word is in."""
    found: dict[str, dict[str, tuple[str, list[frozenset[str]]]]] = {}
    for name, entry in _data()["classes"].items():
        for group in map(frozenset, entry["groups"]):
            for word in group:
                found.setdefault(word, {}).setdefault(name, (entry["kind"], []))[1].append(group)
    return found


@cache
def _word_list(name: str) -> frozenset[str]:
    return frozenset(_data()[name])


def joined_phrases() -> tuple[str, ...]:
    """Phrases that count as one word: "in front of"."""
    return tuple(_data()["joined"])


@cache
def _joined() -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{phrase.replace(' ', ' +')}\b" for phrase in joined_phrases()))


@cache
def base(word: str) -> str:
    """The dictionary form under which a word is compared: a verb or a noun's, whichever the word is a form of.

    >>> [base(w) for w in ("dogs", "running", "women", "grassy")]
    ['dog', 'run', 'woman', 'grassy']
    """
    known = _table()
    noun = lemma(word, "NN")
    for form in (word, noun, lemma(word, "VB")):
        if form in known:
            return form
    return noun if noun != word else lemma(word, "VB")


def words_of(text: str) -> tuple[CaptionWord, ...]:
    """The words of a caption that count, in order.

    >>> [w.base for w in words_of("The dogs are running in front of a house.")]
    ['dog', 'run', 'in-front-of', 'house']
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    lowered = _joined().sub(lambda m: "-".join(m[0].split()).ljust(len(m[0])), lowered)
    return tuple(
        CaptionWord(base(m[0]), m[0], m.start(), m.end()) for m in _TOKEN.finditer(lowered) if m[0] not in SILENT
    )


def groupmates(word: str, name: str) -> frozenset[str]:
    """Words that may be true where this one is, within a class."""
    return frozenset().union(*_table()[word][name][1]) if name in _table().get(word, {}) else frozenset({word})


def table_contrast(left: str, right: str) -> Contrast | None:
    """A contrast from the exclusion classes, or None.

    >>> table_contrast("black", "white").name, table_contrast("girl", "kid"), table_contrast("snow", "grass").kind
    ('colour', None, 'replace_obj')
    """
    for name, (kind, groups) in _table().get(left, {}).items():
        if name in _table().get(right, {}) and not any(right in group for group in groups):
            return Contrast(name, kind, left, right)
    return None


def are_compatible(left: str, right: str) -> bool:
    """True where a class says that both may be true: "field" and "grass"."""
    known = _table().get(left, {})
    shared = [name for name in known if name in _table().get(right, {})]
    return any(right in group for name in shared for group in known[name][1]) or in_one_group("same", left, right)


def is_number(word: str) -> bool:
    """True for "two", "several" and the like."""
    return "number" in _table().get(word, {})


@cache
def are_opposite(left: str, right: str) -> bool:
    """True where two relations between the same things cannot both hold.

    >>> are_opposite("is far from", "is touching"), are_opposite("is near", "is touching")
    (True, False)
    """
    return truth(f"The cat {left} the bed.", f"The cat {right} the bed.").word == CONTRADICTED


def depends_on_viewpoint(relation: str) -> bool:
    """True for left and right, front and back: people take the viewer's side or the thing's own, so both may hold.

    >>> depends_on_viewpoint("is at the left side of"), depends_on_viewpoint("is above")
    (True, False)
    """
    return not _word_list("viewpoint").isdisjoint(re.split(r"[ -]", relation))


def is_action(word: str) -> bool:
    """True for a verb of the exclusion classes: "run"."""
    return "action" in _table().get(word, {})


def is_symmetric(word: str) -> bool:
    """True where exchanging the two sides says the same: "next to", "and"."""
    return word in _word_list("symmetric")


def is_asymmetric(word: str) -> bool:
    """True where exchanging the two sides says something else: "chase", "behind"."""
    return word in _word_list("asymmetric")


@cache
def disjoint_nouns(left: str, right: str) -> bool:
    """True where both nouns name things of one kind and neither can be said of what the other names.

    >>> disjoint_nouns("dog", "horse"), disjoint_nouns("man", "person"), disjoint_nouns("dog", "idea")
    (True, False, False)
    """
    try:
        kinds = {kind_of(left), kind_of(right)}
        return kinds <= ONE_THING and len(kinds) == 1 and excludes(left, right) and not are_compatible(left, right)
    except MissingExtraError:
        return False


@cache
def told_by(word: str, name: str) -> frozenset[str]:
    """The words that say what this word says: its class's groups, or its synonyms and kinds in WordNet."""
    if name in _table().get(word, {}):
        return groupmates(word, name)
    try:
        net = open_wordnet()
    except MissingExtraError:
        return frozenset({word})
    found = {word}
    for sense in net.senses(word, "n")[:SENSES]:
        for near in (sense, *net.follow(sense, HYPONYM), *net.follow(sense, HYPERNYM)):
            found.update(w.lower().replace("_", "-") for w in near.words)
    for group in facts()["same"]:
        if word in group:
            found.update(group)
    return frozenset(found)
