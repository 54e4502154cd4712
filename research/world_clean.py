"""Can a learned text-only attacker tell the world's foils? Prints its accuracy for every kind.

    python research/world_clean.py --items 2000

Attackers, all out of fold (5 folds; an item's captions stay together):

- words, chars: TF-IDF of word 1- to 3-grams or character 2- to 5-grams, logistic regression over single captions;
  it is right when the true caption gets the higher score (ties count half);
- pair: both sets of features, logistic regression over the difference of the two captions of an item, in random order;
- trees: gradient boosting over lengths and a projection of the difference;
- longer: the longer caption (in characters) is taken to be true; its mirror image is 100 % minus that.

Items with two true captions are attacked twice: first caption against foil, second against foil.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from creperie.world import CLEAN, ROOM_KINDS, ROOM_ONLY, stream_items
from creperie.world.foils import CHOICE
from creperie.world.make import ALL_KINDS

Pairs = list[tuple[str, str]]  #: (true caption, foil)
ATTACKERS = ("words", "chars", "pair", "trees", "longer")


def text_pairs(kind: str, form: str, items: int, seed: int = 0, *, rooms: bool = False) -> dict[str, Pairs]:
    """True caption and foil of every item; for triples once with each true caption."""
    made = list(islice(stream_items(kind, form, "test", seed, rooms=rooms), items))
    if form == CHOICE:
        return {kind: [(m.captions[0], m.captions[-1]) for m in made]}
    return {f"{kind} P{k + 1}": [(m.captions[k], m.captions[-1]) for m in made] for k in (0, 1)}


def attack(pairs: Pairs, attacker: str, seed: int = 0) -> float:
    """The share of pairs in which the attacker finds the true caption."""
    if attacker == "longer":
        margins = np.array([len(true) - len(foil) for true, foil in pairs], dtype=float)
    else:
        margins = np.zeros(len(pairs))
        judge = {"words": _Captions, "chars": _Captions, "pair": _Differences, "trees": _Trees}[attacker](
            pairs, attacker
        )
        for train, test in _folds(len(pairs), 5, seed):
            margins[test] = judge.margins(train, test, seed)
    return float(((margins > 0) + 0.5 * (margins == 0)).mean())


def _folds(n: int, k: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    order = np.random.Generator(np.random.PCG64(seed)).permutation(n)
    for part in np.array_split(order, k):
        yield np.setdiff1d(order, part), part


def _features(pairs: Pairs, kind: str) -> tuple[Any, Any]:
    """TF-IDF of the true captions and of the foils. Counting words needs no labels, so it sees all texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if kind == "words":
        vectors = TfidfVectorizer(ngram_range=(1, 3), lowercase=False, token_pattern=_TOKEN, sublinear_tf=True)
    else:
        vectors = TfidfVectorizer(
            analyzer="char", ngram_range=(2, 5), lowercase=False, sublinear_tf=True, max_features=30_000
        )
    both = vectors.fit_transform([text for side in (0, 1) for text in (pair[side] for pair in pairs)]).tocsr()
    return both[: len(pairs)], both[len(pairs) :]


_TOKEN = r"\w+|[^\w\s]| $"


class _Captions:
    """Logistic regression over single captions: which look true?"""

    def __init__(self, pairs: Pairs, kind: str) -> None:
        self.true, self.foil = _features(pairs, kind)

    def margins(self, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
        from scipy.sparse import vstack
        from sklearn.linear_model import LogisticRegression

        labels = np.repeat([1, 0], len(train))
        model = LogisticRegression(max_iter=200).fit(vstack([self.true[train], self.foil[train]]), labels)
        return np.asarray(model.decision_function(self.true[test]) - model.decision_function(self.foil[test]))


class _Differences:
    """Logistic regression over the difference of two captions: which of both is true?"""

    def __init__(self, pairs: Pairs, kind: str) -> None:
        from scipy.sparse import hstack

        sides = [_features(pairs, name) for name in ("words", "chars")]
        self.difference = hstack([true - foil for true, foil in sides]).tocsr()

    def margins(self, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
        from sklearn.linear_model import LogisticRegression

        sign = _signs(len(train), seed)
        # No intercept: it would favour "first" or "second", and in the test the true caption always comes first.
        model = LogisticRegression(max_iter=300, C=10, fit_intercept=False)
        model.fit(self.difference[train].multiply(sign[:, None]).tocsr(), sign > 0)
        return np.asarray(model.decision_function(self.difference[test]))


class _Trees(_Differences):
    """Gradient boosting over lengths and a projection of the difference."""

    def __init__(self, pairs: Pairs, kind: str) -> None:
        super().__init__(pairs, kind)
        self.lengths = np.array([[len(a) - len(b), a.count(" ") - b.count(" ")] for a, b in pairs])

    def margins(self, train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.ensemble import HistGradientBoostingClassifier

        sign = _signs(len(train), seed)[:, None]
        projection = TruncatedSVD(24, random_state=seed).fit(self.difference[train])
        before, after = (np.hstack([projection.transform(self.difference[k]), self.lengths[k]]) for k in (train, test))
        trees = HistGradientBoostingClassifier(max_iter=80, random_state=seed).fit(before * sign, sign[:, 0] > 0)
        return np.asarray(trees.predict_proba(after)[:, 1] - trees.predict_proba(-after)[:, 1])


def _signs(n: int, seed: int) -> np.ndarray:
    """The order in which each training pair is shown: the true caption first (1) or second (−1)."""
    return np.random.Generator(np.random.PCG64(seed)).integers(0, 2, n) * 2 - 1


def interval(share: float, n: int) -> float:
    """Half the width of the 95 % interval of a share near one half."""
    return 1.96 * math.sqrt(max(share * (1 - share), 1e-9) / n)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--kinds", default=",".join((*ALL_KINDS, *ROOM_ONLY)))
    parser.add_argument("--form", default=CHOICE, choices=("choice", "triple"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--render", default="2d", choices=("2d", "3d"))
    options = parser.parse_args(arguments)
    print(f"{'kind':26}" + "".join(f"{name:>9}" for name in ATTACKERS) + "    ±")
    for kind in options.kinds.split(","):
        rooms = options.render == "3d"
        if kind not in (ROOM_KINDS if rooms else CLEAN if options.form != CHOICE else ALL_KINDS):
            continue
        for name, pairs in text_pairs(kind, options.form, options.items, options.seed, rooms=rooms).items():
            shares = [attack(pairs, attacker) for attacker in ATTACKERS]
            cells = "".join(f"{100 * share:9.1f}" for share in shares)
            print(f"{name:26}{cells}{100 * interval(0.5, len(pairs)):5.1f}", flush=True)


if __name__ == "__main__":
    main()
