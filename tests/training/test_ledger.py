"""Losses that are read late, and the phases of a step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from creperie.training import ledger
from creperie.training.ledger import Clock, LossLog


def test_on_a_cpu_a_loss_is_read_at_once() -> None:
    own = LossLog("cpu")
    assert own.add(1, torch.tensor(0.5), 1e-3) == [(1, 0.5, 1e-3)]
    assert own.settle() == []


class Event:
    """Stands for CUDA's: the copy is not right before it has been waited for."""

    def __init__(self, there: torch.Tensor, here: torch.Tensor) -> None:
        self.there, self.here = there, here

    def synchronize(self) -> None:
        self.here.copy_(self.there)


def test_from_a_gpu_losses_come_late_in_order_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(there: torch.Tensor) -> tuple[torch.Tensor, Any]:
        here = torch.full_like(there, -1.0)
        return here, Event(there, here)

    monkeypatch.setattr(ledger, "_on_its_way", slowly)
    monkeypatch.setattr(ledger, "TOGETHER", 3)
    own = LossLog("cuda:0")
    known = [own.add(step, torch.tensor(float(step)), step / 10) for step in range(1, 9)]
    assert [len(lines) for lines in known] == [0, 0, 0, 0, 0, 3, 0, 0]
    rest = own.settle()
    assert [*known[5], *rest] == [(step, float(step), step / 10) for step in range(1, 9)]
    assert own.settle() == []


def test_a_clock_adds_up_the_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 11.0, 14.0, 20.0, 20.5])
    monkeypatch.setattr(ledger.time, "perf_counter", lambda: next(times))
    clock = Clock()
    clock.start()
    clock.lap("data")
    clock.lap("forward")
    clock.start()
    clock.lap("data")
    assert clock.seconds == {"data": 1.5, "forward": 3.0}
    assert clock.total == 4.5
