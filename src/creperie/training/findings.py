"""The results of a study: the test accuracies of models trained with different foils."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import stdev

from creperie.core import Json, unknown
from creperie.metrics import student_quantile
from creperie.training.scenes import TYPES

#: arms of a study: the types of foils to train with, and whether these are refined
ARMS: dict[str, tuple[tuple[str, ...], bool]] = {
    "none": ((), False),
    **{name: ((name,), False) for name in TYPES},
    "all": (tuple(TYPES), False),
    **{f"{name}-refined": ((name,), True) for name in TYPES},
    "refined": (tuple(TYPES), True),
}
GRID = ("none", "replace", "swap", "negate", "all", "refined")
EVERY = "every"


def arms_to_run(arms: Sequence[str]) -> tuple[str, ...]:
    """Return the arms that a study runs: always "none" (training without foils) first, then the arms in `arms`, without
    duplicates. An arm is a type of training foils; "every" in `arms` stands for all types.

    >>> arms_to_run(["negate", "none"])
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
    """The test results of one trained model."""

    arm: str
    seed: int
    values: dict[str, float]  #: "clean swap" → accuracy in percent
    kinds: dict[str, float]  #: kind of foils → accuracy in percent
    foils: int  #: number of training examples with foils
    seconds: float  #: of training
    model: str  #: URI


@dataclass(frozen=True)
class TrainingStudy:
    """The results of a study so far: one for each finished training run. A study has one run for each seed and each arm
    (type of training foils).
    """

    preset: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    sat: tuple[ExamResult, ...]
    base: tuple[ExamResult, ...]
    seconds: float
    columns: tuple[str, ...]  #: "biased swap", "clean swap", …
    notes: tuple[str, ...] = field(default_factory=tuple)
    scratch: bool = False  #: every arm starts from fresh weights, not from a trained model

    @property
    def done(self) -> tuple[str, ...]:
        """The names of the arms (types of training foils) that have at least one result."""
        return tuple(arm for arm in self.arms if any(s.arm == arm for s in self.sat))

    @property
    def size(self) -> int:
        """The total number of training runs. Those of the base models are not counted."""
        return len(self.arms) * len(self.seeds)

    @property
    def finished(self) -> bool:
        return len(self.sat) == self.size

    def values(self, arm: str, column: str) -> list[float]:
        return [s.values[column] for s in self.sat if s.arm == arm]

    def gains(self, arm: str, column: str) -> list[float]:
        """Return the gain for each seed: the accuracy after training with the foils that `arm` names, minus the
        accuracy after training without foils. `column` names the test subset.
        """
        plain = {s.seed: s.values[column] for s in self.sat if s.arm == "none"}
        return [s.values[column] - plain[s.seed] for s in self.sat if s.arm == arm and s.seed in plain]

    def foils(self, arm: str) -> int:
        return next(s.foils for s in self.sat if s.arm == arm)

    @property
    def document(self) -> Json:
        return asdict(self) | {"finished": self.finished}


def read_study(document: Json) -> TrainingStudy:
    """Return the study that a JSON `document` contains."""
    parts = {name: document[name] for name in ("preset", "seconds")}
    parts |= {name: tuple(document[name]) for name in ("arms", "seeds", "columns", "notes")}
    parts |= {name: tuple(ExamResult(**own) for own in document[name]) for name in ("sat", "base")}
    return TrainingStudy(**parts, scratch=document.get("scratch", False))


def seed_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean over seeds and its 95 % interval by Student's t. With fewer than three seeds, the interval is the
    range.

    >>> [round(x, 2) for x in seed_interval([50.0, 52.0, 54.0])]
    [52.0, 47.03, 56.97]
    >>> seed_interval([50.0, 52.0])
    (51.0, 50.0, 52.0)
    """
    n = len(values)
    mean = sum(values) / n
    if n < 3:
        return mean, min(values), max(values)
    half = stdev(values) / math.sqrt(n) * student_quantile(0.975, n - 1)
    return mean, mean - half, mean + half


def seed_share_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the result of `seed_interval` for percentages. The interval is clipped to the range from 0 to 100.

    >>> [round(x, 2) for x in seed_share_interval([98.0, 99.0, 100.0])]
    [99.0, 96.52, 100.0]
    """
    mean, low, high = seed_interval(values)
    return mean, max(low, 0.0), min(high, 100.0)
