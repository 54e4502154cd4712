"""Batches of training data. They are determined by seed and step, and prepared in a background thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from creperie.core import DataError, Progress, UsageError, seeded, silent
from creperie.training.architecture import Student
from creperie.training.examples import TrainSet
from creperie.training.pictures import TrainingPictures
from creperie.training.settings import TrainingSettings

if TYPE_CHECKING:
    import torch

AHEAD = 4  #: number of batches prepared in advance
NUMBERS = pa.list_(pa.int64())  #: the type of a column of row numbers, of an example's foils or images


@dataclass(frozen=True)
class Batch:
    """The inputs of one batch on the device.

    Its texts are the captions, then the paraphrases (one per caption, or none at all), then the foils. Its images are
    those of the examples, then the alternatives.
    """

    number: int
    size: int
    pixels: torch.Tensor
    ids: torch.Tensor
    paraphrases: int
    foils: int


def _spread(order: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Return the examples in `order`, rearranged: the first examples of all images come first, then the second ones,
    and so on. `images` has the number of each example's image.

    >>> _spread(np.array([0, 1, 2, 3]), np.array([7, 7, 8, 8])).tolist()
    [0, 2, 1, 3]
    """
    # This tends to keep two captions of one image out of the same batch. Within a batch, every caption counts as wrong
    # for the images of all other examples, although it is true if two examples have the same image.
    own = images[order]
    by_image = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.diff(own[by_image], prepend=-1))
    counts = np.diff(np.append(starts, len(own)))
    turn = np.empty(len(own), np.int64)
    turn[by_image] = np.arange(len(own)) - np.repeat(starts, counts)
    return order[np.argsort(turn, kind="stable")]


class Feed:
    """A training set that is served as batches."""

    # Texts are tokenised once, and images are prepared on first use. After that, a batch is only copied from arrays, so
    # the thread that runs the model does not wait.

    def __init__(
        self,
        data: TrainSet,
        student: Student,
        settings: TrainingSettings,
        device: str = "cpu",
        *,
        truncate: bool = False,
        progress: Progress = silent,
    ) -> None:
        check_fits(data, settings)
        self.data, self.student, self.settings, self.device = data, student, settings, device
        self.size = min(settings.batch, len(data))
        self.cut = 0
        self._order = (-1, np.zeros(0, np.int64))
        self._number_texts(truncate)
        self._number_pictures(progress)

    # -- texts and pictures as numbers ---------------------------------------------------------------------------

    def _number_texts(self, truncate: bool) -> None:
        """Tokenise all texts into one padded table. Store each example's captions and foils as row numbers of this
        table. If a text is too long, cut it if `truncate` is True, and raise a DataError if not.
        """
        examples = self.data.examples
        texts = list(dict.fromkeys(self.data.captions()))
        tokens = self.student.prepare_texts(texts)
        number = {text: i for i, text in enumerate(texts)}
        self.cut = sum(t.cut > 0 for t in tokens)
        if self.cut and not truncate:
            text, over = next((text, t.cut) for text, t in zip(texts, tokens) if t.cut)
            key = next(e.key for e in examples if text in (e.caption, e.paraphrase, *e.foils))
            hint = "shorten them, or pass `truncate=True` to cut them"
            raise DataError(
                f"{self.cut} captions are longer than the model's context, the first by {over} tokens",
                where=f"{self.data.name}, {key}",
                hint=hint,
            )
        self._ids = self.student.ids(tokens)
        self._lengths = np.asarray([len(t.ids) for t in tokens])
        self._captions = np.asarray([number[e.caption] for e in examples])
        self._seconds = np.asarray([number.get(e.paraphrase, 0) for e in examples])
        self._foils = pa.array([[number[text] for text in e.foils] for e in examples], NUMBERS)

    def _number_pictures(self, progress: Progress) -> None:
        examples = self.data.examples
        with_others = self.settings.objective == "negclip"
        shown = [(e.image, *e.alternatives) if with_others else (e.image,) for e in examples]
        keys = list(dict.fromkeys(key for own in shown for key in own))
        number = {key: i for i, key in enumerate(keys)}
        self._images = np.asarray([number[e.image] for e in examples])
        self._others = pa.array([[number[key] for key in own[1:]] for own in shown], NUMBERS)
        self.pictures = TrainingPictures(keys, self.data, self.student, progress)

    # -- batches -------------------------------------------------------------------------------------------------

    def rows(self, number: int) -> np.ndarray:
        """Return the indices of the examples in batch `number`. Every epoch has a different order."""
        per_epoch = max(1, len(self.data) // self.size)
        epoch, place = divmod(number, per_epoch)
        if self._order[0] != epoch:
            dice = seeded([self.settings.seed, epoch])
            self._order = epoch, _spread(dice.permutation(len(self.data)), self._images)
        return self._order[1][place * self.size : (place + 1) * self.size]

    def keys(self, number: int) -> list[str]:
        """Return the keys of the examples in a batch, for error messages."""
        return [self.data.examples[i].key for i in self.rows(number).tolist()]

    def batch(self, number: int) -> Batch:
        rows = self.rows(number)
        foils = self._drawn_foils(number, rows)
        second = self._seconds[rows] if self.settings.objective == "triple" else foils[:0]
        texts = np.concatenate([self._captions[rows], second, foils])
        shown = np.concatenate([self._images[rows], self._others.take(pa.array(rows)).flatten()])
        ids, stacked = self._gathered(texts, shown)
        return Batch(number, len(rows), self.student.pixels(stacked), ids, len(second), len(foils))

    def _drawn_foils(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Return one random foil for each example in `rows` that has foils. Foils are given as row numbers of the table
        of texts. The draw depends on `number`, the number of the batch, so other epochs draw other foils.
        """
        if self.settings.objective == "clip":
            return np.zeros(0, np.int64)
        draws = seeded([self.settings.seed, number, 1]).random(len(rows))
        starts = self._foils.offsets.to_numpy()
        counts = starts[rows + 1] - starts[rows]
        chosen = starts[rows] + (draws * counts).astype(np.int64)
        return np.asarray(self._foils.values)[chosen[counts > 0]]

    def _gathered(self, texts: np.ndarray, shown: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return two tensors on the device: the token ids of `texts`, and the images `shown`. For causal towers, the
        ids are cut to the length of the longest text.
        """
        import torch

        longest = int(self._lengths[texts].max()) if self.student.trims else self._ids.shape[1]
        ids = self._ids[:, :longest][torch.from_numpy(texts)]
        pixels = torch.from_numpy(self.pictures.prepared(shown))
        return moved(ids, self.device), moved(pixels, self.device)

    def stream(self, start: int, stop: int) -> Generator[Batch, None, None]:
        """Yield the batches from `start` up to `stop`, prepared in a background thread."""
        ahead: deque[Future[Batch]] = deque()
        with ThreadPoolExecutor(1, thread_name_prefix="batches") as maker:
            for number in range(start, stop):
                ahead.append(maker.submit(self.batch, number))
                if len(ahead) > AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def close(self) -> None:
        self.pictures.close()


def moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """Return a copy of a tensor on the device. A GPU is reached through pinned memory."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.startswith("cuda") else tensor.to(device)


def check_fits(data: TrainSet, settings: TrainingSettings) -> None:
    """Raise an error if the data have fewer than two examples. Also raise one if they lack the paraphrases or foils
    that the objective needs.
    """
    if len(data) < 2:
        raise DataError(
            f"expected at least 2 training examples, found {len(data)}",
            where=data.name,
            hint="give more items with images",
        )
    for e in data.examples if settings.objective == "triple" else ():
        if not (e.paraphrase and e.foils):
            hint = "train on items with P1, P2 and N, or with `objective='negclip'`"
            raise UsageError(
                f"the example has no {'foil' if e.paraphrase else 'second true caption'}, which the objective needs",
                where=f"{data.name}, {e.key}",
                hint=hint,
            )
    if settings.objective == "negclip" and not data.with_foils:
        raise UsageError(
            "no example has a foil, which the objective needs",
            where=data.name,
            hint="name some with `negatives=`, or train with `objective='clip'`",
        )
