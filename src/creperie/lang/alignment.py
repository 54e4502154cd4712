"""Alignment of two captions: which things in both may be the same, judged by names, attributes and roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from creperie.lang.likeness import Likeness, noun_likeness
from creperie.lang.scene import Reading

_WEIGHTS: Mapping[Likeness, float] = {
    "same": 5,
    "above": 4,
    "below": 3,
    "alike": 2,
    "beside": 0,
    "unknown": 0.5,
    "apart": -1,
}
#: Maximum number of things of the first reading that are tried for one of the second.
MOST_TRIED = 3


def alignments(own: Reading, other: Reading) -> Iterator[tuple[dict[int, int], float]]:
    """Yield possible alignments with their scores, likely ones first. An alignment maps the number of a thing in
    `other` to the number of the thing in `own` that may be the same.
    """
    roles = [_contexts(reading) for reading in (own, other)]
    choices: list[tuple[int, list[tuple[float, int]]]] = []
    for number, new in other.entities.items():
        scored = []
        for k, old in own.entities.items():
            common = roles[0].get(k, set()) & roles[1].get(number, set())
            score = (
                _WEIGHTS[noun_likeness(old.head, new.head)]
                + 2.5 * len(common)
                - 0.2 * abs(k - number) / (k + number + 1)
            )
            if score >= 1:
                scored.append((score, k))
        named = [k for k, old in own.entities.items() if old.head == new.head]
        if len(named) == 1 and sum(e.head == new.head for e in other.entities.values()) == 1:
            scored = [one for one in scored if one[1] == named[0]]  # the same noun is the same thing
        choices.append((number, sorted(scored, reverse=True)[:MOST_TRIED]))
    yield from _assigned(choices, {}, 0.0)


def _assigned(
    choices: list[tuple[int, list[tuple[float, int]]]], taken: dict[int, int], score: float
) -> Iterator[tuple[dict[int, int], float]]:
    if not choices:
        yield dict(taken), score
        return
    (number, scored), *rest = choices
    free = [(s, k) for s, k in scored if k not in taken.values()]
    for points, k in free:
        yield from _assigned(rest, {**taken, number: k}, score + points)
    if not free or free[0][0] < 4:
        yield from _assigned(rest, taken, score)


def _contexts(reading: Reading) -> dict[int, set[tuple[str, str]]]:
    """Return the context of each thing: a pair (fact, role) for each fact in which it takes part, and a pair ("is",
    attribute) for each attribute.
    """
    contexts = {i: {("is", attribute) for attribute in thing.attributes} for i, thing in reading.entities.items()}
    for fact in reading.facts:
        for role, thing in fact.roles:
            contexts.setdefault(thing, set()).add((fact.name, role))
    return contexts
