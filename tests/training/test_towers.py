"""Two pretrained towers joined by heads: training, folders, features in the store, retrieval."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.bench import Item, from_items
from creperie.core import UsageError
from creperie.models import load_model
from creperie.training import (
    SmallConfig,
    TowersConfig,
    TrainingJob,
    TrainingSettings,
    open_student,
    train_job,
    train_set,
)

SETTINGS = TrainingSettings(objective="clip", steps=6, batch=8, lr=1e-3, warmup=1, save_every=2)


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> TowersConfig:
    """A tiny DINOv2 and a tiny sentence encoder."""
    import torch
    from transformers import BitImageProcessorPil, Dinov2Config, Dinov2Model

    from creperie.testing.tiny import tiny_sentence_encoder

    folder = tmp_path_factory.mktemp("dino")
    torch.manual_seed(3)
    shape = Dinov2Config(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, image_size=28, patch_size=14, mlp_ratio=2
    )
    Dinov2Model(shape).save_pretrained(folder)
    BitImageProcessorPil(image_mean=[0.5] * 3, image_std=[0.25] * 3).save_pretrained(folder)
    text = tiny_sentence_encoder(tmp_path_factory.mktemp("st"))
    return TowersConfig(f"hf:{folder}", f"st:{text}", hidden=12, joint=8, layers=2, size=28)


pytestmark = pytest.mark.usefixtures("own_cache")


def job(config: TowersConfig, data: Any, settings: TrainingSettings = SETTINGS) -> TrainingJob:
    return TrainingJob(open_student(config, settings.seed), data, settings, base="tiny", truncate=True)


def test_frozen_towers_are_joined_and_score(towers: TowersConfig, data: Any, tmp_path: Path) -> None:
    done = train_job(job(towers, data), tmp_path / "run", device="cpu")
    assert done.uri.startswith("towers:")
    assert 0 < done.document["trained_weights"] < 10_000  # the heads alone
    model: Any = load_model(done.uri, device="cpu")
    image = data.open(data.examples[0].image)
    images, texts = model.encode_images([image, image]), model.encode_texts(["a red cube", "a blue ball"])
    assert images.shape == texts.shape == (2, 8)
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(images[0], images[1])
    # the image's vector is the mean over views, computed here by hand
    import torch

    tower = model.towers
    with torch.no_grad():
        views = torch.from_numpy(model.prepare_image(image))
        own = model.heads.image(tower.image.features(tower.image.scaled(views)))
        mean = torch.nn.functional.normalize(own, dim=1).mean(dim=0)
    np.testing.assert_allclose(images[0], (mean / mean.norm()).numpy(), atol=1e-5)


def test_features_are_computed_once(
    towers: TowersConfig, data: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from creperie.training.vision import VisionTower

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path))
    monkeypatch.setattr("creperie.training.joining._LAST_SET", {})  # what other tests left in memory

    seen: list[int] = []
    real = VisionTower.features
    monkeypatch.setattr(VisionTower, "features", lambda self, x: (seen.append(len(x)), real(self, x))[1])
    keys = list(dict.fromkeys(e.image for e in data.examples))
    first: Any = open_student(towers)
    found = first.features_of(keys, data)
    assert sum(seen) == len(keys) * len(towers.views)
    again: Any = open_student(towers)
    np.testing.assert_array_equal(again.features_of(keys, data), found)
    assert sum(seen) == len(keys) * len(towers.views)  # all from the store


@pytest.mark.parametrize("trained", [(), ("image", "text")])
def test_a_stopped_training_resumes_to_the_bit(
    towers: TowersConfig, data: Any, tmp_path: Path, trained: tuple[str, ...]
) -> None:
    config = replace(towers, trained=trained)
    whole = train_job(job(config, data), tmp_path / "whole", device="cpu")

    class StoppedError(Exception):
        pass

    from creperie.training import loop

    real = loop._TrainingRun.step

    def stops(self: Any, stream: Any) -> None:
        if self.steps == 3:
            raise StoppedError
        real(self, stream)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop._TrainingRun, "step", stops)
        with pytest.raises(StoppedError):
            train_job(job(config, data), tmp_path / "cut", device="cpu")
    resumed = train_job(job(config, data), tmp_path / "cut", device="cpu")
    assert resumed.document["loss"] == whole.document["loss"]
    names = ["model.safetensors", *(f"{tower}/model.safetensors" for tower in trained)]
    for name in names:
        assert (whole.folder / "model" / name).read_bytes() == (resumed.folder / "model" / name).read_bytes()


def test_trained_towers_are_saved_beside_the_heads(towers: TowersConfig, data: Any, tmp_path: Path) -> None:
    frozen = train_job(job(towers, data), tmp_path / "frozen", device="cpu")
    student: Any = open_student(f"{frozen.uri}?trained=image,text")
    before = {k: v.clone() for k, v in student.network.state_dict().items()}
    done = train_job(
        TrainingJob(student, data, SETTINGS, base=frozen.uri, truncate=True), tmp_path / "tuned", device="cpu"
    )
    changed = {k.split(".")[0] for k, v in student.network.state_dict().items() if not (v == before[k]).all()}
    assert changed == {"model", "image_tower", "text_tower"}
    config = json.loads((done.folder / "model" / "config.json").read_text())
    assert config["image"] == "hf:./image"
    assert config["text"] == "st:./text"
    model: Any = load_model(done.uri, device="cpu")
    student.network.eval()
    views = np.stack([model.prepare_image(data.open(e.image)) for e in data.examples[:3]])
    import torch

    with torch.no_grad():
        own = torch.nn.functional.normalize(student.network.embed_images(torch.from_numpy(views)), dim=1)
    np.testing.assert_allclose(model.forward_images(views), own.numpy(), atol=1e-5)
    # and the folder can be moved
    moved = tmp_path / "elsewhere"
    (done.folder / "model").rename(moved)
    other: Any = load_model(f"towers:{moved}", device="cpu")
    np.testing.assert_array_equal(other.encode_texts(["a cat"]), model.encode_texts(["a cat"]))


@pytest.mark.parametrize("kind", ["clip", "convnext"])
def test_other_image_towers_are_joined(
    kind: str, towers: TowersConfig, data: Any, clip_folder: Path, tmp_path: Path
) -> None:
    """A dual encoder's image vector, and a pooled output."""
    if kind == "convnext":
        from transformers import ConvNextConfig, ConvNextImageProcessorPil, ConvNextModel

        shape = ConvNextConfig(hidden_sizes=[4, 4, 8, 8], depths=[1, 1, 1, 1], image_size=32)
        ConvNextModel(shape).save_pretrained(tmp_path / "tower")
        ConvNextImageProcessorPil().save_pretrained(tmp_path / "tower")
    uri = f"hf:{clip_folder}" if kind == "clip" else f"hf:{tmp_path}/tower"
    done = train_job(job(replace(towers, image=uri), data), tmp_path / "run", device="cpu")
    model: Any = load_model(done.uri, device="cpu")
    width = 8 if kind == "convnext" else model.towers.image.model.config.projection_dim
    assert model.heads.widths[0] == width
    images = [data.open(e.image) for e in data.examples[:2]]
    assert model.encode_images(images).shape == (2, 8)
    if kind == "clip":  # the same vector as the model's own adapter gives, up to its length and the resizing
        views = np.stack([model.prepare_image(i)[0] for i in images])
        import torch

        found = model.towers.image.features(model.towers.image.scaled(torch.from_numpy(views))).detach().numpy()
        own: Any = load_model(uri, device="cpu")
        wanted = own.encode_images([Image.fromarray(v) for v in views])
        np.testing.assert_allclose(found / np.linalg.norm(found, axis=1, keepdims=True), wanted, atol=0.02)


def test_towers_learn_at_their_own_rate(towers: TowersConfig) -> None:
    from creperie.training.losses import make_optimiser

    student: Any = open_student(replace(towers, trained=("image",), tower_rate=0.25))
    optimiser = make_optimiser(student.network, SETTINGS)
    shares = {group["share"]: sum(w.numel() for w in group["params"]) for group in optimiser.param_groups}
    assert set(shares) == {1.0, 0.25}
    assert sum(p.numel() for p in student.network.image_tower.parameters()) == sum(
        w.numel() for g in optimiser.param_groups if g["share"] == 0.25 for w in g["params"]
    )


def test_wrong_settings_are_named(towers: TowersConfig, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown head 'transformer'"):
        replace(towers, head="transformer")
    with pytest.raises(UsageError, match="unknown tower 'audio'"):
        replace(towers, trained=("audio",))
    with pytest.raises(UsageError, match="image tower"):
        TowersConfig(text="st:x")
    tuned = TowersConfig("hf:a", "st:b", trained=("image",))  # a trained tower learns by heart
    assert (TowersConfig("hf:a", "st:b").dropout, tuned.dropout, replace(tuned, dropout=0.2).dropout) == (0.1, 0.3, 0.2)
    path = tmp_path / "towers.json"
    path.write_text(json.dumps({"model_type": "creperie-towers", "image": "hf:a", "text": "st:b", "heads": 3}))
    with pytest.raises(UsageError, match="unknown setting 'heads'"):
        open_student(str(path))


def photo(seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8))


def test_every_caption_of_a_collection_is_an_example() -> None:
    captions = ("a", "b", "c", "d", "e")
    items = [Item(str(k), "train", (f"{k}.png",), tuple(f"{c}{k}" for c in captions), ((True,) * 5,)) for k in range(6)]
    found = train_set(from_items("collection", items))
    assert len(found) == 30
    assert found.examples[4].caption == "e0"


def test_no_image_twice_in_a_batch(towers: TowersConfig) -> None:
    """A second caption of the same image would count as a wrong one."""
    from creperie.training.feed import _spread

    images = np.repeat(np.arange(40), 5)
    for seed in range(3):
        order = _spread(np.random.default_rng(seed).permutation(200), images)
        assert sorted(order) == list(range(200))
        for start in range(0, 200, 40):
            assert len(set(images[order[start : start + 40]])) == 40


def test_recalls_equal_a_count_by_hand() -> None:
    from creperie.training.retrieval import caption_ranks, image_ranks

    rng = np.random.default_rng(5)
    scores, owner = rng.normal(size=(12, 30)).round(1), np.sort(rng.integers(0, 12, 30))
    owner[:12] = np.arange(12)
    for i, rank in enumerate(image_ranks(scores, owner)):
        best = max(scores[i, c] for c in range(30) if owner[c] == i)
        assert int(rank) == 1 + sum(scores[i, c] >= best for c in range(30) if owner[c] != i)
    for c, rank in enumerate(caption_ranks(scores, owner)):
        assert int(rank) == sum(scores[i, c] >= scores[owner[c], c] for i in range(12))


def test_recalls_of_a_model(towers: TowersConfig, data: Any, tmp_path: Path) -> None:
    from creperie.training import recalls

    done = train_job(job(towers, data), tmp_path / "run", device="cpu")
    (tmp_path / "images").mkdir()
    items = []
    for k in range(6):
        photo(k).save(tmp_path / "images" / f"{k}.png")
        items.append(Item(str(k), "test", (f"{k}.png",), (f"caption {k}", f"words {k}"), ((True, True),)))
    from creperie.bench import open_store

    bench = replace(from_items("six", items), images=open_store(str(tmp_path / "images")))
    found = recalls(bench, done.uri, device="cpu")
    assert (found.images, found.captions) == (6, 12)
    percents = {(row.direction, row.at): row.percent for row in found.rows}
    assert percents["image to text", 10] >= percents["image to text", 1]
    assert percents["text to image", 10] == 100  # ten places for six images
    row = next(r for r in found.rows if r.direction == "text to image")
    assert row.low <= row.percent <= row.high
    assert row.n == 12


def test_training_from_python(scenes: Any, towers: TowersConfig, tmp_path: Path) -> None:
    import creperie as cr

    settings = TrainingSettings(batch=8, lr=1e-3)
    given: Any = {"settings": settings, "device": "cpu", "truncate": True}
    done = cr.train(scenes, towers, tmp_path / "joined", negatives="own", steps=3, **given)
    assert done.document["steps"] == 3
    assert "3 steps" in repr(done)
    assert cr.train(scenes, towers, tmp_path / "joined", steps=3, **given).uri == done.uri
    small = SmallConfig(size=32, channels=(8, 8, 16), text_width=16, heads=2, joint=16)
    plain = cr.train(
        scenes, small, tmp_path / "small", negatives=[], steps=2, settings=settings, device="cpu", tuning="full"
    )
    assert plain.document["job"]["settings"]["objective"] == "clip"
    assert plain.uri.startswith("small:")
