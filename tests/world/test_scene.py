"""Scenes and the codes that spell them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import DataError
from creperie.world import Scene, Thing, decode
from creperie.world.kinds import COLOURS, KINDS, MARKINGS, NAMES, SIZES
from creperie.world.scene import ACTIONS, BACKDROPS, MOST

things = st.builds(
    Thing,
    st.sampled_from(NAMES),
    st.sampled_from(COLOURS),
    st.sampled_from(MARKINGS),
    st.sampled_from(list(SIZES)),
    st.integers(0, 255),
    st.integers(0, 255),
    st.sampled_from([1, -1]),
)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    group = draw(st.lists(things, min_size=2, max_size=MOST))
    action = draw(st.sampled_from(["", *(ACTIONS if len(group) > 2 else ACTIONS[:-2])]))
    return Scene(tuple(group), action, draw(st.integers(0, BACKDROPS - 1)))


@given(scenes())
def test_a_code_spells_its_scene_and_no_other(scene: Scene) -> None:
    assert decode(scene.code) == scene
    assert scene.code == scene.code.lower()
    assert len(scene.code) <= 3 + 7 * len(scene.things)


@given(scenes(), scenes())
def test_different_scenes_have_different_codes(a: Scene, b: Scene) -> None:
    assert (a.code == b.code) == (a == b)


@given(st.text(max_size=30) | st.text(alphabet="0123456789abcdefghjkmnpqrstvwxyz", max_size=30))
def test_any_other_text_is_refused_or_is_the_code_of_a_scene(text: str) -> None:
    try:
        scene = decode(text)
    except DataError:
        return
    assert scene.code == text


def test_the_error_names_what_it_could_not_read() -> None:
    with pytest.raises(DataError, match=r"'dog-7' is not the name of a scene; use images of `creperie world make`"):
        decode("dog-7")


def test_kinds_are_a_mix_of_animates_and_things() -> None:
    animates = [k for k in KINDS.values() if k.animate]
    assert len(NAMES) >= 24
    assert len(animates) >= 8
    assert len(NAMES) - len(animates) >= 12


@pytest.mark.parametrize("facing", [1, -1])
def test_spots_mirror_with_the_thing(facing: int) -> None:
    thing = Thing("car", "red", "plain", "medium", 100, 200, facing)
    left, top, right, bottom = thing.box
    assert thing.spot(0, 0) == ((left if facing > 0 else right), top)
    assert right - left == 92
    assert bottom == 200
