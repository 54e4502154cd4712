"""The study of hard negatives: does training with foils also raise the accuracy on an unbiased benchmark? The study
compares arms, each trained with its own type of foils.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from creperie.core import Progress, UsageError, silent
from creperie.training.findings import ARMS, GRID, ExamResult, TrainingStudy, arms_to_run
from creperie.training.negatives import FoilRefinement
from creperie.training.presets import TrainingPreset, find_preset

#: bins per sign for refining the foils of a study: a few thousand foils would leave most of the paper's cells empty
STUDY_BINS = 5
#: a callback that gets the study after every new result
Tell = Callable[[TrainingStudy], None]


class StudyLab(Protocol):
    """The interface through which a study trains and tests its models."""

    name: str
    scratch: bool  #: arms start from fresh weights
    own_bases: bool  #: every seed has its own base

    def base(self, seed: int) -> ExamResult:
        """Return the test result of the base model: the model from which all training runs with `seed` start."""
        ...

    def arm(self, arm: str, seed: int, base: str) -> ExamResult:
        """Train the model with the URI `base` and return the test result. `arm` names the type of foils to train on,
        and `seed` is the random seed.
        """
        ...

    def notes(self) -> tuple[str, ...]:
        return ()


def run_grid(lab: StudyLab, arms: Sequence[str], seeds: Sequence[int], tell: Tell) -> TrainingStudy:
    """Train and test a model for each seed and each arm (type of training foils). Return the results. After each test,
    `tell` is called with the results so far.
    """
    if not seeds:
        raise UsageError("a study needs at least one seed", hint="pass `seeds=`")
    base: list[ExamResult] = []
    sat: list[ExamResult] = []

    def so_far() -> TrainingStudy:
        seconds = sum(result.seconds for result in (*base, *sat))
        whole = (lab.name, tuple(arms), tuple(seeds), tuple(sat), tuple(base), seconds)
        return TrainingStudy(*whole, tuple(base[0].values), lab.notes(), lab.scratch)

    for seed in seeds:
        if lab.own_bases or not base:
            base.append(lab.base(seed))
        for arm in arms:
            sat.append(lab.arm(arm, seed, base[-1].model))
            tell(so_far())
    return so_far()


def run_study(
    preset: str | TrainingPreset,
    out: str | Path,
    *,
    seeds: Sequence[int] = (0, 1),
    arms: Sequence[str] = GRID,
    device: str = "auto",
    refinement: FoilRefinement | None = None,
    progress: Progress = silent,
    tell: Tell = lambda so_far: None,
) -> TrainingStudy:
    """Train and test a model for each arm (type of training foils) and each seed, on the built-in world. Return the
    results. After each test, `tell` is called with the results so far.

    After an interruption, the same call resumes the study.
    """
    from creperie.training.lab import Lab

    chosen = find_preset(preset) if isinstance(preset, str) else preset
    all_arms = arms_to_run(arms)
    lab = Lab(chosen, Path(out), device, refinement or FoilRefinement(bins=STUDY_BINS), progress)
    if any(ARMS[arm][1] for arm in all_arms):
        lab.refine()  # fails early if something is missing, not after hours of training
    return run_grid(lab, all_arms, seeds, tell)
