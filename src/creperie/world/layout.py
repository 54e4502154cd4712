"""Layout: giving positions to the things of a draft, which turns the draft into a drawn scene.

Two drafts laid out with the same tape of random numbers differ only in what the drafts ask for, so the scenes of a
caption and its foil are as similar as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from creperie.world.dice import Tape, UnfitError
from creperie.world.kinds import CANVAS, MEASURES
from creperie.world.scene import BACKDROPS, GIVING, Scene, Thing, area_of

#: lays out a draft, or raises an UnfitError
Placer = Callable[["SceneDraft", Tape], Scene]
EDGE = 5
ROOM = CANVAS - 2 * EDGE
CLEARANCE = 9  #: between a bystander and anything else


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of a thing. If its size is None, the layout chooses one."""

    kind: str
    colour: str
    pattern: str = "plain"
    size: str | None = None


@dataclass(frozen=True, slots=True)
class SceneDraft:
    """A scene without positions. The first looks belong to the things in the relation, in the order of its arguments;
    the others are bystanders.
    """

    looks: tuple[Look, ...]
    relation: str

    @property
    def arity(self) -> int:
        """The number of things that take part in the relation; 0 for `crowd`, which is no relation between things."""
        return {"crowd": 0, "depth": 3}.get(self.relation, 3 if self.relation in GIVING else 2)


def lay_out(draft: SceneDraft, tape: Tape) -> Scene | None:
    """Return a scene laid out with the random numbers of the tape; None if they do not lead to a valid scene."""
    try:
        scene = PLACERS[draft.relation](draft, tape)
        for look in draft.looks[draft.arity :]:
            scene = _add_bystander(scene, look, draft.arity, tape)
        if not all(_in_picture(thing) for thing in scene.things):
            return None
        return replace(scene, backdrop=tape.roll(BACKDROPS))
    except UnfitError:
        return None


def _in_picture(thing: Thing) -> bool:
    """Return whether the whole thing is in the image, with a margin so that `splits.settle` can still move the scene a
    little.
    """
    left, top, right, bottom = thing.box
    return min(left, top, CANVAS - 1 - right, CANVAS - 1 - bottom) >= 4


def _thing(look: Look, size: str, x: int, y: int, facing: int) -> Thing:
    return Thing(look.kind, look.colour, look.pattern if size != "small" else "plain", look.size or size, x, y, facing)


def _wide(look: Look, size: str) -> int:
    return MEASURES[look.kind, look.size or size][0]


def _high(look: Look, size: str) -> int:
    return MEASURES[look.kind, look.size or size][1]


def _facing(tape: Tape) -> int:
    return 1 if tape.coin() else -1


def _row(looks: Sequence[Look], sizes: Sequence[str], gaps: Sequence[int], tape: Tape, margin: int = 0) -> list[int]:
    """Return the x positions of things side by side, from left to right, at a random place in the image."""
    widths = [_wide(look, size) for look, size in zip(looks, sizes, strict=True)]
    spare = ROOM - sum(widths) - sum(gaps) - 2 * margin
    if spare < 0:
        raise UnfitError
    at = EDGE + margin + tape.roll(spare + 1)
    middles = []
    for width, gap in zip(widths, (*gaps, 0), strict=True):
        middles.append(at + width // 2)
        at += width + gap
    return middles


def _ground(tape: Tape) -> int:
    return 206 + 4 * tape.roll(9)


def _beside(gap_low: int, gap_high: int, first_left: bool | None) -> Placer:
    def place(draft: SceneDraft, tape: Tape) -> Scene:
        a, b = draft.looks[:2]
        usual = "small" if gap_low >= 90 else "medium"  # only small things fit with so wide a gap
        sizes = (a.size or usual, b.size or usual)
        left = tape.coin() if first_left is None else first_left
        spare = ROOM - _wide(a, sizes[0]) - _wide(b, sizes[1])
        gap = tape.between(gap_low, max(gap_low, min(gap_high, spare)))
        pair, order = ((a, b), sizes) if left else ((b, a), sizes[::-1])
        row = _row(pair, order, [gap], tape)
        y, faces = _ground(tape), (_facing(tape), _facing(tape))
        x = row if left else row[::-1]
        lift = 0 if gap_low < 90 else tape.between(0, 5)
        return Scene((_thing(a, sizes[0], x[0], y, faces[0]), _thing(b, sizes[1], x[1], y - lift, faces[1])))

    return place


def _stacked(first_above: bool) -> Placer:
    def place(draft: SceneDraft, tape: Tape) -> Scene:
        upper, lower = draft.looks[:2] if first_above else draft.looks[1::-1]
        size_u, size_l = upper.size or "medium", lower.size or "medium"
        spare = ROOM - _high(upper, size_u) - _high(lower, size_l) - 14
        if spare < 0:
            raise UnfitError
        y = CANVAS - EDGE - tape.roll(min(spare, 30) + 1)
        top = y - _high(lower, size_l) - tape.between(14, 14 + max(0, min(34, spare - (CANVAS - EDGE - y))))
        if top > 168:  # it would seem to stand on the ground, further away
            raise UnfitError
        half = max(_wide(upper, size_u), _wide(lower, size_l)) // 2
        x = tape.between(EDGE + half + 6, CANVAS - EDGE - half - 6)
        things = (
            _thing(upper, size_u, x + tape.between(-6, 6), top, _facing(tape)),
            _thing(lower, size_l, x, y, _facing(tape)),
        )
        return Scene(things if first_above else things[::-1])

    return place


def _inside(draft: SceneDraft, tape: Tape) -> Scene:
    content, container = draft.looks[:2]
    half = _wide(container, "big") // 2
    outer = _thing(container, "big", tape.between(EDGE + half, CANVAS - EDGE - half), _ground(tape) + 8, 1)
    room = area_of(outer, "interior")
    assert room is not None
    slack = (room[2] - room[0] - _wide(content, "small")) // 2
    shift = 4 if container.kind == "tent" else max(0, min(8, slack))
    x = (room[0] + room[2]) // 2 + tape.between(-shift, shift)
    return Scene((_thing(content, "small", x, room[3] - 3, _facing(tape)), outer))


def _on(draft: SceneDraft, tape: Tape) -> Scene:
    upper, lower = draft.looks[:2]
    half = max(_wide(lower, "medium"), _wide(upper, "medium")) // 2
    support = _thing(lower, "medium", tape.between(EDGE + half, CANVAS - EDGE - half), _ground(tape), _facing(tape))
    surface = area_of(support, "surface")
    if surface is None:
        raise UnfitError
    x = tape.between(surface[0], surface[2])
    return Scene((_thing(upper, "medium", x, surface[1], _facing(tape)), support))


def _acting(action: str, gap_low: int, gap_high: int) -> Placer:
    """Return a function that lays out two things: the agent of an action and, beside it, the patient (the thing acted
    on), at a distance between `gap_low` and `gap_high`. The agent faces the patient or, if it pulls the patient,
    faces away from it.
    """

    def place(draft: SceneDraft, tape: Tape) -> Scene:
        agent, patient = draft.looks[:2]
        sizes = (agent.size or "medium", "small" if action == "holds" else patient.size or "medium")
        agent_left = tape.coin()
        gap = tape.between(gap_low, gap_high)
        pair, order = ((agent, patient), sizes) if agent_left else ((patient, agent), sizes[::-1])
        row = _row(pair, order, [gap], tape, margin=0 if action in ("holds", "faces") else 14)
        y, towards = _ground(tape), 1 if agent_left else -1
        x = row if agent_left else row[::-1]
        ahead = -towards if action == "pulls" else towards
        agent_thing = _thing(agent, sizes[0], x[0], y, ahead)
        lift = MEASURES[agent.kind, sizes[0]][1] * 24 // 100 if action == "holds" else 0
        things = (agent_thing, _thing(patient, sizes[1], x[1], y - lift, ahead))
        return Scene(things, "" if action == "faces" else action)

    return place


def _carrying(draft: SceneDraft, tape: Tape) -> Scene:
    agent, load = draft.looks[:2]
    half = max(_wide(agent, "medium"), _wide(load, "small")) // 2 + 12  # the arms extend on both sides
    x, y, facing = tape.between(EDGE + half, CANVAS - EDGE - half), _ground(tape) + 4, _facing(tape)
    carrier = _thing(agent, "medium", x, y, facing)
    top = carrier.box[1] - 7
    return Scene((carrier, _thing(load, "small", x, top, _facing(tape))), "carries")


def _giving(draft: SceneDraft, tape: Tape) -> Scene:
    """Return a scene with a gift between its giver and its taker: in the giver's hand or, if thrown,
    above their heads.
    """
    agent, gift, taker = draft.looks[:3]
    sizes = ("medium", "small", "medium")
    agent_left = tape.coin()
    gaps = (10, 12) if agent_left else (12, 10)
    row = _row((agent, gift, taker) if agent_left else (taker, gift, agent), sizes, gaps, tape)
    y, towards = _ground(tape), 1 if agent_left else -1
    side = _facing(tape)
    x = row if agent_left else row[::-1]
    things = (
        _thing(agent, "medium", x[0], y, towards),
        _thing(gift, "small", x[1], y - (26 if draft.relation == "hands" else 84), side),
        _thing(taker, "medium", x[2], y, -towards),
    )
    return Scene(things, draft.relation)


def _in_depth(front_first: bool) -> Placer:
    """Return a function that lays out things one behind another, so that each partly hides the next. With
    `front_first`, the first thing is the nearest; otherwise it is the farthest.
    """

    def place(draft: SceneDraft, tape: Tape) -> Scene:
        looks = draft.looks[: draft.arity] if front_first else draft.looks[draft.arity - 1 :: -1]
        side, x, y = _facing(tape), 0, 226 + tape.roll(18)
        things: list[Thing] = []
        for look in looks:
            size = look.size or "medium"
            if things:
                widths = _wide(look, size), MEASURES[things[-1].kind, things[-1].size][0]
                x += side * (sum(widths) // 2 - min(widths) * tape.between(42, 54) // 100)
                y -= max(16, MEASURES[things[-1].kind, things[-1].size][1] * 26 // 100)
            things.append(_thing(look, size, x, y, _facing(tape)))
        left, _, right, _ = _hull([thing.box for thing in things])
        if right - left > ROOM:
            raise UnfitError
        shift = EDGE - left + tape.roll(ROOM - right + left + 1)
        placed = tuple(replace(thing, x=thing.x + shift) for thing in things)
        return Scene(placed if front_first else placed[::-1])

    return place


PLACERS: dict[str, Placer] = {
    "left": _beside(14, 80, True),
    "right": _beside(14, 80, False),
    "near": _beside(8, 14, None),
    "far": _beside(94, 140, None),
    "above": _stacked(True),
    "below": _stacked(False),
    "inside": _inside,
    "on": _on,
    "front": _in_depth(True),
    "behind": _in_depth(False),
    "pushes": _acting("pushes", 22, 30),
    "pulls": _acting("pulls", 32, 50),
    "holds": _acting("holds", 8, 8),
    "follows": _acting("follows", 22, 34),
    "faces": _acting("faces", 20, 56),
    "carries": _carrying,
    **dict.fromkeys(GIVING, _giving),
    "depth": _in_depth(True),
    "crowd": lambda draft, tape: Scene(()),
}


def _add_bystander(scene: Scene, look: Look, arity: int, tape: Tape) -> Scene:
    """Return the scene with one more thing in a free place: on the ground, on a stand or in the air."""
    boxes = [thing.box for thing in scene.things]
    if scene.action or arity == 3:
        left, top, right, bottom = _hull(boxes[:arity])
        boxes[:arity] = [(left - 10, top - 6, right + 10, bottom)]  # room for arms and arrows
    for attempt in range(16):
        size = look.size or ("medium" if attempt < 4 and arity else "small")
        wide, high = MEASURES[look.kind, size]
        x = tape.between(EDGE + wide // 2 + 1, CANVAS - EDGE - wide // 2 - 1)
        y = EDGE + high + tape.roll(max(1, 146 - EDGE - high)) if attempt % 2 else _ground(tape)
        box = (x - wide // 2, y - high, x + wide // 2, y)
        if all(_clear(box, other) for other in boxes):
            return replace(scene, things=(*scene.things, _thing(look, size, x, y, _facing(tape))))
    raise UnfitError


def _hull(boxes: Sequence[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _clear(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    return max(b[0] - a[2], a[0] - b[2], b[1] - a[3], a[1] - b[3]) >= CLEARANCE
