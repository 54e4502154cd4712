"""Released CLIP-shaped files: a transformers model is written in OpenAI's layout, and must come back the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from creperie.core.errors import CreperieError
from creperie.models import load_model

#: the tiny towers are 32 wide with 2 heads; without options heads would be 64 wide
HEADS = "vision_heads=2&text_heads=2"


def openai_state(folder: Path) -> dict[str, torch.Tensor]:
    """OpenAI's layout, written out by hand for the test: stacked q, k, v; projections as right factors."""
    from transformers import CLIPModel

    old = CLIPModel.from_pretrained(folder).state_dict()
    new = {
        "visual.conv1.weight": old["vision_model.embeddings.patch_embedding.weight"],
        "visual.class_embedding": old["vision_model.embeddings.class_embedding"],
        "visual.positional_embedding": old["vision_model.embeddings.position_embedding.weight"],
        "visual.proj": old["visual_projection.weight"].T,
        "token_embedding.weight": old["text_model.embeddings.token_embedding.weight"],
        "positional_embedding": old["text_model.embeddings.position_embedding.weight"],
        "text_projection": old["text_projection.weight"].T,
        "logit_scale": old["logit_scale"],
    }
    for norm, source in (
        ("visual.ln_pre", "vision_model.pre_layrnorm"),
        ("visual.ln_post", "vision_model.post_layernorm"),
        ("ln_final", "text_model.final_layer_norm"),
    ):
        new |= {f"{norm}.{kind}": old[f"{source}.{kind}"] for kind in ("weight", "bias")}
    for tower, source in (("visual.transformer", "vision_model"), ("transformer", "text_model")):
        for n in range(2):
            block, layer = f"{tower}.resblocks.{n}", f"{source}.encoder.layers.{n}"
            for kind in ("weight", "bias"):
                stacked = torch.cat([old[f"{layer}.self_attn.{x}_proj.{kind}"] for x in "qkv"])
                new[f"{block}.attn.in_proj_{kind}"] = stacked
                new[f"{block}.attn.out_proj.{kind}"] = old[f"{layer}.self_attn.out_proj.{kind}"]
                new[f"{block}.ln_1.{kind}"] = old[f"{layer}.layer_norm1.{kind}"]
                new[f"{block}.ln_2.{kind}"] = old[f"{layer}.layer_norm2.{kind}"]
                new[f"{block}.mlp.c_fc.{kind}"] = old[f"{layer}.mlp.fc1.{kind}"]
                new[f"{block}.mlp.c_proj.{kind}"] = old[f"{layer}.mlp.fc2.{kind}"]
    return {name: value.clone().contiguous() for name, value in new.items()}


@pytest.fixture(scope="module")
def state(clip_folder: Path) -> dict[str, torch.Tensor]:
    return openai_state(clip_folder)


class Holder(torch.nn.Module):
    def forward(self) -> int:
        return 0


def scripted(state: dict[str, torch.Tensor], path: Path) -> None:
    """As OpenAI released its models: an archived program whose parameters have these names."""
    root = Holder()
    for name, value in state.items():
        *inner, last = name.split(".")
        module = root
        for part in inner:
            if not hasattr(module, part):
                module.add_module(part, Holder())
            module = getattr(module, part)
        module.register_parameter(last, torch.nn.Parameter(value))
    torch.jit.script(root).save(str(path))


def saved(content: Any) -> Callable[[dict[str, torch.Tensor], Path], None]:
    return lambda state, path: torch.save(content(state), path)


LAYOUTS: dict[str, tuple[Callable[[dict[str, torch.Tensor], Path], None], str]] = {
    "bare": (saved(lambda s: s), ""),
    "half": (saved(lambda s: {k: v.half() for k, v in s.items()}), ""),
    "open_clip training file": (
        saved(lambda s: {"epoch": 3, "name": "run", "state_dict": {f"module.{k}": v for k, v in s.items()}}),
        "",
    ),
    "text tower apart": (
        saved(lambda s: {k if k.startswith("visual") or k == "logit_scale" else f"text.{k}": v for k, v in s.items()}),
        "",
    ),
    "archived program": (scripted, "&unsafe_pickle=true"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_as_the_model_it_came_from(
    tmp_path: Path,
    clip_folder: Path,
    state: dict[str, torch.Tensor],
    captions: list[str],
    pictures: list[Image.Image],
    layout: str,
) -> None:
    write, options = LAYOUTS[layout]
    path = tmp_path / "model.pt"
    write(state, path)
    original: Any = load_model(f"hf:{clip_folder}", device="cpu")
    uri = f"clip:{path}?activation=quick_gelu&tokenizer={clip_folder}&{HEADS}{options}"
    model: Any = load_model(uri, device="cpu")
    tolerance = 3e-3 if layout == "half" else 1e-5
    np.testing.assert_allclose(model.encode_texts(captions), original.encode_texts(captions), atol=tolerance)
    square = [p.resize((32, 32)) for p in pictures]  # the two libraries place odd crops differently
    np.testing.assert_allclose(model.encode_images(square), original.encode_images(square), atol=tolerance)


def test_crops_like_torchvision(tmp_path: Path, clip_folder: Path, state: dict[str, torch.Tensor]) -> None:
    """torchvision's CenterCrop rounds half a pixel to the even side; transformers goes down."""
    torch.save(state, tmp_path / "m.pt")
    model: Any = load_model(f"clip:{tmp_path}/m.pt?activation=gelu&tokenizer={clip_folder}&{HEADS}", device="cpu")
    for width, left in ((35, 2), (33, 0), (37, 2), (39, 4)):
        image = Image.fromarray(np.arange(32 * width * 3, dtype=np.uint8).reshape(32, width, 3))
        expected = np.asarray(image.crop((left, 0, left + 32, 32)))
        np.testing.assert_array_equal(model.prepare_image(image), expected)


def test_activation_must_be_said_and_matters(
    tmp_path: Path, clip_folder: Path, state: dict[str, torch.Tensor], captions: list[str]
) -> None:
    path = tmp_path / "model.pt"
    torch.save(state, path)
    with pytest.raises(CreperieError, match=r"does not say which activation.*add \?activation=quick_gelu"):
        load_model(f"clip:{path}", device="cpu")
    models: list[Any] = [
        load_model(f"clip:{path}?activation={a}&tokenizer={clip_folder}&{HEADS}", device="cpu")
        for a in ("quick_gelu", "gelu")
    ]
    assert np.abs(models[0].encode_texts(captions) - models[1].encode_texts(captions)).max() > 1e-4
    assert models[0].fingerprint.key != models[1].fingerprint.key


class Evil:
    """Unpickling this would make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path, state: dict[str, torch.Tensor]) -> None:
    path, proof = tmp_path / "model.pt", tmp_path / "proof"
    torch.save({"state_dict": state, "args": Evil(proof)}, path)
    with pytest.raises(CreperieError, match=r"holds more than weights.*add \?unsafe_pickle=true"):
        load_model(f"clip:{path}?activation=gelu", device="cpu")
    assert not proof.exists()


def test_an_argparse_namespace_needs_the_flag(
    tmp_path: Path, clip_folder: Path, state: dict[str, torch.Tensor]
) -> None:
    import argparse

    path = tmp_path / "model.pt"
    torch.save({"model": state, "args": argparse.Namespace(lr=1)}, path)
    uri = f"clip:{path}?activation=gelu&tokenizer={clip_folder}&{HEADS}"
    with pytest.raises(CreperieError, match="unsafe_pickle"):
        load_model(uri, device="cpu")
    assert load_model(f"{uri}&unsafe_pickle=true", device="cpu").fingerprint.context == 77


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("ln_final.bias"), "lacks text_model.final_layer_norm.bias"),
        (lambda s: s.update({"transformer.resblocks.0.attn.lora_A": torch.zeros(2)}), "unknown weight .*lora_A"),
        (lambda s: s.pop("visual.proj"), "no 'visual.proj', so it is not laid out like OpenAI's CLIP"),
        (lambda s: s.update({"visual.layer1.0.conv1.weight": torch.zeros(2)}), "ResNet vision tower; .*open_clip:RN50"),
    ],
)
def test_what_is_no_clip(
    tmp_path: Path,
    clip_folder: Path,
    state: dict[str, torch.Tensor],
    change: Callable[[dict[str, torch.Tensor]], Any],
    message: str,
) -> None:
    changed = dict(state)
    change(changed)
    torch.save(changed, tmp_path / "m.pt")
    with pytest.raises(CreperieError, match=message):
        load_model(f"clip:{tmp_path}/m.pt?activation=gelu&tokenizer={clip_folder}&{HEADS}", device="cpu")


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(CreperieError, match="is not a checkpoint"):
        load_model(f"clip:{tmp_path}/m.pt?activation=gelu", device="cpu")
    with pytest.raises(CreperieError, match="not a checkpoint that torch can read"):
        load_model(f"clip:{tmp_path}/m.pt?activation=gelu&unsafe_pickle=true", device="cpu")
    with pytest.raises(CreperieError, match="there is no file"):
        load_model(f"clip:{tmp_path}/none.pt?activation=gelu", device="cpu")


@pytest.mark.parametrize(
    ("vision", "text", "heads"),
    [(768, 512, (12, 8)), (1024, 768, (16, 12)), (1280, 1024, (16, 16)), (1664, 1280, (16, 20))],
)
def test_heads_of_the_published_sizes(vision: int, text: int, heads: tuple[int, int]) -> None:
    """ViT-B, ViT-L, ViT-H and ViT-bigG, as open_clip's configurations state them."""
    from creperie.models.clip_layout import clip_shape

    shape = clip_shape(
        {
            "visual.conv1.weight": torch.empty(vision, 3, 14, 14, device="meta"),
            "visual.positional_embedding": torch.empty(257, vision, device="meta"),
            "visual.proj": torch.empty(vision, 8, device="meta"),
            "token_embedding.weight": torch.empty(49408, text, device="meta"),
            "positional_embedding": torch.empty(77, text, device="meta"),
        },
        uri="clip:x",
    )
    assert (shape.vision_heads, shape.text_heads) == heads
    assert (shape.image, shape.patch, shape.context, shape.vocabulary) == (224, 14, 77, 49408)
