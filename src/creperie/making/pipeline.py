"""A maker at work: fit sources, proposals, checks, verdicts. Chunk by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from creperie.bench import Item, Tag, choice
from creperie.core import MissingExtraError
from creperie.lang import COMPATIBLE, CONTRADICTED, ENTAILED, UNKNOWN, Truth, tidy_together, truth
from creperie.making.candidate import BatchCheck, Candidate, Check, Maker, Proposal
from creperie.making.checks import ALWAYS, why_unfit, word_key
from creperie.making.source import SourceCaption

#: How sure it is that a foil is false, by the word of the truth layer.
EVIDENCE = {CONTRADICTED: "likely", UNKNOWN: "unchecked", COMPATIBLE: "not entailed"}


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """A candidate and why it was rejected; no reason: it was accepted."""

    candidate: Candidate
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """All that happened to one source."""

    source: str
    skipped: str = ""
    verdicts: tuple[CandidateVerdict, ...] = ()
    calls: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)  #: why a kind of foil is not there

    @property
    def accepted(self) -> list[Candidate]:
        return [v.candidate for v in self.verdicts if not v.reason]


def work(maker: Maker, sources: Sequence[SourceCaption]) -> list[SourceOutcome]:
    """The outcomes of some sources, in order."""
    unfit = {s.id: reason for s in sources if (reason := why_unfit(s.text))}
    fit = [s for s in sources if s.id not in unfit]
    proposals = dict(zip((s.id for s in fit), maker.propose(fit), strict=True)) if fit else {}
    verdicts = judge(maker, fit, proposals)
    outcomes = []
    for s in sources:
        if s.id in unfit:
            outcomes.append(SourceOutcome(s.id, unfit[s.id]))
            continue
        skipped = proposals[s.id].skipped or ("" if verdicts[s.id] else "nothing to change")
        proposal = proposals[s.id]
        outcomes.append(SourceOutcome(s.id, skipped, tuple(verdicts[s.id]), proposal.calls, proposal.missing))
    return outcomes


def judge(
    maker: Maker, sources: Sequence[SourceCaption], proposals: dict[str, Proposal]
) -> dict[str, list[CandidateVerdict]]:
    """Every candidate with its verdict, by source."""
    pairs = [(s, c) for s in sources for c in proposals[s.id].candidates]
    reasons = [c.refused for _, c in pairs]
    for check in (*ALWAYS, *maker.checks):
        left = [k for k, reason in enumerate(reasons) if not reason]
        for k, reason in zip(left, _applied(check, [pairs[k] for k in left]), strict=True):
            reasons[k] = reason or ""
    verdicts: dict[str, list[CandidateVerdict]] = {s.id: [] for s in sources}
    published = bool(maker.settings.get("as_published"))
    for (s, c), reason in zip(pairs, reasons):
        verdicts[s.id].append(CandidateVerdict(c, reason) if reason or published else with_evidence(s, c))
    return {key: _consistent(found, maker.whole) for key, found in verdicts.items()}


def with_evidence(source: SourceCaption, candidate: Candidate) -> CandidateVerdict:
    """Return the verdict of the truth layer on a foil: rejected if its caption entails it, else with tags that say how
    sure it is that it is false. Makers that asked the layer themselves have set the tags."""
    if candidate.role == "positive" or "evidence" in candidate.tags:
        return CandidateVerdict(candidate)
    try:
        verdict = truth(source.text, candidate.text, source.others)
    except MissingExtraError:
        verdict = Truth(UNKNOWN, "the packages of the truth layer are not installed")
    if verdict.word == ENTAILED:
        return CandidateVerdict(candidate, f"true as well: {verdict.reason.partition(':')[0]}")
    tags = {**candidate.tags, "evidence": EVIDENCE[verdict.word], "because": verdict.reason}
    return CandidateVerdict(replace(candidate, tags=tags))


def _applied(check: Check | BatchCheck, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> Sequence[str | None]:
    if isinstance(check, BatchCheck):
        return check.review(pairs)
    return [check(s, c) for s, c in pairs]


def _consistent(verdicts: list[CandidateVerdict], whole: bool) -> list[CandidateVerdict]:
    """No two captions of an item alike; where a group is whole or nothing, one reject takes the others along."""
    if len(verdicts) < 2:
        return verdicts
    told: list[CandidateVerdict] = []
    true: dict[str, set[tuple[str, ...]]] = {}
    seen: dict[str, set[tuple[str, ...]]] = {}
    for v in sorted(verdicts, key=lambda v: v.candidate.role != "positive"):
        group, key = v.candidate.subset, word_key(v.candidate.text)
        if not v.reason and key in true.get(group, ()):
            v = CandidateVerdict(v.candidate, "equal to a true caption")
        elif not v.reason and key in seen.get(group, ()):
            v = CandidateVerdict(v.candidate, "duplicate")
        if not v.reason:
            seen.setdefault(group, set()).add(key)
            if v.candidate.role == "positive":
                true.setdefault(group, set()).add(key)
        told.append(v)
    if whole:
        broken = {v.candidate.subset for v in told if v.reason}
        told = [
            CandidateVerdict(v.candidate, "incomplete item") if not v.reason and v.candidate.subset in broken else v
            for v in told
        ]
    order = {id(v.candidate): k for k, v in enumerate(verdicts)}
    return sorted(told, key=lambda v: order[id(v.candidate)])


def chunks(sources: Sequence[SourceCaption], size: int) -> list[Sequence[SourceCaption]]:
    """Sources cut into chunks.

    >>> [len(c) for c in chunks([SourceCaption(str(i), "") for i in range(5)], 2)]
    [2, 2, 1]
    """
    return [sources[i : i + size] for i in range(0, len(sources), size)]


@dataclass
class Tally:
    """Yields by stage: sources, why they were skipped, candidates, why they were rejected, items by subset."""

    sources: int = 0
    made: int = 0
    calls: int = 0
    items: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    subsets: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    missing: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, outcome: SourceOutcome) -> None:
        self.sources += 1
        self.calls += outcome.calls
        if outcome.skipped:
            self.skipped[outcome.skipped] += 1
        for name, why in outcome.missing.items():
            self.missing.setdefault(name, Counter())[why] += 1
        for v in outcome.verdicts:
            kind = self.kinds.setdefault(v.candidate.kind, {"proposed": 0, "made": 0})
            kind["proposed"] += 1
            if v.reason:
                self.reasons[v.reason] += 1
            else:
                kind["made"] += 1
                self.made += 1

    def add_item(self, item: Item) -> None:
        self.items += 1
        self.subsets[item.subset] += 1
        self.edits[str(item.tags.get("edit", ""))] += 1

    @property
    def report(self) -> dict[str, Any]:
        return {
            "sources": self.sources,
            "skipped": dict(self.skipped.most_common()),
            "made": self.made,
            "rejected": self.reasons.total(),
            "reasons": dict(self.reasons.most_common()),
            "calls": self.calls,
            "items": self.items,
            "subsets": dict(self.subsets),
            "kinds": self.kinds,
            "missing": {kind: dict(why.most_common()) for kind, why in self.missing.items()},
            "composition": self.composition,
        }

    @property
    def composition(self) -> dict[str, Any]:
        """What the items are made of: the share of each kind, and how often the same edit comes again."""
        total, top = max(self.items, 1), self.edits.most_common(20)
        return {
            "shares": {subset: n / total for subset, n in self.subsets.items()},
            "edits": len(self.edits),
            "most_frequent": {edit: n / total for edit, n in top[:5]},
            "top_20_share": sum(n for _, n in top) / total,
        }


def with_source(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """An item for each group of candidates, beginning with the source's own caption."""
    return [_item(source, name, (source.text,), members) for name, members in grouped(accepted).items()]


def without_source(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """An item for each group that has a true candidate of its own; the source's caption stays out."""
    groups = grouped(accepted).items()
    return [_item(source, name, (), members) for name, members in groups if any(c.role == "positive" for c in members)]


def grouped(candidates: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Candidates by the item that they belong to, in order."""
    groups: dict[str, list[Candidate]] = {}
    for c in candidates:
        groups.setdefault(c.subset, []).append(c)
    return groups


def _item(source: SourceCaption, subset: str, first: tuple[str, ...], members: Sequence[Candidate]) -> Item:
    positives = [*first, *(c.text for c in members if c.role == "positive")]
    negatives = [c.text for c in members if c.role == "negative"]
    tags: dict[str, Tag] = {"maker": members[0].maker, "edit": "; ".join(c.edit for c in members if c.edit)}
    if source.subset:
        tags["source"] = source.subset
    for c in members:
        tags.update(c.tags)
    match = choice(len(positives), len(negatives))
    return Item(source.id, subset, source.images, (*positives, *negatives), match, tags)


def tidied(item: Item) -> Item:
    """The item with all its captions in one surface style."""
    return Item(item.id, item.subset, item.images, tuple(tidy_together(item.captions)), item.match, item.tags)


def is_sound(item: Item) -> bool:
    """No false caption equals a true one, and no caption is empty."""
    return not set(item.positives) & set(item.negatives) and all(c.strip() for c in item.captions)
