"""Losses that are read late, and where a step's time goes: nothing in here makes a GPU wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: steps whose losses are read together from a GPU
TOGETHER = 20

Line = tuple[int, float, float]  #: step, loss, learning rate


class LossLog:
    """The losses of the last steps. On a CPU they are read at once. From a GPU they are copied, some steps together,
    without waiting, and read when the next ones are due; `settle` waits for all."""

    def __init__(self, device: str) -> None:
        self._late = device.startswith("cuda")
        self._pending: list[tuple[int, torch.Tensor, float]] = []
        self._coming: tuple[list[tuple[int, float]], torch.Tensor, Any] | None = None

    def add(self, step: int, loss: torch.Tensor, rate: float) -> list[Line]:
        """Note a step; what can be read by now comes back."""
        self._pending.append((step, loss, rate))
        if not self._late:
            return self._read()
        if len(self._pending) < TOGETHER:
            return []
        lines = self._arrived()
        self._send()
        return lines

    def settle(self) -> list[Line]:
        """All that is not read yet."""
        return [*self._arrived(), *self._read()]

    def _read(self) -> list[Line]:
        import torch

        if not self._pending:
            return []
        values = torch.stack([loss for _, loss, _ in self._pending]).tolist()
        lines = [(step, value, rate) for (step, _, rate), value in zip(self._pending, values, strict=True)]
        self._pending = []
        return lines

    def _send(self) -> None:
        import torch

        here, done = _on_its_way(torch.stack([loss for _, loss, _ in self._pending]))
        self._coming = [(step, rate) for step, _, rate in self._pending], here, done
        self._pending = []

    def _arrived(self) -> list[Line]:
        if self._coming is None:
            return []
        steps, here, done = self._coming
        done.synchronize()
        self._coming = None
        return [(step, value, rate) for (step, rate), value in zip(steps, here.tolist(), strict=True)]


def _on_its_way(there: torch.Tensor) -> tuple[torch.Tensor, Any]:
    """A copy in pinned memory that will be right once the event has happened."""
    import torch

    here = torch.empty(there.shape, dtype=there.dtype, pin_memory=True)
    here.copy_(there, non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    return here, done


class Clock:
    """Seconds by phase, of the thread that trains. On a GPU these are the times of starting work, not of doing it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = 0.0

    def start(self) -> None:
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """All time since the last call was spent on this."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now

    @property
    def total(self) -> float:
        return sum(self.seconds.values())
