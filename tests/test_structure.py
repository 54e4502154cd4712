"""The floors of the house: imports run downward, through front doors, in no circle; a class name means one thing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from sources import ROOT, nodes

FLOORS = (
    ("core",),
    ("bench", "metrics"),
    ("models", "lang", "engine", "world"),
    ("scoring",),
    ("making", "auditing", "refining", "training", "statistics"),
    ("annotation", "reporting", "recipes"),
    ("cli",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
#: for tests, and for plug-ins; they stand beside the house
BESIDE = {"testing", "plugin"}
#: the command line has one entry, `main`, and nobody imports from it
DOORS = [room for room in FLOOR if room != "cli"]


def module_of(path: Path) -> str:
    parts = ("creperie", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in ROOT.rglob("*.py")}


@cache
def imports(path: Path) -> tuple[tuple[str, str], ...]:
    """(module, name) of everything that a file imports from creperie, wherever in it the import stands."""
    found = [node for node in nodes(path) if isinstance(node, (ast.Import, ast.ImportFrom))]
    named = [
        (str(node.module), alias.name) if isinstance(node, ast.ImportFrom) else (alias.name, "")
        for node in found
        for alias in node.names
    ]
    return tuple((module, name) for module, name in named if module.split(".")[0] == "creperie")


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def rooms_of(room: str) -> set[str]:
    found = {room_of(m) for path in (ROOT / room).rglob("*.py") for m, _ in imports(path)}
    return found - {room, ""}


@cache
def door_of(module: str) -> dict[str, str]:
    """Where a front door's names are defined."""
    stub = MODULES[module].with_suffix(".pyi")
    listed = nodes(stub) if stub.exists() else ()
    return {a.asname: str(n.module) for n in listed if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}


def test_every_room_has_a_floor() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms - BESIDE == set(FLOOR)


@pytest.mark.parametrize("room", FLOOR)
def test_imports_never_run_upward(room: str) -> None:
    above = {other for other in rooms_of(room) & set(FLOOR) if FLOOR[other] > FLOOR[room]}
    assert above == set()
    assert not BESIDE & rooms_of(room)


def test_nothing_below_imports_the_house_itself() -> None:
    """`from creperie import …` inside a room would run upward: the package stands on all rooms."""
    assert [(str(p), n) for p in ROOT.glob("*/**/*.py") for m, n in imports(p) if m == "creperie"] == []


def test_no_two_rooms_import_each_other() -> None:
    known = {room: rooms_of(room) for room in FLOOR}
    assert [(a, b) for a, b in combinations(FLOOR, 2) if b in known[a] and a in known[b]] == []


@pytest.mark.parametrize("ground", FLOORS[1])
def test_the_ground_floor_imports_no_other_room(ground: str) -> None:
    assert rooms_of(ground) & set(FLOOR) <= {"core"}


def test_other_rooms_come_in_by_the_front_door() -> None:
    """A room imports another room's public names from the room, never from a module in it."""
    wrong = [
        f"{path.name}: from {module} import {name}"
        for path in ROOT.glob("*/**/*.py")
        for module, name in imports(path)
        if module.count(".") > 1 and room_of(module) in DOORS and room_of(module) != room_of(module_of(path))
        if module != "creperie.core.doors"  # which opens the doors
    ]
    assert wrong == []


def test_no_two_files_import_each_other_round_in_a_circle() -> None:
    graph: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        for source, name in imports(path):
            inner = f"{source}.{name}"
            found = inner if inner in MODULES else door_of(source).get(name, source) if source in MODULES else source
            graph[module].add(found)
    left = {m: graph[m] & set(MODULES) - {m} for m in MODULES}
    while free := {m for m, needs in left.items() if not needs & set(left)}:
        left = {m: needs for m, needs in left.items() if m not in free}
    while free := {m for m in left if not any(m in needs for needs in left.values())}:  # stand on a circle, not in it
        left = {m: needs for m, needs in left.items() if m not in free}
    assert {m: sorted(needs & set(left)) for m, needs in left.items()} == {}


def test_benchmarks_and_research_import_what_there_is() -> None:
    """They are not run by the tests, so a name that went away would go unnoticed."""
    for path in sorted(p for folder in ("benchmarks", "research") for p in (ROOT.parents[1] / folder).glob("*.py")):
        for module, name in imports(path):
            assert not name or hasattr(import_module(module), name), f"{path.name}: {module}.{name}"


def test_a_class_name_means_one_thing() -> None:
    classes = Counter(n.name for p in ROOT.rglob("*.py") for n in nodes(p) if isinstance(n, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []


@pytest.mark.parametrize("room", ["", "plugin", *DOORS])
def test_a_front_door_opens(room: str) -> None:
    """Every public name can be had, again and again, whatever was imported before; no module of the room hides it."""
    package = import_module(f"creperie.{room}" if room else "creperie")
    folder = ROOT / room
    modules = {p.stem for p in folder.glob("*.py")} | {p.name for p in folder.iterdir() if p.is_dir()}
    listed = door_of(package.__name__)
    hidden = {n for n, module in listed.items() if n in modules and module != package.__name__}
    assert hidden == set()
    assert len(package.__doc__ or "") > 40
    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


@pytest.mark.parametrize(
    ("line", "light"),
    [
        ("import creperie", ("numpy", "pandas", "pyarrow", "torch", "spacy", "ray", "fastapi", "scipy", "openai")),
        ("import creperie", ("polars", "PIL", "transformers", "datasets", "sklearn")),
        ("import creperie.cli, creperie.bench", ("torch", "transformers")),
        ("from creperie.reporting import report, study_in", ("torch", "spacy", "matplotlib", "fastapi", "openai")),
    ],
)
def test_importing_is_quick_and_light(line: str, light: tuple[str, ...]) -> None:
    """A report is made by the plain wheel, without any extra."""
    code = f"import sys; {line}; print(*[m for m in sys.modules if m in {light}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_private_module_of_another_library_is_imported() -> None:
    """Private parts change without notice; scikit-learn's were once called for speed."""
    private = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in ROOT.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not (getattr(node, "module", "") or "").startswith("creperie")
        for module in [getattr(node, "module", None) or "", *[alias.name for alias in node.names]]
        if any(part.startswith("_") and not part.startswith("__") for part in module.split("."))
    ]
    assert not private


def test_workflows_pin_their_actions_and_run_every_python() -> None:
    root = ROOT.parents[1]
    flows = {p.name: p.read_text(encoding="utf-8") for p in (root / ".github" / "workflows").glob("*.yml")}
    used = [line.split("uses:")[1].split() for text in flows.values() for line in text.splitlines() if "uses:" in line]
    assert [words for words in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", words[0]) or words[1] != "#"] == []
    named = re.findall(r"Python :: (3\.\d+)", (root / "pyproject.toml").read_text(encoding="utf-8"))
    assert yaml.safe_load(flows["ci.yml"])["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    hooks = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    pinned = (root / "requirements" / "constraints.txt").read_text(encoding="utf-8")
    assert {*re.findall(r"ruff==[\d.]+", hooks)} == {*re.findall(r"(?m)^ruff==[\d.]+", pinned)}
