"""How a generative model is asked to answer: room, sampling, reasoning, and how several samples become one answer.

The options are declared here once, for servers and local models; those that are given are part of the fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from creperie.core import UsageError
from creperie.models.protocols import Prompt
from creperie.models.uri import ModelOption

EFFORTS = ("off", "low", "medium", "high")
ANSWER_OPTIONS = (
    ModelOption("max_tokens", "tokens that an answer and its thoughts may take", "number"),
    ModelOption("temperature", "sampling temperature; 0 takes the likeliest token", "decimal"),
    ModelOption("top_p", "sample from the likeliest tokens that have this share of the probability", "decimal"),
    ModelOption("min_p", "sample from tokens with at least this share of the likeliest one's probability", "decimal"),
    ModelOption("seed", "seed of the sampling", "number", 0),
    ModelOption("reasoning", "how much the model thinks: off, low, medium, high, or a number of tokens"),
    ModelOption("samples", "answers per question, with seeds that count up (default 1)", "number"),
    ModelOption("combine", "several samples: the majority, or their mean", "choice", None, ("majority", "mean")),
)
NAMES = tuple(option.name for option in ANSWER_OPTIONS)


@dataclass(frozen=True)
class AnswerSettings:
    """The options that a user gave; None leaves the choice to the prompt."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int = 0
    reasoning: str | None = None
    samples: int = 1
    combine: str = "majority"
    system: str | None = None

    @staticmethod
    def of(options: Mapping[str, Any], *, where: str) -> AnswerSettings:
        """Return the settings in the options of a model URI; raise a UsageError if they contradict each other."""
        given = {f.name: options[f.name] for f in fields(AnswerSettings) if options.get(f.name) is not None}
        settings = AnswerSettings(**given)
        effort = settings.reasoning
        if effort is not None and effort not in EFFORTS and not effort.isdigit():
            raise UsageError(
                f"option reasoning={effort!r} is not known",
                where=where,
                hint=f"use {', '.join(EFFORTS)}, or a number of tokens",
            )
        if settings.samples > 1 and not settings.temperature:
            raise UsageError("option samples needs a temperature: pass ?temperature=1 as well", where=where)
        if settings.samples == 1 and "combine" in given:
            raise UsageError("option combine needs samples: pass ?samples=5 as well", where=where)
        return settings

    @property
    def marks(self) -> dict[str, Any]:
        """The settings that differ from the defaults, for the fingerprint."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def applied(self, prompt: Prompt) -> Prompt:
        """Return a prompt with these settings in place of its own."""
        own = ("max_tokens", "temperature", "top_p", "min_p", "reasoning")
        given = {name: value for name in own if (value := getattr(self, name)) is not None}
        messages = (("system", self.system), *prompt.messages) if self.system else prompt.messages
        return replace(prompt, **given, messages=messages, seed=prompt.seed + self.seed)

    def drawn(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Return every prompt as often as it is asked, the samples of one prompt beside each other."""
        return [replace(p, seed=p.seed + k) for p in prompts for k in range(self.samples)]
