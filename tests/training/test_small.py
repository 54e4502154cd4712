"""Small models: their folder, their URI, their exactness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from creperie.core import DataError, ModelError, UsageError
from creperie.models import ImageEncoder, TextEncoder, load_model
from creperie.training import SmallConfig
from creperie.training.architecture import Words, split_words, vocabulary_of
from creperie.training.small import load_small, read_config


@pytest.fixture
def folder(small: Any, tmp_path: Path) -> Path:
    small().save(tmp_path)
    return tmp_path


def test_the_uri_loads_what_was_saved(folder: Path, small: Any, data: Any) -> None:
    import torch

    from creperie.training.losses import unit

    model = load_model(f"small:{folder}", device="cpu")
    assert isinstance(model, ImageEncoder)
    assert isinstance(model, TextEncoder)
    student = small()
    student.network.eval()
    captions = [e.caption for e in data.examples[:5]]
    with torch.no_grad():
        said = unit(student.network.model.embed_texts(student.ids(student.prepare_texts(captions)))).numpy()
    assert np.abs(model.encode_texts(captions) - said).max() < 1e-6
    assert model.encode_images([data.open(data.examples[0].image)]).shape == (1, 16)


def test_padding_changes_nothing(folder: Path) -> None:
    model: Any = load_model(f"small:{folder}", device="cpu")
    alone = model.encode_texts(["the cat"])
    beside = model.encode_texts(["the cat", "the cat is to the left of the dog and the box is behind the ball"])
    assert np.abs(alone[0] - beside[0]).max() < 1e-6


def test_other_weights_have_another_fingerprint_and_another_place_has_not(small: Any, tmp_path: Path) -> None:
    keys = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        small(seed).save(tmp_path / name)
        keys.append(load_model(f"small:{tmp_path / name}", device="cpu").fingerprint.key)
    assert keys[0] == keys[1] != keys[2]


def test_pictures_of_other_sizes_and_modes_are_brought_to_size(folder: Path) -> None:
    model: Any = load_model(f"small:{folder}", device="cpu")
    for mode in ("RGB", "L", "RGBA"):
        assert model.prepare_image(Image.new(mode, (90, 47))).shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("file", "content", "error", "said"),
    [
        ("config.json", '{"size": 32, "chanels": [8]}', UsageError, "unknown setting 'chanels'"),
        ("config.json", '{"size": 30, "channels": [8, 8, 16]}', UsageError, "not a multiple of 16"),
        ("config.json", "[]", DataError, "is not a JSON object"),
        ("vocab.json", '["a"]', ModelError, "that were saved together"),
        ("vocab.json", "{}", DataError, "a list of words"),
        ("model.safetensors", "nothing", ModelError, "weights do not fit"),
    ],
)
def test_damaged_folders_say_what_is_wrong(
    folder: Path, file: str, content: str, error: type[Exception], said: str
) -> None:
    (folder / file).write_text(content)
    with pytest.raises(error, match=said):
        load_small(folder)


def test_a_folder_without_a_model_and_options_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="this folder contains no small model"):
        load_model(f"small:{tmp_path / 'nowhere'}")
    with pytest.raises(UsageError, match="no option 'pool'"):
        load_model(f"small:{folder}?pool=mean")


def test_a_model_from_a_json_file(tmp_path: Path, data: Any) -> None:
    from creperie.training import open_student

    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"size": 32, "channels": [8, 8], "text_width": 16, "heads": 2, "joint": 8}))
    assert read_config(path, SmallConfig).channels == (8, 8)
    student: Any = open_student(str(path), 0, data.captions())
    assert student.network.model.config.vocabulary == len(student.words.vocabulary)


@given(st.text(max_size=80))
def test_any_text_has_tokens_within_the_context(text: str) -> None:
    words = Words(vocabulary_of(["a cat sits."], 8).vocabulary, 8)
    (tokens,) = words([text])
    count = len(split_words(text))
    assert tokens.ids[0] == words.start
    assert tokens.ids[-1] == words.end
    assert len(tokens.ids) == min(count + 2, 8)
    assert tokens.cut == max(0, count - 6)
