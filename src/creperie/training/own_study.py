"""The study on data of one's own: every arm trains one model, with foils that makers write for the captions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from creperie.bench import Benchmark
from creperie.core import Progress, UsageError, silent
from creperie.engine import Engine
from creperie.training.examples import TrainSet
from creperie.training.findings import ARMS, GRID, ExamResult, TrainingStudy, wanted_arms
from creperie.training.lab import exam_percents
from creperie.training.loop import TrainingJob, train_job
from creperie.training.negatives import FoilRefinement, Negatives, training_data
from creperie.training.openclip import is_untrained
from creperie.training.settings import TrainingSettings, Tuning
from creperie.training.student import open_student
from creperie.training.study import Tell


@dataclass(frozen=True)
class StudyQuestion:
    """What is trained on what, and tested on what: fine-tuned, or from scratch where the model has fresh weights."""

    model: str
    data: Benchmark
    biased: Benchmark
    clean: Benchmark
    settings: TrainingSettings
    engine: Engine | None = None  #: where makers write the foils
    refinement: FoilRefinement = field(default_factory=FoilRefinement)  #: of the arms that are refined


def study_of(
    question: StudyQuestion,
    out: str | Path,
    *,
    seeds: Sequence[int] = (0, 1),
    arms: Sequence[str] = GRID,
    device: str = "auto",
    progress: Progress = silent,
    tell: Tell = lambda so_far: None,
) -> TrainingStudy:
    """Train with every type of foils and without, and test on both benchmarks. Called again, it resumes."""
    wanted = wanted_arms(arms)
    if not seeds:
        raise UsageError("a study needs at least one seed")
    start = time.monotonic()
    room = _Exams(question, device, progress)
    scratch = is_untrained(question.model) or question.model.endswith(".json")
    bases = {seed: _base(question, room, wanted, Path(out), seed) for seed in seeds}
    before = [replace(room.sit("base", seed, bases[seed]), foils=0) for seed in seeds[:1]]
    sat: list[ExamResult] = []

    def so_far() -> TrainingStudy:
        seconds = time.monotonic() - start
        columns = tuple(before[0].values)
        return TrainingStudy("own", wanted, tuple(seeds), tuple(sat), tuple(before), seconds, columns, scratch=scratch)

    for seed in seeds:
        for arm in wanted:
            data = room.data(arm)
            objective = "negclip" if data.with_foils else "clip"
            settings = replace(question.settings, seed=seed, objective=objective)
            job = TrainingJob(open_student(bases[seed], seed), data, settings, base=question.model, truncate=True)
            done = train_job(job, Path(out) / f"seed-{seed}" / arm, device=device, progress=progress)
            sat.append(replace(room.sit(arm, seed, done.uri), foils=data.with_foils))
            tell(so_far())
    return so_far()


def _base(question: StudyQuestion, room: _Exams, arms: Sequence[str], out: Path, seed: int) -> str:
    """Return the URI of the model that the arms of a seed begin with; settings in a JSON file become fresh weights,
    with the words of all arms."""
    if not question.model.endswith(".json"):
        return question.model
    captions = [text for arm in arms for text in room.data(arm).captions()]
    student = open_student(question.model, seed, captions)
    settings = replace(question.settings, seed=seed, objective="clip")
    job = TrainingJob(student, room.data("none"), settings, Tuning("frozen"), base=question.model, truncate=True)
    return train_job(job, out / f"seed-{seed}" / "base", device=room.device, progress=room.progress).uri


class _Exams:
    """The exams, and the training data of the arms, made when it is first asked for."""

    def __init__(self, question: StudyQuestion, device: str, progress: Progress) -> None:
        self.question, self.device, self.progress = question, device, progress
        self._data: dict[str, TrainSet] = {}

    def data(self, arm: str) -> TrainSet:
        if arm not in self._data:
            types, refined = ARMS[arm]
            names = tuple(f"rules:{name}" for name in types)
            self._data[arm] = training_data(
                self.question.data,
                Negatives(names, self.question.refinement if refined else None),
                self.progress,
                self.question.engine,
            )
        return self._data[arm]

    def sit(self, arm: str, seed: int, uri: str) -> ExamResult:
        start = time.monotonic()
        values: dict[str, float] = {}
        for name, bench in (("biased", self.question.biased), ("clean", self.question.clean)):
            percents = exam_percents(bench, uri, self.device)
            values |= {f"{name} {subset}": percent for subset, percent in percents.items()}
        return ExamResult(arm, seed, values, dict(values), 0, time.monotonic() - start, uri)
