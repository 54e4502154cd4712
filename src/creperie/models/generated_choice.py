"""Multiple choice and yes/no questions for any model that generates text, such as a model behind a chat endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import UsageError
from creperie.models.answering import AnswerSettings
from creperie.models.answers import CHOSE_OPTION, CUT, NONE, UNPARSABLE, Parsed, parse_choice, parse_yes_no
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
from creperie.models.thoughts import GeneratedText, joined, reply_of


def asking(generator: Any, options: Mapping[str, Any], uri: str) -> Any:
    """Return a scorer that asks a generator which caption fits. With the option `score=yesno`, it asks for each caption
    whether it fits.
    """
    way = options["score"]
    if options["shots"] and way != "choice":
        raise UsageError(f"option 'shots' does not apply to score={way}", where=uri, hint="leave out shots=")
    if way == "yesno":
        return GeneratedYesNo(generator, find_prompt(options["prompt"], "yesno", default="match-1", where=uri))
    form = read_form(options["prompt"], options["shots"], where=uri)
    return GeneratedChooser(generator, form, options["order"])


class Asking:
    """The base class of scorers that send prompts to a generator. If several samples are wanted, a prompt is sent
    several times.
    """

    generator: Any
    by = "generate"

    @property
    def settings(self) -> AnswerSettings:
        return getattr(self.generator, "settings", AnswerSettings())

    @property
    def tokens(self) -> int:
        """The maximum number of tokens in an answer."""
        return self.settings.max_tokens or int(getattr(self.generator, "answer_tokens", ANSWER_TOKENS))

    @property
    def notes(self) -> list[str]:
        return list(getattr(self.generator, "notes", ()))

    def described(self, prompt: str, **used: Any) -> Fingerprint:
        """Return the generator's fingerprint with the prompt and the options of the scorer added."""
        own: Fingerprint = self.generator.fingerprint
        used = {**own.options, **self.settings.marks, "by": self.by, "max_tokens": self.tokens, **used}
        return replace(own, prompt=prompt, options=used)

    def replies(self, prompts: Sequence[Prompt], **more: Any) -> list[list[GeneratedText]]:
        """Return the sampled answers to each prompt. `more` replaces fields of the prompts."""
        asked = self.settings.drawn([replace(p, max_tokens=self.tokens, **more) for p in prompts])
        texts = [reply_of(text) for text in self.generator.generate(asked)]
        return [texts[at : at + self.settings.samples] for at in range(0, len(texts), self.settings.samples)]

    def combined(self, samples: Sequence[GeneratedText], read: Callable[[str], Parsed], count: int) -> Chosen:
        """Combine the sampled answers to one prompt, and return the probability of each of `count` options. The setting
        `combine` decides between a majority vote and the mean.

        `read` parses a sample. A sample that cannot be parsed counts for no option. If any sample is cut off, the whole
        answer counts as cut off.
        """
        parsed, answer = [read(text) for text in samples], joined(samples)
        void = next((one for kind in (CUT, UNPARSABLE) for one in parsed if one.kind == kind), parsed[0])
        if len(parsed) == 1 or void.kind == CUT or all(one.why for one in parsed):
            return Chosen(shares_of(void, count), answer, void)
        shares = np.nan_to_num(np.array([shares_of(one, count) for one in parsed])).mean(axis=0)
        if self.settings.combine == "majority":
            most = shares.max(initial=0) if shares.max(initial=0) > 1 - shares.sum() else np.inf
            shares = (shares == most) / max(1, int((shares == most).sum()))
        return Chosen(shares.astype(np.float32), answer)


class GeneratedChooser(Asking, WordedChooser):
    """A chooser that asks a generator and parses its answers."""

    def __init__(self, generator: Any, form: QuestionWording, order: str) -> None:
        self.generator = generator
        self.form, self.order = form, order
        # demonstrations come before the question, each with its own image
        shots = {"shots": "turns"} if form.shots else {}
        self.fingerprint = self.described(form.described(), score="choice", order=order, **shots, **form.marks)

    def asked_with(self, form: QuestionWording) -> GeneratedChooser:
        """Return the same model with another wording of the questions."""
        return type(self)(self.generator, form, self.order)

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        replies = self.replies([self.form.asked(q) for q in questions])
        return [
            self.combined(samples, partial(parse_choice, options=q.options, asks=q.asks), len(q.options))
            for q, samples in zip(questions, replies, strict=True)
        ]


class GeneratedYesNo(Asking):
    """A pair scorer that asks a generator: 1 for yes, 0 for no, NaN for anything else."""

    def __init__(self, generator: Generator, prompt: PromptText) -> None:
        self.generator, self.prompt = generator, prompt
        self.fingerprint = self.described(prompt.described, score=prompt.kind)

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return np.array([one.shares[0] for one in self.judge([(image, text) for text in texts])], np.float32)

    def judge(self, pairs: Sequence[tuple[Image.Image, str]]) -> list[Chosen]:
        """Return one answer per pair of image and caption. Its single number is the probability of yes."""
        return [self.combined(samples, _yes_or_no, 1) for samples in self.replies(self.questions(pairs))]

    def questions(self, pairs: Sequence[tuple[Image.Image, str]]) -> list[Prompt]:
        return [Prompt((("user", self.prompt.about(text)),), images=(image,)) for image, text in pairs]


def _yes_or_no(text: str) -> Parsed:
    read = parse_yes_no(text)
    if read is None:
        cut = reply_of(text).cut
        return Parsed(CUT if cut else UNPARSABLE, why="the answer was cut off" if cut else "neither yes nor no")
    return Parsed(CHOSE_OPTION, 0) if read else Parsed(NONE)
