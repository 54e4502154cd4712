"""The words of the world: how its kinds, colours and relations are expressed."""

from __future__ import annotations

from functools import lru_cache

from creperie.world.kinds import NAMES
from creperie.world.sprites import TABLES, WORDS
from creperie.world.truth import Desc

SIZE_WORDS = {"big": ("big", "large"), "small": ("small", "little")}
PATTERN_WORDS = {"striped": ("striped",), "spotted": ("spotted", "dotted"), "plain": ("plain",)}
SAYING = ("that says", "reading")

AT: dict[str, tuple[str, ...]] = TABLES["at"]
ITS: dict[str, tuple[str, ...]] = TABLES["its"]
VERBS: dict[str, tuple[tuple[str, str, str, str], ...]] = TABLES["verbs"]
PLURALS: dict[str, str] = {name: TABLES["plurals"].get(name, f"{name}s") for name in NAMES}
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
    'a large dotted red umbrella'
    >>> noun_phrase(Desc("sign", pattern="ZOO"), "a", 0), noun_phrase(Desc("box", "red"), "two", 0)
    ('a sign that says ZOO', 'two red boxes')
    """
    words = []
    if desc.size:
        words.append(SIZE_WORDS[desc.size][flavour % 2])
    if desc.pattern in PATTERN_WORDS:
        options = PATTERN_WORDS[desc.pattern]
        words.append(options[flavour % len(options)])
    if desc.colour:
        words.append(desc.colour)
    words.append(PLURALS[desc.kind] if determiner.endswith(NUMBERS) else desc.kind)
    first = article(words[0]) if determiner == "a" else determiner
    if desc.pattern in WORDS:
        words += [SAYING[flavour % 2], desc.pattern]
    return " ".join((first, *words))
