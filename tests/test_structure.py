"""The floors of the house: an import never runs upward, and no two rooms import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

import creperie

ROOT = Path(creperie.__file__).parent
FLOORS = (
    ("bench", "metrics"),
    ("models", "lang", "engine", "world"),
    ("scoring",),
    ("make", "audit", "debias", "train", "stats"),
    ("people", "report", "recipes"),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
#: for tests of creperie and of what is built on it; stands beside the house
BESIDE = "testing"


def imported(path: Path) -> Iterator[str]:
    """The rooms that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            package, _, inner = name.partition(".")
            if package == "creperie" and inner:
                yield inner.partition(".")[0]


def rooms_of(room: str) -> set[str]:
    return {found for path in (ROOT / room).rglob("*.py") for found in imported(path)} - {room}


def test_every_room_has_a_floor() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms - {BESIDE} == set(FLOOR)


@pytest.mark.parametrize("room", FLOOR)
def test_imports_never_run_upward(room: str) -> None:
    above = {other for other in rooms_of(room) & set(FLOOR) if FLOOR[other] > FLOOR[room]}
    assert above == set()
    assert BESIDE not in rooms_of(room)


def test_no_two_rooms_import_each_other() -> None:
    known = {room: rooms_of(room) for room in FLOOR}
    assert [(a, b) for a, b in combinations(FLOOR, 2) if b in known[a] and a in known[b]] == []


@pytest.mark.parametrize("ground", FLOORS[0])
def test_the_ground_floor_imports_no_other_room(ground: str) -> None:
    assert rooms_of(ground) & set(FLOOR) == set()
