"""Tables and figures of runs that were never saved."""

from __future__ import annotations

from pathlib import Path

import pytest

import creperie as cr
from creperie.bench import Item, from_items
from creperie.core import UsageError


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[cr.Run]:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    texts = [("a dog", "a dog that runs"), ("a cat & a dog", "a cat"), ("birds", "a bird"), ("one", "two three")]
    items = [Item(str(i), "ab"[i % 2], (), pair, ((True, False),)) for i, pair in enumerate(texts)]
    bench = from_items("four", items)
    shorter = cr.wrap(lambda captions: [-len(c) for c in captions], name="shorter")
    longer = cr.wrap(lambda captions: [len(c) for c in captions], name="longer")
    return [cr.score(bench, model) for model in (shorter, longer)]


def test_a_table(runs: list[cr.Run], tmp_path: Path) -> None:
    made = cr.table(runs, task="blind", intervals=False)
    assert "75.0" in str(made)
    assert "<table" in made._repr_html_()
    assert "shorter" in made.latex()
    assert r"\begin{tabular}" in made.save(tmp_path / "t.tex").read_text()
    assert "<table" in made.save(tmp_path / "t.html").read_text()
    with pytest.raises(UsageError, match=r"end the name in \.tex"):
        made.save(tmp_path / "t.docx")


def test_a_figure(runs: list[cr.Run], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = cr.figure(runs, out=tmp_path / "f.svg")
    assert drawn.axes
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    assert not list(tmp_path.glob("runs*"))
    with pytest.raises(cr.CreperieError, match="unknown figure 'accurracy'; did you mean 'accuracy'"):
        cr.figure(runs, "accurracy")


def test_runs_of_one_name_are_never_put_into_one_row() -> None:
    """Three epochs of a model in memory have one name: a table of them would show the last one only."""
    rows = [{"caption": f"{'a' * (k % 5)} b", "foil": "a cat"} for k in range(8)]
    runs = [
        cr.score(rows, model, tasks=["blind"], cache=False)
        for model in (lambda c: [len(t) for t in c], lambda c: [-len(t) for t in c])
    ]
    with pytest.raises(UsageError, match=r"several runs have a result for .*; name models in memory"):
        cr.table(runs)
    assert len(cr.table([runs[0], runs[0]]).table.rows) == 1


def test_guesses_are_answered_in_one_line(runs: list[cr.Run]) -> None:
    with pytest.raises(UsageError, match=r"pass several runs as a list"):
        cr.report(runs[0], runs[1])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"an attacker must be given by its name"):
        cr.audit([{"caption": "a b", "foil": "a"}], attackers=[len])  # type: ignore[list-item]
