"""The types that makers and checks exchange (candidates, proposals), and their two interfaces."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from creperie.bench import Item, Tag
from creperie.making.source import SourceCaption

Role = Literal["positive", "negative"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A caption that a maker proposes for a source. The candidates of one group become one item."""

    source: str  #: the id of its source
    text: str
    role: Role
    kind: str  #: "passive", "replace-object"
    maker: str
    edit: str  #: the change in words: "dog → wolf"
    group: str = ""  #: the item's subset; empty: the kind
    tags: Mapping[str, Tag] = field(default_factory=dict)
    refused: str = ""  #: why its maker rejects it; it is recorded all the same

    @property
    def subset(self) -> str:
        return self.group or self.kind


@dataclass(frozen=True, slots=True)
class Proposal:
    """The candidates that a maker proposes for a source, or why there are none; and the number of model calls."""

    candidates: tuple[Candidate, ...] = ()
    skipped: str = ""
    calls: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)  #: kind of foil → why there is none


#: A check returns why a candidate is rejected, or None.
Check = Callable[[SourceCaption, Candidate], str | None]


@runtime_checkable
class BatchCheck(Protocol):
    """A check that is faster on many candidates at once, such as one by a model."""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> Sequence[str | None]: ...


class Maker(Protocol):
    """A maker of captions. Makers are plain picklable values, because they are sent to other processes."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the result depends on; they are recorded, and compared when a job resumes."""
        ...

    @property
    def whole(self) -> bool:
        """True if the candidates of a group are accepted or rejected together."""
        ...

    @property
    def tidies(self) -> bool:
        """True if all captions of an item are normalised to one surface style at the end."""
        ...

    @property
    def chunk(self) -> int:
        """The number of sources per batch, which are proposed for and stored together."""
        ...

    @property
    def parallel(self) -> bool:
        """True if several processes help; False for makers that wait for a server or load a large model."""
        ...

    @property
    def checks(self) -> Sequence[Check | BatchCheck]: ...

    def propose(self, sources: Sequence[SourceCaption]) -> Iterable[Proposal]:
        """Return one proposal per source, in order. A proposal does not depend on the other sources."""
        ...

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return the items of a source with its accepted candidates."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A maker whose model costs money, and that reports how much."""

    @property
    def ledger(self) -> Mapping[str, Any]: ...

    def keep_books(self, folder: Path, job: Mapping[str, Any]) -> None:
        """Record the cost in a file of this folder, so that an interrupted job does not pay twice."""
        ...


def dice_for(seed: int, maker: str, source: str) -> random.Random:
    """Return a random generator for a source: it depends neither on the order of sources nor on the process.

    >>> first, again, other = (dice_for(0, "rules:swap", key).random() for key in "778")
    >>> first == again != other
    True
    """
    key = f"{seed}\0{maker}\0{source}".encode("utf-8", "surrogatepass")
    return random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))
