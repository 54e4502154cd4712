"""Batches: the same for the same seed and step, made ready beside the model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from creperie.errors import DataError, UsageError
from creperie.models.protocols import Tokens
from creperie.train.examples import TrainSet
from creperie.train.settings import Settings
from creperie.train.student import Student

#: prepared pictures are kept up to so many bytes
ROOM = 4 * 2**30
AHEAD = 4  #: batches made ready before they are asked for
READERS = 4  #: threads that decode pictures


@dataclass(frozen=True)
class Batch:
    """Prepared inputs. Texts stand in the order: captions, paraphrases (one each, or none), foils."""

    step: int
    rows: np.ndarray
    pictures: list[np.ndarray]  #: those of the examples, then the alternatives
    texts: list[Tokens]
    paraphrases: int
    foils: int

    @property
    def size(self) -> int:
        return len(self.rows)


class Feed:
    """A training set as batches. Texts are tokenised once, pictures prepared when they are first seen and kept."""

    def __init__(self, data: TrainSet, student: Student, settings: Settings, *, truncate: bool = False) -> None:
        check_fits(data, settings)
        self.data = data
        self.student = student
        self.settings = settings
        self.size = min(settings.batch, len(data))
        self.cut = 0
        self._order = (-1, np.zeros(0, dtype=np.int64))
        self._texts = self._tokenised(truncate)
        self._kept: dict[str, np.ndarray] = {}
        self._bytes = 0
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="pictures")

    # -- texts ---------------------------------------------------------------------------------------------------

    def _tokenised(self, truncate: bool) -> dict[str, Tokens]:
        texts = list(dict.fromkeys(self.data.captions()))
        tokens = dict(zip(texts, self.student.prepare_texts(texts), strict=True))
        long = {text for text, t in tokens.items() if t.cut}
        self.cut = len(long)
        if long and not truncate:
            example = next(e for e in self.data.examples if long & {e.caption, e.paraphrase, *e.foils})
            text = next(t for t in (example.caption, example.paraphrase, *example.foils) if t in long)
            raise DataError(
                f"{len(long)} captions are longer than the model's context, the first by {tokens[text].cut} tokens",
                where=f"{self.data.name}, {example.key}",
                mend="shorten them, or pass --truncate to cut them",
            )
        return tokens

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
        return self.batch_of(number, self.rows(number))

    def batch_of(self, number: int, rows: np.ndarray) -> Batch:
        examples = [self.data.examples[i] for i in rows.tolist()]
        settings = self.settings
        dice = np.random.Generator(np.random.PCG64([settings.seed, number, 1]))
        chosen = [e.foils[int(dice.integers(len(e.foils)))] for e in examples if e.foils]
        foils = chosen if settings.objective != "clip" else []
        wants_second = settings.objective == "triple" or settings.pull > 0
        second = [e.paraphrase for e in examples] if wants_second else []
        others = [key for e in examples for key in e.alternatives] if settings.objective == "negclip" else []
        texts = [self._texts[text] for text in (*[e.caption for e in examples], *second, *foils)]
        pictures = self._pictures([*[e.image for e in examples], *others])
        return Batch(number, rows, pictures, texts, len(second), len(foils))

    def _pictures(self, keys: Sequence[str]) -> list[np.ndarray]:
        missing = [key for key in dict.fromkeys(keys) if key not in self._kept]
        fresh = dict(zip(missing, self._readers.map(self._prepare, missing), strict=True))
        for key, picture in fresh.items():
            if self._bytes + picture.nbytes <= ROOM:
                self._kept[key] = picture
                self._bytes += picture.nbytes
        return [fresh[key] if key in fresh else self._kept[key] for key in keys]

    def _prepare(self, key: str) -> np.ndarray:
        return self.student.prepare_image(self.data.open(key))

    def stream(self, start: int, stop: int) -> Iterator[Batch]:
        """Batches `start` to `stop`, made ready by a thread beside the caller."""
        ready: queue.Queue[Batch | BaseException] = queue.Queue(AHEAD)
        ended = threading.Event()

        def work() -> None:
            try:
                for number in range(start, stop):
                    batch = self.batch(number)
                    while not ended.is_set():
                        try:
                            ready.put(batch, timeout=0.2)
                            break
                        except queue.Full:
                            continue
                    if ended.is_set():
                        return
            except BaseException as e:
                ready.put(e)

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
