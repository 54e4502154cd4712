from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

KINDS = ("swap_obj", "negate_there", "replace_obj")


@pytest.fixture(scope="session")
def scenes() -> Any:
    """A small benchmark of the world's training split, with a foil for every caption."""
    from creperie.world import World, make_world

    return make_world(World(items=12, kinds=KINDS, split="train", size=32))


@pytest.fixture(scope="session")
def data(scenes: Any) -> Any:
    from creperie.training import train_set

    return train_set(scenes)


@pytest.fixture
def small(data: Any) -> Any:
    """Makes fresh small models: the same for the same seed."""
    from creperie.training import SmallConfig
    from creperie.training.student import new_small

    config = SmallConfig(size=32, channels=(8, 8, 16), text_width=16, heads=2, joint=16)
    return lambda seed=0: new_small(config, data.captions(), seed)


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from creperie.testing.tiny import tiny_clip

    return tiny_clip(tmp_path_factory.mktemp("clip") / "model")
