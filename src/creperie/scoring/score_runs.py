"""Score models on benchmarks: plan once over all of them, compute what is missing, keep raw scores, say how sure."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from creperie.bench import Benchmark, BenchmarkSpec, as_benchmark
from creperie.core import Progress, UsageError, __version__, silent, split_names
from creperie.engine import Shard
from creperie.metrics import Input, Layout, MetricSettings, applies, task
from creperie.models import Model, in_words
from creperie.scoring.fill import fill
from creperie.scoring.filler import FilledScores
from creperie.scoring.forecast import Forecast, forecast
from creperie.scoring.handle import Handle, open_model
from creperie.scoring.header import benchmark_header, run_header
from creperie.scoring.plan import BenchmarkPart, ScoringPlan, brings_images, layout_of_bench, plan
from creperie.scoring.run import Run, score_table
from creperie.scoring.shards import marked, share
from creperie.scoring.store import ResultStore

#: what is computed when no task is named, as far as it applies
USUAL = ("itt", "t2i", "group", "tot", "blind")
LIBRARIES = ("numpy", "pyarrow", "pillow", "torch", "transformers", "sentence-transformers", "open_clip_torch")


@dataclass(frozen=True)
class ScoreOptions:
    """How to score. Without tasks, those that apply to the benchmark and the model."""

    tasks: tuple[str, ...] = ()
    settings: MetricSettings = field(default_factory=MetricSettings)
    device: str = "auto"
    dtype: str = "float32"
    batch_size: int | None = None
    command: str = ""  #: how the run came to be, for its document
    shard: Shard | None = None  #: score this share of the items only


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
    progress: Progress = silent,
) -> list[Run]:
    """Score every model on every benchmark; images and captions that benchmarks share are encoded once per model."""
    store = store or ResultStore()
    planner = Planner([as_benchmark(b) for b in benches], options or ScoreOptions(), store, progress)
    runs = [run for model in models for run in run_order(planner, planner.order(model), out)]
    store.trim()
    return runs


def run_order(planner: Planner, order: ModelOrder, out: str | Path | None = None) -> list[Run]:
    """Compute what an order lacks, and its runs; with `out` they are saved there."""
    options, progress = planner.options, planner.progress
    start = time.perf_counter() - order.seconds
    filled = fill(
        order.plan, order.handle, order.inputs, store=planner.store, batch_size=options.batch_size, progress=progress
    )
    filled.timings.seconds["plan"] = order.seconds
    job = _ModelPass(order.handle, options, filled, start)
    runs = []
    for i, part in enumerate(order.plan.parts):
        run = job.run(i, part, order.tasks[i])
        if options.shard:
            run = job.as_shard(run, options.shard, order.benches[i])
        runs.append(run.save(out) if out is not None else run)
    return runs


def forecast_all(
    benches: Sequence[BenchmarkSpec],
    models: Sequence[Model | str],
    options: ScoreOptions | None = None,
    *,
    store: ResultStore | None = None,
    progress: Progress = silent,
) -> list[Forecast]:
    """What `score_all` would do, model by model."""
    store = store or ResultStore()
    planner = Planner([as_benchmark(b) for b in benches], options or ScoreOptions(), store, progress)
    orders = [planner.order(model) for model in models]
    return [forecast(o.plan, o.handle, o.inputs, store) for o in orders]


@dataclass(frozen=True)
class ModelOrder:
    """What one model has to do."""

    handle: Handle
    benches: list[Benchmark]
    tasks: list[list[str]]
    plan: ScoringPlan
    seconds: float  #: what planning took

    @property
    def inputs(self) -> set[Input]:
        return {task(name).needs for names in self.tasks for name in names}


@dataclass
class Planner:
    """Plans once for all models that need the same."""

    benches: list[Benchmark]
    options: ScoreOptions
    store: ResultStore
    progress: Progress
    plans: dict[tuple[tuple[int, bool], ...], ScoringPlan] = field(default_factory=dict)

    def order(self, model: Model | str) -> ModelOrder:
        start = time.perf_counter()
        handle = open_model(model, device=self.options.device, dtype=self.options.dtype)
        chosen = {i: choose_tasks(b, handle, self.options.tasks) for i, b in enumerate(self.benches)}
        return self.order_of(handle, chosen, start)

    def order_of(self, handle: Handle, chosen: Mapping[int, list[str]], start: float) -> ModelOrder:
        """An order for some of the benchmarks, by their numbers, with the tasks of each."""
        looks = {i: any(_looks(task(n).needs, handle) for n in names) for i, names in chosen.items()}
        key = tuple(looks.items())
        benches = [self.benches[i] for i in chosen]
        if key not in self.plans:
            parts = [share(b, self.options.shard) for b in benches] if self.options.shard else benches
            self.plans[key] = plan(parts, store=self.store, images=tuple(looks.values()), progress=self.progress)
        seconds = time.perf_counter() - start
        return ModelOrder(handle, benches, list(chosen.values()), self.plans[key], seconds)


def _looks(needs: Input, handle: Handle) -> bool:
    """Must the model see the image for these scores?"""
    return needs == "image_text" or (needs == "text_text" and not handle.compares_captions)


# -- what to compute -------------------------------------------------------------------------------------------------


def choose_tasks(bench: Benchmark, handle: Handle, asked: Sequence[str]) -> list[str]:
    """The tasks to compute: those asked for, or the usual ones that the items and the model allow."""
    layout = layout_of_bench(bench)
    if not len(layout):
        raise UsageError("the benchmark has no items", where=bench.name)
    if asked:
        names = list(dict.fromkeys(task(name).name for name in asked))
        for name in names:
            _check_task(name, bench, layout, handle)
        return names
    found = [n for n in USUAL if task(n).needs in _at_hand(bench, handle) and applies(n, layout).any()]
    if not found:
        able = in_words(handle.abilities)
        without = "" if brings_images(bench) else ", and it has no images here"
        what = f"there is nothing to score: the model can {able}{without}"
        raise UsageError(what, where=bench.name, hint="give the images with `images=`, or another model")
    return found


def _at_hand(bench: Benchmark, handle: Handle) -> set[Input]:
    """The score columns that the model can fill for this benchmark."""
    inputs = set(handle.inputs)
    if not brings_images(bench):
        inputs.discard("image_text")
        if not handle.compares_captions:
            inputs.discard("text_text")
    return inputs


def _check_task(name: str, bench: Benchmark, layout: Layout, handle: Handle) -> None:
    needs = task(name).needs
    if needs not in handle.inputs:
        able = ", ".join(n for n in USUAL if task(n).needs in handle.inputs)
        what = f"task {name!r} needs {needs} scores, which this model does not give"
        raise UsageError(what, where=handle.uri, hint=f"it can do: {able}" if able else "choose another model")
    if needs not in _at_hand(bench, handle):
        hint = "pass `images='DIR'`" if bench.ragged("images")[0][-1] else "this benchmark has no images at all"
        raise UsageError(f"task {name!r} needs the images", where=bench.name, hint=hint)
    if not applies(name, layout).any():
        able = ", ".join(n for n in USUAL if applies(n, layout).any())
        raise UsageError(
            f"task {name!r} has nothing to compare in any item", where=bench.name, hint=f"tasks that have: {able}"
        )


# -- what to write down ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ModelPass:
    """One model's pass over a plan."""

    handle: Handle
    options: ScoreOptions
    filled: FilledScores
    start: float

    def run(self, number: int, part: BenchmarkPart, tasks: Sequence[str]) -> Run:
        """Results from the filled columns, and the run's document."""
        used: set[Input] = {task(n).needs for n in tasks}
        columns = {k: v for k, v in self.filled.columns[number].items() if k in used}
        swap = _swaps(part) if any(task(n).swapped for n in tasks) else None
        table = score_table(part.bench, part.layout, columns, swap)
        document = _document(part.bench, self.handle, tasks, self.options)
        began = time.perf_counter()
        filled = Run(document, table)
        at_hand = [n for n in tasks if task(n).needs in filled.inputs] if self.options.shard else None
        document["results"] = [r.as_dict() for r in filled.evaluate(at_hand)] if at_hand != [] else []
        now = time.perf_counter()
        scored = {k: len(part.layout) - table.column(k).null_count for k in sorted(used)}
        document["coverage"] = {"items": len(part.layout), **scored}
        document |= self.filled.findings[number].document()
        document["notes"] = self.filled.notes
        document["work"] = {k: asdict(s) | {"computed": s.computed} for k, s in self.filled.work.items()}
        seconds = self.filled.timings.seconds | {"statistics": now - began, "total": now - self.start}
        document["timings"] = {k: round(v, 4) for k, v in seconds.items()}
        return Run(document, table)

    def as_shard(self, run: Run, shard: Shard, whole: Benchmark) -> Run:
        """The run, with the name and the benchmark of the whole that it is a share of."""
        return marked(run, shard, run_name(whole, self.handle, run.tasks), benchmark_header(whole))


def _swaps(part: BenchmarkPart) -> np.ndarray:
    from creperie.scoring.plan import swaps

    return swaps(part.bench, part.layout)


def _document(bench: Benchmark, handle: Handle, tasks: Sequence[str], options: ScoreOptions) -> dict[str, Any]:
    header = run_header(run_name(bench, handle, tasks), bench, handle.fingerprint, options.settings)
    header["model"]["parameters"] = handle.parameters
    own = {"command": options.command, "device": options.device, "versions": versions()}
    return {**header, **own, "tasks": list(tasks)}


def run_name(bench: Benchmark, handle: Handle, tasks: Sequence[str]) -> str:
    """A readable name that is the same for the same work: benchmark, model, and a hash of both and the tasks."""
    content = "\n".join([bench.hash, handle.fingerprint.key, *tasks])
    short = hashlib.sha256(content.encode()).hexdigest()[:8]
    model = handle.uri.split("?")[0].rstrip("/")
    tail = re.split(r"[/:]", model)[-1] or model
    kind = model.partition(":")[0]
    return f"{_slug(bench.name)}.{_slug(kind)}-{_slug(tail)}.{short}"


def _slug(text: str) -> str:
    return re.sub(r"[^\w+-]+", "-", text).strip("-")[:60] or "x"


def versions() -> dict[str, str]:
    """What computed the numbers. Read from the installed packages, without importing them."""
    found = {"creperie": __version__, "python": platform.python_version(), "platform": sys.platform}
    for name in LIBRARIES:
        try:
            own = metadata.distribution(name)
            told = re.search(r"^Version: *(\S+)", own.read_text("METADATA") or "", re.MULTILINE)
            found[name] = told[1] if told else own.version  # which reads the whole description, too
        except metadata.PackageNotFoundError:
            continue
    return found
