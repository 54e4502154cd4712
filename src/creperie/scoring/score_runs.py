"""Score models on benchmarks: one model on one benchmark, or all on all. Both use a `Matrix`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.core import Progress, automatic, silent, with_options
from creperie.engine import Engine
from creperie.metrics import Judge
from creperie.scoring.forecast import Forecast
from creperie.scoring.matrix import Matrix, MatrixColumn, MatrixRow
from creperie.scoring.options import ScoreOptions
from creperie.scoring.run import Run, task_names
from creperie.scoring.store import ResultStore


@with_options(options=ScoreOptions)
def score(
    bench: BenchmarkSpec,
    model: Any,
    *,
    options: ScoreOptions,
    tasks: str | Judge | Sequence[str | Judge] = (),
    cache: bool | str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = automatic,
) -> Run:
    """Score one model on one benchmark and return the run. With `out` it is saved in that folder.

    `model` is a URI or an object: a model of transformers, open_clip or sentence-transformers, a module or object that
    encodes images or captions, a function of (images, captions) or of (captions); `creperie.wrap` adds a processor or a
    name. `tasks` are names of tasks or functions of your own (match, scores) that return True, False or, for a tie,
    None; without them, every task that applies is evaluated. `cache=False` computes everything and stores nothing; a
    name stores the scores of a function, which has no weights to identify it by. Notebooks show progress bars, unless
    `progress=None`.
    """
    if cache is not None:
        options = replace(options, cache=cache)
    if tasks:
        options = replace(options, tasks=task_names(tasks))
    (run,) = score_all([bench], [model], options, out=out, progress=progress or silent)
    if run.gaps:
        warnings.warn(run.gaps, stacklevel=3)
    return run


def score_all(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Any],
    options: ScoreOptions | None = None,
    *,
    out: str | Path | None = None,
    store: ResultStore | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> list[Run]:
    """Score every model on every benchmark and return the runs, model by model; the first failure is raised.

    Images and captions that benchmarks share are encoded once per model. On an engine, workers score shards of the
    items and cache what they compute in their own store.
    """
    matrix = _matrix(benches, models, options, store, progress)
    matrix.out, matrix.engine = (None if out is None else Path(out)), engine
    return [cell.run for cell in matrix.cells() if cell.run is not None]


def forecast_all(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Any],
    options: ScoreOptions | None = None,
    *,
    store: ResultStore | None = None,
    progress: Progress = silent,
) -> list[Forecast]:
    """Return the forecasts of what `score_all` would do, one per model."""
    return _matrix(benches, models, options, store, progress).forecasts()[0]


def _matrix(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Any],
    options: ScoreOptions | None,
    store: ResultStore | None,
    progress: Progress,
) -> Matrix:
    rows = [MatrixRow(model, options or ScoreOptions()) for model in models]
    columns = [MatrixColumn(as_benchmark(bench)) for bench in benches]
    return Matrix(rows, columns, fail_fast=True, resume=False, store=store or ResultStore(), progress=progress)
