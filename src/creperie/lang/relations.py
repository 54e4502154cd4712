"""Spatial relations: captions of the form `The cat is on the bed.`, and what they imply and exclude.

`relations.json` lists for each relation its converse, what it implies, what it excludes and what is compatible with it;
`synonyms.json` lists the relations with the same meaning.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.core import packaged


@dataclass(frozen=True, slots=True)
class Spatial:
    """A spatial caption: subject, relation and object, with their articles."""

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
        """Return the same statement with subject and object exchanged; None if no relation is certain to express it.

        >>> spatial("The cat is above the bed.").converse().said()
        'The bed is below the cat.'
        """
        relation = relations().get(self.relation, {}).get("converse")
        if relation is None:
            return None
        return Spatial(self.object, relation, self.subject, self.articles[::-1], self.end)

    def may_agree(self, other: Spatial) -> bool:
        """Return whether both can be true of one image: different things, or the same things in similar relations.

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
        """Whether the relation depends on the point of view: left, right, in front of, behind."""
        return bool(relations().get(self.relation, {}).get("framed", False))

    def seen_by(self, subject: str) -> Spatial | None:
        """Return the same statement with this thing as the subject; None if no relation is certain to express it."""
        return self if self.subject == subject else self.converse()

    def entails(self, other: Spatial) -> bool:
        """Return whether the other statement follows from this one: the same relation, its converse, or a weaker one.

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
        """Return whether the two cannot both hold of the same things: `above` and `below`, `near` and `far from`.

        Two things can each be in front of the other, or to its left, from their own points of view: no contradiction.

        >>> on = spatial("The cat is on the bed.")
        >>> on.excludes(spatial("The cat is below the bed.")), on.excludes(spatial("The cat is touching the bed."))
        (True, False)
        """
        turned = other if other.subject == self.subject else None if self.framed else other.converse()
        if turned is None or (turned.subject, turned.object) != (self.subject, self.object):
            return False
        return any(not excluded(one).isdisjoint(implied(turned.relation)) for one in implied(self.relation))


#: Groups of synonymous relations. `near` and `touching` say less than these, so they are not included.
_SYNONYMS: list[list[str]] = json.loads(packaged("creperie.lang", "synonyms.json"))


@cache
def equivalent(relation: str) -> frozenset[str]:
    """Return the relation and its synonyms."""
    return frozenset({relation, *(r for group in _SYNONYMS if relation in group for r in group)})


@cache
def implied(relation: str) -> frozenset[str]:
    """Return all relations that hold whenever this one does: its synonyms, and weaker ones.

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
    """Return the relations that this one excludes for the same pair: its opposites, and its converse unless the two are
    synonyms.
    """
    known = relations().get(relation, {})
    opposite = equivalent(known.get("converse", relation))
    others = frozenset().union(*(equivalent(r) for r in known.get("excludes", ())))
    return others if relation in opposite else opposite | others


@cache
def relations() -> dict[str, dict[str, Any]]:
    """Return the table of relations."""
    table: dict[str, dict[str, Any]] = json.loads(packaged("creperie.lang", "relations.json"))
    return table


@cache
def _pattern() -> re.Pattern[str]:
    known = "|".join(sorted(map(re.escape, relations()), key=len, reverse=True))
    article = r"(the|an?)"
    return re.compile(rf"\s*{article} (.+?) ({known}) {article} (.+?)\s*([.!]?)\s*", re.IGNORECASE)


def spatial(text: str) -> Spatial | None:
    """Return a caption parsed as subject, relation and object; None if it does not have this form.

    >>> spatial("The hot dog is at the left side of the cup.").relation
    'is at the left side of'
    """
    match = _pattern().fullmatch(text)
    if not match:
        return None
    first, subject, relation, second, thing, end = match.groups()
    return Spatial(subject.lower(), relation.lower(), thing.lower(), (first, second), end)
