"""Could two things take each other's roles or places in a caption, and does the caption tell them apart?"""

from __future__ import annotations

from typing import Any

from creperie.lang import Stated, goes_back, is_above, is_reciprocal, is_worn, recipient_preposition
from creperie.making.atoms import base_of, named
from creperie.making.exchanging import ParsedScene, is_many, is_taken, owns, sort_here
from creperie.making.phrases import span_of
from creperie.making.plausible import ANIMATE, are_of_one_size, frames, is_made, may_be_done
from creperie.making.telling import is_symmetric
from creperie.making.verbs import topics

NO_SWAP = "-"
#: Relations of something that moves.
_MOVING = frozenset(f"{be}{word}" for be in ("", "is ") for word in ("toward", "towards", "past", "after", "ahead of"))
#: Relations that are no place, and no reason to change places.
LOOSE = frozenset(("for", "of", "during", "about", "like"))
#: Relations of what somebody moves, blocks or gets to another person.
_AIMED = frozenset(("is at", "is on", "to", "against", "is by", "by", "from"))
#: Relations that two things of one sort may have in either order.
UPRIGHT = frozenset(("is above", "is below", "is over", "is beneath", "is on top of"))
#: Relations of two things of one size that may lie or stand on each other.
_STACKED = UPRIGHT | {"is on", "is under", "is underneath", "is against"}


def why_absurd(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]], names: bool) -> str:
    """Return why it would be absurd if two things changed places in the caption. Return an empty string if it would be
    plausible, and `NO_SWAP` if everything that the caption says about them would stay the same. `links` are the facts
    in which both take part. With `names`, only the names of the two things change places.
    """
    sorts = sort_here(left), sort_here(right)
    told = f"*{named(left)}* and *{named(right)}* could change places, but"
    if set(sorts) <= {*ANIMATE, "name"}:
        apart = (_are_placed_alike, act_apart, act_on_same, are_joined_by_thing)
        if not links and not any(told_apart(scene, left, right) for told_apart in apart):
            return NO_SWAP
        able = _may_both_do(scene, left, right, links, names)
        return "" if able else f"{told} few would expect them in each other's roles (--plausible no)"
    if "" in sorts and not links:
        return NO_SWAP
    teams = left.tag_[:3] == right.tag_[:3] == "NNP" and sorts[0] == sorts[1]
    if teams and any({a, b} == {"agent", "patient"} for _, a, b in links):
        return ""  # Canada beats Finland
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
    if _are_unlike(left, right, links):
        return False
    given = [f for f, a, b in links if "patient" in (a, b) and recipient_preposition(f.name.split()[0]) == "to"]
    handed = any({a, b} == {"patient", "recipient"} for _, a, b in links) or any(f.fillers("recipient") for f in given)
    if handed or any(f.name == "ride" for f, *_ in links):
        return False  # hands off a child to a woman, rides Copper Lantern
    if "animal" in sorts:
        if any(f.is_relation and not is_beside(f.name) for f, *_ in links):
            return False  # not on, not next to
        if sorts[0] != sorts[1] and _is_dressed(left, right, names):
            return False
        if links and not any("patient" in (a, b) or f.is_relation for f, a, b in links):
            return False  # what is thrown at somebody
    verbs = _verbs_of(scene, left, right, links)
    every = [f for t in (left, right) for f, _ in scene.facts_of(t)]
    linking = {f.token for f, *_ in links} | {f.event for f, *_ in links}
    known = any(f.name in ("wear", "hold", "carry") for f in every) or all(f.token in linking for f in every)
    if links and all(f.is_relation and is_symmetric(f.name) for f, *_ in links) and not known:
        return False  # who sits beside whom: the truth layer knows what holds both ways
    mutual = bool(verbs) and all(any(is_reciprocal(v, p) for p in ("", "with", "to")) for v in verbs)
    if mutual and not (known and (names or all(f.token in linking for f in every))):
        return False
    said = [t.lower_ for noun in (left, right) for t in noun.lefts]
    return may_be_done(verbs, [base_of(left), base_of(right)], sorts, (is_many(left), is_many(right)), said)


def _are_unlike(left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> bool:
    """Return True if two people or groups have roles that they cannot exchange: a committee and a man, a batter and
    anybody else, a player and an opponent, a sculptor and the person whom the statue shows.
    """
    both = left, right
    groups = [topics(base_of(t))[:1] == (14,) and t.lower_ != "police" for t in both]
    if any(group and not is_many(other) for group, other in zip(groups, both[::-1])):
        return True
    wholes = [t.head.head for t in both if t.head.lower_ == "of" and not is_taken(t)]
    if any(base_of(w) in frames()["likenesses"] for whole in wholes for w in (whole, *whole.conjuncts)):
        return True
    words = (w.lower_ for t in both for w in t.doc[slice(*span_of(t))])
    related = any(base_of(t) in frames()["of_each_other"] and not is_many(t) for t in both)
    plainly = bool(links) and all({i for _, i in f.roles} <= {left.i, right.i} for f, *_ in links)  # yells at a referee
    return related or not (plainly or {*frames()["alone_in_play"]}.isdisjoint(words))


def _may_both_stand(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> bool:
    """Return True if each of two things could be where the other is. The two must be equally large or side by side, and
    the caption must not say anything else about the place of either. Two vehicles may also act on each other.
    """
    if sort_here(left) == sort_here(right) == "vehicle":
        linking = {i for f, *_ in links for i in (f.token, f.event)}
        apart = any(is_beside(f.name) for f, *_ in links)
        apart = apart or any({a, b} == {"agent", "patient"} for _, a, b in links)
        every = (pair for t in (left, right) for pair in scene.facts_of(t))
        return apart and not any(role == "patient" and f.token not in linking for f, role in every)  # not who is ridden
    ends = [base_of(t) for t in (left, right)]
    built = ("structure", "framework", "plumbing fixture", "facility")
    fixed = any(is_above(word, end, 1) for end in ends for word in built)  # a window
    hangs = [end in frames()["hung"] for end in ends]
    hung = all(hangs)
    beside = all(is_beside(f.name) and f.name not in _MOVING for f, *_ in links)
    placed = (
        hung
        or beside
        or (all(f.name in _STACKED for f, *_ in links) and are_of_one_size(left, right) and hangs[0] == hangs[1])
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
    """Return the verbs of the facts in which two people take part (`links`), such as `chase`. If a fact says only where
    one of them is, its verb is `be`. Without `links`, return the verbs for what either person does, but only those that
    the word lists reserve for adults or for an office.
    """
    chosen = [f for f, *_ in links] or [f for t in (left, right) for f, role in scene.facts_of(t) if role == "agent"]
    events = {f.token: f.name for f in scene.reading.facts if not f.is_relation}
    spoken = [events.get(f.event, "be") if f.is_relation else f.name for f in chosen]
    return [verb for verb in spoken if links or verb in (*frames()["grown"], *frames()["one_way"])]


def act_apart(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if two people do something in separate clauses: `A man holds a net while a woman watches.`"""
    sorts = {sort_here(left), sort_here(right)}
    if "animal" in sorts and len(sorts) > 1:
        return False
    doers = [[f for f, role in scene.facts_of(t) if role == "agent"] for t in (left, right)]
    verbs = [v for own in doers for f in own if (v := scene.doc[f.token]).i > v.head.i]  # not `She serves, he waits`
    within = any(v.dep_ in ("ccomp", "xcomp", "relcl") and base_of(v.head) != "watch" for v in verbs)
    every = [{f.name for f in own} for own in doers]
    same = every[0] & every[1]
    if "animal" in sorts and not every[0] | every[1] <= {*frames()["of_animals"]}:
        return False
    several = is_many(left) != is_many(right) or any(is_above("spectator", base_of(t), 1) for t in (left, right))
    return all(doers) and not within and not same and not several


def are_joined_by_thing(scene: ParsedScene, left: Any, right: Any) -> bool:
    pairs = (left, right), (right, left)
    return any(_acts_on_thing_of(scene, *pair) or _is_aimed_at(scene, *pair) for pair in pairs)


def _acts_on_thing_of(scene: ParsedScene, doer: Any, owner: Any) -> bool:
    """Return True if a person does something with another person's body or thing: `A barber trims a customer's beard.`,
    `A medic checks the pulse of a runner.`
    """
    thing = owner.head.head if owner.head.lower_ == "of" else owner.head
    if not owns(owner, thing) or base_of(thing) in frames()["shared"]:
        return False
    own = [f for f, role in scene.facts_of(doer) if role == "agent"]
    reached = {f.event for f in scene.reading.facts if thing.i in f.fillers("ground")}
    return any(f.token in reached or thing.i in {i for _, i in f.roles} for f in own)


def _is_aimed_at(scene: ParsedScene, doer: Any, other: Any) -> bool:
    """Return True if what a person does is aimed at another person, as in `scores a hit on her opponent`, `points a
    finger at a speaker` and `takes a picture of a man`.
    """
    reached = [f for f in scene.reading.facts if other.i in f.fillers("ground")]
    events = {f.event for f in reached if f.name not in LOOSE}
    aims = (f for f in reached if f.name in _AIMED or is_taken(other))
    moved = {i for f in aims for i in f.fillers("figure")}
    own = [f for f, role in scene.facts_of(doer) if role == "agent"]
    return any(f.token in events or f.fillers("patient") & moved for f in own)


def is_beside(relation: str) -> bool:
    """Return True for a relation, such as `behind`, that can hold between any two things in either order."""
    return relation.removeprefix("is ") in frames()["beside"]


def _is_bare(scene: ParsedScene, fact: Stated, hung: bool = False) -> bool:
    """Return True if the verb of a relation says only that something is there, as `stands` does and `walks` does not.
    If `hung`, the verb may also be `hang`.
    """
    verbs = {f.name for f in scene.reading.facts if not f.is_relation and f.token == fact.event}
    return verbs <= {*frames()["resting_things"], *(("hang",) if hung else ())}


def _is_of_both(scene: ParsedScene, fact: Stated, left: Any, right: Any) -> bool:
    """Return True if one phrase says where both things are, such as `In the hall` at the beginning of a caption."""
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
    """Return True if two things stand in the same relation to different things: books on a bed and shirts on a desk, or
    a hat that one person wears and a cap that another wears. Each could then be in the other's place.
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
    return any(not _others(f, left) & _others(g, right) for f, g in pairs)


def _others(fact: Stated, thing: Any) -> set[int]:
    return {number for role, number in fact.roles if number != thing.i}


def act_on_same(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if two people do different things to the same thing: `A saves a penalty taken by B.`"""
    done = [
        {(g, f.name) for f, role in scene.facts_of(t) if role == "agent" for g in f.fillers("patient")}
        for t in (left, right)
    ]
    return any(one == other and act != deed for one, act in done[0] for other, deed in done[1])
