"""Likelihoods from a server: how likely a model that somebody else runs finds each token of a caption.

`echo`: completions that repeat the prompt with its log-probabilities (OpenAI's first interface, llama.cpp in Python,
vLLM). `prompt_logprobs`: vLLM's own, also for chats with images. No server predicts the first token of a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from PIL import Image

from creperie.core import ModelError
from creperie.models.api.adapter import ApiModel, messages_of
from creperie.models.api.queue import Answer, ask_all
from creperie.models.lm.likelihood import REDUCTIONS
from creperie.models.prompts import PromptText, find_prompt
from creperie.models.protocols import Model, Prompt

#: a text whose second half every language model foresees, and how likely it must be at least
PROBE, LEAST = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16", -4.0
Logs = list[float | None]


class ServedLikelihood:
    """Captions alone, by completions; what `start` says stands before each and is not scored."""

    def __init__(self, api: ApiModel, options: Mapping[str, Any]) -> None:
        self.api, self.via, self.start = api, options["via"] or "echo", options["start"] or ""
        self.reduce = REDUCTIONS[options["reduce"]]
        used = {"score": options["score"], "via": self.via, "reduce": options["reduce"], "start": self.start}
        self.fingerprint = replace(api.fingerprint, options=used)

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.reduce(logs) for logs in self.log_probabilities(texts)], np.float32)

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        """One array per caption: of its tokens, but for the first where nothing stands before it."""
        asked = [self.start + text for text in texts]
        return [_known(logs[self.before :]) for logs in self._asked(asked)]

    @cached_property
    def before(self) -> int:
        """How many tokens the server lists for the start. It is asked when first needed, and so is whether the numbers
        stand beside the right tokens: llama.cpp in Python is off by one for models without a start token."""
        # a blank at its end belongs to the next word's token
        own, probe = self._asked([self.start.rstrip() or PROBE, self.start + PROBE])
        logs = _known(probe)
        if float(logs[len(logs) // 2 :].mean()) < LEAST:
            what = "the log-probabilities are not those of their tokens: the model fails to predict a simple count"
            hint = "give the model's start token as ?start=, such as ?start=<|endoftext|>, or use ?via=vllm"
            raise ModelError(what, where=self.api.endpoint.uri, hint=hint)
        return len(own) if self.start.strip() else 0

    def _asked(self, texts: Sequence[str]) -> list[Logs]:
        extra = {"prompt_logprobs": 0} if self.via == "vllm" else {"echo": True, "logprobs": 1}
        shape = {"model": self.api.endpoint.model, "max_tokens": 1, "temperature": 0.0, **extra}
        answers = ask_all(self.api.queue, [{**shape, "prompt": text} for text in texts])
        return [self._read(answer) for answer in answers]

    def _read(self, answer: Answer) -> Logs:
        """What an answer says of each token of its prompt; None for those that were not predicted."""
        choice = answer["choices"][0]
        if self.via == "vllm":
            return [log for log, _ in _listed(choice.get("prompt_logprobs"), self.api.endpoint.uri)]
        found = (choice.get("logprobs") or {}).get("token_logprobs")
        if not isinstance(found, list):
            raise _silent(self.api.endpoint.uri)
        written = int((answer.get("usage") or {}).get("completion_tokens") or 0)
        return found[: len(found) - written]


class ServedImageLikelihood(ServedLikelihood):
    """VisualGPTScore through vLLM: the caption is the beginning of the answer to a question about the image."""

    def __init__(self, api: ApiModel, options: Mapping[str, Any]) -> None:
        super().__init__(api, {**options, "via": "vllm"})
        uri, name = api.endpoint.uri, options["prompt"]
        self.prompt: PromptText = find_prompt(name, "caption", default="one-sentence", where=uri)
        self.fingerprint = replace(self.fingerprint, prompt=self.prompt.text)

    def score_pairs(self, image: Image.Image, texts: Sequence[str]) -> np.ndarray:
        shape = {"model": self.api.endpoint.model, "max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}
        shape |= {"add_generation_prompt": False, "continue_final_message": True}
        turns = [Prompt((("user", self.prompt.text), ("assistant", text)), images=(image,)) for text in texts]
        answers = ask_all(self.api.queue, [{**shape, "messages": messages_of(turn)} for turn in turns])
        logs = [
            _last(_listed(answer.get("prompt_logprobs"), self.api.endpoint.uri), text)
            for answer, text in zip(answers, texts, strict=True)
        ]
        return np.array([self.reduce(own) if len(own) else np.nan for own in logs], np.float32)


def likelihood(api: ApiModel, options: Mapping[str, Any]) -> Model:
    return (ServedImageLikelihood if options["score"] == "visualgpt" else ServedLikelihood)(api, options)


def _known(logs: Logs) -> np.ndarray:
    return np.array([log for log in logs if log is not None], np.float32)


def _listed(found: Any, uri: str) -> list[tuple[float | None, str]]:
    """vLLM's list: per token of the prompt None or {id: {logprob, decoded_token}}, the prompt's own token first."""
    if not isinstance(found, list):
        raise _silent(uri)
    own = [next(iter(entry.values())) if entry else {} for entry in found]
    return [(entry.get("logprob"), entry.get("decoded_token") or "") for entry in own]


def _last(tokens: list[tuple[float | None, str]], text: str) -> np.ndarray:
    """The tokens at the end that spell the text; none where they do not.

    >>> _last([(None, "<s>"), (-3.0, "▁see"), (-1.0, " a"), (-2.0, " cat")], "a cat").tolist()
    [-1.0, -2.0]
    """
    spelt, logs = "", Logs()
    for log, token in reversed(tokens):
        if len(spelt.strip()) >= len(text.strip()):
            break
        spelt, logs = token.replace("▁", " ") + spelt, [log, *logs]
    return _known(logs) if spelt.strip() == text.strip() else np.zeros(0, np.float32)


def _silent(uri: str) -> ModelError:
    return ModelError(
        "the server gives no log-probabilities of the prompt",
        where=uri,
        hint="llama.cpp in Python needs --logits_all true; vLLM takes ?via=vllm",
    )
