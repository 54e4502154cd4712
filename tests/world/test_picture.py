"""Pictures: the same everywhere, and everything in them can be seen."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import creperie.world
from creperie.core import UsageError
from creperie.world import CLEAN, Dice, Scene, Thing, find_twins, key_of, render
from creperie.world.kinds import COLOURS, NAMES, SIZES
from creperie.world.picture import painting_order
from creperie.world.scene import ACTIONS
from creperie.world.sprites import WORDS, sprite


def some_scenes(count: int) -> list[Scene]:
    dice = Dice(5, key_of("pictures"))
    kinds = list(CLEAN)
    return [find_twins(kinds[k % len(kinds)], dice, "train").scenes[0] for k in range(count)]


CAST = Scene(
    (
        Thing("robot", "blue", "striped", "medium", 52, 220, 1),
        Thing("apple", "red", "plain", "small", 124, 194, 1),
        Thing("elephant", "yellow", "spotted", "medium", 202, 222, -1),
    ),
    "hands",
    11,
)


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        (64, "977a273983e816356e173cc4dc8d8856aa99e7910202a1d4d375b7d5621064f1"),
        (224, "4065510c062f4b48e84fd32737a0089f46e26ab585c4a2d200500b0bd5e248e5"),
    ],
)
def test_the_same_pixels_on_every_machine(size: int, digest: str) -> None:
    """All drawings. The digests are from the first run: a changed drawing moves them, nothing else may."""
    whole = hashlib.sha256(render(CAST, size).tobytes())
    for action in ACTIONS:
        whole.update(render(replace(CAST, action=action), size).tobytes())
    for k, kind in enumerate(NAMES):
        for j, extent in enumerate(SIZES):
            if size > 64 and j != k % len(SIZES):
                continue
            pattern = ("plain", "striped", "spotted")[(k + j) % 3]
            thing = Thing(kind, COLOURS[(k + j) % 10], pattern, extent, 80 + 3 * k, 226, 1 if (k + j) % 2 else -1)
            whole.update(render(Scene((thing, replace(CAST.things[1], x=30)), None, k), size).tobytes())
    assert whole.hexdigest() == digest


@pytest.mark.parametrize("module", ["raster", "sprites", "picture", "layout", "places", "dice", "splits"])
def test_drawing_and_chance_use_whole_numbers_only(module: str) -> None:
    """No float literal, no true division, no float function: what could round differently elsewhere is not there."""
    tree = ast.parse((Path(creperie.world.__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), node.lineno
        assert not isinstance(node, ast.Div)
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            assert name not in {"float", "float32", "float64", "sqrt", "sin", "cos", "hypot", "linspace", "mean"}, name


def test_pictures_are_uint8_rgb_of_the_size_asked_for() -> None:
    for size in (32, 64, 96, 224):
        picture = render(CAST, size)
        assert picture.shape == (size, size, 3)
        assert picture.dtype == np.uint8
    with pytest.raises(UsageError, match="32 to 1024 pixels"):
        render(CAST, 16)


def test_edges_have_no_steps_at_the_usual_size() -> None:
    assert len(np.unique(sprite("ball", "red", "plain", 80, 224, False).through)) > 12  # 3 × 3 samples give 10 levels


def test_small_and_large_pictures_show_the_same() -> None:
    scenes = [replace(scene, backdrop=0) for scene in some_scenes(12)]
    shrunk = [render(scene, 256).astype(float).reshape(64, 4, 64, 4, 3).mean(axis=(1, 3)) for scene in scenes]
    small = [render(scene, 64).astype(float) for scene in scenes]
    for k in range(len(scenes)):
        gaps = [np.abs(shrunk[k] - other).mean() for other in small]
        assert gaps[k] == min(gaps)
        assert gaps[k] < 0.6 * sorted(gaps)[1]  # places are rounded to pixels, so outlines differ a little


def test_no_thing_is_hidden() -> None:
    """Painting a thing in another colour changes most of its own pixels: it is there to be seen."""
    for scene in some_scenes(60):
        whole = render(replace(scene, action=""), 64)
        for k, thing in enumerate(scene.things):
            bare = replace(scene, things=tuple(t for i, t in enumerate(scene.things) if i != k), action="")
            without = render(bare, 64) if len(bare.things) else None
            assert without is not None
            changed = (whole != without).any(axis=2).sum()
            opaque = (
                sprite(thing.kind, thing.colour, thing.pattern, SIZES[thing.size] // 4, 64, False).through < 128
            ).sum()
            assert changed > 0.4 * opaque, (scene, thing)


def test_words_on_signs_can_be_told_apart_and_are_never_mirrored() -> None:
    boards = [sprite("sign", "red", word, 92, 256, False).rgb.astype(int) for word in WORDS]
    for k, board in enumerate(boards):
        assert (board == sprite("sign", "red", WORDS[k], 92, 256, True).rgb).all()
        assert all((np.abs(board - other).max(axis=2) > 100).sum() > 150 for i, other in enumerate(boards) if i != k)


def test_events_leave_marks_in_the_picture() -> None:
    for scene in some_scenes(200):
        if scene.action:
            difference = render(scene, 64) != render(replace(scene, action=""), 64)
            assert difference.any(axis=2).sum() >= 12


def test_what_is_nearer_is_painted_later() -> None:
    cat, box = Thing("cat", "red", "plain", "medium", 110, 230), Thing("cup", "blue", "plain", "medium", 145, 208)
    assert [t.kind for t, _ in painting_order(Scene((cat, box)))] == ["cup", "cat"]
    inside = Thing("cat", "red", "plain", "small", 128, 200, 1), Thing("cage", "blue", "plain", "big", 128, 230)
    assert [(t.kind, front) for t, front in painting_order(Scene(inside))] == [
        ("cage", False),
        ("cat", False),
        ("cage", True),
    ]


@pytest.mark.parametrize("first", COLOURS)
def test_colours_can_be_told_apart(first: str) -> None:
    """The mean colour of a ball is nearer to its own name's than to any other's, by a clear distance."""
    means = {}
    for colour in COLOURS:
        ball = sprite("ball", colour, "plain", 23, 64, False)
        solid = ball.through[:, :, 0] == 0
        means[colour] = ball.rgb[solid].mean(axis=0)
    others = [np.linalg.norm(means[first] - means[c]) for c in COLOURS if c != first]
    assert min(others) > 40
