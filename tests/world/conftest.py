"""What the tests of the world share: a second opinion on scenes, written without looking at the first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from creperie.world import Scene, Thing
from creperie.world.truth import Desc, LogicalForm

ANIMATES = {"cat", "dog", "rabbit", "bear", "robot", "elephant", "bird", "fish", "turtle"}
Box = tuple[int, int, int, int]


def _gap(a: Box, b: Box) -> float:
    dx = max(b[0] - a[2], a[0] - b[2], 0)
    dy = max(b[1] - a[3], a[1] - b[3], 0)
    return float((dx * dx + dy * dy) ** 0.5)


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _touch(scene: Scene, i: int, j: int) -> bool:
    """Carried, held or handed: the two belong together, other words do not apply."""
    return scene.action in ("carries", "holds", "hands", "throws") and {i, j} == {0, 1}


def _within(a: Box, b: Box) -> bool:
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def _on(a: Thing, b: Thing) -> bool:
    x, y = a.box, b.box
    high = y[3] - y[1]
    return b.kind in ("elephant", "turtle", "box", "car", "table", "hat") and (
        y[1] <= a.y <= y[1] + high // 4 and y[0] < a.x < y[2] and x[3] < y[3] - high // 2
    )


def plain_truth(scene: Scene, relation: str, args: tuple[int, ...]) -> bool:
    """Two-valued truth from boxes and events alone, without margins: closed world, no doubts."""
    things = scene.things
    if relation in ("pushes", "pulls", "carries", "holds", "follows", "hands", "throws"):
        return scene.action == relation and args == (0, 1, 2)[: len(args)]
    if relation == "depth":
        return all(plain_truth(scene, "front", args[k : k + 2]) for k in (0, 1))
    i, j = args
    a, b = things[i], things[j]
    x, y = a.box, b.box
    if relation == "near":
        return _gap(x, y) < 30 and not _overlap(x, y)
    if relation == "far":
        return _gap(x, y) > 80
    if relation == "faces":
        towards = b.x > a.x if a.facing > 0 else b.x < a.x
        return a.kind in ANIMATES and towards and x[1] < y[3] and y[1] < x[3]
    if _touch(scene, i, j):
        return False
    if relation == "on":
        return _on(a, b)
    if relation == "inside":
        return _within(x, y)
    if relation in ("front", "behind"):
        apart = not _overlap(x, y) or _within(x, y) or _within(y, x) or _on(a, b) or _on(b, a)
        return not apart and (a.y > b.y if relation == "front" else a.y < b.y)
    level = min(x[3], y[3]) - max(x[1], y[1])
    upright = min(x[2], y[2]) - max(x[0], y[0])
    if relation in ("left", "right"):
        return level > 0 and (x[2] <= y[0] if relation == "left" else y[2] <= x[0])
    return upright > 0 and (x[3] <= y[1] if relation == "above" else y[3] <= x[1])


def _describes(desc: Desc, thing: Thing) -> bool:
    said = (desc.colour, desc.pattern, desc.size)
    shown = (thing.colour, thing.pattern, thing.size)
    return desc.kind == thing.kind and all(s is None or s == t for s, t in zip(said, shown, strict=True))


def plain_verdict(form: LogicalForm, scene: Scene) -> bool:
    """Is the claim true, read naively?"""
    found = any(
        all(_describes(desc, scene.things[k]) for desc, k in zip(form.things, chosen, strict=True))
        and all(
            plain_truth(scene, fact.relation, tuple(chosen[k] for k in fact.args)) != fact.negated
            for fact in form.facts
        )
        for chosen in permutations(range(len(scene.things)), len(form.things))
    )
    clear = not any(_describes(desc, thing) for desc in form.absent for thing in scene.things)
    counted = all(sum(_describes(desc, thing) for thing in scene.things) == n for desc, n in form.counts)
    return (found and clear and counted) != form.denied


@pytest.fixture(scope="session")
def second_opinion() -> Callable[[LogicalForm, Scene], bool]:
    return plain_verdict
