"""Swaps of two things in a caption: their whole phrases change places, or only their names do.

Swaps are found in the reading of a caption, that is, its things and facts. Two things can change places if they have
different roles there: who does something, to whom it is done, who receives it, what is where. Two things can also
change places if they stand in the same relation to different things (`books on a bed, shirts on a desk`), or if they
are people who each do something of their own. The verdict of `truth` decides later which swaps are false. A swap is
plausible if both things are of the same kind and of equal rank; any other swap is absurd, and made only if the options
ask for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from creperie.lang import (
    Stated,
    facts,
    gender_of,
    in_other_gender,
    is_above,
    lemma,
)
from creperie.making.atoms import base_of, joined, named
from creperie.making.classes import classes_of
from creperie.making.corpus import WordCounts
from creperie.making.counting import picks_again
from creperie.making.edits import CaptionEdit
from creperie.making.exchanging import (
    PRONOUNS,
    Pair,
    ParsedScene,
    exchange_spans,
    exchanged_names,
    exchanged_phrases,
    is_many,
    owners,
    sort_here,
)
from creperie.making.plausible import are_of_one_size, frames
from creperie.making.roles import LOOSE, NO_SWAP, act_apart, act_on_same, are_joined_by_thing, why_absurd
from creperie.making.verbs import topics

#: A list of two things, each at its place, in the first letters of tags.
_PLACED = re.compile("(?<![DJN])(D?J*N+)(I)(D?J*N+)[,:C]+(D?J*N*[NV])(I)(D?J*N+)(?=[.,:C]|$)")


def swapped_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the nouns for two things but leave their numbers and attributes in place."""
    return _swaps(doc, corpus, names=True)


def swapped_phrases(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two noun phrases together with their numbers and attributes."""
    return _swaps(doc, corpus, names=False)


def _swapped_places(doc: Any) -> Iterator[CaptionEdit]:
    """Yield edits that swap two things of one size or class in a list of things at places, whatever their parse: `a
    harp by the window, a piano against the wall`.
    """
    for match in _PLACED.finditer("".join(t.tag_[0] for t in doc)):
        (a, b), (c, d) = match.span(1), match.span(4)
        left, right, links = doc[b - 1], doc[d - 1], {doc[match.start(i)].lower_ for i in (2, 5)}
        kinds = [{*classes_of(lemma(t.text, "NNS"))} for t in (left, right)]
        alike = are_of_one_size(left, right) or kinds[0] & kinds[1]
        known = links <= {*frames()["places"]} and (len(links) < 2 or "on" not in links)
        even = is_many(left) == is_many(right) and (match[1][0] == "D") == (match[4][0] == "D")
        if (
            alike
            and known
            and even
            and base_of(left) != base_of(right)
            and not {doc[a - 1].tag_, doc[c - 1].tag_} & {"CD"}
        ):
            text = exchange_spans(doc, (a, b), (c, d), repair=True)
            yield CaptionEdit(
                text, f"{left.text} ↔ {right.text}", a, (left, right), told="each is at the other's place"
            )


def absurd_swaps(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two things of different sorts: `A table is on a cup.`"""
    return _swaps(doc, corpus, names=False, absurd=True)


def _swaps(doc: Any, corpus: WordCounts, *, names: bool, absurd: bool = False) -> Iterator[CaptionEdit]:
    scene = ParsedScene(doc)
    if not names and not absurd:
        yield from _swapped_places(doc)
    for left, right, why in exchangeable(scene, names):
        change = f"{left.text} ↔ {right.text}"
        text = exchanged_names(left, right) if names else exchanged_phrases(left, right, always=absurd)
        if text and bool(why) == absurd:
            yield CaptionEdit(text, change, left.i, (left, right))
        elif why and not absurd:
            yield CaptionEdit(doc.text, change, left.i, (left, right), why)


def exchangeable(scene: ParsedScene, names: bool = False) -> Iterator[tuple[Any, Any, str]]:
    """Yield (thing, other thing, reason) for each pair of things that can change places. The reason says why the result
    would be absurd, and is empty if it would not be. With `names`, only the names of the things are exchanged.
    """
    bases, divided = Counter(map(named, scene.things)), any(map(picks_again, scene.doc))
    for left, right in combinations(scene.things, 2):
        first, second = named(left), named(right)
        if first == second or bases[first] + bases[second] > 2 or not _are_apart(left, right):
            continue
        if base_of(left) in second.split()[:-1] or base_of(right) in first.split()[:-1]:
            continue
        both = base_of(left), base_of(right)
        kinds = facts()["kinds"]
        if any(b in kinds.get(a, ()) or (a in kinds and is_above(a, b)) for a, b in (both, both[::-1])):
            continue  # a child is a person
        if names and "NNP" in (left.tag_, right.tag_):
            continue  # names change places with their titles
        if _is_tied_to_number(left, right, names):
            continue
        if divided and any(t.tag_ == "NNS" for t in (left, right)):
            continue  # two officers, while a third
        links = [link for link in scene.between(left, right) if not _is_loose(link[0])]
        if not _are_told_apart(scene, left, right, links) or _leaves_pronoun(left, right, names):
            continue
        reason = why_absurd(scene, left, right, links, names)
        if reason != NO_SWAP:
            yield left, right, reason


def _is_tied_to_number(left: Any, right: Any, names: bool) -> bool:
    """Return True if exchanging two nouns would leave words after one of them that do not fit the other. `drivers`
    cannot replace `driver` in `a driver who is stuck in traffic`, nor `dog` replace `woman` in `a woman holding a
    pole`.
    """
    after = [c for t in (left, right) for c in t.rights]
    clauses = any(c.dep_ in ("relcl", "acl") for c in after)
    if clauses and not {sort_here(left), sort_here(right)} <= {"person", "name"}:
        return True
    worn = any(c.dep_ == "prep" and c.lower_ in ("in", "with") for c in after)
    return (clauses or worn) and not names and is_many(left) != is_many(right)


def _is_loose(fact: Stated) -> bool:
    """Return True if a fact about two things says nothing that would change if the things changed places."""
    return fact.name in LOOSE or (fact.name == "from" and fact.event < 0)


def _are_told_apart(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> bool:
    """Return True if two things have different roles in a caption, so that exchanging them changes what it says."""
    own, theirs = scene.facts_of(left), scene.facts_of(right)
    if not own or not theirs or {(id(f), role) for f, role in own} == {(id(f), role) for f, role in theirs}:
        return False
    if joined(left, right) and not (_has_own(scene, left, right) and _has_own(scene, right, left)):
        return False  # `two adults and five children` in either order
    sorts = sorted(map(sort_here, (left, right)))
    spoken = [t.lower_ in PRONOUNS for t in (left, right)]
    if any(spoken) and not all(spoken):
        return False  # `A man … in front of him`
    meant = any(spoken) or "name" in sorts
    linked = bool(links) or are_joined_by_thing(scene, left, right)
    alone = set(sorts) <= {"name", "person"} and ("name" in sorts or all(spoken)) and not links
    apart = alone and (act_apart(scene, left, right) or act_on_same(scene, left, right))
    if meant and not (linked or apart):
        return False  # `A man … in front of him`, `a question from CBS`
    if any(_is_mutual(f, a, b) or f.denied >= 0 for f, a, b in links):
        return False
    if any(f.name in frames()["encircling"] for f, _ in (*own, *theirs)):
        return False
    if any(f.name in frames()["unseen"] for t in (left, right) for f, _ in (*own, *theirs)):
        return False  # `shaped like a whale`
    acts = [f for f, role in (*own, *theirs) if role == "agent"]
    looking = bool(acts) and all(f.name in facts()["looks"] and f.name != "watch" for f in acts)
    return not looking  # who stares may be who looks away


def _leaves_pronoun(left: Any, right: Any, names: bool) -> bool:
    """Return True if exchanging two things would leave a pronoun that refers to somebody else or to nobody. With
    `names`, only the names of the things are exchanged, not the whole phrases.
    """
    beside = [t for t in left.doc if t.tag_ in ("PRP", "PRP$", "WP$") and t not in (left, right)]
    if any(t.lower_.endswith(("self", "selves")) for t in beside) or owners(left):
        return True
    if owners(right):
        return True
    if any(t.lower_ in PRONOUNS for t in (left, right)):
        return False
    groups = {topics(base_of(t))[:1] == (14,) for t in (left, right)}
    crossed = names and is_many(left) != is_many(right)
    if len(groups) > 1 and (crossed or any(t.lower_ in ("it", "its") for t in beside)):
        return True  # the audience rises to its feet
    people = all(sort_here(t) in ("person", "name") for t in (left, right))
    things = any(t.lower_ in ("it", "its") for t in beside) and not people
    several = things or any(t.lower_ in ("they", "them", "their") for t in beside)
    if several and not names and is_many(left) != is_many(right):
        return True
    said = {"m" if t.lower_ in ("he", "him", "his") else "f" for t in beside if in_other_gender(t)}
    if said & {gender_of(base_of(t)) for t in left.doc if t.tag_[:2] == "NN" and t not in (left, right)}:
        return True  # a third person
    if said and not names and is_many(left) != is_many(right):
        return True  # families give a tour of his farm
    genders = {gender_of(base_of(t)) for t in (left, right)} - {""}
    return len(said) > 1 or (bool(said) and len(genders) < 2 and not genders <= said)


def _is_mutual(fact: Stated, role: str, other: str) -> bool:
    """Return True if exchanging two things with these roles in a fact is pointless. If the fact is mutual, the meaning
    stays the same. For `wear`, `in`, and relations that need many things (such as `among`), the result makes no sense.
    """
    fixed = (*frames()["one_sided_facts"], *frames()["mutual"], *frames()["encircling"])
    met = fact.name == "pass" and {role, other} == {"agent", "patient"}
    return met or fact.name in fixed or "partner" in (role, other)


def _has_own(scene: ParsedScene, thing: Any, other: Any) -> bool:
    """Return True if a phrase after the noun `thing` describes it without mentioning `other`. In
    `a man in a hat and a woman in a scarf`, `in a hat` describes only the man.
    """
    own = [f for f, _ in scene.facts_of(thing) if f.name != "of" and other.i not in {i for _, i in f.roles}]
    return any(scene.doc[fact.token].head == thing for fact in own)


def _are_apart(left: Any, right: Any) -> bool:
    """Return False if the phrase of `right` contains `left` as a possessive or as part of a compound, as `a dog's toy`
    contains `dog`; else True.
    """
    return left.i not in {t.i for c in right.children if c.dep_ in ("poss", "compound", "nmod") for t in c.subtree}


# -- pairs that the published makers swap ----------------------------------------------------------------------------


def noun_pairs(nouns: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of nouns with different lemmas that are not joined by `and`."""
    for left, right in combinations(nouns, 2):
        if not joined(left, right) and base_of(left) != base_of(right):
            yield left, right


def adjective_pairs(adjectives: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of adjectives that describe different nouns and are not joined by `and`."""
    for left, right in combinations(adjectives, 2):
        nouns = left.head.tag_[:2] == right.head.tag_[:2] == "NN"
        if nouns and left.head != right.head and left.lower_ != right.lower_ and not joined(left, right):
            yield left, right
