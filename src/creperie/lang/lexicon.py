"""Which kind of thing a noun names (by the lists of things.json, then by WordNet), and which nouns exclude
each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from creperie.core import packaged
from creperie.lang.inflection import inflected
from creperie.lang.wordnet import HYPONYM, Synset, WordNet, open_wordnet

KINDS = ("person", "animal", "vehicle", "gear", "furniture", "handheld", "food", "clothing", "place")
#: WordNet's lexicographer files of visible things: animals, artifacts, food, objects, people, plants.
_SEEN = frozenset((5, 6, 13, 17, 18, 20))
_PERSON, _ANIMAL, _FOOD = 18, 5, 13
_PARTS = ("#", "%")
_CLASSES = {"vehicle": "vehicle", "furniture": "furniture", "clothing": "clothing", "garment": "clothing"}


@cache
def things() -> Mapping[str, Any]:
    """Return the word lists of things.json. For each kind of thing there are groups, each with a noun and its possible
    replacements. Other lists hold nouns that share a property, such as mass nouns.
    """
    table: Mapping[str, Any] = json.loads(packaged("creperie.lang", "things.json"))
    return table


@cache
def facts() -> Mapping[str, Any]:
    """Return the facts of logic.json about pairs of words: symmetric relations, opposites, actions that go together."""
    table: Mapping[str, Any] = json.loads(packaged("creperie.lang", "logic.json"))
    return table


@cache
def _listed() -> dict[str, str]:
    """Return the kind of each noun in the word lists. If a noun is listed for several kinds, take the first kind that
    lists replacements for it or, if no kind does, the first kind.
    """
    kinds: dict[str, str] = {}
    for first in (True, False):
        for kind in KINDS:
            for group in things()[kind]:
                for word in group[:1] if first else group:
                    kinds.setdefault(word, kind)
    return kinds


@cache
def nouns_of(kind: str) -> tuple[str, ...]:
    """Return all nouns listed for a kind of thing."""
    return tuple(noun for noun, own in _listed().items() if own == kind)


@cache
def kind_of(noun: str) -> str:
    """Return the kind of thing that a noun names; empty if it is unknown. The noun must be in its dictionary form.

    >>> kind_of("dog"), kind_of("truck"), kind_of("idea")
    ('animal', 'vehicle', '')
    """
    listed = _listed().get(noun)
    if listed:
        return listed
    net = open_wordnet()
    sense = _first_sense(noun)
    if sense is None or not _is_clear(net, noun):
        return ""
    if sense.topic in (_PERSON, _ANIMAL, _FOOD):
        return {_PERSON: "person", _ANIMAL: "animal", _FOOD: "food"}[sense.topic]
    above = {w for s in net.above(sense) for w in s.words}
    return next((kind for name, kind in _CLASSES.items() if name in above), "")


@cache
def listed_for(noun: str) -> tuple[str, ...]:
    """Return the nouns that may replace a noun according to things.json: the other nouns of the group that begins with
    it. Return an empty tuple if no group begins with it.
    """
    groups = [g for kind in KINDS for g in things()[kind] if g[0] == noun]
    return tuple(w for w in groups[0][1:] if w != noun) if groups else ()


@cache
def dimension_of(adjective: str) -> str:
    """Return the dimension of an attribute (colour, size, age, material, number …); empty if the attribute is not
    listed.
    """
    dimensions = things()["dimensions"]
    return next((name for name, members in dimensions.items() if adjective in members), "")


@cache
def basic_colour(word: str) -> str:
    """Return the listed colour that a word names or, according to WordNet, is a shade of; empty if there is none.

    >>> basic_colour("turquoise"), basic_colour("red"), basic_colour("kitchen")
    ('blue', 'red', '')
    """
    net, colours = open_wordnet(), things()["dimensions"]["colour"]
    above = [[w for s in (sense, *net.above(sense)) for w in s.words] for sense in net.senses(word, "n")[:3]]
    shades = [names for names in above if "color" in names]
    return word if word in colours else next((w for names in shades for w in names if w in colours), "")


@cache
def is_mass(noun: str) -> bool:
    return noun in things()["mass"]


@cache
def gender_of(noun: str) -> str:
    """Return `m` or `f` for a noun whose gender is listed or is shown by its ending (`linesman`, `chairwoman`). Return
    an empty string for other nouns.
    """
    known: str = things()["gendered"].get(noun, "")
    ending = "f" if noun.endswith("woman") else "m" if noun.endswith("man") else ""
    return known or (ending if ending and len(noun) > 5 and kind_of(noun) == "person" and noun != "human" else "")


@cache
def age_of(noun: str) -> str:
    """Return `adult`, `child` or `baby`; empty if the noun does not show an age."""
    return next((age for age, members in things()["ages"].items() if noun in members), "")


@cache
def common_senses(noun: str) -> tuple[Synset, ...]:
    """Return the senses of a common noun, without people and places of that name: for `crane`, not the writer Crane."""
    senses = open_wordnet().senses(noun, "n")
    word = noun.replace(" ", "_")
    return tuple([s for s in senses if word in s.words] or senses)


def _first_sense(noun: str) -> Synset | None:
    """Return the first sense of a noun if it is something visible, else None."""
    senses = common_senses(noun)
    return senses[0] if senses and senses[0].topic in _SEEN else None


def _is_clear(net: WordNet, noun: str) -> bool:
    """Return whether a noun has a single meaning: not `bat` or `fan` (two senses), nor `wet` (also an adjective)."""
    topics = {s.topic for s in common_senses(noun)[:2]}
    return len(topics) == 1 and not net.senses(noun, "a")


@cache
def _related(noun: str) -> frozenset[str]:
    """Return the words that may name the same thing as a noun, or a part of it: synonyms, hyponyms, hypernyms, parts
    and wholes.
    """
    net = open_wordnet()
    names: set[str] = set()
    for sense in net.senses(noun, "n")[:4]:
        related = [sense, *net.above(sense), *_below(net, sense, 3)]
        related += [p for symbol in _PARTS for p in net.follow(sense, symbol)]
        names |= {w.lower().replace("_", " ") for s in related for w in s.words}
    return frozenset(names)


def _below(net: WordNet, synset: Synset, depth: int) -> Iterable[Synset]:
    for s in net.follow(synset, HYPONYM) if depth else ():
        yield s
        yield from _below(net, s, depth - 1)


def excludes(noun: str, other: str) -> bool:
    """Return whether two nouns can never name the same thing.

    >>> excludes("dog", "cat"), excludes("dog", "animal"), excludes("couch", "sofa")
    (True, False, False)
    """
    return noun != other and other not in _related(noun) and noun not in _related(other)


@cache
def is_above(noun: str, other: str, senses: int = 2) -> bool:
    """Return whether the noun `noun` is a synonym or a hypernym of `other`, in one of its first `senses` senses.

    >>> is_above("animal", "dog"), is_above("dog", "animal"), is_above("sofa", "couch")
    (True, False, True)
    """
    net = open_wordnet()
    first = net.senses(other, "n")[:senses]
    return any(noun.replace(" ", "_") in s.words for sense in first for s in (sense, *net.above(sense)))


@cache
def in_one_group(table: str, word: str, other: str) -> bool:
    """Return whether both words are in one group of the named table in `facts()`."""
    return any(word in group and other in group for group in facts()[table])


def numbered(noun: str, tag: str) -> str:
    """Return the plural of a noun for the Penn tag NNS, else the noun unchanged. Only the last word of a compound is
    inflected.
    """
    head, _, last = noun.rpartition(" ")
    return f"{head} {inflected(last, tag)}".strip() if tag == "NNS" else noun


@cache
def is_reciprocal(verb: str, preposition: str = "") -> bool:
    """Return whether a verb describes a mutual action, such as `hug` or `talk to`: if A does it to B, then B does it to
    A.
    """
    return verb in facts()["reciprocal"].get(preposition, ())


@cache
def is_worn(noun: str) -> bool:
    """Return whether one of a noun's first senses is something to wear. It is True for `jersey`, which is a shirt as
    well as a breed of cow.
    """
    net = open_wordnet()
    above = {w for sense in net.senses(noun, "n")[:4] for s in net.above(sense) for w in s.words}
    return kind_of(noun) == "clothing" or not above.isdisjoint(("clothing", "garment", "footwear", "headdress"))


@cache
def is_animate(noun: str) -> bool:
    """Return whether the first sense of a noun is a person or an animal."""
    senses = common_senses(noun)
    return noun in things()["animate"] or (bool(senses) and senses[0].topic in (_PERSON, _ANIMAL))


@cache
def recipient_preposition(verb: str) -> str | None:
    """Return the preposition for a verb's recipient, `to` or `for`, if the verb also allows two objects; else None."""
    return next((link for link, verbs in facts()["recipients"].items() if verb in verbs), None)
