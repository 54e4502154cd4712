"""GroupMatch, one threshold, calibration, word order, agreement and parts: against brute force and closed forms."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from creperie.core import UsageError
from creperie.metrics import (
    HIT,
    MISS,
    TIE,
    VOID,
    calibration,
    chances,
    choice_probabilities,
    evaluate,
    integration_gap,
    layout_of,
    one_threshold,
    outcomes,
    pair_agreements,
    rules,
    scores_blind_to,
)

SHAPES = [(1, 2), (1, 4), (2, 2), (3, 3), (4, 4), (2, 4), (3, 2), (4, 3)]


def brute_force(scores: np.ndarray, truth: list[int]) -> int:
    """Over all assignments of rows to different columns: does the true one win, tie or lose?"""
    sums = {p: sum(scores[r, c] for r, c in enumerate(p)) for p in permutations(range(scores.shape[1]), len(truth))}
    own = sums.pop(tuple(truth))
    rival = max(sums.values())
    return HIT if own > rival else TIE if own == rival else MISS


@pytest.mark.parametrize("by_scipy", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_group_match_is_the_best_of_all_assignments(
    shape: tuple[int, int], by_scipy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_scipy:
        pytest.importorskip("scipy")
        monkeypatch.setattr(rules, "MOST_ASSIGNMENTS", 0)
    rng = np.random.default_rng(sum(shape))
    rows, columns = shape
    truth = rng.permutation(max(shape))[: min(shape)].tolist()
    match = np.zeros(shape, int)
    (match if rows <= columns else match.T)[range(min(shape)), truth] = 1
    scores = rng.integers(0, 4, (150, rows, columns)).astype(np.float32)  # few values: many ties
    found = outcomes("GroupMatch", layout_of([match.tolist()] * 150), scores.ravel())
    expected = [brute_force(s if rows <= columns else s.T, truth) for s in scores]
    assert found.tolist() == expected
    assert len(set(expected)) == 3
    scores[0, 0, 0] = np.nan
    assert outcomes("group-match", layout_of([match.tolist()] * 150), scores.ravel())[0] == VOID


def test_group_match_needs_one_partner_each() -> None:
    layout = layout_of([[[1, 0], [1, 0]], [[1, 1, 0]], [[1, 0], [0, 1]]])
    assert outcomes("group-match", layout, np.arange(11.0)).tolist() == [VOID, VOID, TIE]
    assert np.isnan(chances("group-match", layout)).tolist() == [True, True, False]


def test_one_threshold_is_the_best_that_any_reaches_and_is_chosen_elsewhere() -> None:
    rng = np.random.default_rng(4)
    layout = layout_of([[[1, 0]], [[1, 1, 0]]] * 40)
    scores = rng.normal(layout.match * 1.5).astype(np.float32)
    clusters = np.repeat(np.arange(40), 2)
    found = one_threshold(layout, scores, clusters)
    tried = np.sort(np.concatenate([scores - 1e-4, scores + 1e-4]))
    shares = [(outcomes(f"decided@{t:.7f}", layout, scores) == HIT).mean() for t in tried]
    assert found.best == pytest.approx(max(shares))
    assert (outcomes(f"decided@{found.threshold:.9f}", layout, scores) == HIT).mean() == found.best
    held_out = []
    for k in range(40):
        others = np.flatnonzero(clusters != k)
        cells = np.isin(np.repeat(clusters, layout.widths("image_text")), [k], invert=True)
        elsewhere = one_threshold(layout.take(others), scores[cells], clusters[others]).threshold
        held_out.append((outcomes(f"decided@{elsewhere:.9f}", layout, scores) == HIT)[clusters == k].mean())
    assert found.accuracy <= found.best
    assert found.accuracy == pytest.approx(np.mean(held_out), abs=0.1)
    assert found.chance == pytest.approx((0.25 + 0.125) / 2)


def test_calibration_of_honest_and_of_sure_answers() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    truth = rng.random(20_000) < p
    honest = calibration(p, truth)
    assert honest.error == pytest.approx(honest.expected, rel=0.5)  # all of it is noise
    assert honest.brier == pytest.approx(1 / 6, abs=0.005)  # the mean of p(1 − p)
    sure = calibration(np.where(p > 0.5, 0.99, 0.01), truth)
    assert sure.error == pytest.approx(0.24, abs=0.02)  # mean of min(p, 1 − p) is 1/4
    assert sum(b.n for b in sure.bins) == 20_000
    with pytest.raises(UsageError, match="between 0 and 1"):
        calibration(np.array([2.0]), np.array([1]))


def test_probabilities_of_a_choice() -> None:
    layout = layout_of([[[1, 0]], [[0, 1]], [[1, 0]]])
    sure, right = choice_probabilities(layout, np.array([1.0, 0.0, 1.0, 0.0, 0.5, 0.5]), scale=np.log(3))
    assert sorted(zip(sure.round(4).tolist(), right.tolist())) == [(0.5, 0.0), (0.75, 0.0), (0.75, 1.0)]


def test_a_model_without_word_order_ties_captions_of_the_same_words() -> None:
    layout = layout_of([[[1, 0]], [[1, 0, 0]], [[1, 0], [0, 1]], [[1, 1, 0]]])
    keys = np.array([0, 0, 1, 2, 3, 4, 4, 5, 6, 5])
    scores = scores_blind_to(layout, keys)
    assert outcomes("itt", layout, scores).tolist() == [TIE, HIT, TIE, TIE]
    assert evaluate("itt", layout, scores)[0].accuracy == 0.25


def test_models_that_err_alike() -> None:
    a = np.array([HIT] * 60 + [MISS] * 40)
    rng = np.random.default_rng(1)
    pairs = pair_agreements({"a": a, "same": a.copy(), "other": rng.permutation(a)})
    assert [(p.a, p.b) for p in pairs] == [("a", "same"), ("a", "other"), ("same", "other")]
    assert (pairs[0].agree, pairs[0].kappa) == (1.0, 1.0)
    assert pairs[0].expected == pytest.approx(0.6**2 + 0.4**2)
    assert pairs[1].low < 0 < pairs[1].high


def test_a_whole_and_its_parts() -> None:
    whole, parts = np.array([HIT, MISS, MISS, HIT]), np.array([HIT, HIT, HIT, MISS, TIE, HIT])
    gap = integration_gap(whole, parts, np.array([0, 0, 1, 2, 2, 3]))
    assert (gap.accuracy_a, gap.accuracy_b, gap.difference) == (0.75, 0.5, 0.25)
    alone = integration_gap(whole, parts[:5], np.array([0, 0, 1, 2, 2]))
    assert alone.n == 3  # the last item has no parts
    with pytest.raises(UsageError, match="`owner` has 2 values for 6 parts"):
        integration_gap(whole, parts, np.array([0, 0]))
