"""A validator model over the items of a benchmark: true captions must say the same, false ones something else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from creperie.bench import Benchmark, Item, new_folder, reweighed, save, write_table
from creperie.core import Progress, UsageError, silent, write_json
from creperie.engine import Engine, Held, Local
from creperie.lang import CONTRADICTED, ENTAILED, truth
from creperie.making.checks import entailment
from creperie.making.llm.estimate import count
from creperie.making.llm.flight import generator, hold, spent
from creperie.making.llm.maker import LOCAL_CHUNK, SERVER_CHUNK, what_answers
from creperie.making.llm.paraphrase import is_duplicate
from creperie.making.llm.parse import is_na
from creperie.making.llm.prompts import read_template
from creperie.making.llm.question import Ask, Talk

Wanted = Literal["same", "different", "crossed"]
TRUTH_LAYER = "truth"  #: in the place of a model's URI: no model, but the rules of `creperie.lang.truth`
SURE = 0.5  #: P(entailment) from which on a caption follows from another
#: what a verdict can be besides right, and what to say of it
FINDINGS = {
    "not-equivalent": "two true captions do not say the same",
    "negative-equivalent": "a false caption says the same as a true one",
    "identical-positives": "two true captions are identical",
    "positive-equals-negative": "a false caption is identical to a true one",
    "unreadable-verdict": "the validator's answer could not be read",
}


@dataclass(frozen=True)
class CaptionPair:
    """Two captions of an item, and whether they should say the same; `crossed` ones are true of different images."""

    subset: str
    item: str
    first: str
    second: str
    wanted: Wanted


@dataclass(frozen=True)
class PairVerdict:
    """What was found about a pair. No code: it is as it should be."""

    pair: CaptionPair
    code: str = ""
    reason: str = ""
    correction: str = ""  #: the validator's proposal for the second caption
    answer: str = ""  #: what could not be read
    calls: int = 0

    @property
    def finding(self) -> dict[str, Any]:
        said = f": {self.reason}" if self.reason else ""
        return {
            "code": self.code,
            "subset": self.pair.subset,
            "item": self.pair.item,
            "message": FINDINGS[self.code] + said,
            "first": self.pair.first,
            "second": self.pair.second,
            "correction": self.correction or None,
        }


@dataclass(frozen=True)
class Validation:
    """All verdicts, in the order of the items."""

    bench: str
    model: str
    verdicts: tuple[PairVerdict, ...]
    skipped: int = 0  #: items with one caption, about which there is nothing to ask
    ledger: dict[str, Any] | None = None

    @property
    def document(self) -> dict[str, Any]:
        items = dict.fromkeys((v.pair.subset, v.pair.item) for v in self.verdicts)
        failed = dict.fromkeys((v.pair.subset, v.pair.item) for v in self.verdicts if v.code)
        of_all, of_failed = Counter(s for s, _ in items), Counter(s for s, _ in failed)
        document: dict[str, Any] = {
            "bench": self.bench,
            "model": what_answers(self.model),
            "items": len(items),
            "skipped": self.skipped,
            "pairs": len(self.verdicts),
            "failed": len(failed),
            "codes": dict(Counter(v.code for v in self.verdicts if v.code)),
            "subsets": {name: {"items": n, "failed": of_failed[name]} for name, n in of_all.items()},
            "calls": sum(v.calls for v in self.verdicts),
            "findings": [v.finding for v in self.verdicts if v.code],
        }
        return document | ({"ledger": self.ledger} if self.ledger else {})


def pairs_of(item: Item) -> Iterator[CaptionPair]:
    """The first true caption of every image against the image's other captions; no two captions twice.

    >>> item = Item("1", "s", (), ("a dog", "one dog", "a cat"), ((True, True, False),))
    >>> [(p.first, p.second, p.wanted) for p in pairs_of(item)]
    [('a dog', 'one dog', 'same'), ('a dog', 'a cat', 'different')]
    """
    seen: set[frozenset[int]] = set()
    for truths in item.match:
        first = next((j for j, holds in enumerate(truths) if holds), None)
        for j, holds in enumerate(truths):
            if first is None or j == first or frozenset((first, j)) in seen:
                continue
            seen.add(frozenset((first, j)))
            wanted: Wanted = "same" if holds else "crossed" if any(row[j] for row in item.match) else "different"
            yield CaptionPair(item.subset, item.id, item.captions[first], item.captions[j], wanted)


def ask_about(pair: CaptionPair, prompts: str = "") -> Talk[PairVerdict]:
    """The verdict on a pair; identical captions need no model."""
    if is_duplicate(pair.first, pair.second):
        return PairVerdict(pair, "identical-positives" if pair.wanted == "same" else "positive-equals-negative")
    reply = (yield [_question(pair, prompts)])[0]
    if reply.fields is None:
        return PairVerdict(pair, "unreadable-verdict", reply.why, answer=reply.text, calls=reply.calls)
    same = reply.fields["verdict"] == "yes"
    if same == (pair.wanted == "same"):
        return PairVerdict(pair, calls=reply.calls)
    proposed = reply.fields["correction"]
    correction = "" if same or is_na(proposed) or is_duplicate(pair.first, proposed) else proposed
    code = "not-equivalent" if pair.wanted == "same" else "negative-equivalent"
    return PairVerdict(pair, code, reply.fields["reason"], correction, calls=reply.calls)


def _question(pair: CaptionPair, prompts: str) -> Ask:
    return Ask(read_template("validate", prompts)["validate"], {"first": pair.first, "second": pair.second})


def all_pairs(bench: Benchmark, limit: int | None = None) -> tuple[list[CaptionPair], int]:
    """The pairs of the first `limit` items, and how many of these have none."""
    pairs: list[CaptionPair] = []
    skipped = 0
    for number, item in enumerate(bench):
        if limit is not None and number >= limit:
            break
        own = list(pairs_of(item))
        pairs += own
        skipped += not own
    return pairs, skipped


def estimate_pairs(pairs: Sequence[CaptionPair], uri: str, prompts: str = "") -> dict[str, Any]:
    """What asking about the pairs will take."""
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
    """Ask the validator about every pair. With `out`, write a folder with all verdicts.

    With "truth" in the place of a URI the truth layer judges, without a model. With `nli`, the model is a classifier of
    natural language inference (`hf:`): true captions of an image must follow from each other, a false one must not
    follow from a true one, and captions of two images not from each other.

    If it is killed and called again, answers that a server has given are not asked for again. `prompts` is a folder
    with a validate.toml of your own. With an engine, every worker loads the model once; a server needs none, for one
    process has enough requests in flight.
    """
    if out is not None and Path(out).exists():
        raise UsageError("this folder exists", where=str(out), hint="choose another, or remove it")
    served = uri.startswith("api:")
    if served and engine is not None:
        what = "a validator that waits for a server gains nothing from more workers"
        raise UsageError(
            what, where=uri, hint="leave out `engine=` and `workers=`; ?concurrency= sets the requests in flight"
        )
    pairs, skipped = all_pairs(bench, limit)
    pieces = Held(pair_table(pairs), SERVER_CHUNK if served else LOCAL_CHUNK)
    stage = ValidateStage(uri, prompts, nli)
    chunks: dict[int, list[PairVerdict]] = {}
    with progress("validate", len(pairs), "pairs") as advance:
        for number, table in (engine or Local()).run(stage, pieces, range(len(pieces))):
            chunks[number] = [verdict_of(text) for text in table.column("verdict").to_pylist()]
            advance(len(chunks[number]))
    verdicts = tuple(v for k in range(len(pieces)) for v in chunks[k])
    validation = Validation(bench.name, uri, verdicts, skipped, (spent(generator(uri)) or None) if served else None)
    if out is not None:
        write(validation, bench, Path(out))
    return validation


@dataclass(frozen=True)
class ValidateStage:
    """Pairs in, verdicts out, one row each: by a language model, by a classifier of inference or by the truth layer."""

    uri: str
    prompts: str = ""
    nli: bool = False
    name: str = "validate"

    @property
    def settings(self) -> dict[str, Any]:
        if self.nli or self.uri == TRUTH_LAYER:
            return {"model": self.uri, "sure": SURE}
        return {"model": what_answers(self.uri), "prompts": read_template("validate", self.prompts).digest}

    def __call__(self, batch: pa.Table) -> pa.Table:
        pairs = [CaptionPair(**row) for row in batch.to_pylist()]
        rows = [json.dumps(asdict(verdict)) for verdict in self.verdicts(pairs)]
        return pa.table({"verdict": pa.array(rows, pa.string())})

    def verdicts(self, pairs: Sequence[CaptionPair]) -> list[PairVerdict]:
        """Return the verdicts on some pairs; the model is loaded once per process."""
        if self.uri == TRUTH_LAYER:
            return [judged_by_truth(pair) for pair in pairs]
        if not self.nli:
            return hold([ask_about(p, self.prompts) for p in pairs], generator(self.uri))
        judge = entailment(self.uri)
        forth = judge.probabilities([(p.first, p.second) for p in pairs])
        back = judge.probabilities([(p.second, p.first) for p in pairs])
        return [entailed(*row) for row in zip(pairs, forth, back, strict=True)]


def judged_by_truth(pair: CaptionPair) -> PairVerdict:
    """Return the verdict of the truth layer: true captions must not contradict each other, a false one must not follow.

    >>> judged_by_truth(CaptionPair("s", "1", "A man hugs a woman.", "A woman hugs a man.", "different")).code
    'negative-equivalent'
    """
    if is_duplicate(pair.first, pair.second):
        return PairVerdict(pair, "identical-positives" if pair.wanted == "same" else "positive-equals-negative")
    both = [truth(pair.first, pair.second), truth(pair.second, pair.first)]
    if pair.wanted == "same":
        wrong = next((v for v in both if v.word == CONTRADICTED), None)
        return PairVerdict(pair, "not-equivalent" if wrong else "", (wrong or both[0]).reason)
    wrong = next((v for v in both[: 2 if pair.wanted == "crossed" else 1] if v.word == ENTAILED), None)
    return PairVerdict(pair, "negative-equivalent" if wrong else "", (wrong or both[0]).reason)


def entailed(pair: CaptionPair, forth: float, back: float) -> PairVerdict:
    """The verdict on a pair by P(second follows from first) and P(first follows from second).

    >>> entailed(CaptionPair("s", "1", "a dog runs", "an animal runs", "different"), 0.97, 0.2).code
    'negative-equivalent'
    """
    if is_duplicate(pair.first, pair.second):
        return PairVerdict(pair, "identical-positives" if pair.wanted == "same" else "positive-equals-negative")
    found = {"same": min(forth, back), "different": forth, "crossed": max(forth, back)}[pair.wanted]
    said = f"P(entailment) {forth:.2f} forth, {back:.2f} back"
    if (found >= SURE) == (pair.wanted == "same"):
        return PairVerdict(pair, reason=said)
    return PairVerdict(pair, "not-equivalent" if pair.wanted == "same" else "negative-equivalent", said)


def pair_table(pairs: Sequence[CaptionPair]) -> pa.Table:
    """Pairs as a table."""
    names = [f.name for f in fields(CaptionPair)]
    return pa.table({name: pa.array([getattr(p, name) for p in pairs], pa.string()) for name in names})


def verdict_of(text: str) -> PairVerdict:
    """A verdict from its JSON.

    >>> verdict = PairVerdict(CaptionPair("s", "1", "a dog", "a cat", "different"), calls=1)
    >>> verdict_of(json.dumps(asdict(verdict))) == verdict
    True
    """
    told = json.loads(text)
    return PairVerdict(**{**told, "pair": CaptionPair(**told["pair"])})


def write(validation: Validation, bench: Benchmark, folder: Path) -> None:
    """`validation.json`, `verdicts.parquet`, one row per pair, and `weighed/`: twins with the evidence that is left."""
    rows = []
    for v in validation.verdicts:
        told = {k: text for k, text in asdict(v).items() if k not in ("pair", "calls")}
        rows.append({**asdict(v.pair), "valid": not v.code, **told})
    text = ("subset", "item", "first", "second", "wanted", "code", "reason", "correction", "answer")
    schema = pa.schema([*((name, pa.string()) for name in text[:5]), ("valid", pa.bool_())])
    for name in text[5:]:
        schema = schema.append(pa.field(name, pa.string()))
    with new_folder(folder) as draft:
        write_json(draft / "validation.json", validation.document)
        write_table(pa.Table.from_pylist(rows, schema=schema), draft / "verdicts.parquet")
        doubted = {(v.pair.subset, v.pair.item) for v in validation.verdicts if v.code}
        if (weighed := reweighed(bench, what_answers(validation.model), doubted)) is not None:
            save(weighed, draft / "weighed")
