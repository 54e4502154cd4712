"""Items in columns: reading, changing, and the history that is kept."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.bench import (
    PAIRED,
    Benchmark,
    Info,
    Item,
    SkippedRecord,
    choice,
    concatenate,
    from_items,
    limited,
    match_chance,
    match_shapes,
)
from creperie.bench.images import NoImages
from creperie.bench.rows import first_rows, list_codes, ordinals, pair_codes
from creperie.core import DataError, UnknownNameError, UsageError


def items(n: int = 10) -> list[Item]:
    return [
        Item(
            str(i), "swap" if i % 2 else "add", (f"{i // 2}.jpg",), (f"p{i}", f"q{i}", f"n{i}"), choice(2, 1), {"n": i}
        )
        for i in range(n)
    ]


@pytest.fixture
def bench() -> Benchmark:
    return from_items("mine", items())


def test_reading(bench: Benchmark) -> None:
    assert len(bench) == 10
    assert list(bench) == items()
    assert bench[3] == items()[3]
    assert bench[-1] == items()[-1]
    assert bench.item("swap", "3") == items()[3]
    assert bench.subsets == {"add": 5, "swap": 5}
    assert [piece.num_rows for piece in bench.pieces(["id"], 4)] == [4, 4, 2]
    with pytest.raises(IndexError):
        bench[10]
    with pytest.raises(UsageError, match="no item 'x'"):
        bench.item("swap", "x")


@pytest.mark.parametrize("hindrance", [OSError("no such library"), AttributeError("malloc_trim")])
def test_lists_are_read_where_the_c_library_gives_nothing_back(
    bench: Benchmark, hindrance: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = bench.ragged("captions")

    def library(_: object) -> object:
        raise hindrance

    monkeypatch.setattr("ctypes.CDLL", library)
    offsets, texts = bench.ragged("captions")
    assert np.array_equal(offsets, wanted[0])
    assert texts.equals(wanted[1])


def test_two_items_with_one_key_are_refused() -> None:
    with pytest.raises(DataError, match="appears 2 times"):
        from_items("mine", [items()[0], items()[0]])


@pytest.mark.parametrize("condition", [pc.field("tag.n") > 6, [False] * 7 + [True] * 3, np.arange(10) > 6])
def test_filter(bench: Benchmark, condition: Any) -> None:
    assert [item.id for item in bench.filter(condition)] == ["7", "8", "9"]


def test_wrong_conditions_say_what_is_there(bench: Benchmark) -> None:
    with pytest.raises(UsageError, match=r"tag\.n"):
        bench.filter(pc.field("nope") > 1)
    with pytest.raises(UsageError, match="cannot be applied"):
        bench.filter(pc.field("subset") > 1)
    with pytest.raises(UsageError, match="expected a mask of 10 values, found 2"):
        bench.filter([True, False])


def test_filtering_keeps_the_order_of_many_items() -> None:
    n = 300_000
    table = pa.table({"id": [str(i) for i in range(n)], "subset": ["s"] * n, "tag.n": np.arange(n, dtype=float)})
    kept = Benchmark("b", table)._where(pc.field("tag.n") >= 7)
    assert (np.diff(kept.column("tag.n").to_numpy()) == 1).all()


def test_only(bench: Benchmark) -> None:
    whole = Benchmark("b", bench.table, skipped=(SkippedRecord("swap", "1", "why"), SkippedRecord("add", "2", "why")))
    part = whole.only(["swap"])
    as_condition = whole.filter(pc.field("subset").isin(["swap"]), why="only swap")  # on disk, and nothing else differs
    assert (part.hash, part.provenance) == (as_condition.hash, as_condition.provenance)
    assert part.table.equals(as_condition.table)
    assert part.subsets == {"swap": 5}
    assert part.skipped == (SkippedRecord("swap", "1", "why"),)
    with pytest.raises(UnknownNameError, match="did you mean 'swap'"):
        whole.only(["swop"])


def test_sampling_is_seeded_and_keeps_order(bench: Benchmark) -> None:
    one, again, other = bench.sample(4, seed=1), bench.sample(4, seed=1), bench.sample(4, seed=2)
    assert list(one) == list(again) != list(other)
    assert [int(i.id) for i in one] == sorted(int(i.id) for i in one)
    assert len(bench.sample(99)) == 10
    with pytest.raises(UsageError, match="cannot sample -1"):
        bench.sample(-1)


def test_every_item_is_drawn_equally_often() -> None:
    bench = from_items("mine", items(6))
    counts = np.zeros(6)
    for seed in range(600):
        for item in bench.sample(2, seed):
            counts[int(item.id)] += 1
    # 600 draws of 2 in 6: 200 each, standard deviation 11.5; five of them is a mistake, not chance
    assert np.abs(counts - 200).max() < 58


def test_head(bench: Benchmark) -> None:
    assert [item.id for item in bench.head(2)] == ["0", "1", "2", "3"]
    assert len(bench.head(0)) == 0
    assert limited(bench, 1).provenance[-1] == bench.head(1).provenance[-1]
    assert list(limited(bench, 0.3)) == list(bench.head(2))  # 1.5 of 5, rounded up
    three = from_items("mine", [replace(item, subset="abc"[k % 3]) for k, item in enumerate(items(30))])
    drawn = limited(three, 2, seed=1)
    assert drawn.subsets == {"a": 2, "b": 2, "c": 2}
    assert list(drawn) == list(limited(three, 2, seed=1)) != list(limited(three, 2, seed=2))


def test_concatenate() -> None:
    one = from_items("one", [Item("1", "s", (), ("a",), choice(1, 0), {"n": 1})], info=Info(title="One"))
    two = from_items("two", [Item("2", "s", (), ("b",), choice(1, 0), {"n": "text", "m": True})])
    both = concatenate("both", [one, two])
    assert [dict(item.tags) for item in both] == [{"n": "1"}, {"n": "text", "m": True}]
    assert both.provenance[0].inputs == (one.hash, two.hash)
    with pytest.raises(DataError, match="appears 2 times"):
        concatenate("both", [one, one])
    with pytest.raises(UsageError, match="no benchmarks to concatenate"):
        concatenate("none", [])


def test_concatenation_keeps_the_history_of_its_parts() -> None:
    one = from_items("one", items(6)).filter(pc.field("tag.n") < 3)
    two = from_items("two", items(6)).filter(pc.field("tag.n") >= 3)
    both = concatenate("both", [one, two])
    assert [[step["op"] for step in steps] for steps in both.provenance[0].args["history"]] == [["filter"], ["filter"]]


def test_a_prefix_keeps_keys_apart() -> None:
    one = from_items("one", items(2), skipped=(SkippedRecord("add", "9", "why"),))
    both = concatenate("both", [one, from_items("two", items(2))], prefix=True)
    assert list(both.subsets) == ["one/add", "one/swap", "two/add", "two/swap"]
    assert both.skipped[0].subset == "one/add"


class Elsewhere(NoImages):
    def __init__(self, location: str) -> None:
        self.location = location


def test_images_in_two_places_do_not_concatenate() -> None:
    parts = [from_items(str(i), items(1), images=Elsewhere(f"place{i}")) for i in range(2)]
    with pytest.raises(UsageError, match="different places"):
        concatenate("both", parts, prefix=True)
    same = [from_items(str(i), items(1), images=Elsewhere("here")) for i in range(2)]
    assert concatenate("both", same, prefix=True).images.location == "here"


def test_every_change_is_a_step_with_its_input(bench: Benchmark) -> None:
    changed = bench.filter(pc.field("tag.n") > 2, why="longer").sample(4, seed=3).head(1)
    assert [step.op for step in changed.provenance] == ["filter", "sample", "head"]
    assert changed.provenance[0].inputs == (bench.hash,)
    assert changed.provenance[0].args["why"] == "longer"
    assert changed.provenance[1].args == {"n": 4, "seed": 3, "leaves": "4 of 7"}


def test_a_benchmark_can_be_sent_to_another_process(bench: Benchmark) -> None:
    assert list(pickle.loads(pickle.dumps(bench))) == list(bench)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=3)))
def test_list_codes_are_equal_where_lists_are(rows: list[list[str]]) -> None:
    offsets = np.cumsum([0] + [len(r) for r in rows])
    codes = list_codes((offsets, pa.array([x for r in rows for x in r], pa.string())))
    assert all((codes[i] == codes[j]) == (rows[i] == rows[j]) for i in range(len(rows)) for j in range(len(rows)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_codes_of_pairs_and_their_ranks(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([p[k] for p in pairs], dtype=np.int64) for k in (0, 1))
    codes = pair_codes(left, right)
    assert ordinals(codes).tolist() == [pairs[:i].count(p) for i, p in enumerate(pairs)]
    assert first_rows(codes).tolist() == [pairs.index(p) for p in pairs]


# -- shapes and chance -----------------------------------------------------------------------------------------------


def test_shapes_and_chance() -> None:
    wanted = {  # DESIGN's table, with what random scores get: SEMANTICS 2.4 and 2.6 (50, 33.3, 16.7, 25)
        "sugarcrepe": (("i",), choice(1, 1), 1 / 2),
        "crepe": (("i",), choice(1, 5), 1 / 6),
        "sugarcrepe++": (("i",), choice(2, 1), 1 / 3),
        "hit": (("i",), choice(2, 2), 1 / 6),
        "winoground": (("i", "j"), PAIRED, 1 / 4),
        "text only": ((), choice(2, 1), 1 / 3),
    }
    bench = from_items(
        "b",
        [
            Item(str(k), name, images, tuple("abcdef"[: len(m[0])]), m)
            for name, (images, m, _) in wanted.items()
            for k in (1, 2)
        ],
    )
    assert match_chance(bench) == pytest.approx({name: level for name, (_, _, level) in wanted.items()})
    assert {(s.images, s.match): s.items for s in match_shapes(bench)} == {
        (len(i), m): 2 for i, m, _ in wanted.values()
    }


def test_chance_is_what_random_scores_get() -> None:
    rng = np.random.default_rng(0)
    for match in (choice(1, 2), choice(2, 2), PAIRED, choice(3, 1)):
        cells = np.array(match)
        scores = rng.random((20_000, *cells.shape))
        low = np.where(cells, scores, np.inf).min(axis=2)
        high = np.where(~cells, scores, -np.inf).max(axis=2)
        images = tuple("ij"[: len(match)])
        bench = from_items("b", [Item("1", "s", images, tuple("abcd"[: cells.shape[1]]), match)])
        assert match_chance(bench)["s"] == pytest.approx((low > high).all(axis=1).mean(), abs=0.02)


def test_an_empty_benchmark() -> None:
    empty = from_items("none", [])
    assert (len(empty), list(empty), empty.subsets, match_shapes(empty), match_chance(empty)) == (0, [], {}, [], {})
    assert len(empty.head(3).sample(2)) == 0
