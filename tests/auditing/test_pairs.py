"""Pairs, gaps, wins: the arithmetic of an attack, on hand-made items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.auditing import TextAttacker, item_gaps, item_wins, pair_foils, pairs_of
from creperie.auditing.attackers import scored
from creperie.auditing.pairs import margins_of_scores
from creperie.bench import PAIRED, Benchmark, Item, choice, from_items

LETTERS = TextAttacker("letters", scored(lambda t: float(len(t))))


def bench_of(*items: Item) -> Benchmark:
    return from_items("hand", items)


def item(captions: tuple[str, ...], positives: int = 1, *, id: str = "1", image: str = "a.jpg") -> Item:
    return Item(id, "s", (image,), captions, choice(positives, len(captions) - positives))


@pytest.mark.parametrize(
    ("captions", "positives", "gap", "win"),
    [
        (("aaa", "a"), 1, 2.0, 1.0),
        (("a", "aaa"), 1, -2.0, 0.0),
        (("aa", "bb"), 1, 0.0, 0.5),
        # two positives: 0.5 * (s(P1) + s(P2)) - s(N)
        (("aaaa", "aa", "a"), 2, 2.0, 1.0),
        (("aaaa", "a", "aa"), 2, 0.5, 0.5),
        (("aaaa", "aa", "bb"), 2, 1.0, 0.75),
        # several negatives: mean(P) - mean(N)
        (("aaa", "a", "aa", "aaaaaa"), 1, 0.0, 2 / 3),
        (("aaaa", "aa", "a", "bb"), 2, 1.5, 0.875),
    ],
)
def test_gap_and_win(captions: tuple[str, ...], positives: int, gap: float, win: float) -> None:
    pairs = pairs_of(bench_of(item(captions, positives)))
    margins = LETTERS.margins(pairs)
    assert item_gaps(pairs, margins).tolist() == [gap]
    assert item_wins(pairs, margins).tolist() == pytest.approx([win])


def test_two_images_are_balanced_by_design() -> None:
    two = Item("2", "s", ("a.jpg", "b.jpg"), ("a dog chases a cat here", "a cat"), PAIRED)
    pairs = pairs_of(bench_of(item(("aaa", "a")), two))
    margins = LETTERS.margins(pairs)
    assert pairs.balanced.tolist() == [False, True]
    assert item_gaps(pairs, margins).tolist() == [2.0, 0.0]
    assert item_wins(pairs, margins).tolist() == [1.0, 0.5]


def test_two_images_that_share_their_true_caption_are_not_balanced() -> None:
    both = Item("2", "s", ("a.jpg", "b.jpg"), ("long caption", "short"), ((True, False), (True, False)))
    pairs = pairs_of(bench_of(both))
    assert pairs.balanced.tolist() == [False]
    assert item_wins(pairs, LETTERS.margins(pairs)).tolist() == [1.0]


def test_equal_captions_are_unsolvable() -> None:
    pairs = pairs_of(bench_of(item(("x", "x")), item(("x", "y"), id="2")))
    assert pairs.unsolvable.tolist() == [True, False]


def test_items_without_a_pair_have_no_gap() -> None:
    alone = Item("1", "s", (), ("only true",), ((True,),))
    pairs = pairs_of(bench_of(alone, item(("aa", "a"), id="2")))
    assert np.isnan(item_gaps(pairs, LETTERS.margins(pairs))).tolist() == [True, False]
    assert pairs.per_item.tolist() == [0, 1]


def test_margins_that_are_no_number_count_half() -> None:
    pairs = pairs_of(bench_of(item(("aaa", "a"))))
    margins = np.array([np.nan], dtype=np.float32)
    assert item_wins(pairs, margins).tolist() == [0.5]


def test_scores_are_compared_in_float32() -> None:
    pairs = pairs_of(bench_of(item(("a", "b"))))
    close = np.zeros(len(pairs.texts))
    close[pairs.left] = 1e-12 + 1.0
    close[pairs.right] = 1.0
    assert margins_of_scores(pairs, close).tolist() == [0.0]


def test_clusters_join_items_through_shared_images() -> None:
    chain = bench_of(
        item(("a", "b"), id="1", image="x"),
        Item("2", "s", ("x", "y"), ("a", "b"), PAIRED),
        item(("a", "b"), id="3", image="y"),
        item(("b", "a"), id="4", image="z"),
        item(("a", "c"), id="7", image="u"),
        Item("5", "s", (), ("same source", "f"), choice(1, 1)),
        Item("6", "t", (), ("same source", "g"), choice(1, 1)),
    )
    found = pairs_of(chain)
    # The fourth item reverses the first one's captions; the fifth shares one caption alone: it counts as its own
    # cluster, but stays in the same fold.
    assert found.cluster.tolist() == [0, 0, 0, 0, 1, 2, 2]
    assert found.group.tolist() == [0, 0, 0, 0, 0, 5, 5]


def test_one_positive_of_several() -> None:
    bench = bench_of(item(("aaaa", "aa", "aaa"), 2))
    assert [LETTERS.margins(pairs_of(bench, positive=k)).tolist() for k in (0, 1)] == [[1.0], [-1.0]]


def test_pairs_of_a_subset_are_renumbered() -> None:
    bench = bench_of(item(("aa", "a")), Item("1", "t", ("b.jpg",), ("a", "bbb"), choice(1, 1)))
    pairs = pairs_of(bench).of_subset("t")
    assert (pairs.n_items, pairs.item.tolist()) == (1, [0])
    assert LETTERS.margins(pairs).tolist() == [-2.0]


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_the_win_has_chance_one_half_under_exchanged_roles(scores: list[int]) -> None:
    """Over all ways to call two of three captions true, the mean win is one half, whatever the scores."""
    texts = ("p", "q", "r")
    wins = []
    for false in range(3):
        order = [t for t in texts if t != texts[false]] + [texts[false]]
        pairs = pairs_of(bench_of(item(tuple(order), 2)))
        table = np.array([scores[texts.index(t)] for t in pairs.texts], dtype=np.float32)
        wins.append(item_wins(pairs, margins_of_scores(pairs, table))[0])
    assert np.mean(wins) == pytest.approx(0.5)


def test_foils_are_paired_within_their_kind() -> None:
    """Additions stand against negations; subsets of the same name first; foils of other kinds never meet."""
    true = "A cat sits on a mat."

    def foils(subsets: dict[str, str]) -> list[Item]:
        return [Item(s, s, (), (true, text), choice(1, 1)) for s, text in subsets.items()]

    rules = foils({"negate": "no cat", "replace": "A dog sits.", "swap": "A mat sits.", "shuffle": "mat a"})
    model = foils({"swap_obj": "mat on cat", "add_obj": "cat and dog", "replace_rel": "under", "replace_att": "red"})
    found = {(p.kind, p.first, p.second) for p in pair_foils(rules, model)}
    assert found == {
        ("negate / add", "no cat", "cat and dog"),
        ("replace", "A dog sits.", "under"),
        ("swap", "A mat sits.", "mat on cat"),
    }
    again = foils({"replace_att": "blue", "replace_rel": "over"})
    assert {(p.first, p.second) for p in pair_foils(again, model)} == {("blue", "red"), ("over", "under")}
