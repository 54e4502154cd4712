"""Stages: what is done to every batch. Sent to other processes, so a stage is a plain value that can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

Work = Callable[[pa.Table], pa.Table]
Numbered = Iterator[tuple[int, pa.Table]]


class Stage(Protocol):
    """A batch in, a batch out, the same for a row whatever stands beside it."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the output depends on; recorded, and compared when the work goes on."""
        ...

    def __call__(self, batch: pa.Table) -> pa.Table: ...


@runtime_checkable
class Opening(Protocol):
    """A stage that holds something heavy, such as a model: `open` is called once in every worker."""

    def open(self) -> Work: ...


def opened(stage: Stage) -> Work:
    """The stage, ready to work."""
    return stage.open() if isinstance(stage, Opening) else stage
