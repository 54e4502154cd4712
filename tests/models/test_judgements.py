"""Kendall's tau against scipy, and scores against people's judgements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from creperie.core import DataError
from creperie.metrics import kendall
from creperie.scoring.judgements import human_correlation, pair_scores, read_judgements


@pytest.mark.parametrize("variant", ["b", "c"])
def test_tau_equals_scipy(variant: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(7)
    for n, levels in ((2, 2), (5, 3), (33, 4), (400, 4), (3000, 7), (3000, 10**6)):
        x, y = rng.integers(0, levels, n).astype(float), rng.normal(size=n).round(1)
        y[: n // 2] += x[: n // 2]
        wanted = stats.kendalltau(x, y, variant=variant).statistic
        assert kendall(x, y, variant) == pytest.approx(wanted, abs=1e-9, nan_ok=True)
        assert kendall(y, x, variant) == pytest.approx(wanted, abs=1e-9, nan_ok=True)


def test_tau_without_an_answer() -> None:
    assert np.isnan(kendall([1, 1, 1], [1, 2, 3]))
    assert np.isnan(kendall([1], [1]))
    assert kendall([1, 2, np.nan, 3], [1, 2, 0, 3]) == 1.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four photographs with judgements in the published layout; one pair's caption belongs to its image."""
    (tmp_path / "images").mkdir()
    for k in range(4):
        Image.new("RGB", (40 + 9 * k, 40), (60 * k, 90, 200 - 40 * k)).save(tmp_path / "images" / f"{k}.jpg")
    (tmp_path / "Flickr8k.token.txt").write_text(
        "".join(f"{k}.jpg#{c}\ttext {'x' * (k + c)} .\n" for k in range(4) for c in range(2))
    )
    pairs = [(i, k) for i in range(4) for k in range(4) if i != k]
    lines = [f"{i}.jpg\t{k}.jpg#0\t{1 + k}\t{1 + k}\t{max(1, k)}" for i, k in pairs]
    (tmp_path / "ExpertAnnotations.txt").write_text("\n".join([*lines, "0.jpg\t0.jpg#1\t4\t4\t4"]) + "\n")
    crowd = [f"{i}.jpg\t{k}.jpg#1\t{k / 3}\t{k}\t{3 - k}" for i, k in pairs]
    (tmp_path / "CrowdFlowerAnnotations.txt").write_text("\n".join(crowd) + "\n")
    return tmp_path


def test_the_protocol(folder: Path) -> None:
    expert, own = read_judgements(folder, "expert")
    assert (len(expert), own) == (12, 1)
    assert expert[0].ratings == (2.0, 2.0, 1.0)
    crowd, own = read_judgements(folder, "cf")
    assert (len(crowd), own, crowd[0].ratings) == (12, 0, (1 / 3,))


def test_a_blind_model_follows_the_captions(folder: Path) -> None:
    """Longer captions were rated higher here, so minus the length must correlate negatively, as computed by scipy."""
    stats = pytest.importorskip("scipy.stats")
    found = human_correlation(folder, "expert", "blind:length-chars", images=folder / "images", device="cpu")
    assert (found.pairs, found.points, found.own_captions, found.missing) == (12, 36, 1, 0)
    pairs, _ = read_judgements(folder, "expert")
    from creperie.models import load_model

    scores = load_model("blind:length-chars", device="cpu").score_texts([p.caption for p in pairs])  # type: ignore[attr-defined]
    flat = np.repeat(scores, 3), np.array([r for p in pairs for r in p.ratings])
    assert found.tau_c[0] == pytest.approx(stats.kendalltau(*flat, variant="c").statistic, abs=1e-9)
    assert found.tau_b[1] <= found.tau_b[0] <= found.tau_b[2]


def test_a_dual_encoder_and_a_missing_image(folder: Path, clip_folder: Path) -> None:
    from creperie.bench import open_store
    from creperie.models import load_model

    model: Any = load_model(f"hf:{clip_folder}", device="cpu")
    pairs, _ = read_judgements(folder, "cf")
    (folder / "images" / "2.jpg").unlink()
    scores = pair_scores(pairs, model, open_store(str(folder / "images")))
    gone = [p.image == "2.jpg" for p in pairs]
    assert np.isnan(scores).tolist() == gone
    image = Image.open(folder / "images" / "0.jpg")
    wanted = float(model.encode_images([image])[0] @ model.encode_texts([pairs[0].caption])[0])
    assert scores[0] == pytest.approx(wanted, abs=1e-5)


def test_the_command(folder: Path, clip_folder: Path) -> None:
    from click.testing import CliRunner

    from creperie.cli.app import cli

    command = ["score", f"flickr8k-cf:{folder}", "--images", str(folder / "images"), "--device", "cpu"]
    done = CliRunner().invoke(cli, [*command, "-m", f"hf:{clip_folder}", "--json"])
    document = json.loads(done.stdout)
    assert document["published"] == {"metric": "CLIPScore", "variant": "b", "percent": 34.4}
    assert (document["models"][0]["photographs"], document["models"][0]["pairs"]) == (4, 12)
    few = [*command, "-m", "blind:length-words", "--limit", "2", "--json"]
    drawn = [json.loads(CliRunner().invoke(cli, few).stdout) for _ in range(2)]
    assert drawn[0] == drawn[1]  # the same photographs
    assert (drawn[0]["models"][0]["photographs"], drawn[0]["models"][0]["pairs"]) == (2, 6)
    (folder / "CrowdFlowerAnnotations.txt").write_text("0.jpg\tnone.jpg#1\t1\t1\t1\n")
    with pytest.raises(DataError, match="a known caption"):
        read_judgements(folder, "cf")
