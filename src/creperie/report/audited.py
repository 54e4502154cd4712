"""The short audit that a report makes by itself; a full one is `creperie audit`, given to the report as JSON."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from creperie.audit.battery import NEEDS
from creperie.audit.document import document
from creperie.audit.run import audit
from creperie.bench import Benchmark
from creperie.progress import Progress, silent

#: Attackers that answer in seconds, and between them see every kind of cue.
QUICK = ("length-words", "surface", "negation", "frequency", "similarity", "learned-linear")


def quick_audit(bench: Benchmark, *, progress: Progress = silent) -> dict[str, Any]:
    """An audit's document, by the quick attackers whose packages are installed."""
    needed = {name: NEEDS.get(name, "").partition("|")[0] for name in QUICK}
    names = [name for name, module in needed.items() if not module or find_spec(module)]
    return document(audit(bench, names, progress=progress))
