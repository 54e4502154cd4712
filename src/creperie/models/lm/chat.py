"""Generate answers to many prompts with a local language model, in batches. A beginning that the prompts share is read
only once.
"""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from creperie.core import ModelError
from creperie.models.protocols import Prompt
from creperie.models.thoughts import decoded_reply
from creperie.models.writing import batches_by_size, can_pad, end_tokens, stopping, write

#: the least number of tokens in common that are read apart
SHARED = 16


@dataclass(frozen=True)
class Chat:
    """A causal model and its tokenizer. The tokenizer must have a chat template."""

    model: Any
    tokenizer: Any
    device: Any
    uri: str
    #: the last common beginning of prompts, and its KV cache
    known: dict[tuple[int, ...], Any] = field(default_factory=dict)

    def answers(self, prompts: Sequence[Prompt]) -> list[str]:
        """Return one answer per prompt, in order."""
        asked = {i: self._ids(p) for i, p in enumerate(prompts) if p.max_tokens > 0}
        answers = [""] * len(prompts)
        sizes = {i: len(ids) + prompts[i].max_tokens for i, ids in asked.items()}
        batches = batches_by_size(sizes, self.device.type) if self._can_batch else [[i] for i in sizes]
        shared = self._shared(list(asked.values()))
        for batch in batches:
            written = self._write([asked[i] for i in batch], [prompts[i] for i in batch], shared)
            for number, (ids, ended) in zip(batch, written):
                answers[number] = decoded_reply(self.tokenizer, ids, ended=ended, asked=asked[number])
        return answers

    def _ids(self, prompt: Prompt) -> list[int]:
        if self.tokenizer.chat_template is None:
            raise ModelError("has no chat template: name an instruction-tuned model", where=self.uri)
        messages = [{"role": role, "content": text} for role, text in prompt.messages]
        encoded = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        return encoded["input_ids"]

    @property
    def _can_batch(self) -> bool:
        return can_pad(self.model) and "position_ids" in inspect.signature(self.model.forward).parameters

    def _shared(self, asked: Sequence[list[int]]) -> tuple[int, ...]:
        """Let the model read the tokens that all prompts begin with, unless it has read them already, and return these
        tokens. On a GPU, or if the prompts share too few tokens, read nothing and return ().
        """
        # On a GPU, generating takes most of the time, so the beginning is read with every prompt.
        import torch

        if not self._can_batch or self.device.type == "cuda" or not asked:
            return ()
        for shared in self.known:
            if all(tuple(ids[: len(shared)]) == shared and len(ids) > len(shared) for ids in asked):
                return shared
        alike = itertools.takewhile(lambda tokens: len({*tokens}) == 1, zip(*asked))
        shared = tuple(tokens[0] for tokens in alike)[: min(map(len, asked)) - 1]
        if len(asked) < 2 or len(shared) < SHARED:
            return ()
        self.known.clear()
        with torch.no_grad():
            read = self.model(torch.tensor([shared], device=self.device), use_cache=True)
        self.known[shared] = read.past_key_values
        return shared

    def _write(
        self, asked: Sequence[list[int]], prompts: Sequence[Prompt], shared: tuple[int, ...]
    ) -> list[tuple[list[int], bool]]:
        import torch
        from transformers import GenerationConfig

        width, common = max(map(len, asked)), len(shared)
        # padded with a token of the prompt, so that a penalty on repetition sees no other token
        ids = [[*shared, *own[:1] * (width - len(own)), *own[common:]] for own in asked]
        mask = [[1] * common + [0] * (width - len(own)) + [1] * (len(own) - common) for own in asked]
        inputs: dict[str, Any] = {
            "input_ids": torch.tensor(ids, device=self.device),
            "attention_mask": torch.tensor(mask, device=self.device),
        }
        if shared:
            inputs["past_key_values"] = copy.deepcopy(self.known[shared])
            inputs["past_key_values"].batch_repeat_interleave(len(asked))
        ends = end_tokens(self.model, self.tokenizer)
        plain = GenerationConfig(**stopping(ends, len(prompts), self.device.type))
        return write(self.model, inputs, prompts, ends, generation_config=plain)
