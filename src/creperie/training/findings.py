"""What a study finds: the exams of models that were trained with different foils."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from creperie.core import unknown
from creperie.training.scenes import TYPES

#: arms: the types of foils that are trained with, and whether they were refined
ARMS: dict[str, tuple[tuple[str, ...], bool]] = {
    "none": ((), False),
    **{name: ((name,), False) for name in TYPES},
    "all": (tuple(TYPES), False),
    **{f"{name}-refined": ((name,), True) for name in TYPES},
    "refined": (tuple(TYPES), True),
}
GRID = ("none", "replace", "swap", "negate", "all", "refined")
EVERY = "every"


def wanted_arms(arms: Sequence[str]) -> tuple[str, ...]:
    """Return the arms by name, the one without foils first: all others are compared with it.

    >>> wanted_arms(["negate", "none"])
    ('none', 'negate')
    """
    if EVERY in arms:
        return tuple(ARMS)
    for arm in arms:
        if arm not in ARMS:
            raise unknown("arm", arm, [*ARMS, EVERY])
    return tuple(dict.fromkeys(("none", *arms)))


@dataclass(frozen=True)
class ExamResult:
    """One model's exam."""

    arm: str
    seed: int
    values: dict[str, float]  #: "clean swap" → percent
    kinds: dict[str, float]  #: every kind → percent
    foils: int  #: examples with foils in its training
    seconds: float
    model: str  #: URI


@dataclass(frozen=True)
class TrainingStudy:
    """A grid of trainings and their exams, whole or as far as it has come."""

    preset: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    sat: tuple[ExamResult, ...]
    base: tuple[ExamResult, ...]
    seconds: float
    columns: tuple[str, ...]  #: "biased swap", "clean swap", …
    notes: tuple[str, ...] = field(default_factory=tuple)
    scratch: bool = False  #: every arm begins with fresh weights, not with a trained model

    @property
    def done(self) -> tuple[str, ...]:
        """The arms with at least one exam."""
        return tuple(arm for arm in self.arms if any(s.arm == arm for s in self.sat))

    @property
    def size(self) -> int:
        """Trainings in all, without the bases."""
        return len(self.arms) * len(self.seeds)

    @property
    def finished(self) -> bool:
        return len(self.sat) == self.size

    def values(self, arm: str, column: str) -> list[float]:
        return [s.values[column] for s in self.sat if s.arm == arm]

    def gains(self, arm: str, column: str) -> list[float]:
        """Against the continuation without foils, seed by seed."""
        plain = {s.seed: s.values[column] for s in self.sat if s.arm == "none"}
        return [s.values[column] - plain[s.seed] for s in self.sat if s.arm == arm and s.seed in plain]

    def foils(self, arm: str) -> int:
        return next(s.foils for s in self.sat if s.arm == arm)

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self) | {"finished": self.finished}


def read_study(document: dict[str, Any]) -> TrainingStudy:
    """From what `Study.document` wrote, and JSON kept."""
    return TrainingStudy(
        preset=document["preset"],
        arms=tuple(document["arms"]),
        seeds=tuple(document["seeds"]),
        sat=tuple(ExamResult(**own) for own in document["sat"]),
        base=tuple(ExamResult(**own) for own in document["base"]),
        seconds=document["seconds"],
        columns=tuple(document["columns"]),
        notes=tuple(document["notes"]),
        scratch=document.get("scratch", False),
    )


#: Student's t, 97.5 %, for 2 to 9 degrees of freedom
_T = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def seed_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean and 95 % interval over seeds by Student's t; with two seeds, where that says nothing, their range.

    >>> [round(x, 2) for x in seed_interval([50.0, 52.0, 54.0])]
    [52.0, 47.03, 56.97]
    >>> seed_interval([50.0, 52.0])
    (51.0, 50.0, 52.0)
    """
    n = len(values)
    mean = sum(values) / n
    if n < 3:
        return mean, min(values), max(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    half = spread * (_T[n - 3] if n - 3 < len(_T) else 1.96)
    return mean, mean - half, mean + half


def seed_share_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the same of percentages, which end at 0 and at 100.

    >>> [round(x, 2) for x in seed_share_interval([98.0, 99.0, 100.0])]
    [99.0, 96.52, 100.0]
    """
    mean, low, high = seed_interval(values)
    return mean, max(low, 0.0), min(high, 100.0)
