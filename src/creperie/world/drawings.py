"""What every kind of thing looks like; drawings.toml says what the numbers mean."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

Part = tuple[str, str, tuple[int, ...]]

_TABLE: dict[str, Any] = tomllib.loads((resources.files("creperie.world") / "drawings.toml").read_text("utf-8"))


def _parts(rows: list[Any]) -> tuple[Part, ...]:
    return tuple((paint, shape, tuple(numbers)) for paint, shape, *numbers in rows)


#: Width and height of each drawing on the grid.
EXTENT: dict[str, tuple[int, int]] = {name: tuple(thing["extent"]) for name, thing in _TABLE.items()}
DRAWINGS: dict[str, tuple[Part, ...]] = {name: _parts(thing["parts"]) for name, thing in _TABLE.items()}
#: Parts painted after what the container holds.
FRONTS: dict[str, tuple[Part, ...]] = {name: _parts(t["front"]) for name, t in _TABLE.items() if "front" in t}
