"""How much the picture helps with each item, estimated from runs of the same models with and without pictures.

A model that does not see the answer in the picture answers as it would without the picture: right with probability t.
The floor of its item response curve is therefore t instead of the chance level of the task. P = t + (1 − t)·v, where v
is the probability that the model sees the answer. t comes from another item response model, fitted to the answers
without pictures.

The text of an item may mislead (t is below chance), and its picture may add nothing or be wrong.
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
    """For every item and model, the probability of a right answer without the picture (`text`), and how much the
    picture adds to it (`picture`). `fit` is the item response model of the answers with pictures; None if there are too
    few models.
    """

    text: np.ndarray
    picture: np.ndarray
    chance: np.ndarray
    fit: ResponseFit | None

    @cached_property
    def solved_by(self) -> np.ndarray:
        """For each item, "text" if at least half of the models know the answer from the text alone; otherwise "picture"
        if at least half know it with the picture; otherwise "neither".
        """
        half = (1 + self.chance) / 2
        text = self.text.mean(axis=1)
        choices = [text >= half, text + self.picture.mean(axis=1) >= half]
        return np.select(choices, ["text", "picture"], "neither")


def picture_gain(
    right: np.ndarray, blind: np.ndarray, chance: np.ndarray, model: ResponseModel | None = "2pl"
) -> PictureGain:
    """Return how much the picture adds. `right` and `blind` are the answers with and without it (items, models): 1 for
    right, 0 for wrong, NaN for unknown.

    If `model` is None, the gain is computed directly from the answers, without a response model.
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
    """Return the runs with pictures and, in the same order, their blind twins. If all runs are blind, or all
    have pictures, return all runs and an empty list.

    A run is blind if it was made with `score --image noise` (or another replacement of the images). Its benchmark is
    then named BENCH~noise.
    """
    blind = {run.model: run for run in runs if run.blinded}
    seeing = [run for run in runs if not run.blinded]
    if not blind or not seeing:
        return list(runs), []
    without = [run.model for run in seeing if run.model not in blind]
    if without:
        raise UsageError(
            f"there are blind runs, but none of the model {without[0]}",
            hint="score all models with --image noise, or leave the blind runs out",
        )
    return seeing, [blind[run.model] for run in seeing]
