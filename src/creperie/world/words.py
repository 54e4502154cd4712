"""The words of the world: how its kinds, colours and relations are said."""

from __future__ import annotations

from functools import lru_cache

from creperie.world.sprites import TABLES
from creperie.world.truth import Desc

SIZE_WORDS = {"big": ("big", "large"), "small": ("small", "little")}
PATTERN_WORDS = {"striped": ("striped",), "spotted": ("spotted", "dotted"), "plain": ("plain",)}

AT: dict[str, tuple[str, ...]] = TABLES["at"]
ITS: dict[str, tuple[str, ...]] = TABLES["its"]
VERBS: dict[str, tuple[tuple[str, str, str, str], ...]] = TABLES["verbs"]


def article(word: str) -> str:
    """a or an.

    >>> article("orange"), article("cat")
    ('an', 'a')
    """
    return "an" if word[0] in "aeiou" else "a"


@lru_cache(maxsize=65_536)
def noun_phrase(desc: Desc, determiner: str, flavour: int) -> str:
    """A description in words. The determiner is "a", "the" or "no"; flavours choose between words of one meaning.

    >>> noun_phrase(Desc("umbrella", "red", "spotted", "big"), "a", 1)
    'a large dotted red umbrella'
    >>> noun_phrase(Desc("umbrella"), "a", 0)
    'an umbrella'
    """
    words = []
    if desc.size:
        words.append(SIZE_WORDS[desc.size][flavour % 2])
    if desc.pattern:
        options = PATTERN_WORDS[desc.pattern]
        words.append(options[flavour % len(options)])
    if desc.colour:
        words.append(desc.colour)
    words.append(desc.kind)
    first = article(words[0]) if determiner == "a" else determiner
    return " ".join((first, *words))
