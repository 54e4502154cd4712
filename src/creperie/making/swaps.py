"""Swaps of two things in a caption: their whole phrases change places, or only their names do.

Swaps are found in the reading of a caption, that is, its things and facts. Two things can change places if they have
different roles there: who does something, to whom it is done, who receives it, what is where. They also can if both
are in the same relation but to different things (`books on a bed, shirts on a desk`), or if they are people and each
does something of their own. The verdict of `truth` decides later which swaps are false. A swap is plausible if both
things are of the same kind and of equal rank; any other swap is absurd, and made only if the options ask for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from creperie.lang import (
    Stated,
    age_of,
    facts,
    gender_of,
    goes_back,
    in_other_gender,
    is_above,
    is_reciprocal,
    is_worn,
    kind_of,
)
from creperie.making.atoms import base_of, joined, named
from creperie.making.contrasts import is_symmetric
from creperie.making.corpus import WordCounts
from creperie.making.counting import picks_again
from creperie.making.edits import CaptionEdit
from creperie.making.exchanging import (
    PRONOUNS,
    Pair,
    ParsedScene,
    exchanged_names,
    exchanged_phrases,
    is_definite,
    is_many,
    owners,
    owns,
    sort_here,
)
from creperie.making.phrases import span_of
from creperie.making.plausible import ANIMATE, are_of_one_size, frames, is_made, may_be_done, may_do_both
from creperie.making.verbs import topics

NO_SWAP = "-"
#: Relations of something that moves.
_MOVING = frozenset(f"{be}{word}" for be in ("", "is ") for word in ("toward", "towards", "past", "after", "ahead of"))
#: Relations to what is no person.
_WITHIN = frozenset(f"is {word}" for word in ("in", "inside", "down", "up", "along", "across", "through", "into"))
#: Relations that are no place, and no reason to change places.
_LOOSE = frozenset(("for", "of", "during", "about", "like"))
#: Roles of people in what one of them does to the other.
_TAKING_PART = frozenset(("agent", "patient", "recipient"))
#: Relations of an action to the person at whom it is aimed: `yells at the referee`.
_AIMED = frozenset(("is at", "at", "to"))
#: What two people hold together, so that it does not matter whose it is.
_SHARED = frozenset(("hand", "arm", "attention", "eye", "birthday", "wedding", "victory"))
#: Relations that two things of one sort may have in either order.
UPRIGHT = frozenset(("is above", "is below", "is over", "is beneath", "is on top of"))
#: Relations of two things of one size that may lie or stand on each other.
_STACKED = UPRIGHT | {"is on", "is under", "is underneath", "is against"}


def swapped_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the names of two things, but leave their numbers and attributes in place."""
    return _swaps(doc, corpus, names=True)


def swapped_phrases(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two noun phrases together with their numbers and attributes."""
    return _swaps(doc, corpus, names=False)


def absurd_swaps(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two things of different sorts: `A table is on a cup.`"""
    return _swaps(doc, corpus, names=False, absurd=True)


def _swaps(doc: Any, corpus: WordCounts, *, names: bool, absurd: bool = False) -> Iterator[CaptionEdit]:
    scene = ParsedScene(doc)
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
        links = [link for link in scene.between(left, right) if not _is_loose(*link)]
        if not _are_told_apart(scene, left, right, links) or _leaves_pronoun(left, right, names, not links):
            continue
        reason = why_absurd(scene, left, right, links, names)
        if reason != NO_SWAP:
            yield left, right, reason


def _is_tied_to_number(left: Any, right: Any, names: bool) -> bool:
    """Return True if words that stay behind a noun do not fit the other: `a driver who is stuck in traffic` is no
    `drivers`, and `a woman holding a pole` no dog.
    """
    after = [c for t in (left, right) for c in t.rights]
    clauses = any(c.dep_ in ("relcl", "acl") for c in after)
    if clauses and not {sort_here(left), sort_here(right)} <= {"person", "name"}:
        return True
    worn = any(c.dep_ == "prep" and c.lower_ in ("in", "with") for c in after)
    return (clauses or worn) and not names and is_many(left) != is_many(right)


def _is_loose(fact: Stated, *roles: str) -> bool:
    """Return True if a fact says nothing of two things that would change if they changed places."""
    given = "for" in roles and not fact.fillers("patient")  # a camp for a child
    return fact.name in _LOOSE or given or (fact.name == "from" and fact.event < 0)


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
    linked = bool(links) or _are_joined_by_thing(scene, left, right)
    alone = set(sorts) <= {"name", "person"} and "name" in sorts and not links
    apart = alone and (_act_apart(scene, left, right) or _act_on_same(scene, left, right))
    if meant and not (linked or apart):
        return False  # `A man … in front of him`, `a question from CBS`
    if any(_is_mutual(f, a, b) or f.denied >= 0 for f, a, b in links):
        return False
    if any(f.name in frames()["encircling"] for f, _ in (*own, *theirs)):
        return False
    if any(f.name in frames()["unseen"] for t in (left, right) for f, _ in (*own, *theirs)):
        return False  # `shaped like a whale`
    acts = [f for f, role in (*own, *theirs) if role == "agent" and not f.is_relation]
    looking = bool(acts) and all(f.name in facts()["looks"] and f.name != "watch" for f in acts)
    return not looking  # who stares may be who looks away


def _act_on_same(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if two people do different things to the same thing: `A saves a penalty taken by B.`"""
    done = [
        {(g, f.name) for f, role in scene.facts_of(t) if role == "agent" for g in f.fillers("patient")}
        for t in (left, right)
    ]
    return any(one == other and act != deed for one, act in done[0] for other, deed in done[1])


def _leaves_pronoun(left: Any, right: Any, names: bool, apart: bool) -> bool:
    """Return True if exchanging two things would leave a pronoun that refers to somebody else or to nobody. With
    `names`, only the names of the things are exchanged, not the whole phrases; `apart` is True if no fact links them.
    """
    beside = [t for t in left.doc if t.tag_ in ("PRP", "PRP$", "WP$") and t not in (left, right)]
    if any(t.lower_.endswith(("self", "selves")) for t in beside) or owners(left):
        return True
    known = is_definite(left) or sort_here(left) == "name" or left.tag_ == "NNP" or apart
    if owners(right) and (names or not known):
        return True
    if any(t.lower_ in PRONOUNS for t in (left, right)):
        return bool(beside) or any(list(t.rights) for t in (left, right))
    groups = {topics(base_of(t))[:1] == (14,) for t in (left, right)}
    counted = any(c.dep_ == "nummod" for t in (left, right) for c in t.lefts)
    dressed = any(t.dep_ == "pobj" and is_worn(base_of(t)) for t in left.doc)
    if len(groups) > 1 and ((names and (counted or dressed)) or any(t.lower_ in ("it", "its") for t in beside)):
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
    return len(said) > 1 or (bool(said) and not owners(right) and len(genders) < 2 and not genders <= said)


def _is_mutual(fact: Stated, role: str, other: str) -> bool:
    """Return True if there is no point in exchanging two things with these roles in a fact. The meaning stays the same
    for mutual relations, and the result makes no sense for `wear`, for `in`, and for relations that need many things,
    such as `among`.
    """
    fixed = ("wear", "have", "own", "of", "with", "is with", "is in", "is inside", "is among")
    fixed += (*frames()["mutual"], *frames()["encircling"])
    return fact.name in fixed or "partner" in (role, other)


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


# -- plausibility ----------------------------------------------------------------------------------------------------


def why_absurd(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]], names: bool) -> str:
    """Return why it would be absurd for two things to exchange their places in the caption. The reason is empty if
    the exchange is plausible, and `NO_SWAP` if the caption says nothing about them that an exchange would change.
    `links` are the facts that connect them; with `names`, only their names are exchanged.
    """
    sorts = sort_here(left), sort_here(right)
    told = f"*{named(left)}* and *{named(right)}* could change places, but"
    if set(sorts) <= {*ANIMATE, "name"}:
        apart = (_are_placed_alike, _act_apart, _act_on_same, _are_joined_by_thing)
        if not links and not any(told_apart(scene, left, right) for told_apart in apart):
            return NO_SWAP
        able = _may_both_do(scene, left, right, links, names)
        return "" if able else f"{told} few would expect them in each other's roles (--plausible no)"
    if "" in sorts and not links:
        return NO_SWAP
    if links:
        if _may_both_stand(scene, left, right, links):
            return ""
        if any(f.is_relation or {a, b} <= {"agent", "patient"} for f, a, b in links):
            return f"{told} nobody would expect one where the other is (--plausible no)"
        return NO_SWAP
    if sorts[0] == sorts[1] != "place" and _are_ends_of_way(scene, left, right):
        return ""
    alike = is_many(left) == is_many(right) and "place" not in sorts and are_of_one_size(left, right)
    return "" if alike and _are_placed_alike(scene, left, right) else NO_SWAP


def _may_both_do(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]], names: bool) -> bool:
    """Return True if each of two people or animals could do what the caption says of the other."""
    sorts = sort_here(left), sort_here(right)
    if "animal" in sorts:
        if any(f.is_relation and not is_beside(f.name) for f, *_ in links):
            return False  # not on, not next to
        if sorts[0] != sorts[1] and _is_dressed(left, right, names):
            return False
        if links and not any("patient" in (a, b) or f.is_relation for f, a, b in links):
            return False  # what is thrown at somebody
        if sorts[0] != sorts[1] and any(f.name == "walk" for f, *_ in links):
            return False
    if any(f.name in _WITHIN for f, *_ in links):
        return False  # nobody rides down somebody
    verbs = _verbs_of(scene, left, right, links)
    every = [f for t in (left, right) for f, _ in scene.facts_of(t)]
    linking = {f.token for f, *_ in links} | {f.event for f, *_ in links}
    known = any(f.name in ("wear", "hold", "carry") for f in every) or all(f.token in linking for f in every)
    if links and all(f.is_relation and is_symmetric(f.name) for f, *_ in links) and not known:
        return False  # who sits beside whom: the truth layer knows what holds both ways
    mutual = bool(verbs) and all(any(is_reciprocal(v, p) for p in ("", "with", "to")) for v in verbs)
    if mutual and not (known and (names or all(f.token in linking for f in every))):
        return False
    return may_do_both(left, right, sorts, verbs)


def _may_both_stand(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> bool:
    """Return True if each of two things could be where the other is: they are of one size, or side by side, and the
    caption says nothing else of where one of them is. Vehicles may do anything to each other.
    """
    if sort_here(left) == sort_here(right) == "vehicle":
        linking = {i for f, *_ in links for i in (f.token, f.event)}
        apart = any(is_beside(f.name) and not is_symmetric(f.name) for f, *_ in links)
        apart = apart or any({a, b} == {"agent", "patient"} for _, a, b in links)
        every = (pair for t in (left, right) for pair in scene.facts_of(t))
        return apart and not any(role == "patient" and f.token not in linking for f, role in every)  # not who is ridden
    ends = [base_of(t) for t in (left, right)]
    built = ("structure", "framework", "plumbing fixture", "facility")
    fixed = any(is_above(word, end, 1) for end in ends for word in built)  # a window
    hung = {*ends} <= {*frames()["hung"]} and all(f.name in UPRIGHT for f, *_ in links)
    beside = all(is_beside(f.name) and f.name not in _MOVING for f, *_ in links)
    placed = (
        hung
        or (beside and not all(is_symmetric(f.name) for f, *_ in links))
        or (all(f.name in _STACKED for f, *_ in links) and are_of_one_size(left, right))
    )
    others = [f for t in (left, right) for f, _ in scene.facts_of(t) if f not in [g for g, *_ in links]]
    acts = {f.name for t in (left, right) for f, role in scene.facts_of(t) if role == "agent"}
    if not acts <= {*frames()["resting_things"], "hang"}:
        return False  # says the board behind the bench
    alone = all(not f.is_relation or _is_of_both(scene, f, left, right) for f in others)
    made = hung or all(is_made(t, 3) for t in (left, right)) or are_of_one_size(left, right)
    return placed and alone and made and not fixed and all(_is_bare(scene, f, hung) for f, *_ in links)


def _is_dressed(left: Any, right: Any, names: bool) -> bool:
    """Return True if clothes would stay behind when two things change places: `A woman in heels leads a horse.`"""
    moved = set() if names else {i for t in (left, right) for i in range(*span_of(t))}
    return any(t.tag_ in ("NN", "NNS") and t.i not in moved and is_worn(base_of(t)) for t in left.doc)


def _verbs_of(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> list[str]:
    """Return the verbs of the facts that connect two people (`links`), such as `chase`; a fact that says only where
    one of them is counts as `be`. Without `links`, return the verbs for what either person does, limited to those
    that the word lists reserve for adults.
    """
    chosen = [f for f, *_ in links] or [f for t in (left, right) for f, role in scene.facts_of(t) if role == "agent"]
    events = {f.token: f.name for f in scene.reading.facts if not f.is_relation}
    spoken = [events.get(f.event, "be") if f.is_relation else f.name for f in chosen]
    return [verb for verb in spoken if links or verb in (*frames()["grown"], *frames()["one_way"])]


def _act_apart(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if two people do something in separate clauses: `A man holds a net while a woman watches.`"""
    sorts = {sort_here(left), sort_here(right)}
    if "animal" in sorts and len(sorts) > 1:
        return False
    doers = [[f for f, role in scene.facts_of(t) if role == "agent" and not f.is_relation] for t in (left, right)]
    within = any(scene.doc[f.token].dep_ in ("ccomp", "xcomp", "relcl") for own in doers for f in own)
    every = [{f.name for f in own} for own in doers]
    same = every[0] & every[1] or (every[0] | every[1]) & {*frames()["encircling"]}
    if "animal" in sorts and not {f.name for own in doers for f in own} <= {*frames()["of_animals"]}:
        return False
    several = is_many(left) != is_many(right)
    return all(doers) and not within and not same and not several and not (joined(left, right) and len(doers) < 2)


def _are_joined_by_thing(scene: ParsedScene, left: Any, right: Any) -> bool:
    pairs = (left, right), (right, left)
    return any(_acts_on_thing_of(scene, *pair) or _is_aimed_at(scene, *pair) for pair in pairs)


def _acts_on_thing_of(scene: ParsedScene, doer: Any, owner: Any) -> bool:
    """Return True if a person does something with another person's body or thing: `A barber trims a customer's beard.`,
    `A medic checks the pulse of a runner.`
    """
    thing = owner.head.head if owner.head.lower_ == "of" else owner.head
    if not owns(owner, thing) or base_of(thing) in _SHARED:
        return False
    own = [f for f, role in scene.facts_of(doer) if role == "agent"]
    reached = {f.event for f in scene.reading.facts if thing.i in f.fillers("ground")}
    return any(f.token in reached or thing.i in {i for _, i in f.roles} for f in own)


def _is_aimed_at(scene: ParsedScene, doer: Any, other: Any) -> bool:
    """Return True if a person does something to or past another: `scores a hit on her opponent`."""
    reached = {f.event for f in scene.reading.facts if other.i in f.fillers("ground") and f.name not in _LOOSE}
    return any(f.token in reached for f, role in scene.facts_of(doer) if role == "agent")


def may_be_reversed(verb: str, first: str, second: str, sort: str = "") -> bool:
    """Return True if an action can be reversed: both nouns are animate, and each could be the one who does it to the
    other. `sort` is the kind of both; if it is empty, their kinds are looked up.

    >>> may_be_reversed("chase", "dog", "cat"), may_be_reversed("hit", "player", "ball")
    (True, False)
    >>> may_be_reversed("carry", "man", "girl")
    False
    """
    kinds = (sort or kind_of(first), sort or kind_of(second))
    if not set(kinds) <= {*ANIMATE, "name"} or any(age_of(w) == "baby" for w in (first, second)):
        return False
    return may_be_done([verb], kinds, [first, second])


def is_beside(relation: str) -> bool:
    """Return True for a relation, such as `behind`, that can hold between any two things in either order."""
    return relation.removeprefix("is ") in frames()["beside"]


def _is_bare(scene: ParsedScene, fact: Stated, hung: bool = False) -> bool:
    """Return True if the verb of a relation says only that something is there, unlike `walks` in `A man walks behind a
    car.` Things may hang, too, if they are `hung` on walls.
    """
    verbs = {f.name for f in scene.reading.facts if not f.is_relation and f.token == fact.event}
    return verbs <= {*frames()["resting_things"], *(("hang",) if hung else ())}


def _is_of_both(scene: ParsedScene, fact: Stated, left: Any, right: Any) -> bool:
    """Return True if a relation tells where both of two things are: `In the hall`, `On the table, a jug …`."""
    grounds = {*fact.fillers("ground")} - {left.i, right.i}
    first, last = sorted((left.i, right.i))
    outside = fact.token < first or (fact.token > last and last not in fact.fillers("figure"))
    return bool(grounds) and (fact.name in ("is in", "is at") or (fact.name in ("is on", "is against") and outside))


def _are_ends_of_way(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if somebody goes from one of two things to the other: `climbs from a tugboat onto a ship`."""
    ends = [[f for f, role in scene.facts_of(t) if role == "ground"] for t in (left, right)]
    return any(
        f.fillers("figure") == g.fillers("figure") and goes_back(f.name, g.name) for f in ends[0] for g in ends[1]
    )


def _are_placed_alike(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if each of two things is in the same relation, but to different things: books on a bed and shirts on
    a desk, or a hat that one person wears and a cap that another wears. Each could then be in the other's place.
    """
    own, theirs = ([(f, role) for f, role in scene.facts_of(t)] for t in (left, right))
    pairs = [(f, g) for f, role in own for g, other in theirs if role == other and f is not g]
    placed = {"is on", "is in", "is at", "is near", "is next to", "is beside", "is by"}
    pairs = [
        (f, g)
        for f, g in pairs
        if (f.name == g.name and (f.name.startswith("is ") or f.name in frames()["each_own"]))
        or ({f.name, g.name} <= placed and left.i in f.fillers("figure"))
    ]
    one = {t.i for t in scene.doc if t.lower_ in ("one", "ones", "another", "other", "others")}
    return any(_others(f, left) - one and not _others(f, left) & _others(g, right) for f, g in pairs)


def _others(fact: Stated, thing: Any) -> set[int]:
    return {number for role, number in fact.roles if number != thing.i}


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
