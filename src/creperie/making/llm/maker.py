"""The makers that ask a language model: their checks, their items, and an estimate of their cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from creperie.bench import Item, choice
from creperie.core import Json
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal, Role
from creperie.making.checks import (
    EditSize,
    LengthMatched,
    not_true_too,
    read_ahead,
    vocabulary_extended,
    vocabulary_followed,
    why_unfit,
)
from creperie.making.llm.flight import LOCAL_MIN_P, ServedModel, generator, run_conversations, spent
from creperie.making.llm.prompts import PromptStep, Template, read_template
from creperie.making.llm.question import TRIES, Conversation, Reply
from creperie.making.pipeline import Maker, with_source
from creperie.making.source import SourceCaption
from creperie.models import ModelURI, parse_uri

#: Captions per batch: many for servers, so that few requests wait for the last answers of a batch.
SERVER_CHUNK, LOCAL_CHUNK = 128, 8
#: Options of an endpoint that affect speed or cost, not its answers.
SPEED_AND_COST = frozenset(("concurrency", "rpm", "retries", "timeout", "price_in", "price_out", "budget", "key_env"))
#: How the reason begins if an answer could not be read.
QUARANTINED = "quarantined: "
ROUNDS = 4  #: maximum rounds for a second positive


@dataclass(frozen=True)
class LLMMaker(Maker):
    """A maker that asks a text generator."""

    template: Template
    workflow: Callable[[LLMMaker, SourceCaption], Conversation[Proposal]]
    foils: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: the false captions of each source's item
    enriched: Mapping[str, Item] = field(default_factory=dict)  #: sources that represent all captions of an item
    covered: frozenset[str] = frozenset()  #: sources that another source represents
    chunk: int = LOCAL_CHUNK

    @property
    def family(self) -> str:
        return self.template.id.split("-")[0]

    @property
    def compose(self) -> str:
        """The name of the prompt step that writes the new caption. Additions use a step that keeps the number of words;
        with `as_published` they use the same step as replacements.
        """
        matched = self.family == "add" and not self.options.as_published
        return "compose-matched" if matched else "compose"

    @property
    def validator(self) -> PromptStep:
        return read_template("validate", self.options.prompts)["validate"]

    @property
    def settings(self) -> Mapping[str, Any]:
        digests = [self.template.digest]
        if self.family == "paraphrase":
            digests.append(read_template("validate", self.options.prompts).digest)
        own = {"model": answering_uri(self.options.model), "prompts": "+".join(digests)}
        return {**self.options.settings, **own, **({"sampling": self.sampling} if self.sampling else {})}

    @property
    def sampling(self) -> str:
        """The sampling settings of a local model; empty for a model that is on a server or gives scripted answers."""
        draws = not self.options.model.startswith("api:") and "creperie.testing" not in self.options.model
        return f"temperatures of the prompt's steps, min_p {LOCAL_MIN_P:g}" if draws else ""

    @property
    def tidies(self) -> bool:
        return self.options.tidy

    @property
    def checks(self) -> Sequence[Check | BatchCheck]:
        own = {
            "swap": (vocabulary_followed,),
            "replace": (EditSize(8), LengthMatched(3), *((not_true_too,) if self.guarded else ())),
            "add": (vocabulary_extended if self.options.as_published else LengthMatched(2),),
            "enrich": (_extends_its_own,),
        }
        return (*own.get(self.family, ()), *self.options.model_checks)

    @property
    def ledger(self) -> Json:
        """What is recorded about the model. For a local model, these are its sampling settings, which are known without
        loading it. For a model on a server, these are the calls, tokens and cost of the job or, if no ledger file is
        kept, of this process.
        """
        return {"sampling": self.sampling} if self.sampling else spent(generator(self.options.model))

    def keep_ledger(self, folder: Path, job: Mapping[str, Any]) -> None:
        """For a model on a server, record the cost in a file in this folder. The name of the file is unique to
        the job.
        """
        if self.options.model.startswith("api:") and isinstance(served := generator(self.options.model), ServedModel):
            digest = hashlib.sha256(json.dumps(job, sort_keys=True, default=str).encode()).hexdigest()
            served.queue.ledger.keep_in(folder / f"ledger-{digest[:16]}.jsonl")

    @property
    def guarded(self) -> bool:
        """True if replacements that may be true of the same picture are refused."""
        return self.family == "replace" and not self.options.as_published

    def propose(self, sources: Sequence[SourceCaption]) -> list[Proposal]:
        if self.guarded:
            read_ahead(s.text for s in sources)
        return run_conversations([self.workflow(self, s) for s in sources], generator(self.options.model))

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        if source.id in self.enriched:
            return _enriched(self.enriched[source.id], accepted)
        foils = self.foils.get(source.id, ())
        return [
            replace(i, captions=(*i.captions, *foils), match=choice(len(i.positives), len(i.negatives) + len(foils)))
            for i in with_source(source, accepted)
        ]

    def candidate(self, source: SourceCaption, text: str, role: Role, edit: str, refused: str = "") -> Candidate:
        return Candidate(source.id, text, role, self.template.id, self.name, edit, refused=refused)

    def quarantine(self, source: SourceCaption, reply: Reply, step: str, role: Role = "negative") -> Candidate:
        """Return a rejected candidate with the raw text of a reply that has no valid answer."""
        return self.candidate(source, reply.text, role, step, refused=QUARANTINED + reply.why)


def _enriched(item: Item, accepted: Sequence[Candidate]) -> list[Item]:
    """Return the original item and the enriched item, in separate subsets; an empty list if a caption has no enriched
    version.
    """
    if len(accepted) != len(item.captions):
        return []
    new = tuple(c.text for c in sorted(accepted, key=lambda c: int(str(c.tags["caption"]))))
    tags = {**item.tags, "maker": "llm:enrich"}
    named = {"original": item.captions, "enriched": new}
    return [replace(item, subset=f"{item.subset}-{n}", captions=c, tags=tags) for n, c in named.items()]


def answering_uri(uri: str) -> str:
    """Return a model's URI with only those options that affect its answers. A job can then resume with, for instance, a
    larger budget.

    >>> answering_uri("api:m?base_url=http://x/v1&budget=2")
    'api:m?base_url=http%3A%2F%2Fx%2Fv1'
    """
    if not uri.startswith("api:"):
        return uri
    parsed = parse_uri(uri)
    options = {k: v for k, v in parsed.options.items() if k not in SPEED_AND_COST}
    return str(ModelURI(parsed.kind, parsed.name, options))


def _extends_its_own(source: SourceCaption, candidate: Candidate) -> str | None:
    """Return why an enriched caption is rejected: it drops words of its original caption, or adds no word. Return None
    if it is accepted.
    """
    own = replace(source, text=str(candidate.tags.get("original", source.text)))
    return vocabulary_extended(own, candidate)


CHARACTERS_PER_TOKEN = 4.0  #: for English text, approximately


def estimate_cost(maker: LLMMaker, sources: Sequence[SourceCaption]) -> Json:
    """Return the calls, tokens and dollars that a maker needs in two cases: every first answer is valid, or every
    question is repeated as often as allowed.
    """
    asked = [(step, s.text) for s in sources if not why_unfit(s.text) for step in usual_steps(maker)]
    rounds = ROUNDS if maker.family == "paraphrase" else 1
    return count(maker.options.model, asked, rounds * TRIES)


def count(uri: str, asked: Iterable[tuple[PromptStep, str]], tries: int = TRIES) -> Json:
    """Return the estimated cost of questions about captions. In the worst case, each is asked `tries` times."""
    fixed: dict[str, tuple[float, float]] = {}
    calls, tokens_in, tokens_out = 0, 0.0, 0.0
    for step, caption in asked:
        reads, writes = fixed[step.head] = fixed.get(step.head) or _step_tokens(step)
        calls += 1
        tokens_in += reads + len(caption) / CHARACTERS_PER_TOKEN
        tokens_out += writes
    cost = _cost(uri, tokens_in, tokens_out)
    worst = None if cost is None else round(cost * tries, 6)
    figures = {"calls": calls, "tokens_in": round(tokens_in), "tokens_out": round(tokens_out), "cost": cost}
    return {**figures, "worst": {"calls": calls * tries, "cost": worst}}


def cost_sentence(estimate: Mapping[str, Any]) -> str:
    """Return the estimate as one line of text."""
    calls, tokens = f"{estimate['calls']:,} calls", f"{estimate['tokens_in']:,} tokens read"
    cost = estimate["cost"]
    price = "price not known (set ?price_in= and ?price_out=)" if cost is None else f"${cost:.4f}"
    written = f"{estimate['tokens_out']:,} written"
    return f"estimate: {calls}, {tokens}, {written}, {price} (at worst {estimate['worst']['calls']:,} calls)"


def usual_steps(maker: LLMMaker) -> list[PromptStep]:
    """Return the questions that a maker asks about one caption if none has to be repeated."""
    steps = maker.template.steps
    if maker.family == "paraphrase":
        return [steps["write"], maker.validator]
    if "locate" not in steps:
        return [next(iter(steps.values()))]
    return [steps["locate"], *[steps["propose"], steps[maker.compose]] * maker.options.foils]


def _step_tokens(step: PromptStep) -> tuple[float, float]:
    written = mean(len(json.dumps(o, ensure_ascii=False)) for _, o in step.demonstrations)
    read = len(step.text(step.demonstrations[0][0]))
    return read / CHARACTERS_PER_TOKEN, written / CHARACTERS_PER_TOKEN


def _cost(uri: str, tokens_in: float, tokens_out: float) -> float | None:
    """Return the cost in dollars: 0 for local models, which need not be loaded for this; None if no price is known."""
    if not uri.startswith("api:"):
        return 0.0
    endpoint = getattr(generator(uri), "endpoint", None)
    if endpoint is None or not (endpoint.price_in or endpoint.price_out):
        return None
    return round(float(endpoint.cost(tokens_in, tokens_out)), 6)
