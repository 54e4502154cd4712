"""The open_clip adapter against the library itself. Run by test_open_clip.py in a process of its own: the library
needs torchvision, which may be importable there only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from open_clip_apart import run_as_suite
from PIL import Image

from creperie.core import CreperieError
from creperie.models import Prompt, find_prompt, load_model

CAPTIONS = ["a dog", "The small brown dog chases a cat across the green lawn near the water.", "A man rides a horse. "]
VISION = {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8}
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "tiny": {},
    "tiny-quickgelu": {"quick_gelu": True},
    "tiny-resnet-quickgelu": {"quick_gelu": True, "vision_cfg": {"image_size": 32, "layers": [1, 1, 1, 1], "width": 8}},
    "tiny-custom": {"custom_text": True},
    "tiny-last": {
        "custom_text": True,
        "init_logit_bias": -10,
        "text_cfg": {**TEXT, "no_causal_mask": True, "pool_type": "last"},
        "preprocess_cfg": {},
    },
    "tiny-coca": {
        "custom_text": True,
        "text_cfg": {**TEXT, "context_length": 76, "embed_cls": True, "output_tokens": True},
        "vision_cfg": {**VISION, "attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True},
        "multimodal_cfg": {"context_length": 76, "width": 64, "heads": 2, "layers": 1, "attn_pooler_heads": 2},
    },
}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    open_clip = pytest.importorskip("open_clip", reason="run by test_open_clip.py where the library is")

    folder = tmp_path_factory.mktemp("architectures")
    for name, changes in ARCHITECTURES.items():
        config = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": TEXT, **changes}
        config.pop("preprocess_cfg", None)
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return open_clip


def checkpoint(library: Any, name: str, path: Path) -> Path:
    torch.manual_seed(0)
    model = library.create_model(name)
    torch.save({"epoch": 1, "state_dict": {f"module.{k}": v for k, v in model.state_dict().items()}}, path)
    return path


def pictures() -> list[Image.Image]:
    rng = np.random.default_rng(0)
    noise = [Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)) for _ in range(4)]
    sizes = [(64, 48), (47, 90), (131, 57), (33, 32)]
    return [image.resize(size, Image.Resampling.BICUBIC) for image, size in zip(noise, sizes)]


@pytest.mark.parametrize(
    ("name", "trims"),
    [("tiny", True), ("tiny-quickgelu", True), ("tiny-custom", True), ("tiny-last", False), ("tiny-coca", False)],
)
def test_same_as_library(library: Any, tmp_path: Path, name: str, trims: bool) -> None:
    path = checkpoint(library, name, tmp_path / "epoch_1.pt")
    activation = "quick_gelu" if "quickgelu" in name else "gelu"
    model: Any = load_model(f"open_clip:{name}/{path}?activation={activation}", device="cpu")
    reference, _, transform = library.create_model_and_transforms(name, pretrained=str(path))
    reference.eval()
    tokens = library.get_tokenizer(name)(CAPTIONS)
    with torch.inference_mode():
        texts = reference.encode_text(tokens, normalize=True).numpy()
        images = reference.encode_image(torch.stack([transform(p) for p in pictures()]), normalize=True).numpy()
    np.testing.assert_allclose(model.encode_texts(CAPTIONS), texts, atol=1e-5)
    np.testing.assert_allclose(model.encode_images(pictures()), images, atol=1e-5)
    assert model.trims == trims
    if trims:
        prepared = model.prepare_texts(CAPTIONS)
        np.testing.assert_allclose(model.forward_texts(prepared), model.forward_padded(prepared, 77), atol=1e-6)
        alone = np.concatenate([model.encode_texts([c]) for c in CAPTIONS])
        np.testing.assert_allclose(model.encode_texts(CAPTIONS), alone, atol=1e-6)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "CMYK", "1"])
def test_pixels_of_every_mode(library: Any, tmp_path: Path, mode: str) -> None:
    path = checkpoint(library, "tiny", tmp_path / "m.pt")
    model: Any = load_model(f"open_clip:tiny/{path}?activation=gelu", device="cpu")
    _, _, transform = library.create_model_and_transforms("tiny", pretrained=str(path))
    image = pictures()[1].convert(mode)
    prepared = model.prepare_image(image)
    assert prepared.dtype == np.uint8
    given = model.pixels.batch([prepared], model.place)["pixel_values"][0]
    np.testing.assert_allclose(given.numpy(), transform(image).numpy(), atol=1e-6)


def test_half_precision(library: Any, tmp_path: Path) -> None:
    path = checkpoint(library, "tiny", tmp_path / "m.pt")
    exact, rough = (
        load_model(f"open_clip:tiny/{path}?activation=gelu", device="cpu", dtype=dtype) for dtype in ("float32", "bf16")
    )
    for method, inputs in (("encode_texts", CAPTIONS), ("encode_images", pictures())):
        one, other = getattr(exact, method)(inputs), getattr(rough, method)(inputs)
        assert other.dtype == np.float32
        assert 0 < np.abs(one - other).max() < 0.05


def test_long_captions(library: Any, tmp_path: Path) -> None:
    path = checkpoint(library, "tiny", tmp_path / "m.pt")
    model: Any = load_model(f"open_clip:tiny/{path}?activation=gelu", device="cpu")
    text = "dog " * 90
    (tokens,) = model.prepare_texts([text])
    np.testing.assert_array_equal(tokens.ids, library.get_tokenizer("tiny")([text])[0].numpy())
    assert tokens.cut == 15


def test_local_folder(library: Any, tmp_path: Path) -> None:
    model = library.create_model("tiny-quickgelu")
    torch.save(model.state_dict(), tmp_path / "open_clip_pytorch_model.bin")
    config = {"model_cfg": library.get_model_config("tiny-quickgelu"), "preprocess_cfg": {"mean": [0.5, 0.5, 0.5]}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    loaded: Any = load_model(f"open_clip:local-dir:{tmp_path}", device="cpu")
    assert loaded.fingerprint.architecture.endswith("(quick_gelu)")
    assert loaded.pixels.recipe.mean == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        (
            "open_clip:ViT-B-32/openai",
            r"trained with QuickGELU and ViT-B-32 has GELU; write open_clip:ViT-B-32-quickgelu/",
        ),
        (
            "open_clip:ViT-H-14/dfn5b",
            r"trained with QuickGELU and ViT-H-14 has GELU; write open_clip:ViT-H-14-quickgelu/",
        ),
        ("open_clip:ViT-B32/openai", "unknown open_clip architecture 'ViT-B32'; did you mean 'ViT-B-32'"),
        ("open_clip:ViT-B-32/laion2b_s34b", "unknown tag of ViT-B-32 'laion2b_s34b'; did you mean 'laion2b_s34b_b79k'"),
        ("open_clip:ViT-B-32", "the URI names no weights.*laion400m_e31"),
        ("open_clip:ViT-B-32//no/such.pt?activation=gelu", "there is no file '/no/such.pt'"),
        ("open_clip:hf-hub:owner/none", "cannot load hf-hub:owner/none with its own weights"),
        ("open_clip:ViT-B-32/laion2b_s34b_b79k", "cannot load ViT-B-32 with laion2b_s34b_b79k.*give a file"),
    ],
)
def test_wrong_names(library: Any, uri: str, message: str) -> None:
    with pytest.raises(CreperieError, match=message) as caught:
        load_model(uri, device="cpu")
    assert "\n" not in str(caught.value)


def test_every_tag_has_an_architecture_that_loads_it(library: Any) -> None:
    """The error names another architecture; that one must be there and be accepted."""
    from creperie.models.openclip import _quick_gelu

    refused = 0
    for architecture, tag in library.list_pretrained():
        try:
            _quick_gelu(library, architecture, tag, None, "open_clip:x")
        except CreperieError as e:
            refused += 1
            right = e.hint.removeprefix("write open_clip:").removesuffix("/…")
            assert _quick_gelu(library, right, tag, None, "open_clip:x") is True
    assert refused > 20


def test_checkpoint_and_wrong_activation(library: Any, tmp_path: Path) -> None:
    path = checkpoint(library, "tiny-quickgelu", tmp_path / "negclip.pt")
    with pytest.raises(CreperieError, match="does not say which activation"):
        load_model(f"open_clip:tiny/{path}", device="cpu")
    with pytest.raises(CreperieError, match="write open_clip:tiny-quickgelu/"):
        load_model(f"open_clip:tiny/{path}?activation=quick_gelu", device="cpu")


@pytest.mark.parametrize(
    ("file", "architecture", "tiny"),
    [
        ("negclip.pth", "ViT-B-32-quickgelu", "tiny-quickgelu"),
        ("cyclip.pt", "RN50-quickgelu", "tiny-resnet-quickgelu"),
    ],
)
def test_released_checkpoints_are_loaded_as_the_recipe_names_them(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, architecture: str, tiny: str
) -> None:
    """NegCLIP's and CyCLIP's files are whole training states: epoch, name, `module.` weights, optimizer, scaler."""
    import creperie as cr
    from creperie.recipes import find_recipe, read_recipe

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    trained = library.create_model(tiny).eval()
    optimizer = torch.optim.AdamW(trained.parameters())
    weights = {f"module.{name}": value.clone() for name, value in trained.state_dict().items()}
    state = {"epoch": 5, "name": "run", "state_dict": weights, "optimizer": optimizer.state_dict(), "scaler": {"x": 1}}
    torch.save(state, file)
    stages = {s.name: s.options for s in read_recipe(find_recipe("sugarcrepe++"), "paper").stages}
    (uri,) = [uri for uri in stages["score"]["models"] if file in uri]
    assert uri.startswith(f"open_clip:{architecture}/")
    uri = uri.replace(architecture, tiny)
    transform = library.create_model_and_transforms(tiny)[2]
    with torch.inference_mode():
        images = trained.encode_image(torch.stack([transform(p) for p in pictures()]), normalize=True)
        texts = trained.encode_text(library.get_tokenizer(tiny)(CAPTIONS), normalize=True)
    rows = [{"image": p, "caption": CAPTIONS[0], "foil": CAPTIONS[1]} for p in pictures()]
    run = cr.score(cr.from_pandas(rows, image="image", positive="caption", negative="foil"), uri, device="cpu")
    got = np.array(run.table["image_text"].to_pylist()).reshape(4, 2)
    np.testing.assert_allclose(got, (images @ texts[:2].T).numpy(), atol=1e-5)


@pytest.mark.parametrize("name", ["tiny", "tiny-quickgelu", "tiny-custom", "tiny-last"])
def test_a_model_in_memory_is_the_model_of_its_uri(library: Any, tmp_path: Path, name: str, monkeypatch: Any) -> None:
    """`(model, preprocess, tokenizer)`, as the library gives them: equal to the last bit on one thread."""
    import creperie as cr

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    torch.set_num_threads(1)
    path = checkpoint(library, name, tmp_path / "m.pt")
    activation = "quick_gelu" if "quick" in name else "gelu"
    model, _, preprocess = library.create_model_and_transforms(name, pretrained=str(path), weights_only=True)
    rows = [{"image": p, "caption": CAPTIONS[0], "foil": CAPTIONS[1]} for p in pictures()]
    bench = cr.from_pandas(rows, image="image", positive="caption", negative="foil")
    run = cr.score(bench, (model, preprocess, library.get_tokenizer(name)), progress=None)
    by_uri = cr.score(bench, f"open_clip:{name}/{path}?activation={activation}", device="cpu")
    assert run.table == by_uri.table


def test_transformers_folders_beside_torchvision(tmp_path: Path) -> None:
    """With torchvision at hand transformers would resize with it, and give other pixels."""
    from creperie.testing.tiny import tiny_clip

    model: Any = load_model(f"hf:{tiny_clip(tmp_path)}", device="cpu")
    assert type(model.pixels).__name__ == "DirectPixels"


def test_llama_4_equals_the_librarys_loss(tmp_path: Path) -> None:
    """Its processor gives pixels in bfloat16, and needs torchvision; one layer looks back sixteen tokens."""
    from tiny_2025 import tiny_llama4
    from vlm_reference import Reference

    folder = tiny_llama4(tmp_path)
    model: Any = load_model(f"vlm:{folder}?prompt=one-sentence", device="cpu")
    reference, shown = Reference("llama4", folder), pictures()[:2]
    shown[1] = shown[1].resize((30, 90))  # other tiles
    scores = model.forward_groups([model.prepare_image(p) for p in shown], [model.prepare_texts(CAPTIONS)] * 2)
    question = find_prompt("one-sentence", "caption").text
    for own, picture in zip(scores, shown, strict=True):
        expected = [-reference.loss(picture, question, caption) for caption in CAPTIONS]
        np.testing.assert_allclose(own, expected, atol=1e-4, rtol=0)
    generator: Any = load_model(f"vlm:{folder}?score=choice&by=generate", device="cpu").generator
    asked = [Prompt((("user", "a dog or a cat?"),), (picture,), max_tokens=8) for picture in shown for _ in range(2)]
    assert generator.generate(asked) == [generator.generate([one])[0] for one in asked]


def named_models() -> list[str]:
    """Every open_clip: name in the recipes and in the table of published models."""
    import re
    from importlib.resources import files

    texts = [p.read_text() for p in files("creperie.recipes").joinpath("cookbook").iterdir() if p.name.endswith("yaml")]
    texts.append(files("creperie.reporting").joinpath("published", "models.toml").read_text())
    return sorted({name for text in texts for name in re.findall(r"open_clip:[^\s\"',]+", text)})


def test_every_model_that_is_named_is_in_the_library(library: Any) -> None:
    """The architecture and the tag exist, and the activation is the one that the weights were trained with."""
    from creperie.models import parse_uri
    from creperie.models.openclip import _architecture_and_weights, _quick_gelu

    def look(name: str) -> None:
        architecture, source = _architecture_and_weights(library, parse_uri(name))
        _quick_gelu(library, architecture, source, None, name)

    names = named_models()
    assert len(names) > 15
    assert any("xlm-roberta-large" in name for name in names)
    for name in names:
        if ".pt" not in name:  # the others are files that their authors released
            look(name)
    for wrong, told in (("RN50/openai", "QuickGELU"), ("RN50/nowhere", "tag of RN50")):
        with pytest.raises(CreperieError, match=told):
            look(f"open_clip:{wrong}")


if __name__ == "__main__":
    sys.exit(run_as_suite(__file__))
