"""Matching heads against the library's own forward pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_rare
from PIL import Image

from creperie.core import CreperieError
from creperie.models import PairEncoder, PairScorer, load_model
from creperie.testing import tiny

MAKERS: dict[str, Callable[[Path], Path]] = {
    "blip": tiny_rare.tiny_blip,
    "blip-2": tiny_rare.tiny_blip2,
    "bridgetower": tiny_rare.tiny_bridgetower,
    "flava": tiny.tiny_flava,
    "vilt": tiny_rare.tiny_vilt,
}
CLASSES = {
    "blip": "BlipForImageTextRetrieval",
    "blip-2": "Blip2ForImageTextRetrieval",
    "bridgetower": "BridgeTowerForImageAndTextRetrieval",
    "flava": "FlavaForPreTraining",
    "vilt": "ViltForImageAndTextRetrieval",
}


@pytest.fixture(scope="module", params=MAKERS)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, MAKERS[request.param](tmp_path_factory.mktemp(request.param))


def library_logits(name: str, folder: Path, picture: Image.Image, caption: str) -> np.ndarray:
    """One image with one caption through the whole model, padded to the full context."""
    import torch
    import transformers

    model = getattr(transformers, CLASSES[name]).from_pretrained(folder).eval()
    texts = transformers.AutoTokenizer.from_pretrained(folder)([caption], padding="max_length", return_tensors="pt")
    texts.pop("token_type_ids", None)
    image = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(picture, return_tensors="pt")
    switches: dict[str, dict[str, Any]] = {
        "blip-2": {"use_image_text_matching_head": True},
        "flava": {"return_loss": False},
    }
    with torch.inference_mode():
        output = model(**texts, **image, **switches.get(name, {}))
    field = {"blip": "itm_score", "blip-2": "logits_per_image", "flava": "itm_logits"}.get(name, "logits")
    return np.asarray(getattr(output, field))[0]


def test_same_as_library(family: tuple[str, Path], captions: list[str], pictures: list[Image.Image]) -> None:
    name, folder = family
    by_value = {}
    for value in ("prob", "logit", "margin"):
        model = load_model(f"hf:{folder}?score=itm&value={value}", device="cpu")
        assert isinstance(model, PairScorer)
        by_value[value] = model.score_pairs(pictures[1], captions)
    logits = np.stack([library_logits(name, folder, pictures[1], caption) for caption in captions])
    match = logits[:, -1]
    margin = match if logits.shape[1] == 1 else match - logits[:, 0]
    np.testing.assert_allclose(by_value["logit"], match, atol=1e-5)
    np.testing.assert_allclose(by_value["margin"], margin, atol=1e-5)
    np.testing.assert_allclose(by_value["prob"], 1 / (1 + np.exp(-margin)), atol=1e-5)
    assert np.ptp(margin) > 1e-3, "the tiny model must tell captions apart"


def test_independent_of_batch(family: tuple[str, Path], captions: list[str], pictures: list[Image.Image]) -> None:
    model = load_model(f"hf:{family[1]}?score=itm&value=margin", device="cpu")
    assert isinstance(model, PairScorer)
    together = model.score_pairs(pictures[3], captions)
    alone = np.concatenate([model.score_pairs(pictures[3], [c]) for c in captions])
    assert together.dtype == np.float32
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_staged_is_the_same(family: tuple[str, Path], captions: list[str], pictures: list[Image.Image]) -> None:
    model: Any = load_model(f"hf:{family[1]}?score=itm", device="cpu")
    assert hasattr(model, "forward_pairs")
    prepared = model.prepare_image(pictures[0]), model.prepare_texts(captions)
    np.testing.assert_array_equal(model.forward_pairs(*prepared), model.score_pairs(pictures[0], captions))


def test_the_default_of_models_without_contrastive_head(tmp_path: Path) -> None:
    model = load_model(f"hf:{tiny_rare.tiny_vilt(tmp_path)}", device="cpu")
    assert isinstance(model, PairScorer)
    assert model.fingerprint.options == {"score": "itm", "value": "prob"}


def test_vilt_draws_patches_from_its_own_seed(tmp_path: Path, captions: list[str], pictures: list[Image.Image]) -> None:
    """With more patches than its limit, ViLT draws some at random; the global generator must not matter or change."""
    import torch

    model = load_model(f"hf:{tiny_rare.tiny_vilt(tmp_path, max_patches=6)}", device="cpu")
    assert isinstance(model, PairScorer)
    torch.manual_seed(1)
    first = model.score_pairs(pictures[0], captions)
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), after)
    torch.manual_seed(2)
    np.testing.assert_array_equal(model.score_pairs(pictures[0], captions), first)


def test_vilt_fused_vectors(tmp_path: Path, captions: list[str], pictures: list[Image.Image]) -> None:
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, ViltModel

    folder = tiny_rare.tiny_vilt(tmp_path)
    model = load_model(f"hf:{folder}?score=fused", device="cpu")
    assert isinstance(model, PairEncoder)
    assert not isinstance(model, PairScorer)
    library = ViltModel.from_pretrained(folder).eval()
    image = AutoImageProcessor.from_pretrained(folder, backend="pil")([pictures[2]] * 4, return_tensors="pt")
    texts = AutoTokenizer.from_pretrained(folder)(captions, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = library(**texts, **image).last_hidden_state[:, 0]
    expected = torch.nn.functional.normalize(states, dim=-1).numpy()
    np.testing.assert_allclose(model.encode_pairs(pictures[2], captions), expected, atol=1e-5)


def test_value_belongs_to_matching_heads(tmp_path: Path) -> None:
    folder = tiny_rare.tiny_blip(tmp_path)
    with pytest.raises(CreperieError, match="option 'value' does not apply to blip models used this way"):
        load_model(f"hf:{folder}?value=logit", device="cpu")


def test_checkpoint_without_the_head(tmp_path: Path) -> None:
    """A captioning checkpoint has no matching head: random weights would answer, so it is refused."""
    from transformers import BlipConfig, BlipForConditionalGeneration

    from creperie.testing.tiny import save

    folder = tiny_rare.tiny_blip(tmp_path / "whole")
    config = BlipConfig.from_pretrained(folder)
    save(folder, BlipForConditionalGeneration(config))
    with pytest.raises(CreperieError, match=r"lacks \d+ of the weights .* of BlipForImageTextRetrieval"):
        load_model(f"hf:{folder}?score=itm", device="cpu")
