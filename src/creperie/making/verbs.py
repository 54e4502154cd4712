"""What a parse does not tell about verbs and nouns: passives, particles, recipients, animacy, names that consist of two
words.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from creperie.lang import common_senses, is_animate, open_wordnet
from creperie.making.data import read_data

#: WordNet's lexicographer files of artifacts, and of all things that can be held.
_ARTIFACT = 6
_SOLID_TOPICS = frozenset((5, 6, 8, 13, 17, 20, 27))


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_data("verbs")
    return {k: frozenset(v) if isinstance(v, list) else v for k, v in table.items()}


def has_passive(verb: str, thing: str) -> bool:
    """Return True if the phrase `verb thing` has a passive, unlike `have` and `take a picture`.

    >>> has_passive("ride", "horse"), has_passive("take", "nap"), has_passive("resemble", "dog")
    (True, False, False)
    """
    return verb not in _table()["no_passive"] and thing not in _table()["idioms"].get(verb, ())


def takes_particle(verb: str, particle: str) -> bool:
    """Return True if `particle` is a particle of this verb, as `up` is in `pick up a ball`. In `drive down a road`,
    `down` is a preposition.

    >>> takes_particle("pick", "up"), takes_particle("turn", "off"), takes_particle("drive", "down")
    (True, True, False)
    """
    table = _table()
    return particle in table["particles"] or (particle in table["particles_of_some"] and verb in table["some"])


def takes_preposition(verb: str, preposition: str) -> bool:
    """Return True if a verb keeps its preposition in the passive, as in `is barked at by a dog`. `walk with` has no
    such passive.

    >>> takes_preposition("bark", "at"), takes_preposition("sit", "on"), takes_preposition("talk", "with")
    (True, False, False)
    """
    table = _table()
    if preposition in ("on", "at") and verb in table["happens_at"] and (verb, preposition) != ("work", "on"):
        return False  # `compete on a field`: a place, not an object
    if f"{verb} {preposition}" in table["prepositional_verbs"]:
        return preposition in table["prepositional"]
    return preposition in table["prepositional"] - {"on", "over", "for"} and verb not in table["no_passive"]


def listed(table: str, word: str) -> bool:
    """Return True if the list `table` of verbs.json contains the word.

    >>> listed("place_by", "park"), listed("against", "hit"), listed("measures", "dog")
    (True, True, False)
    """
    return word in _table()[table]


def is_solid(noun: str) -> bool:
    """Return True if a noun names something that can be touched and is not animate."""
    senses = topics(noun)
    return not is_animate(noun) and (not _SOLID_TOPICS.isdisjoint(senses[:1]) or _ARTIFACT in senses[:4])


def is_name(words: str) -> bool:
    """Return True if WordNet lists these words as one term. It lists `hot dog`, but not `red car` or `young man`."""
    return bool(topics(words.lower()))


@cache
def topics(noun: str) -> tuple[int, ...]:
    """Return the number of the WordNet file (5: animals, 6: artefacts …) for each common sense of a noun, the most
    frequent sense first.
    """
    return tuple(s.topic for s in common_senses(noun))


@cache
def is_common(word: str) -> bool:
    """Return False for a word that is only a name, such as `haldane`, and True for others, such as `president`."""
    return any(word in s.words for s in open_wordnet().senses(word, "n"))


@cache
def is_nation(word: str) -> bool:
    """Return True for an adjective of nationality, such as `Danish`."""
    return word[:1].isupper() and any(word in s.words for s in open_wordnet().senses(word, "a")[:1])
