"""Cues of many pairs are counted by digests first: the same cues, whatever digests meet."""

from __future__ import annotations

import pytest

from creperie.auditing import cues, likeness
from creperie.auditing.likeness import likeness_of
from creperie.auditing.pairs import pairs_of
from creperie.bench import Benchmark, Item, from_items


@pytest.fixture
def bench() -> Benchmark:
    items = [
        Item(str(i), "s", (), (f"a dog sees {i % 7} cats by house {i}", f"no dog, sees {i} cats"), ((True, False),))
        for i in range(60)
    ]
    return from_items("many", items)


@pytest.mark.parametrize("buckets", [1, 16, 1 << 20])
def test_counting_by_digests_first_leaves_nothing_out(
    bench: Benchmark, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cues.telling_cues(pairs_of(bench))
    assert {"no", "a"} <= {c.text for c in plain}
    monkeypatch.setattr(cues, "MANY", 0)
    monkeypatch.setattr(cues, "BUCKETS", buckets)
    assert cues.telling_cues(pairs_of(bench)) == plain


def test_shares_of_n_grams_do_not_depend_on_how_many_wait(bench: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = likeness_of(bench, "s").overlap
    monkeypatch.setattr(likeness, "WAITING", 3)
    assert likeness_of(bench, "s").overlap == whole
    true = {w for i in range(60) for w in f"a dog sees {i % 7} cats by house {i}".split()}
    false = {w for i in range(60) for w in f"no dog , sees {i} cats".split()}
    assert whole.only_negative["1-grams"] == len(false - true) / len(false)
    assert whole.only_positive["1-grams"] == len(true - false) / len(true)


def test_the_example_is_a_pair_that_the_cue_tells() -> None:
    """Also where the first pair that shows the cue shows it in the other role."""
    captions = [("a", "one"), *[("one", "a")] * 40]
    items = [Item(str(i), "s", (), (f"{a} {i}", f"{b} {i}"), ((True, False),)) for i, (a, b) in enumerate(captions)]
    found = {c.text: c for c in cues.telling_cues(pairs_of(from_items("few", items)))}
    assert (found["one"].positives, found["one"].negatives, found["one"].example) == (40, 1, 1)
    assert (found["a"].positives, found["a"].negatives, found["a"].example) == (1, 40, 1)
