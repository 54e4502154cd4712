"""The rebuild of ARO and CREPE on one set of captions: replace, swap, negate, shuffle, one foil each, two choices."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from creperie.lang import open_wordnet
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.negate import propose_negations
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.replace import propose_replacements
from creperie.making.shuffle import SHUFFLES, shuffled
from creperie.making.source import Captions, SourceCaption
from creperie.making.swap import propose_swaps


def rebuild(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:rebuild`."""
    open_wordnet()
    return ParsedMaker(name, _propose, options, options.model_checks)


def _propose(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """One foil of each type, drawn from what its rule proposes."""
    rng = dice_for(options.seed, "rules:rebuild", source.id)
    rules = {"replace": propose_replacements, "swap": propose_swaps, "negate": propose_negations}
    candidates = []
    for type_, rule in rules.items():
        found = rule(source, doc, options).candidates
        if found:
            candidates.append(changed(rng.choice(found), maker="rules:rebuild", group=type_))
    kind = rng.choice([k for k in SHUFFLES if k != "shuffle-all"])
    text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
    candidates.append(Candidate(source.id, text, "negative", kind, "rules:rebuild", kind.replace("-", " "), "shuffle"))
    return Proposal(tuple(candidates))
