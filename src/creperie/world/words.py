"""The words of the world: how its kinds, colours and relations are said."""

from __future__ import annotations

from functools import lru_cache

from creperie.world.truth import Desc

SIZE_WORDS = {"big": ("big", "large"), "small": ("small", "little")}
PATTERN_WORDS = {"striped": ("striped",), "spotted": ("spotted", "dotted"), "plain": ("plain",)}

#: "the cat is … the box"
AT = {
    "left": ("left of", "to the left of", "on the left of"),
    "right": ("right of", "to the right of", "on the right of"),
    "above": ("above", "over"),
    "below": ("below", "under", "beneath"),
    "inside": ("inside", "in"),
    "on": ("on", "on top of"),
    "front": ("in front of",),
    "behind": ("behind",),
    "near": ("near", "close to", "next to"),
    "far": ("far from", "far away from"),
}
#: "the box with the cat …": where the cat is, as the box sees it. Not for left and right: its own, or ours?
ITS = {
    "above": ("above it", "over it"),
    "below": ("below it", "under it", "beneath it"),
    "inside": ("inside it", "in it"),
    "on": ("on it", "on top of it"),
    "front": ("in front of it",),
    "behind": ("behind it",),
    "near": ("near it", "close to it", "next to it"),
}
#: third person, -ing form, participle (with what the passive needs before "by"), plain form
VERBS = {
    "pushes": (("pushes", "pushing", "pushed", "push"),),
    "pulls": (("pulls", "pulling", "pulled", "pull"),),
    "carries": (("carries", "carrying", "carried", "carry"),),
    "holds": (("holds", "holding", "held", "hold"),),
    "follows": (("follows", "following", "followed", "follow"),),
    "faces": (("faces", "facing", "looked at", "face"), ("looks at", "looking at", "looked at", "look at")),
    "hands": (
        ("hands", "handing", "handed", "hand"),
        ("gives", "giving", "given", "give"),
        ("passes", "passing", "passed", "pass"),
    ),
}


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
