"""The kinds of stages, read from steps.toml: the options of every kind, and the function that runs it.

A function is imported only when a recipe uses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from creperie.core import (
    Json,
    OptionField,
    Progress,
    UsageError,
    options_from,
    options_in,
    packaged_toml,
    read_json,
    silent,
)

if TYPE_CHECKING:
    from creperie.engine import Engine

T = TypeVar("T")
DRAFT = ".draft"  #: how the folder of a stage ends until it is complete
MODEL_OPTIONS = ("models", "model", "lm", "encoder", "plausibility", "grammar", "fluency", "nli", "judge")
#: options that name models, captions or parsers by URI or path, besides `MODEL_OPTIONS` and the files of a step
CONTENT_OPTIONS = ("image_encoder", "captioner", "corpus", "others", "parser", "against")


@dataclass(frozen=True)
class StageJob:
    """The argument of a stage's function. The function must create the folder `out` and write to it. The folder `work`
    is kept if the run is interrupted.

    `inputs` are benchmarks or folders of earlier stages. Without an `engine` the work is done in this process.
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

    def settings(self, kind: type[T]) -> T:
        """Return an instance of an options class, filled from the stage's options."""
        return options_from(kind, {name: self.options[name] for name in options_in(kind)}, where=f"stage {self.name}")

    @property
    def place(self) -> Path:
        """The path that the output gets when the stage is complete; until then, the output is in the folder `out`."""
        return self.out.with_name(self.out.name.removeprefix(".").removesuffix(DRAFT))

    @property
    def input(self) -> str:
        if not self.inputs:
            raise UsageError(f"stage {self.name!r} has no stage to take its input from", hint="write `from: STAGE`")
        return self.inputs[0]


def engine_for(job: StageJob, model: str) -> Engine | None:
    """Return the engine for work with this model. Return None for an API model; its requests are sent by this
    process.
    """
    return None if model.startswith("api:") else job.engine


@dataclass(frozen=True)
class Expected:
    """What a stage is expected to cost and produce. `items` is the likely number of items in its output."""

    items: int | None = None
    captions: int | None = None  #: number of distinct captions, on which makers work; None: as many as items
    models: int = 0  #: number of runs in the output of the stage
    pairs: int = 1  #: pairs of captions per item, about which a validator is asked
    calls: int = 0
    cost: float | None = 0.0  #: dollars; None: the price is not known
    seconds: float | None = 0.0
    note: str = ""


@dataclass(frozen=True)
class StageKind:
    """A kind of stage. `gives` names what the stage's folder contains. `takes` says how many inputs it has: 0 for none,
    1 for one, 2 for any number.
    """

    what: str
    module: str  #: name of a module in creperie.recipes
    own: Mapping[str, Any] = field(default_factory=dict)  #: options that only recipes have, with their defaults
    settings: tuple[str, ...] = ()  #: `room:Class`: dataclasses whose options the stage also takes
    gives: str = "benchmark"
    takes: int = 1
    files: tuple[str, ...] = ()  #: options that name local files, whose content is part of the stage's key
    required: tuple[str, ...] = ()
    spread: bool = False  #: its batches run on an engine, if one is given
    packages: tuple[str, ...] = ()  #: Python packages that it imports
    rate: float = 0.0  #: items per second, besides the time of its models; 0: no time per item
    start: float = 0.5  #: seconds before the first item
    any_input: bool = False  #: it works with any of its inputs; other kinds are skipped if their first input is missing

    @cached_property
    def declared(self) -> dict[str, OptionField]:
        """The declarations of all options by name, except options whose value is a mapping. Options that exist only in
        recipes come first, then those of the classes in `settings`.
        """
        about: Json = {"help": "", "flags": "", "choices": (), "metavar": ""}
        fields = {
            name: OptionField(name, tuple if isinstance(default, list) else type(default), default, False, **about)
            for name, default in self.own.items()
            if not isinstance(default, dict)
        }
        for room, _, name in (place.partition(":") for place in self.settings):
            fields |= options_in(getattr(import_module(f"creperie.{room}"), name))
        return fields

    @cached_property
    def options(self) -> dict[str, Any]:
        """All options with their defaults."""
        defaults = {name: about.default for name, about in self.declared.items()} | dict(self.own)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in defaults.items()}


def _read_steps() -> dict[str, StageKind]:
    steps = {}
    for name, record in packaged_toml("creperie.recipes", "steps.toml").items():
        record["own"] = record.pop("options", {})
        fields: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        steps[name] = StageKind(**fields)
    return steps


STEPS: dict[str, StageKind] = _read_steps()


def models_of(options: Mapping[str, Any]) -> list[str]:
    """Return the URIs of all models in a stage's options. These include models named inside other URIs, and the two
    encoders that a JSON file combines into one model.
    """
    named: list[str] = []
    for name in MODEL_OPTIONS:
        value = options.get(name) or []
        named += [value] if isinstance(value, str) else value
    towers = [read_json(Path(uri)) for uri in named if uri.endswith(".json") and Path(uri).is_file()]
    named += [tower[side] for tower in towers for side in ("image", "text") if side in tower]
    named += [inner for uri in named for inner in re.findall(r"[?&](?:model|lm|cola)=(\w+:[^&]+)", uri)]
    return [uri for uri in named if ":" in uri and not uri.endswith(".json")]


def work_of(does: str) -> Callable[[StageJob], Json]:
    """Return the function that runs stages of the kind `does`. It takes the stage's job and returns a summary."""
    return getattr(import_module(f"creperie.recipes.{STEPS[does].module}"), f"run_{does}")
