"""An image, its prompt and all its captions in one pass: captions stand one behind the other, and none sees another.

Nothing is padded but the last caption of an image, no keys and values are copied, and logits are made only where a
token is predicted. Attention falls into two parts: the prefix is plainly causal, so that the fastest kernel takes it;
captions see the prefix and themselves by a mask that has a row per caption token only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.vlm.families import PLAIN, VlmFamily
from creperie.models.vlm.prefix import PrefixJob, PrefixReader
from creperie.models.vlm.rows import Rest, fewest_rows, picked

if TYPE_CHECKING:
    import torch

NAME = "creperie-packed"
Scored = tuple[tuple[int, int], np.ndarray]


def decoder_of(model: Any) -> Any:
    inner = getattr(model, "model", None)
    return getattr(inner, "language_model", None) or getattr(inner, "text_model", None)


def packs(model: Any, family: VlmFamily) -> bool:
    """Can captions be packed: a plainly causal decoder by torch's own attention? It is made ready for it."""
    config: Any = getattr(decoder_of(model), "config", None)
    if family.opening != PLAIN or getattr(config, "_attn_implementation", "") not in ("sdpa", NAME):
        return False
    if set(getattr(config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        return False
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    config._attn_implementation = NAME
    return True


def _attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, **how: Any
) -> tuple[torch.Tensor, None]:
    """torch's attention; where the mask has fewer rows than there are tokens, those before it are a prefix."""
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    length = 0 if mask is None else query.shape[2] - mask.shape[2]
    if not length:
        whole: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, mask, **how)
        return whole
    first, rest = (query[:, :, :length], query[:, :, length:])
    before, _ = sdpa_attention_forward(module, first, key[:, :, :length], value[:, :, :length], None, **how)
    behind, _ = sdpa_attention_forward(module, rest, key, value, mask, **how)
    return torch.cat([before, behind], dim=1), None


def read_packed(prefixes: PrefixReader, jobs: Sequence[PrefixJob]) -> Iterator[Scored]:
    """Where each score goes, and the log-probabilities of the answer's tokens, for jobs of one shape."""
    import torch

    length, device = jobs[0].length, prefixes.place.torch_device
    rests = [
        Rest(j, line.ids[job.shared :], line.start - job.shared) for j, job in enumerate(jobs) for line in job.lines
    ]
    rows = fewest_rows(rests)
    starts, ids, steps, numbers = _laid_out(rows.owners, rows.ids, len(jobs))
    inputs = prefixes.inputs(jobs)
    inputs["input_ids"] = torch.cat([inputs["input_ids"], torch.from_numpy(ids).to(device)], dim=1)
    before = np.broadcast_to(np.arange(length), (len(jobs), length))
    inputs["position_ids"] = torch.from_numpy(np.concatenate([before, length + steps], axis=1)).to(device)
    inputs["attention_mask"] = _mask(torch.from_numpy(numbers).to(device), length, prefixes.place.torch_dtype)
    keep = torch.arange(length - 1, length + ids.shape[1], device=device)
    logits = prefixes.model(**inputs, use_cache=False, logits_to_keep=keep).logits
    spans = [np.arange(rest.start, len(rest.ids)) for rest in rests]
    # the first token is predicted at the end of the prefix, each later one by the token of its row before it
    at = [np.where(span, starts[rows.of[k]] + span, 0) for k, span in enumerate(spans)]
    owners = np.repeat([rest.owner for rest in rests], [len(span) for span in spans])
    tokens = np.concatenate([rest.ids[span] for rest, span in zip(rests, spans, strict=True)])
    logs = picked(logits, [owners.tolist(), np.concatenate(at).tolist()], tokens.tolist())
    places = [place for job in jobs for place in job.places]
    yield from zip(places, np.split(logs, np.cumsum([len(span) for span in spans])[:-1]), strict=True)


def _laid_out(
    owners: Sequence[int], rows: Sequence[np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows one behind the other, per owner: where each starts, and per place its token, its step in its row and its
    row's number (0 where there is none).

    >>> starts, ids, steps, numbers = _laid_out([0, 0, 1], [np.array([7, 8]), np.array([9]), np.array([5])], 2)
    >>> starts.tolist(), ids.tolist(), steps.tolist(), numbers.tolist()
    ([0, 2, 0], [[7, 8, 9], [5, 0, 0]], [[0, 1, 0], [0, 0, 0]], [[1, 1, 2], [3, 0, 0]])
    """
    ends = [0] * count
    starts = np.zeros(len(rows), np.int64)
    for r, owner in enumerate(owners):
        starts[r] = ends[owner]
        ends[owner] += len(rows[r])
    ids, steps, numbers = np.zeros((3, count, max(ends)), np.int64)
    for r, owner in enumerate(owners):
        own = slice(starts[r], starts[r] + len(rows[r]))
        ids[owner, own], steps[owner, own], numbers[owner, own] = rows[r], np.arange(len(rows[r])), r + 1
    return starts, ids, steps, numbers


def _mask(numbers: torch.Tensor, length: int, dtype: torch.dtype) -> torch.Tensor:
    """Caption tokens see the prefix and what is before them in their own row: 0, or minus infinity to be added."""
    import torch

    own = (numbers[:, :, None] == numbers[:, None, :]).tril()
    seen = torch.nn.functional.pad(own, (length, 0), value=True)[:, None]
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, float("-inf"))
