"""Where attackers still win after refinement, and what an attacker that could not be trained proves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from creperie.auditing import pairs_of
from creperie.bench import from_items
from creperie.core import silent
from creperie.refining import RefinePlan, aflite, select
from creperie.refining.crossfit import sureness
from creperie.refining.standing import AttackerFigure, AttackerStanding, judged


def standing(name: str, *, held_out: bool, **p: float) -> AttackerStanding:
    after = {subset: AttackerFigure(100, 0.6, 0.5, 0.7, value) for subset, value in p.items()}
    return AttackerStanding(name, held_out, False, after, after, after)


def test_attackers_seen_and_held_out_are_two_families() -> None:
    """Holm by hand: of .03 and .04 neither stays below .05 among four, but .012 (× 4) does; .03 stays among one."""
    seen = [standing("words", held_out=False, a=0.012, b=0.04), standing("length", held_out=False, a=0.03, b=0.9)]
    other = [standing("lm", held_out=True, a=0.03)]
    assert [s.wins for s in judged([*seen, *other])] == [("a",), (), ("a",)]
    assert [s.wins for s in judged([*other, *seen])] == [("a",), ("a",), ()]


def test_one_subset_is_all_and_empty_sets_do_not_count() -> None:
    assert judged([standing("words", held_out=False, all=0.03, a=0.03)])[0].wins == ("a",)
    nothing = AttackerFigure(0, float("nan"), float("nan"), float("nan"), 0.0)
    assert judged([AttackerStanding("words", False, False, {}, {"a": nothing}, {})])[0].wins == ()


def test_an_attacker_that_could_not_be_trained_proves_nothing() -> None:
    pairs: Any = None
    found = aflite._round(pairs, np.ones(5, dtype=bool), [], 0)
    assert (found.kept, found.held, found.wins, found.removed) == (5, False, False, None)


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

    monkeypatch.setattr(select, "aflite", stopped)
    gaps = np.array([[1.0, 2.0, 3.0]] * 4)
    pool = select.SelectionPool("a", pairs_of(from_items("b", make(4, 0))), ("length", "learned", "case"), gaps)
    with pytest.raises(StopIteration):
        select._by_learning(pool, RefinePlan(method="aflite"), 0, silent)
    assert given[0].tolist() == [[1.0, 3.0]] * 4
