"""Swaps from the reading of a caption: names, phrases, attributes and counts of two things change places.

Two things can change places if they have different roles in the reading: who does something and to whom, who is given
it, what is where, or each in a fact of its own. A swap is plausible if both are of one sort and either could be in the
other's role; any other is absurd, and made only if the options ask for it. The truth layer decides later what is false.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from creperie.lang import (
    Reading,
    Stated,
    age_of,
    facts,
    gender_of,
    is_above,
    is_mass,
    is_subject,
    kind_of,
    of_group,
    read,
)
from creperie.making.atoms import base_of, dependents, joined, named, objects
from creperie.making.corpus import WordCounts
from creperie.making.edits import ANIMATE, MADE, CaptionEdit, frames, picks_again
from creperie.making.exchanging import (
    PRONOUNS,
    Pair,
    exchanged_names,
    exchanged_phrases,
    owners,
    sort_here,
)
from creperie.making.parallels import swapped_ends, swapped_names, swapped_places
from creperie.making.phrases import is_plural, lacks_determiner, outer
from creperie.making.verbs import topics


@dataclass(frozen=True)
class ParsedScene:
    """A parsed caption with its reading: the things that may be moved, and what is said of each."""

    doc: Any

    @cached_property
    def reading(self) -> Reading:
        return read(self.doc)

    @cached_property
    def things(self) -> list[Any]:
        """The nouns, names and pronouns that can be moved, in order."""
        nouns = {t.i for t in objects(self.doc)}
        every = [self.doc[i] for i in sorted(self.reading.entities)]
        owners = {t.i for t in every if t.dep_ == "poss" and t.tag_ in ("NN", "NNS")}
        known = [t for t in every if t.i in nouns | owners or t.tag_ == "NNP" or t.lower_ in PRONOUNS]
        return [t for t in known if not is_tied(t)]

    def facts_of(self, thing: Any) -> list[tuple[Stated, str]]:
        return [(fact, role) for fact in self.reading.facts for role, number in fact.roles if number == thing.i]

    def between(self, one: Any, other: Any) -> list[tuple[Stated, str, str]]:
        """Return the facts in which two things have different roles, with these roles."""
        own, theirs = self.facts_of(one), self.facts_of(other)
        return [
            (f, role, theirs_role) for f, role in own for g, theirs_role in theirs if f is g and role != theirs_role
        ]


# -- things ----------------------------------------------------------------------------------------------------------


def swapped_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the names of two things; number and attributes stay in place."""
    yield from _swaps(doc, names=True)
    yield from swapped_names(doc)


def swapped_phrases(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two noun phrases with their numbers and attributes."""
    yield from _swaps(doc, names=False)
    yield from swapped_places(doc)
    yield from swapped_ends(doc)


def absurd_swaps(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two things of different sorts: `A table is on a cup.`"""
    return _swaps(doc, names=False, absurd=True)


def _swaps(doc: Any, *, names: bool, absurd: bool = False) -> Iterator[CaptionEdit]:
    scene = ParsedScene(doc)
    for left, right, why in exchangeable(scene, names):
        if why and not absurd:
            yield CaptionEdit(doc.text, f"{left.text} ↔ {right.text}", left.i, (left, right), why)
        elif bool(why) == absurd:
            written_out = exchanged_names(left, right) if names else exchanged_phrases(left, right, always=absurd)
            if written_out:
                yield CaptionEdit(written_out, f"{left.text} ↔ {right.text}", left.i, (left, right))


def exchangeable(scene: ParsedScene, names: bool = False) -> Iterator[tuple[Any, Any, str]]:
    """Yield pairs of things that can change places, with the reason if that would be absurd."""
    bases, divided = Counter(map(named, scene.things)), any(map(picks_again, scene.doc))
    for left, right in combinations(scene.things, 2):
        first, second = named(left), named(right)
        if first == second or bases[first] + bases[second] > 2 or not _are_apart(left, right):
            continue
        if base_of(left) in second.split()[:-1] or base_of(right) in first.split()[:-1]:
            continue
        both = base_of(left), base_of(right)
        if any(one in facts()["kinds"] and is_above(one, other) for one, other in (both, both[::-1])):
            continue  # a child is a person
        if "NNP" in (left.tag_, right.tag_) and not (_is_bare_name(left) and _is_bare_name(right)):
            continue  # names change places without their titles
        own, theirs = scene.facts_of(left), scene.facts_of(right)
        if not own or not theirs or {(id(f), role) for f, role in own} == {(id(f), role) for f, role in theirs}:
            continue
        links = scene.between(left, right)
        if joined(left, right) and not (_has_own(scene, left, right) and _has_own(scene, right, left)):
            continue  # `two adults and five children` in either order
        named_or_meant = any(t.lower_ in PRONOUNS or sort_here(t) == "name" for t in (left, right))
        mixed = sorted(map(sort_here, (left, right))) == ["name", "person"]  # a horse may have a name
        if mixed or (named_or_meant and not any(not f.is_relation for f, *_ in links)):
            continue  # `A man … in front of him`, `a question from CBS`
        if divided and any(t.tag_ == "NNS" for t in (left, right)):
            continue  # two officers, while a third
        if any(t.dep_ == "poss" for t in (left, right)) and (not names or owners(left) or owners(right)):
            continue
        if _leaves_pronoun(left, right, names) or any(_is_mutual(f, a, b) or f.denied >= 0 for f, a, b in links):
            continue
        if any(f.name in frames()["unseen"] for t in (left, right) for f, _ in scene.facts_of(t)):
            continue  # `shaped like a whale`
        if _only_look(scene, left, right, links):
            continue
        reason = why_absurd(scene, left, right, links)
        if reason != NO_SWAP:
            yield left, right, reason


def _is_bare_name(noun: Any) -> bool:
    return noun.lower_ in PRONOUNS or noun.tag_ != "NNP" or not list(noun.lefts)


def _leaves_pronoun(left: Any, right: Any, names: bool) -> bool:
    """Return True if a pronoun would mean somebody else, or nobody, after the exchange."""
    own = owners(right)
    genders = {gender_of(base_of(t)) for t in (left, right)}
    beside = [t for t in left.doc if t.tag_ in ("PRP", "PRP$") and t not in (left, right, *own)]
    if any(t.lower_.endswith(("self", "selves")) for t in beside):
        return True
    if own or any(t.lower_ in PRONOUNS for t in (left, right)):
        if any(dependents(t, "relcl") for t in (left, right)) or (own and topics(base_of(right))[:1] != (18,)):
            return True
        third = not any(t.lower_ in PRONOUNS for t in left.doc if t in (left, right)) and is_subject(left)
        return bool(beside) or (bool(own) and not (third and sort_here(right) == "person"))
    several = any(t.lower_ in ("they", "them", "their", "it", "its") for t in beside)
    if several and not names and is_plural(left) != is_plural(right):
        return True
    kinds = {topics(base_of(t))[:1] == (14,) for t in (left, right)}
    counted = any(c.dep_ == "nummod" for t in (left, right) for c in t.lefts)
    if len(kinds) > 1 and ((counted and names) or any(t.lower_ in ("it", "its") for t in beside)):
        return True  # the audience rises to its feet
    said = {"m" if t.lower_ in ("he", "him", "his") else "f" if t.lower_ in ("she", "her") else "n" for t in beside}
    return bool(said) and genders != {"m", "f"} and not (said | genders) <= {"", *list(said)[:1]}


def _is_mutual(fact: Stated, role: str, other: str) -> bool:
    """Return True if two things in these roles may be said in either order, or one of them must be many."""
    fixed = (
        "wear",
        "have",
        "of",
        "with",
        "is with",
        "is in",
        "is inside",
        "is among",
        *frames()["mutual"],
        *frames()["encircling"],
    )
    return fact.name in fixed or "partner" in (role, other)


def _only_look(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> bool:
    """Return True if two things only look somewhere: who stares may be who looks away."""
    events = [f for t in (left, right) for f, role in scene.facts_of(t) if role == "agent" and not f.is_relation]
    looking = bool(events) and all(f.name in facts()["looks"] for f in events)
    return looking and not any(not f.is_relation for f, *_ in links)


def _has_own(scene: ParsedScene, thing: Any, other: Any) -> bool:
    """Return True if a phrase after a noun says something of it alone: `a man in a hat and a woman in a scarf`."""
    own = [f for f, _ in scene.facts_of(thing) if f.name != "of" and other.i not in {i for _, i in f.roles}]
    return any(scene.doc[fact.token].head == thing for fact in own)


def _are_apart(left: Any, right: Any) -> bool:
    """Return True unless one phrase contains the other: `a cup of tea`."""
    return left.i not in {t.i for c in right.children if c.dep_ in ("poss", "compound", "nmod") for t in c.subtree}


NO_SWAP = "-"
#: Relations that two things of one sort may have in either order.
UPRIGHT = frozenset(("is above", "is below", "is over", "is beneath", "is on top of"))


def why_absurd(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> str:
    """Return why nobody would expect two things in each other's places; empty if somebody would; `NO_SWAP` if neither
    order makes sense to compare.
    """
    sorts = sort_here(left), sort_here(right)
    names = f"*{named(left)}* and *{named(right)}* could change places, but"
    if "" in sorts and not links:
        return NO_SWAP
    if set(sorts) <= {"person", "name"} or sorts == ("animal", "animal"):
        return _why_not_animate(names, left, right, links)
    if set(sorts) <= ANIMATE:
        crossed = bool(links) and all(f.name in frames()["crossed"] or _is_idle(scene, f) for f, *_ in links)
        crossed = crossed and not any(t.lower_ in ("its", "his", "her") or t.dep_ == "relcl" for t in scene.doc)
        return "" if crossed else f"{names} few animals do what people do (--plausible no)"
    if links:
        alike = sorts[0] == sorts[1]
        turned = all((is_beside(f.name) or (alike and f.name in UPRIGHT)) and _is_bare(scene, f) for f, *_ in links)
        alone = all(
            f in [g for g, *_ in links] or not f.is_relation for t in (left, right) for f, _ in scene.facts_of(t)
        )
        if turned and alone and not set(sorts) & {"place", "", *ANIMATE, "name"}:
            return ""
        if any(f.is_relation or {a, b} <= {"agent", "patient"} for f, a, b in links):
            return f"{names} nobody would expect one where the other is (--plausible no)"
        return NO_SWAP
    return "" if sorts[0] == sorts[1] and _is_same_place(scene, left, right) else NO_SWAP


def _why_not_animate(names: str, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> str:
    both = base_of(left), base_of(right)
    weak_doer = any(age_of(base_of(t)) == "baby" and not is_subject(t) for t in (left, right))
    if weak_doer:
        return f"{names} a baby does little (--plausible no)"
    if sort_here(left) == "animal" and any(t.lower_ in frames()["one_sided"] for t in left.doc):
        return f"{names} not every animal can do it (--plausible no)"
    if sort_here(left) == "animal" and links and all(f.name in frames()["near"] for f, *_ in links):
        return NO_SWAP  # both may do it
    verbs = [f.name for f, *_ in links if not f.is_relation]
    weak = [verb for verb in verbs if not turns(verb, *both, sort_here(left))]
    return f"{names} not everybody can {weak[0]} the other (--plausible no)" if weak else ""


def turns(verb: str, first: str, second: str, sort: str = "") -> bool:
    """Return True if each of two animate nouns could do the action to the other. For verbs such as `carry` both must be
    people of one age. `sort` is what both are, if their nouns do not tell.

    >>> turns("chase", "goat", "girl"), turns("feed", "man", "dog"), turns("hit", "player", "ball")
    (True, False, False)
    """
    kinds = {sort} if sort else {kind_of(first), kind_of(second)}
    if len(kinds) == 2 and kinds <= ANIMATE:
        return verb in frames()["crossed"]
    if verb.split()[0] not in frames()["grown"]:
        return kinds <= {*ANIMATE, "name"}
    return kinds <= {"person", "name"} and len({age_of(first) == "child", age_of(second) == "child"}) == 1


def is_beside(relation: str) -> bool:
    """Return True for a relation that either of two things may have to the other, whatever they are: `behind`."""
    return relation.removeprefix("is ") in frames()["beside"]


def _is_idle(scene: ParsedScene, fact: Stated) -> bool:
    """Return True for a place that people and animals may have: `sits behind`; not `throws a ball toward`."""
    event = [f for f in scene.reading.facts if f.token == fact.event and not f.is_relation]
    return is_beside(fact.name) and all(f.name in frames()["resting"] and len(f.roles) == 1 for f in event)


def _is_bare(scene: ParsedScene, fact: Stated) -> bool:
    """Return True if no verb says more than that something is there: not `A man walks behind a car.`"""
    verbs = {f.name for f in scene.reading.facts if not f.is_relation and f.token == fact.event}
    return verbs <= set(frames()["resting_things"])


def _is_same_place(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if two things of one sort are in the same role of two facts of one name: two hats that two people
    wear, two chairs that two cats are on, two cars that do different things.
    """
    own, theirs = ([(f, role) for f, role in scene.facts_of(t)] for t in (left, right))
    acts = all(role in ("agent", "figure") for _, role in (*own, *theirs))
    within = any(scene.doc[f.token].dep_ in ("ccomp", "xcomp") for f, _ in (*own, *theirs))
    if sort_here(left) in MADE and acts and not within:
        return not joined(left, right)
    shared = [(f, g) for f, role in own for g, other in theirs if f.name == g.name and role == other and f is not g]
    return any(_others(f, left) and not _others(f, left) & _others(g, right) for f, g in shared)


def _others(fact: Stated, thing: Any) -> set[int]:
    return {number for role, number in fact.roles if number != thing.i}


def is_tied(noun: Any) -> bool:
    """Return True if a thing cannot be moved: it is a part of another, or belongs or refers to one."""
    whole = noun.head.head if noun.head.lower_ == "of" else None
    if (
        whole is not None
        and of_group(whole) != noun
        and whole.lower_ not in frames()["sides"]
        and not _owns(noun, whole)
    ):
        return True  # a cup of tea; not the sleeve of a bridegroom
    if base_of(noun) in frames()["parts"] or noun.lower_ in frames()["around"] or noun.dep_ == "npadvmod":
        return True
    if noun.i and noun.nbor(-1).text == "-" and not noun.nbor(-1).whitespace_:
        return True  # `a four-wheeler`
    around = (*noun.children, *outer(noun).children)
    owner = noun.dep_ == "poss" and _owns(noun, noun.head) and bool(dependents(noun, "det"))
    if noun.dep_ == "appos" or any(
        c.dep_ == "appos" or c.tag_ == "WP$" or (c.dep_ == "case" and not owner) for c in around
    ):
        return True  # `the winner, Dalia Okonjo`, `whose lawyer`, `the chef's counter`
    return any(c.lower_ in frames()["unmoved"] for c in around) or (
        noun.tag_ == "NN" and noun.lower_ not in PRONOUNS and lacks_determiner(noun) and not _may_be_bare(noun)
    )


def _owns(noun: Any, thing: Any) -> bool:
    """Return True for somebody whose body or belongings are named: `the sleeve of a tailor`, `a passenger's bag`."""
    somebody = sort_here(noun) in ANIMATE and topics(base_of(noun))[:1] != (14,)
    return somebody and sort_here(thing) not in ANIMATE and topics(base_of(thing))[:1] in ((6,), (8,), (13,))


def _may_be_bare(noun: Any) -> bool:
    """Return True for a noun that stands without an article: a mass noun, a name, one of a list after `with`."""
    return is_mass(base_of(noun)) or noun.text[:1].isupper() or bool(dependents(noun, "amod")) or noun.dep_ == "conj"


# -- pairs that the published makers swap ----------------------------------------------------------------------------


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
