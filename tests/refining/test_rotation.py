"""Refinement across families: one is held out, and measured on what was selected against all others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from creperie.auditing import AttackerModels
from creperie.bench import Benchmark, Item, from_items
from creperie.refining import Rotation, rotate, rotation_rows

pytest.importorskip("sklearn")
NOUNS = ["dog", "cat", "man", "horse", "bird", "train", "bus", "child", "boat", "cow"]
MODELS = AttackerModels(lm="none", encoder="none")


def foiled(n: int, how: str) -> Benchmark:
    """True captions and foils that are longer, end in a stop of their own, or both, in four of five cases."""
    rng = np.random.default_rng(0)
    items = []
    for i in range(n):
        a, b = rng.choice(NOUNS, 2, replace=False)
        texts = [f"the {a} sees a {b} at house {i}", f"the {b} sees a {a} at house {i}"]
        longer, stopped = rng.random(2) < 0.8 if how == "apart" else np.repeat(rng.random() < 0.8, 2)
        texts[int(longer)] += " now"
        texts[int(stopped)] += "."
        items.append(Item(str(i), "swap", (f"{i}.jpg",), tuple(texts), ((True, False),)))
    return from_items("foiled", items)


@pytest.fixture(scope="module")
def apart() -> Rotation:
    return rotate(foiled(100, "apart"), MODELS, attackers=("length-words", "surface"), shares=(1.0,), time_limit=0.5)


def test_cues_that_go_together_are_removed_together() -> None:
    """Where foils are longer and end in a stop at the same time, balancing the one balances the other."""
    found = rotate(foiled(160, "together"), MODELS, attackers=("length-words", "surface"), shares=(1.0,))
    assert set(found.before) == {"length", "style"}
    assert found.before["style"].figure.accuracy == pytest.approx(0.8, abs=0.1)
    assert found.withstands
    assert "withstands" in found.text


def test_a_cue_of_its_own_survives_being_held_out(apart: Rotation) -> None:
    """Style says nothing about length: selecting against the one leaves the other as it was."""
    for point in apart.points:
        assert point.kept < 100
        assert point.figure.accuracy > 0.6
        assert not point.held


def test_named_attackers_are_only_measured() -> None:
    found = rotate(
        foiled(80, "apart"), MODELS, attackers=("length-words",), held_out=("surface",), shares=(1.0,), time_limit=0.5
    )
    assert [p.attacker for p in found.points if p.held_out == "style"] == ["surface"]
    assert found.seen == {"length": ("length-words",), "style": ("surface",)}


def test_what_is_said(apart: Rotation) -> None:
    document = json.loads(json.dumps(apart.document()))
    assert document["items"] == 100
    assert {"held_out", "share", "kept", "attacker", "accuracy", "low", "high", "held"} <= set(document["points"][0])
    assert len(rotation_rows(apart)) == len(apart.before)
    nothing = Rotation("clean", 10, 0, {}, {}, ())
    assert nothing.withstands
    assert "nothing to refine" in nothing.text
    assert not apart.withstands
    assert "rewrite the foils" in apart.text
