"""The maker `all`: every kind of foil and second positive that a caption has the material for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creperie.bench import Item
from creperie.lang import open_wordnet
from creperie.making.candidate import Candidate, Proposal
from creperie.making.corpus import WordCounts, corpus_of
from creperie.making.grammar import CONTACT, GIVING, OTHER_ROLES, VOICE, Builder, Proposer, RolesConfirmed
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.pipeline import with_source
from creperie.making.rules import ADDED, REPLACED, SWAPPED, RuleProposer
from creperie.making.source import Captions, SourceCaption

ALTERNATIONS = {alternation.name: alternation for alternation in (VOICE, GIVING, CONTACT)}
RULES = {"rules:replace": tuple(REPLACED), "rules:swap": tuple(SWAPPED), "rules:add": tuple(ADDED)}


def every_kind(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `all`."""
    open_wordnet()
    proposer = AllKinds(corpus_of(options, captions))
    return ParsedMaker(name, proposer, options, options.model_checks, build=build_items, chooses=True)


@dataclass(frozen=True)
class AllKinds:
    """Proposes what every rule maker and every grammar maker proposes."""

    corpus: WordCounts

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        candidates: list[Candidate] = []
        missing: dict[str, str] = {}
        for maker, kinds in RULES.items():
            proposal = RuleProposer(maker, self.corpus, kinds)(source, doc, options)
            candidates += proposal.candidates
            missing |= proposal.missing
        for name, alternation in ALTERNATIONS.items():
            proposal = Proposer(alternation)(source, doc, options)
            long = [c for c in proposal.candidates if not c.tags["simplified"]]
            wrong = any(RolesConfirmed(alternation, options.parser).review([(source, c) for c in long]))
            candidates += [] if wrong else long
            missing |= proposal.missing
            if wrong or not long:
                missing[name] = OTHER_ROLES if wrong else proposal.skipped
        return Proposal(tuple(candidates), missing=missing)


def build_items(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """Items of each kind, as its own maker builds them."""
    items = with_source(source, [c for c in accepted if c.maker in RULES])
    for name, alternation in ALTERNATIONS.items():
        items += Builder(alternation)(source, [c for c in accepted if c.maker == name])
    return items
