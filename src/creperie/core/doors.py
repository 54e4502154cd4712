"""The front door of a room: its public names, listed once in a stub, imported when they are first used.

A room's `__init__.pyi` imports every public name from the module that defines it. Type checkers and editors read that
stub; at run time `front_door` reads it too, so the names are written once and importing a room imports nothing else.
"""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any


def front_door(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a room.

    >>> names, get, _ = front_door("creperie.metrics")
    >>> "wilson" in names, get("wilson").__module__
    (True, 'creperie.metrics.intervals')
    """
    where = _listed(package)
    names = sorted(name for name, (module, _) in where.items() if module != package)  # rooms can be had, unlisted

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, defined = where[name]
        return import_module(f"{package}.{name}") if module == package else getattr(import_module(module), defined)

    return names, get, lambda: names


def _listed(package: str) -> dict[str, tuple[str, str]]:
    """Public name → the module that defines it (the package itself for a submodule) and its name there."""
    stub = pkgutil.get_data(package, "__init__.pyi")
    if stub is None:
        raise ImportError(f"{package} has no __init__.pyi")
    found: dict[str, tuple[str, str]] = {}
    public = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names}
            public |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):  # another name for one of them
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            found, public = found | dict.fromkeys(names, found[node.value.id]), public | names
    return {name: found[name] for name in public}
