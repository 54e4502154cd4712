"""Does a gain from hard negatives survive an honest benchmark? One base a seed, one continuation a type of foils."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from creperie.bench.item import Item
from creperie.errors import UsageError, unknown
from creperie.models.place import Place
from creperie.progress import Progress, silent
from creperie.train.architecture import SmallConfig
from creperie.train.exam import Exam, make_exam
from creperie.train.loop import Job, train
from creperie.train.refined import keep_refined
from creperie.train.scenes import TYPES, Spoilt, drawer, scene_pairs, spoilt_scenes
from creperie.train.settings import Settings
from creperie.train.small import load_small, small_encoder
from creperie.train.student import SmallStudent, new_small
from creperie.world.make import stream
from creperie.world.store import image_key

#: columns of the table: which benchmark, which kinds are averaged
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "biased": {
        "replace": TYPES["replace"],
        "swap": TYPES["swap"],
        "negate": TYPES["negate"],
        "shuffle": (
            "shuffle_nouns_adjectives",
            "shuffle_other_words",
            "shuffle_within_trigrams",
            "shuffle_trigrams",
        ),
    },
    "clean": {
        "replace": ("replace_obj", "replace_att", "replace_rel"),
        "swap": ("swap_obj", "swap_att"),
        "add": ("add_obj", "add_att"),
        "negation": ("negation",),
    },
}
#: arms: the types of foils that are trained with, and whether they were refined
ARMS: dict[str, tuple[tuple[str, ...], bool]] = {
    "none": ((), False),
    **{name: ((name,), False) for name in TYPES},
    "all": (tuple(TYPES), False),
    "refined": (tuple(TYPES), True),
    **{f"{name}-refined": ((name,), True) for name in TYPES},
}
#: with fewer pictures than this, starting processes takes longer than they save
FEW = 50_000
GRID = ("none", "replace", "swap", "negate", "all", "refined")


@dataclass(frozen=True)
class Preset:
    """How large a study is: the model, the base training, the continuations, the exam."""

    model: SmallConfig
    base: Settings
    arm: Settings
    pairs: int  #: examples of the base training
    scenes: int  #: examples of the continuations
    items: int  #: of every kind in the exam
    certified: bool = False  #: train the base with the clean kinds' certified foils as well


def _settings(steps: int, batch: int, lr: float, warmup: int) -> Settings:
    return Settings(
        objective="clip", epochs=10_000, steps=steps, batch=batch, lr=lr, warmup=warmup, save_every=10_000, keep=1
    )


PRESETS: dict[str, Preset] = {
    "small": Preset(
        SmallConfig(channels=(32, 64, 128)),
        base=_settings(450, 64, 2e-3, 50),
        arm=_settings(60, 64, 1e-3, 10),
        pairs=12_000,
        scenes=3840,
        items=300,
    ),
    "large": Preset(
        SmallConfig(channels=(128, 256), vision_layers=4, text_width=256, text_layers=4, heads=8, joint=256),
        base=replace(_settings(2000, 512, 1e-3, 200), precision="bfloat16", clip_norm=1.0),
        arm=replace(_settings(150, 512, 2e-4, 15), precision="bfloat16", clip_norm=1.0),
        pairs=32 * 4096,
        scenes=16_384,
        items=400,
    ),
    "demo": Preset(
        SmallConfig(channels=(32, 64, 96), text_width=96, joint=96),
        base=_settings(120, 64, 2e-3, 20),
        arm=_settings(30, 64, 1e-3, 5),
        pairs=4000,
        scenes=1920,
        items=80,
    ),
    "tiny": Preset(
        SmallConfig(channels=(16, 16, 32), text_width=32, joint=32, heads=2),
        base=_settings(4, 16, 1e-3, 1),
        arm=_settings(2, 16, 5e-4, 1),
        pairs=64,
        scenes=64,
        items=4,
    ),
}


@dataclass(frozen=True)
class Sat:
    """One model's exam."""

    arm: str
    seed: int
    values: dict[str, float]  #: "clean swap" → percent
    kinds: dict[str, float]  #: every kind → percent
    foils: int  #: examples with foils in its training
    seconds: float
    model: str  #: URI


@dataclass(frozen=True)
class Study:
    """A grid of trainings and their exams."""

    preset: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    sat: tuple[Sat, ...]
    base: tuple[Sat, ...]
    seconds: float
    columns: tuple[str, ...]  #: "biased swap", "clean swap", …
    notes: tuple[str, ...] = field(default_factory=tuple)

    def values(self, arm: str, column: str) -> list[float]:
        return [s.values[column] for s in self.sat if s.arm == arm]

    def gains(self, arm: str, column: str) -> list[float]:
        """Against the continuation without foils, seed by seed."""
        return [a - b for a, b in zip(self.values(arm, column), self.values("none", column), strict=True)]

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


def world_columns() -> tuple[str, ...]:
    return tuple(f"{bench} {name}" for bench, names in COLUMNS.items() for name in names)


def wanted_arms(arms: Sequence[str]) -> tuple[str, ...]:
    """The arms by name, the one without foils first: all others are compared with it."""
    for arm in arms:
        if arm not in ARMS:
            raise unknown("arm", arm, ARMS)
    return tuple(dict.fromkeys(("none", *arms)))


def study(
    preset: str | Preset,
    out: str | Path,
    *,
    seeds: Sequence[int] = (0, 1),
    arms: Sequence[str] = GRID,
    device: str = "auto",
    progress: Progress = silent,
) -> Study:
    """Train and examine the whole grid. Killed and called again it goes on with what is not done yet."""
    name, chosen = _preset(preset)
    wanted = wanted_arms(arms)
    if not seeds:
        raise UsageError("a study needs one seed at least")
    start = time.monotonic()
    lab = _Lab(chosen, Path(out), device, progress)
    base: list[Sat] = []
    sat: list[Sat] = []
    for seed in seeds:
        first = lab.base(seed)
        base.append(first)
        sat += [lab.arm(arm, seed, first.model) for arm in wanted]
    seconds = time.monotonic() - start
    return Study(name, wanted, tuple(seeds), tuple(sat), tuple(base), seconds, world_columns(), lab.notes())


def study_small(
    out: str | Path, *, seed: int = 0, arms: Sequence[str] = ("negate",), progress: Progress = silent
) -> Study:
    """A glimpse of the study in about a minute: one seed, few steps, for demonstrations."""
    return study("demo", out, seeds=(seed,), arms=arms, device="cpu", progress=progress)


def _preset(preset: str | Preset) -> tuple[str, Preset]:
    if isinstance(preset, Preset):
        return "own", preset
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    return preset, PRESETS[preset]


class _Lab:
    """What all trainings of a study share: the data, the exam, the folder."""

    def __init__(self, preset: Preset, out: Path, device: str, progress: Progress) -> None:
        self.preset, self.out, self.device, self.progress = preset, out, device, progress
        size = preset.model.size
        workers = os.cpu_count() or 1 if preset.pairs > FEW else 1
        self.pairs = scene_pairs(preset.pairs, 1, size, workers=workers, progress=progress)
        self.spoilt: Spoilt = spoilt_scenes(preset.scenes, 2, size, progress)
        self.kept: dict[str, tuple[str, ...]] = {}
        self.exam: Exam | None = None

    def base(self, seed: int) -> Sat:
        """The model that all arms of a seed begin with: CLIP's loss on true captions."""
        settings = replace(self.preset.base, seed=seed)
        words = [*self.pairs.captions(), *self.spoilt.data.captions()]
        words += [text for texts in self.spoilt.foils.values() for text in texts]
        student = new_small(self.preset.model, words, seed)
        if self.preset.certified:
            settings = replace(settings, objective="negclip")
        job = Job(student, self.pairs, settings, base="scratch")
        return self._train(job, "base", seed)

    def arm(self, arm: str, seed: int, base: str) -> Sat:
        """Go on from the base with one type of foils; without any, with CLIP's loss on the same pictures."""
        types, refined = ARMS[arm]
        spoilt = replace(self.spoilt, foils=self._refined()) if refined else self.spoilt
        data = spoilt.with_types(types)
        settings = replace(self.preset.arm, seed=seed, objective="negclip" if data.with_foils else "clip")
        folder = Path(base.removeprefix("small:"))
        job = Job(SmallStudent(*load_small(folder)), data, settings, base=base)
        return self._train(job, arm, seed)

    def _train(self, job: Job, arm: str, seed: int) -> Sat:
        start = time.monotonic()
        done = train(job, self.out / f"seed-{seed}" / arm, device=self.device, progress=self.progress)
        encoder = small_encoder(done.uri, Place(done.document["device"].split(":")[0]))
        if self.exam is None:
            self.exam = world_exam(self.preset, encoder, self.progress)
        results = self.exam.sit(encoder)
        kinds = {name: 100 * row.accuracy for name, row in results.items() if name not in ("all", "macro")}
        values = {
            f"{bench} {name}": sum(kinds[k] for k in members) / len(members)
            for bench, names in COLUMNS.items()
            for name, members in names.items()
        }
        foils = job.data.with_foils if job.settings.objective == "negclip" else 0
        return Sat(arm, seed, values, kinds, foils, time.monotonic() - start, done.uri)

    def _refined(self) -> Mapping[str, tuple[str, ...]]:
        if not self.kept:
            captions = [e.caption for e in self.spoilt.data.examples]
            self.kept = keep_refined(self.spoilt.foils, captions, self.progress)
        return self.kept

    def notes(self) -> tuple[str, ...]:
        """What refinement left of the foils."""
        if not self.kept:
            return ()
        counts = {name: sum(map(bool, texts)) for name, texts in self.kept.items()}
        before = {name: sum(map(bool, texts)) for name, texts in self.spoilt.foils.items()}
        told = ", ".join(f"{name} {counts[name]} of {before[name]}" for name in counts)
        return (f"foils that refinement left: {told}",)


def world_exam(preset: Preset, first: Any, progress: Progress = silent, extra: Sequence[str] = ()) -> Exam:
    """Items of every kind in the table, and of further kinds, from the split `test`."""
    listed = [k for names in COLUMNS.values() for members in names.values() for k in members]
    kinds = dict.fromkeys([*listed, *extra])
    items = []
    for kind in kinds:
        made = stream(kind, "choice", "test", 0)
        for number in range(preset.items):
            m = next(made)
            keys = tuple(image_key(scene) for scene in m.scenes)
            items.append(Item(f"{number:05d}", kind, keys, m.captions, m.match, m.tags))
    return make_exam(items, drawer(preset.model.size), first, progress)


#: Student's t, 97.5 %, for 2 to 9 degrees of freedom
_T = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval over seeds by Student's t; with two seeds, where that says nothing, their range.

    >>> [round(x, 2) for x in interval([50.0, 52.0, 54.0])]
    [52.0, 47.03, 56.97]
    >>> interval([50.0, 52.0])
    (51.0, 50.0, 52.0)
    """
    n = len(values)
    mean = sum(values) / n
    if n < 3:
        return mean, min(values), max(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    half = spread * (_T[n - 3] if n - 3 < len(_T) else 1.96)
    return mean, mean - half, mean + half
