"""Plain text encoders: pooling against hand-computed means and positions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_rare

from creperie.models import TextEncoder, load_model
from creperie.testing import tiny

MAKERS: dict[str, Callable[[Path], Path]] = {
    "bert": tiny.tiny_bert,
    "t5": tiny_rare.tiny_t5,
    "gpt2": tiny_rare.tiny_gpt2,
}


@pytest.fixture(scope="module", params=MAKERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MAKERS[request.param](tmp_path_factory.mktemp(request.param))


def library_states(folder: Path, caption: str) -> np.ndarray:
    """The hidden states of one caption alone, without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer, T5EncoderModel

    loader = T5EncoderModel if "t5" in folder.name else AutoModel
    tokens = AutoTokenizer.from_pretrained(folder)([caption], return_tensors="pt")
    with torch.inference_mode():
        return np.asarray(loader.from_pretrained(folder).eval()(**tokens).last_hidden_state[0])


@pytest.mark.parametrize("pool", ["mean", "cls", "last"])
def test_pooling(folder: Path, captions: list[str], pool: str) -> None:
    model = load_model(f"hf:{folder}?pool={pool}", device="cpu")
    assert isinstance(model, TextEncoder)
    vectors = model.encode_texts(captions)
    for vector, caption in zip(vectors, captions):
        states = library_states(folder, caption)
        expected = {"mean": states.mean(axis=0), "cls": states[0], "last": states[-1]}[pool]
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


def test_trimmed_is_padded(folder: Path, captions: list[str]) -> None:
    model: Any = load_model(f"hf:{folder}", device="cpu")
    tokens = model.prepare_texts(captions)
    np.testing.assert_allclose(model.forward_padded(tokens, None), model.forward_padded(tokens, 60), atol=1e-6)


def test_end_token_and_prompt(tmp_path: Path) -> None:
    """As E5-Mistral is used: an instruction before, the end token behind, the last position read."""
    folder = tiny_rare.tiny_gpt2(tmp_path)
    model: Any = load_model(f"hf:{folder}?prompt=e5-mistral&eos=true", device="cpu")
    tokenizer = model.tokenizer.tokenizer
    short, long = model.prepare_texts(["a dog", "dog " * 60])
    shown = tokenizer.decode(short.ids)
    assert shown == "Instruct: Retrieve semantically similar text.\nQuery: a dog<|endoftext|>"
    assert len(long.ids) == 64
    assert long.ids[-1] == tokenizer.eos_token_id
    assert long.cut > 0


def test_unsupported_architecture(tmp_path: Path) -> None:
    from transformers import ResNetConfig

    ResNetConfig().save_pretrained(tmp_path)
    with pytest.raises(Exception, match=r"architecture 'resnet' has no adapter; known: .*clip.*vilt.*plugin.md"):
        load_model(f"hf:{tmp_path}", device="cpu")
