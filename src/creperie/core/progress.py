"""Progress reporting: a long-running function says how far it is, without knowing who listens.

A function that takes long takes a `Progress` and reports to it; the command line passes one that draws a bar on
stderr, everybody else the silent default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], None]
#: `with progress("encode captions", total, "captions") as advance: advance(64)`
Progress = Callable[[str, int | None, str], AbstractContextManager[Advance]]


@contextmanager
def silent(label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """A `Progress` that says nothing."""

    def advance(n: int) -> None:
        return None

    yield advance
