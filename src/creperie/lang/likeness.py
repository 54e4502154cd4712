"""How two words are related in meaning: nouns, verbs, attributes and places, by WordNet and the lists in logic.json."""

from __future__ import annotations

from functools import cache
from typing import Literal

from creperie.lang.inflection import lemma
from creperie.lang.lexicon import (
    age_of,
    basic_colour,
    dimension_of,
    excludes,
    facts,
    gender_of,
    in_one_group,
    kind_of,
    listed_for,
)
from creperie.lang.relations import clashes, equivalent, follows, implied, relations
from creperie.lang.wordnet import open_wordnet

#: What is known of a second word if a first one is right: it is right too ("same", "above"), it says more ("below"),
#: both may be right ("alike"), or both be there ("beside"), it is wrong ("apart"), or nothing is known.
Likeness = Literal["same", "above", "below", "alike", "beside", "apart", "unknown"]


def is_right(likeness: Likeness) -> bool:
    return likeness in ("same", "above")


@cache
def noun_likeness(old: str, new: str) -> Likeness:
    """Return how the noun `new` relates to the noun `old`:

    - "same", "above" (`new` is more general) or "below" (`new` is more specific);
    - "alike": both may be used for one thing;
    - "beside": they name different things that may be in one picture;
    - "apart": one thing cannot be both;
    - "unknown".

    >>> [noun_likeness("dog", w) for w in ("dog", "animal", "puppy", "cat")]
    ['same', 'above', 'below', 'apart']
    """
    if old == new:
        return "same"
    kinds = facts()["kinds"]
    ages, genders = ((of(old), of(new)) for of in (age_of, gender_of))
    if old in kinds.get(new, ()) or (
        (_is_kind_of(old, new) and ages[0] in (ages[1], "")) or (not ages[1] and _is_kind_of(old, new))
    ):
        return "above"
    if new in kinds.get(old, ()) or _is_kind_of(new, old):
        return "below"
    last = (new.split() or [""])[-1]
    if may_be_called(old, last) or not excludes(old, new):
        return "alike"
    if any("" not in pair and pair[0] != pair[1] for pair in (ages, genders)):
        return "apart"
    sorts = kind_of(old), kind_of(new) or kind_of(last)
    listed = new in listed_for(old) or old in listed_for(new)
    if sorts == ("person", "person") and not listed:
        apart = any(of(old) and of(new) and of(old) != of(new) for of in (gender_of, age_of))
        return "apart" if apart else "alike"
    if not listed and ("place" in sorts or sorts == ("clothing", "clothing")):
        return "alike" if sorts[0] == sorts[1] else "beside"
    return "apart" if all(sorts) else "unknown"


def _is_kind_of(noun: str, other: str) -> bool:
    """Return whether the first noun, in its most frequent sense, is a synonym of the second or a kind of it."""
    net = open_wordnet()
    own, above = net.senses(noun, "n")[:1], set(net.senses(other, "n")[:2])
    return any(s in above for sense in own for s in (sense, *net.above(sense)))


def may_be_called(noun: str, other: str) -> bool:
    """Return whether captions use both nouns for the same thing, as with `field` and `grass`, or `child` and `boy`."""
    genders = gender_of(noun), gender_of(other)
    return in_one_group("same", noun, other) and not ("" not in genders and genders[0] != genders[1])


@cache
def attribute_likeness(old: str, new: str) -> Likeness:
    """Return how the attribute `new` relates to `old`: in particular, whether both can be true of one thing."""
    if old == new:
        return "same"
    if in_one_group("same", old, new):
        return "alike"
    net, basic = open_wordnet(), (basic_colour(old), basic_colour(new))
    if in_one_group("opposites", old, new) or new in net.antonyms(old, "a"):
        return "apart"
    if all(basic) and basic != (old, new):
        return "apart" if in_one_group("opposites", *basic) and basic[0] != basic[1] else "alike"
    if set(net.senses(old, "a")[:2]) & set(net.senses(new, "a")[:2]):
        return "same"
    return "alike" if dimension_of(old) and dimension_of(new) else "unknown"


@cache
def _known_actions() -> frozenset[str]:
    return frozenset(verb for group in facts()["together"] for verb in group)


def _undoes(old: str, new: str) -> bool:
    """Return whether two verbs name actions that cannot happen at the same moment, such as `turn on` and `turn off`, or
    `hold` and `drop`.
    """
    (verb, _, particle), (other, _, second) = old.partition(" "), new.partition(" ")
    if particle and second and verb == other:
        return in_one_group("particles", particle, second)
    return any((old in a and new in b) or (old in b and new in a) for a, b in facts()["undone"])


@cache
def verb_likeness(old: str, new: str) -> Likeness:
    """Return how the verb `new` relates to `old`: in particular, whether one person can do both to one thing at the
    same time.
    """
    if old == new:
        return "same"
    net = open_wordnet()
    if in_one_group("together", old, new):
        return "above" if _is_kind_of_action(old, new) else "alike"
    if new in net.antonyms(old, "v") or old in net.antonyms(new, "v") or {old, new} <= _known_actions():
        return "apart"
    if _undoes(old, new):
        return "apart"
    if set(net.senses(old, "v")[:3]) & set(net.senses(new, "v")[:3]):
        return "same"
    if _is_kind_of_action(old, new):
        return "above"
    return "below" if _is_kind_of_action(new, old) else "unknown"


@cache
def joins(verb: str) -> bool:
    """Return whether a verb says that one thing is fastened to another, as `lock`, `tie` and `attach` do."""
    net = open_wordnet()
    named = {w for sense in net.senses(verb.split()[0], "v")[:2] for s in (sense, *net.above(sense)) for w in s.words}
    return not named.isdisjoint(("fasten", "attach", "connect"))


@cache
def are_two_kinds(head: str, one: str, two: str) -> bool:
    """Return whether the words `one` and `two`, put before the noun `head`, name kinds of it that exclude each other,
    as in `tennis ball` and `soccer ball`.
    """
    if dimension_of(one) or dimension_of(two):
        return False
    net = open_wordnet()
    names = f"{one} {head}", f"{two} {head}"
    return all(net.senses(name, "n") and _is_kind_of(name, head) for name in names) and excludes(*names)


@cache
def may_be_done_as(old: str, new: str) -> bool:
    """Return whether two verbs share a sense, or one is a kind of the other. Rare senses do not count."""
    net = open_wordnet()
    own, others = (set(net.senses(verb.split()[0], "v")[:6]) for verb in (old, new))
    above = [{s for sense in some for s in net.follow(sense, "@")} for some in (own, others)]
    return bool(own & others or above[0] & others or above[1] & own)


def _is_kind_of_action(verb: str, other: str) -> bool:
    net = open_wordnet()
    above = {s for sense in net.senses(verb, "v")[:2] for s in net.follow(sense, "@")}
    return not above.isdisjoint(net.senses(other, "v")[:2])


@cache
def is_place(name: str) -> bool:
    """Return whether a preposition is in the table of spatial relations, or in the list of places that exclude each
    other.
    """
    return name in relations() or any(name.removeprefix("is ") in side for pair in facts()["apart"] for side in pair)


@cache
def place_likeness(old: str, new: str, turned: bool = False, bare: bool = False) -> Likeness:
    """Return how the relation `new` between two things relates to the relation `old` between them: in particular,
    whether both can be true.

    If `turned`, the two things are exchanged in the new relation. A description is assumed to give the
    most exact relation: `a dog near a bench` means that the dog is not on it. This is not assumed of a sentence that
    states nothing but the relation (`bare`): `The dog is near the bench.` may be true of a dog on the bench.
    """
    if old == new and not turned:
        return "same"
    if old in relations() and new in relations():
        if follows(old, new, turned):
            described = not bare and {old, new} <= implied("is on") and new in equivalent("is above")
            return "alike" if described else "same" if follows(new, old, turned) else "above"
        if clashes(old, new, turned):
            return "apart"
    known = relations().get(old) and relations().get(new)
    if turned:
        return "apart" if old == new else "alike" if known else "unknown"
    if excludes_place(old.removeprefix("is "), new.removeprefix("is "), bare):
        return "apart"
    if known and follows(new, old):
        return "below"
    return "alike" if known or (not bare and is_place(old) and is_place(new)) else "unknown"


def excludes_place(old: str, new: str, bare: bool = False) -> bool:
    """Return whether a thing that stands in the relation `old` to another thing, such as `on`, cannot also stand in the
    relation `new` to it. `bare` is explained in `place_likeness`.
    """
    near, within = facts()["beyond"]  # someone near a bench is not on it; someone on it may be called near it
    if old in near and new in within:
        return not bare
    if bare and "against" in (old, new):
        return False
    return any((old in a and new in b) or (old in b and new in a) for a, b in facts()["apart"])


@cache
def forms(word: str) -> tuple[str, ...]:
    """Return a word, and its dictionary forms as a noun and as a verb."""
    return word, lemma(word, "NNS"), lemma(word, "VBG"), lemma(word, "VBZ")
