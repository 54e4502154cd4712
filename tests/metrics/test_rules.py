"""Every task against a slow reference that knows nothing of the implementation.

The reference judges distinct scores only, by sorting; a tie is then what its name says: an item whose judgement
depends on how equal scores are put in order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creperie.core import UnknownNameError, UsageError
from creperie.metrics import HIT, MISS, TASKS, TIE, VOID, Layout, chances, layout_of, margins, measure, outcomes, task
from creperie.metrics.rules import Halves, Sides

Match = list[list[int]]
Order = dict[tuple[int, int], float]  # cell → distinct score
Strict = Callable[[Match, Order], bool | None]  # None: nothing to compare

SHAPES: list[Match] = [
    [[1, 0]],
    [[0, 1]],
    [[1, 0, 0]],
    [[1, 1, 0]],
    [[1, 0, 1]],
    [[0, 1, 1]],
    [[1, 1, 0, 0]],
    [[1, 0, 0, 0, 0, 0]],
    [[1, 0], [0, 1]],
    [[1, 1], [0, 1]],
    [[1, 0, 0], [0, 1, 1]],
    [[1], [0]],
    [[1, 1]],
    [[0, 0]],
    [[1]],
]


def _first_all_true(line: list[tuple[float, int]]) -> bool | None:
    """A row or column sorted from the highest: are all the true ones before the false ones?"""
    truth = [t for _, t in sorted(line, reverse=True)]
    if len(set(truth)) < 2:
        return None
    return truth == sorted(truth, reverse=True)


def _all(judged: list[bool | None]) -> bool | None:
    known = [j for j in judged if j is not None]
    return all(known) if known else None


def ref_itt(match: Match, s: Order) -> bool | None:
    return _all([_first_all_true([(s[r, c], t) for c, t in enumerate(row)]) for r, row in enumerate(match)])


def ref_t2i(match: Match, s: Order) -> bool | None:
    columns = range(len(match[0]))
    return _all([_first_all_true([(s[r, c], row[c]) for r, row in enumerate(match)]) for c in columns])


def ref_group(match: Match, s: Order) -> bool | None:
    text, image = ref_itt(match, s), ref_t2i(match, s)
    return None if text is None or image is None else text and image


def ref_tot(match: Match, s: Order) -> bool | None:
    judged: list[bool | None] = []
    for row in match:
        true, false = [c for c, t in enumerate(row) if t], [c for c, t in enumerate(row) if not t]
        for a, b in combinations(true, 2):
            for n in false:
                judged += [s[a, b] > s[min(a, n), max(a, n)], s[a, b] > s[min(b, n), max(b, n)]]
    return _all(judged)


def ref_nth(n: int) -> Strict:
    def judge(match: Match, s: Order) -> bool | None:
        judged: list[bool | None] = []
        for r, row in enumerate(match):
            true = [c for c, t in enumerate(row) if t]
            if len(true) > n:
                judged += [s[r, true[n]] > s[r, c] for c, t in enumerate(row) if not t]
        return _all(judged)

    return judge


def ref_tot_nth(n: int) -> Strict:
    def judge(match: Match, s: Order) -> bool | None:
        if len(match) > 1 or sum(match[0]) < 2 or sum(match[0]) <= n:
            return None
        true = [c for c, t in enumerate(match[0]) if t]
        queries = [q for q in true if q != true[n]]
        false = [c for c, t in enumerate(match[0]) if not t]
        pair = [(tuple(sorted((q, true[n]))), tuple(sorted((q, f)))) for q in queries for f in false]
        return _all([s[a] > s[b] for a, b in pair])  # type: ignore[index]

    return judge


def ref_recall(k: int) -> Strict:
    def judge(match: Match, s: Order) -> bool | None:
        judged: list[bool | None] = []
        for r, row in enumerate(match):
            if 0 < sum(row) < len(row):
                line = sorted(((s[r, c], t) for c, t in enumerate(row)), reverse=True)
                judged.append(any(t for _, t in line[:k]))
        return _all(judged)

    return judge


def ref_brittle(match: Match, s: Order) -> bool | None:
    if len(match) > 1 or len(match[0]) != 3 or sum(match[0]) != 2:
        return None
    truth = [t for _, t in sorted(((s[0, c], t) for c, t in enumerate(match[0])), reverse=True)]
    return truth == [1, 0, 1]


def ref_blind(match: Match, s: Order) -> bool | None:
    true = [max(row[c] for row in match) for c in range(len(match[0]))]
    return _first_all_true([(s[0, c], t) for c, t in enumerate(true)])


def ref_prefer(i: int, j: int, widths: tuple[int, ...] = (4,)) -> Strict:
    def judge(match: Match, s: Order) -> bool | None:
        if len(match[0]) not in widths:
            return None
        return _all([s[r, i] > s[r, j] for r in range(len(match))])

    return judge


REFERENCES: dict[str, Strict] = {
    "itt": ref_itt,
    "t2i": ref_t2i,
    "group": ref_group,
    "tot": ref_tot,
    "blind": ref_blind,
    "p1-vs-n": ref_nth(0),
    "p2-vs-n": ref_nth(1),
    "tot-p1-vs-n": ref_tot_nth(0),
    "tot-p2-vs-n": ref_tot_nth(1),
    "brittle": ref_brittle,
    "recall@1": ref_recall(1),
    "recall@3": ref_recall(3),
    "preference-1": ref_prefer(0, 2),
    "preference-2": ref_prefer(1, 3),
    "preference-3": ref_prefer(0, 1),
    "preference-4": ref_prefer(2, 3),
    "preference-5": ref_prefer(1, 2),
    "prefer:2-0": ref_prefer(2, 0, (3, 4, 6)),
}


def cells_of(name: str, match: Match) -> list[tuple[int, int]]:
    """The cells that hold independent scores."""
    rows, columns = len(match), len(match[0])
    needs = task(name).needs
    if needs == "text_text":
        return list(combinations(range(columns), 2))
    return [(r, c) for r in range(1 if needs == "text" else rows) for c in range(columns)]


def flat(name: str, match: Match, scores: dict[tuple[int, int], float]) -> np.ndarray:
    """The scores as the implementation takes them. Similarities of captions with themselves must not matter."""
    columns = len(match[0])
    if task(name).needs != "text_text":
        return np.array(list(scores.values()), dtype=np.float32)
    full = np.full((columns, columns), np.nan, dtype=np.float32)
    for (a, b), value in scores.items():
        full[a, b] = full[b, a] = value
    return full.ravel()


def reference(name: str, match: Match, scores: dict[tuple[int, int], float]) -> int:
    judged = set()
    for breaker in permutations(range(len(scores))):
        order = {c: v + b / 1000 for (c, v), b in zip(scores.items(), breaker, strict=True)}
        judged.add(REFERENCES[name](match, order))
    if judged == {None} or not judged:
        return VOID
    return TIE if len(judged) > 1 else HIT if judged == {True} else MISS


def test_every_task_by_item_has_a_reference() -> None:
    by_item = {name for name, t in TASKS.items() if t.by_item and not t.swapped} - {"group-match"}  # test_cells.py
    assert by_item <= set(REFERENCES)


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_outcomes_are_those_of_the_reference(name: str, data: st.DataObject) -> None:
    match = data.draw(st.sampled_from([m for m in SHAPES if len(cells_of(name, m)) <= 6]))
    cells = cells_of(name, match)
    values = data.draw(st.lists(st.integers(0, 3), min_size=len(cells), max_size=len(cells)))
    scores = {c: float(v) for c, v in zip(cells, values, strict=True)}
    found = outcomes(name, layout_of([match]), flat(name, match, scores))
    assert int(found[0]) == reference(name, match, scores)


SMALL = [(n, m) for n in REFERENCES for m in SHAPES if len(cells_of(n, m)) <= 6]


@pytest.mark.parametrize(("name", "match"), SMALL, ids=str)
def test_chance_is_the_share_of_all_orders(name: str, match: Match) -> None:
    cells = cells_of(name, match)
    judged = [
        REFERENCES[name](match, dict(zip(cells, order, strict=True)))
        for order in permutations(map(float, range(len(cells))))
    ]
    level = chances(name, layout_of([match]))[0]
    if judged[0] is None:
        assert np.isnan(level)
    else:
        assert level == pytest.approx(sum(map(bool, judged)) / len(judged), abs=1e-12)


WHAT_PAPERS_SAY = [
    ("itt", [[1, 0]], 1 / 2),  # SugarCrepe
    ("itt", [[1, 1, 0]], 1 / 3),  # SugarCrepe++ ITT
    ("tot", [[1, 1, 0]], 1 / 3),  # SugarCrepe++ TOT
    ("itt", [[1, 1, 0, 0]], 1 / 6),
    ("itt", [[1, 0, 0, 0, 0]], 1 / 5),  # ARO order
    ("recall@1", [[1, 0, 0, 0, 0, 0]], 1 / 6),  # CREPE
    ("recall@3", [[1, 0, 0, 0, 0, 0]], 1 / 2),
    ("itt", [[1, 0, 0]], 1 / 3),  # SADE content
    ("itt", [[1, 0], [0, 1]], 1 / 4),  # Winoground text, image, group
    ("t2i", [[1, 0], [0, 1]], 1 / 4),
    ("group", [[1, 0], [0, 1]], 1 / 6),
]


@pytest.mark.parametrize(("name", "match", "level"), WHAT_PAPERS_SAY)
def test_chance_levels_that_papers_print(name: str, match: Match, level: float) -> None:
    assert chances(name, layout_of([match]))[0] == pytest.approx(level, abs=1e-12)


LARGE = [
    ("group", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ("group", [[1, 1, 0, 0], [0, 0, 1, 1]]),
    ("group", [[1, 0, 0, 1], [0, 1, 0, 1]]),
    ("itt", [[1, 1, 1, 0, 0, 0, 0, 0]]),
    ("tot", [[1, 1, 1, 0, 0]]),
    ("tot", [[1, 1, 0, 0], [0, 0, 1, 1]]),
    ("recall@5", [[1, 1] + [0] * 18]),
    ("blind", [[1, 0, 0, 0], [0, 1, 0, 0]]),
    ("group-match", [[1, 0], [0, 1]]),
    ("group-match", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ("group-match", [[1, 0, 0], [0, 1, 0]]),
]


@pytest.mark.parametrize(("name", "match"), LARGE, ids=str)
def test_chance_by_simulation(name: str, match: Match) -> None:
    n, rng = 40_000, np.random.default_rng(7)
    layout = layout_of([match] * n)
    width = int(layout.widths(task(name).needs)[0])
    scores = rng.random((n, width), dtype=np.float32)
    level = chances(name, layout)[0]
    share = (outcomes(name, layout, scores.ravel()) == HIT).mean()
    assert abs(share - level) < 4.5 * np.sqrt(level * (1 - level) / n)


def test_chance_that_cannot_be_counted_is_not_a_number() -> None:
    assert np.isnan(chances("group", layout_of([np.eye(30, dtype=int).tolist()]))[0])
    assert chances("itt", layout_of([[[1] * 5 + [0] * 995]]))[0] == pytest.approx(1.2121e-13, rel=1e-3)


# -- properties -----------------------------------------------------------------------------------------------------

ITEMS = st.lists(
    st.sampled_from(SHAPES).flatmap(
        lambda m: st.tuples(
            st.just(m),
            st.lists(
                st.one_of(st.integers(-4, 4).map(float), st.just(float("nan"))),
                min_size=len(m) * len(m[0]),
                max_size=len(m) * len(m[0]),
            ),
        )
    ),
    min_size=1,
    max_size=20,
)
IMAGE_TASKS = [n for n in REFERENCES if task(n).needs == "image_text"]


def joined(items: list[tuple[Match, list[float]]]) -> tuple[Layout, np.ndarray]:
    return layout_of([m for m, _ in items]), np.array([v for _, s in items for v in s], dtype=np.float32)


@given(items=ITEMS, name=st.sampled_from(IMAGE_TASKS), seed=st.integers(0, 2**31))
def test_items_are_judged_alone_whatever_their_order(
    items: list[tuple[Match, list[float]]], name: str, seed: int
) -> None:
    found = outcomes(name, *joined(items))
    order = np.random.default_rng(seed).permutation(len(items))
    assert outcomes(name, *joined([items[i] for i in order])).tolist() == found[order].tolist()
    assert [int(outcomes(name, *joined([item]))[0]) for item in items] == found.tolist()
    assert sum(int((found == kind).sum()) for kind in (HIT, MISS, TIE, VOID)) == len(items)


@given(items=ITEMS, name=st.sampled_from(IMAGE_TASKS))
def test_growing_transforms_change_nothing(items: list[tuple[Match, list[float]]], name: str) -> None:
    layout, scores = joined(items)
    found = outcomes(name, layout, scores)
    for grown in (3 * scores - 7, np.exp(scores), scores**3, np.where(scores == 4, np.inf, scores)):
        assert outcomes(name, layout, grown.astype(np.float32)).tolist() == found.tolist()


@given(items=ITEMS, name=st.sampled_from(["itt", "t2i", "group", "p1-vs-n", "prefer:0-1"]))
def test_the_sign_of_the_margin_is_the_outcome(items: list[tuple[Match, list[float]]], name: str) -> None:
    layout, scores = joined(items)
    found, lead = outcomes(name, layout, scores), margins(name, layout, scores)
    assert (np.isnan(lead) == (found == VOID)).all()
    assert ((lead > 0) == (found == HIT)).all()
    assert ((lead == 0) == (found == TIE)).all()


def test_infinite_scores_are_compared_and_equal_ones_tie() -> None:
    layout = layout_of([[[1, 0]]] * 3)
    scores = np.array([0, -np.inf, -np.inf, -np.inf, np.inf, np.inf])
    assert outcomes("itt", layout, scores).tolist() == [HIT, TIE, TIE]
    assert margins("itt", layout, scores).tolist() == [np.inf, 0, 0]


def test_a_score_that_is_not_needed_may_be_missing() -> None:
    layout = layout_of([[[1, 1, 0]]])
    scores = np.array([0.9, np.nan, 0.1])
    assert outcomes("p1-vs-n", layout, scores).tolist() == [HIT]
    assert outcomes("p2-vs-n", layout, scores).tolist() == [VOID]
    assert outcomes("itt", layout, scores).tolist() == [VOID]


def test_swapping_puts_the_second_positive_first() -> None:
    layout = layout_of([[[1, 1, 0]]] * 2)
    scores = np.array([0.9, 0.1, 0.5, 0.9, 0.1, 0.5])
    swap = np.array([False, True])
    assert outcomes("near-vs-n", layout, scores, swap).tolist() == [HIT, MISS]
    assert outcomes("far-vs-n", layout, scores, swap).tolist() == [MISS, HIT]
    with pytest.raises(UsageError, match="swap"):
        outcomes("near-vs-n", layout, scores)
    assert chances("near-vs-n", layout_of([[[1, 0]], [[1, 1, 0]]])).tolist() == pytest.approx(
        [np.nan, 0.5], nan_ok=True
    )


# -- counts of captions ---------------------------------------------------------------------------------------------


@given(items=ITEMS)
def test_halves_counts_captions_as_the_reference_does(items: list[tuple[Match, list[float]]]) -> None:
    layout, scores = joined(items)
    counts = measure("halves", layout, scores).counts.tolist()  # type: ignore[attr-defined]
    assert counts == [ref_halves(m, s) for m, s in items]


def ref_halves(match: Match, scores: list[float]) -> list[int]:
    hits = ties = n = 0
    width = len(match[0])
    for r, row in enumerate(match):
        line = scores[r * width : (r + 1) * width]
        if not 0 < sum(row) < width:
            continue
        if any(np.isnan(line)):
            return [0, 0, 0]
        for c, t in enumerate(row):
            right = set()
            for breaker in permutations(range(width)):
                order = sorted(range(width), key=lambda i: (-line[i], breaker[i]))
                right.add((order.index(c) < sum(row)) == bool(t))
            hits, ties, n = hits + (right == {True}), ties + (len(right) > 1), n + 1
    return [hits, ties, n]


@given(items=ITEMS, threshold=st.integers(-4, 4))
def test_sides_count_cells_as_the_reference_does(items: list[tuple[Match, list[float]]], threshold: int) -> None:
    for match, scores in items:
        truth = [t for row in match for t in row]
        expected = [[0, 0, 0], [0, 0, 0]]
        if not any(np.isnan(scores)):
            for t, s in zip(truth, scores, strict=True):
                part = expected[0 if t else 1]
                part[0] += s > threshold if t else s < threshold
                part[1] += s == threshold
                part[2] += 1
        cells = np.array(scores, dtype=np.float32)[:, None]
        assert Sides(threshold).counts(np.array(match, dtype=bool), cells)[0].tolist() == expected


@pytest.mark.parametrize("match", SHAPES, ids=str)
def test_chance_of_halves_is_the_mean_over_all_orders(match: Match) -> None:
    size = len(match) * len(match[0])
    counts = [ref_halves_distinct(match, order) for order in permutations(range(size))]
    level = Halves().chance(np.array(match, dtype=bool))
    if counts[0][1] == 0:
        assert np.isnan(level)
    else:
        assert level == pytest.approx(sum(c[0] for c in counts) / sum(c[1] for c in counts))


def ref_halves_distinct(match: Match, scores: tuple[int, ...]) -> tuple[int, int]:
    hits = n = 0
    width = len(match[0])
    for r, row in enumerate(match):
        line = scores[r * width : (r + 1) * width]
        if 0 < sum(row) < width:
            order = sorted(range(width), key=lambda i: -line[i])
            hits += sum((order.index(c) < sum(row)) == bool(t) for c, t in enumerate(row))
            n += width
    return hits, n


# -- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("i2t", "itt"),
        ("Text Score", "itt"),
        ("SC++", "itt"),
        ("acc_r", "itt"),
        ("image-score", "t2i"),
        ("T2T", "tot"),
        ("sc", "p1-vs-n"),
        ("P1-N", "tot-near-vs-n"),
        ("p2_vs_n", "p2-vs-n"),
        ("r@5", "recall@5"),
        ("P_C@0.50", "p_c@0.5"),
        ("min(p_c,p_f)@0", "min@0"),
        ("acc@0", "acc@0"),
        ("vsr@0.5", "binary@0.5"),
        ("prefer:0-3", "prefer:0-3"),
    ],
)
def test_names_and_aliases(written: str, name: str) -> None:
    assert task(written).name == name
    assert task(task(written).name) == task(written)


def test_names_and_values_of_tasks() -> None:
    names = [n for t in TASKS.values() for n in (t.name, *t.aliases)]
    assert len(names) == len(set(names))
    shown = [task(name).text(value) for name, value in (("itt", 0.1234), ("mean-rank", 1.2361))]
    assert [*shown, task("mean-rank").text(1.2361, 3)] == ["12.3", "1.24", "1.236"]


@pytest.mark.parametrize(
    ("written", "error", "words"),
    [
        ("itf", UnknownNameError, "did you mean 'itt'"),
        ("recal@5", UnknownNameError, "did you mean 'recall@k'"),
        ("text-scor", UnknownNameError, "did you mean 'text-score'"),
        ("p_c", UsageError, "p_c@0.5"),
        ("p_c@much", UsageError, "threshold"),
        ("recall@0", UsageError, "whole number"),
        ("recall", UsageError, "recall@1"),
        ("prefer:1-1", UsageError, "itself"),
        ("prefer:1", UnknownNameError, "prefer:i-j"),
    ],
)
def test_wrong_names_are_explained(written: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        task(written)


def test_a_coin_decides_half_of_the_captions() -> None:
    assert [Sides(0.5).chance(np.array(match, dtype=bool)) for match in SHAPES] == [0.5] * len(SHAPES)
