"""The refinements that work on gaps alone: their invariants, and the published algorithm item by item."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creperie.core import DataError
from creperie.refining import unit_gaps
from creperie.refining.cells import grid_selection, signed_bins
from creperie.refining.optimal import _better_than, _programme, optimal
from creperie.refining.select import Choice, Filtered, Selection, Structural

gap_tables = (
    st.integers(1, 4)
    .flatmap(
        lambda k: st.lists(
            st.lists(
                st.sampled_from([-1.0, -0.9, -0.31, -0.3, -0.02, 0.0, 0.02, 0.3, 0.58, 1.0]),
                min_size=k,
                max_size=k,
            ),
            min_size=1,
            max_size=40,
        )
    )
    .map(np.array)
)


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@patient
@given(gap_tables, st.integers(0, 3))
def test_grid_leaves_no_attacker_an_edge(gaps: np.ndarray, seed: int) -> None:
    keep = grid_selection(gaps, seed=seed)
    assert (imbalance(gaps, keep) == 0).all()
    assert keep[(gaps == 0).all(axis=1)].all()
    assert (grid_selection(gaps, seed=seed) == keep).all()


@patient
@given(gap_tables)
def test_grid_size_is_that_of_the_published_cell_rule(gaps: np.ndarray) -> None:
    """Counted here cell by cell in plain Python, for two attackers, after SEMANTICS 2.1."""
    pairs = np.column_stack([gaps[:, 0], gaps[:, -1]])
    cells: dict[tuple[int, ...], int] = {}
    faces: dict[tuple[int, int], int] = {}
    expected = 0
    for a, b in pairs.tolist():
        if a == 0 and b == 0:
            expected += 1
        elif a == 0 or b == 0:
            axis, value = (1, b) if a == 0 else (0, a)
            bin_ = min(int(abs(value) * 10), 9) + 1
            key = (axis, bin_ if value > 0 else -bin_)
            faces[key] = faces.get(key, 0) + 1
        else:
            cell = tuple((1 if g > 0 else -1) * (min(int(abs(g) * 50), 49) + 1) for g in (a, b))
            cells[cell] = cells.get(cell, 0) + 1
    for cell, n in cells.items():
        expected += min(n, cells.get(tuple(-c for c in cell), 0))
    for (axis, bin_), n in faces.items():
        expected += min(n, faces.get((axis, -bin_), 0))
    assert grid_selection(pairs).sum() == expected


@settings(deadline=None, max_examples=40)
@given(gap_tables)
def test_optimal_is_balanced_bin_by_bin_and_at_least_as_large_as_the_grid(gaps: np.ndarray) -> None:
    choice = optimal(gaps, bins=50, time_limit=5)
    cells = signed_bins(unit_gaps(gaps), 50)[choice.keep]
    for attacker in range(gaps.shape[1]):
        for b in range(1, 51):
            assert (cells[:, attacker] == b).sum() == (cells[:, attacker] == -b).sum()
    assert choice.keep.sum() <= choice.bound + 1e-6
    if (gaps != 0).all():  # on faces the grid uses wider bins than this programme
        assert choice.keep.sum() >= grid_selection(gaps).sum()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.sampled_from([-0.9, -0.3, 0.0, 0.3, 0.9])] * 2), min_size=1, max_size=9).map(np.array))
def test_optimal_finds_the_largest_balanced_subset(gaps: np.ndarray) -> None:
    """Against all subsets, tried one by one."""
    cells = signed_bins(gaps, 10)
    best = 0
    for chosen in itertools.product([False, True], repeat=len(gaps)):
        kept = cells[np.array(chosen)]
        balanced = all(
            (kept[:, a] == b).sum() == (kept[:, a] == -b).sum()
            for a in range(2)
            for b in set(np.abs(cells[:, a])) - {0}
        )
        if balanced:
            best = max(best, sum(chosen))
    choice = optimal(gaps)
    assert choice.proven
    assert choice.keep.sum() == best


#: Nine items under three attackers. Relaxed, seven could stay; by trying all 512 subsets, six can.
FRACTIONAL = 0.5 * np.array(
    [[-1, -1, -1], [1, 1, 1], [1, 0, 1], [1, -1, 1], [-1, 1, -1], [1, 0, -1], [0, -1, -1], [1, 1, 1], [-1, 1, 1]]
)


def imbalance(gaps: np.ndarray, keep: np.ndarray | None = None) -> np.ndarray:
    """#(gap > 0) − #(gap < 0) per attacker among the kept items: zero where an attacker has no edge."""
    kept = gaps if keep is None else gaps[keep]
    return (kept > 0).sum(axis=0) - (kept < 0).sum(axis=0)


def test_the_exact_search_proves_what_the_relaxed_bound_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = optimal(FRACTIONAL, bins=1)
    assert (exact.keep.sum(), exact.bound, exact.proven) == (6, 6.0, True)
    monkeypatch.setattr("creperie.refining.optimal.EXACT", 0)
    relaxed = optimal(FRACTIONAL, bins=1)
    assert (relaxed.keep.sum(), relaxed.proven) == (6, False)  # not proven: the bound says seven
    assert relaxed.bound == pytest.approx(7.0)


def test_a_search_that_ran_out_of_time_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.refining.optimal._better_than", lambda programme, amounts, limit: (amounts, np.inf))
    stopped = optimal(FRACTIONAL, bins=1)
    assert (stopped.keep.sum(), stopped.proven) == (6, False)
    assert stopped.bound == pytest.approx(7.0)


def test_the_exact_search_finds_more_than_it_is_given() -> None:
    cells = signed_bins(FRACTIONAL, 1)
    kinds, counts = np.unique(cells, axis=0, return_counts=True)
    programme = _programme(counts, kinds, 1)
    found, bound = _better_than(programme, np.zeros(len(kinds)), 10.0)
    assert (found.sum(), bound) == (6, 6.0)
    assert _better_than(programme, found, 10.0)[1] == 6.0


def test_which_of_equal_items_stay_is_drawn_at_random() -> None:
    gaps = np.r_[np.full(40, 0.5), np.full(10, -0.5)]
    drawn = np.array([optimal(gaps, seed=seed).keep[:40] for seed in range(60)])
    assert (drawn.sum(axis=1) == 10).all()
    assert (drawn.sum(axis=0) > 0).all()  # each of the 40 is drawn some time …
    assert drawn.sum(axis=0).max() < 30  # … and none nearly always
    assert (optimal(gaps, seed=1).keep == optimal(gaps, seed=1).keep).all()


@pytest.mark.slow
def test_large_selections_stay_within_one_percent_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.refining.optimal.EXACT", 0)
    rng = np.random.default_rng(0)
    gaps = np.clip(rng.normal(0.1, 0.3, (20_000, 3)), -1, 1)
    choice = optimal(gaps)
    assert (imbalance(gaps, choice.keep) == 0).all()
    assert choice.keep.sum() >= 0.99 * choice.bound


def test_gaps_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="item 1"):
        grid_selection(np.array([[0.1, 0.2], [np.nan, 0.3]]))


@pytest.mark.parametrize("attempts", [400, 0])
def test_out_of_time_the_signs_balance_nevertheless(attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Almost no time: bins may miss an item, and that is counted, but no attacker has an edge."""
    monkeypatch.setattr("creperie.refining.optimal.ATTEMPTS", attempts)
    rng = np.random.default_rng(2)
    gaps = np.clip(0.2 + 0.3 * rng.normal(size=(200, 3)), -1, 1)
    choice = optimal(gaps, time_limit=0.01)
    assert (imbalance(gaps, choice.keep) == 0).all()
    assert choice.keep.sum() >= 0.8 * choice.bound > 45
    cells = signed_bins(unit_gaps(gaps), 10)[choice.keep]
    missed = sum(abs((cells[:, a] == b).sum() - (cells[:, a] == -b).sum()) for a in range(3) for b in range(1, 11))
    assert choice.off == missed
    assert choice.proven is False or missed == 0


def test_two_halves_are_as_sure_as_the_less_sure_one() -> None:
    """A proof holds for both halves together only where each half has one."""

    def half(proven: bool, *sizes: int) -> Choice:
        keep = np.array([True, False])
        curve = tuple((f"step {k}", n) for k, n in enumerate(sizes))
        filtered = Filtered(keep, *(float(n) for n in range(6)))
        return Choice(keep, curve, Selection(keep, 2.0, proven, 1), (filtered,), (Structural(str(sizes), 0.1),))

    for first, second in ((True, True), (True, False), (False, True), (False, False)):
        both = half(first, 9, 4).joined(half(second, 8, 5))
        assert both.selection.proven == (first and second)
        assert (both.selection.bound, both.selection.off) == (4.0, 2)
        assert both.curve == (("step 0", 17), ("step 1", 9))
        assert both.keep.tolist() == [True, False, True, False]
        assert (len(both.filtered), [cue.attacker for cue in both.structural]) == (2, ["(9, 4)", "(8, 5)"])


def test_a_named_attacker_alone_loads_nothing_else() -> None:
    code = """
import sys
import creperie as cr
rows = [{"caption": f"a dog {'runs ' * (i % 2)}{i}", "foil": f"a cat {'runs ' * (i // 2 % 2)}{i}"} for i in range(40)]
refined = cr.refine(rows, attackers=["length-words"], audit=False)
print([m for m in ("sklearn", "transformers", "torch", "spacy") if m in sys.modules], repr(refined))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] Refined('frame' by grid: ")
    assert done.stdout.endswith("items; not run: no audit was run)\n")


def test_a_refinement_by_named_attackers_and_a_report_load_no_model_that_nobody_named(tmp_path: Path) -> None:
    """With packaged models installed, 24 items took 23 s of processor time before the first sign of life."""
    code = f"""
import sys
import creperie as cr
rows = [{{"caption": f"a dog {{'runs ' * (i % 2)}}", "foil": f"a cat {{'runs ' * (i // 2 % 2)}}"}} for i in range(24)]
refined = cr.refine(rows, attackers=["length-words"])
cr.report(cr.score(rows, "blind:length"), {str(tmp_path / "report.html")!r})
print([m for m in ("transformers", "torch", "sentence_transformers") if m in sys.modules], repr(refined))
"""
    installed = {**os.environ, "CREPERIE_AUDIT_MODELS": "installed", "CREPERIE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=installed)
    assert done.stdout.startswith("[] Refined('frame' by grid: ")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "not run: " in page
    assert "lm-mean" in page
