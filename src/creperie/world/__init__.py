"""A rendered world of scenes: true captions, certified foils, no download."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from creperie.world.check import check_world
    from creperie.world.make import World, make_world
    from creperie.world.picture import render
    from creperie.world.scene import Scene, Thing, decode
    from creperie.world.stream import WorldExample, pairs
    from creperie.world.truth import Graph, evaluate

_NAMES = {
    "WorldExample": "stream",
    "Graph": "truth",
    "Scene": "scene",
    "Thing": "scene",
    "World": "make",
    "check_world": "check",
    "decode": "scene",
    "evaluate": "truth",
    "make_world": "make",
    "pairs": "stream",
    "render": "picture",
}

__all__ = [
    "Graph",
    "Scene",
    "Thing",
    "World",
    "WorldExample",
    "check_world",
    "decode",
    "evaluate",
    "make_world",
    "pairs",
    "render",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"creperie.world.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'creperie.world' has no attribute {name!r}")
