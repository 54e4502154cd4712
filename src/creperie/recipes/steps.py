"""What a stage of a recipe can do, as data: the options of every step, and the functions behind it.

Functions are imported when a recipe uses them. Options are declared with a default, whose type is theirs; an option
without one must be given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from creperie.core import Progress, UsageError, silent

if TYPE_CHECKING:
    from creperie.engine import Engine


@dataclass(frozen=True)
class StageJob:
    """One stage at work. `out` is the folder to fill (it does not exist yet), `work` one that outlives a kill.

    `inputs` are benchmark specs or folders of earlier stages. Without an `engine` it is done in this process.
    """

    name: str
    recipe: str
    options: Mapping[str, Any]
    inputs: tuple[str, ...]
    out: Path
    work: Path
    progress: Progress = silent
    engine: Engine | None = None
    sources: tuple[str, ...] = ()  #: the names of the stages that the inputs come from

    def option(self, name: str) -> Any:
        return self.options[name]

    @property
    def input(self) -> str:
        if not self.inputs:
            raise UsageError(f"stage {self.name!r} has no stage to take its input from", hint="write `from: STAGE`")
        return self.inputs[0]


def engine_for(job: StageJob, model: str) -> Engine | None:
    """The engine for work with this model: a server is asked by this process, which keeps enough requests in flight."""
    return None if model.startswith("api:") else job.engine


@dataclass(frozen=True)
class Expected:
    """What is known of a stage before it runs; `items` is what it is likely to hand on."""

    items: int | None = None
    captions: int | None = None  #: distinct captions, what makers ask about; None: as many as items
    models: int = 0  #: runs that the stage hands on
    calls: int = 0
    cost: float | None = 0.0  #: dollars; None: the price is not known
    seconds: float | None = 0.0
    note: str = ""


@dataclass(frozen=True)
class StageKind:
    """A kind of stage. `gives`: what its folder holds; `takes`: how many inputs (0: none, 1, or 2 for several)."""

    what: str
    module: str
    options: Mapping[str, Any]
    gives: str = "benchmark"
    takes: int = 1
    files: tuple[str, ...] = ()  #: options that name local files, whose content counts
    required: tuple[str, ...] = ()
    spread: bool = False  #: its batches run on an engine, where one is asked for
    cut: bool = False  #: it can be cooked in shares, each by a job of its own
    any_input: bool = False  #: it works with whichever inputs there are; others are skipped without their first


_ARMS: dict[str, Any] = {"seed": 0, "lm": "", "encoder": "", "plausibility": "", "grammar": ""}
STEPS: dict[str, StageKind] = {
    "captions": StageKind(
        "captions to make from: a text file with one caption per line, or a benchmark",
        "creperie.recipes.making",
        {"source": "", "subsets": [], "limit": 0, "expect": 0, "images": ""},
        takes=0,
        files=("source",),
        required=("source",),
    ),
    "load": StageKind(
        "a benchmark as it is, or some of its subsets",
        "creperie.recipes.making",
        {"source": "", "subsets": [], "images": "", "limit": 0, "expect": 0, "rename": {}, "optional": False},
        takes=0,
        files=("source",),
        required=("source",),
    ),
    "world": StageKind(
        "items of the built-in world, with pictures",
        "creperie.recipes.making",
        {"items": 50, "kinds": [], "form": "choice", "split": "test", "seed": 0, "size": 64, "rename": {}},
        takes=0,
        required=("kinds",),
    ),
    "make": StageKind(
        "foils and second positives from captions",
        "creperie.recipes.making",
        {
            **{"makers": [], "model": "", "seed": 0, "foils": 1, "as_published": False, "tidy": True, "parser": ""},
            **{"others": "", "grammar": "", "fluency": "", "nli": "", "margin": 0.0, "rename": {}, "name": ""},
            **{"subsets": "maker", "matched": True, "expect": 0},
        },
        files=("others",),
        required=("makers",),
        spread=True,
        cut=True,
    ),
    "join": StageKind(
        "several benchmarks as one", "creperie.recipes.making", {"name": "", "rename": {}}, takes=2, any_input=True
    ),
    "check": StageKind("leave out items with errors", "creperie.recipes.checking", {}),
    "validate": StageKind(
        "a language model looks over all items; those it objects to are left out",
        "creperie.recipes.checking",
        {"model": "", "limit": 0},
        required=("model",),
        spread=True,
    ),
    "people": StageKind(
        "people judge the items, on the annotation pages or in a sheet",
        "creperie.recipes.people",
        {
            **{"answers": "", "task": "foil-check", "subsets": [], "sample": 0, "overlap": 2, "with_image": True},
            **{"seed": 0, "scripted": False, "apply": True},
        },
        takes=2,
        files=("answers",),
    ),
    "refine": StageKind(
        "leave items out until blind models have no edge",
        "creperie.recipes.judging",
        {
            "name": "",
            **{"method": "grid", "attackers": [], "held_out": [], "bins": 0, "repair": False, "threshold": 1.0},
            **{"time_limit": 60.0},
            **_ARMS,
        },
    ),
    "audit": StageKind(
        "attack it with blind models",
        "creperie.recipes.judging",
        {"attackers": [], "threshold": 0.55, **_ARMS},
        gives="audit",
        spread=True,
    ),
    "train": StageKind(
        "train a model on a benchmark with pictures",
        "creperie.recipes.training",
        {
            **{"model": "", "negatives": ["own"], "objective": "negclip", "tuning": "full", "epochs": 30, "steps": 0},
            **{"batch": 256, "lr": 1e-4, "warmup": 1000, "save_every": 0, "seed": 0, "device": "auto"},
        },
        gives="model",
        files=("model",),
        required=("model",),
    ),
    "compare": StageKind(
        "foils of two benchmarks made from the same captions, pair by pair",
        "creperie.recipes.judging",
        {"attackers": [], **_ARMS},
        gives="comparison",
        takes=2,
    ),
    "probe": StageKind(
        "what models' scores depend on: word order, fluency, the image",
        "creperie.recipes.judging",
        {"models": [], "to": ["order"], "images": "", "limit": 0, "device": "auto", "seed": 0},
        gives="probes",
        takes=2,
    ),
    "tiny": StageKind(
        "a tiny generative model with random weights, where no real one is at hand",
        "creperie.recipes.training",
        {"build": "", "queries": [], "seed": 0},
        gives="model",
        takes=0,
        required=("build", "queries"),
    ),
    "trainings": StageKind(
        "the training study: hard negatives of several types, tested on biased and on clean foils",
        "creperie.recipes.training",
        {
            **{"preset": "demo", "model": "", "arms": [], "seeds": 1, "epochs": 30, "steps": 0, "batch": 256},
            **{"lr": 1e-4, "warmup": 1000, "device": "auto", "arm_steps": 0, "pairs": 0, "items": 0},
        },
        gives="trainings",
        takes=2,
    ),
    "tune": StageKind(
        "a model tuned in several ways on a part of the benchmark, tested on the rest",
        "creperie.recipes.training",
        {
            **{"model": "", "ways": ["frozen", "full", "lora"], "share": 0.4, "rank": 2, "epochs": 10, "steps": 0},
            **{"batch": 64, "lr": 1e-4, "warmup": 50, "seed": 0, "device": "auto"},
        },
        gives="tunings",
        takes=2,
    ),
    "score": StageKind(
        "models on the benchmark, and those that earlier stages trained: runs",
        "creperie.recipes.judging",
        {"models": [], "tasks": [], "images": "", "device": "auto", "resamples": 10_000, "seed": 0},
        gives="runs",
        takes=2,
        spread=True,
        cut=True,
    ),
    "stats": StageKind(
        "mixed models over the runs",
        "creperie.recipes.judging",
        {"presets": [], "random": [], "family": "", "grammar": "", "per_model": False},
        gives="statistics",
        takes=2,
        required=("presets",),
    ),
    "table": StageKind(
        "the papers' tables with the runs and findings beside the printed rows",
        "creperie.recipes.tabling",
        {"tables": [], "same": {}},
        gives="tables",
        takes=2,
        any_input=True,
        required=("tables",),
    ),
    "figure": StageKind(
        "figures of the papers, drawn from what earlier stages made",
        "creperie.recipes.tabling",
        {
            **{"figures": {}, "attackers": [], "tasks": [], "against": "", "parser": "", "syntax": False},
            **_ARMS,
        },
        gives="figures",
        takes=2,
        any_input=True,
        files=("against",),
        required=("figures",),
    ),
}


def work_of(does: str) -> Callable[[StageJob], dict[str, Any]]:
    """The function that does a step's work and says in a few numbers what came of it."""
    function: Callable[[StageJob], dict[str, Any]] = getattr(import_module(STEPS[does].module), f"run_{does}")
    return function
