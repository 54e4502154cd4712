"""What is known about verbs and nouns beyond their parse: which alternations they take part in."""

from __future__ import annotations

from functools import cache
from typing import Any

from creperie.core import MissingExtraError
from creperie.lang import dimension_of, open_wordnet
from creperie.making.data import read_data

#: WordNet's files: animals, people, artifacts; and all things that can be held.
_ANIMAL, _PERSON, _ARTIFACT = 5, 18, 6
_SOLID_TOPICS = frozenset((5, 6, 8, 13, 17, 20, 27))


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_data("verbs")
    return {k: frozenset(v) if isinstance(v, list) else v for k, v in table.items()}


def has_passive(verb: str, thing: str) -> bool:
    """Whether `verb thing` can be turned round: not `have`, not `take a picture`.

    >>> has_passive("ride", "horse"), has_passive("take", "nap"), has_passive("resemble", "dog")
    (True, False, False)
    """
    return verb not in _table()["no_passive"] and thing not in _table()["idioms"].get(verb, ())


def takes_particle(verb: str, particle: str) -> bool:
    """`pick up a ball`, `turn off a light`; not `drive down a road`, whose `down` is a preposition.

    >>> takes_particle("pick", "up"), takes_particle("turn", "off"), takes_particle("drive", "down")
    (True, True, False)
    """
    table = _table()
    return particle in table["particles"] or (particle in table["particles_of_some"] and verb in table["some"])


def takes_preposition(verb: str, preposition: str) -> bool:
    """Verbs that take their preposition into the passive: `is barked at by a dog`; nobody `is walked with`.

    >>> takes_preposition("bark", "at"), takes_preposition("sit", "on"), takes_preposition("talk", "with")
    (True, False, False)
    """
    table = _table()
    if preposition in ("on", "at") and verb in table["happens_at"] and (verb, preposition) != ("work", "on"):
        return False  # `compete on a field`: a place, which is not acted upon
    if preposition in ("on", "over", "for") and f"{verb} {preposition}" not in table["prepositional_verbs"]:
        return False
    return preposition in table["prepositional"] and (
        verb not in table["no_passive"] or f"{verb} {preposition}" in table["prepositional_verbs"]
    )


def says_place_with_by(verb: str) -> bool:
    """Verbs whose `by` tells where, not who: `parked by a tree`."""
    return verb in _table()["place_by"]


def recipient_preposition(verb: str) -> str | None:
    """`to` or `for`, where the verb takes a recipient."""
    table = _table()
    return "to" if verb in table["to"] else "for" if verb in table["for"] else None


def takes_two_objects(verb: str) -> bool:
    """`give her a book` is English, `present her a book` hardly."""
    table = _table()
    return verb not in table["to_only"] and verb not in table["for_only"]


def is_dative_idiom(thing: str) -> bool:
    return thing in _table()["dative_idioms"]


def hits_against(verb: str) -> bool:
    """Verbs of contact: `hit the fence with the stick`, `hit the stick against the fence`."""
    return verb in _table()["against"]


def is_animate(noun: str) -> bool:
    """A person or an animal, in its first sense."""
    return noun in _table()["animate"] or _topics(noun)[:1] in ((_ANIMAL,), (_PERSON,))


def is_solid(noun: str) -> bool:
    """A thing that can be touched, and no person. A compound that nobody knows is what its last word is."""
    while " " in noun and not _topics(noun):
        noun = noun.partition(" ")[2]
    topics = _topics(noun)
    return not is_animate(noun) and (topics[:1] in {(t,) for t in _SOLID_TOPICS} or _ARTIFACT in topics[:4])


def tells_way(preposition: str) -> bool:
    """Prepositions that belong to what is done, whatever a parser hangs them on: `offers pizza to a child`."""
    return preposition in _table()["ways"]


def takes_tool(verb: str) -> bool:
    """Verbs whose `with` tells what it is done with: `hit a ball with a racket`."""
    return verb in _table()["with_tool"]


def may_be_verb(verb: str) -> bool:
    """Verbs that captions have at their ends, where parsers take them for nouns: `a man in a helmet standing`."""
    return verb in _table()["mistaken_for_nouns"]


def is_name(words: str) -> bool:
    """Whether WordNet knows two words as the name of one thing: `hot dog`; not `red car` or `young man`."""
    return not dimension_of(words.lower().split()[0]) and bool(_topics(words.lower()))


def is_measure(noun: str) -> bool:
    """A noun that says how much of what follows `of`: alone it would be another thing."""
    return noun in _table()["measures"]


@cache
def _topics(noun: str) -> tuple[int, ...]:
    """The files of a noun's senses, the most frequent first; without WordNet nothing is known."""
    try:
        return tuple(s.topic for s in open_wordnet().senses(noun, "n"))
    except MissingExtraError:
        return ()
