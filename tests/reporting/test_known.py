"""Published results of others: transcribed faithfully, ranked only with results of the same definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from creperie.reporting import column_correlations, known_places, published_table
from creperie.scoring import RunHeader


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


class Header(RunHeader):
    def __init__(self, n: int) -> None:
        result: dict[str, Any] = {"task": "itt", "subset": "all", "n": n, "accuracy": 0.765, "low": 0.75, "high": 0.766}
        self.document = {"benchmark": {"name": "sugarcrepe", "subsets": {"a": 1, "b": 1}}, "model": {"uri": "hf:x"}}
        self.document["results"] = [result]


def test_a_run_is_placed_among_results_of_its_definition_alone() -> None:
    (place,) = known_places(Header(7511))
    assert "76.5 %, between BAAI/bge-visualized-m3 (75.7, mieb/1) and openai/clip-vit-base-patch32 (76.6" in str(place)
    assert {r.table for r in place.column.results} == {"mieb/1"}
    assert known_places(Header(700)) == []  # a part of the items
