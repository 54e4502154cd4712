"""Blind twins: other images, the same captions, nothing taken from the wrong cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foils import foil_items
from PIL import Image

from creperie.bench import Benchmark, Item, choice, from_items, open_image, open_store
from creperie.bench.images import image_reference
from creperie.core import CreperieError
from creperie.scoring import blind_twin, score
from creperie.scoring.blind import KINDS

RED = (0, 60, 210)


@pytest.fixture
def bench(tmp_path: Path) -> Benchmark:
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(3):
        Image.new("RGB", (10 + n, 8), (RED[n], 0, 0)).save(folder / f"{n}.png")
    items = foil_items([(f"cat {n}", f"dog {n}") for n in range(3)], images="{}.png")
    return from_items("mine", items, images=open_store(folder))


def pixels(bench: Benchmark, key: str) -> np.ndarray:
    return np.asarray(open_image(bench.images, key))


@pytest.mark.parametrize("kind", KINDS)
def test_other_pictures_the_same_for_the_same_seed(kind: str, bench: Benchmark) -> None:
    twin = blind_twin(bench, kind, 0)
    assert twin.hash == bench.hash
    assert twin.name == f"mine~{kind}"
    for key in ("0.png", "1.png", "2.png"):
        assert not np.array_equal(pixels(twin, key), pixels(bench, key))
        assert np.array_equal(pixels(twin, key), pixels(blind_twin(bench, kind, 0), key))
    if kind in ("noise", "gaussian"):
        assert pixels(twin, "1.png").shape == pixels(bench, "1.png").shape
        assert not np.array_equal(pixels(twin, "1.png"), pixels(blind_twin(bench, kind, 1), "1.png"))


def test_the_mean_is_the_mean(bench: Benchmark) -> None:
    shown = pixels(blind_twin(bench, "mean"), "0.png")
    assert shown.shape == (8, 10, 3)
    assert np.abs(shown - np.array([90, 0, 0])).max() <= 1


def test_shuffled_images_are_the_others(bench: Benchmark) -> None:
    twin = blind_twin(bench, "shuffled")
    colours = [int(pixels(twin, f"{n}.png")[0, 0, 0]) for n in range(3)]
    assert sorted(colours) == sorted(RED)
    assert all(colour != RED[n] for n, colour in enumerate(colours))


def test_crop_boxes_still_fit(bench: Benchmark) -> None:
    box = image_reference("2.png", (8, 4, 4, 4))
    items = [
        Item("a", "s", (box,), ("cat", "dog"), choice(1, 1), {}),
        Item("b", "s", ("0.png",), ("cat", "dog"), choice(1, 1), {}),
    ]
    cropped = from_items("cropped", items, images=bench.images)
    for kind in KINDS:
        assert pixels(blind_twin(cropped, kind), box).shape == (4, 4, 3)


def test_scores_differ_and_are_kept_apart(bench: Benchmark, dual_model: Callable[[], Any], tmp_path: Path) -> None:
    model = dual_model()
    seeing = score(bench, model, tasks=["itt"], out=tmp_path / "runs")
    seen = len(model.images_seen)
    blind = score(blind_twin(bench, "noise"), model, tasks=["itt"], out=tmp_path / "runs")
    assert len(model.images_seen) == 2 * seen
    assert not np.allclose(seeing.scores("image_text"), blind.scores("image_text"))
    assert seeing.path != blind.path
    assert blind.document["benchmark"]["provenance"][-1]["args"] == {"kind": "noise", "seed": 0}
    again = score(blind_twin(bench, "noise"), model, tasks=["itt"])
    assert len(model.images_seen) <= 2 * seen + 3, "no more than the probe"
    np.testing.assert_array_equal(again.scores("image_text"), blind.scores("image_text"))


def test_nothing_to_replace_is_said(bench: Benchmark) -> None:
    with pytest.raises(CreperieError, match="no images to replace"):
        blind_twin(from_items("bare", list(bench)), "noise")
    with pytest.raises(CreperieError, match="did you mean 'gaussian'"):
        blind_twin(bench, "gausian")
