"""Layouts show what they were asked to show."""

from __future__ import annotations

import pytest

from creperie.world import Dice, Graph, Scene, key_of, render
from creperie.world.dice import Tape
from creperie.world.drawn import DRAWINGS
from creperie.world.layout import PLACERS, SceneDraft, lay_out
from creperie.world.picture import strokes_of, unsupported
from creperie.world.places import GROUND, LIFTING
from creperie.world.sample import Sampler
from creperie.world.scene import ACTIONS
from creperie.world.sprites import FIXED

WOOD = FIXED["wood"][:3]


def layouts(relation: str, count: int) -> list[tuple[SceneDraft, Scene]]:
    dice = Dice(3, key_of(relation))
    found: list[tuple[SceneDraft, Scene]] = []
    while len(found) < count:
        slots = Sampler(DRAWINGS, dice, seen=False).slots(relation, "drawn")
        draft = SceneDraft(tuple(look for look, _ in slots or ()), relation)
        scene = lay_out(draft, dice.tape()) if slots else None
        if scene:
            found.append((draft, scene))
    return found


def test_every_relation_has_roles_and_a_layout() -> None:
    assert set(PLACERS) == set(DRAWINGS.roles["drawn"])


@pytest.mark.parametrize("relation", [relation for relation in PLACERS if relation != "crowd"])
def test_the_relation_is_there_and_everything_is_in_the_picture(relation: str) -> None:
    shown = 0
    for draft, scene in layouts(relation, 75):
        verdict = Graph(scene).holds(relation, tuple(range(draft.arity)))
        shown += verdict is True
        assert verdict is not False
        assert [t.kind for t in scene.things] == [look.kind for look in draft.looks]
        for thing in scene.things:
            left, top, right, bottom = thing.box
            assert min(left, top, 255 - right, 255 - bottom) >= 0
    assert shown >= 60  # the rest is borderline, and certification drops it


@pytest.mark.parametrize("action", ACTIONS)
def test_arms_are_not_cut(action: str) -> None:
    for _, scene in layouts(action, 60):
        for strokes in (*strokes_of(scene)[0], *strokes_of(scene)[1]):
            for _, width, points, outlined in strokes:
                if outlined:  # arms and ropes
                    reach = width // 2
                    assert all(reach <= p <= 255 - reach for p in points), scene


@pytest.mark.slow
def test_things_rest_on_something() -> None:
    """What is above the ground floats, is on, in or in the hands of another, or has a stand drawn below it."""
    for shown in ("above", "below", "left", "inside", "on", "carries", "holds", "throws"):
        for _, scene in layouts(shown, 15):
            graph, picture = Graph(scene), render(scene, 256)
            for k, thing in enumerate(scene.things):
                held = k == 1 and scene.action in LIFTING
                if thing.y >= GROUND or thing.kind in ("bird", "balloon", "star") or held:
                    continue
                others = [j for j in range(len(scene.things)) if j != k]
                resting = any(graph.holds(relation, (k, j)) for j in others for relation in ("on", "inside"))
                board = picture[min(thing.y + 4, 255), thing.x]
                assert resting or (thing in unsupported(scene) and (board == WOOD).all()), (scene, thing)


@pytest.mark.parametrize("relation", ["left", "pushes", "hands", "front"])
def test_one_tape_one_layout(relation: str) -> None:
    draft, _ = layouts(relation, 1)[0]
    tape = Dice(9).tape()
    assert lay_out(draft, tape.replay()) == lay_out(draft, tape.replay())


def test_a_tape_that_ends_gives_no_scene() -> None:
    draft, _ = layouts("left", 1)[0]
    assert lay_out(draft, Tape([1, 2])) is None
