"""Relations decided by hand for scenes laid out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from creperie.world import Graph, Scene, Thing, evaluate
from creperie.world.truth import Desc, Fact, LogicalForm


def thing(kind: str, x: int, y: int, facing: int = 1, size: str = "medium", colour: str = "red") -> Thing:
    return Thing(kind, colour, "plain", size, x, y, facing)


CAT_LEFT = Scene((thing("cat", 60, 220), thing("ball", 180, 220)))
CAT_ABOVE = Scene((thing("cat", 120, 110), thing("ball", 124, 240)))
ASKEW = Scene((thing("cat", 60, 110), thing("ball", 200, 240)))
BESIDE = Scene((thing("ball", 60, 220), thing("cup", 150, 220)))
APART = Scene((thing("ball", 40, 220, size="small"), thing("cup", 215, 220, size="small")))
IN_FRONT = Scene((thing("ball", 110, 230), thing("cup", 145, 208)))
IN_BOX = Scene((thing("cat", 126, 210, size="small"), thing("box", 128, 232, size="big")))
ON_TABLE = Scene((thing("cat", 128, 156), thing("table", 128, 220)))
LOOKING = Scene((thing("cat", 60, 220, 1), thing("dog", 180, 220, 1)))
PUSH = Scene((thing("cat", 60, 220, 1), thing("dog", 175, 220, 1)), "pushes")
PULL = Scene((thing("cat", 60, 220, -1), thing("dog", 190, 220, -1)), "pulls")
CARRY = Scene((thing("bear", 120, 230), thing("cat", 120, 131, size="small")), "carries")
FOLLOW = Scene((thing("cat", 60, 220, 1), thing("dog", 180, 220, 1)), "follows")
GIVE = Scene(
    (thing("cat", 50, 220, 1), thing("cup", 128, 194, size="small"), thing("dog", 210, 220, -1)),
    "hands",
)

THROW = replace(GIVE, action="throws")
OVERHEAD = Scene((thing("ball", 120, 150), thing("cup", 124, 240)))
ROW = Scene((thing("ball", 110, 238), thing("cup", 145, 216), thing("box", 180, 192)))
BACK_ROW = Scene((thing("cup", 100, 178, size="small"), thing("ball", 100, 250, size="small")))

TABLE = [
    (OVERHEAD, "above", (0, 1), True),
    (OVERHEAD, "near", (0, 1), None),  # "next to" is not overhead
    (ROW, "depth", (0, 1, 2), True),
    (ROW, "depth", (2, 1, 0), False),
    (ROW, "depth", (1, 0, 2), False),
    (BACK_ROW, "above", (0, 1), None),  # further away on the ground
    (THROW, "throws", (0, 1, 2), True),
    (THROW, "hands", (0, 1, 2), None),  # what is thrown is also passed
    (THROW, "hands", (2, 1, 0), False),
    (GIVE, "throws", (2, 1, 0), False),
    (CAT_LEFT, "left", (0, 1), True),
    (CAT_LEFT, "right", (1, 0), True),
    (CAT_LEFT, "right", (0, 1), False),
    (CAT_LEFT, "above", (0, 1), False),
    (CAT_LEFT, "inside", (0, 1), False),
    (CAT_LEFT, "front", (0, 1), None),  # a cat has a front of its own
    (BESIDE, "front", (0, 1), False),
    (BESIDE, "near", (0, 1), True),
    (BESIDE, "far", (1, 0), False),
    (APART, "far", (0, 1), True),
    (APART, "near", (0, 1), False),
    (CAT_ABOVE, "above", (0, 1), True),
    (CAT_ABOVE, "below", (1, 0), True),
    (CAT_ABOVE, "left", (0, 1), False),
    (CAT_ABOVE, "on", (0, 1), False),
    (ASKEW, "left", (0, 1), None),
    (ASKEW, "above", (0, 1), None),
    (ASKEW, "right", (0, 1), False),
    (ASKEW, "below", (0, 1), False),
    (IN_FRONT, "front", (0, 1), True),
    (IN_FRONT, "behind", (1, 0), True),
    (IN_FRONT, "behind", (0, 1), False),
    (IN_FRONT, "left", (0, 1), None),
    (IN_FRONT, "inside", (0, 1), False),
    (IN_BOX, "inside", (0, 1), True),
    (IN_BOX, "inside", (1, 0), False),
    (IN_BOX, "on", (0, 1), False),
    (IN_BOX, "left", (0, 1), False),
    (IN_BOX, "near", (0, 1), None),
    (ON_TABLE, "on", (0, 1), True),
    (ON_TABLE, "on", (1, 0), False),
    (ON_TABLE, "above", (0, 1), None),
    (ON_TABLE, "below", (0, 1), False),
    (LOOKING, "faces", (0, 1), True),
    (LOOKING, "faces", (1, 0), False),
    (LOOKING, "follows", (0, 1), None),  # do they walk?
    (LOOKING, "follows", (1, 0), False),
    (LOOKING, "pushes", (0, 1), False),
    (CAT_LEFT, "faces", (1, 0), False),  # balls have no face
    (PUSH, "pushes", (0, 1), True),
    (PUSH, "pushes", (1, 0), False),
    (PUSH, "pulls", (0, 1), False),
    (PUSH, "follows", (0, 1), None),
    (PULL, "pulls", (0, 1), True),
    (PULL, "pulls", (1, 0), False),
    (PULL, "follows", (1, 0), None),
    (PULL, "faces", (0, 1), False),
    (PULL, "faces", (1, 0), True),
    (CARRY, "carries", (0, 1), True),
    (CARRY, "holds", (0, 1), None),
    (CARRY, "above", (1, 0), None),
    (CARRY, "left", (0, 1), False),
    (CARRY, "carries", (1, 0), False),
    (FOLLOW, "follows", (0, 1), True),
    (FOLLOW, "follows", (1, 0), False),
    (GIVE, "hands", (0, 1, 2), True),
    (GIVE, "hands", (2, 1, 0), False),
    (GIVE, "holds", (0, 1), None),
    (GIVE, "faces", (0, 2), None),  # the cup is between them
]


@pytest.mark.parametrize(("scene", "relation", "args", "verdict"), TABLE)
def test_relations(scene: Scene, relation: str, args: tuple[int, ...], verdict: bool | None) -> None:
    assert Graph(scene).holds(relation, args) is verdict


PLAYGROUND = Scene(
    (
        thing("cat", 60, 220, colour="red"),
        thing("cat", 180, 220, colour="blue"),
        thing("star", 120, 90, colour="yellow", size="small"),
    )
)
BIG_SMALL = Scene((thing("cat", 70, 230, size="big"), thing("cup", 200, 230, size="small")))
RED, BLUE, CAT, STAR = Desc("cat", "red"), Desc("cat", "blue"), Desc("cat"), Desc("star")


@pytest.mark.parametrize(
    ("scene", "form", "verdict"),
    [
        (PLAYGROUND, LogicalForm((RED, BLUE), (Fact("left", (0, 1)),)), True),
        (PLAYGROUND, LogicalForm((BLUE, RED), (Fact("left", (0, 1)),)), False),
        (PLAYGROUND, LogicalForm((CAT, CAT), (Fact("left", (0, 1)),)), True),
        (PLAYGROUND, LogicalForm((Desc("cat", "green"), STAR)), False),
        (PLAYGROUND, LogicalForm((CAT, STAR), absent=(Desc("dog"),)), True),
        (PLAYGROUND, LogicalForm((CAT, STAR), absent=(BLUE,)), False),
        # one cat is left of the other, the other is not: which one is meant?
        (PLAYGROUND, LogicalForm((CAT, CAT), (Fact("left", (0, 1), True),)), None),
        (PLAYGROUND, LogicalForm((RED, BLUE), (Fact("left", (0, 1), True),)), False),
        (PLAYGROUND, LogicalForm((RED, BLUE), (Fact("right", (0, 1), True),)), True),
        (PLAYGROUND, LogicalForm((RED, BLUE), (Fact("left", (0, 1)),), denied=True), False),
        (PLAYGROUND, LogicalForm((Desc("star", size="small"),)), None),  # small, compared with what?
        (PLAYGROUND, LogicalForm((), counts=((CAT, 2), (STAR, 1))), True),
        (PLAYGROUND, LogicalForm((), counts=((RED, 2),)), False),
        (PLAYGROUND, LogicalForm((), counts=((Desc("star", size="small"), 1),)), None),
        (BIG_SMALL, LogicalForm((Desc("cat", size="big"),)), True),
        (BIG_SMALL, LogicalForm((Desc("cat", size="small"),)), False),
        (BIG_SMALL, LogicalForm((Desc("cup", size="small"),)), True),
    ],
)
def test_claims(scene: Scene, form: LogicalForm, verdict: bool | None) -> None:
    assert evaluate(form, Graph(scene)) is verdict
