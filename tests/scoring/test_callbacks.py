"""A benchmark scored while a model is trained: in a loop, by transformers' Trainer, by what Lightning calls."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import creperie as cr
from creperie.bench import Benchmark
from creperie.testing import tiny


@pytest.fixture
def clip(tmp_path: Path) -> tuple[Any, Any]:
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer, CLIPProcessor

    folder = tiny.tiny_clip(tmp_path / "clip")
    images = AutoImageProcessor.from_pretrained(folder, backend="pil")
    return AutoModel.from_pretrained(folder), CLIPProcessor(images, AutoTokenizer.from_pretrained(folder))


class Texts(torch.utils.data.Dataset[dict[str, Any]]):
    def __init__(self, processor: Any, pixels: torch.Tensor) -> None:
        self.rows = [{k: v[0] for k, v in processor(text=[t], return_tensors="pt").items()} for t in ("a dog", "a cat")]
        self.pixels = pixels

    def __len__(self) -> int:
        return 8

    def __getitem__(self, at: int) -> dict[str, Any]:
        return {**self.rows[at % 2], "pixel_values": self.pixels}


def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {**{k: torch.stack([row[k] for row in rows]) for k in rows[0]}, "return_loss": True}


@pytest.mark.slow
def test_transformers_trainer(triples: Benchmark, clip: tuple[Any, Any], tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    model, processor = clip
    told: list[tuple[int, dict[str, float]]] = []
    callback = cr.BenchmarkCallback(
        triples, every=2, tasks="itt", processor=processor, log=lambda numbers, step: told.append((step, dict(numbers)))
    )
    arguments = TrainingArguments(
        str(tmp_path / "out"), max_steps=4, per_device_train_batch_size=2, learning_rate=0.01, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True, remove_unused_columns=False,
    )  # fmt: skip
    data = Texts(processor, torch.rand(3, 32, 32))
    Trainer(model, arguments, collate, data, callbacks=[callback]).train()  # type: ignore[list-item]
    assert [step for step, _ in callback.runs] == [2, 4]
    assert [step for step, _ in told] == [2, 4]
    assert set(told[0][1]) == {"triples/itt"}
    first, last = (run.scores("image_text") for _, run in callback.runs)
    assert not np.allclose(first, last)
    model.eval()
    np.testing.assert_allclose(cr.score(triples, (model, processor), tasks="itt").scores("image_text"), last, atol=1e-6)


def test_a_loop_and_a_writer(triples: Benchmark, clip: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, processor = clip
    written: list[tuple[str, float, int]] = []
    writer = SimpleNamespace(add_scalar=lambda *given: written.append(given))
    callback = cr.BenchmarkCallback(triples, every=3, processor=processor, log=writer, tasks="itt")
    model.train()
    scored = [callback.step(model, number) is not None for number in range(7)]
    assert scored == [False, False, False, True, False, False, True]
    assert model.training
    assert [(name, step) for name, _, step in written] == [("triples/itt", 3), ("triples/itt", 6)]
    assert [run.model for _, run in callback.runs] == ["memory:step 3", "memory:step 6"]
    logged: list[tuple[dict[str, float], int]] = []
    tracker = SimpleNamespace(log=lambda numbers, step: logged.append((numbers, step)))  # as a W&B run
    cr.BenchmarkCallback(triples, every=1, processor=processor, log=tracker, tasks="itt").step(model, 2)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=tracker, log=tracker.log))  # the run that is open
    cr.BenchmarkCallback(triples, every=1, processor=processor, tasks="itt").step(model, 2)
    assert [(list(numbers), step) for numbers, step in logged] == [(["triples/itt"], 2)] * 2


def test_what_lightning_calls(triples: Benchmark, clip: tuple[Any, Any]) -> None:
    model, processor = clip
    logged: list[Any] = []
    callback = cr.BenchmarkCallback(
        triples, every=1, processor=processor, tasks="itt", log=lambda *own: logged.append(own)
    )
    logger = SimpleNamespace(log_metrics=lambda numbers, step: logged.append((numbers, step)))
    trainer, module = SimpleNamespace(global_step=1, loggers=[logger]), SimpleNamespace(model=model)
    callback.log = callback.log_dict = None  # the library puts its own methods there
    callback.setup(trainer, module, stage="fit")
    callback.on_train_start(trainer, module)
    callback.on_train_batch_end(trainer, module, None, None, 0)
    callback.on_train_batch_end(trainer, module, None, None, 0)
    assert [step for step, _ in callback.runs] == [1]
    assert logged[0] == logged[1] == ({"triples/itt": callback.runs[0][1].results[-1]["accuracy"]}, 1)
    with pytest.raises(AttributeError):
        _ = callback.nonsense
