"""Scoring on an engine: every worker holds the model once and scores shares of the items; the shares are merged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from creperie.bench import Benchmark
from creperie.core import Progress, silent
from creperie.engine import Engine, Held, Shard, Work, from_bytes, parse_shard, to_bytes
from creperie.scoring.run import Run, plain
from creperie.scoring.score_runs import ScoreOptions, score_all
from creperie.scoring.shards import merged_run

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
                documents.append(json.dumps(plain(run.document)))
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
