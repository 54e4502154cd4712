"""The study on the built-in world: the data that all its models share, and how each model is trained."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from creperie.auditing import attackers_origin
from creperie.bench import Benchmark, save
from creperie.core import DataError, Progress, read_json, write_json
from creperie.scoring import ScoreOptions, score
from creperie.training.findings import ARMS, ExamResult
from creperie.training.loop import TrainingJob, train_job
from creperie.training.negatives import FoilRefinement, keep_refined
from creperie.training.presets import TrainingPreset
from creperie.training.scenes import TYPES, BiasedScenes, biased_scenes, scene_pairs, with_drawn
from creperie.training.settings import Tuning
from creperie.training.small import load_small
from creperie.training.student import SmallStudent, new_small
from creperie.world import World, make_world

#: columns of the table: benchmark → column → kinds of foils that are averaged
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "biased": {
        **{kind: TYPES[kind] for kind in ("replace", "swap", "negate")},
        "shuffle": ("shuffle_trigrams",),
    },
    "clean": {
        "replace": ("replace_obj", "replace_att", "replace_rel"),
        **{kind: (f"{kind}_obj", f"{kind}_att") for kind in ("swap", "add")},
        "negation": ("negation",),
    },
}
#: with fewer images than this, starting processes takes longer than they save
FEW = 50_000
#: the file with the refined foils, so that refinement runs once
REFINED = "refined.json"


class Lab:
    """The training data, test benchmark and folder of a study on the built-in world."""

    own_bases = True

    def __init__(
        self, preset: TrainingPreset, out: Path, device: str, refinement: FoilRefinement, progress: Progress
    ) -> None:
        self.preset, self.out, self.device, self.progress = preset, out, device, progress
        self.refinement, self.name, self.scratch = refinement, preset.name, preset.scratch
        size = preset.model.size
        # Draw all images before the first training: processes should be started before a GPU is used.
        workers = os.cpu_count() or 1 if preset.pairs > FEW else 1
        self.pairs = scene_pairs(preset.pairs, 1, size, workers=workers, progress=progress)
        biased = biased_scenes(preset.scenes, 2, size, progress)
        self.biased: BiasedScenes = replace(biased, data=with_drawn(biased.data, size, workers, progress))
        self.exam = save(world_exam(preset), out / "exam", copy_images=True, force=True, progress=progress)
        self.refined: Mapping[str, tuple[str, ...]] = {}

    def base(self, seed: int) -> ExamResult:
        """Make the base model of a seed and return its test result. With the preset `scratch`, the model has random
        weights; otherwise it is trained.
        """
        settings = replace(self.preset.base, seed=seed)
        words = [*self.pairs.captions(), *self.biased.data.captions()]
        words += [text for texts in self.biased.foils.values() for text in texts]
        student = new_small(self.preset.model, words, seed)
        if self.preset.certified:
            settings = replace(settings, objective="negclip")
        tuning = Tuning("frozen" if self.preset.scratch else "full")
        job = TrainingJob(student, self.pairs, settings, tuning, base="scratch")
        return self._train(job, "base", seed)

    def arm(self, arm: str, seed: int, base: str) -> ExamResult:
        """Train the model with the URI `base` and return the test result. `arm` names the types of foils to train on;
        without foils, CLIP's loss is used.
        """
        types, refined = ARMS[arm]
        biased = replace(self.biased, foils=self.refine()) if refined else self.biased
        data = biased.with_types(types)
        own = self.preset.base if self.preset.scratch else self.preset.arm
        settings = replace(own, seed=seed, objective="negclip" if data.with_foils else "clip")
        folder = Path(base.removeprefix("small:"))
        job = TrainingJob(SmallStudent(*load_small(folder)), data, settings, base=base)
        return self._train(job, arm, seed)

    def _train(self, job: TrainingJob, arm: str, seed: int) -> ExamResult:
        done = train_job(job, self.out / f"seed-{seed}" / arm, device=self.device, progress=self.progress)
        kinds = exam_percents(self.exam, done.uri, self.device)
        values = {
            f"{bench} {name}": sum(kinds[k] for k in members) / len(members)
            for bench, names in COLUMNS.items()
            for name, members in names.items()
        }
        foils = job.data.with_foils if job.settings.objective == "negclip" else 0
        return ExamResult(arm, seed, values, kinds, foils, done.document.get("seconds", 0.0), done.uri)

    def refine(self) -> Mapping[str, tuple[str, ...]]:
        """Return the training foils after refinement. For each type, a tuple holds one foil per caption, or "" if the
        foil was removed.
        """
        # If an earlier call with the same data and settings stored the result in the study's folder, it is read from
        # there.
        if self.refined:
            return self.refined
        path = self.out / REFINED
        by = attackers_origin(self.refinement.chosen, self.refinement.models)
        of = {"data": self.biased.with_types(tuple(TYPES)).digest, "by": by, **self.refinement.document}
        try:
            noted = read_json(path)
        except DataError:  # missing or damaged
            noted = {}
        if noted.get("of") != of or "foils" not in noted:
            captions = [e.caption for e in self.biased.data.examples]
            noted = {"of": of, "foils": keep_refined(self.biased.foils, captions, self.refinement, self.progress)}
            self.out.mkdir(parents=True, exist_ok=True)
            write_json(path, noted, indent=None)
        self.refined = {name: tuple(texts) for name, texts in noted["foils"].items()}
        return self.refined

    def notes(self) -> tuple[str, ...]:
        """Return a tuple with a note on how many foils the refinement kept. It is empty if no foils were refined."""
        if not self.refined:
            return ()
        before, left = (
            {name: sum(map(bool, texts)) for name, texts in foils.items()}
            for foils in (self.biased.foils, self.refined)
        )
        counted = ", ".join(f"{name} {left[name]} of {before[name]}" for name in left)
        return (f"foils left after refinement against {' and '.join(self.refinement.chosen)}: {counted}",)


def world_exam(preset: TrainingPreset, extra: Sequence[str] = ()) -> Benchmark:
    """Return a test benchmark made from the split `test` of the built-in world. It contains the kinds of foils in the
    study's table and those named in `extra`.
    """
    listed = [k for names in COLUMNS.values() for members in names.values() for k in members]
    return make_world(World(preset.items, tuple(dict.fromkeys([*listed, *extra])), size=preset.model.size))


def exam_percents(bench: Benchmark, uri: str, device: str) -> dict[str, float]:
    """Return a model's image-to-text accuracy on every subset of a benchmark, in percent."""
    run = score(bench, uri, tasks=["itt"], options=ScoreOptions(device=device))
    return {r["subset"]: 100 * r["accuracy"] for r in run.results if r["subset"] not in ("all", "macro")}
