"""Attackers that need a model: embeddings, transfer from other benchmarks, an LLM that is asked, and the ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from creperie.auditing.attackers import Attacker, learns
from creperie.auditing.features import PairFeatures, pair_features
from creperie.auditing.folds import grouped_folds
from creperie.auditing.learned import INNER_FOLDS, RemembersMargins, linear_out_of_fold, sampled, stacked
from creperie.auditing.linear import Linear, fit_linear
from creperie.auditing.pairs import Pairs, one_thread, pairs_of, spread_out, training_blocks
from creperie.bench import load
from creperie.core import DataError, Progress
from creperie.lang import tokens
from creperie.models import Generator, Prompt, TextEncoder, parse_choice

BATCH = 256


@dataclass(frozen=True)
class EmbeddingAttacker(RemembersMargins):
    """Logistic regression on differences of embeddings, out of fold, one model per subset."""

    encoder: TextEncoder
    name: str = "learned-embedding"
    prefers: str = "the caption whose embedding is more like those of the true captions in the other folds"
    _vectors: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        import scipy.sparse as sparse

        used, at = np.unique(np.concatenate([pairs.left, pairs.right]), return_inverse=True)
        vectors = self._encoded(pairs.said(used), progress)
        dense = vectors[at[: len(pairs)]] - vectors[at[len(pairs) :]]
        features = PairFeatures(sparse.csr_matrix((len(pairs), 0)), dense, 0)
        with progress(self.name, len(training_blocks(pairs)), "subsets") as advance:
            return linear_out_of_fold(features, pairs, self.seed, advance)

    def _encoded(self, texts: list[str], progress: Progress) -> np.ndarray:
        new = sorted(set(texts) - self._vectors.keys(), key=lambda t: (len(t), t))
        with progress("encode captions", len(new), "captions") as advance:
            for start in range(0, len(new), BATCH):
                batch = new[start : start + BATCH]
                self._vectors.update(zip(batch, self.encoder.encode_texts(batch), strict=True))
                advance(len(batch))
        return np.stack([self._vectors[t] for t in texts]).astype(np.float64)


#: From fewer pairs than this nothing is learned.
FEWEST = 40


@dataclass(frozen=True)
class TransferAttacker(RemembersMargins):
    """Logistic regression on n-grams, lengths and style of other benchmarks' pairs; it never learns from these."""

    sources: tuple[str, ...]  #: specs of the benchmarks to learn from
    name: str = "transfer"
    prefers: str = "the caption more like the true ones of other benchmarks"
    learns: bool = False

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        """A subset's answers are the same whatever subsets are asked beside it."""
        both, found = pairs, np.zeros(len(pairs), dtype=np.float32)
        for source in self.sources:
            both = _joined(both, pairs_of(load(source)))
        features, there, known = pair_features(both), np.arange(both.n_items) >= pairs.n_items, dict[bytes, Linear]()
        _, same = np.unique([" ".join(tokens(text)).rstrip(" .") for text in both.texts], return_inverse=True)
        with progress(self.name, len(pairs.subsets), "subsets") as advance, one_thread():
            for s in np.unique(pairs.subset):
                mine = both.subset == s
                train = sampled(np.flatnonzero((there & ~_sharing(both, same, mine))[both.item]), self.seed)
                if len(train) < FEWEST:
                    where, why = ", ".join(self.sources), "captions that stand in both benchmarks are left out"
                    raise DataError(f"only {len(train)} pairs to learn from ({why})", where=where, hint="name another")
                if train.tobytes() not in known:
                    inner = grouped_folds(both.group[both.item[train]], INNER_FOLDS, self.seed + 1)
                    known[train.tobytes()] = fit_linear(features, train, inner, self.seed)
                asked = np.flatnonzero(mine[both.item])
                found[asked] = known[train.tobytes()].margins(asked)
                advance(1)
        return found


def _sharing(pairs: Pairs, same: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Items that share a caption, by what makes captions the same, with some items (both are masks)."""
    both = same[np.stack([pairs.left, pairs.right])]
    hit = np.isin(both, both[:, some[pairs.item]]).any(axis=0)
    return np.bincount(pairs.item, weights=hit, minlength=pairs.n_items) > 0


def _joined(first: Pairs, second: Pairs) -> Pairs:
    """Both, one behind the other."""
    texts, items, clusters = len(first.texts), first.n_items, int(first.cluster.max(initial=-1)) + 1
    return replace(
        first,
        texts=(*first.texts, *second.texts),
        left=np.r_[first.left, second.left + texts],
        right=np.r_[first.right, second.right + texts],
        item=np.r_[first.item, second.item + items],
        row=np.r_[first.row, second.row],
        subset=np.r_[first.subset, second.subset + len(first.subsets)],
        subsets=(*first.subsets, *second.subsets),
        cluster=np.r_[first.cluster, second.cluster + clusters],
        fold=None,
        counted=None,
    )


#: Parts of the items; the weights for one come from the others.
STACKING_FOLDS = 3


@dataclass(frozen=True)
class EnsembleAttacker(RemembersMargins):
    """Logistic regression on the margins of other attackers, out of fold, one model per subset.

    The weights for a fold's pairs come from the other folds alone: attackers that learn are trained once more on those
    folds, so that the answers from which the weights are learned know nothing of the roles that are asked about.
    Stacking the usual out-of-fold answers would find 52 % where roles are drawn at random (245 pairs).
    """

    members: Sequence[Attacker]
    name: str = "ensemble"
    prefers: str = "what the other attackers together prefer"

    def begin(self, pairs: Pairs) -> None:
        for _, part in self._parts(pairs):
            for member in self.members:
                if part is not None and (begin := getattr(member, "begin", None)) is not None:
                    begin(part)

    def _parts(self, pairs: Pairs) -> Iterator[tuple[np.ndarray, Pairs | None]]:
        """A mask over the items for every fold, and the pairs of the others where something is learned from them."""
        fold = np.zeros(pairs.n_items, dtype=np.int64)
        for keep in training_blocks(pairs):
            fold[keep] = grouped_folds(pairs.own_group[keep], STACKING_FOLDS, self.seed)
        for k in np.unique(fold):
            learning = (fold != k)[pairs.item].any() and any(map(learns, self.members))
            yield fold == k, replace(pairs.of_items(fold != k), fold=None) if learning else None

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        asked = self._answers(self.members, pairs, progress)
        found = np.full(len(pairs), np.nan, dtype=np.float32)
        mine = [keep[pairs.item] for keep in training_blocks(pairs)]
        blocks = [replace(pairs.of_items(keep), counted=None) for keep in training_blocks(pairs)]
        learning = [k for k, a in enumerate(self.members) if learns(a)]
        for fold, part in self._parts(pairs):
            known, held_out = asked.copy(), fold[pairs.item]
            if part is not None:
                known[np.ix_(~held_out, learning)] = self._answers([self.members[m] for m in learning], part, progress)
            answers = spread_out(
                partial(stacked, seed=self.seed), blocks, [known[own] for own in mine], [held_out[own] for own in mine]
            )
            for own, answer in zip(mine, answers):
                found[own & held_out] = answer
        return found

    def _answers(self, members: Sequence[Attacker], pairs: Pairs, progress: Progress) -> np.ndarray:
        """One column per member."""
        return np.stack([np.nan_to_num(a.margins(pairs, progress)) for a in members], axis=1).astype(np.float64)


QUESTION = """A person who looked at a photograph wrote one of these two sentences. The other is a changed copy of it.
(1) {first}
(2) {second}
Which one describes a real photograph? Answer with (1) or (2) only."""
QUESTIONS = 64  #: asked at once


@dataclass(frozen=True)
class LlmJudge(RemembersMargins):
    """Every pair is asked in both orders; a margin is the mean of the two answers, 0 where they contradict."""

    model: Generator
    name: str = "judge"
    prefers: str = "the sentence that a language model takes for a real photograph's"
    learns: bool = False

    def _learn(self, pairs: Pairs, progress: Progress) -> np.ndarray:
        """Each two captions are asked about once, whatever their roles."""
        asked = sorted({(min(a, b), max(a, b)) for a, b in zip(pairs.left.tolist(), pairs.right.tolist()) if a != b})
        chosen: dict[tuple[int, int], float] = {}
        with progress(self.name, 2 * len(asked), "questions") as advance:
            for start in range(0, len(asked), QUESTIONS):
                batch = asked[start : start + QUESTIONS]
                chosen |= self._answers(batch, pairs.texts)
                advance(2 * len(batch))
        margins = [
            chosen.get((a, b), 0.0) - chosen.get((b, a), 0.0) for a, b in zip(pairs.left.tolist(), pairs.right.tolist())
        ]
        return np.array(margins, dtype=np.float32)

    def _answers(self, batch: Sequence[tuple[int, int]], texts: Sequence[str]) -> Mapping[tuple[int, int], float]:
        """How far the first of each two is preferred, from −1 to 1."""
        orders = [order for a, b in batch for order in ((a, b), (b, a))]
        options = [(texts[a].strip(), texts[b].strip()) for a, b in orders]
        prompts = [Prompt((("user", QUESTION.format(first=a, second=b)),), max_tokens=8) for a, b in options]
        votes = []
        for answer, shown in zip(self.model.generate(prompts), options, strict=True):
            at = parse_choice(answer, shown).option
            votes.append(0.0 if at is None else 1.0 - 2.0 * at)
        return {pair: (votes[2 * k] - votes[2 * k + 1]) / 2 for k, pair in enumerate(batch)}
