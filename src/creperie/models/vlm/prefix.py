"""A prefix that several lines share (text, an image, common tokens) is read only once. A line is a prompt with an
answer. An image can also be read together with all its captions, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.device import Place
from creperie.models.vlm.families import VlmFamily
from creperie.models.vlm.reader import SEQUENCES, AnswerLine
from creperie.models.vlm.rows import Rest, Rows, fewest_rows, picked
from creperie.models.vlm.tower import having_seen

if TYPE_CHECKING:
    import torch


Seen = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PrefixJob:
    """A prefix that the model reads once: an image, and the tokens that all of its lines begin with.

    `sequence` holds the inputs with one value per token of the prefix, such as ids and mask. The last `shared` tokens
    are the common beginning of the lines. `places` are the (image, line) indices of the results. `query` is the input
    of a query former; None if the model has no query former. `states` is the cached output of the vision tower; None if
    nothing is cached.
    """

    seen: Seen
    sequence: Seen
    shared: int
    lines: Sequence[AnswerLine]
    places: Sequence[tuple[int, int]]
    query: np.ndarray | None = None
    states: torch.Tensor | None = None

    @property
    def length(self) -> int:
        return int(self.sequence["input_ids"].shape[1])

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the inputs. Jobs with the same shape can be read in one batch."""
        shapes = tuple((name, value.shape[1:]) for name, value in sorted(self.seen.items()) if name not in SEQUENCES)
        return self.length, shapes, -1 if self.query is None else len(self.query)


def rests_of(jobs: Sequence[PrefixJob]) -> list[Rest]:
    """Return what follows the prefix in each line of the jobs."""
    return [
        Rest(j, line.ids[job.shared :], line.start - job.shared) for j, job in enumerate(jobs) for line in job.lines
    ]


@dataclass(frozen=True)
class Prefix:
    """The result of reading a batch of jobs: the logits after each prefix, the KV cache, and the prefix length.

    In Qwen models, images take fewer positions than tokens. `deltas` is the difference.
    """

    last: torch.Tensor
    cache: Any
    length: int
    deltas: torch.Tensor | None = None


@dataclass(eq=False)
class PrefixReader:
    """Runs the model on the prefixes of a batch of jobs."""

    model: Any
    place: Place

    def read(self, jobs: Sequence[PrefixJob]) -> Prefix:
        import torch

        inputs = self.inputs(jobs)
        states = [job.states for job in jobs if job.states is not None]
        with having_seen(self.model, torch.cat(states)) if states else nullcontext():
            output = self.model(**inputs, use_cache=True, logits_to_keep=1)
        inner = getattr(output, "language_model_outputs", None)
        deltas = getattr(getattr(self.model, "model", None), "rope_deltas", None)
        return Prefix(output.logits[:, -1], (inner or output).past_key_values, jobs[0].length, deltas)

    def inputs(self, jobs: Sequence[PrefixJob]) -> dict[str, torch.Tensor]:
        """Return the model's inputs for a batch of jobs: the images, and the tokens that the lines share."""
        made = {name: [job.seen[name] for job in jobs] for name in jobs[0].seen if name not in SEQUENCES}
        made |= {name: [job.sequence[name] for job in jobs] for name in jobs[0].sequence}
        queries = [job.query[None] for job in jobs if job.query is not None]
        if queries:
            made |= {"qformer_input_ids": queries, "qformer_attention_mask": [np.ones_like(q) for q in queries]}
        return {name: self._tensor(np.concatenate(parts)) for name, parts in made.items()}

    def positions(self, inputs: Mapping[str, torch.Tensor], steps: torch.Tensor) -> torch.Tensor:
        """Return the positions of the prefixes' tokens, followed by those of later tokens. `steps` has the distance of
        each later token from the end of its prefix.

        Qwen and GLM place an image on a grid, so their positions have three dimensions (3, rows, tokens). For other
        models, positions count tokens.
        """
        import torch

        ids, grid = inputs["input_ids"], getattr(getattr(self.model, "model", None), "get_rope_index", None)
        if grid is None:
            return torch.cat(
                [torch.arange(ids.shape[1], device=ids.device).expand_as(ids), ids.shape[1] + steps], dim=1
            )
        names = ("input_ids", "attention_mask", "mm_token_type_ids", "image_grid_thw")
        before, deltas = grid(**{name: inputs[name] for name in names if name in inputs})
        after = ids.shape[1] + steps + deltas.reshape(-1, 1)
        return torch.cat([before, after.expand(len(before), *after.shape)], dim=2)

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        import torch

        value = torch.from_numpy(array).to(self.place.torch_device)
        return value.to(self.place.torch_dtype) if value.is_floating_point() else value


# -- an image and all its captions in one pass -------------------------------------------------------------------------
#
# A single sequence contains the image and the prompt (the prefix), followed by the captions. No caption attends to
# another. Nothing is cached or copied, and logits are computed only where a token is predicted. The positions of every
# caption continue after the prefix. A 4-D mask lets each token of a caption attend to the prefix and to the earlier
# tokens of the same caption.

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
    """Return an upper bound on the number of tokens that the captions of a job take. The last token of each caption is
    not counted.
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
