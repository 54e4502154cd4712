"""Layouts show what they were asked to show."""

from __future__ import annotations

import pytest

from creperie.world.dice import Dice, Tape, key_of
from creperie.world.layout import PLACERS, SceneDraft, lay_out
from creperie.world.sample import ROLES, Sampler
from creperie.world.scene import Scene
from creperie.world.truth import Graph


def layouts(relation: str, count: int) -> list[tuple[SceneDraft, Scene]]:
    dice = Dice(3, key_of(relation))
    found: list[tuple[SceneDraft, Scene]] = []
    while len(found) < count:
        draft = Sampler(dice, seen=False).draft(relation)
        scene = lay_out(draft, dice.tape()) if draft else None
        if draft and scene:
            found.append((draft, scene))
    return found


def test_every_relation_has_roles_and_a_layout() -> None:
    assert set(PLACERS) == set(ROLES)


@pytest.mark.parametrize("relation", PLACERS)
def test_the_relation_is_there_and_everything_is_in_the_picture(relation: str) -> None:
    shown = 0
    for draft, scene in layouts(relation, 150):
        verdict = Graph(scene).holds(relation, tuple(range(draft.arity)))
        shown += verdict is True
        assert verdict is not False
        assert [t.kind for t in scene.things] == [look.kind for look in draft.looks]
        for thing in scene.things:
            left, top, right, bottom = thing.box
            assert min(left, top, 255 - right, 255 - bottom) >= 0
    assert shown >= 120  # the rest is borderline, and certification drops it


@pytest.mark.parametrize("relation", ["left", "pushes", "hands", "front"])
def test_one_tape_one_layout(relation: str) -> None:
    draft, _ = layouts(relation, 1)[0]
    tape = Dice(9).tape()
    assert lay_out(draft, tape.replay()) == lay_out(draft, tape.replay())


def test_a_tape_that_ends_gives_no_scene() -> None:
    draft, _ = layouts("left", 1)[0]
    assert lay_out(draft, Tape([1, 2])) is None
