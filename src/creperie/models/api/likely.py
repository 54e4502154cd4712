"""Scores from log-probabilities that a server returns. They belong to the first tokens of its answer, or to the tokens
of a caption.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import ModelError, UsageError
from creperie.models.answers import UNPARSABLE, Parsed
from creperie.models.api.adapter import ApiModel, messages_of
from creperie.models.api.queue import ask_all
from creperie.models.choice import ChoiceQuestion, Chosen
from creperie.models.generated_choice import Asking, GeneratedChooser, GeneratedYesNo, asking
from creperie.models.prompts import PromptText, find_prompt
from creperie.models.protocols import Prompt
from creperie.models.thoughts import GeneratedText

#: the likeliest tokens that servers list at most, and tokens of an answer within which its label must stand
LISTED, FIRST = 20, 4
_AROUND = " \t\n\"'`*()[]{}.:"


def probabilities(reply: GeneratedText, answers: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the probability of each possible answer, summed over its spellings. Spellings that are not among the
    likely tokens in the reply count as 0.

    The answer may begin at the second token, if the first one is only a bracket or a blank. The probabilities of both
    tokens are then multiplied.

    >>> reply = GeneratedText("(1)")
    >>> reply.top = ({"(": math.log(0.8), "none": math.log(0.1)}, {"1": math.log(0.75), "2": math.log(0.25)})
    >>> probabilities(reply, [["(1)"], ["(2)"], ["none"]]).round(3).tolist()
    [0.6, 0.2, 0.1]
    """
    found, before = np.zeros(len(answers)), 0.0
    plain = [{spelling.strip(_AROUND) for spelling in spellings} for spellings in answers]
    for tokens in reply.top:
        for token, log in tokens.items():
            for k, spellings in enumerate(plain):
                found[k] += math.exp(before + log) * (token.strip(_AROUND) in spellings)
        written, log = next(iter(tokens.items()))
        if written.strip(_AROUND):
            break
        before += log
    return found


class ReadsFirstTokens(Asking):
    """A mixin for reading the log-probabilities of an answer's first tokens instead of its text."""

    by, asked, partly, unlisted = "likelihood", 0, 0, 0.0
    tokens = FIRST

    def read(self, prompts: Sequence[Prompt], answers: Sequence[Sequence[Sequence[str]]], scale: bool) -> list[Chosen]:
        """Return the probabilities of the possible answers to each prompt. With `scale`, they are divided by their
        sum.
        """
        chosen = []
        for (reply,), spelled in zip(self.replies(prompts, top_logprobs=LISTED), answers, strict=True):
            if not reply.top or reply.thought:
                why = "thinks before it answers" if reply.thought else "returns no log-probabilities"
                hint = "pass ?reasoning=off" if reply.thought else "leave out ?by=likelihood"
                raise ModelError(f"the model {why}", where=self.generator.fingerprint.uri, hint=hint)
            shares = probabilities(reply, spelled)
            self.asked += 1
            self.partly += bool((shares == 0).any())
            self.unlisted = max(self.unlisted, 1 - float(shares.sum()) if (shares == 0).any() else 0)
            none = None if shares.any() else Parsed(UNPARSABLE, why=f"no answer is among the {LISTED} likeliest tokens")
            shares = shares / shares.sum() if scale and not none else np.full(len(shares), np.nan) if none else shares
            chosen.append(Chosen(shares.astype(np.float32), str(reply), none))
        return chosen

    @property
    def notes(self) -> list[str]:
        what = f"{self.partly:,} of {self.asked:,} answers do not list all labels among the {LISTED} likeliest tokens"
        most = f"the missing ones count as 0 and have at most {self.unlisted:.2g} of the probability"
        return [*super().notes, *([f"{what}: {most}"] if self.partly else [])]


class ServedChooser(ReadsFirstTokens, GeneratedChooser):
    """A chooser that reads the probabilities of the options' labels."""

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        labels = [[[label] for label in self.form.answers(q)] for q in questions]
        read = self.read([self.form.asked(q) for q in questions], labels, scale=True)
        return [
            Chosen(one.shares[: len(q.options)], one.answer, one.parsed) for q, one in zip(questions, read, strict=True)
        ]


class ServedYesNo(ReadsFirstTokens, GeneratedYesNo):
    """A pair scorer whose score is P(yes) / (P(yes) + P(no)). With a prompt of the kind `vqa`, the score is the
    probability of the answer in the prompt's field `answers` (VQAScore).
    """

    def judge(self, pairs: Sequence[tuple[Image.Image, str]]) -> list[Chosen]:
        vqa = self.prompt.kind == "vqa"
        answers = [self.prompt.answers[:1]] if vqa else [self.prompt.yes, self.prompt.no]
        read = self.read(self.questions(pairs), [answers] * len(pairs), scale=not vqa)
        return [Chosen(one.shares[:1], one.answer, one.parsed) for one in read]


def by_likelihood(model: ApiModel, options: Mapping[str, Any], uri: str) -> Any:
    """Return the scorer that the option `score` names. It reads log-probabilities from the server's replies."""
    way = options["score"]
    if way == "choice":
        asked = asking(model, options, uri)
        return ServedChooser(model, asked.form, asked.order)
    if model.endpoint.batch and way in ("likelihood", "visualgpt"):
        raise UsageError(f"option batch does not apply to score={way}", where=uri, hint="leave out batch=")
    if way == "likelihood":
        return ServedTexts(model)
    kind, default = {"vqa": ("vqa", "vqascore"), "visualgpt": ("caption", "one-sentence")}.get(
        way, ("yesno", "match-1")
    )
    prompt = find_prompt(options["prompt"], kind, default=default, where=uri)
    return (ServedCaptions if way == "visualgpt" else ServedYesNo)(model, prompt)


class ReadsPrompts:
    """The base class of scorers that use the mean log-probability of a caption's tokens. The caption is part of the
    prompt. A vLLM server returns the log-probabilities of the prompt's tokens.
    """

    def __init__(self, model: ApiModel, prompt: PromptText | None = None) -> None:
        self.model, self.prompt = model, prompt.text if prompt else ""
        used = {**model.fingerprint.options, "by": "prompt_logprobs"}
        self.fingerprint = replace(model.fingerprint, prompt=prompt.described if prompt else "", options=used)

    def tokens(self, asked: Sequence[dict[str, Any]]) -> list[list[tuple[str, float]]]:
        """Return the tokens of each prompt with their log-probabilities. The first token has no log-probability and is
        left out.
        """
        common = {"model": self.model.endpoint.model, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        read = []
        for answer in ask_all(self.model.queue, [{**common, **one} for one in asked]):
            listed = answer.get("prompt_logprobs") or answer["choices"][0].get("prompt_logprobs")
            if not listed:
                raise ModelError(
                    "the server does not return the log-probabilities of prompts",
                    where=self.model.endpoint.uri,
                    hint="use a server that does, such as vLLM, or choose ?score=vqa or ?score=yesno",
                )
            own = [next(iter(token.values())) for token in listed if token]
            read.append([(str(token["decoded_token"]), float(token["logprob"])) for token in own])
        return read


class ServedCaptions(ReadsPrompts):
    """A pair scorer. The score is the mean of log P(caption | image, prompt) per token (VisualGPTScore)."""

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        return np.array([one.shares[0] for one in self.judge([(image, text) for text in texts])], np.float32)

    def judge(self, pairs: Sequence[tuple[Image.Image, str]]) -> list[Chosen]:
        """Return one `Chosen` per pair. Its single number is the caption's mean log-probability per token."""
        asked = [
            {
                "messages": [
                    *messages_of(Prompt((("user", self.prompt),), (image,))),
                    {"role": "assistant", "content": text},
                ],
                "add_generation_prompt": False,
                "continue_final_message": True,
            }
            for image, text in pairs
        ]
        means = [_mean_of_end(text, tokens) for (_, text), tokens in zip(pairs, self.tokens(asked), strict=True)]
        lost = Parsed(UNPARSABLE, why="the server's prompt does not end with the caption")
        return [Chosen(np.array([mean], np.float32), parsed=None if mean == mean else lost) for mean in means]


class ServedTexts(ReadsPrompts):
    """A text scorer whose score is the mean log-probability of a caption's tokens, without the image. The first token
    is counted only if a start token precedes it.
    """

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        read = self.tokens([{"prompt": text} for text in texts])
        return np.array([np.mean([log for _, log in own]) if own else math.nan for own in read], np.float32)


def _mean_of_end(text: str, tokens: Sequence[tuple[str, float]]) -> float:
    """Return the mean log-probability of the tokens at the end of `tokens` that spell `text`; NaN if there are no such
    tokens. Differences in leading and trailing whitespace are ignored.
    """
    end = ""
    for at in range(len(tokens) - 1, -1, -1):
        end = tokens[at][0] + end
        if end.strip() == text.strip():
            return float(np.mean([log for _, log in tokens[at:]]))
    return math.nan
