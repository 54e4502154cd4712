"""The study on the user's data. The same model is trained several times on the same images and captions, each time with
foils of another type (an arm of the study). creperie's makers write the foils.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from creperie.bench import Benchmark
from creperie.core import Progress, silent
from creperie.engine import Engine
from creperie.training.architecture import Student
from creperie.training.examples import TrainSet
from creperie.training.findings import ARMS, GRID, ExamResult, TrainingStudy, arms_to_run
from creperie.training.lab import exam_percents
from creperie.training.loop import TrainingJob, train_job
from creperie.training.negatives import FoilRefinement, Negatives, training_data
from creperie.training.openclip import is_untrained
from creperie.training.settings import TrainingSettings, Tuning
from creperie.training.student import open_student
from creperie.training.study import StudyLab, Tell, run_grid


@dataclass(frozen=True)
class StudyQuestion:
    """The model, the training data and the two test benchmarks of a study.

    The model is fine-tuned, or trained from scratch if it has random weights.
    """

    model: str
    data: Benchmark
    biased: Benchmark
    clean: Benchmark
    settings: TrainingSettings
    engine: Engine | None = None  #: where makers run
    refinement: FoilRefinement = field(default_factory=FoilRefinement)  #: for the refined arms


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
    """For each seed, train the question's model once without foils and once with each type of foils. Test every trained
    model on both benchmarks and return the results. After each test, `tell` is called with the results so far.

    After an interruption, the same call resumes the study.
    """
    all_arms = arms_to_run(arms)
    return run_grid(_OwnLab(question, Path(out), all_arms, device, progress), all_arms, seeds, tell)


class _OwnLab(StudyLab):
    """The training and testing for a study on the user's data. Training data for a type of foils are made on first
    use.
    """

    name = "own"

    def __init__(
        self, question: StudyQuestion, out: Path, arms: Sequence[str], device: str, progress: Progress
    ) -> None:
        self.question, self.out, self.arms, self.device, self.progress = question, out, arms, device, progress
        self.own_bases = question.model.endswith(".json")
        self.scratch = self.own_bases or is_untrained(question.model)
        self._data: dict[str, TrainSet] = {}

    def base(self, seed: int) -> ExamResult:
        """Return the test result of the base model: the model from which all training runs with `seed` start.

        If the model is given as a JSON file of settings, it is created here, with random weights. Its vocabulary is the
        words of all training data.
        """
        trained = self.question.model, 0.0
        if self.own_bases:
            captions = [text for arm in self.arms for text in self.data(arm).captions()]
            student = open_student(trained[0], seed, captions)
            trained = self._train(student, self.data("none"), "base", seed, Tuning("frozen"))
        return self._exam("base", seed, trained, 0)

    def arm(self, arm: str, seed: int, base: str) -> ExamResult:
        data = self.data(arm)
        trained = self._train(open_student(base, seed), data, arm, seed, Tuning())
        return self._exam(arm, seed, trained, data.with_foils)

    def _train(self, student: Student, data: TrainSet, arm: str, seed: int, tuning: Tuning) -> tuple[str, float]:
        """Train a model. Return its URI and the training time in seconds."""
        objective = "negclip" if data.with_foils else "clip"
        settings = replace(self.question.settings, seed=seed, objective=objective)
        job = TrainingJob(student, data, settings, tuning, base=self.question.model, truncate=True)
        done = train_job(job, self.out / f"seed-{seed}" / arm, device=self.device, progress=self.progress)
        return done.uri, done.document.get("seconds", 0.0)

    def data(self, arm: str) -> TrainSet:
        if arm not in self._data:
            types, refined = ARMS[arm]
            names = tuple(f"rules:{name}" for name in types)
            negatives = Negatives(names, self.question.refinement if refined else None)
            self._data[arm] = training_data(self.question.data, negatives, self.progress, self.question.engine)
        return self._data[arm]

    def _exam(self, arm: str, seed: int, trained: tuple[str, float], foils: int) -> ExamResult:
        uri, seconds = trained
        values = {
            f"{name} {subset}": percent
            for name, bench in (("biased", self.question.biased), ("clean", self.question.clean))
            for subset, percent in exam_percents(bench, uri, self.device).items()
        }
        return ExamResult(arm, seed, values, dict(values), foils, seconds, uri)
