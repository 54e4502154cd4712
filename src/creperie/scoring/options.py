"""The options of scoring, shared by the command line, Python, zoo files (lists of models and benchmarks), and
workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from creperie.core import option
from creperie.engine import Shard
from creperie.metrics import MetricSettings
from creperie.models import PrecisionOptions


@dataclass(frozen=True)
class ScoreOptions(PrecisionOptions):
    """Options of scoring. If no tasks are named, all tasks that suit the benchmark and the model are scored."""

    dtype: str = option("auto", "float32, bfloat16 or float16; auto: float32, and a model in memory keeps its own.")
    tasks: tuple[str, ...] = option((), "Tasks, by comma; by default those that apply.", flags="--task -t")
    batch_size: int | None = option(None, "Items per batch, otherwise chosen by the available memory.", minimum=1)
    settings: MetricSettings = field(default_factory=MetricSettings)
    command: str = ""  #: the command that made the run, for its document
    cache: bool | str = True  #: False: nothing is stored; a name: store a function's scores under it
    shard: Shard | None = None  #: score only this shard of the items
