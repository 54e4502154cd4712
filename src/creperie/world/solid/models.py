"""The kinds of solid things, and the parts of which they are built."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.core import packaged_toml
from creperie.world.solid.meshes import Patches, build, joined, turned

_MODELS: dict[str, Any] = packaged_toml("creperie.world.solid", "models.toml")
#: What stands at walls, only in pictures; see dressing.toml.
DRESSING: dict[str, Any] = packaged_toml("creperie.world.solid", "dressing.toml")
SCALES = {"small": 0.75, "medium": 1.0, "big": 1.35}


@dataclass(frozen=True, slots=True)
class SolidKind:
    """A kind of solid thing; see models.toml for what the fields mean."""

    name: str
    place: tuple[str, ...]
    materials: tuple[str, ...]
    colours: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    plain: bool = False  #: never striped, checked or spotted
    upright: bool = False
    top: tuple[float, ...] | None = None
    inner: tuple[float, ...] | None = None
    under: float | None = None


def _kind(name: str, model: dict[str, Any]) -> SolidKind:
    fields: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in model.items() if k in SolidKind.__slots__
    }
    return SolidKind(name, **fields)


SOLIDS: dict[str, SolidKind] = {name: _kind(name, model) for name, model in _MODELS.items()}


@cache
def parts_of(kind: str, state: str) -> tuple[tuple[str, Patches], ...]:
    """Return the parts of a thing as (paint, patches) pairs. The thing is at the origin and stands on z = 0."""
    model = _MODELS[kind]
    return _assembled(model, state, [*model.get("parts", ()), *(model.get(state, ()) if state else ())])


@cache
def drawn_of(kind: str, state: str, patterned: bool = False, number: int = 0) -> tuple[tuple[str, Patches], ...]:
    """Return the parts of a thing for pictures. They have more detail than those of `parts_of`, which serve to compute
    relations. `number` selects one of several letters on a toy block, or a mirror image. If `patterned`, parts such as
    labels are left out.
    """
    model = _MODELS[kind]
    rows = [*model.get("parts", ()), *(model.get(state, ()) if state else ())]
    letters = model.get("letters", ())
    if number % (1 + len(letters)):
        rows = [row for row in rows if row[0] != "letter"] + letters[number % (1 + len(letters)) - 1]
    rows = [row for row in rows if row[0] not in model.get("hidden", ())]
    rows += [*model.get("detail", ()), *model.get(f"detail {state}", ())]
    rows += [] if patterned else model.get("seams", [])
    rows = [row for row in rows if not patterned or row[0] not in model.get("label", ())]
    parts = _assembled(model, state, rows)
    mirrored = np.diag([-1.0 if model.get("mirrored") and number % 2 else 1.0, 1, 1])
    return tuple((paint, patches.moved(mirrored)) for paint, patches in parts)


@cache
def dressing_of(name: str) -> tuple[tuple[str, Patches], ...]:
    """Return the parts of a decoration at the wall as (paint, patches) pairs, with the wall at y = 0 and the ground
    at z = 0.
    """
    parts = _assembled({}, "", DRESSING[name]["parts"])
    return tuple((paint, patches.moved(np.eye(3), (0, 0, DRESSING[name].get("rise", 0)))) for paint, patches in parts)


def _assembled(model: dict[str, Any], state: str, rows: list[Any]) -> tuple[tuple[str, Patches], ...]:
    paints: dict[str, list[Patches]] = {}
    for paint, shape, *numbers in rows:
        paints.setdefault(paint, []).append(build(shape, numbers))
    parts = [(paint, joined(patches)) for paint, patches in paints.items()]
    if state in model.get("pose", {}):
        parts = [(paint, patches.moved(turned(*model["pose"][state]))) for paint, patches in parts]
    lowest = min(float(patches.points[..., 2].min()) for _, patches in parts)
    return tuple((paint, patches.moved(np.eye(3), (0, 0, -lowest))) for paint, patches in parts)


@cache
def extent(kind: str, state: str) -> tuple[float, ...]:
    """Return the bounding box of a thing at the origin: the smallest x, y and z, then the largest."""
    points = np.concatenate([patches.points.reshape(-1, 3) for _, patches in parts_of(kind, state)])
    return tuple(round(float(v), 3) for v in (*points.min(0), *points.max(0)))
