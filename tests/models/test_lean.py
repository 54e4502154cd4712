"""CLIP's towers with less work: the same vectors as the library's own forward pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_rare import tiny_siglip

from creperie.models import load_model
from creperie.models.device import Place
from creperie.models.hf.dual import DualEncoder
from creperie.models.hf.lean import LeanEncoder, beginnings, encoder_for, pooled_positions
from creperie.testing.tiny import tiny_clip

CAPTIONS = [
    "a dog chases a cat",
    "a dog chases a cat across the green lawn",
    "a dog chases a cat.",
    "",
    "A DOG chases a cat",
    "the fence stands behind the house, and the house stands behind the old yellow bus " * 9,
    "two children play",
]


@pytest.fixture(params=["new", "legacy"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return load_model(f"hf:{tiny_clip(tmp_path, legacy_eos=request.param == 'legacy')}", device="cpu")


def pictures() -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(5)]


def test_captions_as_the_library_reads_them(model: Any) -> None:
    assert isinstance(model, LeanEncoder)
    tokens = [model.tokenizer.tokenizer(c, truncation=True, max_length=77, return_tensors="pt") for c in CAPTIONS]
    with torch.inference_mode():
        one_by_one = [model.model.get_text_features(input_ids=t["input_ids"]).pooler_output[0] for t in tokens]
    expected = torch.nn.functional.normalize(torch.stack(one_by_one), dim=-1).numpy()
    np.testing.assert_allclose(model.encode_texts(CAPTIONS), expected, atol=1e-6)


def test_images_as_the_library_sees_them(model: Any) -> None:
    pixels = model.pixels.batch([model.prepare_image(p) for p in pictures()], model.place)
    with torch.inference_mode():
        features = model.model.get_image_features(**pixels).pooler_output
    expected = torch.nn.functional.normalize(features, dim=-1).numpy()
    np.testing.assert_allclose(model.encode_images(pictures()), expected, atol=1e-6)


def test_beginnings_are_counted_once() -> None:
    captions = [np.array(c) for c in ([1, 2, 3], [1, 2, 4, 5], [1, 2, 3], [6])]
    found = beginnings(captions)
    assert found.tokens.tolist() == [1, 2, 3, 4, 5, 6]
    for row, caption in enumerate(captions):
        assert found.tokens[found.places[row, : len(caption)]].tolist() == caption.tolist()
    assert (found.places.ravel()[found.first] == np.arange(6)).all()


def test_the_first_end_token_is_read() -> None:
    ids = np.array([[5, 9, 7, 9], [9, 1, 1, 1]])
    assert pooled_positions(ids, 9).tolist() == [1, 0]
    assert pooled_positions(ids, 2).tolist() == [1, 0]


def test_a_tower_that_does_not_agree_is_not_used(model: Any) -> None:
    model.model.text_model.encoder.layers[-1].self_attn.num_heads = 4  # not what the library's own pass would do
    towers = model_towers()
    assert encoder_for(model.model, towers, Place("cpu", "float32")) == (DualEncoder, towers)


def model_towers() -> Any:
    from creperie.models.hf.families import FAMILIES

    return FAMILIES["clip"].towers


def test_only_where_it_applies(model: Any, tmp_path: Path) -> None:
    towers = model_towers()
    assert encoder_for(model.model, towers, Place("cpu", "bfloat16"))[0] is DualEncoder
    other = load_model(f"hf:{tiny_siglip(tmp_path / 'siglip')}", device="cpu")
    assert not isinstance(other, LeanEncoder)
    padded = load_model(f"{model.fingerprint.uri}?pad_to=77", device="cpu")
    assert not isinstance(padded, LeanEncoder)
