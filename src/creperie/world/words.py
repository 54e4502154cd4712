"""The words of the world: how captions name its kinds, colours, states and relations."""

from __future__ import annotations

from functools import lru_cache

from creperie.world.kinds import NAMES
from creperie.world.solid.models import SOLIDS
from creperie.world.sprites import TABLES, WORDS
from creperie.world.truth import Desc

SIZE_WORDS = {"big": ("big", "large"), "small": ("small", "little")}
PATTERN_WORDS = ("striped", "checked", "spotted", "plain")
MATERIAL_WORDS = {"wood": "wooden", "metal": "metal", "glass": "glass"}
SAYING = "that says"
ALL_NAMES = (*SOLIDS, *(name for name in NAMES if name not in SOLIDS))  #: kinds of both worlds

AT: dict[str, tuple[str, ...]] = TABLES["at"]
ITS: dict[str, tuple[str, ...]] = TABLES["its"]
VERBS: dict[str, tuple[tuple[str, str, str, str], ...]] = TABLES["verbs"]
PLURALS: dict[str, str] = {name: TABLES["plurals"].get(name, f"{name}s") for name in ALL_NAMES}
#: verb → its plural, its -ing form, and the kinds of things that do it in their places
POSTURES: dict[str, tuple[str, str, tuple[str, ...]]] = TABLES["postures"]
PLACES = {"table": "on the table", "room": "in the room"}
NUMBERS = ("two", "three", "four")  #: from two on


def stated(kind: str, state: str) -> tuple[str, str, str]:
    """Return the words for a thing's state in three positions: before the noun, after the noun, and after "is".

    >>> stated("mug", "full"), stated("lamp", "off")
    (('', 'of coffee', 'full of coffee'), ('unlit', '', 'off'))
    """
    if state in TABLES["states"]:
        before, predicate = TABLES["states"][state]
        return before, "", predicate
    return "", f"of {TABLES['contents'][kind]}", f"full of {TABLES['contents'][kind]}"


@lru_cache(maxsize=65_536)
def noun_phrase(desc: Desc, determiner: str, flavour: int, again: bool = False) -> str:
    """Return a description as a noun phrase. `determiner` is "a", "the", "no" or a number word; `flavour` selects
    synonyms.

    With `again`, the noun is "one", because another thing of the same kind was named before.

    >>> noun_phrase(Desc("umbrella", "red", "spotted", "big"), "a", 1), noun_phrase(Desc("cup", "red"), "the", 0, True)
    ('a large red spotted umbrella', 'the red one')
    >>> noun_phrase(Desc("sign", pattern="ZOO"), "a", 0), noun_phrase(Desc("box", "red"), "two", 0)
    ('a sign that says ZOO', 'two red boxes')
    """
    before, after, _ = stated(desc.kind, desc.state) if desc.state else ("", "", "")
    words = [
        before,
        SIZE_WORDS[desc.size][flavour % 2] if desc.size else "",
        desc.colour,
        desc.pattern if desc.pattern in PATTERN_WORDS else "",
        MATERIAL_WORDS[desc.material] if desc.material else "",
    ]
    words = [word for word in words if word]
    if desc.pattern in WORDS:
        after = f"{SAYING} {desc.pattern}"
    many = determiner in NUMBERS
    words.append("one" if again and words and not after else PLURALS[desc.kind] if many else desc.kind)
    first = ("an" if words[0] and words[0][0] in "aeiou" else "a") if determiner == "a" else determiner
    text = " ".join((first, *(word for word in words if word), *([after] if after else [])))
    return text.replace(" framed", "-framed") if len(words) > 1 else text
