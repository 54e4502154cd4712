"""Decoders: the image and what its captions share are read once, their key-value cache serves every caption.

All attention, masks and caches are the library's. Captions are padded on the right behind a prefix of one length, so
that no token ever sees padding, and log-probabilities are read in float32.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.models.place import Place
from creperie.models.vlm.families import Family
from creperie.models.vlm.reader import SEQUENCES, Line, Reader

if TYPE_CHECKING:
    import torch

Seen = Mapping[str, np.ndarray]
#: bytes of keys and values that one batch may hold; of a GPU's free memory this share
CACHE_BYTES = {"mps": 2 << 30, "cpu": 1 << 30}
CACHE_SHARE = 0.4
#: devices on which the cache is made with room to grow
ROOMY = ("cuda",)
#: rows × tokens whose logits are alive at once: × 32,000 words × 4 bytes they are 0.5 GB
LOGITS = 4096


@dataclass(frozen=True)
class _Job:
    """One prefix: an image with what all its lines begin with, and where their scores go."""

    seen: Seen
    shared: np.ndarray
    context: str
    lines: Sequence[Line]
    places: Sequence[tuple[int, int]]


class CausalEngine:
    """Log-probabilities of answers under a decoder that reads image tokens."""

    def __init__(self, model: Any, reader: Reader, family: Family, place: Place) -> None:
        self.model, self.reader, self.family, self.place = model, reader, family, place

    def lines(self, pairs: Sequence[tuple[str, str]], *, end: bool = False) -> list[Line]:
        return self.reader.lines(pairs, end=end)

    def see(self, image: Any) -> Seen:
        return self.reader.see(image, self.reader.frame("").head)

    def log_probabilities(self, seen: Sequence[Seen], lines: Sequence[Sequence[Line]]) -> list[list[np.ndarray]]:
        """For each image, for each of its lines, the log-probability of each token of the answer."""
        import torch

        found: list[list[np.ndarray]] = [[np.zeros(0, np.float32)] * len(own) for own in lines]
        jobs = [job for i, own in enumerate(lines) for job in self._jobs(i, seen[i], own)]
        with torch.inference_mode():
            for batch in self._batches(jobs):
                for place, logs in self._read(batch):
                    found[place[0]][place[1]] = logs
        return found

    def question_inputs(self, seen: Seen, question: str) -> dict[str, torch.Tensor]:
        """The model's inputs for a question without an answer, for generation."""
        (line,) = self.reader.lines([(question, "")])
        return self._prefix_inputs([_Job(seen, line.ids[: line.start], line.context, [line], [])])

    # -- what belongs together -----------------------------------------------------------------------------------

    def _jobs(self, image: int, seen: Seen, lines: Sequence[Line]) -> Iterator[_Job]:
        """The lines of an image by what they share: one job, or one a prompt where prompts must be read whole."""
        groups: dict[bytes, list[int]] = {}
        for k, line in enumerate(lines):
            groups.setdefault(line.ids[: line.start].tobytes() if self.family.whole else b"", []).append(k)
        for group in groups.values():
            own = [lines[k] for k in group]
            yield _Job(seen, common_prefix(own), own[0].context, own, [(image, k) for k in group])

    def _batches(self, jobs: Sequence[_Job]) -> Iterator[list[_Job]]:
        """Jobs whose prefixes have one length and whose images one shape, as many as the cache may hold."""
        alike: dict[tuple[Any, ...], list[_Job]] = {}
        for job in jobs:
            alike.setdefault(self._shape(job), []).append(job)
        for group in alike.values():
            width = group[0].seen["input_ids"].shape[1] + max(len(line.ids) for job in group for line in job.lines)
            most = max(1, self._cache_bytes() // (self._token_bytes * width))
            batch: list[_Job] = []
            rows = 0
            for job in group:
                if batch and rows + len(job.lines) > most:
                    yield batch
                    batch, rows = [], 0
                batch.append(job)
                rows += len(job.lines)
            yield batch

    def _shape(self, job: _Job) -> tuple[Any, ...]:
        shapes = tuple((name, value.shape[1:]) for name, value in sorted(job.seen.items()))
        query = job.context if "qformer_input_ids" in job.seen else ""
        return job.seen["input_ids"].shape[1] + len(job.shared), shapes, query

    def _cache_bytes(self) -> int:
        import torch

        if not self.place.device.startswith("cuda"):
            return CACHE_BYTES[self.place.device]
        held = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # free inside torch's own pool
        return int(CACHE_SHARE * (torch.cuda.mem_get_info()[0] + held))

    @property
    def _token_bytes(self) -> int:
        """Bytes of keys and values a token."""
        text = self.model.config.get_text_config(decoder=True)
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        each = 4 if self.place.dtype == "float32" else 2
        return int(2 * text.num_hidden_layers * heads * width * each)

    # -- the model -----------------------------------------------------------------------------------------------

    def _read(self, jobs: Sequence[_Job]) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
        """One prefix pass over the images of a batch, then their lines in rows."""
        inputs = self._prefix_inputs(jobs)
        last, cache = self._prefix(inputs)
        length = int(inputs["input_ids"].shape[1])
        deltas = getattr(getattr(self.model, "model", None), "rope_deltas", None)
        rows = [(j, line, place) for j, job in enumerate(jobs) for line, place in zip(job.lines, job.places)]
        rests = [line.ids[len(jobs[j].shared) :] for j, line, _ in rows]
        chunks = list(row_chunks([len(r) for r in rests]))
        for number, chunk in enumerate(chunks):
            owner = self._tensor([rows[r][0] for r in chunk])
            ids = self._padded([rests[r] for r in chunk])
            own = self._repeated(cache, owner, length + ids.shape[1], last=number == len(chunks) - 1)
            logits = self._rest(ids, own, length, None if deltas is None else deltas[owner])
            first = chosen_logs(last[owner], ids[:, 0])[:, None]
            logs = first if ids.shape[1] == 1 else self._joined(first, logits[:, :-1], ids[:, 1:])
            values = logs.cpu().numpy()
            for row, r in enumerate(chunk):
                j, line, place = rows[r]
                skip = line.start - len(jobs[j].shared)
                yield place, values[row, skip : len(rests[r])]

    def _repeated(self, cache: Any, owner: torch.Tensor, room: int, *, last: bool) -> Any:
        """The prefix's keys and values, one copy a row.

        On a GPU they go into a cache that has room for the rows' own tokens: growing by concatenation, as the dynamic
        cache does, takes a quarter of all the time there.
        """
        from transformers.cache_utils import DynamicLayer, StaticCache, StaticLayer

        if self.place.device.split(":")[0] in ROOMY:
            roomy = StaticCache(config=self.model.config, max_cache_len=room)
            kinds = [(DynamicLayer, cache.layers), (StaticLayer, roomy.layers)]
            if all(type(layer) is kind for kind, layers in kinds for layer in layers):  # no sliding windows
                for narrow, wide in zip(cache.layers, roomy.layers, strict=True):
                    _pour(narrow, wide, owner)
                return roomy
        own = cache if last else copy.deepcopy(cache)
        own.batch_select_indices(owner)
        return own

    def _joined(self, first: torch.Tensor, logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.cat([first, chosen_logs(logits, ids)], dim=1)

    def _prefix_inputs(self, jobs: Sequence[_Job]) -> dict[str, torch.Tensor]:
        """The images of a batch and the tokens up to where captions part."""
        import torch

        inputs: dict[str, torch.Tensor] = {}
        for name in jobs[0].seen:
            parts = [self._extended(name, job) for job in jobs]
            joined = torch.from_numpy(np.concatenate(parts)).to(self.place.torch_device)
            inputs[name] = joined.to(self.place.torch_dtype) if joined.is_floating_point() else joined
        if "qformer_input_ids" in inputs:
            inputs |= self._query_tokens(jobs)
        return inputs

    def _extended(self, name: str, job: _Job) -> np.ndarray:
        value = job.seen[name]
        if name not in SEQUENCES:
            return value
        more = {"input_ids": job.shared, "attention_mask": np.ones(len(job.shared))}.get(name)
        tail = np.zeros(len(job.shared)) if more is None else more
        return np.concatenate([value, tail[None].astype(value.dtype)], axis=1)

    def _query_tokens(self, jobs: Sequence[_Job]) -> dict[str, torch.Tensor]:
        """InstructBLIP shows the prompt to its query former as well; jobs of a batch have one prompt."""
        made = self.reader.processor.qformer_tokenizer([jobs[0].context] * len(jobs), return_tensors="pt")
        device = self.place.torch_device
        return {f"qformer_{name}": made[name].to(device) for name in ("input_ids", "attention_mask")}

    def _prefix(self, inputs: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, Any]:
        output = self.model(**inputs, use_cache=True, logits_to_keep=1)
        inner = getattr(output, "language_model_outputs", None)
        return output.logits[:, -1], (inner or output).past_key_values

    def _rest(self, ids: torch.Tensor, cache: Any, length: int, deltas: torch.Tensor | None) -> torch.Tensor:
        """Logits over the rows' own tokens. Positions go on where the prefix ended; Qwen's images take up fewer
        positions than tokens, by as much as the deltas say."""
        import torch

        if not self.family.placeholder:  # BLIP-2 and InstructBLIP: the wrapper always wants an image
            logits: torch.Tensor = self.model.language_model(input_ids=ids, past_key_values=cache).logits
            return logits
        positions = {}
        if deltas is not None:
            steps = length + torch.arange(ids.shape[1], device=ids.device)[None, :] + deltas.reshape(-1, 1)
            positions = {"position_ids": steps.expand(3, *steps.shape)}
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True, **positions).logits
        return logits

    def _tensor(self, numbers: Sequence[int]) -> torch.Tensor:
        import torch

        return torch.tensor(numbers, device=self.place.torch_device)

    def _padded(self, rests: Sequence[np.ndarray]) -> torch.Tensor:
        import torch

        ids = np.full((len(rests), max(len(r) for r in rests)), self.reader.tokenizer.pad_token_id or 0, np.int64)
        for row, rest in enumerate(rests):
            ids[row, : len(rest)] = rest
        return torch.from_numpy(ids).to(self.place.torch_device)


def _pour(narrow: Any, wide: Any, owner: torch.Tensor) -> None:
    """What a dynamic layer holds, row by row as owned, into an empty static layer. The same as its `update`, which
    writes by index and takes several times as long."""
    length = narrow.keys.shape[-2]
    rows = narrow.keys[:1].expand(len(owner), -1, -1, -1), narrow.values[:1].expand(len(owner), -1, -1, -1)
    wide.lazy_initialization(*rows)
    wide.keys[:, :, :length] = narrow.keys.index_select(0, owner)
    wide.values[:, :, :length] = narrow.values.index_select(0, owner)
    wide.cumulative_length.fill_(length)


def common_prefix(lines: Sequence[Line]) -> np.ndarray:
    """The tokens that all lines begin with, at most up to where the first answer begins."""
    first = lines[0].ids
    length = min(line.start for line in lines)
    for line in lines[1:]:
        same = first[:length] == line.ids[:length]
        length = int(np.argmin(same)) if not same.all() else length
    return first[:length]


def row_chunks(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows in the order of their lengths, so many at a time that their logits fit.

    >>> list(row_chunks([3, 1, 2]))
    [[1, 2, 0]]
    """
    chunk: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda r: (lengths[r], r)):
        if chunk and lengths[row] * (len(chunk) + 1) > LOGITS:
            yield chunk
            chunk = []
        chunk.append(row)
    if chunk:
        yield chunk


def chosen_logs(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The log-probability of each token under the logits that predict it, in float32."""
    wide = logits.float()
    return wide.gather(-1, ids.unsqueeze(-1)).squeeze(-1) - wide.logsumexp(-1)
