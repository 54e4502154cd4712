"""The atoms of a caption: objects, attributes, relations, as a scene graph would hold them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.lang import lemma, open_wordnet
from creperie.making.data import read_data

OBJECT_TAGS = frozenset(("NN", "NNS"))
ATTRIBUTE_TAGS = frozenset(("JJ",))
_INSIDE = frozenset(("compound", "npadvmod", "nmod", "amod", "poss"))
_BEFORE = frozenset(("det", "amod", "compound", "nummod", "poss", "nmod", "advmod", "predet", "quantmod"))
POSTURES = frozenset(("be", "stand", "sit", "lie", "park", "walk", "pose", "rest", "sleep", "lay"))
_LIGHT = frozenset(("be", "have", "do", "get", "go", "seem", "appear", "look"))


@cache
def vague_nouns() -> frozenset[str]:
    """Nouns that name no thing in the picture: `front`, `group`, `picture`."""
    return frozenset(read_data("contrasts")["vague"])


@dataclass(frozen=True)
class Form:
    """What a token's letters, tag and relation say of it, whatever stands around it."""

    text: str
    lower: str
    base: str
    tag: str
    dep: str
    tells: bool  #: of the scene: a noun or a verb
    is_object: bool
    is_attribute: bool
    is_action: bool


@cache
def _form(text: str, tag: str, dep: str) -> Form:
    base, lower, kind = lemma(text, tag), text.lower(), tag if text.isalpha() else ""
    tells = kind[:2] in ("NN", "VB") and dep not in ("aux", "auxpass")
    thing = kind in OBJECT_TAGS and dep not in _INSIDE and vague_nouns().isdisjoint((base, lower))
    counts = lower in read_data("contrasts")["quantities"]
    quality = kind in ATTRIBUTE_TAGS and dep in ("amod", "acomp", "conj") and not counts
    action = tells and kind[:2] == "VB" and base not in _LIGHT and dep not in ("amod", "compound")
    return Form(text, lower, base, tag, dep, tells, thing, quality, action)


def forms(doc: Any) -> list[Form]:
    """Return the forms of a caption's tokens, in order."""
    return [_form(t.text, t.tag_, t.dep_) for t in doc]


def objects(doc: Any) -> list[Any]:
    """Nouns that name things: heads of noun phrases, not parts of compounds."""
    return [t for t, form in zip(doc, forms(doc)) if form.is_object]


def attributes(doc: Any) -> list[Any]:
    """Adjectives that say how a thing is, not how many or which."""
    return [t for t, form in zip(doc, forms(doc)) if form.is_attribute]


def actions(doc: Any) -> list[Any]:
    """Verbs that say what is done; auxiliaries and `be`, `have`, `get` are left out."""
    return [t for t, form in zip(doc, forms(doc)) if form.is_action]


def prepositions(doc: Any) -> list[Any]:
    """Prepositions with an object of their own, which say where a thing is."""
    return [t for t in doc if t.tag_ == "IN" and t.dep_ == "prep" and any(c.dep_ == "pobj" for c in t.children)]


def phrase(noun: Any) -> tuple[int, int]:
    """The noun phrase from its determiner to its head: [start, end). What follows the head stays where it is."""
    start: int = noun.left_edge.i
    if any(form.dep not in _BEFORE for form in forms(noun.doc)[start : noun.i]):
        start = min((c.left_edge.i for c in noun.lefts if c.dep_ in _BEFORE), default=noun.i)
    return start, noun.i + 1


def compound(noun: Any) -> tuple[int, int]:
    """A noun with the nouns before it that belong to it ("traffic light"): [start, end)."""
    parts = [c.left_edge.i for c in noun.lefts if c.dep_ == "compound"]
    start = min(parts, default=noun.i)
    return (start, noun.i + 1) if start in parts else (noun.i, noun.i + 1)


def is_compound_head(noun: Any) -> bool:
    """Whether nouns or adjectives before it make one name with it: `tennis racket`, `hot dog`, `parking meter`."""
    before = [c for c in noun.lefts if c.dep_ in ("compound", "nmod") or (c.dep_ == "amod" and _one_name(c, noun))]
    return bool(before) or noun.dep_ == "compound"


def _one_name(adjective: Any, noun: Any) -> bool:
    return bool(adjective.i == noun.i - 1) and _named(f"{adjective.lower_} {lemma(noun.text, noun.tag_)}")


@cache
def _named(words: str) -> bool:
    return bool(open_wordnet().senses(words, "n"))


def is_plural(noun: Any) -> bool:
    return noun.tag_ in ("NNS", "NNPS") or any(c.dep_ == "conj" for c in noun.children)


def joined(left: Any, right: Any) -> bool:
    """Whether two words are joined by `and` or `or`: exchanging those changes nothing."""
    return left in _chain(right) or right in _chain(left)


def _chain(token: Any) -> list[Any]:
    chain = []
    while token.dep_ == "conj":
        token = token.head
        chain.append(token)
    return chain
