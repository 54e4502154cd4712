"""A learned text-only attacker: at chance on every clean kind, well above it on every biased one.

The attackers are those of research/world_clean.py: out of fold, an item's captions together.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from creperie.world import BIASED, CLEAN

SCRIPT = Path(__file__).resolve().parents[2] / "research" / "world_clean.py"
ITEMS = 800


@pytest.fixture(scope="module")
def attackers() -> ModuleType:
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("world_clean", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLEAN)
def test_clean_kinds_are_at_chance(attackers: ModuleType, kind: str) -> None:
    """3.5 standard errors, because there are 15 kinds and several attackers: ± 6.2 points of 800 items."""
    pairs = attackers.text_pairs(kind, "choice", ITEMS)[kind]
    thorough = kind in ("replace_rel", "swap_obj", "add_att", "negation")  # the pair attacker takes its time
    for attacker in ("words", "longer", "pair") if thorough else ("words", "longer"):
        share = attackers.attack(pairs, attacker)
        assert abs(share - 0.5) < 3.5 * (0.25 / ITEMS) ** 0.5, (attacker, share)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spatial", "active_passive", "dative"])
def test_second_positives_are_at_chance_too(attackers: ModuleType, kind: str) -> None:
    """A cue of the foils would lift an attacker; twins in other folds, worded the other way round, push it down."""
    for name, pairs in attackers.text_pairs(kind, "triple", ITEMS).items():
        share = attackers.attack(pairs, "words")
        assert -6 < (share - 0.5) / (0.25 / ITEMS) ** 0.5 < 3.5, (name, share)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BIASED)
def test_biased_kinds_are_found_out(attackers: ModuleType, kind: str) -> None:
    pairs = attackers.text_pairs(kind, "choice", 300)[kind]
    share = attackers.attack(pairs, "pair")
    assert share > 0.65, share


def test_longer_foils_fall_to_length_and_clean_ones_do_not(attackers: ModuleType) -> None:
    for kind in ("add_obj", "add_att"):
        clean = attackers.text_pairs(kind, "choice", 300)[kind]
        assert abs(attackers.attack(clean, "longer") - 0.5) < 0.1
    biased = attackers.text_pairs("add_obj_longer", "choice", 100)["add_obj_longer"]
    assert attackers.attack(biased, "longer") == 0
