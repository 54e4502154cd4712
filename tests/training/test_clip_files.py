"""`clip:FILE`, a file in OpenAI's and open_clip's layout: trained, saved, and scored through `hf:`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from creperie.core.errors import UsageError
from creperie.models import load_model
from creperie.training.loop import TrainingJob, train_job
from creperie.training.losses import unit
from creperie.training.settings import TrainingSettings, Tuning
from creperie.training.student import open_student

SETTINGS = TrainingSettings(steps=2, batch=8, lr=1e-3, warmup=0)
LAYER = {"ln_1": "layer_norm1", "ln_2": "layer_norm2", "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}
OUTER = {
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "logit_scale": "logit_scale",
}
NORMS = {
    "visual.ln_pre": "vision_model.pre_layrnorm",
    "visual.ln_post": "vision_model.post_layernorm",
    "ln_final": "text_model.final_layer_norm",
}


def open_clip_layout(old: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of a transformers CLIP under open_clip's names: q, k and v stacked, projections transposed."""
    new = {name: old[source] for name, source in OUTER.items()}
    new |= {"visual.proj": old["visual_projection.weight"].T, "text_projection": old["text_projection.weight"].T}
    for kind in ("weight", "bias"):
        new |= {f"{name}.{kind}": old[f"{source}.{kind}"] for name, source in NORMS.items()}
        for tower, source in (("visual.transformer", "vision_model"), ("transformer", "text_model")):
            for n in range(2):
                block, layer = f"{tower}.resblocks.{n}", f"{source}.encoder.layers.{n}"
                attention = f"{layer}.self_attn"
                new[f"{block}.attn.in_proj_{kind}"] = torch.cat([old[f"{attention}.{x}_proj.{kind}"] for x in "qkv"])
                new[f"{block}.attn.out_proj.{kind}"] = old[f"{attention}.out_proj.{kind}"]
                new |= {f"{block}.{name}.{kind}": old[f"{layer}.{was}.{kind}"] for name, was in LAYER.items()}
    return {name: tensor.clone().contiguous() for name, tensor in new.items()}


@pytest.fixture(scope="module")
def uri(clip_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("file") / "epoch_3.pt"
    state = open_clip_layout(load_file(clip_folder / "model.safetensors"))
    torch.save({"epoch": 3, "state_dict": {f"module.{name}": tensor for name, tensor in state.items()}}, path)
    return f"clip:{path}?activation=quick_gelu&tokenizer={clip_folder}&vision_heads=2&text_heads=2"


def vectors(model: Any, captions: list[str], pictures: list[Image.Image]) -> np.ndarray:
    return np.concatenate([model.encode_texts(captions), model.encode_images(pictures)])


def vectors_in_training(student: Any, captions: list[str], pictures: list[Image.Image]) -> np.ndarray:
    student.network.eval()
    with torch.no_grad():
        pixels = student.pixels(torch.from_numpy(np.stack([student.prepare_image(p) for p in pictures])))
        shown, said, _ = student.network(pixels, student.ids(student.prepare_texts(captions)))
    return np.concatenate([unit(said).numpy(), unit(shown).numpy()])


@pytest.fixture(scope="module")
def shown(data: Any) -> tuple[list[str], list[Image.Image]]:
    examples = data.examples[:5]
    return [e.caption for e in examples], [data.open(e.image) for e in examples]


def test_training_starts_from_the_vectors_that_the_file_has(uri: str, shown: Any) -> None:
    own = vectors(load_model(uri, device="cpu"), *shown)
    assert np.abs(vectors_in_training(open_student(uri), *shown) - own).max() < 1e-5


@pytest.mark.parametrize("way", ["full", "text", "lora", "frozen"])
def test_the_trained_model_scores_as_it_was_trained(way: str, uri: str, data: Any, shown: Any, tmp_path: Path) -> None:
    student = open_student(uri)
    done = train_job(
        TrainingJob(student, data, SETTINGS, Tuning(way), base=uri, truncate=True), tmp_path / "run", device="cpu"
    )
    assert done.uri == f"hf:{tmp_path / 'run' / 'model'}"
    before, after = (vectors(load_model(name, device="cpu"), *shown) for name in (uri, done.uri))
    assert np.abs(vectors_in_training(student, *shown) - after).max() < 1e-5
    n = len(shown[0])
    moved = [np.abs(before[part] - after[part]).max() for part in (slice(None, n), slice(n, None))]
    expected = {"full": (True, True), "text": (True, False), "lora": (True, True), "frozen": (False, False)}[way]
    assert tuple(bool(m > 1e-4) for m in moved) == expected
    assert all(m < 1e-5 for m, trained in zip(moved, expected, strict=True) if not trained)


def test_a_file_goes_on_after_a_kill(uri: str, data: Any, tmp_path: Path) -> None:
    """A checkpoint is a folder of transformers, whatever the training began with."""
    import json
    import shutil

    settings = replace(SETTINGS, steps=4, save_every=2)

    def go(name: str) -> dict[str, torch.Tensor]:
        train_job(
            TrainingJob(open_student(uri), data, settings, base=uri, truncate=True), tmp_path / name, device="cpu"
        )
        return load_file(tmp_path / name / "model" / "model.safetensors")

    whole = go("run")
    shutil.rmtree(tmp_path / "run" / "model")
    (tmp_path / "run" / "checkpoints" / "step-000004.pt").unlink()
    document = json.loads((tmp_path / "run" / "train.json").read_text())
    (tmp_path / "run" / "train.json").write_text(json.dumps(document | {"finished": False}))
    again = go("run")
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_kinds_that_cannot_be_trained_are_told() -> None:
    with pytest.raises(UsageError, match=r"kind 'st' cannot be trained.*hf:, clip: or open_clip:"):
        open_student("st:some/model")
