"""Turn captions into token ids, and token ids into padded batches."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.core import sha256_of_text
from creperie.models.captions import CaptionRule
from creperie.models.device import Place
from creperie.models.protocols import Tokens

if TYPE_CHECKING:
    import torch

#: tokenizers use a huge number for "no limit"
NO_LIMIT = 10**6
#: tokens per batch: the logits are tokens × vocabulary floats, and 2048 × 150,000 of them take 1.2 GB
BATCH_TOKENS = 2048


class CaptionTokenizer:
    """A transformers tokenizer with a context length and a rule that changes a caption beforehand. Several threads may
    call it at once.
    """

    def __init__(
        self, tokenizer: Any, rule: CaptionRule, context: int, *, append_end: bool = False, pad_left: bool | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.rule = rule
        self.context = context
        self.append_end = append_end  #: append the end token to every caption, for tokenizers that do not
        self.pad_left = tokenizer.padding_side == "left" if pad_left is None else pad_left
        self.masks = "attention_mask" in tokenizer.model_input_names
        # truncation is a setting of the shared tokenizer, so two threads must not use it at once
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token ids of captions."""
        # Long captions are tokenised twice, without and with truncation, to know how many tokens were cut.
        shown = [self.rule(text) for text in texts]
        if not shown:
            return []
        room = self.context - self.append_end
        with self._lock:
            whole = self._ids(shown, None)
            long = [i for i, ids in enumerate(whole) if len(ids) > room]
            fitted = dict(zip(long, self._ids([shown[i] for i in long], room))) if long else {}
        end = [self.tokenizer.eos_token_id] if self.append_end else []
        return [
            Tokens(np.asarray(fitted.get(i, ids) + end, np.int64), max(0, len(ids) - room))
            for i, ids in enumerate(whole)
        ]

    def _ids(self, texts: list[str], limit: int | None) -> list[list[int]]:
        cutting = {"truncation": True, "max_length": limit} if limit else {"truncation": False}
        encoded = self.tokenizer(
            texts, padding=False, return_attention_mask=False, return_token_type_ids=False, verbose=False, **cutting
        )
        return encoded["input_ids"]

    def pad(
        self, prepared: Sequence[Tokens], width: int | None, place: Place
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return ids and attention mask on the device, padded to `width` or, if it is None, to the longest caption. The
        mask is None if, according to its tokenizer, the model takes no mask.
        """
        pad_id = self.tokenizer.pad_token_id or 0
        ids, mask = pad_tokens(prepared, pad_id=pad_id, width=width, left=self.pad_left)
        return ids.to(place.torch_device), mask.to(place.torch_device) if self.masks else None

    @property
    def described(self) -> dict[str, str]:
        return describe_tokenizer(self.tokenizer)


def describe_tokenizer(tokenizer: Any) -> dict[str, str]:
    """Return a tokenizer's class and a hash of its vocabulary, for the fingerprint."""
    vocabulary = json.dumps(sorted(tokenizer.get_vocab().items()))
    return {"tokenizer": type(tokenizer).__name__, "vocabulary": sha256_of_text(vocabulary)[:16]}


def fitting_context(tokenizer: Any, positions: int | None, asked: int | None) -> int:
    """Return the context length. It is the smallest of three numbers: the model's `positions`, the tokenizer's limit,
    and the length that the user asked for. A number that is None or 0 is ignored.
    """
    limits = [n for n in (positions, tokenizer.model_max_length, asked) if n and n < NO_LIMIT]
    return int(min(limits)) if limits else NO_LIMIT


def batches_by_length(lengths: Sequence[int], budget: int = BATCH_TOKENS, most: int = 1 << 30) -> Iterator[list[int]]:
    """Yield batches of indices with similar lengths, the shortest first. A batch has at most `budget` tokens including
    padding, and at most `most` indices.

    >>> list(batches_by_length([5, 1, 5, 9], budget=10)), list(batches_by_length([3, 1, 2], budget=99, most=2))
    ([[1, 0], [2], [3]], [[1, 2], [0]])
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if batch and (lengths[i] * (len(batch) + 1) > budget or len(batch) >= most):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def pad_tokens(
    prepared: Sequence[Tokens], *, pad_id: int, width: int | None = None, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids and the attention mask of captions as a padded batch."""
    import torch

    lengths = np.array([len(t.ids) for t in prepared])
    width = max(width or 0, int(lengths.max()), 1)
    columns = np.arange(width)[None, :]
    mask = columns >= (width - lengths)[:, None] if left else columns < lengths[:, None]
    ids = np.full((len(prepared), width), pad_id, dtype=np.int64)
    ids[mask] = np.concatenate([t.ids for t in prepared])
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
