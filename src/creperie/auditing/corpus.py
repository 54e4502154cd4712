"""Attackers that know the corpus: they prefer the caption that captions of other images make likelier.

- `ngram-3`, `ngram-4`, `ngram-5`: language models of these orders with interpolated Kneser–Ney smoothing;
- `cooccurrence`: how much more often a caption's content words stand in one caption than by chance;
- `neural-lm` (neural.py): a small recurrent network, on request.

The corpus is the true captions of the benchmark's other images, out of fold; or captions of the same source that are
named (`corpus=`), less those of the images that are asked about. Nothing is learned from the false captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.learned import pairs_digest
from creperie.auditing.pairs import Pairs, margins_of_scores
from creperie.core import Progress, silent
from creperie.lang import words

ORDERS = (3, 4, 5)
COOCCURRENCE = "cooccurrence"
#: From fewer captions than this nothing is known about a corpus.
FEWEST = 100
#: What a seen n-gram gives to unseen ones.
DISCOUNT = 0.75
#: A word in more than this share of the captions says little about what stands beside it.
COMMON = 0.1


@dataclass(eq=False)
class Corpus:
    """Captions by image, and what was computed from them; attackers of one audit share it.

    Without captions of its own it is the true captions of the pairs that are asked about.
    """

    spec: str = ""
    seed: int = 0
    _known: dict[str, dict[str, np.ndarray]] = field(default_factory=dict, repr=False)

    @cached_property
    def captions(self) -> list[tuple[str, str]]:
        """Image and text of every caption of the named source."""
        if not self.spec:
            return []
        from creperie.making import read_captions

        sources = read_captions(self.spec).sources
        return [(" ".join(source.images) or source.id, source.text) for source in sources]

    def margins(self, pairs: Pairs, name: str, progress: Progress = silent) -> np.ndarray:
        """An attacker's margins on all pairs; NaN where the corpus is too small."""
        key = pairs_digest(pairs)
        if key not in self._known:
            self._known[key] = self._scored(pairs, progress)
        return self._known[key][name]

    def _scored(self, pairs: Pairs, progress: Progress) -> dict[str, np.ndarray]:
        texts, own = self.texts(pairs)
        grams, beside = _Grams(texts), _Beside(texts)
        names = [*(f"ngram-{n}" for n in ORDERS), COOCCURRENCE]
        margins = {name: np.full(len(pairs), np.nan, dtype=np.float32) for name in names}
        for asked, train, test in self.folds(pairs, fold_count(pairs.n_items), progress):
            for name, scores in zip(names, [*grams.scores(train, test), beside.scores(train, test)]):
                of_texts = np.full(len(pairs.texts), np.nan, dtype=np.float32)
                of_texts[own[test]] = scores
                margins[name][asked] = margins_of_scores(pairs, of_texts)[asked]
        return margins

    def texts(self, pairs: Pairs) -> tuple[list[str], np.ndarray]:
        """The captions of the pairs, then those of the named source; and where the first are in `pairs.texts`."""
        own = np.unique(np.concatenate([pairs.left, pairs.right]))
        return [*pairs.said(own), *(text for _, text in self.captions)], own

    def folds(self, pairs: Pairs, k: int, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Per fold: a mask of the pairs that are asked about, the captions to learn from, and the captions asked about.

        Captions are numbered as in `texts`. None to learn from is of an image that is asked about, by any of its
        captions. Folds with too few captions to learn from are left out.
        """
        fold = grouped_folds(pairs.cluster, k, self.seed) if pairs.fold is None else pairs.fold
        texts, own = self.texts(pairs)
        same = np.unique([" ".join(words(text)) for text in texts], return_inverse=True)[1].reshape(-1)
        images = np.unique([image for image, _ in self.captions], return_inverse=True)[1]
        at = np.full(len(pairs.texts), -1)
        at[own] = np.arange(len(own))
        with progress("captions of other images", int(fold.max(initial=0)) + 1, "folds") as advance:
            for f in np.unique(fold):
                asked = (fold == f)[pairs.item]
                test = np.unique(at[np.concatenate([pairs.left[asked], pairs.right[asked]])])
                train = np.unique(at[pairs.left[~asked]])
                if self.captions:
                    hit = np.isin(images, images[np.isin(same[len(own) :], same[test])])
                    train = len(own) + np.flatnonzero(~hit)
                train = train[~np.isin(same[train], same[test])]
                train = train[np.unique(same[train], return_index=True)[1]]
                advance(1)
                if len(train) >= FEWEST:
                    yield asked, train, test


class _Grams:
    """Captions as numbered n-grams of every order; Kneser–Ney models are counts over them."""

    def __init__(self, texts: Sequence[str]) -> None:
        most = max(ORDERS)
        rows = [words(text) for text in texts]
        number: dict[str, int] = {}
        ids = [[number.setdefault(w, len(number) + 2) for w in row] for row in rows]
        # 0 begins a caption (as often as the longest n-gram needs), 1 ends it
        flat = np.array([i for row in ids for i in (*([0] * (most - 1)), *row, 1)], dtype=np.int64)
        self.vocabulary = len(number) + 1
        self.lengths = np.array([len(row) + 1 for row in ids])
        starts = np.cumsum(self.lengths + most - 1) - self.lengths
        self.place = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, self.lengths)])
        self.text = np.repeat(np.arange(len(texts)), self.lengths)
        self.code: list[np.ndarray] = [np.zeros(len(flat), dtype=np.int64)]  #: by order: the n-gram that ends there
        self.context: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]  #: by order and n-gram: all but its last word
        self.suffix: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]  #: all but its first word
        for _ in range(most):
            before = np.r_[0, self.code[-1][:-1]]
            _, first, code = np.unique(before * (self.vocabulary + 2) + flat, return_index=True, return_inverse=True)
            self.context.append(before[first])
            self.suffix.append(self.code[-1][first])
            self.code.append(code.reshape(-1))

    def scores(self, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
        """By order: the mean log-probability per word of some captions, by a model of the others."""
        learned = np.zeros(len(self.lengths), dtype=bool)
        learned[train] = True
        seen, asked = self.place[learned[self.text]], self.place[np.isin(self.text, test)]
        counts = [np.bincount(code[seen], minlength=int(code.max()) + 1) for code in self.code]
        p, means = np.full(len(asked), 1.0 / self.vocabulary), []
        for n in range(1, max(ORDERS) + 1):
            if n in ORDERS:
                means.append(self._mean(self._smoothed(n, counts[n], asked, p), test))
            if n < max(ORDERS):  # lower orders count in how many contexts an n-gram was seen, not how often
                p = self._smoothed(
                    n, np.bincount(self.suffix[n + 1][counts[n + 1] > 0], minlength=len(counts[n])), asked, p
                )
        return means

    def _smoothed(self, n: int, counts: np.ndarray, asked: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """Probabilities of order n: discounted counts, the rest by the lower order."""
        context, own = self.context[n], self.code[n][asked]
        size = int(self.code[n - 1].max()) + 1
        total = np.bincount(context, weights=counts, minlength=size)[context[own]]
        kinds = np.bincount(context[counts > 0], minlength=size)[context[own]]
        smoothed = (np.maximum(counts[own] - DISCOUNT, 0) + DISCOUNT * kinds * lower) / np.maximum(total, 1)
        return np.asarray(np.where(total > 0, smoothed, lower))

    def _mean(self, p: np.ndarray, test: np.ndarray) -> np.ndarray:
        lengths = self.lengths[test]
        return np.asarray(np.add.reduceat(np.log(p), np.cumsum(lengths) - lengths) / lengths)


class _Beside:
    """Captions as couples of content words."""

    def __init__(self, texts: Sequence[str]) -> None:
        rows = [sorted(set(words(text))) for text in texts]
        number: dict[str, int] = {}
        ids = [np.array([number.setdefault(w, len(number)) for w in row], dtype=np.int64) for row in rows]
        often = np.bincount(np.concatenate([np.zeros(0, np.int64), *ids]), minlength=len(number))
        rare = often <= COMMON * len(texts)
        kept = [np.sort(row[rare[row]]) for row in ids]
        self.word, self.word_text = np.concatenate(kept), np.repeat(np.arange(len(kept)), [len(k) for k in kept])
        couples = [(row[i], row[j]) for row in kept for i, j in (np.triu_indices(len(row), 1),)]
        first, second = (np.concatenate([np.zeros(0, np.int64), *side]) for side in zip(*couples))
        self.text = np.repeat(np.arange(len(kept)), [len(a) for a, _ in couples])
        self.first, self.second = first, second
        self.code = np.unique(first * max(1, len(number)) + second, return_inverse=True)[1].reshape(-1)
        self.texts, self.size = len(texts), len(number)

    def scores(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """The mean over a caption's couples of log (seen + 1) / (expected + 1); 0 where it has none."""
        learned = np.zeros(self.texts, dtype=bool)
        learned[train] = True
        often = np.bincount(self.word[learned[self.word_text]], minlength=self.size)
        both = np.bincount(self.code[learned[self.text]], minlength=int(self.code.max(initial=0)) + 1)
        expected = often[self.first] * often[self.second] / max(1, len(train))
        gain = np.log((both[self.code] + 1) / (expected + 1))
        total = np.bincount(self.text, weights=gain, minlength=self.texts)
        return np.asarray((total / np.maximum(1, np.bincount(self.text, minlength=self.texts)))[test])


@dataclass(frozen=True)
class CorpusAttacker:
    """One of the attackers that know the corpus, by name."""

    name: str
    corpus: Corpus
    prefers: str = "the caption more like those of other images"
    otherwise: str = "the caption less like those of other images"
    directed: bool = False

    @property
    def learns(self) -> bool:
        """True where its corpus is the benchmark's own true captions."""
        return not self.corpus.spec

    def margins(self, pairs: Pairs, progress: Progress = silent) -> np.ndarray:
        return self.corpus.margins(pairs, self.name, progress)
