"""Sentence-transformers models against the library's own `encode`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from creperie.errors import CreperieError
from creperie.models import StagedTexts, TextEncoder, load_model


def library_vectors(folder: Path, captions: list[str], prompt: str | None = None) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return np.asarray(model.encode(captions, prompt=prompt, normalize_embeddings=True))


@pytest.mark.parametrize("prefix", ["", "query: "])
def test_same_as_library(sentence_folder: Path, captions: list[str], prefix: str) -> None:
    model = load_model(f"st:{sentence_folder}" + (f"?prefix={prefix}" if prefix else ""), device="cpu")
    assert isinstance(model, TextEncoder)
    expected = library_vectors(sentence_folder, captions, prefix or None)
    np.testing.assert_allclose(model.encode_texts(captions), expected, atol=1e-5)


def test_staged_and_independent_of_batch(sentence_folder: Path, captions: list[str]) -> None:
    model = load_model(f"st:{sentence_folder}", device="cpu")
    assert isinstance(model, TextEncoder)
    assert isinstance(model, StagedTexts)
    assert model.trims
    together = model.forward_texts(model.prepare_texts(captions))
    alone = np.concatenate([model.forward_texts(model.prepare_texts([c])) for c in captions])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_counts_what_it_cuts(sentence_folder: Path) -> None:
    model = load_model(f"st:{sentence_folder}", device="cpu")
    assert isinstance(model, StagedTexts)
    short, long = model.prepare_texts(["a dog", "dog " * 100])
    assert (len(short.ids), short.cut) == (4, 0)
    assert (len(long.ids), long.cut) == (64, 38)


def test_max_length_changes_fingerprint(sentence_folder: Path) -> None:
    whole = load_model(f"st:{sentence_folder}", device="cpu")
    cut = load_model(f"st:{sentence_folder}?max_length=8", device="cpu")
    assert cut.fingerprint.context == 8
    assert whole.fingerprint.key != cut.fingerprint.key


def test_unknown_stored_prompt(sentence_folder: Path) -> None:
    with pytest.raises(CreperieError, match="unknown prompt of this model 'qery'"):
        load_model(f"st:{sentence_folder}?prompt_name=qery", device="cpu")
