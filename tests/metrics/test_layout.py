"""Ragged columns into groups, gaps, labels and clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import DataError, UsageError
from creperie.metrics import Layout, clusters_of, codes_of, layout_of, outcomes

MATCHES = st.integers(1, 3).flatmap(
    lambda rows: st.integers(0, 4).flatmap(
        lambda columns: st.lists(
            st.lists(st.integers(0, 1), min_size=columns, max_size=columns), min_size=rows, max_size=rows
        )
    )
)


@given(matches=st.lists(MATCHES, max_size=25))
def test_groups_hold_every_item_once_with_its_own_match(matches: list[list[list[int]]]) -> None:
    groups = layout_of(matches).groups
    assert sorted(int(i) for g in groups for i in g.items) == list(range(len(matches)))
    for group in groups:
        assert all(group.match.astype(int).tolist() == matches[i] for i in group.items)
        assert group.items.tolist() == sorted(group.items.tolist())
    assert len({(g.match.shape, g.match.tobytes()) for g in groups}) == len(groups)


@given(matches=st.lists(MATCHES, min_size=1, max_size=12), data=st.data())
def test_blocks_give_every_item_its_own_scores(matches: list[list[list[int]]], data: st.DataObject) -> None:
    layout = layout_of(matches)
    needs = data.draw(st.sampled_from(["image_text", "text_text", "text"]))
    flat = np.arange(int(layout.widths(needs).sum()), dtype=np.float32)
    own = np.split(flat, np.cumsum(layout.widths(needs))[:-1])
    for group, cells in layout.blocks(needs, flat):
        for position, item in enumerate(group.items):
            assert cells[:, position].tolist() == own[item].tolist()
    picked = data.draw(st.lists(st.integers(0, len(matches) - 1), max_size=6))
    part = layout.take(np.array(picked, dtype=np.int64))
    expected = layout_of([matches[i] for i in picked])
    assert part.match.tolist() == expected.match.tolist()
    assert part.rows.tolist() == expected.rows.tolist()
    assert part.columns.tolist() == expected.columns.tolist() or not len(part)


@pytest.mark.parametrize("others", [7, 63, 64, 71, 72, 99])
def test_wide_matches_are_told_apart(others: int) -> None:
    first, second = [1] + [0] * others, [0] * others + [1]
    layout = layout_of([[first], [second], [first]])
    assert [g.items.tolist() for g in layout.groups] == [[0, 2], [1]]


def test_many_blocks_give_the_same_outcomes_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    layout = layout_of([[[1, 0, 0]], [[1, 0], [0, 1]]] * 50)
    scores = rng.integers(0, 4, len(layout.match)).astype(np.float32)
    whole = outcomes("itt", layout, scores)
    monkeypatch.setattr("creperie.metrics.layout.CELLS_AT_ONCE", 16)
    assert outcomes("itt", layout, scores).tolist() == whole.tolist()


def test_lengths_that_do_not_fit_are_refused() -> None:
    layout = layout_of([[[1, 0]], [[1, 0, 0]]])
    with pytest.raises(DataError, match="image_text has 4 scores, but the items need 5"):
        outcomes("itt", layout, np.zeros(4))
    with pytest.raises(DataError, match="have 3 cells, but rows × columns add up to 4"):
        Layout(np.array([2]), np.array([2]), np.ones(3, dtype=bool))
    with pytest.raises(UsageError, match="rows and columns have shapes"):
        Layout(np.array([1, 1]), np.array([2]), np.ones(2, dtype=bool))


def test_items_without_scores_are_filled_with_gaps() -> None:
    layout = layout_of([[[1, 0]], [[1, 0, 0]], [[0, 1]]])
    flat = layout.fill("text_text", np.array([True, False, True]), np.arange(8.0))
    assert np.isnan(flat).tolist() == [False] * 4 + [True] * 9 + [False] * 4
    assert flat[-4:].tolist() == [4, 5, 6, 7]
    with pytest.raises(DataError, match="the scored items need 4"):
        layout.fill("image_text", np.array([True, False, True]), np.zeros(5))


@given(labels=st.lists(st.integers(-3, 3)))
def test_codes_follow_first_appearance_for_lists_and_arrays(labels: list[int]) -> None:
    names = list(dict.fromkeys(labels))
    expected = [names.index(v) for v in labels]
    for given_as in (labels, np.array(labels, dtype=np.int64), np.array(labels, dtype=object)):
        codes, found = codes_of(given_as)
        assert codes.tolist() == expected
        assert found == names


@given(owned=st.lists(st.lists(st.integers(0, 12), max_size=3), max_size=15))
def test_clusters_are_the_connected_items(owned: list[list[int]]) -> None:
    found = clusters_of(np.array([len(k) for k in owned], dtype=np.int64), [k for keys in owned for k in keys])
    expected = list(range(len(owned)))
    for _ in owned:  # join until nothing changes
        for i, a in enumerate(owned):
            for j, b in enumerate(owned):
                if set(a) & set(b):
                    expected[i] = expected[j] = min(expected[i], expected[j])
    assert found.tolist() == expected


def test_a_long_chain_of_shared_images_is_one_cluster() -> None:
    n = 2000
    keys = np.stack([np.arange(n), np.arange(n) + 1], axis=1).ravel()
    shuffled = np.random.default_rng(0).permutation(n + 1)[keys]
    assert set(clusters_of(np.full(n, 2), shuffled).tolist()) == {0}


def test_keys_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="2 keys, but the counts of the items add up to 3"):
        clusters_of(np.array([1, 2]), ["a", "b"])
