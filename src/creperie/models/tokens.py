"""Captions to token ids and back into padded batches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.captions import CaptionRule
from creperie.models.protocols import Tokens

if TYPE_CHECKING:
    import torch


class CaptionTokenizer:
    """A transformers tokenizer with a caption rule and a context length. Safe to call from several threads."""

    def __init__(self, tokenizer: Any, rule: CaptionRule, context: int) -> None:
        self.tokenizer = tokenizer
        self.rule = rule
        self.context = context
        # a batch's truncation is a setting of the shared tokenizer, so two threads must not be in it at once
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenise whole captions first, then those again that are too long: so it is known how much was cut."""
        shown = [self.rule(text) for text in texts]
        if not shown:
            return []
        with self._lock:
            whole = self._ids(shown, truncation=False)
            long = [i for i, ids in enumerate(whole) if len(ids) > self.context]
            fitted = dict(zip(long, self._ids([shown[i] for i in long], truncation=True))) if long else {}
        return [
            Tokens(np.asarray(fitted.get(i, ids), dtype=np.int64), max(0, len(ids) - self.context))
            for i, ids in enumerate(whole)
        ]

    def _ids(self, texts: list[str], *, truncation: bool) -> list[list[int]]:
        limit = {"truncation": True, "max_length": self.context} if truncation else {"truncation": False}
        encoded = self.tokenizer(
            texts, padding=False, return_attention_mask=False, return_token_type_ids=False, verbose=False, **limit
        )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def pad(self, prepared: Sequence[Tokens], width: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and attention mask, as wide as the longest caption or `width`, padded on the tokenizer's side."""
        left = self.tokenizer.padding_side == "left"
        return pad_tokens(prepared, pad_id=self.tokenizer.pad_token_id or 0, width=width, left=left)


def pad_tokens(
    prepared: Sequence[Tokens], *, pad_id: int, width: int | None = None, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask of a batch."""
    import torch

    lengths = np.array([len(t.ids) for t in prepared])
    width = width or int(lengths.max())
    columns = np.arange(width)[None, :]
    mask = columns >= (width - lengths)[:, None] if left else columns < lengths[:, None]
    ids = np.full((len(prepared), width), pad_id, dtype=np.int64)
    ids[mask] = np.concatenate([t.ids for t in prepared])
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
