"""Training of open_clip's own modules. Run by test_open_clip_training.py in a process of its own."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from open_clip_apart import run_as_suite
from PIL import Image
from safetensors.torch import load_file

from creperie.core import read_json, write_json
from creperie.models import load_model
from creperie.training import StudyQuestion, TrainingJob, TrainingSettings, Tuning, open_student, study_of, train_job
from creperie.training.examples import TrainingExample, TrainSet
from creperie.training.losses import unit
from creperie.world import World, make_world

VISION = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
TEXT = {"context_length": 24, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "tiny-quickgelu": {"quick_gelu": True},
    "tiny-custom": {"custom_text": True},
    "tiny-last": {  # its text tower is not causal: captions keep their full width
        "custom_text": True,
        "init_logit_bias": -10,
        "text_cfg": {**TEXT, "no_causal_mask": True, "pool_type": "last"},
    },
}
RESNET = {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 32, "patch_size": None}
ARCHITECTURES["tiny-resnet"] = {"vision_cfg": RESNET}  # as RN50: a ResNet with attention pooling
SETTINGS = TrainingSettings(steps=2, batch=6, lr=1e-3, warmup=0)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    open_clip = pytest.importorskip("open_clip", reason="run by test_open_clip_training.py where the library is")
    folder = tmp_path_factory.mktemp("architectures")
    for name, changes in ARCHITECTURES.items():
        config = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT, **changes}
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return open_clip


@pytest.fixture
def uri(library: Any, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    name = getattr(request, "param", "tiny-quickgelu")
    torch.manual_seed(0)
    torch.save({"state_dict": library.create_model(name).state_dict()}, tmp_path / "epoch_1.pt")
    activation = "quick_gelu" if "quickgelu" in name else "gelu"
    return f"open_clip:{name}/{tmp_path / 'epoch_1.pt'}?activation={activation}"


@pytest.fixture(scope="session")
def data() -> TrainSet:
    rng = np.random.default_rng(0)
    shapes = [(40, 32), (33, 47), (32, 32)]
    pictures = {
        f"{k}.png": Image.fromarray(rng.integers(0, 256, (*shapes[k % 3], 3), dtype=np.uint8)) for k in range(12)
    }
    animals = ("dog", "cat", "cow", "horse")
    examples = tuple(
        TrainingExample(str(k), key, f"a {animals[k % 4]} sees {k} birds", "", (f"{k} birds see a {animals[k % 4]}",))
        for k, key in enumerate(pictures)
    )
    return TrainSet("noise", examples, pictures.__getitem__)


def inputs(data: TrainSet) -> tuple[list[str], list[Image.Image]]:
    return [e.caption for e in data.examples], [data.open(e.image) for e in data.examples]


def vectors(model: Any, data: TrainSet) -> np.ndarray:
    captions, pictures = inputs(data)
    return np.concatenate([model.encode_texts(captions), model.encode_images(pictures)])


def vectors_in_training(student: Any, data: TrainSet) -> np.ndarray:
    captions, pictures = inputs(data)
    student.network.eval()
    with torch.no_grad():
        pixels = student.pixels(torch.from_numpy(np.stack([student.prepare_image(p) for p in pictures])))
        shown, said, _ = student.network(pixels, student.ids(student.prepare_texts(captions)))
    return np.concatenate([unit(said).numpy(), unit(shown).numpy()])


@pytest.mark.parametrize("uri", list(ARCHITECTURES), indirect=True)
def test_the_trained_model_is_read_again_with_the_same_vectors(uri: str, data: TrainSet, tmp_path: Path) -> None:
    student = open_student(uri)
    before = vectors(load_model(uri, device="cpu"), data)
    assert np.abs(vectors_in_training(student, data) - before).max() < 1e-5
    done = train_job(TrainingJob(student, data, SETTINGS, base=uri), tmp_path / "run", device="cpu")
    assert done.uri == f"open_clip:local-dir:{tmp_path / 'run' / 'model'}"
    after = vectors(load_model(done.uri, device="cpu"), data)
    assert np.abs(vectors_in_training(student, data) - after).max() < 1e-5
    assert np.abs(before - after).max() > 1e-3
    further = open_student(done.uri)  # what was trained can be trained on
    assert np.abs(vectors_in_training(further, data) - after).max() < 1e-5


@pytest.mark.parametrize("uri", ["tiny-quickgelu", "tiny-custom", "tiny-resnet"], indirect=True)
def test_only_the_text_tower_moves(uri: str, data: TrainSet, tmp_path: Path) -> None:
    done = train_job(TrainingJob(open_student(uri), data, SETTINGS, Tuning("text")), tmp_path / "run", device="cpu")
    before, after = (vectors(load_model(name, device="cpu"), data) for name in (uri, done.uri))
    n = len(data)
    assert np.abs(before[:n] - after[:n]).max() > 1e-3
    assert np.abs(before[n:] - after[n:]).max() < 1e-6


def test_killed_and_resumed_gives_the_same_weights(uri: str, data: TrainSet, tmp_path: Path) -> None:
    settings = replace(SETTINGS, steps=4, save_every=2)

    def go() -> dict[str, torch.Tensor]:
        train_job(TrainingJob(open_student(uri), data, settings), tmp_path / "run", device="cpu")
        return load_file(tmp_path / "run" / "model" / "open_clip_model.safetensors")

    whole = go()
    shutil.rmtree(tmp_path / "run" / "model")
    (tmp_path / "run" / "checkpoints" / "step-000004.pt").unlink()
    record = tmp_path / "run" / "train.json"
    write_json(record, read_json(record) | {"finished": False})
    again = go()
    assert all(torch.equal(whole[name], again[name]) for name in whole)


@pytest.mark.parametrize("uri", ["tiny-quickgelu", "tiny-custom"], indirect=True)
def test_adapters_move_the_attention_of_both_towers(uri: str, data: TrainSet, tmp_path: Path) -> None:
    student = open_student(uri)
    before = {name: weight.clone() for name, weight in student.network.model.state_dict().items()}
    settings = replace(SETTINGS, steps=4, save_every=2)
    done = train_job(TrainingJob(student, data, settings, Tuning("lora", rank=2)), tmp_path / "run", device="cpu")
    after = load_file(tmp_path / "run" / "model" / "open_clip_model.safetensors")
    assert before.keys() == after.keys()
    moved = {name for name in before if not before[name].equal(after[name])}
    # where the library stacks queries, keys and values, peft adapts the whole attention layer
    adapted = ("attn.in_proj_weight", "attn.out_proj.weight")
    assert moved == {name for name in before if name.endswith(adapted)}
    assert {"visual" in name for name in moved} == {True, False}
    for name in moved:
        assert torch.linalg.matrix_rank(after[name] - before[name], atol=1e-6) <= 2
    unmerged = vectors_in_training(student, data)
    assert np.abs(vectors(load_model(done.uri, device="cpu"), data) - unmerged).max() < 1e-5
    # killed after its first checkpoint, it ends with the same weights but for the last bits: in such layers peft adds
    # the adapters to the weights before every pass and takes them away afterwards
    shutil.rmtree(tmp_path / "run" / "model")
    (tmp_path / "run" / "checkpoints" / "step-000004.pt").unlink()
    record = tmp_path / "run" / "train.json"
    write_json(record, read_json(record) | {"finished": False})
    train_job(TrainingJob(open_student(uri), data, settings, Tuning("lora", rank=2)), tmp_path / "run", device="cpu")
    again = load_file(tmp_path / "run" / "model" / "open_clip_model.safetensors")
    assert all(torch.allclose(after[name], again[name], atol=1e-6) for name in after)


def test_a_resnet_is_trained_from_scratch(library: Any, data: TrainSet, tmp_path: Path) -> None:
    fresh = "open_clip:tiny-resnet/random"
    start = vectors(load_model(fresh, device="cpu"), data)
    assert np.abs(vectors_in_training(open_student(fresh), data) - start).max() < 1e-5
    assert np.abs(vectors(load_model(f"{fresh}?seed=1", device="cpu"), data) - start).max() > 1e-2
    settings = replace(SETTINGS, steps=30, lr=3e-3, warmup=5, epochs=100)
    done = train_job(TrainingJob(open_student(fresh, 1), data, settings, base=fresh), tmp_path / "run", device="cpu")
    losses = [json.loads(line)["loss"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])  # twelve pictures are learnt by heart
    weights = load_file(tmp_path / "run" / "model" / "open_clip_model.safetensors")
    assert weights["visual.layer1.0.bn1.num_batches_tracked"] == 30  # running statistics are saved too
    after = vectors(load_model(done.uri, device="cpu"), data)
    assert np.abs(vectors_in_training(open_student(done.uri), data) - after).max() < 1e-5


def test_the_study_from_scratch(library: Any, tmp_path: Path) -> None:
    bench = make_world(World(kinds=("swap_att",), items=8, size=64))
    settings = replace(SETTINGS, batch=8)
    question = StudyQuestion("open_clip:tiny-resnet/random", bench, bench, bench, settings)
    study = study_of(question, tmp_path / "study", seeds=[0], arms=["none", "replace"], device="cpu")
    assert (study.scratch, study.finished, study.done) == (True, True, ("none", "replace"))
    assert study.foils("replace") > 0


if __name__ == "__main__":
    sys.exit(run_as_suite(__file__))
