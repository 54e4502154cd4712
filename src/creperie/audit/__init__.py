"""Is this benchmark hackable, and through what? Attackers, their margins, and what they say about a benchmark."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """This room has the name of the public function `creperie.audit`, so it can be called as that function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from creperie.audit.run import audit

        return audit(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
