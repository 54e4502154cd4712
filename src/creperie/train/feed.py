"""Batches: the same for the same seed and step, made ready beside the model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from creperie.errors import DataError, UsageError
from creperie.models.protocols import Tokens
from creperie.train.examples import TrainSet
from creperie.train.settings import Settings
from creperie.train.student import Student

if TYPE_CHECKING:
    import torch

#: prepared pictures are kept up to so many bytes
ROOM = 4 * 2**30
AHEAD = 4  #: batches made ready before they are asked for
READERS = 4  #: threads that decode pictures


@dataclass(frozen=True)
class Batch:
    """Inputs on the device. Texts stand in the order: captions, paraphrases (one each, or none), foils; pictures: those
    of the examples, then the alternatives."""

    number: int
    size: int
    pixels: torch.Tensor
    ids: torch.Tensor
    paraphrases: int
    foils: int


@dataclass(frozen=True)
class Share:
    """Which process of how many takes part of every batch."""

    index: int = 0
    of: int = 1


@dataclass(frozen=True)
class Ragged:
    """Lists of numbers, one an example, end to end."""

    starts: np.ndarray
    counts: np.ndarray
    values: np.ndarray

    def of(self, rows: np.ndarray) -> np.ndarray:
        """All numbers of some examples, one after the other."""
        counts = self.counts[rows]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        within = np.arange(total) - np.repeat(ends - counts, counts)
        return np.asarray(self.values[np.repeat(self.starts[rows], counts) + within])


def _ragged(lists: Sequence[Sequence[int]]) -> Ragged:
    """
    >>> _ragged([[5], [], [7, 8]]).of(np.array([2, 1, 0])).tolist()
    [7, 8, 5]
    """
    counts = np.asarray([len(own) for own in lists], dtype=np.int64)
    values = np.asarray([k for own in lists for k in own], dtype=np.int64)
    return Ragged(np.cumsum(counts) - counts, counts, values)


class Feed:
    """A training set as batches. Texts are tokenised once; pictures are prepared when they are first seen, and kept in
    one array as long as there is room. A batch is then a few gathers, so that the model's own thread is not held up."""

    def __init__(
        self,
        data: TrainSet,
        student: Student,
        settings: Settings,
        device: str = "cpu",
        *,
        truncate: bool = False,
        share: Share | None = None,
    ) -> None:
        check_fits(data, settings)
        self.data, self.student, self.settings, self.device = data, student, settings, device
        self.share = share or Share()
        self.size = min(settings.batch, len(data))
        self.cut = 0
        self._order = (-1, np.zeros(0, dtype=np.int64))
        self._number_texts(truncate)
        self._number_pictures()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="pictures")

    # -- texts and pictures as numbers ---------------------------------------------------------------------------

    def _number_texts(self, truncate: bool) -> None:
        """All texts as one padded table of ids; each example's captions and foils as rows of it."""
        examples = self.data.examples
        texts = list(dict.fromkeys(self.data.captions()))
        tokens = self.student.prepare_texts(texts)
        number = {text: i for i, text in enumerate(texts)}
        self.cut = sum(t.cut > 0 for t in tokens)
        if self.cut and not truncate:
            raise self._too_long(tokens, number)
        self._ids = self.student.ids(tokens)
        self._lengths = np.asarray([len(t.ids) for t in tokens])
        self._captions = np.asarray([number[e.caption] for e in examples])
        self._seconds = np.asarray([number.get(e.paraphrase, 0) for e in examples])
        self._foils = _ragged([[number[text] for text in e.foils] for e in examples])

    def _too_long(self, tokens: Sequence[Tokens], number: dict[str, int]) -> DataError:
        for example in self.data.examples:
            for text in (example.caption, *filter(None, (example.paraphrase,)), *example.foils):
                if over := tokens[number[text]].cut:
                    return DataError(
                        f"{self.cut} captions are longer than the model's context, the first by {over} tokens",
                        where=f"{self.data.name}, {example.key}",
                        mend="shorten them, or pass --truncate to cut them",
                    )
        raise AssertionError("some caption was cut")

    def _number_pictures(self) -> None:
        examples = self.data.examples
        self._keys = list(dict.fromkeys(key for e in examples for key in (e.image, *e.alternatives)))
        number = {key: i for i, key in enumerate(self._keys)}
        self._images = np.asarray([number[e.image] for e in examples])
        self._others = _ragged([[number[key] for key in e.alternatives] for e in examples])
        self._kept: np.ndarray | None = None  #: pictures by number, as many as there is room for
        self._seen = np.zeros(len(self._keys), dtype=bool)

    # -- batches -------------------------------------------------------------------------------------------------

    def rows(self, number: int) -> np.ndarray:
        """The examples of batch `number`. Every epoch has an order of its own."""
        per_epoch = max(1, len(self.data) // self.size)
        epoch, place = divmod(number, per_epoch)
        if self._order[0] != epoch:
            dice = np.random.Generator(np.random.PCG64([self.settings.seed, epoch]))
            self._order = epoch, dice.permutation(len(self.data))
        return np.asarray(self._order[1][place * self.size : (place + 1) * self.size])

    def keys(self, number: int) -> list[str]:
        """Where the examples of a batch came from, for messages."""
        return [self.data.examples[i].key for i in self.rows(number).tolist()]

    def batch(self, number: int) -> Batch:
        import torch

        rows = self.rows(number)[self.share.index :: self.share.of]
        settings = self.settings
        none = np.zeros(0, dtype=np.int64)
        foils = none if settings.objective == "clip" else self._one_foil_each(rows, number)
        second = self._seconds[rows] if settings.objective == "triple" or settings.pull > 0 else none
        others = self._others.of(rows) if settings.objective == "negclip" else none
        texts = np.concatenate([self._captions[rows], second, foils])
        # causal towers need no more than the longest caption of the batch
        ids = self._ids[torch.from_numpy(texts), : int(self._lengths[texts].max())].to(self.device)
        pictures = self._pictures(np.concatenate([self._images[rows], others]))
        pixels = self.student.pixels(pictures, self.device)
        return Batch(number, len(rows), pixels, ids, len(second), len(foils))

    def _one_foil_each(self, rows: np.ndarray, number: int) -> np.ndarray:
        """A foil of every example that has some, drawn anew in every epoch."""
        draws = np.random.Generator(np.random.PCG64([self.settings.seed, number, 1])).random(len(rows))
        starts, counts = self._foils.starts[rows], self._foils.counts[rows]
        chosen = starts + (draws * counts).astype(np.int64)
        return np.asarray(self._foils.values[chosen[counts > 0]])

    def _pictures(self, numbers: np.ndarray) -> np.ndarray:
        """Prepared pictures, stacked: from the array of those seen before, or made now."""
        missing = np.unique(numbers[~self._seen[numbers]]).tolist()
        fresh: dict[int, np.ndarray] = {}
        if missing:
            shares = [missing[k::READERS] for k in range(READERS)]
            fresh = {k: picture for part in self._readers.map(self._prepare, shares) for k, picture in part}
        if self._kept is None:
            one = fresh[missing[0]]
            room = min(len(self._keys), ROOM // max(1, one.nbytes))
            self._kept = np.empty((room, *one.shape), one.dtype)
        for k in [k for k in fresh if k < len(self._kept)]:
            self._kept[k] = fresh.pop(k)
            self._seen[k] = True
        if not fresh:
            return np.asarray(self._kept[numbers])
        return np.stack([fresh[k] if k in fresh else self._kept[k] for k in numbers.tolist()])

    def _prepare(self, numbers: Sequence[int]) -> list[tuple[int, np.ndarray]]:
        return [(k, self.student.prepare_image(self.data.open(self._keys[k]))) for k in numbers]

    def stream(self, start: int, stop: int) -> Iterator[Batch]:
        """Batches `start` to `stop`, made ready by a thread beside the caller."""
        ready: queue.Queue[Batch | BaseException] = queue.Queue(AHEAD)
        ended = threading.Event()

        def put(what: Batch | BaseException) -> None:
            while not ended.is_set():
                try:
                    return ready.put(what, timeout=0.2)
                except queue.Full:
                    continue

        def work() -> None:
            try:
                for number in range(start, stop):
                    if ended.is_set():
                        return
                    put(self.batch(number))
            except BaseException as e:
                put(e)

        thread = threading.Thread(target=work, name="batches", daemon=True)
        thread.start()
        try:
            for _ in range(start, stop):
                got = ready.get()
                if isinstance(got, BaseException):
                    raise got
                yield got
        finally:
            ended.set()
            thread.join()

    def close(self) -> None:
        self._readers.shutdown(cancel_futures=True)


def check_fits(data: TrainSet, settings: Settings) -> None:
    """Does the data have what the objective contrasts?"""
    if len(data) < 2:
        raise DataError(f"{len(data)} examples are not enough to train on", where=data.name)
    lacking = next((e for e in data.examples if not e.paraphrase), None)
    if lacking and (settings.objective == "triple" or settings.pull > 0):
        raise UsageError(
            "there is no second true caption, which the objective needs",
            where=f"{data.name}, {lacking.key}",
            mend="train on items with P1, P2 and N, or with --objective negclip and no pull",
        )
    bare = next((e for e in data.examples if not e.foils), None)
    if bare and settings.objective == "triple":
        raise UsageError("there is no foil, which the objective needs", where=f"{data.name}, {bare.key}")
    if settings.objective == "negclip" and not data.with_foils:
        raise UsageError(
            "no example has a foil, so there is nothing hard to learn from",
            where=data.name,
            mend="name some with --negatives, or train with --objective clip",
        )
