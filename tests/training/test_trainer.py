"""The trainer: seeded to the bit, killed and resumed, stopped by what goes wrong."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from creperie.core import DataError, ModelError, UsageError, read_json, write_json
from creperie.training import TrainingJob, TrainingSettings, Tuning, checkpoints, train_job
from creperie.training.examples import TrainingExample, TrainSet
from creperie.training.feed import Feed
from creperie.training.loop import DivergedError
from creperie.training.losses import batch_loss
from creperie.training.settings import learning_rate

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = TrainingSettings(steps=6, batch=8, lr=1e-3, warmup=2, save_every=2, seed=3)


@pytest.fixture
def trained(data: Any, small: Any, tmp_path: Path) -> Any:
    """Train a fresh small model in a folder of this test; `changes` are of the settings."""
    own = data

    def run(
        name: Any = "a", data: Any = own, weights: int = 0, truncate: bool = False, force: bool = False, **changes: Any
    ) -> Any:
        job = TrainingJob(small(weights), data, replace(SETTINGS, **changes), truncate=truncate)
        return train_job(job, tmp_path / name, device="cpu", force=force)

    return run


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def losses(folder: Path) -> list[dict[str, Any]]:
    return checkpoints.read_metrics(folder)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(trained: Any, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        trained(name, seed=seed)
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "c"))


KILLED = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
import torch
torch.set_num_threads(1)
from creperie.training.architecture import SmallConfig
from creperie.training.examples import train_set
from creperie.training.loop import TrainingJob, train_job
from creperie.training.settings import TrainingSettings
from creperie.training.student import new_small
from creperie.world import World, make_world

@contextmanager
def killing(label, total, unit):
    seen = 0
    def advance(n):
        nonlocal seen
        seen += n
        if seen >= 5 * 8:
            os.kill(os.getpid(), signal.SIGKILL)
    yield advance

data = train_set(make_world(World(items=12, kinds=("swap_obj", "negate_there", "replace_obj"), split="train", size=32)))
config = SmallConfig(size=32, channels=(8, 8, 16), text_width=16, heads=2, joint=16)
settings = TrainingSettings(steps=6, batch=8, lr=1e-3, warmup=2, save_every=2, seed=3)
job = TrainingJob(new_small(config, data.captions(), 0), data, settings)
train_job(job, sys.argv[1], device="cpu", progress=killing)
"""


@pytest.mark.slow
def test_killed_and_resumed_gives_the_same_weights_to_the_bit(trained: Any, tmp_path: Path) -> None:
    trained("whole")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed")]
    ended = subprocess.run(command, timeout=240, capture_output=True, env=None)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert checkpoints.steps_kept(tmp_path / "killed") == [2, 4]
    assert [line["step"] for line in losses(tmp_path / "killed")] == [1, 2, 3, 4, 5]
    (tmp_path / "killed" / "checkpoints" / ".step-000006.half").mkdir()
    done = trained("killed")
    assert done.document["steps"] == 6
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))
    assert losses(tmp_path / "whole") == losses(tmp_path / "killed")
    assert not list((tmp_path / "killed" / "checkpoints").glob(".step*"))


@pytest.mark.slow
def test_adapters_resume_to_the_bit_too(data: Any, clip_folder: Path, tmp_path: Path) -> None:
    from creperie.training import open_student

    def job(steps: int) -> TrainingJob:
        settings = replace(SETTINGS, steps=steps, epochs=100)
        return TrainingJob(open_student(f"hf:{clip_folder}"), data, settings, Tuning("lora"), truncate=True)

    whole = train_job(job(6), tmp_path / "whole", device="cpu")
    train_job(job(6), tmp_path / "half", device="cpu")
    # as if the second had been killed after its checkpoint of step 4
    shutil.rmtree(tmp_path / "half" / "model")
    checkpoints.checkpoint_path(tmp_path / "half", 6).unlink()
    record = tmp_path / "half" / "train.json"
    write_json(record, read_json(record) | {"finished": False})
    train_job(job(6), tmp_path / "half", device="cpu")
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "half"))
    assert not same(weights(tmp_path / "whole"), load_file(clip_folder / "model.safetensors"))
    assert whole.uri == f"hf:{tmp_path / 'whole' / 'model'}"


def test_a_finished_training_is_not_done_again(trained: Any, tmp_path: Path) -> None:
    trained()
    before = (tmp_path / "a" / "model" / "model.safetensors").stat().st_mtime_ns
    again = trained()
    assert (tmp_path / "a" / "model" / "model.safetensors").stat().st_mtime_ns == before
    assert again.document["finished"]


def test_another_job_in_the_same_folder_is_refused(trained: Any) -> None:
    trained()
    with pytest.raises(UsageError, match="settings differ"):
        trained(lr=5e-4)
    with pytest.raises(UsageError, match="weights differ"):
        trained(weights=1)
    trained(force=True, lr=5e-4)


def test_a_folder_of_something_else_is_left_alone(trained: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="contains no training"):
        trained("", force=True)
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_a_loss_that_is_no_number_names_the_batch_and_keeps_the_last_good_step(
    trained: Any, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from creperie.training import loop

    real, calls = loop.batch_loss, []

    def broken(*args: Any) -> torch.Tensor:
        calls.append(args[1])
        loss = real(*args)
        return loss * float("nan") if len(calls) == 4 else loss

    monkeypatch.setattr(loop, "batch_loss", broken)
    with pytest.raises(DivergedError, match=r"loss of step 4 is nan \(batch: ") as caught:
        trained()
    dice = np.random.Generator(np.random.PCG64([SETTINGS.seed, 0]))  # 36 examples: batch 3 is in epoch 0
    rows = dice.permutation(36)[24:32]
    assert calls[3].number == 3
    assert ", ".join(data.examples[k].key for k in rows[:4]) + " and 4 more" in str(caught.value)
    assert "step-000002" in str(caught.value)
    assert checkpoints.steps_kept(tmp_path / "a") == [2]
    assert len(losses(tmp_path / "a")) == 3


def test_a_full_disk_keeps_the_last_checkpoint_and_the_training_goes_on_later(
    trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained("whole")
    real = torch.save

    def full(state: Any, path: Path) -> None:
        if "step-000004" in str(path):
            raise OSError(28, "No space left on device")
        real(state, path)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(DataError, match=r"step 4 cannot be written.*No space left.*step-000002"):
            trained()
    assert checkpoints.steps_kept(tmp_path / "a") == [2]
    assert not list((tmp_path / "a" / "checkpoints").glob(".*"))
    trained()
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "a"))


def test_the_setting_that_is_wrong_is_named() -> None:
    with pytest.raises(UsageError, match="`steps=-1`: expected a whole number of at least 1"):
        TrainingSettings(steps=-1, warmup=-1)


def test_training_without_any_foil_is_refused(trained: Any, data: Any) -> None:
    bare = replace(data, examples=tuple(replace(e, foils=()) for e in data.examples))
    with pytest.raises(UsageError, match="no example has a foil"):
        trained(data=bare)
    with pytest.raises(UsageError, match="no second true caption"):
        trained("b", objective="triple")


def test_a_warm_up_that_never_ends_is_refused_and_leaves_no_trace(trained: Any) -> None:
    with pytest.raises(UsageError, match="warm-up takes 1000 steps, but the whole run only 6"):
        trained(warmup=1000)
    assert trained().document["steps"] == 6


def test_batches_without_foils_are_counted(trained: Any, data: Any) -> None:
    few = replace(data, examples=tuple(replace(e, foils=e.foils[: k == 0]) for k, e in enumerate(data.examples)))
    done = trained(data=few, steps=4)
    assert done.document["batches_without_foils"] == 3  # 36 examples in batches of 8: one epoch has one foil


def test_captions_beyond_the_context_are_named(trained: Any, data: Any) -> None:
    long = replace(data.examples[5], caption=" ".join(["cat"] * 60))
    set_ = replace(data, examples=(*data.examples[:5], long, *data.examples[6:]))
    with pytest.raises(DataError, match=rf"{long.key}: 1 captions are longer .* by 14 tokens"):
        trained(data=set_)
    done = trained("b", data=set_, truncate=True)
    assert done.document["captions_cut"] == 1


def test_a_picture_that_cannot_be_read_says_so(trained: Any, data: Any) -> None:
    def broken(key: str) -> Any:
        raise DataError("is not a picture", where=key)

    with pytest.raises(DataError, match="is not a picture"):
        trained(data=TrainSet("x", data.examples, broken))


def test_accumulated_batches_average_their_losses(data: Any, small: Any, tmp_path: Path) -> None:
    settings = replace(SETTINGS, accumulate=2, steps=2, warmup=0)
    done = train_job(TrainingJob(small(), data, settings), tmp_path / "a", device="cpu")
    assert done.document["steps"] == 2
    student = small()
    student.network.train()
    feed = Feed(data, student, settings)
    batches = [feed.batch(k) for k in (0, 1)]
    each = [float(batch_loss(settings, b, *student.network(b.pixels, b.ids)).detach()) for b in batches]
    assert losses(tmp_path / "a")[0]["loss"] == pytest.approx(sum(each) / 2, rel=1e-5)
    feed.close()


def test_warm_up_rises_and_the_cosine_falls() -> None:
    settings = TrainingSettings(lr=1e-4, warmup=1000)
    rates = [learning_rate(k, 3000, settings) for k in range(3000)]
    assert rates[0] == pytest.approx(1e-7)
    assert max(rates) == pytest.approx(1e-4)
    assert rates[2000] == pytest.approx(5e-5)  # half-way down
    assert rates[-1] < 1e-9
    assert rates[:1000] == sorted(set(rates[:1000]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"objective": "negclop"}, "did you mean 'negclip'"),
        ({"precision": "fp8"}, "unknown precision"),
        ({"batch": 1}, "of at least 2"),
        ({"lr": 0.0}, "above 0"),
        ({"warmup": -1}, "of at least 0"),
    ],
)
def test_settings_that_make_no_sense(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        TrainingSettings(**change)


def test_examples_of_two_pictures_are_each_others_alternatives() -> None:
    from creperie.bench import PAIRED, Item, from_items
    from creperie.training import train_set

    pair = Item("0", "swap", ("a.png", "b.png"), ("a cat and a dog", "a dog and a cat"), PAIRED)
    assert train_set(from_items("x", [pair])).examples == (
        TrainingExample("swap/0#0", "a.png", "a cat and a dog", "", ("a dog and a cat",), ("b.png",)),
        TrainingExample("swap/0#1", "b.png", "a dog and a cat", "", ("a cat and a dog",), ("a.png",)),
    )


def test_a_tokenizer_of_another_model_is_refused(clip_folder: Path, tmp_path: Path) -> None:
    from creperie.training import open_student

    shutil.copytree(clip_folder, tmp_path / "mixed")
    path = tmp_path / "mixed" / "config.json"
    config = json.loads(path.read_text())
    config["text_config"]["eos_token_id"] = 7
    path.write_text(json.dumps(config))
    with pytest.raises(ModelError, match="vector at token 7"):
        open_student(f"hf:{tmp_path / 'mixed'}")
