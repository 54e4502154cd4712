"""CLIP folders against CLIPModel's own forward pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from creperie.models import ImageEncoder, StagedImages, StagedTexts, TextEncoder, load_model
from creperie.testing.tiny import tiny_clip


def test_same_scores_as_library(clip_folder: Path, captions: list[str], pictures: list[Image.Image]) -> None:
    import torch
    from transformers import AutoProcessor, CLIPModel

    library = CLIPModel.from_pretrained(clip_folder).eval()
    inputs = AutoProcessor.from_pretrained(clip_folder)(
        text=captions, images=pictures, return_tensors="pt", padding="max_length"
    )
    with torch.inference_mode():
        output = library(**inputs)
    model = load_model(f"hf:{clip_folder}", device="cpu")
    assert isinstance(model, ImageEncoder)
    assert isinstance(model, TextEncoder)
    np.testing.assert_allclose(model.encode_texts(captions), output.text_embeds.numpy(), atol=1e-5)
    np.testing.assert_allclose(model.encode_images(pictures), output.image_embeds.numpy(), atol=1e-5)


@pytest.mark.parametrize("legacy", [False, True])
def test_trimming_is_exact(tmp_path: Path, captions: list[str], legacy: bool) -> None:
    model = load_model(f"hf:{tiny_clip(tmp_path, legacy_eos=legacy)}", device="cpu")
    assert isinstance(model, StagedTexts)
    assert model.trims
    tokens = model.prepare_texts(captions)
    assert max(len(t.ids) for t in tokens) < 77
    np.testing.assert_allclose(model.forward_texts(tokens), model.forward_padded(tokens, 77), atol=1e-6)  # type: ignore[attr-defined]


def test_prepared_images_are_bytes(clip_folder: Path, pictures: list[Image.Image]) -> None:
    model = load_model(f"hf:{clip_folder}", device="cpu")
    assert isinstance(model, StagedImages)
    prepared = [model.prepare_image(p) for p in pictures]
    assert {(p.dtype.name, p.shape) for p in prepared} == {("uint8", (32, 32, 3))}
