"""Models whose outputs are cached in the result store. A second audit, or a run on the same captions, then computes
nothing again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from creperie.core import batched
from creperie.models import Fingerprint, TextEncoder, TextScorer
from creperie.scoring import ResultStore, text_keys

Compute = Callable[[Sequence[str]], np.ndarray]
BATCH = 256


class CachedEncoder:
    """A text encoder whose vectors are cached in the result store. It may be called from several threads."""

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
    """The protocol of a language model that returns the log-probability of every token."""

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]: ...


class CachedScorer:
    """A text scorer whose scores are cached in the result store.

    A language model may return the log-probability of every token. Their mean and their sum are then stored together,
    because one attacker uses the mean and another the sum.
    """

    def __init__(self, model: TextScorer, stored: bool = True) -> None:
        self.model = model
        self.store = ResultStore() if stored else None

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return kept(self.store, self.model.fingerprint, "blind", texts, self.model.score_texts)

    def likelihoods(self, texts: Sequence[str], reduce: str) -> np.ndarray:
        """Return the mean or the sum of the token log-probabilities of each text."""
        model = self.model
        assert isinstance(model, TokenScorer)
        reductions: dict[str, Callable[[np.ndarray], float]] = {"mean": np.mean, "sum": np.sum}
        base = model.fingerprint
        names = {how: replace(base, options={**base.options, "reduce": how}) for how in reductions}
        (other,) = reductions.keys() - {reduce}

        def both(missing: Sequence[str]) -> np.ndarray:
            logs = model.log_probabilities(missing)
            scores = {
                how: np.array([reduced(x) if len(x) else np.nan for x in logs], np.float32)
                for how, reduced in reductions.items()
            }
            by_text = dict(zip(missing, scores[other]))
            kept(self.store, names[other], "blind", missing, lambda new: np.array([by_text[text] for text in new]))
            return scores[reduce]

        return kept(self.store, names[reduce], "blind", texts, both)


def kept(
    store: ResultStore | None, fingerprint: Fingerprint, kind: str, texts: Sequence[str], compute: Compute
) -> np.ndarray:
    """Return one float32 row per text. Stored rows are read; the others are computed in batches and stored. Without a
    store, all rows are computed.
    """
    if not texts:
        return np.zeros(0, np.float32)
    rows: dict[int, np.ndarray] = {}
    shelf = None if store is None else store.shelf(fingerprint, kind)
    keys = text_keys(texts)
    if shelf is not None:
        stored = shelf.find(keys)
        rows.update(zip(stored.rows.tolist(), stored.vectors))
    order = sorted(set(range(len(texts))) - rows.keys(), key=lambda i: (len(texts[i]), i))
    try:
        for batch in batched(order, BATCH):
            values = np.asarray(compute([texts[i] for i in batch]), np.float32)
            rows.update(zip(batch, values))
            if shelf is not None:
                sound = np.isfinite(values.reshape(len(batch), -1)).all(axis=1)  # NaN is computed again next time
                with suppress(OSError):  # a full or read-only disk: the results are still right, only not stored
                    shelf.add(keys[batch][sound], values[sound])
    finally:
        if shelf is not None:
            with suppress(OSError):
                shelf.close()
    return np.stack([rows[i] for i in range(len(texts))]).astype(np.float32)
