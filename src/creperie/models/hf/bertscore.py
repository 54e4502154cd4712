"""BERTScore: two captions are compared token by token, by the hidden states of a text encoder.

Every token of one caption is matched with the most similar token of the other. Precision is the mean similarity of the
first caption's tokens, and recall is the mean similarity of the second caption's tokens. The score is the harmonic mean
of both. Special tokens at the beginning and end can be matched but are left out of the means, as in the published
scorer without inverse document frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.device import Place, exact_float32
from creperie.models.protocols import Fingerprint, Tokens
from creperie.models.tokens import CaptionTokenizer, batches_by_length

if TYPE_CHECKING:
    import torch

#: captions per forward pass
BATCH = 64
#: pairs whose hidden states are in memory at the same time
TOGETHER = 512


@dataclass(eq=False)
class BertScore:
    """A model that compares captions by their BERTScore F1, which is symmetric."""

    model: Any
    tokenizer: CaptionTokenizer
    place: Place
    fingerprint: Fingerprint
    layer: int | None  #: hidden states after this many layers; None: the last

    def prepare_texts(self, texts: Sequence[str]) -> list[Tokens]:
        return self.tokenizer(texts)

    def score_text_pairs(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        scores = np.zeros(len(first), np.float32)
        for start in range(0, len(first), TOGETHER):
            part = slice(start, start + TOGETHER)
            texts = list(dict.fromkeys([*first[part], *second[part]]))
            states = dict(zip(texts, self._states(texts), strict=True))
            scores[part] = [likeness(*states[a], *states[b]) for a, b in zip(first[part], second[part], strict=True)]
        return scores

    def _states(self, texts: Sequence[str]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return, for each caption, the unit vectors of its tokens and a mask of the tokens that count in the mean."""
        tokens = self.tokenizer(texts)
        encoded: list[Any] = [None] * len(texts)
        for rows in batches_by_length([len(t.ids) for t in tokens], budget=1 << 30, most=BATCH):
            for row, states in zip(rows, self._forward([tokens[r] for r in rows]), strict=True):
                encoded[row] = (states, self._counts(tokens[row].ids))
        return encoded

    def _forward(self, batch: Sequence[Tokens]) -> list[torch.Tensor]:
        import torch

        ids, mask = self.tokenizer.pad(batch, None, self.place)
        shown = torch.ones_like(ids) if mask is None else mask
        with exact_float32():
            answer = self.model(input_ids=ids, attention_mask=shown, output_hidden_states=self.layer is not None)
            states = answer.last_hidden_state if self.layer is None else answer.hidden_states[self.layer]
            vectors = torch.nn.functional.normalize(states.float(), dim=-1).cpu()
        return [vectors[i, : len(t.ids)] for i, t in enumerate(batch)]

    def _counts(self, ids: np.ndarray) -> torch.Tensor:
        import torch

        raw = self.tokenizer.tokenizer
        ends = [i for i in (raw.cls_token_id, raw.sep_token_id, raw.bos_token_id, raw.eos_token_id) if i is not None]
        return torch.from_numpy(~np.isin(ids, ends))


def likeness(a: torch.Tensor, a_counts: torch.Tensor, b: torch.Tensor, b_counts: torch.Tensor) -> float:
    """Return the BERTScore F1 of captions `a` and `b`, given the vectors of their tokens. `a_counts` and `b_counts` are
    masks of the tokens that count in the mean. The result is NaN if a caption has no such token.
    """
    products = a @ b.T
    precision = float(products.max(dim=1).values[a_counts].mean())
    recall = float(products.max(dim=0).values[b_counts].mean())
    return 2 * precision * recall / (precision + recall)
