"""Read an image and all its captions in one pass. A single sequence contains the image and the prompt (the prefix),
followed by the captions. No caption attends to another.

Nothing is cached or copied, and logits are computed only where a token is predicted. The positions of every caption
continue after the prefix. A 4-D mask lets each token of a caption attend to the prefix and to the earlier tokens of the
same caption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.vlm.families import VlmFamily
from creperie.models.vlm.prefix import PrefixJob, PrefixReader, rests_of
from creperie.models.vlm.rows import Rows, fewest_rows, picked

if TYPE_CHECKING:
    import torch

#: caption tokens of an image that are read in one pass; with more, attention between captions costs more than a cache
MOST = 512
Scored = tuple[tuple[int, int], np.ndarray]  #: (image, line) indices, and log-probabilities


def can_pack(model: Any, family: VlmFamily) -> bool:
    """Return whether captions can be packed into one sequence. Every token of the decoder must attend to exactly the
    tokens before it.
    """
    text = model.config.get_text_config(decoder=True)
    full = set(getattr(text, "layer_types", None) or ["full_attention"]) == {"full_attention"}
    return family.interleaves and not family.both_ways and full and not getattr(text, "sliding_window", None)


def packed_tokens(job: PrefixJob) -> int:
    """Return the largest number of tokens that the captions of a job can take. The last token of each caption is not
    counted.
    """
    # The model only predicts it and never reads it.
    return sum(len(line.ids) - job.shared - 1 for line in job.lines)


def read_packed(prefixes: PrefixReader, jobs: Sequence[PrefixJob]) -> Iterator[Scored]:
    """Yield the index and the log-probabilities of each line of some jobs. The jobs must have the same shape."""
    import torch

    length, device = jobs[0].length, prefixes.place.torch_device
    rests = rests_of(jobs)
    rows = fewest_rows(rests)
    starts, ids, steps, numbers = laid_out(rows, len(jobs))
    inputs = prefixes.inputs(jobs)
    positions = prefixes.positions(inputs, torch.from_numpy(steps).to(device))
    inputs["input_ids"] = torch.cat([inputs["input_ids"], torch.from_numpy(ids).to(device)], dim=1)
    for name in inputs.keys() & {"mm_token_type_ids", "token_type_ids"}:  # captions are text
        inputs[name] = torch.nn.functional.pad(inputs[name], (0, ids.shape[1]))
    inputs["attention_mask"] = _mask(torch.from_numpy(numbers).to(device), length, prefixes.place.torch_dtype)
    keep = torch.arange(length - 1, length + ids.shape[1], device=device)
    logits = prefixes.model(**inputs, position_ids=positions, use_cache=False, logits_to_keep=keep).logits
    spans = [np.arange(rest.start, len(rest.ids)) for rest in rests]
    # the first token is predicted at the end of the prefix, each later one by the token of its row before it
    at = [np.where(span, starts[rows.of[k]] + span, 0) for k, span in enumerate(spans)]
    owners = np.repeat([rest.owner for rest in rests], [len(span) for span in spans])
    tokens = np.concatenate([rest.ids[span] for rest, span in zip(rests, spans, strict=True)])
    logs = picked(logits, [owners.tolist(), np.concatenate(at).tolist()], tokens.tolist())
    places = [place for job in jobs for place in job.places]
    yield from zip(places, np.split(logs, np.cumsum([len(span) for span in spans])[:-1]), strict=True)


def laid_out(rows: Rows, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Put the rows of each prefix one after another, and return four arrays.

    The first has the offset of each row among the tokens that follow its prefix. The others have the shape (prefixes,
    tokens), with 0 for padding. They hold the tokens of the rows, the position of each token in its row, and the number
    of each token's row (from 1).

    >>> rows = Rows([0, 0, 1], [np.array([7, 8]), np.array([9]), np.array([5])], [0, 1, 2])
    >>> [part.tolist() for part in laid_out(rows, 2)]
    [[0, 2, 0], [[7, 8, 9], [5, 0, 0]], [[0, 1, 0], [0, 0, 0]], [[1, 1, 2], [3, 0, 0]]]
    """
    ends = [0] * count
    starts = np.zeros(len(rows.ids), np.int64)
    for r, owner in enumerate(rows.owners):
        starts[r] = ends[owner]
        ends[owner] += len(rows.ids[r])
    ids, steps, numbers = np.zeros((3, count, max(ends)), np.int64)
    for r, (owner, row) in enumerate(zip(rows.owners, rows.ids, strict=True)):
        own = slice(starts[r], starts[r] + len(row))
        ids[owner, own], steps[owner, own], numbers[owner, own] = row, np.arange(len(row)), r + 1
    return starts, ids, steps, numbers


def _mask(numbers: torch.Tensor, length: int, dtype: torch.dtype) -> torch.Tensor:
    """Return the attention mask (jobs, 1, tokens, tokens), to be added to the attention scores. A token attends to the
    `length` tokens of the prefix and to earlier tokens of its own row. `numbers` are the row numbers from `laid_out`.
    """
    import torch

    text = torch.nn.functional.pad(numbers, (length, 0), value=-1)
    seen = ((text[:, :, None] == text[:, None, :]) | (text[:, None, :] < 0)).tril()[:, None]
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)
