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
    checks = (RolesConfirmed(options.parser), *options.model_checks)
    return ParsedMaker(alternation.name, propose, options, checks, Builder(alternation), whole=True, chunk=1024)


@dataclass(frozen=True)
class Proposer:
    """Proposes the other construction and the foils of both, long and simplified."""

    alternation: Alternation

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        event = self.alternation.find(doc)
        if isinstance(event, str):
            return Proposal(skipped=event)
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
    """A check: every written sentence is parsed again, and the parser must find the roles that were meant."""

    parser: str = ""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        unsure = [c for _, c in pairs if not c.tags.get("plain")]
        texts = list(dict.fromkeys(c.text for c in unsure))  # short captions are their own simplification
        docs = dict(zip(texts, parse(texts, self.parser), strict=True))
        return [None if c.tags.get("plain") or _holds(docs[c.text], c) else OTHER_ROLES for _, c in pairs]


def _holds(doc: Any, candidate: Candidate) -> bool:
    tests = {
        "active": _is_active,
        "passive": _is_passive,
        "ditransitive": _is_ditransitive,
        "dative": _is_linked("to", "for"),
        "with": _is_linked("with"),
        "against": _is_linked("against"),
    }
    return tests[candidate.kind](doc, str(candidate.tags["first"]), str(candidate.tags["second"]))


def _verbs(doc: Any) -> list[Any]:
    """The root verb, or participles on a root noun."""
    root = next((t for t in doc if t.dep_ == "ROOT"), None)
    if root is None:
        return []
    return [root] if root.tag_.startswith("VB") else [c for c in root.children if c.dep_ == "acl"]


def _child(token: Any, *relations: str) -> str:
    return next((c.text.lower() for c in token.children if c.dep_ in relations), "")


def _subject(verb: Any, relation: str) -> str:
    return str(verb.head.text.lower()) if verb.dep_ == "acl" else _child(verb, relation)


def _is_active(doc: Any, agent: str, patient: str) -> bool:
    return any(_same(_subject(v, "nsubj"), agent) and _same(_child(v, "dobj"), patient) for v in _verbs(doc))


def _is_passive(doc: Any, agent: str, patient: str) -> bool:
    for verb in _verbs(doc):
        by = next((c for c in verb.children if c.dep_ == "agent"), None)
        if by is not None and _same(_subject(verb, "nsubjpass"), patient) and _same(_child(by, "pobj"), agent):
            return True
    return False


def _is_ditransitive(doc: Any, recipient: str, thing: str) -> bool:
    """Both are complements of one verb, in this order; which of two objects is the recipient, order alone tells."""
    for verb in (t for t in doc if t.tag_.startswith("VB")):
        found = [c.text.lower() for c in verb.rights if c.dep_ in ("dative", "dobj", "npadvmod", "oprd", "iobj")]
        if len(found) == 2 and _same(found[0], recipient) and _same(found[1], thing):
            return True
    return False


def _is_linked(*links: str) -> Callable[[Any, str, str], bool]:
    """`b to a`, `a with b`, `b against a`: an object, then a preposition with its own."""

    def test(doc: Any, first: str, second: str) -> bool:
        thing, governed = (first, second) if "with" in links else (second, first)
        for verb in (t for t in doc if t.tag_.startswith("VB")):
            for noun in (c for c in verb.rights if c.dep_ == "dobj" and _same(c.text.lower(), thing)):
                after = [p for p in (*verb.rights, *noun.rights) if p.text.lower() in links]
                if any(_same(_child(p, "pobj"), governed) for p in after):
                    return True
        return False

    return test


_CASES = {"me": "i", "him": "he", "her": "she", "us": "we", "them": "they"}


def _same(found: str, meant: str) -> bool:
    return _CASES.get(found, found) == _CASES.get(meant, meant)
