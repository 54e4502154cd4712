"""Spatial relations: captions such as `The cat is on the bed.`, and what they imply and exclude.

For each relation, `relations.json` lists its converse, what it implies, what it excludes, and what is compatible with
it; `synonyms.json` lists relations with the same meaning.
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
    """A spatial caption, split into subject, relation and object. Both nouns keep their articles."""

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


#: Groups of synonymous relations. `near` and `touching` say less than these, so they are not included.
_SYNONYMS: list[list[str]] = json.loads(packaged("creperie.lang", "synonyms.json"))


#: Where a way begins, and where it ends.
_STARTS = frozenset(("from", "off", "out of"))
_ENDS = frozenset(("to", "into", "onto", "toward", "towards"))


def goes_back(relation: str, other: str) -> bool:
    """Return whether one of two relations marks the start of a movement and the other its end.

    >>> goes_back("from", "onto"), goes_back("into", "onto")
    (True, False)
    """
    one, two = relation.removeprefix("is "), other.removeprefix("is ")
    return (one in _STARTS and two in _ENDS) or (one in _ENDS and two in _STARTS)


@cache
def equivalent(relation: str) -> frozenset[str]:
    """Return the relation and its synonyms."""
    return frozenset({relation, *(r for group in _SYNONYMS if relation in group for r in group)})


@cache
def implied(relation: str) -> frozenset[str]:
    """Return all relations that hold whenever this one does: itself, its synonyms, and weaker relations.

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
    """Return the relations that this one excludes for the same pair of things: its opposites, and its converse unless
    the two are synonyms.
    """
    known = relations().get(relation, {})
    opposite = equivalent(known.get("converse", relation))
    others = frozenset().union(*(equivalent(r) for r in known.get("excludes", ())))
    return others if relation in opposite else opposite | others


def follows(old: str, new: str, turned: bool = False) -> bool:
    """Return whether the relation `new` of two things follows from `old`. If `turned`, the two things are exchanged in
    `new`.

    >>> follows("is behind", "is ahead of", True), follows("is behind", "is at the right side of", True)
    (True, False)
    """
    known = relations()
    if not turned:
        return new in implied(old)
    pairs = (known.get(old, {}).get("converse"), new), (old, known.get(new, {}).get("converse"))
    return any(a is not None and b is not None and b in implied(a) for a, b in pairs)


def clashes(old: str, new: str, turned: bool = False) -> bool:
    """Return whether two relations cannot both hold of the same things, as with `above` and `below`, or `near` and `far
    from`. If `turned`, the two things are exchanged in `new`.

    Two things can each be in front of the other, or each to the left of the other, if each is seen from its own point
    of view; this is no contradiction.

    >>> clashes("is on", "is below"), clashes("is on", "is touching"), clashes("is above", "is above", True)
    (True, False, True)
    """
    if turned:
        framed = relations().get(old, {}).get("framed", False)
        new = "" if framed else relations().get(new, {}).get("converse", "")
    return bool(new) and any(not excluded(one).isdisjoint(implied(new)) for one in implied(old))


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
    """Split a caption into subject, relation and object; return None if it does not have this form.

    >>> spatial("The hot dog is at the left side of the cup.").relation
    'is at the left side of'
    """
    match = _pattern().fullmatch(text)
    if not match:
        return None
    first, subject, relation, second, thing, end = match.groups()
    return Spatial(subject.lower(), relation.lower(), thing.lower(), (first, second), end)
