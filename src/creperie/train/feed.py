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


class Feed:
    """A training set as batches. Texts are tokenised once; pictures are prepared when they are first seen, and kept in
    one array as long as there is room."""

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
        self._text: dict[str, int] = {}
        self._tokenise(truncate)
        self._picture: dict[str, int] = {}
        self._kept: np.ndarray | None = None
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="pictures")

    # -- texts ---------------------------------------------------------------------------------------------------

    def _tokenise(self, truncate: bool) -> None:
        """All texts as one padded table of ids, and their lengths."""
        texts = list(dict.fromkeys(self.data.captions()))
        tokens = self.student.prepare_texts(texts)
        self._text = {text: i for i, text in enumerate(texts)}
        self.cut = sum(t.cut > 0 for t in tokens)
        if self.cut and not truncate:
            raise self._too_long(tokens)
        self._ids = self.student.ids(tokens)
        self._lengths = np.asarray([len(t.ids) for t in tokens])

    def _too_long(self, tokens: Sequence[Tokens]) -> DataError:
        for example in self.data.examples:
            for text in (example.caption, *filter(None, (example.paraphrase,)), *example.foils):
                if over := tokens[self._text[text]].cut:
                    return DataError(
                        f"{self.cut} captions are longer than the model's context, the first by {over} tokens",
                        where=f"{self.data.name}, {example.key}",
                        mend="shorten them, or pass --truncate to cut them",
                    )
        raise AssertionError("some caption was cut")

    def _text_ids(self, texts: Sequence[str]) -> torch.Tensor:
        """The padded ids of some texts, as wide as the longest of them: causal towers need no more."""
        import torch

        rows = np.asarray([self._text[text] for text in texts])
        width = int(self._lengths[rows].max())
        return self._ids[torch.from_numpy(rows), :width].to(self.device)

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
        rows = self.rows(number)[self.share.index :: self.share.of]
        examples = [self.data.examples[i] for i in rows.tolist()]
        settings = self.settings
        dice = np.random.Generator(np.random.PCG64([settings.seed, number, 1]))
        draws = dice.random(len(examples)).tolist()
        foils: list[str] = []
        if settings.objective != "clip":
            foils = [e.foils[int(d * len(e.foils))] for e, d in zip(examples, draws, strict=True) if e.foils]
        wants_second = settings.objective == "triple" or settings.pull > 0
        second = [e.paraphrase for e in examples] if wants_second else []
        others = [key for e in examples for key in e.alternatives] if settings.objective == "negclip" else []
        ids = self._text_ids([*[e.caption for e in examples], *second, *foils])
        pictures = self._pictures([*[e.image for e in examples], *others])
        pixels = self.student.pixels(pictures, self.device)
        return Batch(number, len(examples), pixels, ids, len(second), len(foils))

    def _pictures(self, keys: Sequence[str]) -> np.ndarray:
        """Prepared pictures, stacked: from the array of those seen before, or made now."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._picture]
        fresh = list(self._readers.map(self._prepare, missing))
        if missing and self._kept is None:
            room = len({key for e in self.data.examples for key in (e.image, *e.alternatives)})
            self._kept = np.empty((min(room, ROOM // max(1, fresh[0].nbytes)), *fresh[0].shape), fresh[0].dtype)
        assert self._kept is not None
        spare: dict[str, np.ndarray] = {}
        for key, picture in zip(missing, fresh, strict=True):
            if len(self._picture) < len(self._kept):
                self._kept[len(self._picture)] = picture
                self._picture[key] = len(self._picture)
            else:
                spare[key] = picture
        if not spare:
            return np.asarray(self._kept[[self._picture[key] for key in keys]])
        return np.stack([spare[key] if key in spare else self._kept[self._picture[key]] for key in keys])

    def _prepare(self, key: str) -> np.ndarray:
        return self.student.prepare_image(self.data.open(key))

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
