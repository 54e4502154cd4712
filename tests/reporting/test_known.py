"""Published results of others: transcribed faithfully, ranked only with results of the same definition."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from creperie.bench import PAIRED, Item, from_items
from creperie.core import CreperieError
from creperie.reporting import column_correlations, export_mieb, fill_table, known_places, published_table, why_no_place
from creperie.scoring.replies import answered_run


def test_mieb_s_figures_and_correlations_are_those_of_its_file(shared_data: Path) -> None:
    pandas = pytest.importorskip("pandas")
    theirs = pandas.read_csv(shared_data / "outside/mieb/mieb.csv", index_col=0)
    table = published_table("mieb/1")
    ours = pandas.DataFrame({r.model: r.cells for r in table.rows}).T.replace("", None).astype(float) / 100
    assert abs(ours.to_numpy() - theirs.to_numpy())[~theirs.isna().to_numpy()].max() < 6e-5
    reference = theirs.SugarCrepe.corr(theirs.Winoground, method="spearman")
    assert column_correlations(table)[-1][2].value == pytest.approx(reference, abs=2e-3)  # two digits tie some models


def test_mieb_s_sugarcrepe_is_the_share_of_all_items() -> None:
    """Pooled by the paper's numbers of items, the subsets of its Table 6 give MIEB's figures; their mean does not."""
    table = published_table("sugarcrepe/6")
    sizes = {c.name: c.n for c in table.columns if c.name not in ("params", "average")}
    pooled = {r.model: sum(float(r.cells[s]) * n for s, n in sizes.items()) / 7512 for r in table.rows}  # type: ignore
    same = {"ViT-B-32": "openai/clip-vit-base-patch32", "ViT-L-14": "openai/clip-vit-large-patch14"}
    same |= {"ViT-H-14": "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"}
    theirs = {r.model: float(r.cells["sugarcrepe"]) for r in published_table("mieb/1").rows if r.cells["sugarcrepe"]}
    assert max(abs(pooled[a] - theirs[b]) for a, b in same.items()) < 0.2


def test_a_run_is_placed_among_results_of_its_definition_alone() -> None:
    result: dict[str, Any] = {"task": "itt", "subset": "all", "n": 7511, "accuracy": 0.765, "low": 0.75, "high": 0.766}
    document = {"benchmark": {"name": "sugarcrepe", "subsets": {"a": 1, "b": 1}}, "results": [result]}
    run: Any = SimpleNamespace(benchmark="sugarcrepe", model="hf:x", document=document)
    (place,) = known_places(run)
    assert "76.5 %, between BAAI/bge-visualized-m3 (75.7, mieb/1) and openai/clip-vit-base-patch32 (76.6" in str(place)
    assert {r.table for r in place.column.results} == {"mieb/1"}
    result |= {"ties": 100, "hits": 5746, "tie_rule": "wrong"}  # MIEB takes the first of equals, which is true
    assert known_places(run)[0].value == pytest.approx(100 * 5846 / 7511)
    assert str(known_places(run)[0]).endswith("; 100 of its 7,511 items are ties, counted as right")
    assert why_no_place(run, "sugarcrepe") == ""
    assert why_no_place(run, "winoground") == "it is a run on sugarcrepe"
    result["n"] = 700  # a part of the items
    assert known_places(run) == []
    assert why_no_place(run, "sugarcrepe") == "it has 700 items; a place needs 99 % of the 7,512 published"
    result["task"] = "tot"
    assert why_no_place(run, "sugarcrepe") == "it has tot; published are itt"


def test_a_results_file_has_mieb_s_figures(tmp_path: Path) -> None:
    """Of equal scores the first is taken: right for the first image and caption, wrong for the second."""
    items = [Item(str(k), "w", ("a", "b"), ("x", "y"), PAIRED, {}) for k in range(400)]
    scores = np.tile(np.array([1, 0, 0, 1] * 3 + [1, 1, 0, 1], np.float32), 100)  # ties in the last
    run = answered_run(from_items("winoground", items), scores, "hf:org/model")
    document = json.loads(export_mieb(run, tmp_path).read_text())
    entry = document["scores"]["test"][0]
    assert (entry["text_acc"], entry["image_acc"], entry["main_score"]) == (1.0, 0.75, 0.75)
    assert document["mteb_version"] is None
    assert entry["computed_by"].startswith("creperie ")
    with pytest.raises(CreperieError, match="100 of its 400 items are ties, which the source counts by a rule of its"):
        fill_table(published_table("mieb/1"), [run])
    scores[:800] = np.nan
    with pytest.raises(CreperieError, match="200 of 400 items have image-text scores"):
        export_mieb(answered_run(from_items("winoground", items), scores, "hf:org/model"), tmp_path)
