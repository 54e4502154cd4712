"""Makers by rule: edits are proposed generously, judged by the rules of `creperie.lang.truth`, and ranked by a language
model.

Each kind of foil has one function that proposes edits of a parsed caption. The verdict of `truth` must be
"contradicted" for a replacement, "contradicted" or "unknown" for a swap, and "compatible" for an addition. A language
model must find the foil about as likely as the caption. `choose` then selects among the foils of all captions, so that
no edit occurs too often.
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
    ENTAILED,
    UNKNOWN,
    Reading,
    Truth,
    exchange_truth,
    inflected,
    mean_zipf,
    mended,
    open_wordnet,
    read,
    reworded_parse,
    truth,
    words,
)
from creperie.making.additions import added_attributes, added_objects
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal, dice_for
from creperie.making.checks import EditSize, LengthMatched, stem, vocabulary_followed
from creperie.making.contrasts import swapped_attributes
from creperie.making.corpus import WordCounts, corpus_of
from creperie.making.edits import CaptionEdit, other_attributes, other_objects, replaced
from creperie.making.judges import NOT_VOUCHED
from creperie.making.options import MakerOptions
from creperie.making.pipeline import EVIDENCE, ParsedMaker
from creperie.making.plausible import is_vouched
from creperie.making.published import PublishedReplacer, other_verbs, propose_swaps
from creperie.making.recounting import other_counts
from creperie.making.relating import is_vouched_relation, other_relations
from creperie.making.source import Captions, SourceCaption
from creperie.making.swaps import absurd_swaps, swapped_objects, swapped_phrases
from creperie.making.taste import distasteful
from creperie.making.trading import exchanged_counts
from creperie.models import TextScorer, load_model

#: The kind of swaps that nobody would expect, and the ending of other kinds that rules do not vouch for: made only on
#: request.
ABSURD, UNSURE = "swap-absurd", "-unsure"
Propose = Callable[[Any, WordCounts], Iterator[CaptionEdit]]
EXCHANGED = {"swap-object": "names", "swap-phrase": "phrases", "swap-attribute": "attributes", "swap-absurd": "phrases"}
#: The verdicts of the truth layer that a foil may have, by the first word of its kind (default: those of "replace").
WANTED: Mapping[str, tuple[str, ...]] = {
    "replace": (CONTRADICTED,),
    "swap": (CONTRADICTED, UNKNOWN),
    "add": (COMPATIBLE,),
    "relation": (CONTRADICTED, UNKNOWN),
}
#: Maximum number of edits of a kind that are judged, and of candidates of a kind to choose from.
MOST_JUDGED, MOST_KEPT = 24, 8


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
    "replace-count": other_counts,
    "replace-relation": other_relations,
    "swap-object": swapped_objects,
    "swap-attribute": swapped_attributes,
    "swap-phrase": swapped_phrases,
    "swap-count": exchanged_counts,
    ABSURD: absurd_swaps,
    "add-object": added_objects,
    "add-attribute": added_attributes,
    "object": other_objects,
    "attribute": other_attributes,
    "relation": _any_verb,
}
_REPLACING = (EditSize(4), LengthMatched(2))
#: The kinds of foils that each maker makes, and their checks.
RULES: Mapping[str, tuple[tuple[str, ...], tuple[Check | BatchCheck, ...]]] = {
    "rules:replace": (("replace-object", "replace-attribute", "replace-count", "replace-relation"), _REPLACING),
    "rules:swap": (("swap-object", "swap-attribute", "swap-phrase", "swap-count", ABSURD), (vocabulary_followed,)),
    "rules:add": (("add-object", "add-attribute"), (LengthMatched(1),)),
    "rules:vl-checklist": (("object", "attribute", "relation"), _REPLACING),
}


@dataclass(frozen=True)
class RuleProposer:
    """A proposer of foils by rules. For each kind it proposes up to eight foils (or `options.foils`, if that is more),
    or says why there are none. Foils whose words often occur together in the corpus come first and, among equals,
    those about as likely as the caption.
    """

    maker: str
    corpus: WordCounts
    kinds: tuple[str, ...]

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        doc = mended(doc, options.parser)
        candidates: list[Candidate] = []
        missing: dict[str, str] = {}
        for kind in self.kinds:
            if kind == ABSURD and options.plausible == "yes":
                continue
            made, why = self._made(source, doc, kind, options)
            candidates += made
            if why:
                missing[kind] = why
        reasons = (why for why in missing.values() if why not in (NO_MATERIAL, *NO_EDIT.values()))
        skipped = "" if candidates else next(reasons, NO_MATERIAL)
        return Proposal(candidates, skipped, missing=missing)

    def _made(self, source: SourceCaption, doc: Any, kind: str, options: MakerOptions) -> tuple[list[Candidate], str]:
        """Return the candidates of a kind and "" or, if there are none, an empty list and the reason."""
        every = {(edit.text, edit.refused): edit for edit in PROPOSERS[kind](doc, self.corpus)}.values()
        edits, refused = [], ""
        for edit in every:
            why = edit.refused or (distasteful(source.text, edit.text, edit.change) if options.taste else "")
            if not why and (options.plausible == "yes" and not options.judge) and self._is_unsure(source, kind, edit):
                why = NOT_VOUCHED
            if why:
                refused = refused or (why if edit.refused else f"{edit.change}, but {why}")
            else:
                edits.append(edit)
        if not edits:
            return [], refused or NO_EDIT.get(kind, NO_MATERIAL)
        width = options.band * (
            2 if kind.startswith(("swap", "add")) or kind.endswith("relation") else 4 if "count" in kind else 1
        )  # more words change
        compared = zip(edits, gaps(source.text, [edit.text for edit in edits], options.lm))
        ranked = [_Ranked(e, gap, round(self.corpus.support(e.text, source.text), 2)) for e, gap in compared]
        lowest = width * 5 / 6 if kind == "replace-object" else width
        close = [one for one in ranked if -lowest <= one.gap <= width]
        if not close:
            return [], f"{edits[0].change}, but no foil is about as likely as the caption"
        dice = dice_for(options.seed, self.maker, source.id)
        close = sorted(dice.sample(close, len(close)), key=lambda one: (-one.support, abs(one.gap)))
        return self._candidates(source, doc, kind, close[:MOST_JUDGED], options)

    def _is_unsure(self, source: SourceCaption, kind: str, edit: CaptionEdit) -> bool:
        """Return True if an edit replaces a word and neither a rule nor the corpus finds it plausible."""
        if edit.old is None:
            return False
        if kind == "replace-relation" and is_vouched_relation(edit.old, edit.change):
            return False
        if is_vouched(kind, edit.old, edit.change):
            return False
        return not self.corpus.attests(edit.text, source.text)

    def _candidates(
        self, source: SourceCaption, doc: Any, kind: str, ranked: list[_Ranked], options: MakerOptions
    ) -> tuple[list[Candidate], str]:
        """Return the candidates of a kind and "" or, if there are none, an empty list and the reason. The `ranked`
        edits become candidates, in order, until there are enough. Only edits are taken whose verdict by `truth` is
        allowed for this kind of foil. If a model will judge the foils, the verdict "unknown" is allowed as well.
        """
        wanted = WANTED.get(kind.split("-")[0], WANTED["replace"]) + ((UNKNOWN,) if options.judge else ())
        most = max(MOST_KEPT, options.foils)
        found, why = [], ""
        own = read(doc)
        for one in _spread(ranked):
            verdict = _truth(source, doc, own, kind, one.edit)
            if verdict.word in wanted:
                found.append(self._candidate(source, kind, one, verdict, bool(options.judge)))
            else:
                why = why or f"{_edit_text(one.edit)}, but {verdict.reason.partition(':')[0]}"
            if len(found) == most:
                break
        return found, "" if found else why

    def _candidate(self, source: SourceCaption, kind: str, one: _Ranked, verdict: Truth, judged: bool) -> Candidate:
        edit = one.edit
        unsure = self._is_unsure(source, kind, edit)
        tags: dict[str, Tag] = {
            "lm_gap": round(one.gap, 3),
            "support": one.support,
            "length_gap": len(edit.text) - len(source.text),
            "frequency_gap": round(mean_zipf(edit.text) - mean_zipf(source.text), 3),
            "reversible": edit.pair is not None,
            "edit_kind": kind,
            "evidence": EVIDENCE[verdict.word],
            "because": verdict.reason,
        }
        tags |= {"plausible": "unsure"} if unsure else {}
        name = f"{kind}{UNSURE}" if unsure and not judged else kind
        return Candidate(source.id, edit.text, "negative", name, self.maker, edit.change, tags=tags)


NO_MATERIAL = "nothing to change"
#: Kind of foil → the reason if no edit is proposed.
NO_EDIT = {
    "replace-object": "no thing that can be replaced",
    "replace-attribute": "no attribute or number that can be replaced",
    "replace-count": "no number, and nothing of which there could be more",
    "replace-relation": "no preposition or verb that can be replaced",
    "swap-object": "no two things that could change places",
    "swap-attribute": "no two attributes that could change places",
    "swap-phrase": "no two phrases that could change places",
    "swap-count": "no two numbers that could change places",
    "add-object": "no phrase that an added object can replace",
    "add-attribute": "no adjective that an added one can replace",
}


@cache
def text_scorer(uri: str) -> TextScorer:
    """Return the text scorer at this URI, loaded once."""
    scorer = load_model(uri)
    if not isinstance(scorer, TextScorer):
        raise UsageError(
            f"the model {uri} does not score texts", hint="pass a blind model as `lm=`, such as blind:grammar"
        )
    return scorer


def gaps(source: str, foils: Sequence[str], lm: str) -> list[float]:
    """Return log P(foil) − log P(source) for each foil: negative if the foil is less likely; 0 without a model."""
    if not lm or not foils:
        return [0.0] * len(foils)
    scores: list[float] = text_scorer(lm).score_texts([source, *foils]).tolist()
    return [score - scores[0] for score in scores[1:]]


def _truth(source: SourceCaption, doc: Any, own: Reading, kind: str, edit: CaptionEdit) -> Truth:
    """Return the verdict of `truth` on the foil that an edit makes. `own` is the reading of the source caption: its
    things and facts.

    The foil is parsed. If the edit replaces only one word, the parse of the source is used instead, with the new word
    in it. If neither entailment nor contradiction is found, two more rules apply. If the edit states why its foil is
    false (`told`), the verdict is "contradicted" or, for a swap, "unknown". For any other swap, the two things are
    exchanged in the reading of the source, and the verdict on the result is returned.
    """
    known = reworded_parse(doc, {edit.place: edit.word}) if edit.word else None
    fresh = truth(source.text, edit.text, source.others, own, known)
    others = {stem(w) for text in source.others for w in words(text)}
    mentioned = any(stem(w) in others for w in words(edit.change.partition(" → ")[2]))
    if edit.told and not mentioned and fresh.word not in (ENTAILED, CONTRADICTED):
        return Truth(UNKNOWN if edit.pair else CONTRADICTED, f"{edit.told}: {edit.change}")
    if edit.pair is None or kind not in EXCHANGED or fresh.word in (ENTAILED, CONTRADICTED):
        return fresh
    verdict = exchange_truth(doc, *edit.pair, EXCHANGED[kind])
    # a parsed foil that is compatible with the caption outweighs "entailed"
    return verdict if verdict.word != ENTAILED or fresh.word == UNKNOWN else fresh


def _edit_text(edit: CaptionEdit) -> str:
    """Return an edit in words, such as `*queen* and *minister* could change places` or `dog → cat`."""
    one, _, other = edit.change.partition(" ↔ ")
    return f"*{one}* and *{other}* could change places" if other else edit.change


@dataclass(frozen=True)
class _Ranked:
    edit: CaptionEdit
    gap: float
    support: float


def _spread(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Return the edits in another order: first the best-ranked edit of each place in the caption, then the second of
    each place, and so on.
    """
    used: Counter[int] = Counter()
    turns = []
    for one in ranked:
        turns.append((used[one.edit.place], one))
        used[one.edit.place] += 1
    return [one for _, one in sorted(turns, key=lambda turn: turn[0])]
