"""What captions allow: on small sets by hand, and on SugarCrepe, whose figures a second program counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from creperie.bench import Item, choice, from_items, save
from creperie.cli.ceiling import ceiling
from creperie.scoring import layout_of_bench
from creperie.statistics import half_truths

RELEASED = Path(__file__).parents[3] / "shared" / "data" / "sugarcrepe"
PAIRS = [("A dog bites a man.", "A man bites a dog."), ("A dog.", "A dog and a cat."), ("A dog.", "A cat.")]


def test_ceilings_of_three_items(tmp_path: Path) -> None:
    bench = from_items("three", [Item(str(k), "s", ("i.png",), pair, choice(1, 1), {}) for k, pair in enumerate(PAIRS)])
    captions = bench.column("captions").to_pylist()
    assert half_truths(captions, layout_of_bench(bench)).tolist() == [False, True, False]
    save(bench, tmp_path / "three")
    answer = CliRunner().invoke(ceiling, [str(tmp_path / "three"), "--json"])
    (row,) = json.loads(answer.output)["ceilings"]
    assert (row["n"], row["same_words"], row["half_truths"]) == (3, 1, 1)
    assert np.allclose((row["order_blind"], row["order_blind_half"]), (2 / 3, 5 / 6))


@pytest.mark.skipif(not RELEASED.exists(), reason="the released files are not at hand")
def test_word_order_decides_572_items_of_sugarcrepe() -> None:
    answer = CliRunner().invoke(ceiling, [f"sugarcrepe:{RELEASED}", "--json"])
    (row,) = json.loads(answer.output)["ceilings"]
    assert (row["n"], row["same_words"]) == (7511, 572)
    assert (round(row["order_blind"], 3), round(row["order_blind_half"], 3)) == (0.924, 0.962)
