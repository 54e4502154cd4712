"""Prepared pictures by number: made when they are first seen, kept while there is room, and in the end on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from creperie.core import Progress, silent
from creperie.training.examples import Open
from creperie.training.student import Student

if TYPE_CHECKING:
    import torch

#: prepared pictures are kept up to so many bytes
ROOM = 4 * 2**30
READERS = 4  #: threads that decode pictures
#: with so many of the pictures seen the others are read too, so that all can move to the GPU
ENOUGH = 0.9


@runtime_checkable
class FrozenImages(Protocol):
    """A model whose image tower is not trained: the features of a whole set are computed once."""

    @property
    def frozen_images(self) -> bool: ...

    def features_of(self, keys: Sequence[str], open_image: Open, progress: Progress) -> np.ndarray: ...


class TrainingPictures:
    """The pictures of a training set. Once all have been seen they move to a GPU that has room for them: a batch is
    then one gather there, and no other thread competes with the model's for the interpreter."""

    def __init__(
        self, keys: Sequence[str], open_picture: Open, student: Student, device: str, progress: Progress = silent
    ) -> None:
        self._keys, self._open, self._student, self._device = keys, open_picture, student, device
        self._kept: np.ndarray | None = None  #: pictures by number, as many as there is room for
        self._seen = np.zeros(len(keys), dtype=bool)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="pictures")
        self._there: torch.Tensor | None = None
        self._may_settle = device.startswith("cuda")
        if isinstance(student, FrozenImages) and student.frozen_images:
            self._kept = student.features_of(keys, open_picture, progress)
            self._seen[:] = True

    @property
    def resident(self) -> bool:
        """Do they all lie on the device?"""
        return self._there is not None

    def take(self, numbers: torch.Tensor) -> torch.Tensor:
        """Pictures that lie on the device, by numbers that lie there too."""
        assert self._there is not None
        return self._there.index_select(0, numbers)

    def stacked(self, numbers: np.ndarray) -> torch.Tensor:
        """Pictures from here, moved to the device."""
        import torch

        stacked = torch.from_numpy(self.prepared(numbers))
        if self._device.startswith("cuda"):
            return stacked.pin_memory().to(self._device, non_blocking=True)
        return stacked.to(self._device)

    def prepared(self, numbers: np.ndarray) -> np.ndarray:
        """From the array of those seen before, or made now."""
        fresh = self._read(np.unique(numbers[~self._seen[numbers]]).tolist())
        assert self._kept is not None
        if not fresh:
            return np.asarray(self._kept[numbers])
        return np.stack([fresh[k] if k in fresh else self._kept[k] for k in numbers.tolist()])

    def _read(self, missing: Sequence[int]) -> dict[int, np.ndarray]:
        """Prepare some; what there is no room for is handed back."""
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

    def settle(self) -> bool:
        """Move to the GPU, if it is time and there is room; True when they lie there."""
        if self.resident or not self._may_settle:
            return self.resident
        if self._kept is None or self._seen.mean() < ENOUGH:
            return False
        if len(self._kept) < len(self._keys) or self._kept.nbytes > _free(self._device) // 4:
            self._may_settle = False
            return False
        self._read(np.flatnonzero(~self._seen).tolist())
        self.move()
        return True

    def move(self) -> None:
        """Move all pictures to the device."""
        import torch

        assert self._kept is not None
        self._there = torch.from_numpy(self._kept).to(self._device)
        self._kept = None

    def close(self) -> None:
        self._readers.shutdown(cancel_futures=True)


def _free(device: str) -> int:
    """Bytes that are free on a GPU."""
    import torch

    return int(torch.cuda.mem_get_info(torch.device(device))[0])
