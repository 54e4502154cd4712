"""What a refinement takes from attackers: gaps, halves, cues that selection cannot remove."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from creperie.auditing import pairs_of
from creperie.bench import from_items
from creperie.core import silent
from creperie.refining import RefinePlan, refinement, select
from creperie.refining.standing import gaps_from_odds


def test_sureness_is_twice_the_probability_less_one(make: Any) -> None:
    """Odds of 3 to 1 are a probability of .75, so .5; no answer is no gap."""
    pairs = pairs_of(from_items("b", make(4, 0)))
    found = gaps_from_odds(pairs, np.array([np.log(3), -np.log(3), 0.0, np.nan]))
    assert np.allclose(found, [0.5, -0.5, 0.0, 0.0])


def test_a_cue_is_structural_by_its_clear_sides_alone(make: Any) -> None:
    """Of forty items 39 lean to one side and one is undecided: at most one can stay."""
    gaps = np.array([[1.0, 0.0]] * 39 + [[0.0, 0.0]])
    pool = select.SelectionPool("a", pairs_of(from_items("b", make(40, 0))), ("length", "silent"), gaps)
    assert select.structural_cues(pool) == (select.Structural("length", 0.025),)


@pytest.mark.parametrize(("method", "directed", "halves", "parts"), [
    ("optimal", True, True, 2), ("optimal", False, True, 1), ("optimal", True, False, 1), ("pair", True, True, 1),
    ("coin", True, True, 1),
])  # fmt: skip
def test_only_where_something_is_learned_are_halves_chosen_apart(
    make: Any, monkeypatch: pytest.MonkeyPatch, method: str, directed: bool, halves: bool, parts: int
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(refinement, "attacker_gaps", lambda pairs, attacker, progress: np.zeros(pairs.n_items))
    monkeypatch.setattr(
        refinement._Chooser, "_choose", lambda self, among, gaps, attackers: seen.append(int(among.sum()))
    )
    monkeypatch.setattr(refinement, "_combined", lambda first, second: None)
    pairs = pairs_of(from_items("b", make(6, 0)))
    chooser = refinement._Chooser(Any, pairs, RefinePlan(method=method), 0, silent)  # type: ignore[arg-type]
    attackers: Any = [SimpleNamespace(name="a", directed=directed)]
    chooser.by_halves(attackers, np.array([0, 0, 1, 1, 0, 1]) if halves else np.zeros(6, dtype=int))
    assert len(seen) == parts
    assert sum(seen) == 6
