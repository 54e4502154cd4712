"""How to score: the settings that the command line, Python, zoo files and workers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from creperie.engine import Shard
from creperie.metrics import MetricSettings


@dataclass(frozen=True)
class ScoreOptions:
    """How to score. Without tasks, those that apply to the benchmark and the model."""

    tasks: tuple[str, ...] = ()
    settings: MetricSettings = field(default_factory=MetricSettings)
    device: str = "auto"
    dtype: str = "auto"  #: float32 for a URI, a model in memory keeps its own
    batch_size: int | None = None
    command: str = ""  #: how the run came to be, for its document
    cache: bool | str = True  #: False: nothing is stored; a name: store a function's scores under it
    shard: Shard | None = None  #: score this share of the items only
