"""The scene that a caption describes: its things and facts, each with the words from which it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MANY = -1  #: the count of `several dogs`, `dogs`, `a group of dogs`: more than one


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing, or several things of one kind. Its number is the index of its head among the tokens."""

    head: str
    attributes: frozenset[str]
    count: int | None  #: `MANY` for an unknown number above one; None if the words do not say
    definite: bool
    words: str
    quantity: str = ""  #: "no", "all" or "inexact"
    denied: bool = False  #: mentioned only in what is denied


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact that a caption states: an event (`chase`, with roles) or a relation (`is on`, with the roles "figure" and
    "ground").
    """

    name: str
    roles: tuple[tuple[str, int], ...]  #: role → number of an entity
    words: str
    token: int
    event: int = -1  #: for a relation: the verb that it depends on
    denied: int = -1  #: the word that denies it; facts denied together have the same
    passive: bool = False
    manner: frozenset[str] = frozenset()

    @property
    def is_relation(self) -> bool:
        return any(role == "ground" for role, _ in self.roles)

    def fillers(self, role: str) -> set[int]:
        return {thing for name, thing in self.roles if name == role}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a caption says, as things and facts. `unread` are the words that no rule covers."""

    entities: Mapping[int, Entity]
    facts: tuple[Stated, ...]
    unread: tuple[str, ...] = ()
    order: tuple[tuple[str, str], ...] = ()  #: pairs of verbs: the first happens before the second
    words: frozenset[str] = frozenset()  #: nouns, verbs, adjectives and adverbs that are not denied
    denied: Mapping[int, frozenset[str]] = field(default_factory=dict)  #: the same of each denying word
    suspending: frozenset[str] = frozenset()  #: words by which something need not be so: `may`, `pretends to`, `except`

    def exchanged(self, left: int, right: int, what: str, words: tuple[str, str]) -> Reading:
        """Return the reading with two things exchanged. `what` says what changes places: their "names", their whole
        "phrases" or their "attributes". To exchange attributes, `words` holds one attribute of each thing.
        """
        one, other = self.entities[left], self.entities[right]
        if what == "attributes":
            mine = one.attributes - {words[0]} | {words[1]}
            new = replace(one, attributes=mine), replace(other, attributes=other.attributes - {words[1]} | {words[0]})
        elif what == "names":
            new = replace(one, head=other.head), replace(other, head=one.head)
        else:
            new = (
                replace(other, definite=one.definite, denied=one.denied),
                replace(one, definite=other.definite, denied=other.denied),
            )
        return replace(self, entities={**self.entities, left: new[0], right: new[1]})
