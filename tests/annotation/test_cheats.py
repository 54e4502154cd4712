"""Cheats among honest people: who is excluded, and what becomes of the verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from research.people_cheats import SCENARIOS, WORLDS, Served, holds, scenario, served_table, write_between

from creperie.metrics import Votes, dawid_skene, habit_odds


def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """60 questions with three answers to choose from, 4 of 6 people each; accuracies from 0.95 down to 0.6."""
    dice = np.random.default_rng(7)
    truth = dice.integers(0, 3, 60)
    rows = []
    for question in range(60):
        for person in dice.choice(6, 4, replace=False):
            right = dice.random() < (0.95, 0.9, 0.85, 0.8, 0.7, 0.6)[person]
            label = truth[question] if right else (truth[question] + 1 + dice.integers(0, 2)) % 3
            rows.append((question, person, label))
    question, person, label = np.array(rows, np.int64).T
    return question, person, label


def test_accuracies_are_those_of_crowd_kit() -> None:
    """Source: crowd-kit 1.4.2, OneCoinDawidSkene(n_iter=200, tol=-1).fit(table).skills_ and .priors_."""
    estimate = dawid_skene(Votes(*_table(), np.full(60, -1), 6, 3), rounds=201, prior=(0.0, 0.0))
    assert estimate.accuracy == pytest.approx([0.976773, 0.805188, 0.852451, 0.823923, 0.618379, 0.764473], abs=1e-6)
    assert estimate.posterior.mean(axis=0) == pytest.approx([0.231836, 0.382595, 0.385569], abs=1e-6)


def test_a_habit_shows_where_all_questions_but_the_checks_have_one_answer() -> None:
    """Five who say what is true, three who always say 1; the truth is 0 but for half of the four checks."""
    question, person = np.divmod(np.arange(20 * 8), 8)
    truth = np.where(np.arange(20) < 16, -1, np.arange(20) % 2)
    label = np.where(person < 5, np.maximum(truth, 0)[question], 1)
    votes = Votes(question, person, label, truth, 8, 2)
    odds = habit_odds(votes, dawid_skene(votes))
    assert (odds[:5] < -1).all()
    assert (odds[5:] > 5).all()


def test_cheats_on_the_real_server_are_excluded_before_anything_is_applied(tmp_path: Path) -> None:
    """Six people who are always right and two who always say true: whoever gives out the questions, all verdicts are
    right once the two are excluded and others have answered.
    """
    study = Served(("honest",) * 6 + ("true",) * 2, 1.0, 0, tmp_path, answers=9)
    wrong, gone = study.rounds()
    study.db.close()
    assert (gone, wrong[-1], len(wrong) > 1) == ({"true": 2}, 0, True)


def test_tables_are_written_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- cheats served -->\nold\n<!-- /cheats served -->\nafter\n", encoding="utf-8")
    row = {"people": "all", "accuracy": 0.9, "questions": 10, "as_is": 4.0, "one_round": 3.0, "wrong": 3.0}
    row |= {"wrong_alone": 2.0, "caught": 1, "cheats": 2, "honest_excluded": 0, "honest": 3}
    write_between(page, "cheats served", served_table([row]))
    text = page.read_text(encoding="utf-8")
    assert "| all | 90 % | 10 | 4.0 | 3.0 | 3.0 | 2.0 | 1.5 | 1 of 2 | 0 of 3 |" in text
    assert text.startswith("before\n<!-- cheats served -->\n| people |")
    assert "old" not in text


CASES = [(name, world, accuracy) for name in SCENARIOS for world, one in WORLDS.items() for accuracy in one.overlap]
QUICK = {("random", "plain", 0.95), ("9 of 29", "plain", 0.95)}


@pytest.mark.parametrize(
    ("name", "world", "accuracy"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_no_kind_of_cheat_does_much_harm(name: str, world: str, accuracy: float) -> None:
    """The thresholds were chosen in the plain world; the varied one, with other seeds, has never seen them."""
    row = scenario(name, accuracy, range(4) if world == "plain" else range(1000, 1010), WORLDS[world])
    assert holds(row), row
