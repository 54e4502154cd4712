"""Lazy `__init__` modules: a package lists its public names once, in a stub, and imports each on first use.

A package's `__init__.pyi` imports every public name from the module that defines it. Type checkers and editors read
that stub; at run time `front_door` reads it too: names are written once, and importing a package imports nothing else.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

#: a line of a stub: `from MODULE import NAME as PUBLIC`, the same without `as` (not public), or `ALIAS = NAME`
_LINE = re.compile(r"^(?:from (\S+) import (\w+)(?: as (\w+))?|(\w+) = (\w+))\r?$", re.MULTILINE)


def front_door(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    >>> names, get, _ = front_door("creperie.metrics")
    >>> "wilson" in names, get("wilson").__module__
    (True, 'creperie.metrics.intervals')
    """
    where = _listed(package)
    names = sorted(name for name, (module, _) in where.items() if module != package)  # without submodules

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, defined = where[name]
        return import_module(f"{package}.{name}") if module == package else getattr(import_module(module), defined)

    return names, get, lambda: names


def _listed(package: str) -> dict[str, tuple[str, str]]:
    """Return each public name with the module that defines it (a submodule: the package itself) and its name there."""
    stub = pkgutil.get_data(package, "__init__.pyi") or b""
    homes: dict[str, tuple[str, str]] = {}
    public: set[str] = set()
    for module, name, listed, other, same in _LINE.findall(stub.decode()):
        homes[listed or name or other] = homes[same] if other else (module, name)
        public |= {listed or other} - {""}
    return {name: homes[name] for name in public}
