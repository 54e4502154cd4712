"""What the picture adds to each item, from runs of the same models with and without it.

A model that does not see the answer in the picture answers as it would without one: the floor of its item response
curve is not the chance of the task but its probability of being right blind, P = t + (1 − t)·v, where t is what text
alone gives (another item response model, of the blind answers) and v the probability that the model sees the answer.
An item may be misleading as text (t below chance), and its picture may add nothing, or be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from creperie.core import UsageError
from creperie.scoring import Run
from creperie.statistics.response import FEWEST_MODELS, ResponseFit, ResponseModel, fit_responses

#: The floors of answers are rounded to these.
FLOORS = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
#: Weight of a model's own blind answer in its floor, beside what the blind answers of all models say.
OWN = 0.2


@dataclass(frozen=True, eq=False)
class PictureGain:
    """The probability of a right answer without the picture (`text`) and what the picture adds to it (`picture`), for
    every item and model; `fit` is the item response model of the answers with picture, None with too few models.
    """

    text: np.ndarray
    picture: np.ndarray
    chance: np.ndarray
    fit: ResponseFit | None

    @cached_property
    def solved_by(self) -> np.ndarray:
        """What tells at least half of the models the answer: text, picture (if not text), or neither."""
        half = (1 + self.chance) / 2
        text = self.text.mean(axis=1)
        choices = [text >= half, text + self.picture.mean(axis=1) >= half]
        return np.select(choices, ["text", "picture"], "neither")


def picture_gain(
    right: np.ndarray, blind: np.ndarray, chance: np.ndarray, model: ResponseModel | None = "2pl"
) -> PictureGain:
    """Return what the picture adds, from answers with and without it (items, models): 1 right, 0 wrong, NaN unknown.

    Without a response model, the gain is computed from the answers directly.
    """
    if model is None or right.shape[1] < FEWEST_MODELS:
        text = np.nan_to_num(blind, nan=float(np.nanmean(blind)))
        return PictureGain(text, np.nan_to_num(right, nan=float(np.nanmean(right))) - text, chance, None)
    text = fit_responses(blind, model).expected
    own = (1 - OWN) * text + OWN * np.where(np.isnan(blind), text, blind)
    floor = FLOORS[np.abs(own[..., None] - FLOORS).argmin(axis=-1)]
    fit = fit_responses(right, model, floor)
    return PictureGain(text, fit.expected - text, chance, fit)


def split_twins(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Return the runs with pictures and, in the same order, the blind twin of each; no twins if all or none are blind.

    A run by `score --image noise` (or another kind) is blind: its benchmark is named BENCH~noise.
    """
    blind = {run.model: run for run in runs if run.blinded}
    seeing = [run for run in runs if not run.blinded]
    if not blind or not seeing:
        return list(runs), []
    without = [run.model for run in seeing if run.model not in blind]
    if without:
        raise UsageError(
            f"blind runs were given, but none of {', '.join(without[:3])}",
            hint="score all models with --image noise, or leave the blind runs out",
        )
    return seeing, [blind[run.model] for run in seeing]
