"""The pipeline of a maker, in batches: from suitable source captions to proposals, checks and verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from creperie.bench import Item, Tag, choice
from creperie.lang import (
    COMPATIBLE,
    CONTRADICTED,
    ENTAILED,
    UNKNOWN,
    default_parser,
    parse,
)
from creperie.making.candidate import IN_ANOTHER, BatchCheck, Candidate, Check, Proposal
from creperie.making.checks import ALWAYS, read_ahead, truth_of, why_unfit, word_key
from creperie.making.judges import is_open
from creperie.making.options import MakerOptions
from creperie.making.source import SourceCaption

#: The evidence that a foil is false, by the verdict of the truth layer.
EVIDENCE = {CONTRADICTED: "likely", UNKNOWN: "unchecked", COMPATIBLE: "not entailed"}


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """A candidate and the reason why it was rejected. An empty reason means that it was accepted."""

    candidate: Candidate
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """The outcome for one source: its candidates with their verdicts, or the reason why it was skipped."""

    source: str
    skipped: str = ""
    verdicts: tuple[CandidateVerdict, ...] = ()
    calls: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)  #: kind of foil → why there is none

    @property
    def accepted(self) -> list[Candidate]:
        return [v.candidate for v in self.verdicts if not v.reason]

    @property
    def why_nothing(self) -> str:
        """The reasons why nothing was made from the source; empty if something was made."""
        if self.accepted:
            return ""
        rejected = dict.fromkeys(f"{v.candidate.edit}, but {v.reason}" for v in self.verdicts)
        missing = [f"{kind}: {why}" for kind, why in self.missing.items()]
        return "; ".join([*missing, *rejected] or [self.skipped])


def work(maker: Maker, sources: Sequence[SourceCaption]) -> list[SourceOutcome]:
    """Return the outcomes for some sources, in order."""
    unfit = {s.id: why_unfit(s.text, str(s.tags.get("language", ""))) for s in sources}
    proposals = {id_: Proposal(skipped=reason) for id_, reason in unfit.items() if reason}
    fit = [s for s in sources if s.id not in proposals]
    if fit:
        proposals.update(zip((s.id for s in fit), maker.propose(fit), strict=True))
    verdicts = judge(maker, sources, proposals)
    outcomes = []
    for s in sources:
        proposal = proposals[s.id]
        skipped = proposal.skipped or ("" if verdicts[s.id] else "nothing to change")
        outcomes.append(SourceOutcome(s.id, skipped, tuple(verdicts[s.id]), proposal.calls, proposal.missing))
    return outcomes


def judge(
    maker: Maker, sources: Sequence[SourceCaption], proposals: dict[str, Proposal]
) -> dict[str, list[CandidateVerdict]]:
    """Judge the candidates of all sources, and return the verdicts by the id of the source."""
    pairs = [(s, c) for s in sources for c in proposals[s.id].candidates]
    reasons = [c.refused for _, c in pairs]
    for check in (*ALWAYS, *maker.checks):
        left = [k for k, reason in enumerate(reasons) if not reason]
        own = [pairs[k] for k in left]
        reviewed = check.review(own) if isinstance(check, BatchCheck) else [check(*pair) for pair in own]
        for k, reason in zip(left, reviewed, strict=True):
            reasons[k] = reason or ""
    verdicts: dict[str, list[CandidateVerdict]] = {s.id: [] for s in sources}
    published = bool(maker.settings.get("as_published"))
    if unsettled := [(s, c) for (s, c), reason in zip(pairs, reasons) if not (reason or published or is_settled(c))]:
        read_ahead(text for s, c in unsettled for text in (s.text, c.text))
    for (s, c), reason in zip(pairs, reasons):
        verdict = CandidateVerdict(c, reason) if reason or published else with_evidence(s, c)
        verdicts[s.id].append(judged_by(maker.options.judge, verdict) if maker.options.judge else verdict)
    return {key: _consistent(own, maker.whole) for key, own in verdicts.items()}


def is_settled(candidate: Candidate) -> bool:
    """Return True if `truth` (lang/truth.py) need not judge a candidate: it is a second true caption, or its maker
    has already tagged it with evidence that it is false.
    """
    return candidate.role == "positive" or "evidence" in candidate.tags


def with_evidence(source: SourceCaption, candidate: Candidate) -> CandidateVerdict:
    """Judge a foil by the rules of `truth`, and return the verdict. A foil that the source caption entails is
    rejected; any other is accepted, with tags for the evidence that it is false. Second positives, and candidates
    that already have these tags, are accepted unchanged.
    """
    if is_settled(candidate):
        return CandidateVerdict(candidate)
    verdict = truth_of(source, candidate.text)
    if verdict.word == ENTAILED:
        return CandidateVerdict(candidate, f"true as well: {verdict.reason.partition(':')[0]}")
    tags = {**candidate.tags, "evidence": EVIDENCE[verdict.word], "because": verdict.reason}
    return CandidateVerdict(replace(candidate, tags=tags))


def judged_by(judge: str, verdict: CandidateVerdict) -> CandidateVerdict:
    """Return the verdict with a tag that says that `judge` (a model URI) found the foil false. A verdict is returned
    unchanged if the foil was rejected or if the rules had already decided about it.
    """
    candidate = verdict.candidate
    if verdict.reason or not is_open(candidate):
        return verdict
    tags = {**candidate.tags, "evidence": "likely", "because": f"found false by {judge}"}
    return replace(verdict, candidate=replace(candidate, tags=tags))


def _consistent(verdicts: list[CandidateVerdict], whole: bool) -> list[CandidateVerdict]:
    """Return the verdicts, and reject every candidate that repeats another candidate of the same item. If `whole`, an
    item with a rejected candidate loses all its candidates.
    """
    keys = [(v.candidate.subset, word_key(v.candidate.text)) for v in verdicts]
    accepted = [k for k, v in enumerate(verdicts) if not v.reason]
    true = {keys[k] for k in accepted if verdicts[k].candidate.role == "positive"}
    seen: set[object] = set()
    reasons = [v.reason for v in verdicts]
    for k in accepted:
        if keys[k] in seen or (keys[k] in true and verdicts[k].candidate.role == "negative"):
            reasons[k] = "equal to a true caption" if keys[k] in true else "duplicate"
        seen.add(keys[k])
    broken = {key[0] for key, reason in zip(keys, reasons) if reason} if whole else set()
    reasons = [reason or ("incomplete item" if key[0] in broken else "") for key, reason in zip(keys, reasons)]
    return [CandidateVerdict(v.candidate, reason) for v, reason in zip(verdicts, reasons)]


def without_words(reason: str) -> str:
    """Return a rejection reason without the words of the caption, that is, only the part after `, but`.

    >>> without_words("*queen* and *king* could change places, but it holds both ways")
    'it holds both ways'
    """
    return reason.rpartition(", but ")[2]


@dataclass
class Tally:
    """Counts of a generation job: sources, reasons for skipping, candidates, reasons for rejection, and items by
    subset.
    """

    sources: int = 0
    calls: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    subsets: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    missing: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, outcome: SourceOutcome, items: Sequence[Item] = ()) -> None:
        self.sources += 1
        self.calls += outcome.calls
        self.skipped.update({without_words(outcome.skipped)} - {"", IN_ANOTHER})
        for name, why in outcome.missing.items():
            self.missing.setdefault(name, Counter())[without_words(why)] += 1
        for v in outcome.verdicts:
            kind = self.kinds.setdefault(v.candidate.kind, {"proposed": 0, "made": 0})
            kind["proposed"] += 1
            kind["made"] += not v.reason
            self.reasons.update(filter(None, [v.reason]))
        self.subsets.update(item.subset for item in items)
        self.edits.update(str(item.tags.get("edit", "")) for item in items)

    @property
    def report(self) -> dict[str, Any]:
        return {
            "sources": self.sources,
            "skipped": dict(self.skipped.most_common()),
            "made": sum(kind["made"] for kind in self.kinds.values()),
            "rejected": self.reasons.total(),
            "reasons": dict(self.reasons.most_common()),
            "calls": self.calls,
            "items": self.subsets.total(),
            "subsets": dict(self.subsets),
            "kinds": self.kinds,
            "missing": {kind: dict(why.most_common()) for kind, why in self.missing.items()},
            "composition": self.composition,
        }

    @property
    def composition(self) -> dict[str, Any]:
        """The composition of the items: the share of each subset, and how often edits are repeated."""
        total, top = max(self.subsets.total(), 1), self.edits.most_common(20)
        return {
            "shares": {subset: n / total for subset, n in self.subsets.items()},
            "edits": len(self.edits),
            "most_frequent": {edit: n / total for edit, n in top[:5]},
            "top_20_share": sum(n for _, n in top) / total,
        }


@dataclass(frozen=True)
class Maker:
    """The base class of makers; a subclass implements `propose`. Makers must be picklable: workers receive a copy."""

    name: str
    options: MakerOptions
    #: True if the candidates of a group are accepted or rejected together
    whole = False
    #: True if several processes share the work; False for makers that wait for a server or load a large model
    parallel = False
    #: The number of sources per batch; the outcomes of a batch are stored together
    chunk = 512
    #: True if the result depends on the parser
    parses = False
    #: True if captions are normalised unless the user turns this off
    normalises = False

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings on which the result depends. They are recorded, and compared when a job resumes."""
        parser = {"parser": self.options.parser or default_parser()} if self.parses else {}
        return {**self.options.settings, **parser}

    @property
    def tidies(self) -> bool:
        """True if the captions of each finished item are punctuated and capitalised alike."""
        return self.normalises and self.options.tidy and (self.whole or not self.options.as_published)

    @property
    def checks(self) -> Sequence[Check | BatchCheck]:
        return self.options.model_checks

    @property
    def ledger(self) -> Mapping[str, Any]:
        """The calls, tokens and cost of the maker's model; empty if the model costs nothing."""
        return {}

    def takes(self, kind: str) -> bool:
        """Return True if the maker takes candidates of this kind from other captions instead of writing them."""
        return False

    def keep_ledger(self, folder: Path, job: Mapping[str, Any]) -> None:
        """Record the cost in a file in this folder, so that a resumed job includes what was paid before. The base class
        does nothing here.
        """

    def propose(self, sources: Sequence[SourceCaption]) -> Iterable[Proposal]:
        """Return one proposal per source, in order. A proposal must not depend on the other sources."""
        raise NotImplementedError

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return the items made from a source and its accepted candidates."""
        return with_source(source, accepted)


def with_source(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """Return one item for each subset that the candidates have. Every item begins with the caption of the source."""
    return [_item(source, name, (source.text,), members) for name, members in grouped(accepted).items()]


def without_source(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """Return one item for each subset in which there is a true candidate. The items do not contain the caption of the
    source.
    """
    groups = grouped(accepted).items()
    return [_item(source, name, (), members) for name, members in groups if any(c.role == "positive" for c in members)]


def grouped(candidates: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Return the candidates by subset, in order (subset → candidates). The candidates of one subset become one item."""
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


def is_sound(item: Item) -> bool:
    """Return True if no caption of the item is empty and no false caption equals a true one."""
    return not set(item.positives) & set(item.negatives) and all(c.strip() for c in item.captions)


#: A function from a source, its parse (a spaCy document) and the options to a proposal.
ProposeOne = Callable[[SourceCaption, Any, MakerOptions], Proposal]
#: A function from a source and its accepted candidates to items.
BuildItems = Callable[[SourceCaption, Sequence[Candidate]], list[Item]]


@dataclass(frozen=True)
class ParsedMaker(Maker):
    """A maker that parses each source and calls one function with it."""

    propose_one: ProposeOne
    own_checks: tuple[Check | BatchCheck, ...] = ()
    build: BuildItems = with_source
    whole: bool = False
    chooses: bool = False  #: it proposes more foils than needed, among which `choose` selects
    parallel = parses = normalises = True

    @property
    def checks(self) -> Sequence[Check | BatchCheck]:
        return (*self.own_checks, *self.options.model_checks)

    @property
    def note(self) -> str:
        """A note to the user about how foils are chosen; empty if there is nothing to say."""
        corpus = getattr(self.propose_one, "corpus", None)
        if corpus is None:
            return ""
        return (
            f"foils that rules do not vouch for are made if the {corpus.captions:,} captions of the corpus have their "
            "words together (tag `support`); --corpus names other captions, --judge URI asks a model\n"
            "foils whose edit is frequent are left out: of 200 or more of a kind, 20 edits make at most 35 %"
        )

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        unused = ("attribute_ruler",)  # parts of speech and morphology, which no rule uses
        docs = parse([s.text for s in sources], self.options.parser, without=unused)
        for source, doc in zip(sources, docs, strict=True):
            yield self.propose_one(source, doc, self.options)

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        if not self.options.apart:
            return self.build(source, accepted)
        true = [c for c in accepted if c.role == "positive"]
        each = [[*(t for t in true if t.subset == c.subset), c] for c in accepted if c.role == "negative"]
        return [replace(i, id=f"{i.id}-{k}") for k, own in enumerate(each, 1) for i in self.build(source, own)]
