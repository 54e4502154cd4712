"""Numbers in a caption: the words that depend on them, and edits that swap two of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from creperie.lang import (
    COUNTS,
    facts,
    in_number,
    is_above,
    is_mass,
    is_worn,
    lemma,
    reagreed,
)
from creperie.making.atoms import base_of, dependents, has_of, joined
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit
from creperie.making.exchanging import ParsedScene
from creperie.making.plausible import frames
from creperie.making.telling import is_symmetric
from creperie.making.verbs import topics
from creperie.making.wording import plain, reworded

#: The largest number that changes places with `a`.
MOST_TURNED = 6
#: Words before what a thing has, wears or holds.
_HAVING = frozenset(("with", "in", "wearing", "carrying", "holding"))
#: WordNet's files of times and quantities.
MEASURES = ((28,), (23,))


def number_of(token: Any) -> int:
    """Return the number that a token stands for; 0 if it is no number."""
    tens = frames()["numbers"]
    return COUNTS.get(token.lower_) or tens.get(token.lower_) or (int(token.text) if token.text.isdecimal() else 0)


def has_single_thing(noun: Any) -> bool:
    """Return True if the thing that a noun names comes with a single other thing, as in `a necklace with heart
    pendant`, or if the word `same` follows anywhere in the caption.
    """
    doc = noun.doc
    if any(t.lower_ == "same" and t.i > noun.i for t in doc):
        return True
    if noun.i + 2 >= len(doc) or (link := noun.nbor(1)).lower_ not in _HAVING:
        return False
    thing = next((t for t in link.children if t.dep_ in ("pobj", "dobj")), None)
    if thing is None or thing.tag_ in ("NNS", "NNPS"):
        return False
    if is_worn(base_of(thing)):
        return True
    return not is_mass(base_of(thing)) and (link.lower_ != "in" or not topics(base_of(thing)))


# -- exchanged counts ------------------------------------------------------------------------------------------------


def swapped_counts(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the numbers of two things, as in `one bottle and three glasses`."""
    scene = ParsedScene(doc)
    counted = [(t, noun) for t in doc if (noun := _counted(t)) is not None]
    for (one, left), (other, right) in combinations(counted, 2):
        values = [1 if t.lower_ in ("a", "an") else number_of(t) for t in (one, other)]
        if values[0] == values[1] or is_divided(doc, one, other) or (1 in values and max(values) > 9):
            continue
        bare = left.nbor(-1).lower_ == right.nbor(-1).lower_ or 1 in values
        bare = bare or right.head.lower_ == "of"  # three people with blood on the faces of two people
        if base_of(left) == base_of(right) and bare:
            continue
        if is_part(left, right):
            continue
        changes = {one.i: plain(other), other.i: plain(one)}
        if 1 in values:
            if not _may_be_numbered(scene, left, right, values):
                continue
            changes |= _renumbered(left, values[1] > 1) | _renumbered(right, values[0] > 1)
        yield _with_numbers(doc, changes, one, other, (left, right))
    labels = [t for t in doc[1:] if t.text.isdecimal() and _is_label(t.nbor(-1))]
    if len(labels) == 2 and labels[0].nbor(-1).lower_ == labels[1].nbor(-1).lower_:
        one, other = labels
        verbs = [t for t in doc[one.i : other.i] if t.tag_[:2] == "VB" or t.dep_ == "mark"]
        if verbs and not any(is_symmetric(base_of(t)) for t in verbs):
            yield _with_numbers(doc, {one.i: other.text, other.i: one.text}, one, other, (one, other))


def _with_numbers(doc: Any, changes: dict[int, str], one: Any, other: Any, pair: tuple[Any, Any]) -> CaptionEdit:
    told = "each has the number of the other"
    return CaptionEdit(reworded(doc, changes), f"{one.text} ↔ {other.text}", one.i, pair, told=told)


def _is_label(before: Any) -> bool:
    """Return True if the number after this word tells what something is called: `rider No. 46`, `bedroom 2`."""
    return before.text in (".", "#") or (before.tag_[:2] == "NN" and topics(before.lower_)[:1] != (28,))


def is_part(left: Any, right: Any) -> bool:
    """Return True if the people or things that one noun names may be among those that the other names, as in `two
    children, a boy and a girl`.
    """
    one, other = base_of(left), base_of(right)
    return one != other and any(
        b in facts()["kinds"].get(a, ()) or is_above(a, b) for a, b in ((one, other), (other, one))
    )


def _counted(number: Any) -> Any | None:
    """Return the noun that a number or the article `a` counts; None if there is none."""
    doc, i = number.doc, number.i
    near = {t.lower_ for t in doc[max(0, i - 2) : i]}
    if near & {"least", "than", "-", "about", "some", "nearly", "number", "including", "up", "under", "over"}:
        return None
    if i + 1 < len(doc) and doc[i + 1].text == "-":
        return None
    if number.lower_ in ("a", "an"):
        noun = number.head if number.dep_ == "det" and number.head.tag_ == "NN" else None
    elif (
        number.tag_ != "CD"
        or not (number.text.isalpha() or number.text.isdecimal())
        or any(c.i < i for c in number.children)
    ):
        return None
    else:
        noun = number.head if number.dep_ in ("nummod", "quantmod") and number.head.i > i else None
        if noun is not None and noun.dep_ == "compound" and not topics(noun.lower_):
            noun = noun.head  # four stemless wine glasses
    if noun is None:
        return None
    if noun.tag_ != ("NN" if number.lower_ in ("a", "an") or number_of(number) == 1 else "NNS"):
        return None  # a two person canoe
    senses = topics(base_of(noun))
    seen = 6 in senses[:3] or {*senses[:1]} <= {5, 6, 13, 14, 15, 17, 18, 20}
    place = any(is_above(word, base_of(noun), 1) for word in ("way", "intersection", "room"))
    if number.lower_ in ("a", "an") and (place or not seen):
        return None  # has a conversation, plays a game
    measured = senses[:1] == (28,) or (senses[:1] == (23,) and has_of(noun))
    measured = measured or base_of(noun) in frames()["paired"] or is_mass(base_of(noun))
    return None if measured else noun


def _may_be_numbered(scene: ParsedScene, left: Any, right: Any, values: list[int]) -> bool:
    """Return True if a single thing and a group of things can exchange their numbers. The two must be listed side by
    side, or one must act on the other. Nothing else in the caption may depend on their numbers.
    """
    doc = scene.doc
    if any(f.name == "wear" for t in (left, right) for f, _ in scene.facts_of(t)):
        return False
    refers = (t.tag_ in ("PRP", "PRP$", "WP$", "JJR", "JJS") for t in doc)
    ones = (t.lower_ == "one" and t.dep_ not in ("nummod", "quantmod") for t in doc)
    groups = {*frames()["of_many"], *frames()["encircling"]}
    many = (not groups.isdisjoint((t.lower_, lemma(t.text, "VBG"), lemma(t.text, "VBZ"))) for t in doc)
    alone = (c.lower_ in frames()["of_one"] for t in (left, right) for c in t.lefts)
    if any((*refers, *ones, *alone)) or (any(many) and not joined(left, right)):
        return False
    if joined(left, right) or right.dep_ == "appos":
        first = left
        while first.dep_ == "conj":
            first = first.head
        parts = first.dep_ == "pobj" and (first.head.lower_ == "with" or first.head.head.tag_[:2] == "VB")
        parts = parts and first.head.lower_ in ("with", "of")  # a pen with three nibs, a set consisting of four cups
        own = any(c.dep_ in ("prep", "acl") and c.i < right.i for c in left.rights)  # what follows is said of both
        return max(values) <= (2 if parts else MOST_TURNED) and not own
    links = scene.between(left, right)
    acts = any(not f.is_relation for f, *_ in links)
    apart = not links and all("agent" in {role for _, role in scene.facts_of(t)} for t in (left, right))
    return (acts or apart) and not [c for c in right.rights if c.dep_ in ("prep", "acl", "relcl")]


def _renumbered(noun: Any, plural: bool) -> dict[int, str]:
    beside = noun.doc[max(0, noun.left_edge.i - 1)], noun.doc[min(noun.i + 1, len(noun.doc) - 1)]
    alone = (
        not dependents(noun, "conj")
        and noun.dep_ != "conj"
        and noun.head.dep_ != "ccomp"
        and "CC" not in [t.tag_ for t in beside]
    )
    return {noun.i: in_number(plain(noun), plural)} | (dict(reagreed(noun, plural)) if alone else {})


# -- numbers that other words depend on ------------------------------------------------------------------------------


def is_divided(doc: Any, *numbers: Any) -> bool:
    """Return True if other words depend on the numbers, as in `six dogs, one brown and one grey` or `the older of the
    two`.
    """
    counts = [t for t in doc if t.tag_ == "CD" and t not in numbers]
    own = [t.head for t in numbers if t.head.lower_ == "others"] if len(numbers) > 1 else []
    again = any(picks_again(t) for t in doc if t not in own)
    if again or any(t.tag_ in ("JJR", "JJS", "JJ") and _stands_for_one(t) for t in doc):
        return True
    values = [number_of(t) for t in (*numbers, *counts)]
    total = max(values, default=0)
    parted = 2 * total == sum(values) and len(values) > 1 and total in values[: len(numbers)]
    loose = [t for t in counts if t.head.tag_[:2] != "NN" and t.text.isalpha()]
    return parted or (len(numbers) < 2 and bool(loose)) or any(t.lower_ == "one" for t in loose)


def picks_again(token: Any) -> bool:
    """Return True for a word that picks out some of the things mentioned before, such as `a third`, `the others` or
    `both`.
    """
    after = token.nbor(1).tag_[:2] if token.i + 1 < len(token.doc) else ""
    before = token.nbor(-1).lower_ if token.i else ""
    timed = after == "NN" and topics(base_of(token.nbor(1)))[:1] in MEASURES  # a third day
    ordinal = token.lower_ in frames()["ordinals"] and (after not in ("NN", "JJ") or before == "a") and not timed
    if token.tag_ in ("JJR", "JJS") and before == "the" and after not in ("NN", "JJ", "IN"):
        return True  # washes the feet of the youngest
    part = token.lower_ in ("half", "rest") and after not in ("IN", ".", ",")
    return ordinal or (token.lower_ in frames()["divided"] and token.tag_[:2] != "VB" and not part)


def _stands_for_one(adjective: Any) -> bool:
    """Return True for an adjective that picks out one of several things, as in `the upper one` or `the younger of
    them`.
    """
    after = adjective.nbor(1) if adjective.i + 1 < len(adjective.doc) else adjective
    picked = after.lower_ in ("one", "ones") or (adjective.tag_ != "JJ" and after.tag_[:1] not in ("N", "J"))
    return bool(picked and adjective.i and adjective.nbor(-1).lower_ in ("the", "a", "an"))
