"""Benchmarks scored while a model is trained: by transformers' Trainer, by Lightning, or by a loop of one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.models import wrap
from creperie.scoring.run import Run
from creperie.scoring.score_runs import score


class BenchmarkCallback:
    """Scores a benchmark on the live model every `every` steps and logs the accuracies.

    Pass it to `Trainer(callbacks=[…])` of transformers or Lightning, or call `step(model, number)` in a loop. `log` is
    called with the numbers and the step; without it they go to an active W&B run, and to `writer`, a TensorBoard
    `SummaryWriter`, where one is given. `runs` keeps every run with its step.
    """

    def __init__(
        self,
        bench: BenchmarkSpec,
        *,
        every: int = 500,
        tasks: str | Iterable[str] = (),
        processor: Any = None,
        preprocess: Any = None,
        tokenizer: Any = None,
        log: Callable[[Mapping[str, float], int], None] | None = None,
        writer: Any = None,
    ) -> None:
        self.bench, self.every, self.tasks = as_benchmark(bench), every, tasks
        self.parts = {"processor": processor, "preprocess": preprocess, "tokenizer": tokenizer}
        self.log, self.writer = log, writer
        self.runs: list[tuple[int, Run]] = []

    def step(self, model: Any, number: int) -> Run | None:
        """Score the model if this step is one of every `every`, and return the run. Each step is scored once."""
        done = bool(self.runs) and self.runs[-1][0] == number
        if number == 0 or number % self.every or done:
            return None
        run = score(self.bench, wrap(model, name=f"step {number}", **self.parts), tasks=self.tasks, cache=False)
        self.runs.append((number, run))
        shown = {f"{run.benchmark}/{r['task']}": float(r["accuracy"]) for r in run.results if r["subset"] == "all"}
        self._tell(shown, number)
        return run

    def _tell(self, numbers: Mapping[str, float], step: int) -> None:
        if self.log is not None:
            self.log(numbers, step)
        for name, value in numbers.items() if self.writer is not None else ():
            self.writer.add_scalar(name, value, step)
        wandb = sys.modules.get("wandb")
        if self.log is None and wandb is not None and wandb.run is not None:
            wandb.log(dict(numbers), step=step)

    # -- what trainers call ----------------------------------------------------------------------------------------

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> Any:
        """After a step of transformers' Trainer."""
        self.step(model, int(state.global_step))
        return control

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        """After a batch of Lightning: the module, or the `model` that it holds where it encodes nothing itself."""
        inner = module if hasattr(module, "encode_image") else getattr(module, "model", module)
        self.step(inner, int(trainer.global_step))

    @property
    def state_key(self) -> str:
        return f"creperie {self.bench.name}"

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        """Trainers call many more events, to which there is nothing to do."""
        if name.startswith("on_") or name in ("setup", "teardown"):
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
