"""How sensitive scores are to what should not matter: the wording of the prompt, and the order of the options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from creperie.bench import Benchmark
from creperie.core import Progress, UsageError, silent
from creperie.models import (
    Chooser,
    Chosen,
    ModelURI,
    PromptText,
    QuestionWording,
    Rewordable,
    find_prompt,
    order_pattern,
    parse_uri,
    prompts_of,
)
from creperie.scoring.answer_log import CUT_OFF, code_of
from creperie.scoring.choice import Asked, Case, ask, cases_of, no_question, open_case
from creperie.scoring.handle import open_model
from creperie.scoring.matrix import score
from creperie.scoring.options import ScoreOptions
from creperie.scoring.plan import ScoringPlan, brings_images, plan

#: cases per call of the model
TOGETHER = 32
KINDS = {"visualgpt": "caption", "vqa": "vqa", "yesno": "yesno", "choice": "choice"}


@dataclass(frozen=True)
class SensitivityRow:
    """The result for one prompt and order. `order` is the order of the options: NPP, for example, is a false caption
    (N) before two true ones (P). `order` is empty if each caption is judged by itself.
    """

    prompt: str
    family: str
    order: str
    subset: str
    n: int
    hits: int
    unread: int = 0

    @property
    def accuracy(self) -> float:
        return self.hits / self.n if self.n else float("nan")


@dataclass(frozen=True)
class Bias:
    """The position bias of a prompt: how often the model chooses each position, and how often the right option is at
    each position.

    `distance` is the total variation distance between these two distributions, and `none` is how often no position is
    chosen.
    """

    prompt: str
    options: int
    chosen: tuple[float, ...]
    right: tuple[float, ...]
    none: float
    distance: float


@dataclass(frozen=True)
class Sensitivity:
    """The results for all prompts and orders, how far they are apart, and the position bias in multiple choice."""

    model: str
    benchmark: str
    rows: list[SensitivityRow]
    biases: list[Bias] = field(default_factory=list)
    unread: list[dict[str, str]] = field(default_factory=list)

    def spread(self, subset: str = "all") -> dict[str, float]:
        """Return three ranges (highest minus lowest) of the accuracy on a subset. "prompts" is the range over prompts,
        where each prompt's accuracy is averaged over the orders. "orders" is the range over orders, where each order's
        accuracy is averaged over the prompts. "all" is the range over all results.
        """
        own = [r for r in self.rows if r.subset == subset]
        return {
            "prompts": _range(_means(own, "prompt")),
            "orders": _range(_means(own, "order")) if any(r.order for r in own) else float("nan"),
            "all": _range([r.accuracy for r in own]),
        }

    def document(self) -> dict[str, Any]:
        subsets = list(dict.fromkeys(r.subset for r in self.rows))
        return {
            "model": self.model,
            "benchmark": self.benchmark,
            "rows": [{**vars(r), "accuracy": r.accuracy} for r in self.rows],
            "spread": {s: self.spread(s) for s in subsets},
            "position_bias": [vars(b) for b in self.biases],
            "unparsable": self.unread,
        }


def sensitivity(
    bench: Benchmark,
    uri: str,
    *,
    prompts: Sequence[str] = (),
    options: ScoreOptions | None = None,
    progress: Progress = silent,
) -> Sensitivity:
    """Return the results of a model with several prompts: those in `prompts` or, by default, all prompts that suit the
    model's way of scoring (the option `score` of its URI).

    Multiple-choice questions are asked with the options in every order.
    """
    parsed = parse_uri(uri)
    if parsed.way not in KINDS:
        raise UsageError("has no prompts to vary", where=uri, hint="name a vlm: or api: model with ?score=")
    if not brings_images(bench):
        raise UsageError("the images of this benchmark are needed", where=bench.name, hint="pass `images='DIR'`")
    kind = KINDS[parsed.way]
    chosen = [find_prompt(name, kind, where=uri) for name in prompts] or prompts_of(kind)
    settings = options or ScoreOptions()
    if kind == "choice":
        return _of_choices(bench, uri, chosen, settings, progress)
    rows = []
    for prompt, name in zip(chosen, prompts or [p.id for p in chosen], strict=True):
        asked = ModelURI(parsed.kind, parsed.name, {**parsed.options, "prompt": name})
        run = score(bench, str(asked), tasks=["itt"], options=settings, progress=progress)
        rows += [
            SensitivityRow(prompt.id, prompt.family, "", r["subset"], r["n"], r["hits"])
            for r in run.results
            if r["subset"] != "macro"
        ]
    return Sensitivity(uri, bench.name, rows)


# -- choices ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Outcome:
    """The answer to a question with its options in one order. `right` is the position of the right option, and
    `options` is the number of options.
    """

    prompt: str
    order: str
    subset: str
    answer: Chosen
    right: int
    options: int

    @property
    def why(self) -> str:
        """Why the answer cannot be read; empty if it can be."""
        return self.answer.parsed.why if self.answer.parsed else ""

    @property
    def counts(self) -> bool:
        return code_of(self.answer) != CUT_OFF


def _of_choices(
    bench: Benchmark, uri: str, prompts: Sequence[PromptText], options: ScoreOptions, progress: Progress
) -> Sensitivity:
    model: Any = open_model(uri, device=options.device, dtype=options.dtype).model
    if not isinstance(model, Rewordable):
        what = "has no multiple-choice prompt that can be reworded"
        raise UsageError(what, where=uri, hint="name a vlm: or api: model with ?score=choice")
    planned = plan([bench], progress=progress)
    (part,) = planned.parts
    cases = [case for *_, case in cases_of(part, by_subset=True)]
    outcomes: list[_Outcome] = []
    with progress("ask", len(cases) * len(prompts), "questions") as advance:
        for prompt in prompts:
            asking = model.asked_with(QuestionWording({prompt.asks: prompt}, model.form.shots))
            fitting = [case for case in cases if case.asks(asking.asks)]
            for at in range(0, len(fitting), TOGETHER):
                outcomes += _ask_some(asking, planned, fitting[at : at + TOGETHER], prompt.id)
                advance(len(fitting[at : at + TOGETHER]))
    if not outcomes:
        raise no_question(bench)
    rows = []
    for prompt in prompts:
        groups: dict[tuple[str, bool, str], list[_Outcome]] = defaultdict(list)
        for one in (o for o in outcomes if o.prompt == prompt.id):
            for subset in (one.subset, "all"):
                groups[one.order, subset == "all", subset].append(one)
        for (order, _, subset), own in sorted(groups.items()):
            hits = sum(o.answer.position == o.right for o in own)
            n, unread = sum(o.counts for o in own), sum(bool(o.why) for o in own)
            rows.append(SensitivityRow(prompt.id, prompt.family, order, subset, n, hits, unread))
    counted = [o for o in outcomes if o.counts]
    biases = [
        _bias(prompt, options, [o for o in counted if (o.prompt, o.options) == (prompt, options)])
        for prompt, options in dict.fromkeys((o.prompt, o.options) for o in counted)
    ]
    named = ("prompt", "order", "subset", "why")
    unread_answers = [{n: getattr(o, n) for n in named} | {"answer": o.answer.answer} for o in outcomes if o.why]
    return Sensitivity(uri, bench.name, rows, biases, unread_answers)


def _ask_some(model: Chooser, planned: ScoringPlan, cases: Sequence[Case], prompt: str) -> Iterator[_Outcome]:
    opened = [(case, open_case(planned, case)) for case in cases]
    for case, asked in zip(cases, ask(model, planned, opened, "all"), strict=True):
        if isinstance(asked, Asked):
            target = case.match.index(asked.asks == "match")
            for order, answer in zip(asked.orders, asked.answers, strict=True):
                shown = order_pattern(order, case.match)
                yield _Outcome(prompt, shown, case.subset, answer, order.index(target), len(order))


def _bias(prompt: str, count: int, outcomes: Sequence[_Outcome]) -> Bias:
    right = [o.right for o in outcomes]
    named = [o.answer.position for o in outcomes if o.answer.position is not None]
    shares = tuple(named.count(k) / max(1, len(named)) for k in range(count))
    truth = tuple(right.count(k) / len(right) for k in range(count))
    distance = sum(abs(a - b) for a, b in zip(shares, truth, strict=True)) / 2 if named else float("nan")
    return Bias(prompt, count, shares, truth, 1 - len(named) / len(right), distance)


def _means(rows: Sequence[SensitivityRow], by: str) -> list[float]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, by)].append(row.accuracy)
    return [float(np.mean(values)) for values in groups.values()]


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values) if values else float("nan")
