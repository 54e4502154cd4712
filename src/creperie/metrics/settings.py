"""What a reader may choose about the numbers: the tie rule and the level of intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from creperie.core import UsageError, option, unknown
from creperie.metrics.rules import HIT, TIE

Ties = Literal["wrong", "half", "right"]
#: What a tie is worth.
TIE_WEIGHTS: dict[str, float] = {"wrong": 0.0, "half": 0.5, "right": 1.0}


@dataclass(frozen=True)
class MetricSettings:
    """The tie rule and the confidence level. `resamples` and `seed` are kept for runs that were written with them."""

    ties: Ties = option("wrong", "How a tie between a true and a false caption counts.")
    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.ties not in TIE_WEIGHTS:
            raise unknown("tie rule", self.ties, TIE_WEIGHTS)
        if not 0 < self.level < 1:
            raise UsageError(f"a confidence level of {self.level} is not between 0 and 1", hint="write 0.95 for 95 %")
        if self.resamples < 1:
            raise UsageError(f"{self.resamples} resamples are too few")

    @property
    def tie_weight(self) -> float:
        return TIE_WEIGHTS[self.ties]

    def worth(self, outcomes: np.ndarray) -> np.ndarray:
        """What outcomes count for: a hit 1, a tie as `ties` says, anything else 0."""
        return np.asarray((outcomes == HIT) + self.tie_weight * (outcomes == TIE), dtype=np.float64)


DEFAULT = MetricSettings()
