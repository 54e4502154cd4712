"""Attackers that are trained during a refinement, and what one that could not be trained proves."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from creperie.auditing import grouped_folds, pairs_of
from creperie.bench import from_items
from creperie.core import silent
from creperie.refining import RefinePlan, aflite, refinement, select
from creperie.refining.crossfit import FOLDS, Trainer, sureness


def test_an_attacker_that_could_not_be_trained_proves_nothing() -> None:
    pairs: Any = None
    found = aflite._round(pairs, np.ones(5, dtype=bool), [], 0)
    assert (found.kept, found.at_chance, found.removed) == (5, False, None)


def test_sureness_is_twice_the_probability_less_one(make: Any) -> None:
    """Odds of 3 to 1 are a probability of .75, so .5; no answer is no gap."""
    pairs = pairs_of(from_items("b", make(4, 0)))
    found = sureness(pairs, np.array([np.log(3), -np.log(3), 0.0, np.nan]))
    assert np.allclose(found, [0.5, -0.5, 0.0, 0.0])


def test_aflite_balances_the_simple_cues_and_trains_its_own(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[np.ndarray] = []

    def stopped(pairs: Any, gaps: np.ndarray, **how: Any) -> Any:
        given.append(gaps)
        raise StopIteration

    monkeypatch.setattr(aflite, "aflite", stopped)
    gaps = np.array([[1.0, 2.0, 3.0]] * 4)
    pool = select.SelectionPool("a", pairs_of(from_items("b", make(4, 0))), ("length", "learned", "case"), gaps)
    with pytest.raises(StopIteration):
        aflite.METHOD.choose(pool, RefinePlan(method="aflite").settings(0), silent)
    assert given[0].tolist() == [[1.0, 3.0]] * 4


def test_an_item_is_answered_by_models_that_did_not_see_it(make: Any) -> None:
    """Turn the roles of one fold round: its own answers turn with them, since nothing there was learned from it."""
    pairs = pairs_of(from_items("b", make(80, 0, word=0.9)))
    fold = grouped_folds(pairs.group[pairs.item], FOLDS, 0)
    turned = np.where(fold == 0, pairs.right, pairs.left), np.where(fold == 0, pairs.left, pairs.right)
    everything = np.ones(pairs.n_items, dtype=bool)
    before = Trainer(pairs).margins(everything, everything, 0)
    after = Trainer(replace(pairs, left=turned[0], right=turned[1])).margins(everything, everything, 0)
    assert np.abs(before[fold == 0]).max() > 0.1
    assert np.allclose(after[fold == 0], -before[fold == 0], atol=1e-6)


def test_a_cue_is_structural_by_its_clear_sides_alone(make: Any) -> None:
    """Of forty items 39 lean to one side and one is undecided: at most one can stay."""
    gaps = np.array([[1.0, 0.0]] * 39 + [[0.0, 0.0]])
    pool = select.SelectionPool("a", pairs_of(from_items("b", make(40, 0))), ("length", "silent"), gaps)
    assert select.structural_cues(pool) == (select.Structural("length", 0.025),)


@pytest.mark.parametrize(("method", "directed", "halves", "parts"), [
    ("optimal", True, True, 2), ("optimal", False, True, 1), ("pair", True, True, 1), ("aflite", False, True, 2),
    ("aflite", False, False, 1),
])  # fmt: skip
def test_only_where_something_is_learned_are_halves_chosen_apart(
    make: Any, monkeypatch: pytest.MonkeyPatch, method: str, directed: bool, halves: bool, parts: int
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(refinement, "gap_of", lambda pairs, attacker, progress: np.zeros(pairs.n_items))
    monkeypatch.setattr(refinement, "_Chosen", lambda *a: None)
    monkeypatch.setattr(
        refinement, "_refine_parts", lambda self, among, gaps, names: seen.append(int(among.sum())) or ()
    )
    monkeypatch.setattr(refinement, "_both", lambda first, second: None)
    pairs = pairs_of(from_items("b", make(6, 0)))
    chooser = refinement._Choosing(Any, pairs, RefinePlan(method=method), 0, silent)  # type: ignore[arg-type]
    attackers: Any = [SimpleNamespace(name="a", directed=directed)]
    chooser.by_halves(attackers, np.array([0, 0, 1, 1, 0, 1]) if halves else np.zeros(6, dtype=int))
    assert len(seen) == parts
    assert sum(seen) == 6
