"""The learned attackers are honest: out of fold, grouped, nested, calibrated, and the same for the same seed."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import numpy as np
import pytest
from foils import foil_bench, foil_items
from hypothesis import given
from hypothesis import strategies as st

from creperie.auditing import (
    AttackerModels,
    Pairs,
    audit,
    calibrated,
    fit_linear,
    grouped_folds,
    item_wins,
    linear,
    make_attackers,
    measure_attacker,
    null_accuracies,
    pair_features,
    pairs_of,
)
from creperie.auditing.features import (
    CHARACTER_NGRAMS,
    LETTER_WEIGHT,
    counted_once,
    differing_parts,
    ngram_differences,
    summary,
)
from creperie.auditing.learned import Learner
from creperie.auditing.linear import _weights
from creperie.auditing.measure import bits, fit_scale, log_loss
from creperie.auditing.model_attackers import Ensemble
from creperie.auditing.null import DRAWS
from creperie.auditing.sampling import drawn
from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import Progress, silent

LEARNED = ("learned", "learned-linear", "learned-boosted")
Planted = Callable[..., Benchmark]


@pytest.mark.slow
def test_random_roles_give_chance(planted: Planted) -> None:
    pairs = pairs_of(planted(lambda true, false, rng: (true, false), 400))
    for attacker in make_attackers(LEARNED, AttackerModels()):
        found = measure_attacker(calibrated(pairs, attacker.margins(pairs), directed=True))
        assert found.low <= 0.5 <= found.high, attacker.name
        assert found.bits < 0.02


@pytest.mark.slow
def test_a_planted_word_is_found(planted: Planted) -> None:
    bench = planted(lambda true, false, rng: (true, false.replace("A ", "One ", 1)))
    pairs = pairs_of(bench)
    for attacker in make_attackers(LEARNED, AttackerModels()):
        assert item_wins(pairs, attacker.margins(pairs)).mean() > 0.97, attacker.name


@pytest.mark.slow
def test_half_a_cue_is_worth_half(planted: Planted) -> None:
    """A mark on half of the false captions: 75 % right, and about half a bit an item."""
    bench = planted(lambda true, false, rng: (true, false[:-1] + " now." if rng.random() < 0.5 else false), 400)
    pairs = pairs_of(bench)
    (attacker,) = make_attackers(["learned-linear"], AttackerModels())
    found = measure_attacker(calibrated(pairs, attacker.margins(pairs), directed=True))
    assert found.accuracy == pytest.approx(0.75, abs=0.06)
    assert found.bits == pytest.approx(0.5, abs=0.1)
    assert found.bits_low < found.bits < found.bits_high


def test_what_only_one_image_shows_is_not_learned() -> None:
    """Each image has its own give-away word, seen in its two items only: grouped by image, nothing can be learned."""
    items = []
    for i in range(120):
        word = f"w{i // 2:03d}x"
        captions = (f"A {word} thing {i % 7}.", f"A thing {i % 7} {i % 5}.")
        items.append(Item(str(i), "s", (f"{i // 2}.jpg",), captions, choice(1, 1)))
    shuffled = from_items("grouped", items)
    pairs = pairs_of(shuffled)
    fold = grouped_folds(pairs.cluster[pairs.item], 5, 0)
    words_of_fold = [{pairs.texts[t].split()[1] for t in pairs.left[fold == k]} for k in range(5)]
    assert not any(words_of_fold[a] & words_of_fold[b] for a in range(5) for b in range(a))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_margins(planted: Planted) -> None:
    bench = planted(lambda true, false, rng: (true, false[:-1] if rng.random() < 0.4 else false), 120)
    pairs = pairs_of(bench)
    first, second = Learner(seed=3), Learner(seed=3)
    for name in LEARNED:
        np.testing.assert_array_equal(first.margins(pairs, name), second.margins(pairs, name))
    alone = Learner(seed=3).margins(pairs, "learned-linear")  # without the trees
    np.testing.assert_array_equal(first.margins(pairs, "learned-linear"), alone)
    assert (Learner(seed=4).margins(pairs, "learned-linear") != alone).any()


@pytest.mark.slow
def test_the_order_of_the_items_changes_nothing(planted: Planted) -> None:
    """Two subsets, two items an image, and a cue that is not quite sure; the sample that slow attackers see, too."""
    plant = lambda true, false, rng: (true, false.replace("A ", "One ", 1) if rng.random() < 0.3 else false)  # noqa: E731
    two = [planted(plant, 130, subset="some"), planted(plant, 40, subset="few")]
    items = [item for bench in two for item in bench]
    order = np.random.Generator(np.random.PCG64(5)).permutation(len(items))
    names = ("length-chars", "learned-linear", "learned-boosted", "ngram-3", "cooccurrence", "ensemble")

    def figures(items: list[Item]) -> tuple[dict[tuple[str, str], tuple[float, ...]], list[str]]:
        bench = from_items("b", [replace(item, id=str(k)) for k, item in enumerate(items)])
        pairs, rows = pairs_of(bench), audit(bench, names, progress=None).rows
        kept = {
            pairs.captions_at(pairs.left[k : k + 1])[0] for k in np.flatnonzero(drawn(pairs, {"some": 50, "few": 9}, 0))
        }
        return {(r.subset, r.attacker): astuple(r.measure) for r in rows}, sorted(kept)

    def same(one: dict[tuple[str, str], tuple[float, ...]], two: dict[tuple[str, str], tuple[float, ...]]) -> None:
        assert one.keys() == two.keys()
        for key, measured in one.items():
            # Fits depend a little on the order in which numbers are added; boosted trees may turn over an item.
            trees = key[1] in ("learned-boosted", "ensemble")
            for was, now in zip(measured, two[key], strict=True):  # the item may be a tie, which is counted
                near = 1 if isinstance(was, int) else 0.04
                assert now == pytest.approx(was, abs=near if trees else 2e-3), key
            assert two[key][2] == pytest.approx(measured[2], abs=0.02 if trees else 1e-12), key  # the accuracy

    straight, kept = figures(items)
    for ordered in ([items[k] for k in order], items[::-1]):
        again, drawn_again = figures(ordered)
        same(straight, again)
        assert kept == drawn_again
    alone, _ = figures([item for item in items if item.subset == "some"])
    # Nor do other subsets, except for attackers that know the whole corpus, and the ensemble that they are part of.
    apart = [("some", name) for name in ("length-chars", "learned-linear", "learned-boosted", "cues")]
    same({key: straight[key] for key in apart}, {key: alone[key] for key in apart})


def test_several_positives_are_attacked_pair_by_pair(planted: Planted) -> None:
    bench = planted(lambda true, false, rng: (true, true.replace(".", "!"), false + " Here."), 120, positives=2)
    pairs = pairs_of(bench)
    margins = Learner().margins(pairs, "learned-linear")
    assert len(margins) == 240
    assert item_wins(pairs, margins).mean() > 0.95


def test_small_subsets_are_attacked_together(planted: Planted) -> None:
    items = [
        Item(str(i), f"s{i % 8}", (f"{i}",), (f"a dog {i % 9}", f"No dog {i % 9}."), choice(1, 1)) for i in range(80)
    ]
    pairs = pairs_of(from_items("small", items))
    assert item_wins(pairs, Learner().margins(pairs, "learned-linear")).mean() == 1.0


def test_one_image_cannot_be_attacked_out_of_fold() -> None:
    items = [Item(str(i), "s", ("same.jpg",), (f"a dog {i}", f"A dog {i}."), choice(1, 1)) for i in range(5)]
    pairs = pairs_of(from_items("one", items))
    found = measure_attacker(calibrated(pairs, Learner().margins(pairs, "learned"), directed=True))
    assert (found.nans, found.accuracy) == (5, 0.5)


# -- parts -----------------------------------------------------------------------------------------------------------


def test_folds_depend_on_the_seed_and_not_on_the_names_of_groups() -> None:
    groups = np.random.default_rng(0).integers(0, 97, size=1000)
    fold = grouped_folds(groups, 5, seed=1)
    assert (grouped_folds(groups, 5, seed=2) != fold).any()
    np.testing.assert_array_equal(grouped_folds(groups * 7 + 3, 5, seed=1), fold)


def test_features_are_differences() -> None:
    bench = from_items("f", [Item("1", "s", ("a",), ("a b c", "a b d."), choice(1, 1))])
    turned = from_items("f", [Item("1", "s", ("a",), ("a b d.", "a b c"), choice(1, 1))])
    here, there = pair_features(pairs_of(bench)), pair_features(pairs_of(turned))
    np.testing.assert_allclose(here.dense, -there.dense)
    assert here.sparse.sum() == pytest.approx(-there.sparse.sum())
    np.testing.assert_allclose(here.dense[0], np.array(summary("a b c")) - np.array(summary("a b d.")))


@given(st.text("ab c", max_size=14), st.text("ab c", max_size=14), st.integers(0, 4))
def test_pieces_that_differ_hold_all_that_differs(left: str, right: str, context: int) -> None:
    def counts(text: str) -> Counter[str]:
        return Counter(text[i : i + n] for n in range(1, context + 2) for i in range(len(text) - n + 1))

    a, b = differing_parts(left, right, context)
    whole, pieces = counts(left), counts(a)
    whole.subtract(counts(right))
    pieces.subtract(counts(b))
    assert {k: v for k, v in whole.items() if v} == {k: v for k, v in pieces.items() if v}
    assert len(a) <= len(left)


def test_scale_minimises_the_loss() -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    truth = rng.normal(size=4000)
    margins = np.where(rng.random(4000) < 1 / (1 + np.exp(-np.abs(truth))), np.abs(truth), -np.abs(truth))
    scale = fit_scale(margins * 8)  # calibrated log-odds, made eight times too sure
    assert scale == pytest.approx(1 / 8, rel=0.1)
    losses = [log_loss(margins * 8 * scale * f) for f in (0.9, 1.0, 1.1)]
    assert losses[1] == min(losses)
    assert fit_scale(-margins, signed=True) == pytest.approx(-1, rel=0.1)


def test_bits() -> None:
    assert bits(np.array([0.0, 50.0])).tolist() == pytest.approx([0.0, 1.0])
    assert bits(np.array([np.log(3)]))[0] == pytest.approx(1 + np.log2(0.75))


@dataclass(frozen=True)
class Ridge:
    """A learned attacker that is quick: ridge regression on vectors of the captions, out of fold."""

    vectors: np.ndarray
    name: str = "learned-ridge"
    prefers: str = ""
    otherwise: str = ""
    directed: bool = True

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        x, found = self.vectors[pairs.left] - self.vectors[pairs.right], np.zeros(len(pairs))
        fold = grouped_folds(pairs.group[pairs.item], 5, 0)
        for k in np.unique(fold):
            seen = fold != k
            inner = x[seen].T @ x[seen] + x.shape[1] * np.eye(x.shape[1])
            found[~seen] = x[~seen] @ np.linalg.solve(inner, x[seen].sum(axis=0))
        return found


def test_an_ensemble_answers_a_pair_without_knowing_its_roles() -> None:
    """Turning one pair round turns its answer round and changes nothing else about it. Weights that were learned from
    answers which knew the pair would follow it: then random roles give more than chance."""
    rng = np.random.default_rng(0)
    names = [f"{a} {b} {i}" for i in range(60) for a, b in (("dog", "cat"), ("cat", "dog"))]
    pairs = pairs_of(foil_bench([tuple(names[2 * i : 2 * i + 2]) for i in range(60)], images="{}"))
    members = [Ridge(rng.standard_normal((120, 8))) for _ in range(2)]
    first = Ensemble(members).margins(pairs, "")
    for i in (0, 17, 41):
        left, right = pairs.left.copy(), pairs.right.copy()
        left[i], right[i] = right[i], left[i]
        turned = Ensemble(members).margins(replace(pairs, left=left, right=right), "")
        assert turned[i] == pytest.approx(-first[i], rel=1e-4)
        assert first[i] != 0


@pytest.mark.slow
def test_a_subset_is_answered_the_same_whatever_is_asked_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items of the second subset have two images and so chain those of the first, which must not change its folds."""
    monkeypatch.setattr(linear, "STRENGTHS", (0.1,))
    told = [(f"a {'red' if i % 3 else 'dull'} dog at {i}", f"a dull dog at {i}, {i % 7}") for i in range(170)]
    first = foil_items(told, subset="first", images="{}")
    chain = [Item(f"c{i}", "second", (f"{i}",), (told[i + 1][0], f"no {i}"), choice(1, 1)) for i in range(160)]
    pairs = pairs_of(from_items("b", [*first, *chain]))
    alone = pairs.of_subset("first")
    mine = np.flatnonzero(pairs.subset[pairs.item] == 0)
    assert np.array_equal(pairs.folds_of(mine, 5, 0), alone.folds_of(np.arange(len(alone)), 5, 0))
    members = make_attackers(["learned-linear", "length-chars"], AttackerModels())
    together = Ensemble(members).margins(pairs, "")[mine]
    assert np.array_equal(together, Ensemble(members).margins(alone, ""))


def test_columns_are_n_grams_in_order_with_their_differences() -> None:
    left, right = ["ab ba", "été 𝒳", ""], ["ab", "éte 𝒳", "b"]
    found, (words, letters) = ngram_differences(left, right)
    counts = [Counter(_letters(f"\x02{t}\x03")) for t in (*left, *right)]
    differing = [{g: a[g] - b[g] for g in a | b if a[g] != b[g]} for a, b in zip(counts[:3], counts[3:])]
    expected = [[LETTER_WEIGHT * own.get(g, 0) for g in sorted({g for d in differing for g in d})] for own in differing]
    assert found.toarray()[:, len(words) :].tolist() == expected
    assert len(letters) == len(expected[0])


def _letters(text: str) -> list[str]:
    return [text[i : i + n] for n in range(1, CHARACTER_NGRAMS + 1) for i in range(len(text) - n + 1)]


def test_what_was_learned_on_some_pairs_answers_others_in_their_columns(planted: Planted) -> None:
    """The way of many pairs: n-grams that no training pair shows weigh nothing, so leaving them out changes nothing."""
    pairs = pairs_of(planted(lambda true, false, rng: (true, false.replace("A ", "One ", 1)), 60))
    train, test = np.arange(40), np.arange(40, 60)
    inner = np.arange(40) % 3
    everything = pair_features(pairs)
    whole = fit_linear(everything, train, inner, 0)
    seen = pair_features(pairs, train)
    own = fit_linear(seen, np.arange(40), inner, 0)
    asked = pair_features(pairs, test, seen.columns)
    np.testing.assert_allclose(own.margins(np.arange(20), asked), whole.margins(test, everything), rtol=1e-9)


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 6))
def test_each_group_goes_to_the_fold_that_holds_least(groups: list[int], k: int) -> None:
    fold = grouped_folds(np.array(groups, np.int64), k, 3)
    held = np.bincount(fold, minlength=1)
    largest = max(Counter(groups).values(), default=0)
    assert held.max() - held.min() <= largest
    assert all(len(set(fold[np.array(groups) == g])) == 1 for g in groups)


@pytest.mark.parametrize(("side", "strength"), [([1, -1, 1, 1, -1], 3.0), ([1, 1, 1, 1, 1], 0.03)])
def test_the_solver_gives_what_scikit_learn_gives(side: list[int], strength: float) -> None:
    sparse, linear_model = pytest.importorskip("scipy.sparse"), pytest.importorskip("sklearn.linear_model")
    rows = np.random.default_rng(3).normal(size=(5, 4)) * [1, 0, 2, 1]
    turned = sparse.csr_matrix(rows * np.array(side)[:, None])
    asked = np.array(side, float)
    seen = rows * asked[:, None]
    if len(set(side)) == 1:  # one is turned round: without two classes there is nothing to fit
        asked[0], seen[0] = -asked[0], -seen[0]
    model = linear_model.LogisticRegression(
        C=strength, fit_intercept=False, solver="liblinear", dual=True, tol=1e-2, random_state=0
    ).fit(sparse.csr_matrix(seen), asked)
    assert np.array_equal(_weights(turned, np.array(side, float), strength), model.coef_[0])


def test_what_is_counted_once_is_what_every_part_would_count(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of some pairs, here and in another process, are those of counting them alone; so are all margins."""
    monkeypatch.setattr(linear, "STRENGTHS", (0.1,))
    pairs = pairs_of(
        planted(lambda true, false, rng: (true, false.replace("on", "by") if rng.random() < 0.5 else false), 60)
    )
    together, some = counted_once(pairs), np.arange(pairs.n_items) % 3 > 0
    for part in (together.of_items(some), pickle.loads(pickle.dumps(together.of_items(some)))):
        own, alone = pair_features(part), pair_features(pairs.of_items(some))
        assert (own.sparse != alone.sparse).nnz == 0
        assert np.array_equal(own.dense, alone.dense)
        assert all(map(np.array_equal, own.columns, alone.columns))
    apart, shared = (make_attackers(["learned-linear", "length-words", "ensemble"], AttackerModels()) for _ in "ab")
    for mine, theirs in zip(apart, shared, strict=True):
        begin = getattr(theirs, "begin", lambda _: None)
        begin(together)
        assert np.array_equal(mine.margins(pairs), theirs.margins(together), equal_nan=True)


def test_the_null_is_that_of_refitting_every_fold() -> None:
    rng = np.random.default_rng(5)
    n = 40
    features = rng.normal(size=(n, 6)) * (np.arange(n) != 7)[:, None]  # a pair of equal captions says nothing
    pairs = Pairs(
        tuple(map(str, range(2 * n))), np.arange(n), np.arange(n, 2 * n), np.arange(n), np.zeros(n, int),
        np.zeros(n, int), ("s",), np.arange(n) // 2,
    )  # fmt: skip
    kernel, fold = features @ features.T, rng.integers(0, 4, n // 2).repeat(2)
    roles = np.random.Generator(np.random.PCG64(1)).choice([-1.0, 1.0], size=(n // 2, DRAWS)).repeat(2, axis=0)
    answers, strength = np.zeros_like(roles), np.mean(np.diag(kernel))
    for k in range(4):
        seen = fold != k
        fitted = np.linalg.solve(kernel[np.ix_(seen, seen)] + strength * np.eye(seen.sum()), roles[seen])
        answers[~seen] = kernel[np.ix_(~seen, seen)] @ fitted
    reached, _ = null_accuracies(kernel, pairs, fold, 1)
    assert np.allclose(reached, 0.5 + np.mean(np.sign(answers * roles), axis=0) / 2, atol=1e-12)
