"""Lazy `__init__` modules: a package lists its public names once, in a stub, and imports each on first use.

A package's `__init__.pyi` imports every public name from the module that defines it. Type checkers and editors read
that stub, and so does `front_door` at run time. Each name is therefore written only once, and importing a package
imports none of its modules.
"""

from __future__ import annotations

import functools
import pkgutil
import re
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

#: a line of a stub that names something public; a comment if the stub writes a function's signature out below it
_LINE = re.compile(r"^(?:# )?from (\S+) import (\w+) as (\w+)\r?$", re.MULTILINE)


def late(package: str, name: str) -> Any:
    """Return the object that a package exports under a name. The package is imported only when this function is
    called.
    """
    # Use it where an import at the top of the file would be circular.
    return getattr(import_module(package), name)


def front_door(
    package: str, *, public: bool = False
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` for a package whose public names are imported on first use. With
    `public`, a wrong argument in a call of one of its functions raises an error that names this argument.

    >>> names, get, _ = front_door("creperie.metrics")
    >>> "wilson" in names, get("wilson").__module__
    (True, 'creperie.metrics.intervals')
    """
    stub = pkgutil.get_data(package, "__init__.pyi") or b""
    # each public name → the module that defines it and its name there; a submodule → the package and its own name
    where = {name: (module, own) for module, own, name in _LINE.findall(stub.decode())}
    names = sorted(name for name, (module, _) in where.items() if module != package)  # without submodules

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, defined = where[name]
        if module == package:
            return import_module(f"{package}.{name}")
        found = getattr(import_module(module), defined)
        if not public or not isinstance(found, FunctionType) or hasattr(found, "options"):  # these explain already
            return found
        return _explained(found, package)

    return names, get, lambda: names


@functools.cache
def _explained(function: FunctionType, package: str) -> Callable[..., Any]:
    from creperie.core.arguments import explained

    clear = explained(function)
    clear.__module__ = package  # where it is the same object, as pickle asks
    return clear
