"""What kind of thing a noun names (word lists of our own, things.json, then WordNet), and which words exclude which."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from creperie.core import packaged
from creperie.lang.inflection import inflected
from creperie.lang.wordnet import HYPONYM, Synset, WordNet, open_wordnet

KINDS = ("person", "animal", "vehicle", "gear", "furniture", "handheld", "food", "clothing", "place")
#: WordNet's files of things that can be seen: animals, artifacts, food, objects, people, plants.
_SEEN = frozenset((5, 6, 13, 17, 18, 20))
_PERSON, _ANIMAL, _FOOD = 18, 5, 13
_PARTS = ("#", "%")
_CLASSES = {"vehicle": "vehicle", "furniture": "furniture", "clothing": "clothing", "garment": "clothing"}


@cache
def things() -> Mapping[str, Any]:
    """The word lists."""
    table: Mapping[str, Any] = json.loads(packaged("creperie.lang", "things.json"))
    return table


@cache
def facts() -> Mapping[str, Any]:
    """What is known of words in pairs: relations that hold both ways, opposites, actions that go together."""
    table: Mapping[str, Any] = json.loads(packaged("creperie.lang", "logic.json"))
    return table


@cache
def _listed() -> dict[str, str]:
    """The kind of every listed noun; the list that begins with it decides."""
    kinds: dict[str, str] = {}
    for first in (True, False):
        for kind in KINDS:
            for group in things()[kind]:
                for word in group[:1] if first else group:
                    kinds.setdefault(word, kind)
    return kinds


@cache
def nouns_of(kind: str) -> tuple[str, ...]:
    """All listed nouns of a kind."""
    return tuple(noun for noun, own in _listed().items() if own == kind)


@cache
def kind_of(noun: str) -> str:
    """The kind of thing that a noun in dictionary form names; empty where it is not known.

    >>> kind_of("dog"), kind_of("truck"), kind_of("idea")
    ('animal', 'vehicle', '')
    """
    listed = _listed().get(noun)
    if listed:
        return listed
    net = open_wordnet()
    sense = _first_sense(net, noun)
    if sense is None or not _is_clear(net, noun):
        return ""
    if sense.topic in (_PERSON, _ANIMAL, _FOOD):
        return {_PERSON: "person", _ANIMAL: "animal", _FOOD: "food"}[sense.topic]
    above = {w for s in net.above(sense) for w in s.words}
    return next((kind for name, kind in _CLASSES.items() if name in above), "")


@cache
def listed_for(noun: str) -> tuple[str, ...]:
    """Replacements from our own lists: the group that begins with this noun."""
    groups = [g for kind in KINDS for g in things()[kind] if g[0] == noun]
    return tuple(w for w in groups[0][1:] if w != noun) if groups else ()


@cache
def dimension_of(adjective: str) -> str:
    """The dimension of an attribute: colour, size, age, material, number …; empty where it is not known."""
    dimensions = things()["dimensions"]
    return next((name for name, members in dimensions.items() if adjective in members), "")


@cache
def is_mass(noun: str) -> bool:
    return noun in things()["mass"]


@cache
def gender_of(noun: str) -> str:
    gender: str = things()["gendered"].get(noun, "")
    return gender


@cache
def age_of(noun: str) -> str:
    """`adult`, `child` or `baby`; empty where the noun does not say."""
    return next((age for age, members in things()["ages"].items() if noun in members), "")


def _first_sense(net: WordNet, noun: str) -> Synset | None:
    """The first sense, if it can be seen."""
    senses = net.senses(noun, "n")
    return senses[0] if senses and senses[0].topic in _SEEN else None


def _is_clear(net: WordNet, noun: str) -> bool:
    """Whether a noun is understood in its first sense: `bat` and `fan` may be something else, `wet` an adjective."""
    topics = {s.topic for s in net.senses(noun, "n")[:2]}
    return len(topics) == 1 and not net.senses(noun, "a")


@cache
def _excluded(noun: str) -> frozenset[str]:
    """Words that a noun's replacement must not be: synonyms, kinds, superordinates, parts and wholes."""
    net = open_wordnet()
    banned: set[str] = set()
    for sense in net.senses(noun, "n")[:4]:
        related = [sense, *net.above(sense), *_below(net, sense, 3)]
        related += [p for symbol in _PARTS for p in net.follow(sense, symbol)]
        banned |= {w.lower().replace("_", " ") for s in related for w in s.words}
    return frozenset(banned)


def _below(net: WordNet, synset: Synset, depth: int) -> Iterable[Synset]:
    for s in net.follow(synset, HYPONYM) if depth else ():
        yield s
        yield from _below(net, s, depth - 1)


def excludes(noun: str, other: str) -> bool:
    """Whether neither noun can be said of what the other names.

    >>> excludes("dog", "cat"), excludes("dog", "animal"), excludes("couch", "sofa")
    (True, False, False)
    """
    return noun != other and other not in _excluded(noun) and noun not in _excluded(other)


@cache
def is_above(noun: str, other: str) -> bool:
    """Whether the first noun says less of the same thing: a synonym, or what the other is a kind of.

    >>> is_above("animal", "dog"), is_above("dog", "animal"), is_above("sofa", "couch")
    (True, False, True)
    """
    net = open_wordnet()
    senses = net.senses(other, "n")[:2]
    return any(noun.replace(" ", "_") in s.words for sense in senses for s in (sense, *net.above(sense)))


@cache
def in_one_group(table: str, word: str, other: str) -> bool:
    """Whether a group of `facts()[table]` has both words."""
    return any(word in group and other in group for group in facts()[table])


def numbered(noun: str, tag: str) -> str:
    """A noun as singular or plural, by Penn tag; a compound is inflected at its end."""
    head, _, last = noun.rpartition(" ")
    return f"{head} {inflected(last, tag)}".strip() if tag == "NNS" else noun
