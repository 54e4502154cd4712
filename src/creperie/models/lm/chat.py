"""Generate answers to many prompts in batches, with `generate` of transformers.

Shorter prompts are padded on the left and masked. Each prompt has its own random generator, seeded with its own seed,
so its answer does not depend on the other prompts in the batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creperie.core import ModelError
from creperie.models.protocols import Prompt
from creperie.models.thoughts import decoded_reply

#: tokens per batch, prompts and answers: for a model with 7 billion weights their KV cache takes up to 4 GB
BATCH_TOKENS = 8_192
MOST_ROWS = 32


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
        for batch in self._batches(asked, prompts):
            written = self._generate([asked[i] for i in batch], [prompts[i] for i in batch])
            for number, (ids, ended) in zip(batch, written):
                answers[number] = decoded_reply(self.tokenizer, ids, ended=ended, asked=asked[number])
        return answers

    def _ids(self, prompt: Prompt) -> list[int]:
        if self.tokenizer.chat_template is None:
            raise ModelError("has no chat template: name an instruction-tuned model", where=self.uri)
        messages = [{"role": role, "content": text} for role, text in prompt.messages]
        encoded = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        return encoded["input_ids"]

    def _batches(self, asked: dict[int, list[int]], prompts: Sequence[Prompt]) -> list[list[int]]:
        """Return the indices of prompts in batches of similar length, the longest first."""
        batches: list[list[int]] = []
        sizes = {i: len(ids) + prompts[i].max_tokens for i, ids in asked.items()}
        for i in sorted(asked, key=lambda i: -sizes[i]):
            last = batches[-1] if batches else []
            room = min(MOST_ROWS, BATCH_TOKENS // sizes[last[0]]) if last and self._can_batch else 0
            if len(last) < room:
                last.append(i)
            else:
                batches.append([i])
        return batches

    @property
    def _can_batch(self) -> bool:
        """True if padding is exact: the model takes position ids, and every token attends to all tokens before it. With
        a sliding window the padding would take up room in the window.
        """
        config = self.model.config
        windows = getattr(config, "sliding_window", None) or "sliding" in str(getattr(config, "layer_types", ""))
        return not windows and "position_ids" in inspect.signature(self.model.forward).parameters

    def _generate(self, asked: list[list[int]], prompts: list[Prompt]) -> list[tuple[list[int], bool]]:
        """Return the token ids of the answers, without the end token, and whether there was one."""
        import torch
        from transformers import GenerationConfig, LogitsProcessorList

        width, ends = max(map(len, asked)), self.ends
        ids = torch.tensor([[0] * (width - len(own)) + own for own in asked], device=self.device)
        mask = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in asked], device=self.device)
        longest = max(p.max_tokens for p in prompts)
        plain = GenerationConfig(max_new_tokens=longest, do_sample=False, pad_token_id=0, eos_token_id=ends or None)
        draws = LogitsProcessorList([_Draws(prompts)])
        with torch.no_grad():
            rows = self.model.generate(ids, attention_mask=mask, generation_config=plain, logits_processor=draws)
        written = [row[: p.max_tokens] for row, p in zip(rows[:, width:].tolist(), prompts)]
        stops = [next((k for k, token in enumerate(row) if token in ends), len(row)) for row in written]
        return [(row[:stop], stop < len(row)) for row, stop in zip(written, stops)]

    @property
    def ends(self) -> list[int]:
        end_ids = self.model.generation_config.eos_token_id
        ends = end_ids if isinstance(end_ids, (list, tuple)) else [end_ids]
        return sorted({int(e) for e in (*ends, self.tokenizer.eos_token_id) if e is not None})


class _Draws:
    """A logits processor for prompts with a temperature: it adds Gumbel noise, so that the likeliest token is a sample
    from the distribution. Each prompt has its own random generator.
    """

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        import torch

        self.warm = {row: p for row, p in enumerate(prompts) if p.temperature > 0}
        self.dice = {row: torch.Generator().manual_seed(prompts[row].seed) for row in self.warm}

    def __call__(self, ids: Any, scores: Any) -> Any:
        import torch

        scores = scores.double()
        for row, prompt in self.warm.items():
            uniform = torch.rand(scores.shape[1], generator=self.dice[row], dtype=torch.double)
            warm = scores[row] / prompt.temperature
            chances, order = warm.softmax(-1).sort(descending=True)
            # a token stays if those before it have less than top_p together, and it has min_p of the likeliest one's
            out = (chances.cumsum(-1) - chances >= prompt.top_p) | (chances < prompt.min_p * chances[0])
            warm[order[out & (chances < chances[0])]] = -torch.inf
            scores[row] = warm - torch.log(-torch.log(uniform)).to(scores.device)
        return scores
