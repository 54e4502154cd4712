"""What a generation job will cost, before any of it is spent: calls × tokens × price."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from creperie.making.checks import why_unfit
from creperie.making.llm.flight import generator
from creperie.making.llm.maker import LLMMaker
from creperie.making.llm.prompts import PromptStep, read_template
from creperie.making.llm.question import TRIES
from creperie.making.source import SourceCaption
from creperie.models import parse_uri

CHARACTERS_A_TOKEN = 4.0  #: of English, about


def estimate_cost(maker: LLMMaker, sources: Sequence[SourceCaption]) -> dict[str, Any]:
    """Return calls, tokens and dollars if every answer is good at once; a bad one is asked for again."""
    asked = [(step, s.text) for s in sources if not why_unfit(s.text) for step in usual_steps(maker)]
    rounds = maker.task.rounds if maker.family == "paraphrase" else 1
    return count(maker.options.model, asked, rounds * TRIES)


def count(uri: str, asked: Iterable[tuple[PromptStep, str]], tries: int = TRIES) -> dict[str, Any]:
    """Return the estimate of questions about captions, each of which may be asked up to `tries` times."""
    fixed: dict[str, tuple[float, float]] = {}
    calls, tokens_in, tokens_out = 0, 0.0, 0.0
    for step, caption in asked:
        if step.head not in fixed:
            fixed[step.head] = _step_tokens(step)
        reads, writes = fixed[step.head]
        calls += 1
        tokens_in += reads + len(caption) / CHARACTERS_A_TOKEN
        tokens_out += writes
    cost = _cost(uri, tokens_in, tokens_out)
    worst = None if cost is None else round(cost * tries, 6)
    figures = {"calls": calls, "tokens_in": round(tokens_in), "tokens_out": round(tokens_out), "cost": cost}
    return {**figures, "worst": {"calls": calls * tries, "cost": worst}}


def cost_sentence(estimate: Mapping[str, Any]) -> str:
    """Return the estimate in one line for people."""
    calls, tokens = f"{estimate['calls']:,} calls", f"{estimate['tokens_in']:,} tokens read"
    paid = f"{estimate['tokens_out']:,} written, {_dollars(estimate['cost'])}"
    return f"estimate: {calls}, {tokens}, {paid} (at worst {estimate['worst']['calls']:,} calls)"


def _dollars(cost: float | None) -> str:
    return "price not known (?price_in= and ?price_out= tell it)" if cost is None else f"${cost:.4f}"


def usual_steps(maker: LLMMaker) -> list[PromptStep]:
    """Return the questions about one caption when all goes well."""
    steps = maker.task.template.steps
    if maker.family == "paraphrase":
        return [steps["write"], read_template("validate")["validate"]]
    if "locate" not in steps:
        return [next(iter(steps.values()))]
    compose = "compose-matched" if maker.family == "add" and maker.task.matched else "compose"
    return [steps["locate"], *(steps[name] for name in ("propose", compose) for _ in range(maker.task.count))]


def _step_tokens(step: PromptStep) -> tuple[float, float]:
    written = mean(len(json.dumps(o, ensure_ascii=False)) for _, o in step.demonstrations)
    read = len(step.text(step.demonstrations[0][0]))
    return read / CHARACTERS_A_TOKEN, written / CHARACTERS_A_TOKEN


def _cost(uri: str, tokens_in: float, tokens_out: float) -> float | None:
    """Dollars; nothing for local models, which are not loaded to say so; None where no price was given."""
    if parse_uri(uri).kind != "api":
        return 0.0
    endpoint = getattr(generator(uri), "endpoint", None)
    if endpoint is None or not (endpoint.price_in or endpoint.price_out):
        return None
    return round(float(endpoint.cost(tokens_in, tokens_out)), 6)
