"""A prefix that several lines share (text, an image, common tokens) is read only once. A line is a prompt with an
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.device import Place
from creperie.models.vlm.reader import SEQUENCES, AnswerLine
from creperie.models.vlm.rows import Rest
from creperie.models.vlm.tower import having_seen

if TYPE_CHECKING:
    import torch

Seen = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PrefixJob:
    """A prefix that the model reads once: an image, and the tokens that all of its lines begin with.

    `sequence` holds the inputs with one value per token of the prefix, such as ids and mask. The last `shared` tokens
    are the common beginning of the lines. `places` are the (image, line) indices of the results. `query` is the input
    of a query former; None if the model has none. `states` is the cached output of the vision tower; None if nothing is
    cached.
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
