"""Attackers that know the corpus: Kneser–Ney by hand, captions of other images alone, and what they find."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from creperie.auditing import (
    AttackerModels,
    audit,
    fold_count,
    grouped_folds,
    make_attackers,
    pairs_of,
    runnable_attackers,
)
from creperie.auditing.corpus import DISCOUNT, Corpus, _Cooccurrences, _NgramCounts
from creperie.auditing.neural import likelihoods
from creperie.bench import Benchmark, Item, choice, from_items, save
from creperie.core import silent

NAMES = ("ngram-3", "ngram-4", "ngram-5", "cooccurrence")
TEXTS = [
    "a dog runs in the snow",
    "a dog sits in the sun",
    "the cat runs in the snow",
    "a bird sits",
    "snow in the sun",
]


def kneser_ney(order: int, train: list[str], vocabulary: int, history: tuple[str, ...], word: str) -> float:
    """As Chen and Goodman (1999) write interpolated Kneser–Ney, n-gram by n-gram."""
    rows = [("<s>",) * 4 + tuple(t.split()) + ("</s>",) for t in train]
    grams = {n: Counter(r[i - n + 1 : i + 1] for r in rows for i in range(4, len(r))) for n in range(1, 6)}

    def p(n: int, context: tuple[str, ...]) -> float:
        if n == 0:
            return 1 / vocabulary
        counts = grams[n] if n == order else Counter(g[1:] for g in grams[n + 1])
        own = {g[-1]: c for g, c in counts.items() if g[:-1] == context}
        lower = p(n - 1, context[1:])
        if not own:
            return lower
        return (max(own.get(word, 0) - DISCOUNT, 0) + DISCOUNT * len(own) * lower) / sum(own.values())

    return p(order, history[len(history) - order + 1 :])


@pytest.mark.parametrize("order", [3, 4, 5])
def test_scores_are_those_of_kneser_ney(order: int) -> None:
    grams = _NgramCounts(TEXTS)
    train, test = np.array([0, 1, 3]), np.array([2, 4])
    found = grams.scores(train, test)[order - 3]
    words = {w for t in TEXTS for w in t.split()}
    for score, k in zip(found, test):
        row = ("<s>",) * 4 + tuple(TEXTS[k].split()) + ("</s>",)
        own = [
            kneser_ney(order, [TEXTS[i] for i in train], len(words) + 1, row[:i], row[i]) for i in range(4, len(row))
        ]
        assert score == pytest.approx(np.mean(np.log(own)))


def test_what_stands_together_is_counted_by_hand() -> None:
    """Each word is in at most a tenth of the captions; "bow" and "arrow" stand together twice among 40."""
    texts = ["bow arrow", "bow arrow", *(f"w{k} v{k}" for k in range(38)), "bow v3"]
    (found,) = _Cooccurrences(texts).scores(np.arange(40), np.array([0, 40]))
    assert found == pytest.approx([math.log((2 + 1) / (2 * 2 / 40 + 1)), math.log(1 / (2 * 1 / 40 + 1))])


def bench(n: int, seed: int, skew: float) -> Benchmark:
    """Pairs of a caption and its colours exchanged; with a skew, true captions have a triple that foils have not."""
    rng = np.random.default_rng(seed)
    items = []
    for k in range(n):
        a, b = rng.choice(["red", "blue", "green", "white", "black"], 2, replace=False)
        x, y = rng.choice(["bus", "coat", "kite", "boat", "door", "chair"], 2)
        texts = [f"a {a} {x} near the {b} {y} number {k}", f"a {b} {x} near the {a} {y} number {k}"]
        if rng.random() < skew:
            texts = [t for t in texts if (f"{a} {x} near" in t) == (a < b)] + [
                t for t in texts if (f"{a} {x} near" in t) != (a < b)
            ]
        items.append(Item(str(k), "s", (f"{k // 2}.jpg",), tuple(texts), choice(1, 1)))
    return from_items("b", items)


def test_no_answer_depends_on_the_roles_that_are_asked_about() -> None:
    """Turn the roles of one fold round: its own margins turn with them, whatever other folds were trained on."""
    pairs = pairs_of(bench(300, 0, 1.0)).by_content[0]  # in the order in which folds are drawn
    fold = grouped_folds(pairs.cluster, fold_count(pairs.n_items), 0)
    mine = (fold == 2)[pairs.item]
    turned = replace(pairs, left=np.where(mine, pairs.right, pairs.left), right=np.where(mine, pairs.left, pairs.right))
    for name in NAMES:
        before, after = (Corpus().margins(p, name) for p in (pairs, turned))
        np.testing.assert_allclose(after[mine], -before[mine], atol=1e-6)
        assert np.abs(before[mine]).max() > 0 or name == "cooccurrence"  # both captions have the same words


def test_a_skewed_order_of_words_is_found_and_none_where_there_is_none() -> None:
    """A colour that stands first more often than the other: single words and their couples balance."""
    skewed, fair = (audit(bench(500, 1, s), NAMES) for s in (1.0, 0.0))
    found = {r.attacker: r for r in skewed.rows if r.subset == "s"}
    assert found["ngram-4"].leaks
    assert found["ngram-4"].measure.accuracy > 0.8
    assert found["cooccurrence"].measure.accuracy == 0.5
    assert fair.verdict != "leaks"
    assert {*NAMES} <= {*runnable_attackers((), AttackerModels())[0]}  # without being named


def test_with_random_roles_their_accuracy_is_one_half_in_the_mean() -> None:
    reached = [np.mean(Corpus().margins(pairs_of(bench(200, s, 0.0)), "ngram-3") > 0) for s in range(20)]
    assert abs(np.mean(reached) - 0.5) < 4 * 0.5 / math.sqrt(200 * 20) * 1.3


def test_too_few_captions_are_no_corpus() -> None:
    assert np.isnan(Corpus().margins(pairs_of(bench(60, 0, 1.0)), "ngram-3")).all()


def test_a_named_corpus_leaves_out_the_images_that_are_asked_about(tmp_path: Path) -> None:
    """The corpus holds a second caption of each image that would give it away; it is not learned from."""
    own = bench(40, 3, 0.0)
    told = [replace(i, captions=(i.captions[0], i.captions[0] + " again"), match=((True, True),)) for i in own]
    others = [
        Item(f"x{k}", "s", (f"x{k}.jpg",), (i.captions[k % 2],), ((True,),)) for k, i in enumerate(bench(300, 4, 0.0))
    ]
    save(from_items("corpus", [*told, *others]), tmp_path / "corpus")
    (attacker,) = make_attackers(["ngram-4"], AttackerModels(corpus=str(tmp_path / "corpus")))
    pairs = pairs_of(own)
    corpus = attacker.learner  # type: ignore[attr-defined]
    assert len(corpus.captions) == 380
    ((asked, train, test),) = corpus.folds(replace(pairs, fold=np.zeros(40, dtype=int)), 1, silent)
    assert (asked.all(), len(train), len(test)) == (True, 300, 80)
    assert 0.2 < np.mean(attacker.margins(pairs) > 0) < 0.8
    assert not attacker.learns  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_neural_model_finds_the_skewed_order_and_forgets_no_fold() -> None:
    """Learned from other images' captions alone: on a skew it wins, on fair roles it is near one half."""
    pytest.importorskip("torch", reason="creperie[models] is not installed")
    (attacker,) = make_attackers(["neural-lm"], AttackerModels())
    skewed, fair = (np.mean(attacker.margins(pairs_of(bench(360, 1, s))) > 0) for s in (1.0, 0.0))
    assert skewed > 0.75
    assert 0.4 < fair < 0.6
    assert attacker.learns  # type: ignore[attr-defined]
    likely, unlikely = likelihoods(["a red bus", "a blue bus", "a red kite"] * 40, ["a red bus", "bus red a"])
    assert likely > unlikely + 1


def test_halves_of_twins_hold_every_text_only_attacker_at_one_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """One-image items whose foil is another image's truth, and the other way round: nothing is left by construction."""
    monkeypatch.setattr("creperie.auditing.linear.STRENGTHS", (0.1,))
    items = []
    for k, item in enumerate(bench(300, 6, 1.0)):
        for side, captions in enumerate((item.captions, item.captions[::-1])):
            items.append(Item(f"{k}.{side}", "s", (f"{k}-{side}.jpg",), captions, choice(1, 1)))
    found = audit(from_items("halves", items), [*NAMES, "length-chars", "frequency", "learned-linear", "ensemble"])
    assert {r.measure.accuracy for r in found.rows} == {0.5}
    assert found.verdict == "clean"
