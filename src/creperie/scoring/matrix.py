"""Score models on benchmarks, with all steps: choose tasks, plan, encode what is missing, write runs.

Everything is a matrix of cells: a row is a model, a column a benchmark. If one cell fails, the others are still
computed. Images and captions that several benchmarks share are encoded once per model. A cell whose run is already in
the output folder is reused, so an interrupted matrix resumes. On an engine (a pool of workers), every worker loads
the model once and scores shards of the items, which are then merged. `score`, the command line, zoo files (lists of
models and benchmarks) and workers all use a matrix, even for a single cell.
"""

from __future__ import annotations

import glob
import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark
from creperie.core import (
    CreperieError,
    Progress,
    UsageError,
    automatic,
    json_text,
    missing_module,
    silent,
    with_options,
)
from creperie.engine import Engine, Held, Shard, Work, from_bytes, parse_shard, to_bytes
from creperie.metrics import Judge
from creperie.scoring.fill import fill
from creperie.scoring.forecast import Forecast, forecast
from creperie.scoring.handle import Handle, name_of, open_model
from creperie.scoring.options import ScoreOptions
from creperie.scoring.origin import completes, is_usable, origin_of, run_name
from creperie.scoring.plan import ScoringPlan, plan
from creperie.scoring.record import run_of
from creperie.scoring.run import RUN_FILE, Run, load_run, task_names
from creperie.scoring.shards import merged_run, share
from creperie.scoring.store import ResultStore
from creperie.scoring.tasks import choose_tasks, columns_needed, needs_images

#: shards per worker: enough that a slow worker does not keep the others waiting
SHARES = 4
T = TypeVar("T")


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
    """Score one model on one benchmark and return the run. With `out`, the run is also saved in that folder.

    `model` is a URI or an object. An object is a model of transformers, open_clip or sentence-transformers, a module or
    object that encodes images or captions, or a function of (images, captions) or of (captions). `creperie.wrap` adds a
    processor or a name to it.

    `tasks` are names of tasks or functions of your own. A function takes (match, scores) and returns True, False or,
    for a tie, None. Without `tasks`, every task that applies is evaluated.

    With `cache=False`, everything is computed and nothing is stored. The scores of a function are stored only if
    `cache` is a name, because a function has no weights that identify it. Notebooks show progress bars, unless
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
    """Score every model on every benchmark and return the runs, model by model; the first error is raised.

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
    progress: Progress = silent,
) -> list[Forecast]:
    """Return, for each model, a forecast of what `score_all` would have to compute and how long that would take."""
    return _matrix(benches, models, options, None, progress).forecasts()[0]


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


@dataclass(frozen=True)
class MatrixRow:
    """A row of a matrix: a model, and the options for scoring it."""

    model: Any  #: a URI, or a model in memory
    options: ScoreOptions = field(default_factory=ScoreOptions)
    fault: str = ""  #: why it cannot be run, if already known

    @property
    def label(self) -> str:
        return name_of(self.model)

    def open(self) -> Handle:
        if self.fault:
            raise UsageError(self.fault)
        how = self.options
        return open_model(self.model, device=how.device, dtype=how.dtype, cache=how.cache)


@dataclass(frozen=True)
class MatrixColumn:
    """A column of a matrix: a benchmark, with tasks of its own if they differ from those in the model's options."""

    bench: Benchmark
    tasks: tuple[str, ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.bench.name


@dataclass(frozen=True)
class MatrixCell:
    """A cell of a matrix: one model on one benchmark. It has a run or, if scoring failed, an error."""

    row: int
    column: int
    model: str
    benchmark: str
    run: Run | None = None
    error: str = ""
    resumed: bool = False  #: the run was in the folder already


@dataclass
class Matrix:
    """All models and benchmarks to score. `row` computes the cells of one model and yields each cell as soon as it is
    known.
    """

    rows: Sequence[MatrixRow]
    columns: Sequence[MatrixColumn]
    out: Path | None = None  #: folder to save runs in; None: they stay in memory
    fail_fast: bool = False
    resume: bool = True  #: reuse runs that are in the folder already
    engine: Engine | None = None
    store: ResultStore = field(default_factory=ResultStore)
    progress: Progress = silent
    _plans: dict[Any, ScoringPlan] = field(default_factory=dict)

    def cells(self) -> Iterator[MatrixCell]:
        """Yield the cells of all models. At the end, trim the store of results to its permitted size."""
        for number in range(len(self.rows)):
            yield from self.row(number)
        self.store.trim()

    def row(self, number: int) -> Iterator[MatrixCell]:
        """Yield the cells of one model. Cells that cannot be computed, or whose run is already in the output folder,
        come first.
        """
        row, start = self.rows[number], time.perf_counter()
        handle = self._try(row.open)
        if isinstance(handle, str):
            yield from (self._cell(number, k, error=handle) for k in range(len(self.columns)))
            return
        pending: dict[int, list[str]] = {}
        with closing(handle):
            for k, column in enumerate(self.columns):
                tasks = self._tasks(column, handle, row.options)
                if isinstance(tasks, str):
                    yield self._cell(number, k, error=tasks)
                elif (run := self._earlier(k, handle, tasks, row.options)) is not None:
                    yield self._cell(number, k, run, resumed=True)
                else:
                    pending[k] = tasks
            yield from self._computed(number, handle, pending, start)

    def forecasts(self) -> tuple[list[Forecast], dict[str, str]]:
        """Return a forecast for each model that can be run and, by name, the reasons why the other models cannot."""
        known: list[Forecast] = []
        faults: dict[str, str] = {}
        for row in self.rows:
            made = self._try(lambda row=row: self._forecast(row))  # type: ignore[misc]
            if isinstance(made, str):
                faults[row.label] = made
            else:
                known.append(made)
        return known, faults

    def _forecast(self, row: MatrixRow) -> Forecast:
        with closing(row.open()) as handle:
            chosen = [self._tasks(column, handle, row.options) for column in self.columns]
            pending = {k: tasks for k, tasks in enumerate(chosen) if not isinstance(tasks, str)}
            if not pending:
                raise UsageError(str(chosen[0]))
            needed = columns_needed(name for tasks in pending.values() for name in tasks)
            return forecast(self._plan(handle, pending, row.options.shard), handle, needed, self.store)

    def _computed(
        self, number: int, handle: Handle, pending: dict[int, list[str]], start: float
    ) -> Iterator[MatrixCell]:
        """Yield a model's pending cells. They are computed in one pass over all their benchmarks or, if that fails, one
        by one.
        """
        if not pending:
            return
        work = self._on_engine if self.engine is not None else self._in_process
        runs = self._try(lambda: work(self.rows[number], handle, pending, start))
        if not isinstance(runs, str):
            for k, run in zip(pending, runs, strict=True):
                yield self._cell(number, k, run if self.out is None else self._saved(k, run, handle))
        elif len(pending) == 1:
            yield self._cell(number, next(iter(pending)), error=runs)
        else:
            for k, tasks in pending.items():
                yield from self._computed(number, handle, {k: tasks}, time.perf_counter())

    def _in_process(self, row: MatrixRow, handle: Handle, pending: dict[int, list[str]], start: float) -> list[Run]:
        """Return the runs of one model, computed in one pass over a plan of all benchmarks."""
        planned = self._plan(handle, pending, row.options.shard)
        planning = time.perf_counter() - start
        needed = columns_needed(name for tasks in pending.values() for name in tasks)
        size = row.options.batch_size
        filled = fill(planned, handle, needed, store=self.store, batch_size=size, progress=self.progress)
        filled.timings.seconds["plan"] = planning
        return [
            run_of(filled, i, tasks, self.columns[k].bench, row.options, start)
            for i, (k, tasks) in enumerate(pending.items())
        ]

    def _on_engine(self, row: MatrixRow, handle: Handle, pending: dict[int, list[str]], _: float) -> list[Run]:
        if not isinstance(row.model, str) or self.engine is None:
            raise UsageError(
                "a model in memory cannot be scored by other workers",
                where=row.label,
                hint="name the model by a URI, so that every worker can load it",
            )
        stages = [
            ScoreStage(self.columns[k].bench, row.model, replace(row.options, tasks=tuple(tasks)))
            for k, tasks in pending.items()
        ]
        return [_merged_on(self.engine, stage, self.progress) for stage in stages]

    def _plan(self, handle: Handle, pending: Mapping[int, list[str]], shard: Shard | None) -> ScoringPlan:
        """Return the plan for the pending benchmarks. Two models share a plan if they score the same benchmarks, and if
        the benchmarks whose images they need are the same.
        """
        with_images = {k: needs_images(tasks, handle) for k, tasks in pending.items()}
        key = (tuple(with_images.items()), shard)
        if key not in self._plans:
            benches = [self.columns[k].bench for k in pending]
            parts = [share(bench, shard) for bench in benches] if shard else benches
            self._plans[key] = plan(parts, store=self.store, images=tuple(with_images.values()), progress=self.progress)
        return self._plans[key]

    def _tasks(self, column: MatrixColumn, handle: Handle, options: ScoreOptions) -> list[str] | str:
        asked = column.tasks or options.tasks
        return self._try(lambda: choose_tasks(column.bench, handle, asked, some=not self.fail_fast))

    def _earlier(self, k: int, handle: Handle, tasks: list[str], options: ScoreOptions) -> Run | None:
        """Return the stored run of the model `handle` on the benchmark of column `k`. The run must have been computed
        from the same inputs (see `RunOrigin`), and no score may be missing; otherwise, return None.

        A run is reused only if the fingerprint identifies its model with certainty.
        """
        if not self.resume or self.out is None or not handle.stored or not any(self.out.glob(f"*/{RUN_FILE}")):
            return None
        bench = self.columns[k].bench
        origin = origin_of(bench, self._image_keys(k, handle, tasks), handle.fingerprint, tasks, options.settings)
        try:
            run = load_run(self.out / run_name(bench.name, handle.uri, origin.digest))
        except CreperieError:
            return None
        return run if is_usable(run, origin) else None

    def _image_keys(self, k: int, handle: Handle, tasks: list[str]) -> np.ndarray:
        """Return the content keys (hashes) of the images in the benchmark of column `k`, item by item; empty if the
        model does not need images.
        """
        planned = self._plan(handle, {k: tasks}, None)
        return planned.image_keys[planned.parts[0].images]

    def _saved(self, k: int, run: Run, handle: Handle) -> Run:
        """Save a run in the folder and return it. Earlier runs with missing scores are deleted if this run replaces
        them (see `completes`).
        """
        assert self.out is not None
        saved = run.save(self.out)
        if "shard" in run.document:
            return saved
        for place in sorted(self.out.glob(f"{glob.escape(run.name.rpartition('.')[0])}.*")):
            if place.name == run.name:
                continue
            try:
                other = load_run(place)
            except CreperieError:
                continue
            if completes(run, self._image_keys(k, handle, list(run.tasks)), other):
                shutil.rmtree(place)
        return saved

    def _try(self, work: Callable[[], T]) -> T | str:
        """Return the result of `work` or, if it fails, the error message; with `fail_fast`, raise the error instead."""
        try:
            return work()
        except Exception as e:  # a matrix survives any error of a model
            if self.fail_fast:
                raise
            if isinstance(e, CreperieError):
                return str(e)
            if isinstance(e, ModuleNotFoundError):
                return str(missing_module(e))
            return f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"

    def _cell(
        self, row: int, column: int, run: Run | None = None, *, error: str = "", resumed: bool = False
    ) -> MatrixCell:
        return MatrixCell(row, column, self.rows[row].label, self.columns[column].label, run, error, resumed)


@dataclass(frozen=True)
class ScoreStage:
    """What the workers of an engine do: they score shards (such as 3/8) of a benchmark with one model. For each
    shard, a worker returns the document and the table of the shard's run.
    """

    bench: Benchmark
    uri: str
    options: ScoreOptions

    def open(self) -> Work:
        model = MatrixRow(self.uri, self.options).open()
        _ = model.model  # loaded once for all shards

        def work(batch: pa.Table) -> pa.Table:
            shards = [parse_shard(text) for text in batch.column("shard").to_pylist()]
            rows = [MatrixRow(model, replace(self.options, shard=shard)) for shard in shards]
            cells = Matrix(rows, [MatrixColumn(self.bench)], fail_fast=True, resume=False).cells()
            runs = [cell.run for cell in cells if cell.run is not None]
            documents = [json_text(run.document, indent=None) for run in runs]
            tables = pa.array([to_bytes(run.table) for run in runs], pa.large_binary())
            return pa.table({"document": documents, "table": tables})

        return work


def _merged_on(engine: Engine, stage: ScoreStage, progress: Progress) -> Run:
    """Score all shards on the engine, each on the next free worker, and return the merged run."""
    count = max(1, min(engine.workers * SHARES, len(stage.bench)))
    shards = [str(Shard(count, k)) for k in range(1, count + 1)]
    runs: dict[int, Run] = {}
    with progress(f"score {stage.uri}", count, "shares") as advance:
        for number, table in engine.run(stage, Held(pa.table({"shard": shards}), 1), range(count)):
            document, scores = (table.column(name)[0].as_py() for name in ("document", "table"))
            runs[number] = Run(json.loads(document), from_bytes(scores))
            advance(1)
    return merged_run([runs[k] for k in range(count)])
