"""Conditions as users write them, and several changes in one go."""

from __future__ import annotations

import pytest
from foils import foil_bench

from creperie.bench import Benchmark, Edit, Item, choice, edit, from_items
from creperie.core import UnknownNameError, UsageError

KINDS = ("noun", "verb")


@pytest.fixture
def bench() -> Benchmark:
    rows = [
        Item(
            str(i),
            "swap" if i < 5 else "add",
            () if i == 9 else ("i.jpg",),
            ("p", "n") if i else ("p", "q", "n"),
            choice(1 if i else 2, 1),
            {"n": i, "odd name": "x", "ok": i % 2 == 0} | ({"kind": KINDS[i % 2]} if i < 8 else {}),
        )
        for i in range(10)
    ]
    return from_items("mine", rows)


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [("n=3,4", [3, 4]), ("kind=noun", [0, 2, 4, 6]), ("kind=Noun, verb", range(8)), ("ok=false", [1, 3, 5, 7, 9])],
)
def test_items_by_their_tags(bench: Benchmark, wanted: str, ids: list[int]) -> None:
    assert [int(item.id) for item in edit(bench, Edit(tag=(wanted,)))] == list(ids)


def test_tags_that_are_none(bench: Benchmark) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'kind'"):
        edit(bench, Edit(tag=("kinds=x",)))
    with pytest.raises(UsageError, match="does not name a tag and its value"):
        edit(bench, Edit(tag=("kind",)))


def test_all_changes_in_order(bench: Benchmark) -> None:
    changed = edit(bench, Edit(subset=("add",), tag=("odd name=x", "ok=true"), head=5, sample=1, seed=2))
    assert [step.op for step in changed.provenance] == ["filter", "filter", "filter", "head", "sample"]
    assert [item.id for item in changed] in (["6"], ["8"])


def test_items_dropped_by_name(bench: Benchmark) -> None:
    assert [item.id for item in edit(bench, Edit(subset=("add",), drop=("add/6", "swap/7")))] == ["5", "7", "8", "9"]


def test_nothing_to_change_is_no_step(bench: Benchmark) -> None:
    assert edit(bench, Edit()) is bench


def test_items_with_findings_can_be_dropped() -> None:
    kept = edit(
        foil_bench([("a", "a" if i == 3 else f"b{i}") for i in range(5)]), Edit(without=["positive-equals-negative"])
    )
    assert [item.id for item in kept] == ["0", "1", "2", "4"]
    with pytest.raises(UnknownNameError, match="did you mean 'duplicate-item'"):
        edit(kept, Edit(without=["duplicate-items"]))
