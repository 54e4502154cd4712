"""Generate the answers to a batch of prompts with the `generate` method of transformers.

Shorter prompts are padded on the left and masked. Each prompt has its own random generator and seed, so its answer does
not depend on the other prompts in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from creperie.models.protocols import Prompt

if TYPE_CHECKING:
    import torch

#: tokens per batch, prompts and answers: for a model with 7 billion weights their KV cache takes up to 16 GB on a GPU
BATCH_TOKENS = {"cuda": 32_768, "cpu": 8_192}
MOST_ROWS = 32


def batches_by_size(sizes: Mapping[int, int], device: str = "cpu") -> list[list[int]]:
    """Return the keys of `sizes` (key → number of tokens) in batches of similar sizes, the largest first. `device`
    decides how many tokens a batch may have.
    """
    batches: list[list[int]] = []
    budget = BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"])
    for i in sorted(sizes, key=lambda i: -sizes[i]):
        last = batches[-1] if batches else []
        if last and len(last) < min(MOST_ROWS, budget // sizes[last[0]]):
            last.append(i)
        else:
            batches.append([i])
    return batches


def can_pad(model: Any) -> bool:
    """Return whether padding on the left leaves the output unchanged. Every token must attend to all tokens before
    it.
    """
    # With a sliding window, the padding would take up part of the window.
    text = model.config.get_text_config(decoder=True)
    return not (getattr(text, "sliding_window", None) or "sliding" in str(getattr(text, "layer_types", "")))


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end an answer."""
    end_ids = model.generation_config.eos_token_id
    ends = end_ids if isinstance(end_ids, (list, tuple)) else [end_ids]
    return sorted({int(e) for e in (*ends, tokenizer.eos_token_id) if e is not None})


def stopping(ends: Sequence[int], rows: int = 1, device: str = "cpu") -> dict[str, Any]:
    """Return arguments for `generate` that end an answer at any of the tokens `ends`. The rest of its row is filled
    with padding.
    """
    # On a GPU, the cache of a batch has room for all tokens from the start, because a growing cache would be copied for
    # every token.
    settings: dict[str, Any] = {"eos_token_id": list(ends) or None, "pad_token_id": ends[0] if ends else 0}
    if rows > 1 and device.startswith("cuda"):
        settings |= {"cache_implementation": "static", "disable_compile": True}
    return settings


def write(
    model: Any,
    inputs: Mapping[str, Any],
    prompts: Sequence[Prompt],
    ends: Sequence[int],
    *,
    start: int = 0,
    **settings: Any,
) -> list[tuple[list[int], bool]]:
    """Return (token ids, whether there was an end token) for each prompt. The token ids are those of the answer,
    without the end token.

    `ends` are the end tokens. `start` is the number of tokens to skip at the beginning of the output, such as a
    decoder's start token. `settings` are further arguments of `generate`, such as those from `stopping`.
    """
    import torch
    from transformers import LogitsProcessorList

    own = {"max_new_tokens": max(p.max_tokens for p in prompts), "do_sample": False}
    if "generation_config" in settings:
        settings["generation_config"].update(**own)  # beside it, `generate` warns of arguments
    else:
        settings |= own
    with torch.no_grad():
        rows = model.generate(**inputs, **settings, logits_processor=LogitsProcessorList([_Draws(prompts)]))
    asked = inputs.get("input_ids")
    if asked is not None and torch.equal(rows[:, : asked.shape[1]], asked):
        rows = rows[:, asked.shape[1] :]  # decoders return the prompt with the answer
    answers = [row[start:][: p.max_tokens] for row, p in zip(rows.tolist(), prompts, strict=True)]
    stops = [next((k for k, token in enumerate(row) if token in ends), len(row)) for row in answers]
    return [(row[:stop], stop < len(row)) for row, stop in zip(answers, stops, strict=True)]


class _Draws:
    """A logits processor for prompts with a temperature.

    It adds Gumbel noise; the token with the highest value is then a random draw from the distribution. Each prompt has
    its own random generator.
    """

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        import torch

        self.warm = {row: p for row, p in enumerate(prompts) if p.temperature > 0}
        self.dice = {row: torch.Generator().manual_seed(p.seed) for row, p in self.warm.items()}

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch
        from transformers import MinPLogitsWarper, TopPLogitsWarper

        scores = scores.double() if self.warm else scores
        for row, prompt in self.warm.items():
            own = scores[row : row + 1] / prompt.temperature
            if prompt.top_p < 1:
                own = TopPLogitsWarper(prompt.top_p)(ids, own)
            if prompt.min_p > 0:
                own = MinPLogitsWarper(prompt.min_p)(ids, own)
            uniform = torch.rand(scores.shape[1], generator=self.dice[row], dtype=torch.double)
            scores[row] = own[0] - torch.log(-torch.log(uniform)).to(scores.device)
        return scores
