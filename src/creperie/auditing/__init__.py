"""Is this benchmark hackable, and through what? Attackers, their margins, and what they say about a benchmark.

`creperie.audit(bench)` is the short way to `creperie.auditing.run.audit(bench)`: the room can be called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from creperie.auditing.battery import AttackerModels
    from creperie.auditing.run import Audit
    from creperie.bench import Benchmark


class _Room(ModuleType):
    """Importing `creperie.audit.…` puts this module where the function `creperie.audit` was: so it is one."""

    def __call__(
        self,
        bench: Benchmark,
        attackers: Sequence[str] = (),
        models: AttackerModels | None = None,
        *,
        threshold: float = 0.55,
    ) -> Audit:
        from creperie.auditing.run import audit

        return audit(bench, attackers, models, threshold=threshold)


sys.modules[__name__].__class__ = _Room
