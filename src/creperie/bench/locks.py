"""One process at a time: a lock that the system drops when its holder dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from creperie.core.errors import UsageError

HINT = "wait for it, or name another --out"


@contextmanager
def held(lock: Path, what: str, *, where: Path, hint: str = HINT, wait: bool = False) -> Iterator[None]:
    """Hold this file, which is there only meanwhile. While another process holds it, wait, or say `what` it does.

    Where the system has no such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover
        yield
        return
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise UsageError(what, where=str(where), hint=hint) from None
            if not _is_file_of(file.fileno(), lock):
                continue  # its last holder has taken it away
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_file_of(descriptor: int, path: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    except FileNotFoundError:
        return False
