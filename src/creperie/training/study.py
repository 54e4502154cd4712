"""Does a gain from hard negatives survive an honest benchmark? One base per seed, one arm per type of foils."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from creperie.core import Progress, UsageError, silent
from creperie.training.findings import ARMS, GRID, ExamResult, TrainingStudy, wanted_arms
from creperie.training.negatives import FoilRefinement
from creperie.training.presets import TrainingPreset, find_preset

__all__ = ["TrainingStudy", "run_study", "study_small"]

#: bins per sign for refining the foils of a study, whose few thousand foils would leave most of the paper's cells empty
STUDY_BINS = 5
#: is told of the study whenever there is something new
Tell = Callable[[TrainingStudy], None]


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
    """Train and test the whole grid, and report after every test. If it is killed, the same call resumes with what
    is not done yet."""
    from creperie.training.lab import Lab, world_columns

    chosen = find_preset(preset) if isinstance(preset, str) else preset
    wanted = wanted_arms(arms)
    if not seeds:
        raise UsageError("a study needs at least one seed")
    start = time.monotonic()
    lab = Lab(chosen, Path(out), device, refinement or FoilRefinement(bins=STUDY_BINS), progress)
    if any(ARMS[arm][1] for arm in wanted):
        lab.refine()  # what is missing for that should be known before hours of training
    base: list[ExamResult] = []
    sat: list[ExamResult] = []

    def so_far() -> TrainingStudy:
        seconds = time.monotonic() - start
        facts = (chosen.name, wanted, tuple(seeds), tuple(sat), tuple(base), seconds, world_columns(), lab.notes())
        return TrainingStudy(*facts, scratch=chosen.scratch)

    for seed in seeds:
        base.append(lab.base(seed))
        for arm in wanted:
            sat.append(lab.arm(arm, seed, base[-1].model))
            tell(so_far())
    return so_far()


def study_small(
    out: str | Path, *, seed: int = 0, arms: Sequence[str] = ("negate",), progress: Progress = silent
) -> TrainingStudy:
    """Return a glimpse of the study in about a minute: one seed, few steps, for demonstrations."""
    return run_study("demo", out, seeds=(seed,), arms=arms, device="cpu", progress=progress)
