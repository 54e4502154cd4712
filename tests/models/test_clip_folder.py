"""What is particular to CLIP: end tokens, contexts, options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.core import CreperieError
from creperie.models import load_model
from creperie.testing.tiny import tiny_clip


@pytest.mark.parametrize("legacy", [False, True])
def test_both_ways_to_name_the_end_token(tmp_path: Path, captions: list[str], legacy: bool) -> None:
    """Old configurations call it 2 and mean the highest id; either way the vector is that of the end token."""
    import torch

    model: Any = load_model(f"hf:{tiny_clip(tmp_path, legacy_eos=legacy)}", device="cpu")
    tokens = model.prepare_texts(captions)
    for one in tokens:
        ids = torch.from_numpy(one.ids)[None]
        with torch.inference_mode():
            states = model.model.text_model(input_ids=ids).last_hidden_state[0, -1]
            expected = torch.nn.functional.normalize(model.model.text_projection(states), dim=-1)
        np.testing.assert_allclose(model.forward_texts([one])[0], expected.numpy(), atol=1e-6)
    np.testing.assert_allclose(model.forward_texts(tokens), model.forward_padded(tokens, 77), atol=1e-6)


def test_long_captions_are_cut_and_counted(clip_folder: Path) -> None:
    model: Any = load_model(f"hf:{clip_folder}", device="cpu")
    (tokens,) = model.prepare_texts(["dog " * 90])
    assert (len(tokens.ids), tokens.cut) == (77, 15)
    assert tokens.ids[-1] == model.tokenizer.tokenizer.eos_token_id


def test_prepared_images_are_bytes(clip_folder: Path, pictures: list[Image.Image]) -> None:
    model: Any = load_model(f"hf:{clip_folder}", device="cpu")
    prepared = [model.prepare_image(p) for p in pictures]
    assert {(p.dtype.name, p.shape) for p in prepared} == {("uint8", (32, 32, 3))}


def test_fingerprint_follows_content_not_name(tmp_path: Path) -> None:
    one, other = (load_model(f"hf:{tiny_clip(tmp_path / n)}", device="cpu").fingerprint for n in ("a", "b"))
    assert one.uri != other.uri
    assert one.key == other.key
    for changed in (tiny_clip(tmp_path / "c", seed=1), tiny_clip(tmp_path / "d", activation="gelu")):
        assert load_model(f"hf:{changed}", device="cpu").fingerprint.key != one.key


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("pool=mean", "option 'pool' does not apply to clip models"),
        ("lowr=true", "unknown option 'lowr'; did you mean 'lower'"),
        ("score=itm", "unknown way to score clip models 'itm'"),
        ("words=few", "option words='few' is not a positive whole number"),
        ("lower=maybe", "option lower='maybe' is neither true nor false"),
    ],
)
def test_options_that_do_not_apply(clip_folder: Path, query: str, message: str) -> None:
    with pytest.raises(CreperieError, match=message):
        load_model(f"hf:{clip_folder}?{query}", device="cpu")


def test_caption_rules_reach_the_tokenizer(clip_folder: Path) -> None:
    plain: Any = load_model(f"hf:{clip_folder}", device="cpu")
    ruled: Any = load_model(f"hf:{clip_folder}?words=2&prefix=a photo of ", device="cpu")
    (expected,) = plain.prepare_texts(["a photo of a dog"])
    (given,) = ruled.prepare_texts(["a dog chases a cat"])
    np.testing.assert_array_equal(given.ids, expected.ids)
    assert ruled.fingerprint.key != plain.fingerprint.key


def test_tokenizer_with_another_end_token(tmp_path: Path) -> None:
    import json

    folder = tiny_clip(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["eos_token_id"] = 7
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CreperieError, match=r"vector at token 7, but its tokenizer ends captions with \d+"):
        load_model(f"hf:{folder}", device="cpu")


def test_nothing_and_empty_captions(clip_folder: Path) -> None:
    model: Any = load_model(f"hf:{clip_folder}", device="cpu")
    assert model.encode_texts([]).shape[0] == 0
    assert model.encode_images([]).shape[0] == 0
    assert np.isfinite(model.encode_texts(["", " "])).all()


def test_from_many_threads(clip_folder: Path, captions: list[str]) -> None:
    """The tokenizer's truncation is a shared setting; captions that need it must not disturb the others."""
    from concurrent.futures import ThreadPoolExecutor

    model: Any = load_model(f"hf:{clip_folder}", device="cpu")
    long = "dog " * 90
    expected = [t.ids.tolist() for t in model.prepare_texts([*captions, long])]
    with ThreadPoolExecutor(8) as pool:
        for tokens in pool.map(lambda _: model.prepare_texts([*captions, long]), range(40)):
            assert [t.ids.tolist() for t in tokens] == expected
