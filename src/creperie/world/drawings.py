"""The tables of the world: what every kind of thing looks like (drawings.toml), colours and words (tables.toml)."""

from __future__ import annotations

from typing import Any

from creperie.core import packaged_toml

Part = tuple[str, str, tuple[int, ...]]


def _read(name: str) -> dict[str, Any]:
    """A table with tuples where TOML has arrays."""
    return _frozen(packaged_toml("creperie.world", name))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(_frozen(inner) for inner in value) if isinstance(value, list) else value


def _parts(rows: tuple[Any, ...]) -> tuple[Part, ...]:
    return tuple((paint, shape, tuple(numbers)) for paint, shape, *numbers in rows)


THINGS: dict[str, Any] = _read("drawings.toml")
TABLES: dict[str, Any] = _read("tables.toml")
#: Width and height of each drawing on the grid.
EXTENT: dict[str, tuple[int, int]] = {name: thing["extent"] for name, thing in THINGS.items()}
DRAWINGS: dict[str, tuple[Part, ...]] = {name: _parts(thing["parts"]) for name, thing in THINGS.items()}
#: Parts painted after what the container holds.
FRONTS: dict[str, tuple[Part, ...]] = {name: _parts(t["front"]) for name, t in THINGS.items() if "front" in t}
