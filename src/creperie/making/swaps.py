"""Edits that swap two objects, attributes or phrases of a caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from creperie.lang import (
    age_of,
    dimension_of,
    facts,
    gender_of,
    is_mass,
    kind_of,
    may_be_called,
    verb_base,
)
from creperie.making.atoms import base_of, compound, dependents, has_of, joined, objects, phrase, sort_of
from creperie.making.corpus import WordCounts
from creperie.making.edits import (
    ANIMATE,
    MADE,
    CaptionEdit,
    doer_of,
    frames,
    holder_of,
    may_be,
    qualities,
    rivals,
    stands_alone,
    words_near,
)
from creperie.making.phrases import lacks_determiner
from creperie.making.wording import plain, written

Pair = tuple[Any, Any]
#: Kinds of things that can be swapped: clothes and gear between owners, food and vehicles between places. A place and a
#: thing are never swapped.
MOVABLE = frozenset((*ANIMATE, *MADE, "food"))


def swapped_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two nouns; their modifiers stay in place."""
    for left, right in swappable(doc):
        dimensions = {dimension_of(c.lower_) for t in (left, right) for c in dependents(t, "amod")}
        spans = compound(left), compound(right)
        called = sort_of(left) == "clothing" and may_be_called(base_of(left), base_of(right))
        if called or any(t.tag_ == "JJ" for s in spans for t in doc[slice(*s)]):
            continue  # some people call a sweater a shirt; `a black white strapless dress`
        if dimensions <= ({"colour"} if sort_of(left) == sort_of(right) else set()):
            yield _swap(left, right, *spans)


def swapped_phrases(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two noun phrases of the same number, including their adjectives."""
    for left, right in swappable(doc):
        (start, end), (begin, stop) = phrase(left), phrase(right)
        least = min if sort_of(left) == "clothing" else max  # a sweater may be the patterned shirt
        if end <= begin and least(end - start, stop - begin) > 2:
            yield _swap(left, right, (start, end), (begin, stop))


def swapped_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two adjectives of different nouns, of the same dimension, if each fits the other noun."""
    for left, right in adjective_pairs(qualities(doc)):
        one, other = left.head, right.head
        alike = dimension_of(left.lower_) == dimension_of(right.lower_) != ""
        alike = alike and not joined(one, other) and stands_alone(left) and stands_alone(right)
        alike = alike and right.lower_ not in words_near(left) and left.lower_ not in words_near(right)
        if base_of(one) == base_of(other) and not any(t.tag_[:2] in ("VB", "IN") for t in doc[one.i : other.i]):
            continue  # `a red car, … and a blue car`
        if alike and may_be(left.lower_, other, corpus) and may_be(right.lower_, one, corpus):
            yield _swap(left, right, (left.i, left.i + 1), (right.i, right.i + 1))


def _swap(left: Any, right: Any, *spans: tuple[int, int]) -> CaptionEdit:
    text = exchange_spans(left.doc, *spans, repair=True)
    return CaptionEdit(text, f"{left.text} ↔ {right.text}", left.i, (left, right))


def swappable(doc: Any) -> Iterator[Pair]:
    """Yield pairs of nouns of the same kind in different roles that can be swapped."""
    present = {t.lower_ for t in doc}
    bases = Counter(map(base_of, doc))
    bound = not present.isdisjoint(frames()["pronouns"]) or not present.isdisjoint(frames()["gendered"])
    for left, right in noun_pairs(objects(doc)):
        first, second = map(base_of, (left, right))
        kinds = {sort_of(left), sort_of(right)}
        between = doc[left.i + 1 : phrase(right)[0]]
        joining = {t.lower_ for t in between}
        if left.tag_ != right.tag_ or joining <= {"and", "or", ","} or "where" in joining:
            continue
        if kinds == {"clothing"} and not any(sort_of(t) in ANIMATE for t in between):
            continue  # one person wears both
        if not kinds <= MOVABLE or not (kinds <= ANIMATE or len(kinds) == 1):
            continue
        if ("food" in kinds and is_mass(first) != is_mass(second)) or (bound and gender_of(first) != gender_of(second)):
            continue
        if "baby" in (age_of(first), age_of(second)) or not {first, second}.isdisjoint(frames()["passive"]):
            continue
        if bases[first] + bases[second] > 2:
            continue  # `a man holds a child while the child pets a horse`
        if any(_is_tied(t) or lacks_determiner(t) for t in (left, right)):
            continue
        if kinds == {"person"} and not _are_different_people(first, second):
            continue
        if "animal" in kinds and not present.isdisjoint(frames()["one_sided"]):
            continue  # only one of two animals flies, barks or has the other in its mouth
        alike = kinds <= ANIMATE | {"clothing", "food"} or second in rivals(first)
        if alike and _turns(left, right, len(kinds) > 1):
            yield left, right


def _are_different_people(first: str, second: str) -> bool:
    """Return True if no one can be called both: a player may be a girl, and a man a drummer."""
    traits = [(of(first), of(second)) for of in (gender_of, age_of)]
    return any(one and other and one != other for one, other in traits)


def _turns(left: Any, right: Any, crossed: bool) -> bool:
    """Return True if the relation of two nouns can be reversed, or if each has its own place or owner. `crossed` is
    True for a person and an animal.
    """
    parts = [c for c in (*left.rights, *right.rights) if c.dep_ in ("acl", "relcl") or c.lower_ in ("in", "with")]
    if crossed and parts:
        return False  # excludes `a horse in a jacket`
    link, bases = right.head, [base_of(t) for t in (left, right)]
    verb = link.head if link.dep_ == "agent" else link
    if (right.dep_ == "dobj" or link.dep_ == "agent") and doer_of(verb) == left:
        return turns(verb_base(verb), *bases)
    if right.dep_ == "pobj" and holder_of(link) == left:
        if verb_base(link.head) in facts()["looks"] or (crossed and dependents(link.head, "dobj")):
            return False  # both may eat; excludes `a dog throws a ball toward a woman`
        return link.lower_ in frames()["turning"] or link.head.lower_ in ("front", "next", "close")
    holders = [_holder(t) for t in (left, right)]
    if crossed or None in holders or holders[0] == holders[1]:
        return False
    still = {*facts()["looks"], *frames()["static"]}
    return not {verb_base(t) for t in holders} <= still  # who stares may be who looks away


def turns(verb: str, first: str, second: str) -> bool:
    """Return True if each of two animate nouns could do the action to the other. For verbs such as `carry` both must be
    people of one age.

    >>> turns("chase", "goat", "girl"), turns("feed", "man", "dog"), turns("hit", "player", "ball")
    (True, False, False)
    """
    kinds, ages = {kind_of(first), kind_of(second)}, {age_of(first), age_of(second)}
    if not kinds <= ANIMATE:
        return False
    if len(kinds) == 2:
        return verb in frames()["crossed"]
    return verb in frames()["both_ways"] and (verb not in frames()["grown"] or (kinds == {"person"} and len(ages) == 1))


def _holder(noun: Any) -> Any | None:
    """Return what a noun belongs to, or None: its verb, who wears or holds it, or the thing that is located at it."""
    if noun.dep_ == "nsubj":
        return noun.head
    if noun.dep_ == "pobj":
        own = noun.head.lower_ in frames()["owning"]
        holder = holder_of(noun.head) if own else None
        return None if holder is not None and noun.head.lower_ == "with" and sort_of(holder) not in ANIMATE else holder
    return doer_of(noun.head) if noun.dep_ == "dobj" else None


def _is_tied(noun: Any) -> bool:
    """Return True if a noun is a part, a measure, a possession, one of several, or refers to another."""
    if noun.dep_ == "conj" or has_of(noun) or (noun.head.lower_ == "of" and noun.head.head.lower_ != "front"):
        return True
    inside = noun.doc[noun.i + 1 : noun.i + 2]
    if any(t.dep_ in ("amod", "compound") for t in inside) or any(base_of(c) in frames()["static"] for c in noun.lefts):
        return True  # `a tiger striped toy`, `a standing man`
    return any(c.dep_ in ("poss", "conj") or c.lower_ in ("another", "other", "each") for c in noun.children)


def noun_pairs(nouns: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of nouns with different lemmas that are not joined by `and`."""
    for left, right in combinations(nouns, 2):
        if not joined(left, right) and base_of(left) != base_of(right):
            yield left, right


def adjective_pairs(adjectives: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of adjectives of different nouns that are not joined by `and`."""
    for left, right in combinations(adjectives, 2):
        nouns = left.head.tag_[:2] == right.head.tag_[:2] == "NN"
        if nouns and left.head != right.head and left.lower_ != right.lower_ and not joined(left, right):
            yield left, right


def exchange_spans(doc: Any, left: tuple[int, int], right: tuple[int, int], *, repair: bool) -> str:
    """Return the caption with two spans of words exchanged; blanks stay in place. With `repair`, articles and the first
    letter are adjusted.
    """
    (a, b), (c, d) = left, right
    order = [*range(a), *range(c, d), *range(b, c), *range(a, b), *range(d, len(doc))]
    blanks = {d - 1: doc[b - 1].whitespace_, b - 1: doc[d - 1].whitespace_}
    pieces = [(plain(doc[i]) if repair else doc[i].text, blanks.get(i, doc[i].whitespace_)) for i in order]
    return written(pieces, like=doc.text if repair else "")
