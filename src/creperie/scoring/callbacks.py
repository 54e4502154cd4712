"""Score benchmarks during training: with transformers' Trainer, with Lightning, or in your own loop."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from creperie.bench import BenchmarkSpec, as_benchmark
from creperie.models import wrap
from creperie.scoring.matrix import score
from creperie.scoring.run import Run


class BenchmarkCallback:
    """A callback that scores the model in training on a benchmark every `every` steps and logs the accuracies.

    Pass it to `Trainer(callbacks=[…])` of transformers or Lightning, or call `step(model, number)` in a loop. `log` is
    a TensorBoard writer, a W&B run, or a function of the accuracies and the step; without `log`, the accuracies go to
    an active W&B run. Lightning's loggers always get them. `runs` contains every run with its step.
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
        log: Any = None,
    ) -> None:
        self.bench, self.every, self.tasks = as_benchmark(bench), every, tasks
        self.parts = {"processor": processor, "preprocess": preprocess, "tokenizer": tokenizer}
        self._logs = log  # not `log`: Lightning sets an attribute of that name
        self.runs: list[tuple[int, Run]] = []

    def step(self, model: Any, number: int, loggers: Sequence[Any] = ()) -> Run | None:
        """Score the model if `number` is a multiple of `every`, and return the run; otherwise return None.

        Each step is scored only once. `loggers` are Lightning loggers.
        """
        done = bool(self.runs) and self.runs[-1][0] == number
        if number == 0 or number % self.every or done:
            return None
        run = score(self.bench, wrap(model, name=f"step {number}", **self.parts), tasks=self.tasks, cache=False)
        self.runs.append((number, run))
        shown = {f"{run.benchmark}/{r['task']}": float(r["accuracy"]) for r in run.results if r["subset"] == "all"}
        self._tell(shown, number, loggers)
        return run

    def _tell(self, numbers: Mapping[str, float], step: int, loggers: Sequence[Any]) -> None:
        if hasattr(self._logs, "add_scalar"):
            for name, value in numbers.items():
                self._logs.add_scalar(name, value, step)
        elif self._logs is not None and callable(getattr(self._logs, "log", None)):
            self._logs.log(dict(numbers), step=step)
        elif self._logs is not None:
            self._logs(numbers, step)
        for logger in loggers:
            logger.log_metrics(dict(numbers), step)
        wandb = sys.modules.get("wandb")
        if self._logs is None and not loggers and wandb is not None and wandb.run is not None:
            wandb.log(dict(numbers), step=step)

    # -- what trainers call ----------------------------------------------------------------------------------------

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> Any:
        """Score the model after a step; called by transformers' Trainer."""
        self.step(model, int(state.global_step))
        return control

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        """Score the model in training; Lightning calls this method after a batch. The model is the Lightning module
        itself or, if the module has no `encode_image`, the module's attribute `model`.
        """
        inner = module if hasattr(module, "encode_image") else getattr(module, "model", module)
        self.step(inner, int(trainer.global_step), getattr(trainer, "loggers", ()))

    @property
    def state_key(self) -> str:
        return f"creperie {self.bench.name}"

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        """Return a function that does nothing, in place of any other callback method that a trainer calls."""
        if name.startswith("on_") or name in ("setup", "teardown"):
            return lambda *_, **__: None
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
