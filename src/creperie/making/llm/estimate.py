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
from creperie.making.llm.question import MOST_QUOTED, TRIES
from creperie.making.source import SourceCaption
from creperie.models import parse_uri

CHARACTERS_A_TOKEN = 4.0  #: of English, about


def estimate_cost(maker: LLMMaker, sources: Sequence[SourceCaption]) -> dict[str, Any]:
    """Calls, tokens and dollars if every answer is good at once; and at worst, if all are asked for to the last try."""
    fit = [s for s in sources if not why_unfit(s.text)]
    usual = [(step, s.text) for s in fit for step in usual_steps(maker, s)]
    worst = [(step, s.text) for s in fit for step in worst_steps(maker, s)]
    return count(maker.options.model, usual, worst)


def count(uri: str, usual: Sequence[tuple[PromptStep, str]], worst: Sequence[tuple[PromptStep, str]]) -> dict[str, Any]:
    """The estimate of questions about captions."""
    expected = _totals(uri, usual, full=False)
    return {**expected, "worst": _totals(uri, worst, full=True)}


def cost_sentence(estimate: Mapping[str, Any]) -> str:
    """The estimate in one line for people."""
    said = [
        f"{e['calls']:,} calls, {e['tokens_in']:,} tokens read, {e['tokens_out']:,} written, {_dollars(e['cost'])}"
        for e in (estimate, estimate["worst"])
    ]
    return f"estimate: {said[0]} (at worst {said[1]})"


def _dollars(cost: float | None) -> str:
    return "price not known (?price_in= and ?price_out= tell it)" if cost is None else f"${cost:.4f}"


def usual_steps(maker: LLMMaker, source: SourceCaption) -> list[PromptStep]:
    """The questions about one caption when all goes well."""
    steps, count = maker.task.template.steps, maker.task.count
    if maker.family == "paraphrase":
        return [steps["write"], read_template("validate")["validate"]]
    if "locate" not in steps:
        return [next(iter(steps.values()))]
    compose = ["compose"]
    if maker.family == "add" and maker.task.matched:
        compose = ["compose", "compose-true"] if source.others else ["compose-matched"]
    return [steps["locate"], *(steps[name] for name in ("propose", *compose) for _ in range(count))]


def worst_steps(maker: LLMMaker, source: SourceCaption) -> list[PromptStep]:
    """All questions that may be asked about one caption, each as often as it may be."""
    steps = usual_steps(maker, source)
    if maker.family == "paraphrase":
        write, validate = steps
        steps = [write, validate] * maker.task.rounds
    elif maker.family == "add" and maker.task.matched and source.others:
        steps = [*steps, *[maker.task.template["compose-matched"]] * maker.task.count]
    return steps * TRIES


def _totals(uri: str, asked: Iterable[tuple[PromptStep, str]], *, full: bool) -> dict[str, Any]:
    fixed: dict[str, tuple[float, float]] = {}
    again = (MOST_QUOTED + 200) * (TRIES - 1) / TRIES  # a bad answer is quoted in the next try
    calls, tokens_in, tokens_out = 0, 0.0, 0.0
    for step, caption in asked:
        if step.head not in fixed:
            fixed[step.head] = _step_tokens(step)
        reads, writes = fixed[step.head]
        calls += 1
        tokens_in += reads + (len(caption) + (again if full else 0)) / CHARACTERS_A_TOKEN
        tokens_out += step.max_tokens if full else writes
    cost = _cost(uri, tokens_in, tokens_out)
    return {"calls": calls, "tokens_in": round(tokens_in), "tokens_out": round(tokens_out), "cost": cost}


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
