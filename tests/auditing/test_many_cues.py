"""Cues of many pairs are counted piece by piece: the same cues, whatever the pieces."""

from __future__ import annotations

import pytest

from creperie.auditing import audit, cues
from creperie.bench import Benchmark, Item, from_items


@pytest.fixture
def bench() -> Benchmark:
    items = [
        Item(str(i), "s", (), (f"a dog sees {i % 7} cats by house {i}", f"no dog, sees {i} cats"), ((True, False),))
        for i in range(60)
    ]
    return from_items("many", items)


def named(bench: Benchmark) -> list[cues.Cue]:
    return [cue for cue, _ in audit(bench, ["negation"]).cues["s"]]


def test_cues_do_not_depend_on_how_many_pairs_are_cut_at_once(
    bench: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = named(bench)
    assert {"no", "a"} <= {c.text for c in plain}
    monkeypatch.setattr(cues, "PIECE", 7)
    assert named(bench) == plain


def test_the_example_is_a_pair_that_the_cue_tells() -> None:
    """Also where the first pair that shows the cue shows it in the other role."""
    captions = [("a", "one"), *[("one", "a")] * 40]
    items = [Item(str(i), "s", (), (f"{a} {i}", f"{b} {i}"), ((True, False),)) for i, (a, b) in enumerate(captions)]
    found = {c.text: c for c in named(from_items("few", items))}
    assert (found["one"].positives, found["one"].negatives, found["one"].example) == (40, 1, 1)
    assert (found["a"].positives, found["a"].negatives, found["a"].example) == (1, 40, 1)
