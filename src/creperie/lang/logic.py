"""What follows from a caption: is another one entailed, contradicted, compatible with it, or is that unknown?

The logic covers captions that say where a thing is (`The cat is on the bed.`): `relations.json` has for each relation
its converse, what it implies, what it excludes and what may hold beside it; `synonyms.json` those that say the same.
Nothing is guessed about open text: there the answer is *unknown*, and a model of entailment may be asked (`--nli`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from creperie.core import packaged

ENTAILED: Final = "entailed"
CONTRADICTED: Final = "contradicted"
COMPATIBLE: Final = "compatible"
UNKNOWN: Final = "unknown"
Word = Literal["entailed", "contradicted", "compatible", "unknown"]
DECIDABLE, UNDECIDABLE = "decidable", "not decidable"


@dataclass(frozen=True)
class Truth:
    """What a caption says about a candidate, and why."""

    word: Word
    reason: str


def truth(caption: str, candidate: str) -> Truth:
    """Whether the candidate holds where the caption does.

    >>> truth("The cat is on the bed.", "The bed is below the cat.").word
    'entailed'
    >>> truth("The cat is on the bed.", "The cat is under the bed.").word
    'contradicted'
    >>> truth("The suitcase is in front of the refrigerator.", "The refrigerator is close to the suitcase.").word
    'compatible'
    >>> truth("A dog barks.", "An animal barks.").word
    'unknown'
    """
    if _bare(caption) == _bare(candidate):
        return Truth(ENTAILED, "the same words")
    if _bare(caption) == _bare(candidate).replace("is not ", "is ") or _bare(candidate) == _bare(caption).replace(
        "is not ", "is "
    ):
        return Truth(CONTRADICTED, "one denies the other")
    first, second = spatial(caption), spatial(candidate)
    if first is None or second is None:
        return Truth(UNKNOWN, "no rule covers these sentences")
    if first.things != second.things:
        return Truth(COMPATIBLE, "they are about different things")
    edit = f"{first.relation} / {second.relation}"
    if first.entails(second):
        return Truth(ENTAILED, f"the relation implies it: {edit}")
    if first.excludes(second):
        return Truth(CONTRADICTED, f"the relations exclude each other: {edit}")
    if not all(relations().get(one.relation) for one in (first, second)):
        return Truth(UNKNOWN, f"the relation is not known well enough: {edit}")
    if first.subject != second.subject and first.framed and second.framed:
        return Truth(UNKNOWN, f"it depends on the point of view: {edit}")
    return Truth(COMPATIBLE, f"both can hold: {edit}")


def decidability(true: Sequence[str], false: Sequence[str]) -> tuple[str, str]:
    """Whether text alone tells the true captions of an item from its false ones, and why.

    Decidable: the true captions follow from each other, one way at least, and every false one is contradicted by one of
    them. Not decidable: some pair can hold or fail together. Else unknown.

    >>> decidability(["The cat is on the bed.", "The bed is below the cat."], ["The cat is under the bed."])[0]
    'decidable'
    >>> decidability(["The cat is on the bed.", "The bed is below the cat."], ["The cat is near the bed."])
    ('not decidable', 'the relation implies it: is on / is near')
    """
    verdicts: list[tuple[Word, Truth]] = []
    for other in true[1:]:
        both = (truth(true[0], other), truth(other, true[0]))
        verdicts.append((ENTAILED, next((one for one in both if one.word == ENTAILED), both[0])))
    for foil in false:
        told = [truth(caption, foil) for caption in true]
        verdicts.append((CONTRADICTED, next((one for one in told if one.word == CONTRADICTED), told[0])))
    amiss = [said for wanted, said in verdicts if said.word != wanted]
    decided = [said for said in amiss if said.word != UNKNOWN]
    if decided:
        return UNDECIDABLE, decided[0].reason
    return (UNKNOWN, amiss[0].reason) if amiss else (DECIDABLE, "")


def _bare(text: str) -> str:
    return " ".join(text.lower().replace(".", " ").split())


@dataclass(frozen=True, slots=True)
class Spatial:
    """A subject, a relation and an object, with their articles."""

    subject: str
    relation: str  #: with its verb: "is above", "contains"
    object: str
    articles: tuple[str, str] = ("the", "the")
    end: str = "."

    @property
    def things(self) -> frozenset[str]:
        return frozenset((self.subject, self.object))

    def said(self) -> str:
        first, second = self.articles
        return f"{first.capitalize()} {self.subject} {self.relation} {second.lower()} {self.object}{self.end}"

    def converse(self) -> Spatial | None:
        """The same seen from the object; None where no relation says it for sure.

        >>> spatial("The cat is above the bed.").converse().said()
        'The bed is below the cat.'
        """
        relation = relations().get(self.relation, {}).get("converse")
        if relation is None:
            return None
        return Spatial(self.object, relation, self.subject, self.articles[::-1], self.end)

    def may_agree(self, other: Spatial) -> bool:
        """Whether both can be true of one picture: the same things in a relation that is alike.

        >>> on, over, under = (spatial(f"The cat is {r} the bed.") for r in ("on", "over", "under"))
        >>> on.may_agree(over), on.may_agree(under)
        (True, False)
        """
        if other.things != self.things:
            return True
        if other.subject == self.subject:
            known = relations()
            alike = {self.relation, *known.get(self.relation, {}).get("same", ())}
            return other.relation in alike or self.relation in known.get(other.relation, {}).get("same", ())
        turned = other.converse()
        return turned is not None and self.may_agree(turned)

    @property
    def framed(self) -> bool:
        """Whether the relation depends on who looks: left, right, in front of, behind."""
        return bool(relations().get(self.relation, {}).get("framed", False))

    def seen_by(self, subject: str) -> Spatial | None:
        """The same with this thing as the subject; None where no relation says it for sure."""
        return self if self.subject == subject else self.converse()

    def entails(self, other: Spatial) -> bool:
        """Whether the other follows: the same, its converse, or what is said weaker.

        >>> behind = spatial("The apple is behind the cake.")
        >>> behind.entails(spatial("The cake is ahead of the apple."))
        True
        >>> behind.entails(spatial("The cake is at the right side of the apple."))
        False
        """
        mine, theirs = self.seen_by(other.subject), other.seen_by(self.subject)
        sides = [(mine, other), (self, theirs)]
        return self.things == other.things and any(
            one is not None and two is not None and one.subject == two.subject and two.relation in implied(one.relation)
            for one, two in sides
        )

    def excludes(self, other: Spatial) -> bool:
        """Whether both cannot hold: `above` and `below`, `near` and `far from`, of the same two things.

        Two things can each be in front of the other, or to its left, as each of them sees it: that excludes nothing.

        >>> on = spatial("The cat is on the bed.")
        >>> on.excludes(spatial("The cat is below the bed.")), on.excludes(spatial("The cat is touching the bed."))
        (True, False)
        """
        turned = other if other.subject == self.subject else None if self.framed else other.converse()
        if turned is None or (turned.subject, turned.object) != (self.subject, self.object):
            return False
        return any(not excluded(one).isdisjoint(implied(turned.relation)) for one in implied(self.relation))


#: Relations that say the same of two things. `near` and `touching` say less than these, so they are not among them.
_SYNONYMS: list[list[str]] = json.loads(packaged("creperie.lang", "synonyms.json"))


@cache
def equivalent(relation: str) -> frozenset[str]:
    """The relation and those that say the same."""
    return frozenset({relation, *(r for group in _SYNONYMS if relation in group for r in group)})


@cache
def implied(relation: str) -> frozenset[str]:
    """All that holds where the relation does: those that say the same, and weaker ones.

    >>> {"is above", "is over", "is touching", "is near"} <= implied("is on"), "is on" in implied("is above")
    (True, False)
    """
    reached = equivalent(relation)
    while True:
        more = reached.union(*(equivalent(w) for r in reached for w in relations().get(r, {}).get("implies", ())))
        if more == reached:
            return reached
        reached = more


@cache
def excluded(relation: str) -> frozenset[str]:
    """What cannot hold of the same two things in the same order: a converse that is another relation, and opposites."""
    known = relations().get(relation, {})
    opposite = equivalent(known.get("converse", relation))
    others = frozenset().union(*(equivalent(r) for r in known.get("excludes", ())))
    return others if relation in opposite else opposite | others


@cache
def relations() -> dict[str, dict[str, Any]]:
    """The table of relations."""
    table: dict[str, dict[str, Any]] = json.loads(packaged("creperie.lang", "relations.json"))
    return table


@cache
def _pattern() -> re.Pattern[str]:
    known = "|".join(sorted(map(re.escape, relations()), key=len, reverse=True))
    article = r"(the|an?)"
    return re.compile(rf"\s*{article} (.+?) ({known}) {article} (.+?)\s*([.!]?)\s*", re.IGNORECASE)


def spatial(text: str) -> Spatial | None:
    """A caption read as subject, relation, object; None where it is no such caption.

    >>> spatial("The hot dog is at the left side of the cup.").relation
    'is at the left side of'
    """
    found = _pattern().fullmatch(text)
    if not found:
        return None
    first, subject, relation, second, thing, end = found.groups()
    return Spatial(subject.lower(), relation.lower(), thing.lower(), (first, second), end)
