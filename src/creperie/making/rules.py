"""Makers by rule: proposed widely, judged by the truth layer, ranked by how likely a language model finds them.

Each kind of foil has one function that proposes edits of a parsed caption. What the truth layer finds entailed is no
foil; what is left is held to a band around the likelihood of the caption. Of the best ones `choose` takes some over
all captions, so that no edit is made too often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from creperie.bench import Tag
from creperie.lang import (
    COMPATIBLE,
    CONTRADICTED,
    UNKNOWN,
    Truth,
    exchange_truth,
    mean_zipf,
    open_wordnet,
    read_verbs_again,
    truth,
)
from creperie.making.additions import added_attributes, added_objects
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import EditSize, LengthMatched, vocabulary_followed
from creperie.making.corpus import WordCounts, corpus_of
from creperie.making.edits import CaptionEdit, other_attributes, other_objects, other_relations
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.pipeline import EVIDENCE
from creperie.making.plausibility import gaps, within_band
from creperie.making.published import PublishedReplacer, other_verbs, propose_swaps
from creperie.making.source import Captions, SourceCaption
from creperie.making.swaps import swapped_attributes, swapped_objects, swapped_phrases
from creperie.making.wording import reworded

Propose = Callable[[Any, WordCounts], Iterator[CaptionEdit]]
REPLACED: Mapping[str, Propose] = {
    "replace-object": other_objects,
    "replace-attribute": other_attributes,
    "replace-relation": other_relations,
}
SWAPPED: Mapping[str, Propose] = {
    "swap-object": swapped_objects,
    "swap-attribute": swapped_attributes,
    "swap-phrase": swapped_phrases,
}
ADDED: Mapping[str, Propose] = {"add-object": added_objects, "add-attribute": added_attributes}
EXCHANGED = {"swap-object": "names", "swap-phrase": "phrases", "swap-attribute": "attributes"}
#: What the truth layer must say of a foil; an addition is not entailed, and no more.
WANTED: Mapping[str, tuple[str, ...]] = {
    "replace": (CONTRADICTED,),
    "swap": (CONTRADICTED, UNKNOWN),
    "add": (COMPATIBLE,),
    "relation": (CONTRADICTED, UNKNOWN),
}
#: Edits of a kind that are judged, and candidates of a kind that are left to choose from.
MOST_JUDGED, MOST_KEPT = 40, 8


def replace(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:replace`: an object, an attribute or a relation replaced by one that excludes it."""
    open_wordnet()  # says now that it is missing, not after an hour
    checks = (EditSize(1, 4), LengthMatched(2), *options.model_checks)
    if options.as_published:
        return ParsedMaker(name, PublishedReplacer(name), options, checks)
    return ParsedMaker(
        name, RuleProposer(name, corpus_of(options, captions), tuple(REPLACED)), options, checks, chooses=True
    )


def vl_checklist(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:vl-checklist`: the verb replaced by any other, an attribute or object by one of its kind."""
    maker = replace(name, options, captions)
    if options.as_published:
        return maker
    kinds = ("object", "attribute", "relation")
    proposer = RuleProposer(name, corpus_of(options, captions), kinds)
    return ParsedMaker(name, proposer, options, maker.checks, chooses=True)


def swap(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:swap`: two things, attributes or phrases exchanged where that changes the scene."""
    open_wordnet()
    checks = (vocabulary_followed, *options.model_checks)
    if options.as_published:
        return ParsedMaker(name, propose_swaps, options, checks)
    return ParsedMaker(
        name, RuleProposer(name, corpus_of(options, captions), tuple(SWAPPED)), options, checks, chooses=True
    )


def add(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:add`: an object or an attribute that the caption does not say, length kept."""
    open_wordnet()
    proposer = RuleProposer(name, corpus_of(options, captions), tuple(ADDED))
    return ParsedMaker(name, proposer, options, (LengthMatched(1), *options.model_checks), chooses=True)


def _any_verb(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    for verb, _, fitted in other_verbs(doc):
        yield CaptionEdit(reworded(doc, {verb.i: fitted}), f"{verb.text} → {fitted}", verb.i)


PROPOSERS: Mapping[str, Propose] = {
    **REPLACED, **SWAPPED, **ADDED, "object": other_objects, "attribute": other_attributes, "relation": _any_verb
}  # fmt: skip


@dataclass(frozen=True)
class RuleProposer:
    """Proposes up to eight foils of each kind for a caption, the most plausible first, and says why a kind has none."""

    maker: str
    corpus: WordCounts
    kinds: tuple[str, ...]

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        doc = read_verbs_again(doc, options.parser)
        candidates: list[Candidate] = []
        missing: dict[str, str] = {}
        for kind in self.kinds:
            made, why = self._made(source, doc, kind, options)
            candidates += made
            if why:
                missing[kind] = why
        reasons = (why for why in missing.values() if why not in (NO_MATERIAL, *NOTHING.values()))
        skipped = "" if candidates else next(reasons, NO_MATERIAL)
        return Proposal(tuple(candidates), skipped, missing=missing)

    def _made(self, source: SourceCaption, doc: Any, kind: str, options: MakerOptions) -> tuple[list[Candidate], str]:
        """The candidates of a kind, or why there are none."""
        edits = list({edit.text: edit for edit in PROPOSERS[kind](doc, self.corpus)}.values())
        if not edits:
            return [], NOTHING.get(kind, NO_MATERIAL)
        if len(edits) > MOST_JUDGED:
            edits = dice_for(options.seed, self.maker, source.id).sample(edits, MOST_JUDGED)
        judged = [(edit, _truth(source, doc, kind, edit)) for edit in edits]
        wanted = WANTED.get(kind.split("-")[0], WANTED["replace"])
        foils = [one for one in judged if one[1].word in wanted]
        if not foils:
            return [], judged[0][1].reason.partition(":")[0]
        compared = zip(foils, gaps(source.text, [edit.text for edit, _ in foils], options.lm))
        width = options.band * (2 if kind.startswith(("swap", "add")) else 1)  # two places of the caption change
        close = [(edit, verdict, gap) for (edit, verdict), gap in compared if within_band(gap, options.lm, width)]
        if not close:
            return [], "no foil is about as likely as the caption"
        most = max(MOST_KEPT, options.foils)
        return [self._candidate(source, kind, *one) for one in _spread(close, most)], ""

    def _candidate(self, source: SourceCaption, kind: str, edit: CaptionEdit, verdict: Truth, gap: float) -> Candidate:
        tags: dict[str, Tag] = {
            "lm_gap": round(gap, 3),
            "frequency_gap": round(mean_zipf(edit.text) - mean_zipf(source.text), 3),
            "reversible": edit.pair is not None,
            "edit_kind": kind,
            "evidence": EVIDENCE[verdict.word],
            "because": verdict.reason,
        }
        return Candidate(source.id, edit.text, "negative", kind, self.maker, edit.change, tags=tags)


NO_MATERIAL = "nothing to change"
NOTHING = {
    "replace-object": "no thing that can be replaced",
    "replace-attribute": "no attribute or number that can be replaced",
    "replace-relation": "no preposition or verb that can be replaced",
    "swap-object": "no two things that could change places",
    "swap-attribute": "no two attributes that could change places",
    "swap-phrase": "no two phrases that could change places",
    "add-object": "no phrase that can go for another",
    "add-attribute": "no adjective that can go for another",
}


def _truth(source: SourceCaption, doc: Any, kind: str, edit: CaptionEdit) -> Truth:
    if edit.pair is not None and kind in EXCHANGED:
        return exchange_truth(doc, *edit.pair, EXCHANGED[kind])
    return truth(source.text, edit.text, source.others, doc)


def _spread(close: Sequence[tuple[CaptionEdit, Truth, float]], most: int) -> list[tuple[CaptionEdit, Truth, float]]:
    """The most plausible first, and of different places of the caption as long as there are such."""
    ranked = sorted(close, key=lambda one: abs(one[2]))
    turn: dict[int, int] = {}
    turns = []
    for edit, _, _ in ranked:
        turn[edit.place] = turn.get(edit.place, -1) + 1
        turns.append(turn[edit.place])
    order = sorted(range(len(ranked)), key=lambda k: turns[k])
    return [ranked[k] for k in order[:most]]
