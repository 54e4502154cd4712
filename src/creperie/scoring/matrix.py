"""Many models on many benchmarks: a matrix of cells that keeps going when one of them fails.

A row is a model, a column a benchmark. What a model has to encode for several benchmarks is encoded once. A cell whose
run is already in the folder is taken from there, so an interrupted matrix resumes. On an engine, every worker holds the
model once and scores shares of the items; the shares are merged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from creperie.bench import Benchmark
from creperie.core import CreperieError, Progress, UsageError, json_text, missing_module, silent
from creperie.engine import Engine, Held, Shard, Work, from_bytes, parse_shard, to_bytes
from creperie.scoring.forecast import Forecast, forecast
from creperie.scoring.handle import Handle, open_model
from creperie.scoring.run import Run, load_run
from creperie.scoring.score_runs import Planner, ScoreOptions, choose_tasks, run_name, run_order, score_all
from creperie.scoring.shards import merged_run
from creperie.scoring.store import ResultStore

#: Shares for every worker: enough that a slow one does not keep the others waiting.
SHARES = 4


@dataclass(frozen=True)
class ScoreStage:
    """Shards of one benchmark by one model: `3/8` in, a run's document and table out."""

    bench: Benchmark
    uri: str
    options: ScoreOptions
    name: str = "score"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"benchmark": self.bench.hash, "model": self.uri, "tasks": self.options.tasks}

    def open(self) -> Work:
        from creperie.models import load_model

        model = load_model(self.uri, device=self.options.device, dtype=self.options.dtype)

        def work(batch: pa.Table) -> pa.Table:
            documents, tables = [], []
            for text in batch.column("shard").to_pylist():
                options = replace(self.options, shard=parse_shard(text))
                (run,) = score_all([self.bench], [model], options)
                documents.append(json_text(run.document, indent=None))
                tables.append(to_bytes(run.table))
            return pa.table({"document": documents, "table": pa.array(tables, pa.large_binary())})

        return work

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self.open()(batch)


def score_on(
    engine: Engine,
    benches: Sequence[Benchmark],
    models: Sequence[str],
    options: ScoreOptions,
    *,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> list[Run]:
    """Score every model on every benchmark on an engine. What a worker computes is kept in its store."""
    runs = []
    for uri in models:
        for bench in benches:
            run = _score_one(engine, ScoreStage(bench, uri, options), engine.workers * SHARES, progress)
            runs.append(run.save(out) if out is not None else run)
    return runs


def _score_one(engine: Engine, stage: ScoreStage, shares: int, progress: Progress) -> Run:
    count = max(1, min(shares, len(stage.bench)))
    shards = [str(Shard(count, k)) for k in range(1, count + 1)]
    found: dict[int, Run] = {}
    with progress(f"score {stage.uri}", count, "shares") as advance:
        for number, table in engine.run(stage, Held(pa.table({"shard": shards}), 1), range(count)):
            document, scores = (table.column(name)[0].as_py() for name in ("document", "table"))
            found[number] = Run(json.loads(document), from_bytes(scores))
            advance(1)
    return merged_run([found[k] for k in range(count)])


T = TypeVar("T")


@dataclass(frozen=True)
class MatrixRow:
    """A model and how it is run."""

    model: str
    options: ScoreOptions = field(default_factory=ScoreOptions)
    fault: str = ""  #: why it cannot be run, where that is already known


@dataclass(frozen=True)
class MatrixColumn:
    """A benchmark, and its tasks where they are not those of the row."""

    bench: Benchmark
    tasks: tuple[str, ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.bench.name


@dataclass(frozen=True)
class MatrixCell:
    """One model on one benchmark: its run, or why there is none."""

    row: int
    column: int
    model: str
    benchmark: str
    run: Run | None = None
    error: str = ""
    resumed: bool = False  #: the run was there already


@dataclass
class Matrix:
    """Models × benchmarks. `row` computes the cells of one model and yields each when it is known."""

    rows: Sequence[MatrixRow]
    columns: Sequence[MatrixColumn]
    out: Path
    fail_fast: bool = False
    resume: bool = True  #: take runs that are in the folder already
    engine: Engine | None = None
    store: ResultStore = field(default_factory=ResultStore)
    progress: Progress = silent
    _plans: dict[str, Planner] = field(default_factory=dict)

    def row(self, number: int) -> Iterator[MatrixCell]:
        """The cells of one model, in the order of the columns within each way of ending."""
        row = self.rows[number]
        everywhere = range(len(self.columns))
        start = time.perf_counter()
        if row.fault:
            if self.fail_fast:
                raise UsageError(row.fault)
            yield from (self._failed(number, k, row.fault) for k in everywhere)
            return
        handle = self._try(lambda: open_model(row.model, device=row.options.device, dtype=row.options.dtype))
        if isinstance(handle, str):
            yield from (self._failed(number, k, handle) for k in everywhere)
            return
        waiting: dict[int, list[str]] = {}
        for k, column in enumerate(self.columns):
            tasks = self._tasks(column, handle, row.options)
            if isinstance(tasks, str):
                yield self._failed(number, k, tasks)
            elif self.resume and (run := self._earlier(column.bench, handle, tasks, row.options)) is not None:
                yield self._done(number, k, run, resumed=True)
            else:
                waiting[k] = tasks
        yield from self._computed(number, handle, waiting, start)

    def forecasts(self) -> tuple[list[Forecast], dict[str, str]]:
        """What every model has to do; and the models that cannot be run, with the reason."""
        found: list[Forecast] = []
        faults = {row.model: row.fault for row in self.rows if row.fault}
        for row in self.rows:
            if row.fault:
                continue
            made = self._try(lambda row=row: self._forecast(row))  # type: ignore[misc]
            if isinstance(made, str):
                faults[row.model] = made
            else:
                found.append(made)
        return found, faults

    def _forecast(self, row: MatrixRow) -> Forecast:
        start = time.perf_counter()
        handle = open_model(row.model, device=row.options.device, dtype=row.options.dtype)
        chosen = [self._tasks(column, handle, row.options) for column in self.columns]
        waiting = {k: tasks for k, tasks in enumerate(chosen) if not isinstance(tasks, str)}
        if not waiting:
            raise UsageError(str(chosen[0]))
        order = self._planner(row.options).order_of(handle, waiting, start)
        return forecast(order.plan, order.handle, order.inputs, self.store)

    def _computed(
        self, number: int, handle: Handle, waiting: dict[int, list[str]], start: float
    ) -> Iterator[MatrixCell]:
        """All benchmarks of a model in one pass; each by itself where the pass fails."""
        if not waiting:
            return
        found = self._try(lambda: self._scored(number, handle, waiting, start))
        if not isinstance(found, str):
            yield from (self._done(number, k, run) for k, run in zip(waiting, found, strict=True))
        elif len(waiting) == 1:
            yield self._failed(number, next(iter(waiting)), found)
        else:
            for k, tasks in waiting.items():
                yield from self._computed(number, handle, {k: tasks}, time.perf_counter())

    def _scored(self, number: int, handle: Handle, waiting: dict[int, list[str]], start: float) -> list[Run]:
        row = self.rows[number]
        if self.engine is not None:
            runs = []
            for k, tasks in waiting.items():
                options = replace(row.options, tasks=tuple(tasks))
                bench = self.columns[k].bench
                runs += score_on(self.engine, [bench], [row.model], options, out=self.out, progress=self.progress)
            return runs
        planner = self._planner(row.options)
        return run_order(planner, planner.order_of(handle, waiting, start), self.out)

    def _planner(self, options: ScoreOptions) -> Planner:
        """One planner for all rows with the same options; plans themselves do not depend on options."""
        key = repr(options)
        if key not in self._plans:
            shared = next((p.plans for p in self._plans.values()), {})
            self._plans[key] = Planner([c.bench for c in self.columns], options, self.store, self.progress, shared)
        return self._plans[key]

    def _tasks(self, column: MatrixColumn, handle: Handle, options: ScoreOptions) -> list[str] | str:
        return self._try(lambda: choose_tasks(column.bench, handle, column.tasks or options.tasks))

    def _earlier(self, bench: Benchmark, handle: Handle, tasks: list[str], options: ScoreOptions) -> Run | None:
        """The run of this cell, if it is in the folder under the same settings."""
        try:
            run = load_run(self.out / run_name(bench, handle, tasks))
        except CreperieError:
            return None
        return run if run.settings == options.settings else None

    def _try(self, work: Callable[[], T]) -> T | str:
        """What the work returns, or why it failed."""
        try:
            return work()
        except Exception as e:  # a matrix outlives a model that fails in a way nobody thought of
            if self.fail_fast:
                raise
            if isinstance(e, CreperieError):
                return str(e)
            if isinstance(e, ModuleNotFoundError):
                return str(missing_module(e))
            return f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"

    def _done(self, row: int, column: int, run: Run, *, resumed: bool = False) -> MatrixCell:
        return MatrixCell(row, column, self.rows[row].model, self.columns[column].label, run, resumed=resumed)

    def _failed(self, row: int, column: int, error: str) -> MatrixCell:
        return MatrixCell(row, column, self.rows[row].model, self.columns[column].label, None, error)
