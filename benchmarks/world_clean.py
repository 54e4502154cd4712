"""Can a learned text-only attacker tell the world's foils? Prints its accuracy for every kind.

    python benchmarks/world_clean.py --items 2000

Attackers, all out of fold (5 folds; an item's captions stay together):

- words, chars: TF-IDF of word 1- to 3-grams or character 2- to 5-grams, logistic regression over single captions;
  it is right when the true caption gets the higher score (ties count half);
- pair: both sets of features, logistic regression over the difference of the two captions of an item, in random order;
- trees: gradient boosting over lengths, counts of frequent words and a projection of the difference;
- longer: the longer caption (in characters) is taken to be true; its mirror image is 100 % minus that.

Items with two true captions are attacked twice: first caption against foil, second against foil.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from creperie.world.foils import CHOICE, CLEAN
from creperie.world.make import ALL_KINDS, stream

Pairs = list[tuple[str, str]]  #: (true caption, foil)
ATTACKERS = ("words", "chars", "pair", "trees", "longer")


def text_pairs(kind: str, form: str, items: int, seed: int = 0) -> dict[str, Pairs]:
    """True caption and foil of every item; for triples once with each true caption."""
    made = list(islice(stream(kind, form, "test", seed), items))
    if form == CHOICE:
        return {kind: [(m.captions[0], m.captions[-1]) for m in made]}
    return {f"{kind} P{k + 1}": [(m.captions[k], m.captions[-1]) for m in made] for k in (0, 1)}


def attack(pairs: Pairs, attacker: str, seed: int = 0) -> float:
    """The share of pairs in which the attacker finds the true caption."""
    if attacker == "longer":
        gaps = np.array([len(true) - len(foil) for true, foil in pairs])
        return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())
    scores = np.zeros(len(pairs))
    for train, test in _folds(len(pairs), 5, seed):
        fit = _fit_single if attacker in ("words", "chars") else _fit_pair
        scores[test] = fit([pairs[i] for i in train], [pairs[i] for i in test], attacker, seed)
    return float(((scores > 0) + 0.5 * (scores == 0)).mean())


def _folds(n: int, k: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    order = np.random.Generator(np.random.PCG64(seed)).permutation(n)
    for part in np.array_split(order, k):
        yield np.setdiff1d(order, part), part


def _vectorizer(kind: str):  # type: ignore[no-untyped-def]
    from sklearn.feature_extraction.text import TfidfVectorizer

    if kind == "words":
        return TfidfVectorizer(ngram_range=(1, 3), lowercase=False, token_pattern=r"\w+|[^\w\s]| $", sublinear_tf=True)
    return TfidfVectorizer(analyzer="char", ngram_range=(2, 5), lowercase=False, sublinear_tf=True, max_features=30_000)


def _fit_single(train: Pairs, test: Pairs, kind: str, seed: int) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    vectors = _vectorizer(kind)
    x = vectors.fit_transform([text for pair in train for text in pair])
    model = LogisticRegression(max_iter=200, random_state=seed).fit(x, np.tile([1, 0], len(train)))
    true, foil = (model.decision_function(vectors.transform([pair[k] for pair in test])) for k in (0, 1))
    return np.asarray(true - foil)


def _fit_pair(train: Pairs, test: Pairs, kind: str, seed: int) -> np.ndarray:
    from scipy.sparse import hstack
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    parts = [_vectorizer(name).fit([text for pair in train for text in pair]) for name in ("words", "chars")]

    def differences(pairs: Pairs):  # type: ignore[no-untyped-def]
        return hstack([v.transform([p[0] for p in pairs]) - v.transform([p[1] for p in pairs]) for v in parts]).tocsr()

    rng = np.random.Generator(np.random.PCG64(seed))
    sign = rng.integers(0, 2, len(train)) * 2 - 1
    x, y = differences(train).multiply(sign[:, None]).tocsr(), sign > 0
    z = differences(test)
    if kind == "pair":
        # No intercept: it would favour "first" or "second", and in the test the true caption always comes first.
        return np.asarray(LogisticRegression(max_iter=300, C=10, fit_intercept=False).fit(x, y).decision_function(z))
    lengths = [np.array([[len(a) - len(b), a.count(" ") - b.count(" ")] for a, b in pairs]) for pairs in (train, test)]
    svd = TruncatedSVD(24, random_state=seed)
    dense = np.hstack([svd.fit_transform(x), lengths[0] * sign[:, None]])
    trees = HistGradientBoostingClassifier(max_iter=80, random_state=seed).fit(dense, y)
    after = np.hstack([svd.transform(z), lengths[1]])
    return np.asarray(trees.predict_proba(after)[:, 1] - trees.predict_proba(-after)[:, 1])


def interval(share: float, n: int) -> float:
    """Half the width of the 95 % interval of a share near one half."""
    return 1.96 * math.sqrt(max(share * (1 - share), 1e-9) / n)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--kinds", default=",".join(ALL_KINDS))
    parser.add_argument("--form", default=CHOICE, choices=("choice", "triple"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(f"{'kind':26}" + "".join(f"{name:>9}" for name in ATTACKERS) + "    ±")
    for kind in options.kinds.split(","):
        if options.form != CHOICE and kind not in CLEAN:
            continue
        for name, pairs in text_pairs(kind, options.form, options.items, options.seed).items():
            shares = [attack(pairs, attacker) for attacker in ATTACKERS]
            cells = "".join(f"{100 * share:9.1f}" for share in shares)
            print(f"{name:26}{cells}{100 * interval(0.5, len(pairs)):5.1f}", flush=True)


if __name__ == "__main__":
    main()
