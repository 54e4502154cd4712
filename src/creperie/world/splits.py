"""The splits train, val and test. They share no scene, and half of the test items show combinations that training never
shows.

A checksum of a scene's content decides its split. Two families of combinations are held out from `train` and `val`, in
images and captions:

- *colour and kind*: two of the ten colours are held out for each kind, and thus each colour for about a fifth of the
  kinds;
- *who, relation, whom*: about one in eleven (kind, relation, kind) triples is held out.

Both follow Latin squares, so training shows every kind, colour and relation, in many combinations. In `test`, half of
the items show held-out combinations (tag `combination` = "novel"), the others none ("seen").
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace

from creperie.core import unknown
from creperie.world.kinds import COLOURS, NAMES
from creperie.world.scene import ACTIONS, Scene, content_number
from creperie.world.truth import Graph

#: split → which of the 16 shares of all scenes belong to it.
SHARES = {"train": range(11), "val": range(11, 13), "test": range(13, 16)}
SPLITS = tuple(SHARES)

_KIND = {name: i for i, name in enumerate(NAMES)}
_COLOUR = {name: i for i, name in enumerate(COLOURS)}
_RELATIONS = ("left", "above", "front", "inside", "on", "faces", *ACTIONS)
_RELATION = {name: i for i, name in enumerate(_RELATIONS)}
_PLACE = {"LEFT": "left", "ABOVE": "above", "FRONT": "front", "IN": "inside", "ON": "on"}


def novel_colour(kind: str, colour: str) -> bool:
    """Return whether this combination of kind and colour is held out for the test split."""
    return (_KIND[kind] + _COLOUR[colour]) % 5 == 0


def novel_triple(subject: str, relation: str, thing: str) -> bool:
    """Return whether this (kind, relation, kind) triple is held out for the test split. The relation must not be right,
    below or behind: exchange the two kinds and pass left, above or front instead.
    """
    return (3 * _KIND[subject] + 5 * _KIND[thing] + 7 * _RELATION[relation]) % 11 == 0


SEEN_COLOURS = {kind: tuple(c for c in COLOURS if not novel_colour(kind, c)) for kind in NAMES}


def triples(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """Yield the (kind, relation, kind) triples that a scene shows."""
    things = graph.things
    if graph.action:
        yield things[0].kind, graph.action, things[graph.roles[-1]].kind
    for i, a in enumerate(things):
        for j, b in enumerate(things):
            if i == j:
                continue
            relation = _PLACE.get(graph.places[i][j])
            if relation:
                yield a.kind, relation, b.kind
            if graph.holds("faces", (i, j)):
                yield a.kind, "faces", b.kind


def is_novel(graph: Graph) -> bool:
    """Return whether the scene shows any combination that is held out from training."""
    if any(novel_colour(thing.kind, thing.colour) for thing in graph.things):
        return True
    return any(novel_triple(*triple) for triple in triples(graph))


def _share(scene: Scene) -> int:
    """Return a number from 0 to 15 that decides the split of a scene. It is computed from a checksum of the scene's
    content. The checksum is multiplied by a constant; otherwise, small moves of a thing would change the number in a
    regular pattern.
    """
    return ((zlib.crc32(content_number(scene).to_bytes(40, "big")) * 0x9E3779B1) & 0xFFFFFFFF) >> 28


#: Small moves of the whole scene, shortest first: they change no relation.
_NUDGES = sorted(((dx, dy) for dx in range(-3, 4) for dy in range(-3, 4)), key=lambda d: (d[0] ** 2 + d[1] ** 2, d))


def settle(scene: Scene, split: str) -> Scene | None:
    """Return the scene, moved slightly if necessary so that it falls into the split; None if no small move achieves
    that.
    """
    if split not in SHARES:
        raise unknown("split", split, SHARES)
    for dx, dy in _NUDGES:
        moved = replace(scene, things=tuple(replace(t, x=t.x + dx, y=t.y + dy) for t in scene.things))
        if _share(moved) in SHARES[split]:
            return moved
    return None
