"""The prefix of a prompt: text, the image, and what all lines have in common, read once for all of them.

Text that stands before the image (a system turn, demonstrations) is the same for all images. Where a family's rule
(`Family.opening`) allows it, its keys and values are computed once and serve every image of the run.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.device import Place
from creperie.models.vlm.families import GRID, VlmFamily
from creperie.models.vlm.reader import SEQUENCES, AnswerLine
from creperie.models.vlm.tower import having_seen

if TYPE_CHECKING:
    import torch

Seen = Mapping[str, np.ndarray]
#: tokens before the image from which on they are read apart. Behind them attention needs a mask, which takes longer
#: than plain causal attention: with so many tokens both ways take the same time on a CPU (benchmarks/vlm_speed.py)
OPENING = 64
#: openings whose keys and values are kept
KEPT = 4


@dataclass(frozen=True)
class PrefixJob:
    """One prefix: an image with what all its lines begin with, and where their scores go.

    `sequence` has one value per token (ids, masks); the first `opening` tokens are text before the image, the last
    `shared` come from the lines. `query` is what a query former reads, `states` what the tower saw, where it need not
    look again.
    """

    seen: Seen
    sequence: Seen
    opening: int
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
        """Jobs of one shape can be read in one batch."""
        shapes = tuple((name, value.shape[1:]) for name, value in sorted(self.seen.items()) if name not in SEQUENCES)
        opening = self.sequence["input_ids"][0, : self.opening].tobytes()
        return self.length, opening, shapes, -1 if self.query is None else len(self.query)


@dataclass(frozen=True)
class Prefix:
    """What reading a batch of jobs gives: logits behind each, keys and values, and how many tokens they hold. Qwen's
    images take up fewer positions than tokens, by as much as `deltas` say. `shown` is what later tokens look at where
    the image is not a part of the sequence."""

    last: torch.Tensor
    cache: Any
    length: int
    deltas: torch.Tensor | None = None
    shown: torch.Tensor | None = None


class PrefixReader:
    """Reads prefixes in batches."""

    def __init__(self, model: Any, family: VlmFamily, place: Place) -> None:
        self.model, self.family, self.place = model, family, place
        self.least = OPENING
        self._openings: OrderedDict[bytes, Any] = OrderedDict()

    def opening(self, ids: np.ndarray) -> int:
        """How many tokens before the image are read apart from it."""
        if not self.family.opening:
            return 0
        image = np.flatnonzero(ids == self.model.config.image_token_id)
        before = int(image[0]) if len(image) else 0
        return before if before >= self.least else 0

    def read(self, jobs: Sequence[PrefixJob]) -> Prefix:
        import torch

        inputs = self.inputs(jobs)
        states = [job.states for job in jobs if job.states is not None]
        with having_seen(self.model, torch.cat(states)) if states else nullcontext():
            if jobs[0].opening:
                return self._behind_opening(inputs, jobs[0].opening)
            output = self.model(**inputs, use_cache=True, logits_to_keep=1)
        inner = getattr(output, "language_model_outputs", None)
        deltas = getattr(getattr(self.model, "model", None), "rope_deltas", None)
        shown = output.image_hidden_states if self.family.crosses else None
        return Prefix(output.logits[:, -1], (inner or output).past_key_values, jobs[0].length, deltas, shown)

    def inputs(self, jobs: Sequence[PrefixJob]) -> dict[str, torch.Tensor]:
        """The images of a batch and the tokens up to where captions part."""
        made = {name: [job.seen[name] for job in jobs] for name in jobs[0].seen if name not in SEQUENCES}
        made |= {name: [job.sequence[name] for job in jobs] for name in jobs[0].sequence}
        queries = [job.query[None] for job in jobs if job.query is not None]
        if queries:
            made |= {"qformer_input_ids": queries, "qformer_attention_mask": [np.ones_like(q) for q in queries]}
        return {name: self._tensor(np.concatenate(parts)) for name, parts in made.items()}

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        import torch

        value = torch.from_numpy(array).to(self.place.torch_device)
        return value.to(self.place.torch_dtype) if value.is_floating_point() else value

    # -- text before the image -----------------------------------------------------------------------------------

    def _behind_opening(self, inputs: Mapping[str, torch.Tensor], opening: int) -> Prefix:
        """The images behind text that has been read. Nothing is padded, so that no mask is needed."""
        ids = inputs["input_ids"]
        cache = self._opened(ids[:1, :opening], len(ids))
        rest = {name: value for name, value in inputs.items() if name not in SEQUENCES}
        rest["input_ids"] = ids[:, opening:]
        deltas = None
        if self.family.opening == GRID:
            names = ("input_ids", "attention_mask", "mm_token_type_ids", "image_grid_thw")
            positions, deltas = self.model.model.get_rope_index(**{n: inputs[n] for n in names if n in inputs})
            rest["position_ids"] = positions[:, :, opening:]
        output = self.model(**rest, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return Prefix(output.logits[:, -1], output.past_key_values, ids.shape[1], deltas)

    def _opened(self, ids: torch.Tensor, rows: int) -> Any:
        """The keys and values of an opening, for so many rows: computed when it is first met."""
        key = ids.cpu().numpy().tobytes()
        if key not in self._openings:
            self._openings[key] = self.model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
            if len(self._openings) > KEPT:
                self._openings.popitem(last=False)
        self._openings.move_to_end(key)
        own = copy.deepcopy(self._openings[key])
        own.batch_repeat_interleave(rows)
        return own
