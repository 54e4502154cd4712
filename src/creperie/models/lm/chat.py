"""Generate answers to many prompts with a local language model, in batches."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creperie.core import ModelError
from creperie.models.protocols import Prompt
from creperie.models.thoughts import decoded_reply
from creperie.models.writing import batches_by_size, can_pad, end_tokens, stopping, write


@dataclass(frozen=True)
class Chat:
    """A causal model and its tokenizer, which must have a chat template."""

    model: Any
    tokenizer: Any
    device: Any
    uri: str

    def answers(self, prompts: Sequence[Prompt]) -> list[str]:
        """Return one answer per prompt, in order."""
        asked = {i: self._ids(p) for i, p in enumerate(prompts) if p.max_tokens > 0}
        answers = [""] * len(prompts)
        sizes = {i: len(ids) + prompts[i].max_tokens for i, ids in asked.items()}
        batches = batches_by_size(sizes, self.device.type) if self._can_batch else [[i] for i in sizes]
        for batch in batches:
            written = self._write([asked[i] for i in batch], [prompts[i] for i in batch])
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

    def _write(self, asked: list[list[int]], prompts: list[Prompt]) -> list[tuple[list[int], bool]]:
        import torch
        from transformers import GenerationConfig

        width = max(map(len, asked))
        # padded with a token of the prompt, so that a penalty on repetition sees no other token
        ids = torch.tensor([own[:1] * (width - len(own)) + own for own in asked], device=self.device)
        mask = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in asked], device=self.device)
        inputs = {"input_ids": ids, "attention_mask": mask}
        ends = end_tokens(self.model, self.tokenizer)
        plain = GenerationConfig(**stopping(ends, len(prompts), self.device.type))
        return write(self.model, inputs, prompts, ends, generation_config=plain)
