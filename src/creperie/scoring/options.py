"""How to score: the settings that the command line, Python, zoo files and workers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from creperie.core import option
from creperie.engine import Shard
from creperie.metrics import MetricSettings
from creperie.models import PrecisionOptions


@dataclass(frozen=True)
class ScoreOptions(PrecisionOptions):
    """How to score. Without tasks, those that apply to the benchmark and the model."""

    dtype: str = option("auto", "float32, bfloat16 or float16; auto: float32, and a model in memory keeps its own.")
    tasks: tuple[str, ...] = option((), "Tasks, by comma; by default those that apply.", flags="--task -t")
    batch_size: int | None = option(None, "Items per batch, otherwise chosen by the available memory.", minimum=1)
    settings: MetricSettings = field(default_factory=MetricSettings)
    command: str = ""  #: how the run came to be, for its document
    cache: bool | str = True  #: False: nothing is stored; a name: store a function's scores under it
    shard: Shard | None = None  #: score this share of the items only
