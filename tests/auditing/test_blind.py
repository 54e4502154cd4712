"""Blind attackers named as models."""

from __future__ import annotations

import numpy as np
import pytest
from foils import foil_bench

from creperie.core import CreperieError
from creperie.models import TextScorer, load_model
from creperie.scoring import score


def test_a_blind_model_scores_captions() -> None:
    model = load_model("blind:length")
    assert isinstance(model, TextScorer)
    short, long = model.score_texts(["a cat", "a cat on a mat"])
    assert short > long
    assert model.fingerprint.key != load_model("blind:surface").fingerprint.key


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("blind:lenght", "did you mean 'length'"),
        ("blind:learned", "unknown blind model"),
        ("blind:length?x=1", "does not apply"),
        ("blind:plausibility", "Vera"),
    ],
)
def test_mistakes_are_said(uri: str, says: str) -> None:
    with pytest.raises(CreperieError, match=says):
        load_model(uri)


def test_a_blind_model_makes_a_run(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path))
    run = score(foil_bench([(f"a dog {i}", f"a very big dog {i}") for i in range(6)]), "blind:length", tasks=["blind"])
    assert [r.hits for r in run.evaluate() if r.subset == "all"] == [6]
    assert np.isfinite(run.scores("text")).all()
