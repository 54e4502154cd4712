"""A causal model answers many prompts at once.

Prompts that are alike go together, the shorter ones padded on the left and masked. What all of them begin with (the
same instructions and demonstrations, most often) is read once, and not again for the next prompts that begin so. Each
prompt draws its own random numbers from its own seed, so its answer does not depend on what is asked beside it.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from creperie.core import ModelError
from creperie.models.protocols import Prompt

#: Tokens of a batch, prompts and answers: a model of 7 billion weights takes up to 4 GB for their keys and values.
BATCH_TOKENS = 8_192
MOST_ROWS = 32
#: Fewer tokens in common than these are not worth a pass of their own.
LEAST_SHARED = 16
#: Beginnings that are kept: the steps of a workflow take turns.
MOST_HEADS = 4


@dataclass(frozen=True)
class Chat:
    """A causal model with the tokenizer whose chat template it knows."""

    model: Any
    tokenizer: Any
    device: Any
    uri: str
    heads: dict[tuple[int, ...], Any] = field(default_factory=dict)  #: beginnings of prompts, with keys and values

    def answers(self, prompts: Sequence[Prompt]) -> list[str]:
        """Return one answer per prompt, in order."""
        asked = [self._ids(p) for p in prompts]
        answers = [""] * len(prompts)
        for batch in self._batches(asked, prompts):
            for number, ids in zip(batch, self._generate([asked[i] for i in batch], [prompts[i] for i in batch])):
                answers[number] = str(self.tokenizer.decode(ids, skip_special_tokens=True))
        return answers

    def _ids(self, prompt: Prompt) -> list[int]:
        if self.tokenizer.chat_template is None:
            raise ModelError("has no chat template, so it cannot be asked", where=self.uri)
        messages = [{"role": role, "content": text} for role, text in prompt.messages]
        encoded = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        ids: list[int] = encoded["input_ids"]
        return ids

    def _batches(self, asked: Sequence[list[int]], prompts: Sequence[Prompt]) -> list[list[int]]:
        """Return numbers of prompts, in batches of those that are like each other."""
        if not self._can_batch:
            return [[i] for i in range(len(asked))]
        batches: list[list[int]] = []
        width = 0
        for i in sorted(range(len(asked)), key=lambda i: (asked[i], i)):  # what begins alike comes together
            need = len(asked[i]) + prompts[i].max_tokens
            wider = max(width, need)
            fits = batches and len(batches[-1]) < MOST_ROWS and wider * (len(batches[-1]) + 1) <= BATCH_TOKENS
            if not fits or not _alike(asked[batches[-1][0]], asked[i]):
                batches.append([])
                wider = need
            batches[-1].append(i)
            width = wider
        return batches

    @property
    def _can_batch(self) -> bool:
        """Padding is exact where positions can be told and every token sees all before it: not in models that look
        back a window only, whose padding would take room in it."""
        config = self.model.config
        windows = getattr(config, "sliding_window", None) or "sliding" in str(getattr(config, "layer_types", ""))
        return not windows and self.takes("position_ids")

    def takes(self, name: str) -> bool:
        return name in inspect.signature(self.model.forward).parameters

    def _generate(self, asked: list[list[int]], prompts: list[Prompt]) -> list[list[int]]:
        """Return the tokens of the answers, without the one that ends them."""
        import torch

        with torch.no_grad():
            rows = _AnswerRows(self, asked, prompts)
            while rows.open:
                rows.step()
        return rows.written

    @property
    def ends(self) -> set[int]:
        end_ids = self.model.generation_config.eos_token_id
        ends = set(end_ids) if isinstance(end_ids, (list, tuple)) else {end_ids}
        return {int(e) for e in (*ends, self.tokenizer.eos_token_id) if e is not None}


class _AnswerRows:
    """Answers being written, a row each. Rows that are done are left out of the work when they are half of it."""

    def __init__(self, chat: Chat, asked: list[list[int]], prompts: list[Prompt]) -> None:
        import torch
        from transformers import DynamicCache

        self.chat, self.prompts = chat, prompts
        self.written: list[list[int]] = [[] for _ in prompts]
        self.draws = [torch.Generator().manual_seed(p.seed) for p in prompts]
        self.open = [i for i, p in enumerate(prompts) if p.max_tokens > 0]
        self.rows = list(self.open)  #: the prompt of each row that is still worked on
        self.past = DynamicCache(config=chat.model.config)
        self.ends = chat.ends
        self.placed, self.short = chat.takes("position_ids"), chat.takes("logits_to_keep")
        if self.open:
            self._read([asked[i] for i in self.open])

    def _read(self, asked: list[list[int]]) -> None:
        """Read the prompts: what they share once, then what is different, padded on the left."""
        import torch

        shared = self._read_head(asked)
        own = [ids[shared:] for ids in asked]
        width = max(map(len, own))
        ids = torch.tensor([[0] * (width - len(o)) + o for o in own])
        there = torch.tensor([[0] * (width - len(o)) + [1] * len(o) for o in own])
        self.mask = torch.cat([torch.ones((len(own), shared), dtype=there.dtype), there], 1)
        self.position = self.mask.sum(1)  #: of the next token in each row
        places = (self.mask.cumsum(1) - 1).clamp(min=0)[:, shared:]
        self.logits = self._forward(ids, self.mask, places)

    def _read_head(self, asked: list[list[int]]) -> int:
        """Read what all prompts begin with, or take it from those before; how many tokens that is."""
        import torch

        heads = self.chat.heads
        shared = _shared(asked) if len(asked) > 1 else 0
        known = max((h for h in heads if all(tuple(ids[: len(h)]) == h for ids in asked)), key=len, default=())
        # one that is a little shorter will do: captions that begin alike make the beginning longer by chance
        if len(known) >= max(LEAST_SHARED, 0.8 * shared) and len(known) < min(map(len, asked)):
            heads[known] = heads.pop(known)  # the last used is the last to go
            self.past = deepcopy(heads[known])
            shared = len(known)
        elif shared >= LEAST_SHARED:
            every = torch.arange(shared)[None]
            self._forward(torch.tensor([asked[0][:shared]]), torch.ones_like(every), every)
            heads[tuple(asked[0][:shared])] = deepcopy(self.past)
            while len(heads) > MOST_HEADS:
                del heads[next(iter(heads))]
        else:
            return 0
        self.past.batch_repeat_interleave(len(asked))
        return shared

    def _forward(self, ids: Any, mask: Any, places: Any) -> Any:
        """Return the logits of the last token of each row, float32 on the CPU."""
        device = self.chat.device
        inputs = {"input_ids": ids, "attention_mask": mask} | ({"position_ids": places} if self.placed else {})
        last = {"logits_to_keep": 1} if self.short else {}  # those of a whole prompt would be gigabytes
        output = self.chat.model(
            **{name: value.to(device) for name, value in inputs.items()},
            past_key_values=self.past,
            use_cache=True,
            **last,
        )
        return output.logits[:, -1].float().cpu()

    def step(self) -> None:
        """A token more for each open row."""
        import torch

        chosen = [self._choose(row, prompt) for row, prompt in enumerate(self.rows)]
        for token, number in zip(chosen, self.rows):
            if number not in self.open:
                continue
            if token in self.ends:
                self.open.remove(number)
                continue
            self.written[number].append(token)
            if len(self.written[number]) >= self.prompts[number].max_tokens:
                self.open.remove(number)
        if not self.open:
            return
        if 2 * len(self.open) <= len(self.rows):
            chosen = self._leave_out(chosen)
        self.mask = torch.cat([self.mask, torch.ones((len(chosen), 1), dtype=self.mask.dtype)], 1)
        self.logits = self._forward(torch.tensor(chosen)[:, None], self.mask, self.position[:, None])
        self.position = self.position + 1

    def _choose(self, row: int, number: int) -> int:
        """Return the likeliest token; with a temperature, one drawn with the prompt's own numbers."""
        import torch

        temperature = self.prompts[number].temperature
        if temperature <= 0 or number not in self.open:
            return int(self.logits[row].argmax())
        chances = (self.logits[row].double() / temperature).softmax(-1).cumsum(-1)
        drawn = torch.rand(1, generator=self.draws[number], dtype=torch.double) * chances[-1]
        return min(int(torch.searchsorted(chances, drawn, right=True)), len(chances) - 1)

    def _leave_out(self, chosen: list[int]) -> list[int]:
        import torch

        staying = [row for row, number in enumerate(self.rows) if number in self.open]
        which = torch.tensor(staying)
        self.past.batch_select_indices(which.to(self.chat.device))
        self.mask, self.position = self.mask[which], self.position[which]
        self.rows = [self.rows[row] for row in staying]
        return [chosen[row] for row in staying]


def _alike(one: list[int], two: list[int]) -> bool:
    """Worth reading together: at least half of the shorter is the same beginning, or they are about as long."""
    shorter, longer = sorted((len(one), len(two)))
    return 4 * (longer - shorter) <= longer or 2 * _shared([one, two]) >= shorter


def _shared(asked: Sequence[list[int]]) -> int:
    """Return how many tokens all begin with; the last of each is read for itself.

    >>> _shared([[1, 2, 3, 4], [1, 2, 3], [1, 2, 5]])
    2
    """
    most = min(map(len, asked)) - 1
    first = asked[0]
    return next((k for k in range(most) if any(ids[k] != first[k] for ids in asked)), most)
