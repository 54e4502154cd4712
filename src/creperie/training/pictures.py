"""The prepared images of a training set. Each is prepared on first use and cached, up to a size limit."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from creperie.core import Progress, silent
from creperie.training.architecture import Student
from creperie.training.examples import TrainSet

#: maximum size of the cache in bytes
ROOM = 4 * 2**30
READERS = 4  #: threads that decode images


class TrainingPictures:
    """The images of a training set, prepared for the model in training."""

    def __init__(self, keys: Sequence[str], data: TrainSet, student: Student, progress: Progress = silent) -> None:
        self._keys, self._open, self._student = keys, data.open, student
        self._kept: np.ndarray | None = None  #: images by number, as many as fit
        self._seen = np.zeros(len(keys), bool)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="pictures")
        if student.frozen_images:
            self._kept = student.features_of(keys, data, progress)
            self._seen[:] = True

    def prepared(self, numbers: np.ndarray) -> np.ndarray:
        """Return the prepared images with these numbers. Images that are not in the cache are prepared now."""
        fresh = self._read(np.unique(numbers[~self._seen[numbers]]).tolist())
        assert self._kept is not None
        if not fresh:
            return self._kept[numbers]
        return np.stack([fresh[k] if k in fresh else self._kept[k] for k in numbers.tolist()])

    def _read(self, missing: Sequence[int]) -> dict[int, np.ndarray]:
        """Prepare the images with the numbers in `missing`, and cache as many of them as possible. Return the prepared
        images that are not cached, by number.
        """
        if not missing:
            return {}
        shares = [missing[k::READERS] for k in range(READERS)]
        fresh = {k: picture for part in self._readers.map(self._prepare, shares) for k, picture in part}
        if self._kept is None:
            one = fresh[missing[0]]
            self._kept = np.empty((min(len(self._keys), ROOM // max(1, one.nbytes)), *one.shape), one.dtype)
        for k in [k for k in fresh if k < len(self._kept)]:
            self._kept[k] = fresh.pop(k)
            self._seen[k] = True
        return fresh

    def _prepare(self, numbers: Sequence[int]) -> list[tuple[int, np.ndarray]]:
        return [(k, self._student.prepare_image(self._open(self._keys[k]))) for k in numbers]

    def close(self) -> None:
        self._readers.shutdown(cancel_futures=True)
