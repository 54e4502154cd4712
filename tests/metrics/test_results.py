"""Results: tie rules, subsets, macro means, voids; ranks, thresholds and areas against references."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, roc_auc_score

from creperie.core import UsageError
from creperie.metrics import (
    ARO_ATTRIBUTES,
    HIT,
    MISS,
    TIE,
    VOID,
    MacroRule,
    MetricSettings,
    accuracy,
    applicable,
    applies,
    aro_relations,
    auroc,
    evaluate,
    layout_of,
    macro,
    measure,
    of_outcomes,
    ranked,
    summarise,
    wilson,
)
from creperie.metrics.rules import ranks

PAIR, TRIPLE, SIX, PAIRED = [[1, 0]], [[1, 1, 0]], [[1, 0, 0, 0, 0, 0]], [[1, 0], [0, 1]]

OUTCOMES = st.lists(st.sampled_from([HIT, MISS, TIE, VOID]), min_size=1, max_size=60).map(
    lambda values: np.array(values, dtype=np.int8)
)


@given(found=OUTCOMES)
def test_tie_rules_are_applied_afterwards(found: np.ndarray) -> None:
    covered = int((found != VOID).sum())
    hits, ties = int((found == HIT).sum()), int((found == TIE).sum())
    if not covered:
        assert math.isnan(accuracy(found))
        return
    assert accuracy(found, "wrong") == pytest.approx(hits / covered)
    assert accuracy(found, "half") == pytest.approx((hits + ties / 2) / covered)
    assert accuracy(found, "right") == pytest.approx((hits + ties) / covered)
    for rule in ("wrong", "half", "right"):
        how = MetricSettings(ties=rule)
        (row,) = summarise(of_outcomes(found, "mine", how=how), settings=how)
        assert (row.n, row.hits, row.ties, row.void) == (covered, hits, ties, len(found) - covered)
        assert row.accuracy == pytest.approx(accuracy(found, rule))
        assert row.low <= row.accuracy <= row.high
        assert row.tie_rule == rule


@given(found=OUTCOMES, data=st.data())
def test_subsets_add_up_to_all_and_macro_is_their_mean(found: np.ndarray, data: st.DataObject) -> None:
    subsets = data.draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=len(found), max_size=len(found)))
    clusters = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(found), max_size=len(found))))
    rows = summarise(of_outcomes(found, "mine"), subsets=subsets, clusters=clusters)
    names = list(dict.fromkeys(subsets))
    assert [r.subset for r in rows] == [*names, "all", *(["macro"] if len(names) > 1 else [])]
    own, whole = rows[: len(names)], rows[len(names)]
    for count in ("n", "hits", "ties", "void"):
        assert sum(getattr(r, count) for r in own) == getattr(whole, count)
    assert whole.n + whole.void == len(found)
    known = [r.accuracy for r in own if r.n]
    if len(names) > 1 and known:
        assert rows[-1].accuracy == pytest.approx(np.mean(known))
        assert rows[-1].groups == len(known)


def test_results_do_not_depend_on_the_order_of_items() -> None:
    rng = np.random.default_rng(0)
    n = 300
    scores = rng.integers(0, 5, (n, 3)).astype(np.float32)
    subsets, clusters = np.array(["x", "y", "z"])[rng.integers(0, 3, n)], rng.integers(0, 60, n)
    order = np.concatenate([np.flatnonzero(subsets == s)[::-1] for s in dict.fromkeys(subsets.tolist())])
    layout = layout_of([TRIPLE] * n)
    for name in ("itt", "acc@2", "min@2", "f1@2", "mean-rank", "median-rank", "halves", "auroc"):
        one = evaluate(name, layout, scores.ravel(), subsets=subsets, clusters=clusters)
        two = evaluate(name, layout, scores[order].ravel(), subsets=subsets[order], clusters=clusters[order])
        for a, b in zip(one, two, strict=True):
            assert a.as_dict() == pytest.approx(b.as_dict(), nan_ok=True)
            assert a.low <= a.accuracy <= a.high


def test_macro_interval_is_that_of_plain_resampling() -> None:
    rng = np.random.default_rng(3)
    sizes = {"small": 40, "large": 400}
    subsets = np.repeat(list(sizes), list(sizes.values()))
    found = np.where(rng.random(440) < np.where(subsets == "small", 0.3, 0.8), HIT, MISS).astype(np.int8)
    clusters = rng.integers(0, 120, 440)
    members = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    values = []
    for _ in range(3000):
        drawn = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        values.append(np.mean([accuracy(found[drawn][subsets[drawn] == s]) for s in sizes]))
    row = macro(of_outcomes(found, "mine"), subsets, clusters=clusters)
    assert row.accuracy == pytest.approx(np.mean([accuracy(found[subsets == s]) for s in sizes]))
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.025)
    assert row.interval == "mover"


def test_a_macro_of_perfect_scores_is_not_certain() -> None:
    """Four subsets of one image each: the mean of four answers, each as uncertain as one."""
    row = macro(of_outcomes(np.ones(8, dtype=np.int8), "mine"), list("aabbccdd"), clusters=np.arange(8) // 2)
    assert (row.low < wilson(4, 4)[0], row.high) == (True, 1)  # four images, and few to know their variance by


def test_aro_headlines() -> None:
    relations = ["on", "on", "near", "behind", "wearing", "wearing"]
    found = np.array([HIT, MISS, HIT, HIT, MISS, MISS], dtype=np.int8)
    row = macro(of_outcomes(found, "itt"), relations, rule=aro_relations())
    assert row.accuracy == pytest.approx((0.5 + 1 + 0) / 3)  # on, behind, wearing; near is dropped
    assert (row.n, row.groups) == (5, 3)
    assert len(aro_relations().exclude) == 157
    assert {"next to", "with", "adjusting"} <= aro_relations().exclude
    pairs = ["red_blue"] * 25 + ["old_new"] * 24
    found = np.array([HIT] * 10 + [MISS] * 15 + [HIT] * 24, dtype=np.int8)
    assert macro(of_outcomes(found, "itt"), pairs, rule=ARO_ATTRIBUTES).accuracy == pytest.approx(0.4)


def test_a_macro_over_nothing_is_not_a_number() -> None:
    row = macro(of_outcomes(np.array([HIT, VOID]), "itt"), ["a", "b"], rule=MacroRule(exclude=frozenset(["a"])))
    assert math.isnan(row.accuracy)
    assert (row.n, row.void) == (0, 1)


def test_what_is_void_and_what_is_vacuous() -> None:
    layout = layout_of([PAIRED, PAIR, PAIRED])
    scores = np.array([1, 0, 0, 1, 1, 0, 1, 0, np.nan, 1], dtype=np.float32)
    (row,) = evaluate("group", layout, scores)
    assert (row.n, row.hits, row.void, row.vacuous) == (1, 1, 2, 1)
    assert row.chance == pytest.approx(1 / 6)
    (row,) = evaluate("itt", layout, scores)
    assert (row.n, row.hits, row.void, row.vacuous) == (2, 2, 1, 0)
    assert row.chance == pytest.approx((1 / 4 + 1 / 2) / 2)  # the mean of the items' levels


def test_a_task_that_applies_to_nothing_says_which_do() -> None:
    with pytest.raises(UsageError, match=r"'group' has nothing to compare.*choose among: itt"):
        evaluate("group", layout_of([PAIR, TRIPLE]), np.zeros(5))
    assert applicable(layout_of([PAIR]), ["text_text"]) == []
    assert "tot" in applicable(layout_of([TRIPLE]))
    assert applies("tot", layout_of([PAIR, TRIPLE])).tolist() == [False, True]


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="given 1 subset labels for 2 items"):
        evaluate("itt", layout_of([PAIR] * 2), np.zeros(4), subsets=["a"])
    with pytest.raises(UsageError, match="given 3 cluster labels for 2 items"):
        evaluate("itt", layout_of([PAIR] * 2), np.zeros(4), clusters=np.zeros(3))


def test_no_items_at_all() -> None:
    (row,) = evaluate("itt", layout_of([]), np.zeros(0))
    assert row.n == 0
    assert math.isnan(row.accuracy)


# -- ranks ----------------------------------------------------------------------------------------------------------


def test_an_item_with_a_score_that_is_not_a_number_has_no_rank() -> None:
    """Whether the NaN is the true caption's or a false one's: a rank among the others would flatter the model."""
    match = np.array([[True, False, False]])
    cells = np.array([[0.5, 0.5, np.nan], [0.1, np.nan, 0.1], [0.9, 0.2, 0.3]])
    best, worst, void = ranks(match, cells)
    assert void.tolist() == [False, True, True]
    assert (best[0, 0], worst[0, 0]) == (2, 2)


def test_ranks_are_places_in_the_sorted_list() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 6, (400, 6)).astype(np.float32)
    layout = layout_of([SIX] * 400)
    found = ranked(layout, scores.ravel())
    best = [sum(x > row[0] for x in row[1:]) + 1 for row in scores]
    worst = [sum(x >= row[0] for x in row[1:]) + 1 for row in scores]
    assert found.best.tolist() == best
    assert found.worst.tolist() == worst
    for rule, places in (("wrong", worst), ("right", best), ("half", (np.array(best) + worst) / 2)):
        how = MetricSettings(ties=rule)
        (mean,) = evaluate("mean-rank", layout, scores.ravel(), settings=how)
        (median,) = evaluate("median-rank", layout, scores.ravel(), settings=how)
        assert mean.accuracy == pytest.approx(np.mean(places))
        assert median.accuracy == np.median(places)
        assert (mean.chance, median.chance) == (3.5, 3.5)
        assert mean.low < mean.accuracy < mean.high
        assert median.low <= median.accuracy <= median.high
        assert mean.hits == worst.count(1)
        assert mean.ties == sum(a < b for a, b in zip(best, worst, strict=True))
        for k in (1, 3, 5):
            (recall,) = evaluate(f"recall@{k}", layout, scores.ravel(), settings=how)
            expected = [
                (w <= k) + {"wrong": 0, "half": 0.5, "right": 1}[rule] * (b <= k < w) for b, w in zip(best, worst)
            ]
            assert recall.accuracy == pytest.approx(np.mean(expected))
            assert recall.chance == pytest.approx(k / 6)


def test_recall_beyond_the_candidates_is_certain_and_its_chance_says_so() -> None:
    (row,) = evaluate("recall@10", layout_of([SIX]), np.array([0, 1, 1, 1, 1, 1]))
    assert (row.accuracy, row.chance) == (1.0, 1.0)


def test_ranks_by_chance_of_mixed_lengths() -> None:
    rng = np.random.default_rng(2)
    matches = [PAIR, [[1, 1, 0, 0, 0]], SIX, PAIRED]
    layout = layout_of(matches * 8000)
    scores = rng.random(len(layout.match))
    (mean,) = evaluate("mean-rank", layout, scores)
    assert mean.accuracy == pytest.approx(mean.chance, abs=0.03)
    (median,) = evaluate("median-rank", layout, scores)
    assert median.accuracy == median.chance


def test_median_interval_by_plain_resampling() -> None:
    rng = np.random.default_rng(5)
    scores = rng.random((150, 6))
    scores[:, 0] += 0.2
    (row,) = evaluate("median-rank", layout_of([SIX] * 150), scores.ravel())
    ranks = 1 + (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    drawn = np.median(ranks[rng.integers(0, 150, (4000, 150))], axis=1)
    assert (row.low, row.high) == tuple(np.quantile(drawn, [0.025, 0.975]))


# -- thresholds and areas -------------------------------------------------------------------------------------------


def labelled(seed: int, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Captions and foils with match logits, some of them equal."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal([0.6, -0.3], 1, (n, 2)), 1).astype(np.float32)
    return scores, np.tile([True, False], n)


def test_valse_metrics_by_hand() -> None:
    scores, _ = labelled(0)
    layout = layout_of([PAIR] * len(scores))
    caption, foil = scores.T
    value = {
        (name, rule): evaluate(name, layout, scores.ravel(), settings=MetricSettings(ties=rule))[0]
        for name in ("p_c@0", "p_f@0", "acc@0", "min@0", "acc_r", "binary@0")
        for rule in ("wrong", "right")
    }
    assert (caption == 0).any()
    assert (foil == 0).any()
    # VALSE: a caption at the threshold is missed, a foil at the threshold is detected.
    p_c, p_f = np.mean(caption > 0), np.mean(foil <= 0)
    assert value["p_c@0", "wrong"].accuracy == pytest.approx(p_c)
    assert value["p_f@0", "right"].accuracy == pytest.approx(p_f)
    assert value["p_f@0", "wrong"].accuracy == pytest.approx(np.mean(foil < 0))
    assert value["acc_r", "wrong"].accuracy == pytest.approx(np.mean(caption > foil))
    strict = p_c, np.mean(foil < 0)
    assert value["acc@0", "wrong"].accuracy == pytest.approx(np.mean(strict))
    assert value["min@0", "wrong"].accuracy == pytest.approx(min(strict))
    assert value["binary@0", "wrong"].accuracy == pytest.approx(np.mean(strict))
    assert value["p_c@0", "wrong"].interval == "wilson"
    assert value["binary@0", "wrong"].interval == "beta-binomial"  # two captions per item
    assert value["min@0", "wrong"].low < min(strict) < value["min@0", "wrong"].high
    assert value["p_c@0", "wrong"].ties == int((caption == 0).sum())


@pytest.mark.parametrize("threshold", [-0.25, 0.15])
def test_thresholds_against_sklearn(threshold: float) -> None:
    rng = np.random.default_rng(8)
    truth = rng.random(300) < 0.3
    scores = (rng.normal(size=300) + truth).astype(np.float32)
    layout = layout_of([[[int(t)]] for t in truth])  # VSR: one caption an item, true or false
    said = scores > threshold
    expected = {
        "binary": np.mean(said == truth),
        "acc": balanced_accuracy_score(truth, said),
        "precision": precision_score(truth, said),
        "f1": f1_score(truth, said),
        "p_c": np.mean(said[truth]),
    }
    for name, value in expected.items():
        (row,) = evaluate(f"{name}@{threshold}", layout, scores)
        assert row.accuracy == pytest.approx(value)
        assert row.low < row.accuracy < row.high
    share = truth.mean()
    assert evaluate("precision@0", layout, scores)[0].chance == pytest.approx(share)
    assert evaluate("f1@0", layout, scores)[0].chance == pytest.approx(share / (share + 0.5))


@given(data=st.data())
def test_auroc_is_that_of_sklearn(data: st.DataObject) -> None:
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=2, max_size=40)))
    values = np.array(
        data.draw(st.lists(st.integers(0, 8), min_size=len(truth), max_size=len(truth))), dtype=np.float32
    )
    found = auroc(values, truth)
    if truth.all() or not truth.any():
        assert math.isnan(found.value)
        return
    assert found.value == pytest.approx(roc_auc_score(truth, values))
    won = sum(int(a > b) for a in values[truth] for b in values[~truth])
    tied = sum(int(a == b) for a in values[truth] for b in values[~truth])
    assert (found.won, found.tied, found.pairs) == (won, tied, int(truth.sum() * (~truth).sum()))


def test_auroc_interval_by_plain_resampling_of_clusters() -> None:
    rng = np.random.default_rng(6)
    n = 240
    clusters = np.arange(n) // 3
    scores = rng.normal([0.8, 0.0], 1, (n, 2)) + rng.normal(size=n // 3)[clusters][:, None]
    layout = layout_of([PAIR] * n)
    (row,) = evaluate("auroc", layout, scores.ravel(), clusters=clusters)
    truth = np.tile([True, False], n)
    assert row.accuracy == pytest.approx(roc_auc_score(truth, scores.ravel()))
    assert (row.unit, row.chance, row.n) == ("pairs", 0.5, n * n)
    values = []
    for _ in range(1500):
        own = (rng.integers(0, n // 3, n // 3)[:, None] * 3 + np.arange(3)).ravel()
        values.append(auroc(scores[own].ravel(), truth).value)
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.012)


def test_auroc_of_independent_cells_has_delongs_error() -> None:
    rng = np.random.default_rng(9)
    values, truth = rng.normal(size=200), np.arange(200) < 80
    values[truth] += 0.7
    area = auroc(values, truth)
    pos, neg = values[truth], values[~truth]
    v10 = np.array([np.mean(p > neg) for p in pos])
    v01 = np.array([np.mean(pos > q) for q in neg])
    delong = math.sqrt(v10.var(ddof=1) / len(pos) + v01.var(ddof=1) / len(neg))
    assert math.sqrt((area.pull**2).sum() * 200 / 199) == pytest.approx(delong, rel=0.01)


def test_auroc_by_subset_and_macro() -> None:
    rng = np.random.default_rng(10)
    scores = rng.normal([0.5, 0.0], 1, (90, 2))
    subsets = np.repeat(["a", "b", "c", "true alone"], [30, 30, 30, 2])
    layout = layout_of([PAIR] * 90 + [[[1]]] * 2)
    values = np.append(scores.ravel(), [0.3, 0.4])
    rows = evaluate("auroc", layout, values, subsets=subsets, clusters=np.arange(92) // 2)
    truth = np.tile([True, False], 30)
    areas = [roc_auc_score(truth, scores[subsets[:90] == s].ravel()) for s in "abc"]
    assert [r.accuracy for r in rows[:4]] == pytest.approx([*areas, math.nan], nan_ok=True)
    assert rows[-1].accuracy == pytest.approx(np.mean(areas))
    assert rows[-1].low < rows[-1].accuracy < rows[-1].high
    assert rows[-1].high - rows[-1].low < rows[0].high - rows[0].low


def test_auroc_at_its_ends() -> None:
    layout = layout_of([PAIR] * 10)
    (row,) = evaluate("auroc", layout, np.tile([1.0, 0.0], 10))
    assert (row.accuracy, row.high) == (1.0, 1.0)
    assert 0.6 < row.low < wilson(10, 10)[0]
    (row,) = evaluate("auroc", layout_of([[[1]]] * 3), np.zeros(3))
    assert math.isnan(row.accuracy)


def test_hard_positives_original_augmented_brittle() -> None:
    # (c, c_p, c_n): all right, only c, only c_p, all wrong, c level with c_n
    scores = np.array([[3, 2, 1], [3, 1, 2], [1, 3, 2], [1, 2, 3], [2, 3, 2]], dtype=np.float32)
    layout = layout_of([TRIPLE] * 5)
    rows = {name: evaluate(name, layout, scores.ravel())[0] for name in ("original", "augmented", "brittle")}
    assert {name: (r.hits, r.ties) for name, r in rows.items()} == {
        "original": (2, 1),
        "augmented": (1, 1),
        "brittle": (2, 1),
    }


def test_hit_or_be_hit_preferences_are_rates_of_the_first_over_the_second() -> None:
    rng = np.random.default_rng(11)
    scores = rng.integers(0, 9, (200, 4)).astype(np.float32)
    layout = layout_of([[[1, 1, 0, 0]]] * 200)
    active, passive, active_foil, passive_foil = scores.T
    pairs = [(active, active_foil), (passive, passive_foil), (active, passive), (active_foil, passive_foil)]
    pairs.append((passive, active_foil))
    for n, (first, second) in enumerate(pairs, start=1):
        (row,) = evaluate(f"preference-{n}", layout, scores.ravel())
        assert (row.hits, row.ties) == (int((first > second).sum()), int((first == second).sum()))
        assert row.chance == 0.5


def test_winoground_by_its_authors_inequalities() -> None:
    rng = np.random.default_rng(12)
    scores = rng.integers(0, 4, (500, 4)).astype(np.float32)
    s = {(c, i): scores[:, 2 * i + c] for i in (0, 1) for c in (0, 1)}  # (caption, image)
    text = (s[0, 0] > s[1, 0]) & (s[1, 1] > s[0, 1])
    image = (s[0, 0] > s[0, 1]) & (s[1, 1] > s[1, 0])
    layout = layout_of([PAIRED] * 500)
    for name, expected in (("text-score", text), ("image-score", image), ("group", text & image)):
        (row,) = evaluate(name, layout, scores.ravel())
        assert row.hits == int(expected.sum())


def test_more_data_means_a_narrower_interval() -> None:
    rng = np.random.default_rng(13)
    widths = []
    for n in (50, 200, 800):
        scores = rng.random((n, 2))
        (row,) = evaluate("acc@0.5", layout_of([PAIR] * n), scores.ravel())
        widths.append(row.high - row.low)
    assert all(a > b for a, b in pairwise(widths))


def test_measure_takes_names_and_tasks() -> None:
    assert measure("r@1", layout_of([PAIR]), np.array([1.0, 0.0])).task == "recall@1"
