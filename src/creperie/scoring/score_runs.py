"""Score models on benchmarks: one model on one benchmark, or each on each. All ways lead through a `Matrix`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.core import Progress, silent, split_names
from creperie.engine import Engine
from creperie.models import Model
from creperie.scoring.forecast import Forecast
from creperie.scoring.matrix import Matrix, MatrixColumn, MatrixRow
from creperie.scoring.options import ScoreOptions
from creperie.scoring.run import Run
from creperie.scoring.store import ResultStore


def score(
    bench: BenchmarkSpec,
    model: Model | str,
    *,
    tasks: str | Iterable[str] = (),
    device: str = "",
    options: ScoreOptions | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> Run:
    """Score one model, by URI or loaded, on one benchmark. With `out` the run is saved into that folder.

    Without `tasks`, every task that applies to the benchmark and the model is evaluated.
    """
    chosen = options or ScoreOptions()
    if names := tuple(split_names(tasks)):
        chosen = replace(chosen, tasks=names)
    if device:
        chosen = replace(chosen, device=device)
    (run,) = score_all([bench], [model], chosen, out=out, progress=progress)
    return run


def score_all(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Model | str],
    options: ScoreOptions | None = None,
    *,
    out: str | Path | None = None,
    store: ResultStore | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> list[Run]:
    """Score every model on every benchmark, and return the runs model by model; the first failure is raised.

    Images and captions that benchmarks share are encoded once per model. On an engine, workers score shares of the
    items and keep what they compute in their own store.
    """
    matrix = _matrix(benches, models, options, store, progress)
    matrix.out, matrix.engine = (None if out is None else Path(out)), engine
    return [cell.run for cell in matrix.cells() if cell.run is not None]


def forecast_all(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Model | str],
    options: ScoreOptions | None = None,
    *,
    store: ResultStore | None = None,
    progress: Progress = silent,
) -> list[Forecast]:
    """Forecasts of what `score_all` would do, model by model."""
    return _matrix(benches, models, options, store, progress).forecasts()[0]


def _matrix(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Model | str],
    options: ScoreOptions | None,
    store: ResultStore | None,
    progress: Progress,
) -> Matrix:
    rows = [MatrixRow(model, options or ScoreOptions()) for model in models]
    columns = [MatrixColumn(as_benchmark(bench)) for bench in benches]
    return Matrix(rows, columns, fail_fast=True, resume=False, store=store or ResultStore(), progress=progress)
