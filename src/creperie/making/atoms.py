"""The atoms of a caption, as in a scene graph: objects, attributes and relations."""

from __future__ import annotations

from functools import cache
from typing import Any

from creperie.lang import SIMILAR, dimension_of, kind_of, lemma, listed_for, open_wordnet
from creperie.making.data import read_data
from creperie.making.verbs import is_name

OBJECT_TAGS = frozenset(("NN", "NNS"))
_INSIDE = frozenset(("compound", "npadvmod", "nmod", "amod", "poss"))
_BEFORE = frozenset(("det", "amod", "compound", "nummod", "poss", "nmod", "advmod", "predet", "quantmod"))


@cache
def vague_nouns() -> frozenset[str]:
    """Return nouns that do not name a thing in the picture, such as `front`, `group` and `picture`."""
    return frozenset(read_data("contrasts")["vague"])


def base_of(token: Any) -> str:
    """Return the dictionary form of a token."""
    return lemma(token.text, token.tag_)


def sort_of(noun: Any) -> str:
    """Return the kind of thing that a noun names, taken together with the words that form one name with it: a `German
    shepherd` is an animal, a `roller coaster` is not a person. Empty if the kind is unknown.
    """
    base, whole = base_of(noun), named(noun)
    return kind_of(base) if whole == base else kind_of(whole) or (kind_of(base) if listed_for(base) else "")


def named(noun: Any) -> str:
    """Return a noun in its dictionary form, with the words before it that form one name with it: `tennis racket`."""
    return " ".join([*(c.lower_ for c in name_words(noun) if c.dep_ != "nmod"), base_of(noun)])


#: What a modifier says of the look of a thing → words above it in WordNet.
_LOOKS = {
    "colour": ("color", "chromatic_color", "achromatic_color", "chromatic", "achromatic"),
    "fabric": ("fabric", "animal_skin", "fleece", "plant_fiber"),
    "material": ("metal", "alloy", "wood", "stone", "glass", "ceramic", "plastic", "building_material"),
}
_SHAPES = ("round", "square", "oval", "rectangular", "triangular")


def look_of(modifier: Any) -> str:
    """Return the dimension of appearance (colour, size, …) that a token describes, by the word lists or by its first
    senses in WordNet; empty if it describes none.
    """
    return look_of_word(modifier.lower_, modifier.tag_)


def look_of_word(word: str, tag: str) -> str:
    """Return the dimension of appearance (colour, size, …) that a word with this Penn tag describes; empty if none."""
    return _look(word, tag[:2] == "NN")


@cache
def _look(word: str, noun: bool) -> str:
    net, own = open_wordnet(), "shape" if word in _SHAPES else dimension_of(word)
    own = "colour" if word in read_data("frames")["colours"] else own
    described = net.senses(word, "a")[:1]
    first = [*(net.senses(word, "n")[:2] if noun or not described else ()), *described]
    above = {w for s in first for up in (s, *net.above(s), *net.follow(s, SIMILAR)) for w in up.words}
    return own or next((look for look, names in _LOOKS.items() if not above.isdisjoint(names)), "")


def objects(doc: Any) -> list[Any]:
    """Return the nouns that name things: heads of noun phrases, but not parts of compounds."""
    nouns = (t for t in doc if t.tag_ in OBJECT_TAGS and t.text.isalpha() and t.dep_ not in _INSIDE)
    return [t for t in nouns if vague_nouns().isdisjoint((t.lower_, base_of(t)))]


def attributes(doc: Any) -> list[Any]:
    """Return a caption's descriptive adjectives, without those that say how many things or which ones are meant."""
    counts = read_data("contrasts")["quantities"]
    words = (t for t in doc if t.tag_ == "JJ" and t.text.isalpha() and t.lower_ not in counts)
    return [t for t in words if t.dep_ in ("amod", "acomp", "conj")]


def actions(doc: Any) -> list[Any]:
    """Return the verbs that describe actions: all except auxiliaries, `be`, `have` and `get`."""
    inside = ("aux", "auxpass", "amod", "compound")
    verbs = (t for t in doc if t.tag_[:2] == "VB" and t.text.isalpha() and t.dep_ not in inside)
    return [t for t in verbs if base_of(t) not in read_data("contrasts")["light"]]


def prepositions(doc: Any) -> list[Any]:
    """Return the prepositions that have an object, such as `on` in `on a table`."""
    return [t for t in doc if t.tag_ == "IN" and t.dep_ == "prep" and dependents(t, "pobj")]


def phrase(noun: Any) -> tuple[int, int]:
    """Return the span [start, end) of a noun phrase from its determiner to its head; words after the head are not
    included.
    """
    start: int = noun.left_edge.i
    if any(t.dep_ not in _BEFORE for t in noun.doc[start : noun.i]):
        start = min((c.left_edge.i for c in noun.lefts if c.dep_ in _BEFORE), default=noun.i)
    return start, noun.i + 1


def compound(noun: Any) -> tuple[int, int]:
    """Return the span [start, end) of a noun and the nouns before it that form a compound ("traffic light")."""
    parts = dependents(noun, "compound")
    return parts[0].left_edge.i if parts else noun.i, noun.i + 1


def is_compound_head(noun: Any) -> bool:
    """Return True if the noun forms one name with words before it: `tennis racket`, `hot dog`, `parking meter`."""
    return bool(name_words(noun)) or noun.dep_ == "compound"


def name_words(noun: Any) -> list[Any]:
    """Return the words before a noun that form one name with it."""
    near = noun.doc[max(0, noun.i - 1)]
    own = {near.i} if not dimension_of(near.lower_) and is_name(f"{near.lower_} {base_of(noun)}") else set()
    return [c for c in noun.lefts if c.dep_ in ("compound", "nmod") or (c.dep_ == "amod" and c.i in own)]


def joined(left: Any, right: Any) -> bool:
    """Return True if `and` or `or` joins `right` to `left`. Exchanging the two then leaves the meaning unchanged."""
    while right.dep_ == "conj" and right != left:
        right = right.head
    return bool(right == left)


def dependents(token: Any, *relations: str) -> list[Any]:
    """Return the words that depend on a token by one of the given relations, in order."""
    return [c for c in token.children if c.dep_ in relations]


def dependent(token: Any, *relations: str) -> Any | None:
    """Return the first word that depends on a token by one of the given relations, or None."""
    return next(iter(dependents(token, *relations)), None)


def has_of(noun: Any) -> bool:
    """Return True if a phrase with `of` follows the noun."""
    return any(c.lower_ == "of" for c in noun.rights)
