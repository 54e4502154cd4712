"""How a caption tells two things with the same name apart, other than by their attributes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from creperie.lang import is_reciprocal
from creperie.making.atoms import base_of, joined
from creperie.making.exchanging import ParsedScene
from creperie.making.plausible import frames


def are_told_apart(scene: ParsedScene, one: Any, other: Any, without: Collection[int] = ()) -> bool:
    """Return True if the caption tells two things of the same name apart without their attributes. They may differ in
    number or in the words after them. Or one of them may do something to the other that is not mutual, as in `a dog
    chases another dog`.
    """
    if (one.tag_ == "NNS") != (other.tag_ == "NNS"):
        return True
    doc = one.doc
    if joined(one, other) or all(
        t.tag_ in ("CC", ",", ":", "DT", "JJ", "JJR", "NN", "CD", "HYPH") for t in doc[one.i + 1 : other.i]
    ):
        ends = [_told_after(t, without) for t in (one, other)]
        return bool(ends[0] and ends[1]) and ends[0] != ends[1]
    links = [f.name for f, *_ in scene.between(one, other)]
    if not all(map(is_symmetric, links)):
        return True
    own = [_facts_apart(scene, *pair, without) for pair in ((one, other), (other, one))]
    first, second = (_holder(scene, t) for t in (one, other))
    if first is not None and second is not None and first != second:
        return base_of(first) != base_of(second) or are_told_apart(scene, first, second, without)
    return bool(own[0] - own[1] and own[1] - own[0])


def _facts_apart(scene: ParsedScene, thing: Any, other: Any, without: Collection[int]) -> set[tuple[str, ...]]:
    """Return the facts about `thing` in which `other` has no part, each as its name and the other things in it. Facts
    about the words with the indices `without` are left out.
    """
    facts = [(f, sorted({i for _, i in f.roles} - {thing.i})) for f, _ in scene.facts_of(thing)]
    apart = [(f, rest) for f, rest in facts if other.i not in rest and not {f.token, *rest} & {*without}]
    return {(f.name, *(base_of(scene.doc[i]) for i in rest)) for f, rest in apart}


def _told_after(noun: Any, without: Collection[int]) -> tuple[str, ...]:
    """Return the words after a noun that may describe it, up to the next punctuation mark or conjunction. Words with
    the indices `without` are left out.
    """
    words = []
    for t in noun.doc[noun.i + 1 :]:
        if t.is_punct or t.tag_ == "CC":
            break
        if t.i not in without:
            words.append(t.lower_)
    return tuple(words)


def is_symmetric(name: str) -> bool:
    """Return True if a verb or relation is symmetric: if `A meets B` is true, `B meets A` is true as well."""
    word = name.removeprefix("is ")
    alike = any(is_reciprocal(word, p) for p in ("", "with", "to"))
    even = {*frames()["even"], *frames()["mutual"], *frames()["near"]}
    return alike or not even.isdisjoint((word, name))


def _holder(scene: ParsedScene, thing: Any) -> Any | None:
    """Return the thing that wears or has `thing`, or is with it; None if there is none."""
    for fact, role in scene.facts_of(thing):
        if role == "ground" and fact.name in ("wear", "have", "own", "is in", "in", "with", "is with"):
            return next((scene.doc[i] for i in sorted(fact.fillers("figure"))), None)
    return None
