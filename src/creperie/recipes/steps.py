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
        {"source": "", "subsets": [], "images": "", "limit": 0, "expect": 0, "rename": {}},
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
    "join": StageKind("several benchmarks as one", "creperie.recipes.making", {"name": ""}, takes=2),
    "check": StageKind("leave out items with errors", "creperie.recipes.checking", {}),
    "validate": StageKind(
        "a language model looks over all items; those it objects to are left out",
        "creperie.recipes.checking",
        {"model": "", "limit": 0},
        required=("model",),
        spread=True,
    ),
    "people": StageKind(
        "people say which items stay",
        "creperie.recipes.checking",
        {"answers": ""},
        files=("answers",),
    ),
    "refine": StageKind(
        "leave items out until blind models have no edge",
        "creperie.recipes.judging",
        {
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
        "the papers' tables with the runs beside them",
        "creperie.recipes.judging",
        {"tables": [], "same": {}},
        gives="tables",
        takes=2,
        required=("tables",),
    ),
}


def work_of(does: str) -> Callable[[StageJob], dict[str, Any]]:
    """The function that does a step's work and says in a few numbers what came of it."""
    function: Callable[[StageJob], dict[str, Any]] = getattr(import_module(STEPS[does].module), f"run_{does}")
    return function
