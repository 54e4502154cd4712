"""Models whose answers are kept in the store: a second audit, or a run on the same captions, computes nothing again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from creperie.models import Fingerprint, TextEncoder, TextScorer
from creperie.scoring import ResultStore, text_keys

Compute = Callable[[Sequence[str]], np.ndarray]
BATCH = 256


class CachedEncoder:
    """A text encoder with its vectors from the store. May be called from several threads."""

    def __init__(self, model: TextEncoder, stored: bool = True) -> None:
        self.model = model
        self.store = ResultStore() if stored else None
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> Fingerprint:
        return self.model.fingerprint

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        with self._lock:
            return kept(self.store, self.fingerprint, "text", texts, self.model.encode_texts)


@runtime_checkable
class TokenScorer(Protocol):
    """A language model that tells the log-probability of every token."""

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]: ...


class CachedScorer:
    """A text scorer with its scores from the store.

    Of a language model that tells every token's log-probability, mean and sum are kept at once: each costs a forward
    pass through the model, and both attackers want one.
    """

    def __init__(self, model: TextScorer, stored: bool = True) -> None:
        self.model = model
        self.store = ResultStore() if stored else None

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return kept(self.store, self.model.fingerprint, "blind", texts, self.model.score_texts)

    def likelihoods(self, texts: Sequence[str], reduce: str) -> np.ndarray:
        """Mean or sum of the tokens' log-probabilities."""
        model = self.model
        assert isinstance(model, TokenScorer)
        name = {"mean": _reduced(model, "mean"), "sum": _reduced(model, "sum")}

        def both(missing: Sequence[str]) -> np.ndarray:
            logs = model.log_probabilities(missing)
            scores = {
                "mean": np.array([np.mean(x) if len(x) else np.nan for x in logs], dtype=np.float32),
                "sum": np.array([np.sum(x) if len(x) else np.nan for x in logs], dtype=np.float32),
            }
            other = "sum" if reduce == "mean" else "mean"
            kept(self.store, name[other], "blind", missing, lambda new: _picked(missing, scores[other], new))
            return scores[reduce]

        return kept(self.store, name[reduce], "blind", texts, both)


def _reduced(model: TextScorer, reduce: str) -> Fingerprint:
    """The fingerprint of the same language model with another reduction."""
    return replace(model.fingerprint, options={**model.fingerprint.options, "reduce": reduce})


def _picked(texts: Sequence[str], scores: np.ndarray, wanted: Sequence[str]) -> np.ndarray:
    where = {text: i for i, text in enumerate(texts)}
    return scores[[where[text] for text in wanted]]


def kept(
    store: ResultStore | None, fingerprint: Fingerprint, kind: str, texts: Sequence[str], compute: Compute
) -> np.ndarray:
    """Return one float32 row per text: read from the store, or computed in batches and stored; without a store, all are
    computed."""
    if not texts:
        return np.zeros(0, dtype=np.float32)
    rows: dict[int, np.ndarray] = {}
    shelf = None if store is None else store.shelf(fingerprint, kind)
    keys = text_keys(texts)
    if shelf is not None:
        stored = shelf.find(keys)
        rows.update(zip(stored.rows.tolist(), stored.vectors))
    order = sorted(set(range(len(texts))) - rows.keys(), key=lambda i: (len(texts[i]), i))
    try:
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            values = np.asarray(compute([texts[i] for i in batch]), dtype=np.float32)
            rows.update(zip(batch, values))
            if shelf is not None:
                _keep(shelf.add, keys[batch], values)
    finally:
        if shelf is not None:
            _close(shelf.close)
    return np.stack([rows[i] for i in range(len(texts))]).astype(np.float32)


def _keep(add: Callable[[np.ndarray, np.ndarray], None], keys: np.ndarray, values: np.ndarray) -> None:
    try:
        add(keys, values)
    except OSError:  # a full or read-only disk: the answers are right all the same
        return


def _close(close: Callable[[], None]) -> None:
    try:
        close()
    except OSError:
        return
