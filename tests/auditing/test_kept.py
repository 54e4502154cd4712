"""What models answered is kept, and never asked for again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from creperie.auditing.cached_models import CachedEncoder, CachedScorer
from creperie.core import cache_home
from creperie.models import Fingerprint


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path))


class Counting:
    """A language model of letters that counts what it is asked."""

    fingerprint = Fingerprint("test:letters", "letters", "0", options={"reduce": "mean"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    def log_probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        self.asked += texts
        return [-np.arange(1.0, len(t) + 1, dtype=np.float32) for t in texts]

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([x.mean() for x in self.log_probabilities(texts)], dtype=np.float32)

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return np.array([[len(t), 1.0] for t in texts], dtype=np.float32)


def test_scores_are_kept_between_audits() -> None:
    first = Counting()
    assert CachedScorer(first).score_texts(["abc", "a"]).tolist() == [-2.0, -1.0]
    second = Counting()
    assert CachedScorer(second).score_texts(["a", "abcde", "abc"]).tolist() == [-1.0, -3.0, -2.0]
    assert (sorted(first.asked), second.asked) == (["a", "abc"], ["abcde"])
    CachedScorer(second, stored=False).score_texts(["abc"])
    assert second.asked == ["abcde", "abc"]


def test_mean_and_sum_cost_one_pass() -> None:
    model = Counting()
    scorer = CachedScorer(model)
    assert scorer.likelihoods(["abc", "ab"], "mean").tolist() == [-2.0, -1.5]
    assert scorer.likelihoods(["ab", "abc"], "sum").tolist() == [-3.0, -6.0]
    assert sorted(model.asked) == ["ab", "abc"]


def test_an_empty_caption_has_no_likelihood() -> None:
    assert np.isnan(CachedScorer(Counting()).likelihoods([""], "mean")[0])


def test_vectors_are_kept() -> None:
    model = Counting()
    encoder = CachedEncoder(model)
    for _ in range(2):
        assert encoder.encode_texts(["abc", "a"]).tolist() == [[3.0, 1.0], [1.0, 1.0]]
    assert sorted(model.asked) == ["a", "abc"]


@pytest.mark.parametrize("method", ["add", "close"])
def test_a_store_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"creperie.scoring.store.VectorShelf.{method}", refuse)
    assert CachedScorer(Counting()).score_texts(["abc"]).tolist() == [-2.0]


def test_tests_store_nothing_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `tests/conftest.py` set stands outside this file's own store, here and in processes that tests start."""
    monkeypatch.undo()
    found = subprocess.check_output([sys.executable, "-c", "from creperie.core import cache_home; print(cache_home())"])
    assert cache_home() == Path(found.decode().strip())
    assert Path("~/.cache").expanduser() not in cache_home().parents
