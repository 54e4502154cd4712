"""What a stage of a recipe says about itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from creperie.bench import Item, from_items, save
from creperie.recipes import read_recipe
from creperie.recipes.kitchen import run_stages
from creperie.statistics import Analysis
from creperie.statistics.declare import PRESETS, AnalysisPreset

RECIPE = """
recipe: fits
title: Fits
stages:
  - name: items
    does: captions
    with: {{source: {bench}}}
  - name: score
    does: score
    with: {{models: ["blind:length", "blind:length-chars"], tasks: [blind]}}
  - name: stats
    does: stats
    from: [score, items]
    with: {{presets: [plain], per_model: true}}
"""


@pytest.mark.usefixtures("own_cache")
def test_fits_on_all_models_and_on_each_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They had one name, so the last model's rows and effects stood where those of all models should."""
    plain = {"all": Analysis("chosen", ("longer", "subset"), ("image",))}
    monkeypatch.setitem(PRESETS, "plain", AnalysisPreset("", plain, ("longer", "subset")))  # type: ignore[arg-type]
    draw = random.Random(0)
    texts = [" ".join(draw.choices(["a", "horse", "ran"], k=draw.randrange(2, 7))) for _ in range(80)]
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    items = [Item(str(i), "ab"[i % 2], (f"{i // 2}.png",), pair, ((True, False),)) for i, pair in enumerate(pairs)]
    save(from_items("mine", items), tmp_path / "bench")
    (tmp_path / "fits.yaml").write_text(RECIPE.format(bench=tmp_path / "bench"))
    *_, stats = run_stages(read_recipe(tmp_path / "fits.yaml", "small"), tmp_path / "out")
    fitted = json.loads((tmp_path / "out" / "03-stats" / "plain.json").read_text())["fits"]
    assert [fit["sample"] for fit in fitted] == ["all models", "blind:length-chars"]
    summary = stats.summary["presets"]["plain"]
    assert summary["rows"] == {"all": 80, "all (blind:length-chars)": 40}
    assert list(summary["effects"]) == list(summary["rows"])
    assert list(summary["not_fitted"]) == ["all (blind:length)"]  # it always chooses the shorter caption
