"""Two processes that train together, started on this machine, against one that trains alone."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from creperie.training import checkpoints
from creperie.training.feed import BatchPart, Feed, ProcessShare
from creperie.training.loop import TrainingJob, train_job
from creperie.training.losses import batch_loss
from creperie.training.settings import TrainingSettings

SETTINGS = TrainingSettings(steps=3, batch=9, lr=1e-3, warmup=0, save_every=2, seed=3)  # 9: shares of 5 and 4

#: what both processes do, and what the test does alone
WORK = """
import sys
from dataclasses import replace
from pathlib import Path
import torch

def make_data():
    from creperie.training.examples import train_set
    from creperie.world import World, make_world
    world = World(items=12, kinds=("swap_obj", "negate_there", "replace_obj"), split="train", size=32)
    data = train_set(make_world(world))
    shown = [e.image for e in data.examples]
    # some have no foil, some have other pictures: the shares of a batch have different sizes
    return replace(data, examples=tuple(
        replace(e, paraphrase=e.caption, foils=e.foils if k % 3 else (), alternatives=(shown[k - 1],) * (k % 4 == 1))
        for k, e in enumerate(data.examples)
    ))

def make_student(kind, data, clip):
    from creperie.training.architecture import SmallConfig
    from creperie.training.student import new_small, open_student
    if kind == "clip":
        return open_student(f"hf:{clip}")
    config = SmallConfig(size=32, channels=(8, 8, 16), text_width=16, heads=2, joint=16)
    return new_small(config, data.captions(), 0)
"""

TOGETHER = (
    WORK
    + """
from creperie.training.feed import Feed, ProcessShare
from creperie.training.gather import gather_batch
from creperie.training.loop import TrainingJob, train_job
from creperie.training.losses import batch_loss
from creperie.training.settings import TrainingSettings
from creperie.training.loop import open_accelerator

torch.set_num_threads(1)
out, clip = Path(sys.argv[1]), sys.argv[2]
settings = TrainingSettings(steps=3, batch=9, lr=1e-3, warmup=0, save_every=2, seed=3)
data = make_data()
accelerator = open_accelerator("cpu", settings)
assert accelerator.num_processes == 2
student = make_student("clip", data, clip)
network = accelerator.prepare(student.network).train()
own = replace(settings, pull=0.5)
share = ProcessShare(accelerator.process_index, accelerator.num_processes)
feed = Feed(data, student, own, truncate=True, share=share)
batch = feed.batch(1)
images, texts, scale = network(batch.pixels, batch.ids)
loss = batch_loss(own, *gather_batch(batch, images, texts), scale)
loss.backward()
feed.close()
if accelerator.is_main_process:
    grads = {name: w.grad for name, w in student.network.named_parameters() if w.grad is not None}
    torch.save({"loss": loss.detach(), "grads": grads}, out / "clip.pt")
accelerator.wait_for_everyone()
train_job(TrainingJob(make_student("clip", data, clip), data, settings, truncate=True), out / "run", device="cpu")
"""
)


def free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


def launch(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """accelerate's own launcher starts several processes for GPUs only; torch's does so for CPUs."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--nnodes", "1"]
    command += ["--master-addr", "127.0.0.1", "--master-port", str(free_port()), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=540, check=False)


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(WORK, names)
    return names


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, clip_folder: Path) -> Path:
    out = tmp_path_factory.mktemp("together")
    (out / "work.py").write_text(TOGETHER)
    done = launch([str(out / "work.py"), str(out), str(clip_folder)])
    assert done.returncode == 0, done.stderr[-4000:]
    return out


@pytest.mark.slow
def test_loss_and_gradients_are_those_of_the_whole_batch(
    own: dict[str, Any], together: Path, clip_folder: Path
) -> None:
    found = torch.load(together / "clip.pt", weights_only=True)
    data = own["make_data"]()
    student = own["make_student"]("clip", data, clip_folder)
    settings = replace(SETTINGS, pull=0.5)
    feed = Feed(data, student, settings, truncate=True)
    batch = feed.batch(1)
    student.network.train()
    loss = batch_loss(settings, batch, *student.network(batch.pixels, batch.ids))
    loss.backward()
    feed.close()
    assert float(found["loss"]) == pytest.approx(float(loss.detach()), abs=1e-5)
    grads = {name: w.grad for name, w in student.network.named_parameters() if w.grad is not None}
    assert grads.keys() == found["grads"].keys()
    for name, grad in grads.items():
        torch.testing.assert_close(found["grads"][name], grad, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.slow
def test_a_training_of_two_has_the_losses_of_one_and_one_set_of_files(
    own: dict[str, Any], together: Path, clip_folder: Path, tmp_path: Path
) -> None:
    data = own["make_data"]()
    student = own["make_student"]("clip", data, clip_folder)
    train_job(TrainingJob(student, data, SETTINGS, truncate=True), tmp_path / "run", device="cpu")
    alone, both = (checkpoints.read_metrics(folder / "run") for folder in (tmp_path, together))
    assert [line["step"] for line in both] == [1, 2, 3]
    assert [line["loss"] for line in both] == pytest.approx([line["loss"] for line in alone], abs=1e-4)
    assert checkpoints.steps_kept(together / "run") == [2, 3]
    document = json.loads((together / "run" / "train.json").read_text())
    assert document["finished"]
    assert document["job"] == json.loads((tmp_path / "run" / "train.json").read_text())["job"]
    one, two = (load_file(folder / "run" / "model" / "model.safetensors") for folder in (tmp_path, together))
    assert one.keys() == two.keys()


def test_shares_know_how_much_the_others_have(data: Any, small: Any) -> None:
    examples = tuple(replace(e, foils=e.foils if k % 2 else ()) for k, e in enumerate(data.examples))
    uneven = replace(data, examples=examples)
    whole = Feed(uneven, small(), SETTINGS).batch(2)
    shares = [Feed(uneven, small(), SETTINGS, share=ProcessShare(k, 2)).batch(2) for k in (0, 1)]
    assert shares[0].parts == shares[1].parts
    for share, part in zip(shares, shares[0].parts, strict=True):
        assert part == BatchPart(share.size, len(share.pixels) - share.size, 0, share.foils)
        assert part.rows == len(share.pixels) + len(share.ids)
        assert (share.whole_size, share.whole_foils) == (9, whole.foils)
    assert [share.size for share in shares] == [5, 4]
    assert whole.parts == ()
