"""The options that say where batches run, for every command that runs some."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import click


def engine_options(command: Callable[..., int]) -> Callable[..., int]:
    """--engine, --address, --workers and --gpus, given to the command as one value, `engine`; None: this process."""

    @click.option("--engine", default="local", show_default=True, metavar="local|ray", help="Where the work runs.")
    @click.option("--address", default="", metavar="HOST:PORT", help="A Ray cluster (default: one started here).")
    @click.option("--workers", type=click.IntRange(1), metavar="N", help="Workers (Ray: all cores; else one).")
    @click.option("--gpus", type=click.FloatRange(min=0), default=0, help="GPUs for every worker of Ray.")
    @functools.wraps(command)
    def with_engine(engine: str, address: str, workers: int | None, gpus: float, **options: Any) -> int:
        from creperie.engine import choose_engine

        count = workers or (os.cpu_count() or 1 if engine == "ray" else 1)
        chosen = choose_engine(engine, address=address, workers=count, gpus=gpus)
        return command(engine=None if engine == "local" and count == 1 else chosen, **options)

    return with_engine
