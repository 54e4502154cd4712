"""Every family of dual encoders against the library's own forward pass, on a tiny checkpoint of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_rare
from PIL import Image

from creperie.models import ImageEncoder, Model, StagedImages, StagedTexts, TextEncoder, load_model
from creperie.testing import tiny

#: family → how its tiny checkpoint is made, and whether cutting at the longest caption is exact
FAMILIES: dict[str, tuple[Callable[[Path], Path], bool]] = {
    "align": (tiny_rare.tiny_align, True),
    "altclip": (tiny_rare.tiny_altclip, True),
    "blip": (tiny_rare.tiny_blip, True),
    "blip-2": (tiny_rare.tiny_blip2, True),
    "clip": (tiny.tiny_clip, True),
    "flava": (tiny.tiny_flava, True),
    "lit": (tiny_rare.tiny_lit, True),
    "siglip": (tiny_rare.tiny_siglip, False),
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    name: str = request.param
    return name, FAMILIES[name][0](tmp_path_factory.mktemp(name))


def library_inputs(folder: Path, captions: list[str], pictures: list[Image.Image]) -> Any:
    """As the library's processors make them: captions padded to the full context."""
    from transformers import AutoImageProcessor, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = tokenizer(captions, padding="max_length", truncation=True, return_tensors="pt")
    texts.pop("token_type_ids", None)
    return {**texts, **AutoImageProcessor.from_pretrained(folder, backend="pil")(pictures, return_tensors="pt")}


def library_scores(name: str, folder: Path, captions: list[str], pictures: list[Image.Image]) -> np.ndarray:
    """Cosines, images by captions, from one call of the whole model."""
    import torch
    import transformers

    classes = {
        "blip": "BlipForImageTextRetrieval",
        "blip-2": "Blip2ForImageTextRetrieval",
        "flava": "FlavaForPreTraining",
    }
    model = getattr(transformers, classes.get(name, "AutoModel")).from_pretrained(folder).eval()
    inputs = library_inputs(folder, captions, pictures)
    with torch.inference_mode():
        if name == "blip":
            return np.asarray(model(**inputs, use_itm_head=False).itm_score)
        if name == "blip-2":
            return np.asarray(model(**inputs, use_image_text_matching_head=False).logits_per_image)
        if name == "flava":
            output = model(**inputs, skip_unmasked_multimodal_encoder=True, return_loss=False)
            return np.asarray(output.contrastive_logits_per_image / model.flava.logit_scale.exp())
        output = model(**inputs)
    image, text = (np.asarray(v) for v in (output.image_embeds, output.text_embeds))
    return (image / np.linalg.norm(image, axis=-1, keepdims=True)) @ (
        text / np.linalg.norm(text, axis=-1, keepdims=True)
    ).T


def scores(model: Model, captions: list[str], pictures: list[Image.Image]) -> np.ndarray:
    assert isinstance(model, ImageEncoder)
    assert isinstance(model, TextEncoder)
    products = model.encode_images(pictures) @ model.encode_texts(captions).T
    return products.max(axis=1) if products.ndim == 3 else products


def test_same_scores_as_library(family: tuple[str, Path], captions: list[str], pictures: list[Image.Image]) -> None:
    name, folder = family
    model = load_model(f"hf:{folder}", device="cpu")
    expected = library_scores(name, folder, captions, pictures)
    assert expected.shape == (4, 4)
    assert expected.std() > 0.01, "the tiny model must tell its inputs apart"
    np.testing.assert_allclose(scores(model, captions, pictures), expected, atol=1e-5)


def test_trimmed_is_padded_where_it_says_so(family: tuple[str, Path], captions: list[str]) -> None:
    name, folder = family
    model: Any = load_model(f"hf:{folder}", device="cpu")
    assert isinstance(model, StagedTexts)
    assert model.trims == FAMILIES[name][1]
    tokens = model.prepare_texts(captions)
    context = model.fingerprint.context
    assert min(len(t.ids) for t in tokens) < context
    trimmed, padded = model.forward_padded(tokens, None), model.forward_padded(tokens, context)
    if model.trims:
        np.testing.assert_allclose(trimmed, padded, atol=1e-6)
    else:
        short = model.prepare_texts(captions[:1])
        cut, full = model.forward_padded(short, None), model.forward_padded(short, context)
        assert np.abs(cut - full).max() > 1e-3, "then it could be trimmed after all"


def test_independent_of_batch(family: tuple[str, Path], captions: list[str], pictures: list[Image.Image]) -> None:
    model: Any = load_model(f"hf:{family[1]}", device="cpu")
    assert isinstance(model, StagedImages)
    together = model.encode_texts(captions), model.encode_images(pictures)
    alone = (
        np.concatenate([model.encode_texts([c]) for c in captions]),
        np.concatenate([model.encode_images([p]) for p in pictures]),
    )
    for many, one in zip(together, alone):
        assert many.dtype == np.float32
        np.testing.assert_allclose(many, one, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(many, axis=-1), 1, atol=1e-6)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_half_precision_is_near(family: tuple[str, Path], captions: list[str], pictures: list[Image.Image]) -> None:
    exact = load_model(f"hf:{family[1]}", device="cpu")
    rough = load_model(f"hf:{family[1]}", device="cpu", dtype="bf16")
    difference = np.abs(scores(exact, captions, pictures) - scores(rough, captions, pictures)).max()
    assert 0 < difference < 0.1
    assert rough.fingerprint.key != exact.fingerprint.key


def test_blip2_first_query(tmp_path: Path, captions: list[str], pictures: list[Image.Image]) -> None:
    folder = tiny_rare.tiny_blip2(tmp_path)
    best: Any = load_model(f"hf:{folder}", device="cpu")
    first: Any = load_model(f"hf:{folder}?query=first", device="cpu")
    assert best.encode_images(pictures).shape == (4, 4, 16)
    np.testing.assert_array_equal(first.encode_images(pictures), best.encode_images(pictures)[:, 0])
    assert first.fingerprint.key != best.fingerprint.key
    said = load_model(f"hf:{folder}?query=best", device="cpu")
    assert said.fingerprint.key == best.fingerprint.key


def test_flava_padding_option_changes_nothing_but_the_width(tmp_path: Path, captions: list[str]) -> None:
    folder = tiny.tiny_flava(tmp_path)
    free: Any = load_model(f"hf:{folder}", device="cpu")
    wide: Any = load_model(f"hf:{folder}?pad_to=77", device="cpu")
    assert not wide.trims
    np.testing.assert_allclose(free.encode_texts(captions), wide.encode_texts(captions), atol=1e-6)
