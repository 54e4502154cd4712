"""Attackers that know a corpus: captions of other images tell them which of two captions is more likely.

- `ngram-3`, `ngram-4`, `ngram-5`: n-gram language models (n = 3, 4, 5) with interpolated Kneser–Ney smoothing;
- `cooccurrence`: how much more often the content words of a caption occur together than by chance;
- `neural-lm` (neural.py): a small recurrent network, run only on request.

The corpus consists of the true captions in the other folds of the benchmark. If the option `corpus` names a file or a
benchmark, its captions are used instead, without those of the held-out images. Nothing is learned from false captions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from creperie.auditing.folds import fold_count, grouped_folds
from creperie.auditing.learned import MarginSource
from creperie.auditing.neural import network_scores
from creperie.auditing.pairs import Pairs, margins_of_scores
from creperie.core import Progress
from creperie.lang import words

ORDERS = (3, 4, 5)
COOCCURRENCE, NEURAL = "cooccurrence", "neural-lm"
#: Folds for the network, which is trained once per fold on the captions of the others.
NETWORKS = 3
#: Fewest captions to learn from.
FEWEST = 100
#: The Kneser–Ney discount: the count that a seen n-gram gives to unseen ones.
DISCOUNT = 0.75
#: Words in more than this share of the captions are left out: they say little about their neighbours.
COMMON = 0.1


@dataclass(eq=False)
class Corpus(MarginSource):
    """The captions that corpus attackers learn from. All such attackers of an audit share it.

    The captions come from the file or benchmark that `spec` names. If `spec` is empty, they are the true captions of
    the benchmark under attack. In a fold with too few captions to learn from, the margins are NaN.
    """

    spec: str = ""

    @cached_property
    def captions(self) -> list[tuple[str, str]]:
        """The (image, text) pairs of the file or benchmark that `spec` names. The list is empty if `spec` is empty."""
        if not self.spec:
            return []
        from creperie.making import read_captions

        sources = read_captions(self.spec).sources
        return [(" ".join(source.images) or source.id, source.text) for source in sources]

    @property
    def learns(self) -> bool:
        """True if the captions to learn from are the benchmark's own true captions."""
        return not self.spec

    def _learned(self, pairs: Pairs, name: str, progress: Progress) -> dict[str, np.ndarray]:
        neural, (texts, numbers) = name == NEURAL, self.texts(pairs)
        names = [NEURAL] if neural else [*(f"ngram-{n}" for n in ORDERS), COOCCURRENCE]
        network = partial(network_scores, texts, self.seed)
        scorers = [network] if neural else [_NgramCounts(texts).scores, _Cooccurrences(texts).scores]
        margins = {name: np.full(len(pairs), np.nan, np.float32) for name in names}
        for asked, train, test in self.folds(pairs, NETWORKS if neural else fold_count(pairs.n_items), progress):
            for name, scores in zip(names, (one for score in scorers for one in score(train, test))):
                of_texts = np.full(len(pairs.texts), np.nan, np.float32)
                of_texts[numbers[test]] = scores
                margins[name][asked] = margins_of_scores(pairs, of_texts)[asked]
        return margins

    def texts(self, pairs: Pairs) -> tuple[list[str], np.ndarray]:
        """Return a list of captions: the distinct captions of the pairs, followed by the corpus captions (see
        `captions`). Also return an array: the index in `pairs.texts` of each distinct caption of the pairs.
        """
        numbers = np.unique(np.concatenate([pairs.left, pairs.right]))
        return [*pairs.captions_at(numbers), *(text for _, text in self.captions)], numbers

    def folds(self, pairs: Pairs, k: int, progress: Progress) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield, for each fold, a mask of the held-out pairs, the captions to learn from, and the held-out captions.
        Captions are given by their position in `texts`. Folds with too few captions are skipped.
        """
        # Captions that equal a held-out caption are not learned from. If an image of the corpus (`spec`) has such a
        # caption, none of this image's captions is learned from.
        fold = grouped_folds(pairs.cluster, k, self.seed) if pairs.fold is None else pairs.fold
        texts, numbers = self.texts(pairs)
        same = np.unique([" ".join(words(text)) for text in texts], return_inverse=True)[1].reshape(-1)
        images = np.unique([image for image, _ in self.captions], return_inverse=True)[1]
        at = np.full(len(pairs.texts), -1)
        at[numbers] = np.arange(len(numbers))
        with progress("captions of other images", int(fold.max(initial=0)) + 1, "folds") as advance:
            for f in np.unique(fold):
                asked = (fold == f)[pairs.item]
                test = np.unique(at[np.concatenate([pairs.left[asked], pairs.right[asked]])])
                train = np.unique(at[pairs.left[~asked]])
                if self.captions:
                    hit = np.isin(images, images[np.isin(same[len(numbers) :], same[test])])
                    train = len(numbers) + np.flatnonzero(~hit)
                train = train[~np.isin(same[train], same[test])]
                train = train[np.unique(same[train], return_index=True)[1]]
                advance(1)
                if len(train) >= FEWEST:
                    yield asked, train, test


class _NgramCounts:
    """The n-grams of the captions, encoded as integers, from n = 1 to the largest n. The probabilities of Kneser–Ney
    models are computed from their counts.
    """

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
        self.code: list[np.ndarray] = [np.zeros(len(flat), np.int64)]  #: by order: the n-gram that ends there
        self.context: list[np.ndarray] = [np.zeros(1, np.int64)]  #: by order and n-gram: all but its last word
        self.suffix: list[np.ndarray] = [np.zeros(1, np.int64)]  #: all but its first word
        for _ in range(most):
            before = np.r_[0, self.code[-1][:-1]]
            _, first, code = np.unique(before * (self.vocabulary + 2) + flat, return_index=True, return_inverse=True)
            self.context.append(before[first])
            self.suffix.append(self.code[-1][first])
            self.code.append(code.reshape(-1))

    def scores(self, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
        """Return one array per n-gram model (n = 3, 4, 5), trained on the `train` captions. It holds the mean
        log-probability per word of each `test` caption.
        """
        learned = np.zeros(len(self.lengths), bool)
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
        """Return the probabilities of the words at the positions `asked` under a smoothed n-gram model. They are
        computed from discounted `counts`, and interpolated with the probabilities of the model for n − 1 (`lower`).
        """
        context, grams = self.context[n], self.code[n][asked]
        size = int(self.code[n - 1].max()) + 1
        total = np.bincount(context, weights=counts, minlength=size)[context[grams]]
        kinds = np.bincount(context[counts > 0], minlength=size)[context[grams]]
        smoothed = (np.maximum(counts[grams] - DISCOUNT, 0) + DISCOUNT * kinds * lower) / np.maximum(total, 1)
        return np.where(total > 0, smoothed, lower)

    def _mean(self, p: np.ndarray, test: np.ndarray) -> np.ndarray:
        lengths = self.lengths[test]
        return np.add.reduceat(np.log(p), np.cumsum(lengths) - lengths) / lengths


class _Cooccurrences:
    """The pairs of content words that occur together in captions."""

    def __init__(self, texts: Sequence[str]) -> None:
        rows = [sorted(set(words(text))) for text in texts]
        number: dict[str, int] = {}
        ids = [np.array([number.setdefault(w, len(number)) for w in row], np.int64) for row in rows]
        often = np.bincount(np.concatenate([np.zeros(0, np.int64), *ids]), minlength=len(number))
        content = [np.sort(row[often[row] <= COMMON * len(texts)]) for row in ids]
        self.texts, self.size = len(texts), len(number)
        self.word, self.word_text = np.concatenate(content), np.repeat(np.arange(self.texts), [*map(len, content)])
        couples = [(row[i], row[j]) for row in content for i, j in (np.triu_indices(len(row), 1),)]
        first, second = (np.concatenate([np.zeros(0, np.int64), *side]) for side in zip(*couples))
        self.text = np.repeat(np.arange(self.texts), [len(a) for a, _ in couples])
        self.first, self.second = first, second
        self.code = np.unique(first * self.size + second, return_inverse=True)[1]

    def scores(self, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
        """Return one score per `test` caption: the mean of log((seen + 1) / (expected + 1)) over its pairs of words.
        `seen` is the number of `train` captions with both words, `expected` the number that would have both if the
        words were independent. A caption without a pair of words has score 0.
        """
        learned = np.zeros(self.texts, bool)
        learned[train] = True
        often = np.bincount(self.word[learned[self.word_text]], minlength=self.size)
        both = np.bincount(self.code[learned[self.text]], minlength=len(self.code))
        expected = often[self.first] * often[self.second] / max(1, len(train))
        gain = np.log((both[self.code] + 1) / (expected + 1))
        total = np.bincount(self.text, weights=gain, minlength=self.texts)
        return [(total / np.maximum(1, np.bincount(self.text, minlength=self.texts)))[test]]
