"""The LLM makers by name: workflows, their checks, and how their candidates become items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from creperie.bench import Benchmark, Item, choice
from creperie.making.candidate import BatchCheck, Candidate, Check, Proposal
from creperie.making.checks import EditSize, LengthMatched, vocabulary_extended, vocabulary_followed
from creperie.making.llm.flight import generator, hold, keep_ledger, no_generator, spent
from creperie.making.llm.paraphrase import enrich, second_positive
from creperie.making.llm.prompts import read_template
from creperie.making.llm.workflow import Workflow, WorkflowTask, replace_or_add, swap
from creperie.making.options import MakerOptions
from creperie.making.pipeline import with_source
from creperie.making.source import Captions, SourceCaption
from creperie.models import ModelURI, parse_uri

#: Captions talked about at once: many for servers, so that few requests wait for the last answers of a chunk.
SERVER_CHUNK, LOCAL_CHUNK = 128, 8
#: options of an endpoint that say how hard or how dear it is used, not what it answers
HOW_NOT_WHAT = frozenset(("concurrency", "rpm", "retries", "timeout", "price_in", "price_out", "budget", "key_env"))
WORKFLOWS: Mapping[str, Workflow] = {
    "replace": replace_or_add,
    "add": replace_or_add,
    "swap": swap,
    "paraphrase": second_positive,
    "enrich": enrich,
}


@dataclass(frozen=True)
class LLMMaker:
    """A maker that asks a generator."""

    name: str
    task: WorkflowTask
    options: MakerOptions
    foils: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: false captions that sources came with

    whole: bool = False
    parallel: bool = False

    @property
    def family(self) -> str:
        return self.task.kind.split("-")[0]

    @property
    def settings(self) -> Mapping[str, Any]:
        digests = [self.task.template.digest]
        if self.family == "paraphrase":
            digests.append(read_template("validate", self.options.prompts).digest)
        own = {"model": what_answers(self.options.model), "prompts": "+".join(digests)}
        return {**self.options.settings, **own}

    @property
    def tidies(self) -> bool:
        return self.options.tidy

    @property
    def chunk(self) -> int:
        return SERVER_CHUNK if self.options.model.startswith("api:") else LOCAL_CHUNK

    @property
    def checks(self) -> Sequence[Check | BatchCheck]:
        return (*_checks(self.family, self.task.matched), *self.options.model_checks)

    @property
    def ledger(self) -> dict[str, Any]:
        """Calls, tokens and money of the job (of this process, where no books are kept). A local model costs
        nothing, and is not loaded to say so."""
        return spent(generator(self.options.model)) if self.options.model.startswith("api:") else {}

    def keep_books(self, folder: Path, job: Mapping[str, Any]) -> None:
        """With a server, book what is paid in a file of this folder, under a name that no other job has."""
        if self.options.model.startswith("api:"):
            digest = hashlib.sha256(json.dumps(job, sort_keys=True, default=str).encode()).hexdigest()
            keep_ledger(generator(self.options.model), folder / f"ledger-{digest[:16]}.jsonl")

    def propose(self, sources: Sequence[SourceCaption]) -> list[Proposal]:
        workflow = WORKFLOWS[self.family]
        return hold([workflow(self.task, s) for s in sources], generator(self.options.model))

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        if source.id in self.task.items:
            return _enriched(self.task.items[source.id], accepted)
        foils = self.foils.get(source.id, ())
        return [_with_foils(item, foils) for item in with_source(source, accepted)]


def llm(name: str, options: MakerOptions, captions: Captions) -> LLMMaker:
    """The maker of this name: `llm:` and the name of its prompts."""
    if not options.model:
        raise no_generator()
    kind = name.removeprefix("llm:")
    task = WorkflowTask(
        maker=name,
        kind=kind,
        template=read_template(kind, options.prompts),
        seed=options.seed,
        count=options.foils,
        matched=not options.as_published,
        prompts=options.prompts,
    )
    if captions.bench is None or kind not in ("paraphrase", "enrich"):
        return LLMMaker(name, task, options)
    if kind == "enrich":
        items, covered = _whole_items(captions.bench, captions.sources)
        return LLMMaker(name, replace(task, items=items, covered=covered), options)
    return LLMMaker(name, task, options, _foils_of(captions.bench))


def _whole_items(bench: Benchmark, sources: Sequence[SourceCaption]) -> tuple[dict[str, Item], frozenset[str]]:
    """Items with a false caption by the first of their sources, and the other sources of those items."""
    known = {f"{item.subset}/{item.id}": item for item in bench if not all(map(all, item.match))}
    first: dict[str, Item] = {}
    covered: set[str] = set()
    for source in sources:
        key = source.id.rsplit("#", 1)[0] if source.id not in known else source.id
        if key in known:
            first[source.id] = known.pop(key)
        elif "#" in source.id and any(f.rsplit("#", 1)[0] == key for f in first):
            covered.add(source.id)
    return first, frozenset(covered)


def _enriched(item: Item, accepted: Sequence[Candidate]) -> list[Item]:
    """The item as it was and with all its captions enriched, in subsets of their own; nothing if one is missing."""
    texts = {int(str(c.tags["caption"])): c.text for c in accepted}
    if len(texts) != len(item.captions):
        return []
    new = tuple(texts[k] for k in range(len(item.captions)))
    tags = {**item.tags, "maker": "llm:enrich"}
    named = {"original": item.captions, "enriched": new}
    return [Item(item.id, f"{item.subset}-{n}", item.images, c, item.match, tags) for n, c in named.items()]


def what_answers(uri: str) -> str:
    """A model URI without what does not change its answers: a job continues with a larger budget.

    >>> what_answers("api:m?base_url=http://x/v1&budget=2")
    'api:m?base_url=http%3A%2F%2Fx%2Fv1'
    """
    parsed = parse_uri(uri) if ":" in uri else None
    if parsed is None or parsed.kind != "api":
        return uri
    options = {k: v for k, v in parsed.options.items() if k not in HOW_NOT_WHAT}
    return str(ModelURI(parsed.kind, parsed.name, options))


def _checks(family: str, matched: bool) -> tuple[Check, ...]:
    if family == "swap":
        return (vocabulary_followed,)
    if family == "replace":
        return (EditSize(1, 8), LengthMatched(3))
    if family == "add":
        return (LengthMatched(2),) if matched else (vocabulary_extended,)
    return (_extends_its_own,) if family == "enrich" else ()


def _extends_its_own(source: SourceCaption, candidate: Candidate) -> str | None:
    """An enriched caption keeps the words of the caption that it enriches, which need not be the source."""
    own = replace(source, text=str(candidate.tags.get("original", source.text)))
    return vocabulary_extended(own, candidate)


def _foils_of(bench: Benchmark) -> dict[str, tuple[str, ...]]:
    """The false captions that go with each source, where an item has one image at most."""
    foils: dict[str, tuple[str, ...]] = {}
    for item in bench:
        if len(item.match) > 1:
            continue
        for column, holds in enumerate(item.match[0]):
            if holds:
                several = len(item.captions) > 1 and sum(item.match[0]) > 1
                foils[f"{item.subset}/{item.id}" + (f"#0.{column}" if several else "")] = item.negatives
    return foils


def _with_foils(item: Item, foils: Sequence[str]) -> Item:
    if not foils:
        return item
    match = choice(len(item.positives), len(item.negatives) + len(foils))
    return Item(item.id, item.subset, item.images, (*item.captions, *foils), match, item.tags)
