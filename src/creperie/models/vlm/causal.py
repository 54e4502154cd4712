"""Decoders. An image and the prefix of its captions are read once, and the KV cache is reused for all captions.

Attention, masks and caches are those of transformers. Captions are padded on the right, after a prefix of fixed length,
so that no token attends to padding. Log-probabilities are computed in float32.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.choice import Turns
from creperie.models.device import Place, exact_float32
from creperie.models.vlm.families import VlmFamily
from creperie.models.vlm.prefix import (
    MOST,
    Prefix,
    PrefixJob,
    PrefixReader,
    Scored,
    Seen,
    can_pack,
    packed_tokens,
    read_packed,
    rests_of,
)
from creperie.models.vlm.reader import SEQUENCES, AnswerLine, Reader, images_of
from creperie.models.vlm.rows import LOGITS, read_first, read_rests
from creperie.models.vlm.tower import look

if TYPE_CHECKING:
    import torch

#: bytes of KV cache per batch; on a GPU a share of the free memory
CACHE_BYTES = {"mps": 2 << 30, "cpu": 1 << 30}
CACHE_SHARE = 0.4


class CausalEngine:
    """The engine for decoders that read image tokens. It computes the log-probabilities of answers."""

    def __init__(self, model: Any, reader: Reader, family: VlmFamily, place: Place) -> None:
        self.model, self.reader, self.family, self.place = model, reader, family, place
        self.prefixes = PrefixReader(model, place)
        self.packs = can_pack(model, family)
        self.compiled = False
        self._queries: dict[str, np.ndarray] = {}

    def lines(self, pairs: Sequence[tuple[str, str]], *, end: bool = False, turns: Turns = ()) -> list[AnswerLine]:
        return self.reader.lines(pairs, end=end, turns=turns)

    def see(self, image: Any, turns: Turns = ()) -> Seen:
        """Process an image together with the text before it, and return the model's inputs for both. The text may
        include demonstrations that have images.
        """
        shown = images_of(turns)
        return self.reader.see(image, self.reader.frame("", turns if shown else ()).head, shown)

    def log_probabilities(self, seen: Sequence[Seen], lines: Sequence[Sequence[AnswerLine]]) -> list[list[np.ndarray]]:
        """Return the log-probability of each token of the answer, for each line (prompt and answer) of each image."""
        results: list[list[np.ndarray]] = [[np.zeros(0, np.float32)] * len(own) for own in lines]
        with exact_float32():
            states = self._tower_states(seen) if self.family.whole else [None] * len(seen)
            jobs = [job for i, own in enumerate(lines) for job in self._jobs(i, seen[i], own, states[i])]
            for packed, batch in self._batches(jobs):
                with nullcontext() if packed else self.eagerly():
                    read = read_packed(self.prefixes, batch) if packed else self._read(batch)
                    for place, logs in read:
                        results[place[0]][place[1]] = logs
        return results

    def compile(self) -> None:
        """Compile the decoder's layers. The compiled layers are used in passes that read an image together with all its
        captions.
        """
        for layer in self.model.get_decoder().layers:
            layer.compile(dynamic=True)
        self.compiled = True

    def eagerly(self) -> AbstractContextManager[Any]:
        """Return a context in which compiled layers run uncompiled."""
        # With a KV cache, they would be compiled again for every length.
        import torch

        return torch.compiler.set_stance("force_eager") if self.compiled else nullcontext()

    def question_inputs(self, seen: Seen, question: str, turns: Turns = ()) -> dict[str, torch.Tensor]:
        """Return the model's inputs for a question without an answer, for generation."""
        (line,) = self.reader.lines([(question, "")], turns=turns)
        return self.prefixes.inputs([self._job(seen, line.ids[: line.start], [line], [])])

    # -- batches -------------------------------------------------------------------------------------------------

    def _tower_states(self, seen: Sequence[Seen]) -> list[torch.Tensor]:
        """Run the vision tower once per image, instead of once per prompt, and return its outputs."""
        import torch

        pixels = [torch.from_numpy(one["pixel_values"]) for one in seen]
        place = self.place
        return look(self.model, [value.to(place.torch_device, place.torch_dtype) for value in pixels])

    def _jobs(
        self, image: int, seen: Seen, lines: Sequence[AnswerLine], states: torch.Tensor | None
    ) -> Iterator[PrefixJob]:
        """Yield the jobs of an image. Lines with the same beginning share one job. If the model must read image and
        prompt together, only lines with the same prompt share a job.
        """
        groups: dict[tuple[bytes, bytes], list[int]] = {}
        for k, line in enumerate(lines):
            asked = line.ids[: line.start].tobytes() if self.family.whole else b""
            opening = b"" if line.opening is None else line.opening.tobytes()
            if len(line.ids) > line.start:  # an empty answer has no tokens to score
                groups.setdefault((asked, opening), []).append(k)
        for group in groups.values():
            own = [lines[k] for k in group]
            yield self._job(seen, common_prefix(own), own, [(image, k) for k in group], states)

    def _job(
        self,
        seen: Seen,
        shared: np.ndarray,
        lines: Sequence[AnswerLine],
        places: Sequence[tuple[int, int]],
        states: torch.Tensor | None = None,
    ) -> PrefixJob:
        cut = 0
        opening = np.zeros(0, np.int64)
        if lines[0].opening is not None:  # not the default text that the image was processed with
            cut, opening = len(self.reader.default_opening), lines[0].opening
        sequence = {name: _extended(name, seen[name][0, cut:], opening, shared) for name in SEQUENCES & seen.keys()}
        query = self._query(lines[0].context) if "qformer_input_ids" in seen else None
        shown = {name: value for name, value in seen.items() if name not in SEQUENCES and "qformer" not in name}
        return PrefixJob(shown, sequence, len(shared), lines, places, query, states)

    def _query(self, context: str) -> np.ndarray:
        """Return the prompt's token ids for the query former of InstructBLIP, which reads the prompt as well."""
        if context not in self._queries:
            ids = self.reader.processor.qformer_tokenizer(context)["input_ids"]
            self._queries[context] = np.array(ids, np.int64)
        return self._queries[context]

    def _batches(self, jobs: Sequence[PrefixJob]) -> Iterator[tuple[bool, list[PrefixJob]]]:
        """Yield batches of jobs, each with a flag that is True if the batch is read in one pass.

        The jobs of a batch have equal prefix lengths and image shapes. Their number depends on the available memory.
        """
        alike: dict[tuple[Any, ...], list[PrefixJob]] = {}
        for job in sorted(jobs, key=packed_tokens):
            alike.setdefault((self.packs and packed_tokens(job) <= MOST, *job.shape), []).append(job)
        for (packed, *_), group in alike.items():
            most = self._rows_held(group)
            batch: list[PrefixJob] = []
            for job in group:
                wide = 1 + packed_tokens(job)
                rows = len(batch) + 1 if packed else sum(len(other.lines) for other in (*batch, job))
                if batch and (rows > most or (packed and rows * wide > LOGITS)):
                    yield packed, batch
                    batch = []
                batch.append(job)
            yield packed, batch

    def _rows_held(self, jobs: Sequence[PrefixJob]) -> int:
        """Return how many rows fit into the KV cache. Each row is assumed to be as long as the longest line."""
        width = jobs[0].length + max(len(line.ids) for job in jobs for line in job.lines)
        return max(1, self._cache_bytes() // (self._token_bytes * width))

    def _cache_bytes(self) -> int:
        import torch

        if not self.place.device.startswith("cuda"):
            return CACHE_BYTES[self.place.device]
        spare = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # free inside torch's own memory pool
        return int(CACHE_SHARE * (torch.cuda.mem_get_info()[0] + spare))

    @property
    def _token_bytes(self) -> int:
        """The size of the KV cache per token, in bytes."""
        text = self.model.config.get_text_config(decoder=True)
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        each = 4 if self.place.dtype == "float32" else 2
        return int(2 * text.num_hidden_layers * heads * width * each)

    # -- the model -----------------------------------------------------------------------------------------------

    def _read(self, jobs: Sequence[PrefixJob]) -> Iterator[Scored]:
        """Read the prefixes of a batch in one pass. Then yield the index and the log-probabilities of each line."""
        most = self._rows_held(jobs)
        prefix = self.prefixes.read(jobs)
        places = [place for job in jobs for place in job.places]
        rests = rests_of(jobs)
        firsts = read_first(prefix.last, rests)
        logits_of = partial(self._logits_of_rows, prefix)
        for k, logs in read_rests(rests, self.reader.tokenizer.pad_token_id or 0, logits_of, most):
            yield places[k], np.append(firsts[k : k + 1] if rests[k].start == 0 else firsts[:0], logs)

    def _logits_of_rows(self, prefix: Prefix, owners: list[int], ids: torch.Tensor, last: bool) -> torch.Tensor:
        """Return the logits of rows of tokens. Each row continues one of the prefixes in the batch `prefix`.

        `ids[k]` are the tokens of row k, and `owners[k]` is the index of its prefix in the batch. With `last`, the
        cache of the batch is not needed again and may be changed.
        """
        import torch

        ids, owner = ids.to(self.place.torch_device), torch.tensor(owners, device=self.place.torch_device)
        cache = prefix.cache if last else copy.deepcopy(prefix.cache)
        cache.batch_select_indices(owner)
        if not self.family.placeholder:  # BLIP-2 and InstructBLIP: the wrapper always wants an image
            return self.model.language_model(input_ids=ids, past_key_values=cache).logits
        more: dict[str, torch.Tensor] = {}
        if prefix.deltas is not None:
            steps = prefix.length + torch.arange(ids.shape[1], device=ids.device)[None, :]
            steps = steps + prefix.deltas[owner].reshape(-1, 1)
            more["position_ids"] = steps.expand(3, *steps.shape)
        return self.model(input_ids=ids, past_key_values=cache, use_cache=True, **more).logits


def _extended(name: str, value: np.ndarray, opening: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return the model's input `name` for the whole sequence, with the shape (1, tokens, …). `value` is the processor's
    array for the image, with the shape (tokens, …).

    Entries for the tokens `opening` are added before `value`, and entries for the tokens `shared` after it. The entries
    are the tokens themselves for `input_ids`, 1 for `attention_mask`, and 0 for other inputs.
    """
    if name == "input_ids":
        return np.concatenate([opening.astype(value.dtype), value, shared.astype(value.dtype)])[None]
    text = int(name == "attention_mask")  # other inputs are 0 for text
    parts = [np.full((len(opening), *value.shape[1:]), text), value, np.full((len(shared), *value.shape[1:]), text)]
    return np.concatenate([part.astype(value.dtype) for part in parts])[None]


def common_prefix(lines: Sequence[AnswerLine]) -> np.ndarray:
    """Return the tokens that all lines begin with. Tokens of answers are left out, even if all answers begin alike."""
    first = lines[0].ids
    length = min(line.start for line in lines)
    for line in lines[1:]:
        same = first[:length] == line.ids[:length]
        length = int(np.argmin(same)) if not same.all() else length
    return first[:length]
