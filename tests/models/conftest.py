"""Tiny checkpoints and inputs that the tests of this room share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CAPTIONS = [
    "a dog",
    "the small brown dog chases a white cat across the green lawn near the water",
    "A man rides a horse. ",
    "two children play with a blue ball",
]


@pytest.fixture(scope="session")
def captions() -> list[str]:
    return list(CAPTIONS)


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    """Smooth pictures of several shapes: noise would hide what resizing does."""
    return [picture(seed, size) for seed, size in enumerate([(64, 48), (47, 90), (40, 40), (131, 57)])]


def picture(seed: int, size: tuple[int, int]) -> Image.Image:
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
    return small.resize(size, Image.Resampling.BICUBIC)


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from creperie.testing.tiny import tiny_clip

    return tiny_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="session")
def sentence_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from creperie.testing.tiny import tiny_sentence_encoder

    return tiny_sentence_encoder(tmp_path_factory.mktemp("st"))


class _Made(dict[str, Path]):
    """Checkpoints that are made when they are first asked for."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        super().__init__()
        self.factory = factory

    def __missing__(self, name: str) -> Path:
        from tiny_vlm import FAMILIES

        self[name] = FAMILIES[name](self.factory.mktemp(name))
        return self[name]


@pytest.fixture(scope="session")
def vlm_folders(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Tiny generative checkpoints by family."""
    return _Made(tmp_path_factory)
