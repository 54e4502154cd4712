"""Validation of a benchmark's items with a model: true captions must mean the same, false ones something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Literal

import pyarrow as pa

from creperie.bench import Benchmark, Item, new_folder, reweighed, save
from creperie.core import Json, Progress, UsageError, silent, write_json, write_parquet
from creperie.engine import Engine, Held, Local
from creperie.lang import CONTRADICTED, ENTAILED, truth
from creperie.making.checks import entailment
from creperie.making.llm.flight import generator, run_conversations, spent
from creperie.making.llm.maker import LOCAL_CHUNK, SERVER_CHUNK, answering_uri, count
from creperie.making.llm.prompts import is_na, read_template
from creperie.making.llm.question import Ask, Conversation
from creperie.making.llm.workflow import is_duplicate

Wanted = Literal["same", "different", "crossed"]
TRUTH_LAYER = "truth"  #: in place of a model's URI: the rules of `creperie.lang.truth` judge
COLUMNS = ("subset", "item", "first", "second", "wanted", "valid", "code", "reason", "correction", "answer")
UNDECIDED = "undecided"  #: the code of a pair that the truth layer neither confirms nor refutes
SURE = 0.5  #: P(entailment) from which on a caption counts as entailed
#: code of a negative verdict → its message
FINDINGS = {
    "not-equivalent": "two true captions do not say the same",
    "negative-equivalent": "a false caption says the same as a true one",
    "identical-positives": "two true captions are identical",
    "positive-equals-negative": "a false caption is identical to a true one",
    "unreadable-verdict": "the validator's answer could not be read",
}


@dataclass(frozen=True)
class CaptionPair:
    """Two captions of an item, and whether they should mean the same. `crossed` says that they are true of different
    images.
    """

    subset: str
    item: str
    first: str
    second: str
    wanted: Wanted

    @property
    def fault(self) -> str:
        """The code of a negative verdict: `not-equivalent` if the captions should mean the same but do not,
        `negative-equivalent` if they should differ but do not.
        """
        return "not-equivalent" if self.wanted == "same" else "negative-equivalent"


@dataclass(frozen=True)
class PairVerdict:
    """The verdict on a pair of captions that should mean the same, or should differ. The code is empty if they do as
    they should, `UNDECIDED` if this is unknown, and otherwise names the fault.
    """

    pair: CaptionPair
    code: str = ""
    reason: str = ""
    correction: str = ""  #: the validator's proposal for the second caption
    answer: str = ""  #: an answer that could not be parsed
    calls: int = 0

    @property
    def is_fault(self) -> bool:
        """True if the pair of captions is at fault, or if the model's answer could not be parsed. A pair is at fault if
        the captions should mean the same but do not, or should differ but do not.
        """
        return self.code not in ("", UNDECIDED)

    @property
    def finding(self) -> Json:
        return {
            "code": self.code,
            "subset": self.pair.subset,
            "item": self.pair.item,
            "message": ": ".join(filter(None, (FINDINGS[self.code], self.reason))),
            "first": self.pair.first,
            "second": self.pair.second,
            "correction": self.correction or None,
        }


@dataclass(frozen=True)
class Validation:
    """The verdicts on all pairs, in the order of the items."""

    bench: str
    model: str
    verdicts: tuple[PairVerdict, ...]
    skipped: int = 0  #: items with one caption, which have no pair
    ledger: Json | None = None

    @property
    def failed(self) -> set[tuple[str, str]]:
        """The (subset, item id) of every item with a pair of captions that is at fault, or on which the model's answer
        could not be parsed.
        """
        return {(v.pair.subset, v.pair.item) for v in self.verdicts if v.is_fault}

    @property
    def undecided(self) -> set[tuple[str, str]]:
        """The (subset, item id) of every item that has not failed, but has a pair of captions about which the rules of
        `creperie.lang.truth` cannot decide.
        """
        return {(v.pair.subset, v.pair.item) for v in self.verdicts if v.code == UNDECIDED} - self.failed

    @property
    def document(self) -> Json:
        items = dict.fromkeys((v.pair.subset, v.pair.item) for v in self.verdicts)
        of_all, of_failed = Counter(s for s, _ in items), Counter(s for s, _ in self.failed)
        document = {
            "bench": self.bench,
            "model": answering_uri(self.model),
            "items": len(items),
            "skipped": self.skipped,
            "pairs": len(self.verdicts),
            "failed": len(self.failed),
            "undecided": len(self.undecided),
            "codes": dict(Counter(v.code for v in self.verdicts if v.code)),
            "subsets": {name: {"items": n, "failed": of_failed[name]} for name, n in of_all.items()},
            "calls": sum(v.calls for v in self.verdicts),
            "findings": [v.finding for v in self.verdicts if v.is_fault],
        }
        return document | ({"ledger": self.ledger} if self.ledger else {})


def pairs_of(item: Item) -> Iterator[CaptionPair]:
    """Yield, for each image, its first true caption paired with every other caption of the item. No pair is yielded
    twice.

    >>> item = Item("1", "s", (), ("a dog", "one dog", "a cat"), ((True, True, False),))
    >>> [(p.first, p.second, p.wanted) for p in pairs_of(item)]
    [('a dog', 'one dog', 'same'), ('a dog', 'a cat', 'different')]
    """
    seen = set()
    for truths in item.match:
        first = next((j for j, holds in enumerate(truths) if holds), None)
        for j, holds in enumerate(truths):
            if first is None or j == first or frozenset((first, j)) in seen:
                continue
            seen.add(frozenset((first, j)))
            wanted: Wanted = "same" if holds else "crossed" if any(row[j] for row in item.match) else "different"
            yield CaptionPair(item.subset, item.id, item.captions[first], item.captions[j], wanted)


def ask_about(pair: CaptionPair, prompts: str) -> Conversation[PairVerdict]:
    """Ask a language model about a pair and return its verdict."""
    step = read_template("validate", prompts)["validate"]
    reply = (yield [Ask(step, {"first": pair.first, "second": pair.second})])[0]
    if reply.fields is None:
        return PairVerdict(pair, "unreadable-verdict", reply.why, answer=reply.text, calls=reply.calls)
    same = reply.fields["verdict"] == "yes"
    if same == (pair.wanted == "same"):
        return PairVerdict(pair, calls=reply.calls)
    proposed = reply.fields["correction"]
    correction = "" if same or is_na(proposed) or is_duplicate(pair.first, proposed) else proposed
    return PairVerdict(pair, pair.fault, reply.fields["reason"], correction, calls=reply.calls)


def all_pairs(bench: Benchmark, limit: int | None) -> tuple[list[CaptionPair], int]:
    """Return the caption pairs of the first `limit` items (`pairs_of`), and how many of these items have no pair."""
    by_item = [list(pairs_of(item)) for item in islice(bench, limit)]
    return [pair for pairs in by_item for pair in pairs], sum(not pairs for pairs in by_item)


def estimate_pairs(pairs: Sequence[CaptionPair], uri: str, prompts: str = "") -> Json:
    """Return the estimated cost of asking about the pairs."""
    step = read_template("validate", prompts)["validate"]
    asked = [(step, p.first + p.second) for p in pairs if not is_duplicate(p.first, p.second)]
    return count(uri, asked)


def validate(
    bench: Benchmark,
    uri: str,
    *,
    limit: int | None = None,
    out: str | Path | None = None,
    prompts: str = "",
    nli: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Validation:
    """Ask a model about every pair of captions and return the verdicts. With `out`, also write them to a folder.

    If the URI is "truth", the rules of `creperie.lang.truth` judge without a model. With `nli`, the model is a
    classifier of natural language inference (`hf:`): true captions of an image must entail each other, a true caption
    must not entail a false one, and captions of two images must not entail each other.

    If the call is interrupted and repeated, answers from a server are not requested again. `prompts` is a folder with
    the user's own validate.toml. With an engine, every worker loads the model once. A server needs no engine, because
    one process keeps enough requests in flight.
    """
    if out is not None and Path(out).exists():
        raise UsageError("this folder already exists", where=out, hint="choose another, or remove it")
    served = uri.startswith("api:")
    if served and engine is not None:
        what = "a validator that waits for a server gains nothing from more workers"
        raise UsageError(
            what,
            where=uri,
            hint="leave out `engine=` and `workers=`; to send more requests at a time, add ?concurrency=N",
        )
    pairs, skipped = all_pairs(bench, limit)
    columns = pa.schema([(f.name, pa.string()) for f in fields(CaptionPair)])
    table = pa.Table.from_pylist([asdict(p) for p in pairs], columns)
    pieces = Held(table, SERVER_CHUNK if served else LOCAL_CHUNK)
    stage = ValidateStage(uri, prompts, nli)
    chunks = {}
    with progress("validate", len(pairs), "pairs") as advance:
        for number, table in (engine or Local()).run(stage, pieces, range(len(pieces))):
            chunks[number] = [PairVerdict(**row | {"pair": CaptionPair(**row["pair"])}) for row in table.to_pylist()]
            advance(len(chunks[number]))
    verdicts = tuple(v for k in range(len(pieces)) for v in chunks[k])
    validation = Validation(bench.name, uri, verdicts, skipped, (spent(generator(uri)) or None) if served else None)
    if out is not None:
        write(validation, bench, Path(out))
    return validation


@dataclass(frozen=True)
class ValidateStage:
    """A stage of work for an engine: it judges each pair by a language model, an entailment classifier, or the rules of
    `truth`. The result has one row per pair.
    """

    uri: str
    prompts: str = ""
    nli: bool = False

    def __call__(self, batch: pa.Table) -> pa.Table:
        pairs = [CaptionPair(**row) for row in batch.to_pylist()]
        return pa.Table.from_pylist([asdict(verdict) for verdict in self.verdicts(pairs)])

    def verdicts(self, pairs: Sequence[CaptionPair]) -> list[PairVerdict]:
        """Return the verdicts on some pairs. Identical captions need no model. The model is loaded once per process."""
        judged = iter(self._judged([p for p in pairs if not is_duplicate(p.first, p.second)]))
        identical = {"same": "identical-positives"}
        return [
            PairVerdict(p, identical.get(p.wanted, "positive-equals-negative"))
            if is_duplicate(p.first, p.second)
            else next(judged)
            for p in pairs
        ]

    def _judged(self, pairs: Sequence[CaptionPair]) -> list[PairVerdict]:
        if self.uri == TRUTH_LAYER:
            return [judged_by_truth(pair) for pair in pairs]
        if not self.nli:
            return run_conversations([ask_about(p, self.prompts) for p in pairs], generator(self.uri))
        judge = entailment(self.uri)
        forth = judge.probabilities([(p.first, p.second) for p in pairs])
        back = judge.probabilities([(p.second, p.first) for p in pairs])
        return [entailed(*row) for row in zip(pairs, forth, back, strict=True)]


def judged_by_truth(pair: CaptionPair) -> PairVerdict:
    """Return the verdict on a pair by the rules of `truth`: true captions must not contradict each other, nor entail a
    false one.

    >>> judged_by_truth(CaptionPair("s", "1", "A man hugs a woman.", "A woman hugs a man.", "different")).code
    'negative-equivalent'
    """
    forth, back = truth(pair.first, pair.second), truth(pair.second, pair.first)
    bad = CONTRADICTED if pair.wanted == "same" else ENTAILED
    wrong = [v for v in ((forth,) if pair.wanted == "different" else (forth, back)) if v.word == bad]
    right = forth.word == (ENTAILED if pair.wanted == "same" else CONTRADICTED)
    return PairVerdict(pair, pair.fault if wrong else "" if right else UNDECIDED, (wrong or [forth])[0].reason)


def entailed(pair: CaptionPair, forth: float, back: float) -> PairVerdict:
    """Return the verdict on a pair, given P(first entails second) as `forth` and P(second entails first) as `back`.

    A caption counts as entailed if the probability is at least `SURE` (one half). Captions that should mean the same
    must entail each other. If they should differ, the first must not entail the second. In a `crossed` pair, neither
    may entail the other.

    >>> entailed(CaptionPair("s", "1", "a dog runs", "an animal runs", "different"), 0.97, 0.2).code
    'negative-equivalent'
    """
    probability = {"same": min(forth, back), "different": forth, "crossed": max(forth, back)}[pair.wanted]
    right = (probability >= SURE) == (pair.wanted == "same")
    return PairVerdict(pair, "" if right else pair.fault, f"P(entailment) {forth:.2f} forth, {back:.2f} back")


def write(validation: Validation, bench: Benchmark, folder: Path) -> None:
    """Write `validation.json` and `verdicts.parquet` (one row per pair). If the items have a tag `evidence`, also write
    a copy of the benchmark to `weighed/`. In this copy, the items that failed have weaker evidence, such as `likely`
    instead of `certain`.
    """
    rows = [{**asdict(v), **asdict(v.pair), "valid": not v.is_fault} for v in validation.verdicts]
    schema = pa.schema([(name, pa.bool_() if name == "valid" else pa.string()) for name in COLUMNS])
    with new_folder(folder) as draft:
        write_parquet(pa.Table.from_pylist(rows, schema=schema), draft / "verdicts.parquet")
        write_json(draft / "validation.json", validation.document, files=["verdicts.parquet"])
        if (weighed := reweighed(bench, answering_uri(validation.model), validation.failed)) is not None:
            save(weighed, draft / "weighed")
