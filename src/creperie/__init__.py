"""creperie: a workshop for vision-language compositionality benchmarks.

The names below are the whole surface; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from creperie.auditing.run import audit
    from creperie.bench import Benchmark, Item, load, save
    from creperie.core.errors import CreperieError
    from creperie.models import load_model as model
    from creperie.refining.refine import refine
    from creperie.scoring.compare import compare
    from creperie.scoring.run import Run, load_run
    from creperie.scoring.score import score

#: public name → where it is defined
_NAMES = {
    "Benchmark": "creperie.bench:Benchmark",
    "CreperieError": "creperie.core.errors:CreperieError",
    "Item": "creperie.bench:Item",
    "Run": "creperie.scoring.run:Run",
    "audit": "creperie.auditing.run:audit",
    "compare": "creperie.scoring.compare:compare",
    "load": "creperie.bench:load",
    "load_run": "creperie.scoring.run:load_run",
    "model": "creperie.models:load_model",
    "refine": "creperie.refining.refine:refine",
    "save": "creperie.bench:save",
    "score": "creperie.scoring.score:score",
}

__all__ = [
    "Benchmark",
    "CreperieError",
    "Item",
    "Run",
    "audit",
    "compare",
    "load",
    "load_run",
    "model",
    "refine",
    "save",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        module, _, attribute = _NAMES[name].partition(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'creperie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_NAMES, "__version__"])
