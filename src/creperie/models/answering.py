"""How a generative model answers: length, sampling, reasoning, and how several samples become one answer.

The options are declared once, in kinds.toml, for servers and local models. Options that the user sets are part of the
fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from creperie.core import UsageError
from creperie.models.protocols import Prompt

EFFORTS = ("off", "low", "medium", "high")


@dataclass(frozen=True)
class AnswerSettings:
    """The user's options for how a model answers. An option that is None takes its value from the prompt."""

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
        """Return the settings among the options of a model URI. Raise a UsageError if they contradict each other."""
        given = {f.name: options[f.name] for f in fields(AnswerSettings) if options.get(f.name) is not None}
        settings = AnswerSettings(**given)
        effort = settings.reasoning
        if effort is not None and effort not in EFFORTS and not effort.isdigit():
            raise UsageError(
                f"unknown value reasoning={effort!r}",
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
        """The settings that differ from the defaults, by name. They are part of the model's fingerprint."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def applied(self, prompt: Prompt) -> Prompt:
        """Return a copy of the prompt in which the options that are set here replace the prompt's own."""
        own = ("max_tokens", "temperature", "top_p", "min_p", "reasoning")
        given = {name: value for name in own if (value := getattr(self, name)) is not None}
        messages = (("system", self.system), *prompt.messages) if self.system else prompt.messages
        return replace(prompt, **given, messages=messages, seed=prompt.seed + self.seed)

    def drawn(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Return `samples` copies of each prompt, one after another, with different random seeds."""
        return [replace(p, seed=p.seed + k) for p in prompts for k in range(self.samples)]


#: the options that every generator takes; servers take `system`, too, and local models have one of their own
NAMES = tuple(f.name for f in fields(AnswerSettings) if f.name != "system")
