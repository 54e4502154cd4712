"""Stages for tests of the engine: they live here because workers in other processes import them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from creperie.core import DataError
from creperie.engine import Work


@dataclass(frozen=True)
class Shout:
    """Captions in capitals. `dies_at` are ids, by comma, at which its process is killed: once
    where there is a folder of `marks` to note it in, else always."""

    marks: str = ""
    dies_at: str = ""
    bad_at: str = ""
    seconds: float = 0.0

    def open(self) -> Work:
        if self.marks and not Path(self.marks).is_dir():
            raise DataError("no model here", where=self.marks)
        if self.marks:
            Path(self.marks, f"opened-{os.getpid()}").touch()
        return self

    def __call__(self, batch: pa.Table) -> pa.Table:
        ids = set(batch.column("id").to_pylist())
        if self.bad_at in ids:
            raise DataError("this caption cannot be shouted", where=f"caption {self.bad_at}", hint="whisper it")
        for name in ids.intersection(self.dies_at.split(",")):
            if not (self.marks and Path(self.marks, f"died-{name}").exists()):
                if self.marks:
                    Path(self.marks, f"died-{name}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        if self.marks:
            Path(self.marks, f"done-{batch.column('id')[0].as_py()}-{time.time_ns()}").touch()
        return pa.table({"id": batch.column("id"), "text": pc.utf8_upper(batch.column("text"))})


def begin(marks: Path, name: str) -> None:
    """Leave a mark of a batch that is begun; wait while a file `hold` beside the marks has no more bytes."""
    (marks / f"{name}-{time.time_ns()}-{os.getpid()}").touch()
    with suppress(FileNotFoundError):
        while len(list(marks.iterdir())) >= marks.with_name("hold").stat().st_size:
            time.sleep(0.02)
