"""Settings for computing results: the tie rule, the confidence level and the random seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from creperie.core import UsageError, check_name, option
from creperie.metrics.rules import HIT, TIE, VOID

Ties = Literal["wrong", "half", "right"]
#: What a tie is worth.
TIE_WEIGHTS: dict[str, float] = {"wrong": 0.0, "half": 0.5, "right": 1.0}


@dataclass(frozen=True)
class MetricSettings:
    """The tie rule, the confidence level, and the random seed. The seed is used to draw the images of a blind twin (a
    copy of the benchmark with meaningless images).
    """

    ties: Ties = option("wrong", "How a tie between a true and a false caption counts.")
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        check_name("tie rule", self.ties, TIE_WEIGHTS)
        if not 0 < self.level < 1:
            raise UsageError(f"a confidence level of {self.level} is not between 0 and 1", hint="write 0.95 for 95 %")

    @property
    def tie_weight(self) -> float:
        return TIE_WEIGHTS[self.ties]

    def worth(self, outcomes: np.ndarray) -> np.ndarray:
        """Return the value of each outcome: 1 for a hit, the weight of the tie rule for a tie, 0 otherwise."""
        return np.asarray((outcomes == HIT) + self.tie_weight * (outcomes == TIE), np.float64)

    def right(self, outcomes: np.ndarray) -> np.ndarray:
        """Return a boolean for each outcome, for measures that count whole items. It is True for hits and, depending on
        the tie rule, for ties.
        """
        return self.worth(outcomes) == 1

    def wrong(self, outcomes: np.ndarray) -> np.ndarray:
        """Return a boolean for each outcome: True if it is neither right nor void."""
        return np.asarray((outcomes != VOID) & ~self.right(outcomes))


DEFAULT = MetricSettings()
