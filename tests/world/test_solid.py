"""The world in three dimensions: scenes, physics, truth and captions without a renderer; two pictures with one."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from creperie.core import DataError, UsageError
from creperie.world import ROOM_KINDS, Room, World, check_world, evaluate, make_world
from creperie.world.clean_items import MadeItem, clean_items
from creperie.world.parse import parse
from creperie.world.solid import develop, furnish, space, studio
from creperie.world.solid.arrange import against_wall, backdrops, degrees_of
from creperie.world.solid.furnish import plane
from creperie.world.solid.meshes import joined, turned
from creperie.world.solid.models import DRESSING, SOLIDS, drawn_of, dressing_of, extent, parts_of
from creperie.world.solid.paints import MATERIALS, NATURAL, large_picture, surface
from creperie.world.solid.scene import Solid, read_room
from creperie.world.solid.space import RoomGraph, box_of, fits_in_view, points_of
from creperie.world.truth import Desc

MUG = Solid("mug", "red", "ceramic", state="empty")
BOOK = Solid("book", "blue", state="closed")


def made(kind: str, form: str = "twins") -> list[MadeItem]:
    return list(islice(clean_items(kind, form, "test", 5, rooms=True), 2))


@pytest.mark.parametrize("kind", ROOM_KINDS)
def test_rooms_are_sound_and_their_captions_certified(kind: str) -> None:
    for item in made(kind):
        one, two = item.scenes
        assert isinstance(one, Room)
        assert isinstance(two, Room)
        assert replace(one, things=two.things) == two  # wall, ground, light and camera are the same
        boxes = [box_of(thing) for room in (one, two) for thing in room.things]
        corners = np.array([[x, y, z] for b in boxes for x in b[::3] for y in b[1::3] for z in b[2::3]])
        assert np.ptp(space.project(corners, one)[0], axis=1).max() > 1.4, "small things in an empty picture"
        for scene, row in zip((one, two), item.match, strict=True):
            graph = RoomGraph(scene)
            assert read_room(scene.code) == scene == Room.from_json(scene.to_json())
            assert fits_in_view(graph.seen, scene.things)
            for caption, expected in zip(item.captions, row, strict=True):
                claim = parse(caption)
                assert claim is not None, caption
                assert evaluate(claim, graph) is expected, caption
            for i, a in enumerate(scene.things):
                box = box_of(a)
                if not a.base and "wall" not in SOLIDS[a.kind].place:
                    assert abs(box[2]) < 0.1, "it floats"
                for j, b in enumerate(scene.things[:i]):
                    apart = max(max(box_of(b)[k] - box[k + 3], box[k] - box_of(b)[k + 3]) for k in (0, 1, 2))
                    stacked = (
                        a.base == j + 1
                        or b.base == i + 1
                        or graph.holds("under", (i, j))
                        or graph.holds("under", (j, i))
                        or graph.holds("touching", (i, j))
                        or graph.holds("leaning", (i, j))
                        or graph.holds("leaning", (j, i))
                    )
                    assert apart > 0 or stacked, (a, b)


DENOISES = pytest.mark.skipif(not develop.can_denoise(), reason="mitsuba-oidn is not installed (the extra `render`)")


def at(thing: Solid, x: float, y: float = 0, **more: object) -> Solid:
    return replace(thing, x=int(2 * x), y=int(2 * y), **more)  # type: ignore[arg-type]


BALL, TABLE = Solid("ball", "red"), Solid("table", "", "wood")
UMBRELLA = Solid("umbrella", "red", "cloth", state="closed", turn=-18)
PICTURE = Solid("framed picture", "", "wood", z=200)
BIG = replace(MUG, size="big", colour="blue")


@pytest.mark.parametrize(
    ("things", "relation", "verdict"),
    [
        ((at(MUG, -20), BOOK), "left", True),
        ((at(MUG, -20), BOOK), "right", False),
        ((at(MUG, -20), BOOK), "front", False),
        ((at(MUG, -20, -15), BOOK), "left", None),  # diagonal
        ((at(MUG, 0, -25), BOOK), "front", True),
        ((at(MUG, 0, -50), BOOK), "nearer", True),
        ((at(MUG, 0, -25), BOOK), "behind", False),
        ((at(MUG, -16), BOOK), "near", True),
        ((at(MUG, -80), BOOK), "near", False),
        ((at(MUG, 0, z=7, base=2), BOOK), "on", True),
        ((at(MUG, 0, z=7, base=2), BOOK), "left", False),
        ((at(BALL, 0, z=3, base=2, inside=True), Solid("basket", "", "wicker", state="empty")), "inside", True),
        ((at(BALL, 0), TABLE), "under", True),
        ((at(BALL, 50), TABLE), "under", None),  # half of it
        ((at(PICTURE, 0, 149), at(TABLE, 0, 100)), "above", True),
        ((at(BIG, -20), replace(MUG, size="small")), "bigger", True),
        ((at(BIG, -20), BOOK), "bigger", None),
        ((at(TABLE, -200), BALL), "taller", True),
        ((at(BALL, -11), MUG), "touching", True),
        ((at(BALL, 14), MUG), "touching", True),  # its handle
        ((at(BALL, -13), MUG), "touching", None),  # a gap that could be overlooked
        ((at(BALL, -18), MUG), "touching", False),
        ((at(BALL, 0, -11), MUG), "touching", None),  # the camera does not see the gap
        ((at(UMBRELLA, -73), TABLE), "leaning", True),
        ((at(replace(UMBRELLA, turn=18), 73), TABLE), "leaning", True),
        ((at(replace(UMBRELLA, turn=18), -73), TABLE), "leaning", None),  # the other way
        ((at(UMBRELLA, -75), TABLE), "leaning", None),
        ((at(UMBRELLA, -85), TABLE), "leaning", False),
        ((at(BALL, 0, -38), TABLE), "leaning", None),
        ((TABLE, at(UMBRELLA, -73)), "leaning", None),
        ((at(MUG, -20), MUG), "taller", None),
    ],
)
def test_relations(things: tuple[Solid, ...], relation: str, verdict: bool | None) -> None:
    assert RoomGraph(Room(things, "room")).holds(relation, (0, 1)) is verdict


def test_between_and_descriptions() -> None:
    graph = RoomGraph(Room((MUG, at(BOOK, -25), at(BALL, 25))))
    assert graph.holds("between", (0, 1, 2)) is True
    assert graph.holds("between", (1, 0, 2)) is False
    table = [("red", None), ("blue", False)]
    assert [graph.fits(Desc("table", colour), TABLE) for colour, _ in table] == [verdict for _, verdict in table]
    assert graph.fits(Desc("mug", state="full"), MUG) is False


def test_a_hidden_thing_and_one_that_is_cut_off_are_seen_to_be() -> None:
    box = Solid("box", "green", size="big", state="closed")
    hidden, cut = Room((MUG, at(box, 0, -20)), slope=5, away=200), Room((at(MUG, 60), box), away=100)
    assert RoomGraph(hidden).seen[0].share < 0.3
    assert not fits_in_view([space.Seen(0.7, 900, True)], [MUG])  # two thirds of a thing are not enough
    assert fits_in_view([space.Seen(1.0, 900, True)], [MUG])
    assert not fits_in_view([space.Seen(1.0, 100, True)] * 2, [MUG, BOOK])  # too small in an empty picture
    assert not RoomGraph(cut).seen[0].whole


def test_every_thing_stands_on_the_ground() -> None:
    for kind, model in SOLIDS.items():
        for state in model.states or ("",):
            low, high = extent(kind, state)[2], extent(kind, state)[5]
            assert abs(low) < 1e-6, kind
            assert 1 < high < 200, kind
    (_, cushion), boat = parts_of("cushion", "")[0], dict(parts_of("toy boat", ""))
    edge = np.abs(cushion.points[..., :2]).min(2) > 19.5
    assert cushion.points[edge][:, 2].max() < 4, "its corners are in the air"
    assert np.abs(boat["paper"].points[..., 0] - 0.5).min() < 0.35, "its sail does not touch the mast"


def test_a_folded_umbrella_stands_on_its_tip_and_a_closed_box_has_a_plain_lid() -> None:
    height = {paint: patches.points[..., 2] for paint, patches in parts_of("umbrella", "closed")}
    assert height["steel"].min() == pytest.approx(0, abs=1e-6)
    assert height["bark"].min() > 50
    assert [paint for paint, _ in parts_of("box", "closed")] == ["main"]


def test_large_patches_are_split_for_their_texture() -> None:
    (_, top), *_ = parts_of("table", "")
    small = top.split(2.0)
    areas = [
        np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 3] - p[:, 0]), axis=1).sum() for p in (top.points, small.points)
    ]
    assert np.ptp(small.uv, axis=1).max() <= 2.0 + 1e-9 < np.ptp(top.uv, axis=1).max()
    assert areas[0] == pytest.approx(areas[1], rel=0.05)


def test_a_long_strip_is_not_split_across() -> None:
    """A rail of 1400 × 1 cm was cut into 80 × 80 pieces, so that half of what pictures were made of were such."""
    strip = plane((0, 0, 0), (1400, 0, 0), (0, 0, 1.4))
    assert len(joined([strip, plane((0, 0, 0), (1, 0, 0), (0, 0, 1))]).split(10.0).points) == 36


def test_a_benchmark_of_rooms() -> None:
    world = World(items=1, kinds=("swap_obj", "compare"), forms=("choice", "winoground"), render="3d")
    bench = make_world(world)
    assert bench.subsets == {"swap_obj": 1, "swap_obj_winoground": 1, "compare": 1}
    assert check_world(bench) == []
    assert [item.captions for item in bench] == [item.captions for item in make_world(world)]
    with pytest.raises(UsageError, match="three dimensions"):
        World(kinds=("dative",), render="3d")
    with pytest.raises(DataError, match="three dimensions"):
        read_room("3d-abc")
    with pytest.raises(DataError, match="not the JSON of a scene"):
        Room.from_json('{"things": [{"kind": "cat"}]}')


@pytest.mark.skipif(find_spec("mitsuba") is None, reason="mitsuba is not installed (the extra `render`)")
def test_two_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    room = Room((at(MUG, -8), at(BALL, 8)), aim_z=10, away=120)
    with_red, with_blue = (
        studio.render_room(
            replace(room, things=(room.things[0], replace(BALL, colour=colour, x=16))), 48, samples=4, variant="scalar"
        )
        for colour in ("red", "blue")
    )
    assert with_red.shape == (48, 48, 3)
    differ = np.abs(with_red.astype(int) - with_blue).sum(2) > 150
    assert differ[:, 24:].sum() > 60 > 30 > differ[:, :16].sum()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mitsuba") is None, reason="mitsuba is not installed (the extra `render`)")
def test_a_picture_from_farther_away_is_not_compiled_anew() -> None:
    if studio.find_variant() != "llvm":
        pytest.skip("no LLVM library of version 17 or newer, or a GPU")
    room = Room((at(MUG, -8), at(BALL, 8)), aim_z=10, away=120)
    for away in (120, 140):  # the first picture of a process is compiled with what only it needs
        studio.render_room(replace(room, away=away), 32, samples=1, variant="llvm")
    jit = import_module("drjit")
    with jit.scoped_set_flag(jit.JitFlag.KernelHistory):
        jit.kernel_history_clear()
        candle = Solid("candle", "red", "wax", state="lit", x=40)
        bowl = Solid("bowl", "", "glass", state="empty")
        for things in (room.things, (candle,), (candle, replace(candle, x=-40), MUG), (bowl,), (bowl, candle)):
            studio.render_room(replace(room, things=things, away=150, slope=20), 32, samples=1, variant="llvm")
        made = [kernel for kernel in jit.kernel_history() if kernel["type"] == jit.KernelType.JIT]
    assert made
    assert all(kernel["cache_hit"] for kernel in made)


@pytest.mark.skipif(find_spec("mitsuba") is None, reason="mitsuba is not installed (the extra `render`)")
def test_a_thing_has_a_shadow_on_the_side_away_from_the_sun() -> None:
    """Two readers missed shadows: the sun stood behind the camera, so that things hid them."""
    pictures = [studio.render_room(Room((MUG,), light=k), 64, samples=16).mean(2) + 1 for k in (0, 1)]
    sunnier = np.log(pictures[0] / pictures[1])  # the sun is at the left, then at the right
    assert sunnier[:, :20].mean() - sunnier[:, -20:].mean() > 0.04


@pytest.mark.skipif(find_spec("mitsuba") is None, reason="mitsuba is not installed (the extra `render`)")
def test_a_lit_lamp_shines_on_what_is_near_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers saw no light around lamps: its bulb sent none, and a black shade hid that it was lit."""
    monkeypatch.setattr(studio, "expose", lambda light: light)
    lamp = Solid("lamp", "black", "cloth", state="on")
    lit, dark = (studio.render_room(Room((replace(lamp, state=state),)), 48, samples=8) for state in ("on", "off"))
    more = lit.mean(2) / dark.mean(2)
    assert np.median(more[-6:, 16:32]) > 1.3, "the table before it"
    assert more[:6].max() > 3, "its shade"


def test_things_look_like_what_they_are() -> None:
    """Readers saw milk instead of a label, a boat that balanced on its keel, and balls and boxes without any detail."""
    bottle = {paint: patches.points for paint, patches in drawn_of("bottle", "")}
    assert bottle["paper"][..., 1].max() < 0 < bottle["main"][..., 1].max()
    assert "paper" not in dict(drawn_of("bottle", "", patterned=True))
    cradle = dict(drawn_of("toy boat", ""))["beech"].points
    assert cradle[..., 2].min() == pytest.approx(0, abs=1e-6)
    assert np.ptp(cradle[..., 1]) > 6
    assert len(dict(drawn_of("ball", ""))["main"].points) > len(dict(parts_of("ball", ""))["main"].points)
    assert "paper" in dict(drawn_of("box", "closed"))
    assert not surface("crust", "", "", "").plain
    shade = surface("lit", "red", "cloth", "").shine()[:250, 0, 0]
    assert shade.max() > 5 * shade.min(), "a flat bright patch"
    dyed = [any(look.glass for _, look in studio._parts(Room((Solid("bottle", c),)))) for c in ("green", "white")]
    assert dyed == [True, False], "plastic"
    x, y, z = np.moveaxis(dict(parts_of("basket", "empty"))["main"].points, 2, 0)
    assert ((z > 3) & (z < 9) & (np.hypot(x, y) > 10.5)).sum() > 10000, "a printed pattern"
    words = dict(drawn_of("book", "open"))["ink"].points
    assert len(words) > 200, "ruled bars"
    fruit = dict(dressing_of("bananas"))["banana"].points
    rings = np.linalg.norm(fruit - fruit.mean(1, keepdims=True), axis=2).mean(1)
    assert rings.max() > 1.5 * rings.min(), "their ends are as thick as their middle"


def test_the_handle_of_a_mug_ends_in_its_wall() -> None:
    """A reader saw it inside an empty mug."""
    x, y, z = np.concatenate([patches.points.reshape(-1, 3) for _, patches in drawn_of("mug", "empty")]).T
    assert not ((np.hypot(x, y) < 3.5) & (z > 1.5)).any()


def test_cloth_has_no_long_lines() -> None:
    """Two readers took runners and rugs for boards."""
    cloth = large_picture((180, 90, 80), "woven").mean(2).reshape(32, 16, 32, 16)  # a thread is eight pixels wide
    assert max(np.ptp(cloth.mean((0, 1, 3))), np.ptp(cloth.mean((1, 2, 3)))) < 0.03 * cloth.mean()


def test_meshes_lie_at_addresses_for_which_the_same_code_is_compiled() -> None:
    values = [np.arange(3.0 * n).reshape(n, 3) for n in range(1, 9)]
    rows = [studio._aligned(value) for value in values]
    assert [row.ctypes.data % 64 for row in rows] == [0] * 8
    assert all(np.array_equal(row, value.ravel()) for row, value in zip(rows, values))


def test_the_empty_room_with_which_variants_are_tried_has_surroundings() -> None:
    for ground in range(4):
        assert studio._parts(Room((), ground=2 * ground))


def test_old_libraries_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.delenv(studio._LIBRARY, raising=False)
    monkeypatch.setattr(studio, "_mitsuba_or_error", lambda: None)
    monkeypatch.setattr(studio, "llvm_libraries", lambda: ["libLLVM.so.19.1"])
    monkeypatch.setattr(studio, "_can_render", lambda variant, library="": tried.append(library) or False)
    studio._find.cache_clear()
    assert studio.find_variant() == "scalar"
    with pytest.raises(UsageError, match="cannot render with llvm"):
        studio.find_variant("llvm")
    assert set(tried) <= {"libLLVM.so.19.1", ""}
    studio._find.cache_clear()


@pytest.mark.parametrize("stray", [np.nan, np.inf])
def test_a_ray_that_went_astray_does_not_blacken_the_picture(stray: float) -> None:
    light, guide = np.full((24, 24, 3), 0.5), np.ones((24, 24, 7))
    whole = studio.expose(studio.denoised(light, guide))
    light[3, 4] = guide[3, 4] = stray
    picture = studio.expose(studio.denoised(light, guide))
    assert np.abs(picture[12:, 12:].astype(int) - whole[12:, 12:]).max() <= 1
    assert whole.min() > 100


def test_a_rug_lies_under_all_things_and_has_none_of_their_colours() -> None:
    red = Room((at(MUG, -20), at(replace(BALL, colour="red"), 20)), wall=1, ground=0)
    border, *_ = [(patches, look) for patches, look in furnish.surroundings(red) if look in furnish.rug_looks()]
    low, high = border[0].points.min((0, 1)), border[0].points.max((0, 1))
    boxes = np.array([box_of(thing) for thing in red.things])
    assert (low[:2] < boxes[:, :2].min(0)).all()
    assert (boxes[:, 3:5].max(0) < high[:2]).all()
    assert 0 < high[2] < 0.1
    assert border[1].rgb[0] < border[1].rgb[2]  # not the red one
    bare = furnish.surroundings(replace(red, wall=0))
    assert not {look for _, look in bare} & {*furnish.rug_looks()}


def test_a_table_ends_before_its_things_and_is_not_made_of_floorboards() -> None:
    room = Room((at(MUG, -20), at(BALL, 20)), ground=0, away=220)
    tops = [(p, look) for p, look in furnish.surroundings(room) if look.texture == "large board"]
    wall = next(p for p, look in furnish.surroundings(room) if look.texture == "large leaves")
    ahead, at_wall = wall.normals[0, 0], wall.points[0, 0]
    ahead = -ahead if ahead[1] < 0 else ahead
    far = np.concatenate([(p.points.reshape(-1, 3) - at_wall) @ ahead for p, _ in tops])
    assert far.max() == pytest.approx(0, abs=1e-6), "it ends before the wall, or beyond"
    assert far.min() < min(((points_of(thing) - at_wall) @ ahead).min() for thing in room.things)
    front = (at_wall @ ahead + far.min()) / ahead[1]  # where the edge is straight before the camera
    down = space.project(np.array([[0, front, 0.0]]), room)[0][1, 0]
    assert 0.8 < down < 0.95, "its edge is not in the picture"
    floor = [look.texture for _, look in furnish.surroundings(replace(room, setting="room"))]
    assert "large planks" in floor
    assert "large board" not in floor


def test_walls_are_seen_at_an_angle_unless_things_hang_or_lean_there() -> None:
    """Two readers found rooms frontal, like doll's houses."""
    for number, angle in ((1, 9), (0, 0)):
        room = Room((at(MUG, -20), at(BALL, 20)), wall=0, ground=number, away=400)
        wall = next(p for p, look in furnish.surroundings(room) if look.texture == "large leaves")
        x, y, _ = abs(wall.normals[0, 0])
        assert math.degrees(math.atan2(x, y)) == pytest.approx(angle + 2 * number)
    for things, straight in (((at(MUG, -20), at(BALL, 20)), False), ((at(BALL, -20), PICTURE), True)):
        rooms = [Room((at(BALL, 20),), "room", away=400), Room(things, "room", away=400)]
        assert {(wall + ground) % 2 == 0 for wall, ground in backdrops(rooms)} == {straight}


@pytest.mark.parametrize("kind", ["spatial", "replace_obj", "swap_obj"])
def test_both_rooms_of_a_pair_have_walls_at_one_angle(kind: str) -> None:
    for item in made(kind):
        first, second = (scene for scene in item.scenes if isinstance(scene, Room))
        assert degrees_of(first) == degrees_of(second)
        assert degrees_of(first) == 0 or not any(map(against_wall, first.things + second.things))


def test_what_lies_on_a_table_is_none_of_the_kinds_and_hides_no_thing() -> None:
    """Two readers found tables empty."""
    tops = {name for name, piece in DRESSING.items() if piece["setting"] == "table top"}
    assert tops
    assert not tops & {*SOLIDS}
    room = Room((at(MUG, -20), at(BALL, 20)), ground=0, away=220)
    heights = [(p, p.points[..., 2]) for p, _ in furnish.surroundings(room) if np.ptp(p.points[..., 0]) < 30]
    lying = [p for p, z in heights if z.min() > -0.01 and z.max() < 6]
    assert lying
    for patches in lying:
        x, y = space.project(patches.points.reshape(-1, 3), room)[0]
        for thing in room.things:
            u, v = space.project(points_of(thing), room)[0]
            assert x.max() < u.min() or u.max() < x.min() or y.max() < v.min() or v.max() < y.min()


def test_no_material_is_of_one_flat_colour() -> None:
    """Two readers found plates, boxes, chairs and cushions flat, like plastic or paper."""
    for material in MATERIALS:
        if material not in ("glass", "metal"):
            picture = surface("main", "" if material in NATURAL else "red", material, "").picture()
            assert np.ptp(picture.max(2)) >= 10, material
            assert picture.max(2).std() < 30, material


def test_what_is_behind_the_things_is_blurred_and_their_edges_are_not() -> None:
    """Readers saw frayed edges: a lens's blur needs more samples than a picture has."""
    light, guide = np.full((64, 64, 3), 0.2), np.ones((64, 64, 7))
    light[::2, 32:], guide[:, 32:, 6] = 1, 1.6
    seen = studio.defocus(light, guide, 1.1)
    assert np.array_equal(seen[:, :32], light[:, :32])
    assert np.ptp(seen[16:48, 40:]) < 0.3 * np.ptp(light[16:48, 40:])
    assert seen[16:48, 33:].mean() == pytest.approx(0.6, abs=0.02)  # nothing of what is before it


def test_very_bright_things_glow() -> None:
    light = np.full((64, 64, 3), 0.2)
    dull = studio.expose(light).astype(int)
    light[30:33, 30:33] = 40, 24, 6
    bright = studio.expose(light).astype(int)
    assert (bright[31, 36] - dull[31, 36]).min() > 5
    assert bright[31, 36, 0] > bright[31, 36, 2] + 20  # the glow has the colour of the flame
    assert np.abs(bright[:8, :8] - dull[:8, :8]).max() <= 3


def test_flames_keep_their_hue() -> None:
    light, guide = np.full((24, 24, 3), 0.5), np.full((24, 24, 7), 0.1)
    light[8:16, 8:16] = 170, 90, 16
    red, green, blue = studio.expose(studio.denoised(light, guide))[12, 12].astype(int)
    assert red > green + 15 > blue + 60


def test_dark_pictures_are_exposed_longer_and_white_things_keep_their_shades() -> None:
    dark, middle, bright = (studio.expose(np.full((24, 24, 3), value)).mean() for value in (0.1, 0.5, 1.2))
    assert middle < 2.2 * dark
    assert bright - middle < 45
    light = np.full((24, 24, 3), 0.5)
    light[:8] = np.linspace(1.4, 2.2, 24)[:, None]  # a white thing in the sun
    shades = studio.expose(light)[4, :, 1]
    assert shades.max() < 238
    assert np.ptp(shades) >= 8


@DENOISES
def test_noise_goes_and_edges_and_thin_shadows_stay() -> None:
    light, guide = np.full((96, 96, 3), 0.6), np.full((96, 96, 7), 0.5)
    light[:, 48:] = 0.1
    light[:, 20:24] = 0.35  # a leg's shadow, which readers missed
    noise = np.random.PCG64(3).random_raw(96 * 96).reshape(96, 96, 1) / 2.0**63
    clean = studio.denoised(light * noise, guide)[8:-8, :, 0]
    for side, level in ((clean[:, 30:44], 0.6), (clean[:, 54:90], 0.1)):
        assert side.mean() == pytest.approx(level, rel=0.08)
        assert side.std() < 0.1 * level
    assert np.diff(clean.mean(0)).min() < -0.19
    assert clean[:, 10:16].mean() - clean[:, 20:24].mean() > 0.12


@DENOISES
def test_speckles_go_and_textures_stay() -> None:
    guide = np.full((96, 96, 7), 0.5)
    guide[:, ::4, :3] = guide[:, 1::4, :3] = 0.3  # a fine weave
    light = guide[..., :3].copy()
    light[40, 40] = 900
    clean = studio.denoised(light, guide)
    assert np.abs(clean - guide[..., :3])[4:-4, 4:-4].mean() < 0.01


def test_without_a_denoiser_pictures_are_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(develop, "can_denoise", lambda: False)
    light = np.full((24, 24, 3), 0.5)
    light[3, 4] = np.nan
    light[12, 12] = 900  # a ray that found the sun
    assert studio.denoised(light, np.ones((24, 24, 7))).max() < 2


def test_things_stand_out_from_wall_and_ground() -> None:
    grey = Room((replace(MUG, colour="", material="metal"),), wall=5, ground=5)
    assert {wall for wall, _ in backdrops([grey])} < {0, 1, 2, 3, 4, 6, 7}  # not the pale bricks


def test_things_keep_away_from_the_edge_of_the_picture() -> None:
    box = Solid("box", "green", size="big", state="closed")
    rooms = [Room((box,), aim_z=14, away=away) for away in range(160, 260, 5)]
    edges = [np.abs(space.project(space.points_of(box), room)[0]).max() for room in rooms]
    assert min(edges) < 0.9 < 0.96 < max(edges)
    assert [RoomGraph(room).seen[0].whole for room in rooms] == [edge < 0.93 for edge in edges]


def test_a_window_is_beside_what_hangs_on_the_wall_and_more_than_its_frame_is_seen() -> None:
    chair = Solid("chair", "red")
    room = Room((chair, at(PICTURE, 0, 148)), "room", aim_y=40, aim_z=80, away=900)
    picture = box_of(room.things[1])
    for aim in (-60, 0, 60):
        made, (low, sill, high, top) = furnish._window(replace(room, aim_x=aim))
        assert made
        assert high < picture[0] or low > picture[3]
        shut = sum(
            np.prod(np.ptp(p.points[0], axis=0)[[0, 2]]) for p in furnish._wall(150, 1400, (low, sill, high, top))
        )
        assert shut == pytest.approx(1400 * 600 - (high - low) * (top - sill))
    wide = replace(room, things=(chair, *(at(PICTURE, x, 148) for x in (-140, -70, 0, 70, 140))))
    assert furnish._window(wide)[0] == []


def test_a_folded_umbrella_has_folds_and_a_car_is_round() -> None:
    cloth = dict(parts_of("umbrella", "closed"))["main"].moved(turned("x", 17)).points.reshape(-1, 3)
    ring = cloth[np.abs(cloth[:, 2] - np.median(cloth[:, 2])) < 1]
    assert np.hypot(*(ring[:, :2] - ring[:, :2].mean(0)).T).std() > 0.3
    hull = dict(parts_of("toy boat", ""))["main"]
    sides = np.abs(hull.normals[..., 2]) < 0.5
    assert len(np.unique(hull.normals[sides].round(3), axis=0)) > 40


def test_no_two_clocks_tell_the_same_time_and_no_two_things_have_quite_the_same_tone() -> None:
    clock = Solid("clock", "white")
    parts = studio._parts(Room((clock, at(clock, 30), at(BALL, -30), at(BALL, -60))))
    ink = [patches.points - patches.points.mean((0, 1)) for patches, look in parts if look.rgb == (24, 24, 28)]
    hands = [p for p in ink if len(p) == len(dict(parts_of("clock", ""))["hour"].points)]
    assert len(hands) == 4
    assert np.abs(hands[0] - hands[2]).max() > 0.5
    red = {look.rgb for _, look in parts if look.rgb[0] > 150 and max(look.rgb[1:]) < 60}
    assert len(red) == 2


def test_clear_glass_has_no_colour_of_its_own_and_a_bear_has_fur() -> None:
    bear = Solid("teddy bear", "brown", "fur")
    bare = sum(len(p.points) for paint, p in parts_of("teddy bear", "") if paint == "main")
    (fur, *_), *_ = [(p, look) for p, look in studio._parts(Room((bear,))) if look.texture == "fur"]
    assert len(fur.points) > bare + 5000
    assert max(surface("main", "", "glass", "").rgb) < 40


def test_pictures_show_details_that_decide_nothing() -> None:
    stems = dict(drawn_of("vase", "with flowers"))["stem"].points[..., 2]
    assert stems.min() < 3 < dict(parts_of("vase", "with flowers"))["stem"].points[..., 2].min()
    letters = [dict(drawn_of("block", "", number=k))["letter"].points for k in range(4)]
    assert len({points.shape for points in letters[:3]}) == 3
    assert np.array_equal(letters[0], letters[3])
    assert "letter" not in dict(drawn_of("block", "", patterned=True))
    assert {paint for paint, _ in drawn_of("lamp", "off")} > {paint for paint, _ in parts_of("lamp", "off")}
    for kind, model in SOLIDS.items():
        for state in model.states or ("",):
            drawn = np.concatenate([patches.points.reshape(-1, 3) for _, patches in drawn_of(kind, state)])
            box = np.array([drawn.min(0), drawn.max(0)]).ravel()
            assert np.abs(box - extent(kind, state)).max() < 2, kind


def test_curtains_hang_from_a_rod_above_the_window() -> None:
    room = Room((Solid("chair", "red"),), "room", aim_y=40, aim_z=80, away=900)
    (_, _), (curtain, _), (rod, _), *_ = furnish._window(room)[0]
    top = furnish._window(room)[1][3]
    ends = [part.points[..., 2].max() for part in (curtain, rod)]
    assert top < ends[0] < ends[1] < top + 15


def test_dressing_is_at_the_wall_where_no_thing_hides_it_and_is_nothing_that_captions_name() -> None:
    assert not {*DRESSING} & {*SOLIDS}
    for setting, away in (("table", 300), ("room", 900)):
        room = Room((at(MUG, -8), at(BALL, 8)), setting, away=away)
        made = [(g, p) for g in range(8) for p, _ in furnish._dressing(replace(room, ground=g), (0, 500, 0, 501))]
        shown = [(g, p) for g, p in made if p.points[..., 1].max() > 45 or setting == "room"]
        assert (len(shown) < len(made)) is (setting == "table"), "nothing lies on the table, or something on the floor"
        assert {g for g, _ in shown}
        spots = space.project(np.concatenate([p.points.reshape(-1, 3) for _, p in shown]), room)[0]
        deepest = max(piece["deep"] for piece in DRESSING.values() if piece["setting"] == setting)
        assert all(p.points[..., 1].min() >= space.WALL[setting] - deepest for _, p in shown)
        for thing in room.things:
            places = space.project(space.points_of(thing), room)[0]
            assert (
                spots[1].max() < places[1].min()
                or not (np.abs(spots[0] - places[0].mean()) < np.ptp(places[0]) / 4).any()
            )
        behind = replace(room, things=tuple(at(MUG, x, 70) for x in range(-80, 81, 8)))
        made = furnish._dressing(replace(behind, setting="table", away=300), (0, 500, 0, 501))
        assert all(p.points[..., 1].max() < 45 for p, _ in made)


def test_patterns_on_flat_parts_and_cushions_are_not_stretched() -> None:
    for kind in ("hat", "cushion"):
        main = dict(parts_of(kind, ""))["main"]
        flat = np.abs(main.normals[..., 2]).min(1) > 0.3 if kind == "cushion" else np.ones(len(main.points), bool)
        sides = np.linalg.norm(np.diff(main.points[flat], axis=1), axis=2).ravel()
        drawn = 4 * np.linalg.norm(np.diff(main.uv[flat], axis=1), axis=2).ravel()
        ratio = (drawn / np.maximum(sides, 1e-9))[sides > 0.3]
        assert 0.5 < np.percentile(ratio, 5) <= np.percentile(ratio, 95) < 1.7, kind
