"""Losses against sums written out by hand, number by number."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from creperie.training.losses import (
    negclip_loss,
    ranking_loss,
    triple_loss,
)


def vectors(n: int, seed: int, width: int = 5) -> torch.Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    x, y = a.tolist(), b.tolist()
    dot = sum(p * q for p, q in zip(x, y, strict=True))
    return dot / math.sqrt(sum(p * p for p in x)) / math.sqrt(sum(q * q for q in y))


def chosen(anchors: torch.Tensor, candidates: torch.Tensor, scale: float) -> float:
    """The mean of −log softmax at the right candidate, in plain floats."""
    total = 0.0
    for i, a in enumerate(anchors):
        logits = [scale * cosine(a, c) for c in candidates]
        total += math.log(sum(math.exp(x) for x in logits)) - logits[i]
    return total / len(anchors)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 5), seed=st.integers(0, 99), scale=st.floats(0.5, 20))
def test_clip_is_the_mean_of_both_directions(n: int, seed: int, scale: float) -> None:
    images, texts = vectors(n, seed), vectors(n, seed + 100)
    expected = (chosen(images, texts, scale) + chosen(texts, images, scale)) / 2
    assert float(negclip_loss(images, texts, None, scale)) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 5), foils=st.integers(1, 6), others=st.integers(1, 3), seed=st.integers(0, 99))
def test_negclip_adds_columns_for_foils_and_rows_for_pictures(n: int, foils: int, others: int, seed: int) -> None:
    images, texts, false, more = vectors(n, seed), vectors(n, seed + 1), vectors(foils, seed + 2), vectors(others, 3)
    to_text = chosen(images, torch.cat([texts, false]), 7.0)
    to_image = chosen(texts, torch.cat([images, more]), 7.0)
    found = float(negclip_loss(images, texts, false, 7.0, more))
    assert found == pytest.approx((to_text + to_image) / 2, rel=1e-4, abs=1e-4)


def test_foils_do_not_choose_pictures() -> None:
    images, texts, foils = vectors(3, 0), vectors(3, 1), vectors(3, 2)
    plain, hard = negclip_loss(images, texts, None, 5.0), negclip_loss(images, texts, foils, 5.0)
    down = chosen(texts, images, 5.0)
    assert 2 * float(hard) - down == pytest.approx(chosen(images, torch.cat([texts, foils]), 5.0), rel=1e-4)
    assert hard > plain


def test_no_foils_is_clip() -> None:
    images, texts = vectors(4, 0), vectors(4, 1)
    assert negclip_loss(images, texts, texts[:0], 3.0, images[:0]) == negclip_loss(images, texts, None, 3.0)


def test_triple_is_three_rankings_that_share_the_foils() -> None:
    images, p1, p2, n = (vectors(4, k) for k in range(4))
    parts = [chosen(a, torch.cat([c, n]), 9.0) for a, c in ((images, p1), (images, p2), (p1, p2))]
    assert float(triple_loss(images, p1, p2, n, 9.0)) == pytest.approx(sum(parts) / 3, rel=1e-4)


def test_ranking_agrees_with_sentence_transformers_formula() -> None:
    """Multiple-negatives ranking: cross entropy over scaled cosines, positives then negatives, scale 20."""
    anchors, positives, negatives = (vectors(6, k) for k in range(3))
    candidates = torch.cat([positives, negatives])
    cos = torch.nn.functional.cosine_similarity(anchors[:, None], candidates[None], dim=-1)
    expected = torch.nn.functional.cross_entropy(20 * cos, torch.arange(6))
    assert float(ranking_loss(anchors, candidates, 20.0)) == pytest.approx(float(expected), rel=1e-4)


def test_gradients_reach_every_input() -> None:
    parts = [vectors(3, k).requires_grad_() for k in range(4)]
    negclip_loss(parts[0], parts[1], parts[2], 4.0, parts[3]).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in parts)
