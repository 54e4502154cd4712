"""Makers by grammar: one event in two constructions, and both again with the arguments exchanged.

    grammar:passive       A player hits a ball.               A ball is hit by a player.
    grammar:dative        A woman gives the girl a book.      A woman gives a book to the girl.
    grammar:with-against  A boy hits the fence with a stick.  A boy hits a stick against the fence.

Each source gives an item of two captions and two foils, and a second item in which the arguments are reduced to their
heads. Foils exchange the roles only if this is plausible: both nouns are animate and the verb is reversible, or a
language model finds the exchange about as likely as the caption. The option `lm` names that model; the default trigram
model is not used for this. If no exchange is plausible, the second construction is a second positive without a foil.
With `as_published`, all roles are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.bench import Item, Tag, choice
from creperie.lang import is_reciprocal, kind_of, lemma, mended, open_wordnet, parse
from creperie.making.candidate import Candidate, Proposal, Role
from creperie.making.corpus import WordCounts, corpus_of
from creperie.making.events import (
    TwoComplements,
    find_contact,
    find_event,
    find_giving,
    said_actively,
    said_first,
    said_passively,
    said_second,
)
from creperie.making.options import TRIGRAM, MakerOptions
from creperie.making.phrases import GrammarEvent, Phrase
from creperie.making.pipeline import ParsedMaker, grouped, with_source
from creperie.making.plausible import ANIMATE, may_be_done
from creperie.making.rules import RULES, RuleProposer, gaps
from creperie.making.source import Captions, SourceCaption
from creperie.making.verbs import is_common

FIXED_ROLES = "the roles cannot be exchanged: a second positive without foils"


@dataclass(frozen=True)
class Alternation:
    """A pair of constructions for one event, such as active and passive. Its methods propose the event in the
    construction that the source does not use, propose foils in both, and build the items.
    """

    name: str
    find: Callable[[Any], Any]  #: a document → an event, or the reason why there is none
    say: Mapping[str, Callable[[Any, bool], str]]  #: construction → the function that writes it, in the order of items

    def propose(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        """Return a proposal with the event in the other construction, and with foils in both constructions, each also
        in a simplified form.
        """
        event = self.find(mended(doc, options.parser))
        if isinstance(event, str):
            return Proposal(skipped=event)
        foils = options.as_published or self._exchanges(source, event, options)
        every = [c for simple in (False, True) for c in self._candidates(source, event, simple)]
        candidates = [c for c in every if foils or c.role == "positive"]
        return Proposal(candidates, missing={} if foils else {self.name: FIXED_ROLES})

    def _exchanges(self, source: SourceCaption, event: GrammarEvent, options: MakerOptions) -> bool:
        """Return True if exchanging the roles is plausible, judged by a table of verbs and nouns or by a language
        model.
        """
        if _is_reversible(event):
            return True
        if options.lm in ("", TRIGRAM):
            return False
        foil = self.say[event.voice](event.exchanged(), False)
        return abs(gaps(source.text, [foil], options.lm)[0]) <= options.band

    def _candidates(self, source: SourceCaption, event: GrammarEvent, simple: bool) -> Iterator[Candidate]:
        """Yield all sentences about the event except the source caption itself, which `items` adds."""
        name = self.name.removeprefix("grammar:")
        group = f"{name}-simplified" if simple else name
        roles: tuple[tuple[Role, GrammarEvent], ...] = (("positive", event), ("negative", event.exchanged()))
        for role, meant in roles:
            tags: dict[str, Tag] = {"construction": name, "simplified": simple, **meant.roles}
            tags |= {"reversible": _is_reversible(meant)} | ({"plain": True} if meant.is_plain else {})
            for construction, say in self.say.items():
                text = say(meant, simple)
                own = role == "positive" and construction == event.voice
                if own and (not simple or text.split() == source.text.split()):
                    continue
                change = (
                    f"{event.voice} → {construction}"
                    if role == "positive"
                    else f"{meant.second.head} ↔ {meant.first.head}, {construction}"
                )
                yield Candidate(source.id, text, role, construction, self.name, change, group, tags)

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return items with two true captions, one per construction, and with two foils or none. The two constructions
        always come in the same order.
        """
        items = []
        for group, members in grouped(accepted).items():
            texts: dict[tuple[str, str], str] = {(c.role, c.kind): c.text for c in members}
            roles = [role for role in ("positive", "negative") if any(c.role == role for c in members)]
            slots = [(role, kind) for role in roles for kind in self.say]
            given = [slot for slot in slots if slot not in texts]
            if len(given) > 1 or (given and given[0][0] == "negative"):
                continue  # more is missing than the caption that equals the source
            captions = tuple(texts.get(slot, source.text) for slot in slots)
            first = members[0].tags
            tags = {name: first[name] for name in ("construction", "simplified", "verb", "reversible")}
            tags |= {"maker": self.name, "source": source.subset or "captions", "source_construction": first["voice"]}
            weighed = next((c.tags for c in members if "evidence" in c.tags), {})
            tags |= {name: weighed[name] for name in ("evidence", "because") if name in weighed}
            items.append(Item(source.id, group, source.images, captions, choice(2, len(captions) - 2), tags))
        return items


def _is_reversible(event: GrammarEvent) -> bool:
    """Return True if the two arguments could exchange their roles, and the result would describe a different event."""
    both = [lemma(phrase.head, "NNS") for phrase in (event.first, event.second)]
    if both[0] == both[1]:
        return False
    if isinstance(event, TwoComplements):
        return {kind_of(word) for word in both} == {"person"}
    if is_reciprocal(event.verb):
        return False
    who = [phrase for phrase in (event.first, event.second) if not _is_called_the(phrase)]
    sorts = kind_of(both[0]), kind_of(both[1])
    many, said = (event.first.plural, event.second.plural), (*event.first.words, *event.second.words)
    return len(who) == 2 and {*sorts} <= ANIMATE and may_be_done([event.verb], both, sorts, many, said)


def _is_called_the(phrase: Phrase) -> bool:
    """Return True if a phrase is a name with `the`, as places may have: `the Pont de Verne`."""
    return phrase.words[0].lower() == "the" and phrase.words[-1][:1].isupper() and not is_common(phrase.head)


ALTERNATIONS = {
    alternation.name: alternation
    for alternation in (
        Alternation("grammar:passive", find_event, {"active": said_actively, "passive": said_passively}),
        Alternation("grammar:dative", find_giving, {"ditransitive": said_first, "dative": said_second}),
        Alternation("grammar:with-against", find_contact, {"with": said_first, "against": said_second}),
    )
}


def grammar_maker(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """Return the maker `grammar:passive`, `grammar:dative` or `grammar:with-against`."""
    alternation = ALTERNATIONS[name]
    checks = (RolesConfirmed(alternation, options.parser),)
    return ParsedMaker(name, options, alternation.propose, checks, alternation.items, whole=True)


OTHER_ROLES = "a second parse finds other roles"


@dataclass(frozen=True)
class RolesConfirmed:
    """A check that parses every written sentence again, and rejects it if the parse gives another event."""

    alternation: Alternation
    parser: str = ""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> list[str | None]:
        unsure = [c for _, c in pairs if not c.tags.get("plain")]
        texts = list(dict.fromkeys(c.text for c in unsure))  # a short caption may equal its simplified form
        docs = dict(zip(texts, parse(texts, self.parser), strict=True))
        return [None if c.tags.get("plain") or self._is_same(docs[c.text], c) else OTHER_ROLES for _, c in pairs]

    def _is_same(self, doc: Any, candidate: Candidate) -> bool:
        event = self.alternation.find(mended(doc, self.parser))
        if isinstance(event, str):
            return False
        same = all(event.roles[name] == candidate.tags[name] for name in ("first", "second", "verb"))
        return same and event.voice == candidate.kind


KINDS = ("rules:replace", "rules:swap", "rules:add")
NOT_FALSE = "an addition may be true: no other caption of the image and no judge says otherwise (rules:add makes it)"


def every_kind(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """Return the maker `all`, which proposes the candidates of every rule maker and every grammar maker."""
    open_wordnet()
    proposer = AllKinds(corpus_of(options, captions))
    return ParsedMaker(name, options, proposer, build=build_items, chooses=True)


@dataclass(frozen=True)
class AllKinds:
    """The proposer of the maker `all`, which collects the candidates of all rule makers and grammar makers."""

    corpus: WordCounts

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        candidates: list[Candidate] = []
        missing: dict[str, str] = {}
        for maker in KINDS:
            if maker == "rules:add" and not (source.others or options.judge):
                missing |= dict.fromkeys(RULES[maker][0], NOT_FALSE)
                continue
            proposal = RuleProposer(maker, self.corpus, RULES[maker][0])(source, doc, options)
            candidates += proposal.candidates
            missing |= proposal.missing
        for name, alternation in ALTERNATIONS.items():
            proposal = alternation.propose(source, doc, options)
            long = [c for c in proposal.candidates if not c.tags["simplified"]]
            wrong = any(RolesConfirmed(alternation, options.parser).review([(source, c) for c in long]))
            candidates += [] if wrong else long
            missing |= proposal.missing
            if wrong or not long:
                missing[name] = OTHER_ROLES if wrong else proposal.skipped
        return Proposal(candidates, missing=missing)


def build_items(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """Return the items for candidates of all kinds, each built by the maker of its kind."""
    items = with_source(source, [c for c in accepted if c.maker in KINDS])
    for name, alternation in ALTERNATIONS.items():
        items += alternation.items(source, [c for c in accepted if c.maker == name])
    return items
