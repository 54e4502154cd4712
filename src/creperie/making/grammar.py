"""Makers by grammar: one event in two constructions, and both with their arguments exchanged.

grammar:passive       A player hits a ball.               A ball is hit by a player.
grammar:dative        A woman gives the girl a book.      A woman gives a book to the girl.
grammar:with-against  A boy hits the fence with a stick.  A boy hits a stick against the fence.

Each source gives an item of two captions and two foils, and another one with its arguments reduced to their heads.
Foils exchange roles only where either could have the other's: two beings and a verb that goes both ways, or a language
model (`lm=`, not the trigram model) that finds the exchange as likely. Elsewhere the alternation is a second positive
without a foil; `as_published` exchanges all roles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.bench import Item, Tag, choice
from creperie.lang import facts, kind_of, lemma, parse
from creperie.making.candidate import Candidate, Proposal, Role
from creperie.making.complements import TwoComplements, find_contact, find_giving, said_first, said_second
from creperie.making.options import TRIGRAM, MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.pipeline import grouped
from creperie.making.plausibility import gaps, within_band
from creperie.making.source import Captions, SourceCaption
from creperie.making.swaps import turns
from creperie.making.voice import ActionClause, find_event, said_actively, said_passively


@dataclass(frozen=True)
class Alternation:
    """Two ways to say an event, in the order in which items hold them."""

    name: str
    constructions: tuple[str, str]
    find: Callable[[Any], Any]  #: a document → an event, or why there is none
    say: Mapping[str, Callable[..., str]]  #: construction → the event said so


VOICE = Alternation(
    "grammar:passive", ("active", "passive"), find_event, {"active": said_actively, "passive": said_passively}
)


GIVING = Alternation(
    "grammar:dative", ("ditransitive", "dative"), find_giving, {"ditransitive": said_first, "dative": said_second}
)
CONTACT = Alternation(
    "grammar:with-against", ("with", "against"), find_contact, {"with": said_first, "against": said_second}
)


def passive(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `grammar:passive`."""
    return _maker(VOICE, options)


def dative(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `grammar:dative`."""
    return _maker(GIVING, options)


def with_against(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `grammar:with-against`."""
    return _maker(CONTACT, options)


def _maker(alternation: Alternation, options: MakerOptions) -> ParsedMaker:
    propose = Proposer(alternation)
    checks = (RolesConfirmed(alternation, options.parser), *options.model_checks)
    return ParsedMaker(alternation.name, propose, options, checks, Builder(alternation), whole=True, chunk=1024)


@dataclass(frozen=True)
class Proposer:
    """Proposes the other construction and the foils of both, long and simplified."""

    alternation: Alternation

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        event = self.alternation.find(doc)
        if isinstance(event, str) or event.doubt:
            return Proposal(skipped=event if isinstance(event, str) else event.doubt)
        foils = options.as_published or self._exchanges(source, event, options)
        found = [c for simple in (False, True) for c in self._candidates(source, event, simple=simple)]
        kept = [c for c in found if foils or c.role == "positive"]
        return Proposal(tuple(kept), missing={} if foils else {self.alternation.name: FIXED_ROLES})

    def _exchanges(self, source: SourceCaption, event: ActionClause | TwoComplements, options: MakerOptions) -> bool:
        """Whether the roles could be exchanged: by a table of verbs and beings, or by the language model named."""
        if _is_reversible(event):
            return True
        if options.lm in ("", TRIGRAM):
            return False
        foil = self.alternation.say[event.voice](event.exchanged(), simple=False)
        return within_band(gaps(source.text, [foil], options.lm)[0], options.lm, options.band)

    def _candidates(
        self, source: SourceCaption, event: ActionClause | TwoComplements, *, simple: bool
    ) -> list[Candidate]:
        """What the source does not say itself; the builder puts that in its place."""
        found = []
        for role, told in (("positive", event), ("negative", event.exchanged())):
            for construction in self.alternation.constructions:
                own = role == "positive" and construction == event.voice
                text = self.alternation.say[construction](told, simple=simple)
                if own and (not simple or text.split() == source.text.split()):
                    continue
                found.append(self._candidate(source, told, role, construction, text, simple))
        return found

    def _candidate(
        self,
        source: SourceCaption,
        event: ActionClause | TwoComplements,
        role: str,
        construction: str,
        text: str,
        simple: bool,
    ) -> Candidate:
        name = self.alternation.name.removeprefix("grammar:")
        tags: dict[str, Tag] = {"construction": name, "simplified": simple, **event.roles}
        tags["reversible"] = _is_reversible(event)
        if event.is_plain:
            tags["plain"] = True
        edit = f"{event.voice} → {construction}" if role == "positive" else f"{event.swapped}, {construction}"
        group = f"{name}-simplified" if simple else name
        wanted: Role = "positive" if role == "positive" else "negative"
        return Candidate(source.id, text, wanted, construction, self.alternation.name, edit, group, tags)


FIXED_ROLES = "the roles cannot be exchanged: a second positive, no foil"


def _is_reversible(event: ActionClause | TwoComplements) -> bool:
    """Whether either could have the other's role, and the event would be another."""
    verb, *both = (lemma(event.roles[p], tag) for p, tag in (("verb", "VBZ"), ("first", "NNS"), ("second", "NNS")))
    if isinstance(event, TwoComplements):
        return {kind_of(word) for word in both} <= {"person"} and both[0] != both[1]
    return verb not in facts()["verbs"] and both[0] != both[1] and turns(verb, *both)


@dataclass(frozen=True)
class Builder:
    """Items of two captions and two foils (or none), always in the same order of constructions."""

    alternation: Alternation

    def __call__(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        items = []
        for group, members in grouped(accepted).items():
            texts: dict[tuple[str, str], str] = {(c.role, c.kind): c.text for c in members}
            roles = [role for role in ("positive", "negative") if any(c.role == role for c in members)]
            slots = [(role, kind) for role in roles for kind in self.alternation.constructions]
            given = [slot for slot in slots if slot not in texts]
            if len(given) > 1 or (given and given[0][0] == "negative"):
                continue  # more is missing than the caption that the source is itself
            captions = tuple(texts.get(slot, source.text) for slot in slots)
            first = members[0].tags
            tags: dict[str, Tag] = {
                "maker": self.alternation.name,
                "construction": first["construction"],
                "simplified": first["simplified"],
                "source": source.subset or "captions",
                "source_construction": first["voice"],
                "verb": first["verb"],
                "reversible": first["reversible"],
            }
            weighed = next((c.tags for c in members if "evidence" in c.tags), {})
            tags |= {name: weighed[name] for name in ("evidence", "because") if name in weighed}
            items.append(Item(source.id, group, source.images, captions, choice(2, len(captions) - 2), tags))
        return items


OTHER_ROLES = "parsed again, the roles are others"


@dataclass(frozen=True)
class RolesConfirmed:
    """A check: every written sentence is parsed again, and the same event must be found in it."""

    alternation: Alternation
    parser: str = ""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        unsure = [c for _, c in pairs if not c.tags.get("plain")]
        texts = list(dict.fromkeys(c.text for c in unsure))  # short captions are their own simplification
        docs = dict(zip(texts, parse(texts, self.parser), strict=True))
        return [None if c.tags.get("plain") or self._is_same(docs[c.text], c) else OTHER_ROLES for _, c in pairs]

    def _is_same(self, doc: Any, candidate: Candidate) -> bool:
        event = self.alternation.find(doc)
        if isinstance(event, str):
            return False
        wanted = {name: candidate.tags[name] for name in ("first", "second", "verb")}
        return event.voice == candidate.kind and {name: event.roles[name] for name in wanted} == wanted
