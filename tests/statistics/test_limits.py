"""What captions allow: on small sets by hand, and on SugarCrepe, whose figures a second program counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import creperie as cr
from creperie.bench import Item, choice, from_items, save
from creperie.cli.ceiling import ceiling
from creperie.scoring import layout_of_bench
from creperie.statistics import half_truth_accuracy, half_truths

RELEASED = Path(__file__).parents[3] / "shared" / "data" / "sugarcrepe"
PAIRS = [("A dog bites a man.", "A man bites a dog."), ("A dog.", "A dog and a cat."), ("A dog.", "A cat.")]


THREE = from_items("three", [Item(str(k), "s", ("i.png",), pair, choice(1, 1), {}) for k, pair in enumerate(PAIRS)])


def test_ceilings_of_three_items(tmp_path: Path) -> None:
    captions = THREE.column("captions").to_pylist()
    assert half_truths(captions, layout_of_bench(THREE)).tolist() == [False, True, False]
    save(THREE, tmp_path / "three")
    answer = CliRunner().invoke(ceiling, [str(tmp_path / "three"), "--json"])
    (row,) = json.loads(answer.output)["ceilings"]
    assert (row["n"], row["same_words"], row["half_truths"]) == (3, 1, 1)
    assert np.allclose((row["order_blind"], row["order_blind_half"]), (2 / 3, 5 / 6))


def test_half_truth_accuracy_of_a_run(tmp_path: Path) -> None:
    """Of three items one is a half-truth; a model that prefers fewer words rejects it."""
    save(THREE, tmp_path / "three")
    run = cr.score(THREE, "blind:length-words").save(tmp_path)
    answer = CliRunner().invoke(ceiling, [str(tmp_path / "three"), "--run", str(run.path), "--json"])
    (row,) = json.loads(answer.output)["half_truth_accuracy"]
    assert half_truth_accuracy(cr.score(THREE.head(2), "blind:length-words"), THREE)[-1].n == 1
    assert (row["task"], row["n"], row["accuracy"], row["chance"]) == ("blind", 1, 1.0, 0.5)
    other = from_items("other", [Item("0", "s", ("i.png",), PAIRS[0], choice(1, 1), {})])
    with pytest.raises(cr.CreperieError, match="is not the benchmark that was scored"):
        half_truth_accuracy(run, other)


@pytest.mark.skipif(not RELEASED.exists(), reason="the released files are not at hand")
def test_word_order_decides_572_items_of_sugarcrepe() -> None:
    answer = CliRunner().invoke(ceiling, [f"sugarcrepe:{RELEASED}", "--json"])
    (row,) = json.loads(answer.output)["ceilings"]
    assert (row["n"], row["same_words"]) == (7511, 572)
    assert (round(row["order_blind"], 3), round(row["order_blind_half"], 3)) == (0.924, 0.962)
