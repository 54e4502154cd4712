"""The rebuild of ARO and CREPE on one set of captions: replace, swap, negate, shuffle, one foil each, two choices."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

from creperie.lang import open_wordnet
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.negate import propose_negations
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker, ProposeOne
from creperie.making.replace import Replacer
from creperie.making.shuffle import SHUFFLES, shuffled
from creperie.making.slots import corpus_slots
from creperie.making.source import Captions, SourceCaption
from creperie.making.swap import Swapper, propose_swaps


def rebuild(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:rebuild`."""
    open_wordnet()
    slots = corpus_slots(options, captions)
    swaps = propose_swaps if options.as_published else Swapper(slots)
    return ParsedMaker(name, Rebuilder(Replacer("rules:replace", slots), swaps), options, options.rule_checks)


@dataclass(frozen=True)
class Rebuilder:
    """One foil of each type, drawn from what its rule proposes."""

    replace: ProposeOne
    swap: ProposeOne

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng = dice_for(options.seed, "rules:rebuild", source.id)
        candidates = []
        for type_, rule in {"replace": self.replace, "swap": self.swap, "negate": propose_negations}.items():
            found = rule(source, doc, options).candidates
            if found:
                candidates.append(changed(rng.choice(found), maker="rules:rebuild", group=type_))
        kind = rng.choice([k for k in SHUFFLES if k != "shuffle-all"])
        text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
        edit = kind.replace("-", " ")
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:rebuild", edit, "shuffle"))
        return Proposal(tuple(candidates))
