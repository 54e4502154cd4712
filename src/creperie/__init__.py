"""creperie: a workshop for vision-language compositionality benchmarks.

The names below are the whole surface; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from creperie.bench import Benchmark, Item, load, save
    from creperie.errors import CreperieError

_NAMES = {
    "Benchmark": "creperie.bench",
    "Item": "creperie.bench",
    "load": "creperie.bench",
    "save": "creperie.bench",
    "CreperieError": "creperie.errors",
}

__all__ = ["Benchmark", "CreperieError", "Item", "load", "save"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'creperie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_NAMES, "__version__"])
