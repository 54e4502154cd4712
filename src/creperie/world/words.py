"""The words of the world: how its kinds, colours and relations are expressed."""

from __future__ import annotations

from functools import lru_cache

from creperie.world.kinds import NAMES
from creperie.world.solid.models import SOLIDS
from creperie.world.sprites import TABLES, WORDS
from creperie.world.truth import Desc

SIZE_WORDS = {"big": ("big", "large"), "small": ("small", "little")}
PATTERN_WORDS = {name: (name,) for name in ("striped", "checked", "spotted", "plain")}
MATERIAL_WORDS = {"wood": "wooden", "metal": "metal", "glass": "glass"}
SAYING = "that says"
ALL_NAMES = (*SOLIDS, *(name for name in NAMES if name not in SOLIDS))  #: kinds of both worlds

AT: dict[str, tuple[str, ...]] = TABLES["at"]
ITS: dict[str, tuple[str, ...]] = TABLES["its"]
VERBS: dict[str, tuple[tuple[str, str, str, str], ...]] = TABLES["verbs"]
PLURALS: dict[str, str] = {name: TABLES["plurals"].get(name, f"{name}s") for name in ALL_NAMES}
#: state → what is said before the noun, and what behind it
STATES: dict[str, tuple[str, str]] = TABLES["states"]
CONTENTS: dict[str, str] = TABLES["contents"]  #: what a full thing is full of
NUMBERS = ("two", "three", "four")  #: from two on


def article(word: str) -> str:
    """Return "a" or "an" for a word.

    >>> article("orange"), article("cat")
    ('an', 'a')
    """
    return "an" if word[0] in "aeiou" else "a"


@lru_cache(maxsize=65_536)
def noun_phrase(desc: Desc, determiner: str, flavour: int) -> str:
    """Return a description as a noun phrase. `determiner` is "a", "the", "no" or a number; `flavour` selects synonyms.

    >>> noun_phrase(Desc("umbrella", "red", "spotted", "big"), "a", 1)
    'a large spotted red umbrella'
    >>> noun_phrase(Desc("sign", pattern="ZOO"), "a", 0), noun_phrase(Desc("box", "red"), "two", 0)
    ('a sign that says ZOO', 'two red boxes')
    """
    words = []
    before, behind = STATES[desc.state] if desc.state in STATES else ("", CONTENTS[desc.kind] if desc.state else "")
    if before:
        words.append(before)
    if desc.size:
        words.append(SIZE_WORDS[desc.size][flavour % 2])
    if desc.pattern in PATTERN_WORDS:
        words.append(PATTERN_WORDS[desc.pattern][0])
    if desc.colour:
        words.append(desc.colour)
    if desc.material:
        words.append(MATERIAL_WORDS[desc.material])
    words.append(PLURALS[desc.kind] if determiner in NUMBERS else desc.kind)
    first = article(words[0]) if determiner == "a" else determiner
    if desc.pattern in WORDS:
        behind = f"{SAYING} {desc.pattern}"
    return " ".join((first, *words, *([behind] if behind else [])))
