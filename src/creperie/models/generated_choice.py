"""Choices and yes/no answers from models that only generate text: chat endpoints, and any generator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import UsageError
from creperie.models.answers import parse_choice, parse_yes_no
from creperie.models.choice import (
    ANSWER_TOKENS,
    ChoiceQuestion,
    Chosen,
    QuestionWording,
    WordedChooser,
    read_form,
    shares_of,
)
from creperie.models.prompts import PromptText, find_prompt
from creperie.models.protocols import Fingerprint, Generator, Prompt


def asking(generator: Any, options: Mapping[str, Any], uri: str) -> Any:
    """Wrap a generator as a model that scores: a chooser, or a yes/no scorer (`score=yesno`)."""
    if options["score"] == "yesno":
        if options["shots"]:
            raise UsageError("option 'shots' does not apply to score=yesno: leave it out", where=uri)
        prompt = find_prompt(options["prompt"], "yesno", default="match-1", where=uri)
        return GeneratedYesNo(generator, prompt)
    form = read_form(options["prompt"], options["shots"], where=uri)
    return GeneratedChooser(generator, form, options["order"])


class GeneratedChooser(WordedChooser):
    """A chooser that asks a generator and parses its answers."""

    def __init__(self, generator: Any, form: QuestionWording, order: str) -> None:
        self.generator = generator
        self.form, self.order = form, order
        own: Fingerprint = generator.fingerprint
        used = {**own.options, "score": "choice", "by": "generate", "order": order}
        if form.shots:
            used["shots"] = "turns"  # demonstrations come before the question, each with its own image
        self.fingerprint = replace(own, prompt=form.described(), options={**used, **form.marks})

    def asked_with(self, form: QuestionWording) -> GeneratedChooser:
        """Return the same model with another wording of its questions."""
        return GeneratedChooser(self.generator, form, self.order)

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        prompts = [self.form.asked(q) for q in questions]
        answers = self.generator.generate(prompts)
        return [self._read(q, answer) for q, answer in zip(questions, answers, strict=True)]

    def _read(self, question: ChoiceQuestion, answer: str) -> Chosen:
        parsed = parse_choice(answer, question.options, asks=question.asks)
        return Chosen(shares_of(parsed, len(question.options)), answer, parsed)


class GeneratedYesNo:
    """A pair scorer that asks a generator: 1 for yes, 0 for no, NaN for anything else."""

    def __init__(self, generator: Generator, prompt: PromptText) -> None:
        self.generator, self.prompt = generator, prompt
        own = generator.fingerprint
        used = {**own.options, "score": "yesno", "by": "generate"}
        self.fingerprint = replace(own, prompt=prompt.described, options=used)

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        prompts = [
            Prompt((("user", self.prompt.about(text)),), images=(image,), max_tokens=ANSWER_TOKENS) for text in texts
        ]
        read = [parse_yes_no(answer) for answer in self.generator.generate(prompts)]
        return np.array([math.nan if r is None else float(r) for r in read], np.float32)
