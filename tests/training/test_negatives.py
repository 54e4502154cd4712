"""Refined training foils, and what the training stages of recipes ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from creperie.auditing import AttackerModels
from creperie.core import UsageError
from creperie.models import load_model
from creperie.training import FoilRefinement, StudyQuestion, TrainingSettings, study_of, tune
from creperie.training.negatives import keep_refined
from creperie.training.scenes import biased_scenes
from creperie.world import World, make_world


def test_the_attackers_are_those_of_the_paper_by_the_models_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    named = AttackerModels(plausibility="hf:vera", grammar="hf:cola")
    assert FoilRefinement(models=named).chosen == ("plausibility", "grammar")
    stand_in = AttackerModels(lm="lm:pkg:pocketsphinx", grammar="hf:cola")
    assert FoilRefinement(models=stand_in).chosen == ("lm-mean", "grammar")
    assert FoilRefinement(("length-words",), models=named).chosen == ("length-words",)
    monkeypatch.setattr("creperie.training.negatives._parses", lambda: False)
    assert FoilRefinement(models=AttackerModels(lm="lm:pkg:pocketsphinx")).chosen == ("lm-mean",)
    with pytest.raises(UsageError, match="no plausibility or grammar model"):
        _ = FoilRefinement(models=AttackerModels(lm="none")).chosen


def test_swaps_that_are_less_likely_than_their_captions_are_refined_away() -> None:
    """Swaps keep their length, so that refinement against length kept every one of them."""
    pytest.importorskip("pocketsphinx")
    biased = biased_scenes(300, 2)
    captions = [e.caption for e in biased.data.examples]
    foils = {"swap": biased.foils["swap"]}
    models = AttackerModels(lm="lm:pkg:pocketsphinx")
    by_length = keep_refined(foils, captions, FoilRefinement(("length-words",), 5, models))
    by_likelihood = keep_refined(foils, captions, FoilRefinement(("lm-mean",), 5, models))
    before, same, fewer = (sum(map(bool, own["swap"])) for own in (foils, by_length, by_likelihood))
    assert before == same > fewer > 0


@pytest.mark.slow
def test_a_study_from_scratch_on_data_of_ones_own(tmp_path: Path) -> None:
    """The model is a JSON file with settings: every arm of a seed begins with the same fresh weights."""
    pytest.importorskip("spacy")
    (tmp_path / "model.json").write_text(
        json.dumps({"size": 32, "channels": [8, 8, 16], "text_width": 16, "heads": 2, "joint": 16})
    )
    data, biased, clean = (
        make_world(World(8, kinds, split=split, size=32))
        for kinds, split in ((("swap_obj",), "train"), (("negate_there",), "test"), (("swap_obj",), "test"))
    )
    settings = TrainingSettings(epochs=1, batch=4, warmup=0)
    question = StudyQuestion(str(tmp_path / "model.json"), data, biased, clean, settings)
    found = study_of(question, tmp_path / "out", seeds=(0,), arms=("negate",), device="cpu")
    assert found.scratch
    documents = [
        json.loads((tmp_path / "out/seed-0" / n / "train.json").read_text()) for n in ("base", "none", "negate")
    ]
    assert len({d["job"]["weights"] for d in documents}) == 1
    assert [d["steps"] > 0 for d in documents] == [False, True, True]


@pytest.mark.slow
def test_lora_is_not_frozen_in_the_comparison(small: Any, tmp_path: Path, own_cache: None) -> None:
    """With the rate of a full tuning a few steps moved no item; the objective sees the second caption of a triple."""
    triples = make_world(World(items=20, kinds=("dative",), forms=("triple",), split="train", size=32))
    from creperie.training import train_set
    from creperie.training.student import new_small

    student = new_small(small().network.model.config, train_set(triples).captions(), 0)
    student.save(_folder(tmp_path / "student"))
    settings = TrainingSettings(objective="triple", steps=20, batch=8, lr=1e-3, warmup=2, epochs=100)
    found = tune(triples, f"small:{tmp_path / 'student'}", tmp_path / "out", settings=settings, device="cpu")
    frozen, full, lora = found.rows
    assert lora.trained_weights < full.trained_weights
    captions = list(train_set(triples).captions())
    models: list[Any] = [load_model(row.model, device="cpu") for row in (frozen, lora)]
    before, after = (model.encode_texts(captions) for model in models)
    assert np.abs(after - before).max() > 0.01  # whether that moves an item depends on the student
    runs = {way: tmp_path / "out" / way / "train.json" for way in ("full", "lora")}
    rates = {way: json.loads(file.read_text())["job"]["settings"]["lr"] for way, file in runs.items()}
    assert rates["lora"] == pytest.approx(10 * rates["full"])


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
