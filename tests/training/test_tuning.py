"""Ways of tuning a CLIP checkpoint of transformers: what moves, what merges, what is forgotten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file

from creperie.bench import Item, choice, from_items
from creperie.core import UnknownNameError, UsageError
from creperie.models import load_model
from creperie.training import TrainingJob, TrainingSettings, Tuning, open_student, train_job
from creperie.training.settings import prepare
from creperie.training.tuning_study import split_by_image

SETTINGS = TrainingSettings(steps=3, batch=8, lr=1e-3, warmup=0)
ADAPTED = ("q_proj.weight", "v_proj.weight")


def moved(clip_folder: Path, out: Path) -> set[str]:
    """The weights that a training changed."""
    before, after = load_file(clip_folder / "model.safetensors"), load_file(out / "model" / "model.safetensors")
    assert before.keys() == after.keys()
    return {name for name in before if not before[name].equal(after[name])}


@pytest.mark.parametrize("way", ["frozen", "full", "text", "lora"])
def test_only_what_is_tuned_moves(way: str, data: Any, clip_folder: Path, tmp_path: Path) -> None:
    job = TrainingJob(open_student(f"hf:{clip_folder}"), data, SETTINGS, Tuning(way), truncate=True)
    done = train_job(job, tmp_path / way, device="cpu")
    names = moved(clip_folder, tmp_path / way)
    everything = set(load_file(clip_folder / "model.safetensors"))
    text = {name for name in everything if name.startswith("text_")}
    expected = {
        "frozen": set(),
        "full": everything,
        "text": text,
        "lora": {name for name in everything if name.endswith(ADAPTED)},
    }
    assert names <= expected[way]
    assert len(names) >= 0.9 * len(expected[way])  # a few have no gradient: unused positions, a key's bias
    assert done.document["steps"] == (0 if way == "frozen" else 3)


def test_merged_adapters_score_through_the_uri_as_they_were_trained(
    data: Any, clip_folder: Path, tmp_path: Path
) -> None:
    import torch

    from creperie.training.losses import unit

    student = open_student(f"hf:{clip_folder}")
    done = train_job(
        TrainingJob(student, data, SETTINGS, Tuning("lora", rank=2), truncate=True), tmp_path / "a", device="cpu"
    )
    captions = [e.caption for e in data.examples[:6]]
    pictures = [data.open(e.image) for e in data.examples[:6]]
    student.network.eval()
    with torch.no_grad():
        pixels = student.pixels(torch.from_numpy(np.stack([student.prepare_image(p) for p in pictures])))
        shown, said, _ = student.network(pixels, student.ids(student.prepare_texts(captions)))
    loaded: Any = load_model(done.uri, device="cpu")
    before: Any = load_model(f"hf:{clip_folder}", device="cpu")
    assert np.abs(loaded.encode_texts(captions) - unit(said).numpy()).max() < 1e-5
    assert np.abs(loaded.encode_images(pictures) - unit(shown).numpy()).max() < 1e-5
    assert np.abs(before.encode_texts(captions) - unit(said).numpy()).max() > 1e-4


def test_lora_trains_a_few_weights_of_the_rank_that_was_asked_for(clip_folder: Path) -> None:
    few = prepare(open_student(f"hf:{clip_folder}"), Tuning("lora", rank=1))
    more = prepare(open_student(f"hf:{clip_folder}"), Tuning("lora", rank=3))
    # two towers of two layers, two matrices of 32 × 32 each: (32 + 32) weights a rank
    assert (few, more) == (8 * 64, 3 * 8 * 64)


def test_merged_weights_are_the_old_ones_and_the_scaled_product_of_the_adapters(clip_folder: Path) -> None:
    """W + alpha / rank · B A, by hand; merging leaves the adapters in the model that is trained."""
    import torch

    student = open_student(f"hf:{clip_folder}")
    before = {name: weight.clone() for name, weight in student.network.model.state_dict().items()}
    prepare(student, Tuning("lora", rank=2, alpha=6))
    parts = {name: weight for name, weight in student.network.named_parameters() if "lora_" in name}
    with torch.no_grad():
        for weight in parts.values():
            weight.normal_(std=0.2)
    merged = student.network.merged().state_dict()
    assert merged.keys() == before.keys()
    layer = "text_model.encoder.layers.0.self_attn.v_proj"
    down, up = (parts[f"model.{layer}.lora_{which}.default.weight"] for which in "AB")
    assert torch.allclose(merged[f"{layer}.weight"], before[f"{layer}.weight"] + 3 * (up @ down), atol=1e-6)
    assert any("lora_" in name for name, _ in student.network.named_parameters())


def test_lora_on_a_small_model(small: Any, data: Any, tmp_path: Path) -> None:
    student = small()
    before = {name: weight.clone() for name, weight in student.network.model.state_dict().items()}
    done = train_job(
        TrainingJob(student, data, SETTINGS, Tuning("lora"), truncate=True), tmp_path / "run", device="cpu"
    )
    after = load_file(Path(done.uri.removeprefix("small:")) / "model.safetensors")
    moved = {name for name in before if not before[name].equal(after[name])}
    assert moved == {name for name in before if name.endswith("qkv.weight")}
    with pytest.raises(UsageError, match="no layer is called fc1; name other layers"):
        prepare(small(), Tuning("lora", targets=("fc1",)))
    with pytest.raises(UnknownNameError, match="did you mean 'lora'"):
        Tuning("lorra")


def test_other_kinds_of_models_cannot_be_trained() -> None:
    with pytest.raises(UsageError, match="'st' cannot be trained"):
        open_student("st:some/encoder")


# -- the split -------------------------------------------------------------------------------------------------------


def bench_of(images: list[list[int]]) -> Any:
    """Subset s has an item for every number in images[s], which names its image."""
    items = [
        Item(str(k), f"s{s}", (f"{image}.png",), (f"caption {s} {k}", "foil"), choice(1, 1))
        for s, own in enumerate(images)
        for k, image in enumerate(own)
    ]
    return from_items("made", items)


@given(
    images=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=40), min_size=1, max_size=4),
    seed=st.integers(0, 5),
)
def test_no_image_is_on_both_sides_and_no_item_is_lost(images: list[list[int]], seed: int) -> None:
    bench = bench_of(images)
    learn, test = split_by_image(bench, 0.4, seed)
    sides = [{key for item in side for key in item.images} for side in (learn, test)]
    assert not sides[0] & sides[1]
    keys = sorted((i.subset, i.id) for side in (learn, test) for i in side)
    assert keys == sorted((i.subset, i.id) for i in bench)


def test_shares_hold_in_every_subset() -> None:
    rng = np.random.default_rng(0)
    bench = bench_of([rng.integers(0, 300, n).tolist() for n in (100, 250, 60)])
    for seed in (0, 1):
        learn, _ = split_by_image(bench, 0.4, seed)
        for name, size in bench.subsets.items():
            assert abs(learn.subsets[name] - 0.4 * size) <= 3
    one, other = (sorted((i.subset, i.id) for i in split_by_image(bench, 0.4, s)[0]) for s in (0, 1))
    assert one != other


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_a_share_must_leave_something_on_both_sides(share: float) -> None:
    with pytest.raises(UsageError, match="share"):
        split_by_image(bench_of([[1, 2, 3]]), share)


# -- Table 13 --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_flava_is_tuned_as_it_is_scored(tmp_path: Path, own_cache: None) -> None:
    """The vectors in training are those of `hf:`, padding or not; all three ways of Table 13 work on it."""
    import torch

    from creperie.testing.tiny import tiny_flava
    from creperie.training import tune
    from creperie.world import World, make_world

    uri = f"hf:{tiny_flava(tmp_path / 'flava')}"
    scored: Any = load_model(uri, device="cpu")
    student = open_student(uri)
    captions = ["a dog", "a small brown dog chases a cat across the lawn"]
    picture = Image.new("RGB", (48, 40), (200, 30, 60))
    with torch.inference_mode():
        stacked = torch.from_numpy(np.stack([student.prepare_image(picture)]))
        student.network.eval()
        images, texts, _ = student.network(student.pixels(stacked), student.ids(student.prepare_texts(captions)))
    for ours, theirs in ((images, scored.encode_images([picture])), (texts, scored.encode_texts(captions))):
        unit = torch.nn.functional.normalize(ours, dim=-1).numpy()
        np.testing.assert_allclose(unit, theirs, atol=1e-5)
    bench = make_world(World(items=12, kinds=("swap_obj",), forms=("triple",), size=32))
    settings = replace(SETTINGS, objective="triple", batch=4)
    found = tune(bench, uri, tmp_path / "runs", settings=settings, pairs=4, device="cpu")
    weights = [row.trained_weights for row in found.rows]
    assert weights[0] == 0 < weights[2] < weights[1]
    tuned: Any = load_model(found.rows[2].model, device="cpu")
    assert not np.array_equal(tuned.encode_texts(captions), scored.encode_texts(captions))


@pytest.mark.slow
def test_ways_of_tuning_side_by_side(clip_folder: Path, tmp_path: Path, own_cache: None) -> None:
    from creperie.training import table_13, tune
    from creperie.world import World, make_world

    bench = make_world(World(items=12, kinds=("swap_obj", "swap_att"), forms=("triple",), size=32))
    settings = replace(SETTINGS, objective="triple", batch=4)
    given = {"settings": settings, "train_on": ("swap_obj_triple",), "pairs": 10, "device": "cpu"}
    found = tune(bench, f"hf:{clip_folder}", tmp_path / "runs", **given)
    assert [row.way for row in found.rows] == ["frozen", "full", "lora"]
    assert found.rows[0].trained_weights == 0 < found.rows[2].trained_weights < found.rows[1].trained_weights
    table = table_13(found)
    assert [row[0] for row in table.rows[:2]] == ["swap_obj_triple", "swap_att_triple (not trained on)"]
    assert {row[0] for row in table.rows[2:]} >= {
        "recall image to text @1",
        "recall text to image @10",
        "trained weights",
    }
    before: Any = load_model(f"hf:{clip_folder}", device="cpu")
    frozen: Any = load_model(found.rows[0].model, device="cpu")
    assert np.array_equal(before.encode_texts(["a dog"]), frozen.encode_texts(["a dog"]))
