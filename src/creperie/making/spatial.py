"""Spatial captions: `The cat is on the bed.` read, said from the other side, and compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.making.data import read_data


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
        relation = _table().get(self.relation, {}).get("converse")
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
            known = _table()
            alike = {self.relation, *known.get(self.relation, {}).get("same", ())}
            return other.relation in alike or self.relation in known.get(other.relation, {}).get("same", ())
        turned = other.converse()
        return turned is not None and self.may_agree(turned)

    def excludes(self, other: Spatial) -> bool:
        """Whether the other says the opposite of the same things, so that both cannot hold: `above` and `below`.

        Two things can each be in front of the other, or to its left, as each of them sees it: that excludes nothing.

        >>> on = spatial("The cat is on the bed.")
        >>> on.excludes(spatial("The cat is below the bed.")), on.excludes(spatial("The cat is touching the bed."))
        (True, False)
        """
        framed = _table().get(self.relation, {}).get("framed", False)
        turned = other if other.subject == self.subject else None if framed else other.converse()
        if turned is None or (turned.subject, turned.object) != (self.subject, self.object):
            return False
        opposite = _table().get(self.relation, {}).get("converse", self.relation)
        said = {turned.relation, _IMPLIED.get(turned.relation, "")}
        return opposite not in equivalent(self.relation) and not said.isdisjoint(equivalent(opposite))

    def proves(self, other: Spatial) -> bool:
        """Whether the other says the same from the other side, by the table of converses and synonyms.

        >>> behind = spatial("The apple is behind the cake.")
        >>> behind.proves(spatial("The cake is ahead of the apple."))
        True
        >>> behind.proves(spatial("The cake is at the right side of the apple."))
        False
        """
        converse = self.converse()
        same_things = converse is not None and (other.subject, other.object) == (self.object, self.subject)
        return converse is not None and same_things and other.relation in equivalent(converse.relation)


#: Relations that say the same of two things. `near` and `touching` say less than these, so they are not among them.
_SYNONYMS: list[list[str]] = read_data("synonyms")


#: What is on something is above it.
_IMPLIED = {"is on": "is above", "is on top of": "is above"}


@cache
def equivalent(relation: str) -> frozenset[str]:
    """The relation and those that say the same."""
    return frozenset({relation, *(r for group in _SYNONYMS if relation in group for r in group)})


@cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = read_data("relations")
    return table


@cache
def _pattern() -> re.Pattern[str]:
    relations = "|".join(sorted(map(re.escape, _table()), key=len, reverse=True))
    article = r"(the|an?)"
    return re.compile(rf"\s*{article} (.+?) ({relations}) {article} (.+?)\s*([.!]?)\s*", re.IGNORECASE)


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
