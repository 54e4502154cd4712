"""Makers by rule: edits are proposed widely, judged by the truth layer, and ranked by a language model.

Each kind of foil has one function that proposes edits of a parsed caption. The truth layer must find a replacement
contradicted by the caption, a swap contradicted or unknown, and an addition compatible. A language model must find the
foil about as likely as the caption. `choose` then selects among the foils of all captions, so that no edit occurs too
often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.bench import Tag
from creperie.core import UsageError
from creperie.lang import (
    COMPATIBLE,
    CONTRADICTED,
    UNKNOWN,
    Truth,
    exchange_truth,
    inflected,
    mean_zipf,
    open_wordnet,
    read_verbs_again,
    truth,
)
from creperie.making.additions import added_attributes, added_objects
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal, dice_for
from creperie.making.checks import EditSize, LengthMatched, vocabulary_followed
from creperie.making.corpus import WordCounts, corpus_of
from creperie.making.edits import CaptionEdit, other_attributes, other_objects, other_relations, replaced
from creperie.making.options import MakerOptions
from creperie.making.pipeline import EVIDENCE, ParsedMaker
from creperie.making.published import PublishedReplacer, other_verbs, propose_swaps
from creperie.making.source import Captions, SourceCaption
from creperie.making.swaps import swapped_attributes, swapped_objects, swapped_phrases
from creperie.models import TextScorer, load_model

Propose = Callable[[Any, WordCounts], Iterator[CaptionEdit]]
EXCHANGED = {"swap-object": "names", "swap-phrase": "phrases", "swap-attribute": "attributes"}
#: The verdicts of the truth layer that a foil may have, by the first word of its kind (default: those of "replace").
WANTED: Mapping[str, tuple[str, ...]] = {
    "replace": (CONTRADICTED,),
    "swap": (CONTRADICTED, UNKNOWN),
    "add": (COMPATIBLE,),
    "relation": (CONTRADICTED, UNKNOWN),
}
#: How many of a foil's new pairs of neighbouring words must be in the corpus: for a thing the first pair; for a verb
#: those with its subject and its object; for kinds that are not listed, none.
ATTESTED = {"replace-object": 1, "replace-relation": 2, "swap-object": 1, "swap-phrase": 1}
#: Maximum number of edits of a kind that are judged, and of candidates of a kind to choose from.
MOST_JUDGED, MOST_KEPT = 40, 8


def rule_maker(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """Return the maker `rules:replace`, `rules:vl-checklist`, `rules:swap` or `rules:add`."""
    open_wordnet()  # fails now if WordNet is missing, not after an hour
    kinds, checks = RULES[name]
    if options.as_published and name != "rules:add":
        propose = propose_swaps if name == "rules:swap" else PublishedReplacer(name, kinds)
        return ParsedMaker(name, options, propose, checks)
    return ParsedMaker(name, options, RuleProposer(name, corpus_of(options, captions), kinds), checks, chooses=True)


def _any_verb(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    for verb, new in other_verbs(doc):
        head, _, rest = new.partition(" ")
        yield replaced(doc, [verb], " ".join(filter(None, (inflected(head, verb.tag_), rest))))


PROPOSERS: Mapping[str, Propose] = {
    "replace-object": other_objects,
    "replace-attribute": other_attributes,
    "replace-relation": other_relations,
    "swap-object": swapped_objects,
    "swap-attribute": swapped_attributes,
    "swap-phrase": swapped_phrases,
    "add-object": added_objects,
    "add-attribute": added_attributes,
    "object": other_objects,
    "attribute": other_attributes,
    "relation": _any_verb,
}
_REPLACING = (EditSize(4), LengthMatched(2))
#: The kinds of foils that each maker makes, and their checks.
RULES: Mapping[str, tuple[tuple[str, ...], tuple[Check | BatchCheck, ...]]] = {
    "rules:replace": (("replace-object", "replace-attribute", "replace-relation"), _REPLACING),
    "rules:swap": (("swap-object", "swap-attribute", "swap-phrase"), (vocabulary_followed,)),
    "rules:add": (("add-object", "add-attribute"), (LengthMatched(1),)),
    "rules:vl-checklist": (("object", "attribute", "relation"), _REPLACING),
}


@dataclass(frozen=True)
class RuleProposer:
    """A proposer of up to eight foils per kind (or `foils`, if more), the most plausible first; for a kind without
    foils it gives the reason.
    """

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
        reasons = (why for why in missing.values() if why not in (NO_MATERIAL, *NO_EDIT.values()))
        skipped = "" if candidates else next(reasons, NO_MATERIAL)
        return Proposal(candidates, skipped, missing=missing)

    def _made(self, source: SourceCaption, doc: Any, kind: str, options: MakerOptions) -> tuple[list[Candidate], str]:
        """Return the candidates of a kind, or an empty list and the reason why there are none."""
        edits = list({edit.text: edit for edit in PROPOSERS[kind](doc, self.corpus)}.values())
        if not edits:
            return [], NO_EDIT.get(kind, NO_MATERIAL)
        edits = [e for e in edits if self.corpus.attests(e.text, source.text, ATTESTED.get(kind, 0))]
        if not edits:
            return [], "no foil whose neighbouring words are in the corpus"
        if len(edits) > MOST_JUDGED:
            edits = dice_for(options.seed, self.maker, source.id).sample(edits, MOST_JUDGED)
        judged = [(edit, _truth(source, doc, kind, edit)) for edit in edits]
        wanted = WANTED.get(kind.split("-")[0], WANTED["replace"])
        foils = [one for one in judged if one[1].word in wanted]
        if not foils:
            return [], judged[0][1].reason.partition(":")[0]
        compared = zip(foils, gaps(source.text, [edit.text for edit, _ in foils], options.lm))
        width = options.band * (2 if kind.startswith(("swap", "add")) else 1)  # two places of the caption change
        close = [(edit, verdict, gap) for (edit, verdict), gap in compared if abs(gap) <= width]
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
#: Kind of foil → the reason if no edit is proposed.
NO_EDIT = {
    "replace-object": "no thing that can be replaced",
    "replace-attribute": "no attribute or number that can be replaced",
    "replace-relation": "no preposition or verb that can be replaced",
    "swap-object": "no two things that could change places",
    "swap-attribute": "no two attributes that could change places",
    "swap-phrase": "no two phrases that could change places",
    "add-object": "no phrase that an added object can replace",
    "add-attribute": "no adjective that an added one can replace",
}


@cache
def text_scorer(uri: str) -> TextScorer:
    """Return the text scorer of this URI, loaded once."""
    scorer = load_model(uri)
    if not isinstance(scorer, TextScorer):
        raise UsageError(f"{uri} does not score texts", hint="pass a blind model as `lm=`, such as blind:grammar")
    return scorer


def gaps(source: str, foils: Sequence[str], lm: str) -> list[float]:
    """Return log P(foil) − log P(source) for each foil: negative if the foil is less likely; 0 without a model."""
    if not lm or not foils:
        return [0.0] * len(foils)
    scores: list[float] = text_scorer(lm).score_texts([source, *foils]).tolist()
    return [score - scores[0] for score in scores[1:]]


def _truth(source: SourceCaption, doc: Any, kind: str, edit: CaptionEdit) -> Truth:
    if edit.pair is not None and kind in EXCHANGED:
        return exchange_truth(doc, *edit.pair, EXCHANGED[kind])
    return truth(source.text, edit.text, source.others, doc)


def _spread(close: Sequence[tuple[CaptionEdit, Truth, float]], most: int) -> list[tuple[CaptionEdit, Truth, float]]:
    """Return up to `most` edits, the most plausible first, alternating between different places of the caption."""
    used: Counter[int] = Counter()
    turns = []
    for one in sorted(close, key=lambda one: abs(one[2])):
        turns.append((used[one[0].place], one))
        used[one[0].place] += 1
    return [one for _, one in sorted(turns, key=lambda turn: turn[0])[:most]]
