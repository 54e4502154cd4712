"""Choices and yes/no answers of models that only talk: chat endpoints, and any generator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import ModelError, UsageError
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

TOP = 20


def asking(generator: Any, options: Mapping[str, Any], uri: str) -> Any:
    """Return a generator as a model that scores: by choice, or by yes and no."""
    if options["score"] == "yesno":
        if options["shots"]:
            raise UsageError("option 'shots' does not apply to score=yesno", where=uri)
        prompt = find_prompt(options["prompt"], "yesno", default="match-1", where=uri)
        return GeneratedYesNo(generator, prompt)
    form = read_form(options["prompt"], options["shots"], where=uri)
    by = options["by"] or "generate"
    return GeneratedChooser(generator, form, options["order"], likelihood=by == "likelihood")


class GeneratedChooser(WordedChooser):
    """Asks a generator and reads its answers, or the likelihoods of the labels where a server gives them."""

    def __init__(self, generator: Any, form: QuestionWording, order: str, *, likelihood: bool = False) -> None:
        self.generator, self.likelihood = generator, likelihood
        self.form, self.order = form, order
        own: Fingerprint = generator.fingerprint
        used = {**own.options, "score": "choice", "by": "likelihood" if likelihood else "generate", "order": order}
        if form.shots:
            used["shots"] = "turns"  # before the image, each with its own
        self.fingerprint = replace(own, prompt=form.described(), options={**used, **form.marks})

    def asked_with(self, form: QuestionWording) -> GeneratedChooser:
        """Return the same model, asked in other words."""
        return GeneratedChooser(self.generator, form, self.order, likelihood=self.likelihood)

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        prompts = [self.form.asked(q) for q in questions]
        if self.likelihood:
            answers = self.generator.answers(prompts, top_logprobs=TOP)
            return [self._likely(q, a) for q, a in zip(questions, answers, strict=True)]
        said = self.generator.generate(prompts)
        return [self._read(q, answer) for q, answer in zip(questions, said, strict=True)]

    def _read(self, question: ChoiceQuestion, answer: str) -> Chosen:
        parsed = parse_choice(answer, question.options, asks=question.asks)
        return Chosen(shares_of(parsed, len(question.options)), answer, parsed)

    def _likely(self, question: ChoiceQuestion, answer: Mapping[str, Any]) -> Chosen:
        """Return the labels' probabilities at the first step where the answer names one of them."""
        answer_text = str(answer["choices"][0]["message"]["content"])
        steps = (answer["choices"][0].get("logprobs") or {}).get("content")
        if not steps:
            raise ModelError(
                "the server gives no log-probabilities", where=self.fingerprint.uri, hint="use ?by=generate"
            )
        labels = [core(label) for label in self.form.answers(question)]
        for step in steps:
            if core(step["token"]) in labels:
                shares = _shares(step["top_logprobs"], labels)[: len(question.options)]
                return Chosen(shares.astype(np.float32), answer_text)
        return self._read(question, answer_text)


def core(label: str) -> str:
    """Return a label without brackets, stops and blanks.

    >>> core(" (A)"), core("2.")
    ('a', '2')
    """
    return "".join(c for c in label.casefold() if c.isalnum())


def _shares(top: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> np.ndarray:
    shares = np.zeros(len(labels))
    for candidate in top:
        name = core(str(candidate["token"]))
        if name in labels:
            shares[labels.index(name)] += math.exp(float(candidate["logprob"]))
    return shares / shares.sum() if shares.sum() else shares


class GeneratedYesNo:
    """One for yes, zero for no, NaN for anything else."""

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
        return np.array([math.nan if r is None else float(r) for r in read], dtype=np.float32)
