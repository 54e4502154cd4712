"""What makers and checks exchange: candidates, proposals, and the two small interfaces."""

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
    """A caption that a maker proposes for a source. Candidates of one group end in one item."""

    source: str  #: the id of its source
    text: str
    role: Role
    kind: str  #: "passive", "replace-object"
    maker: str
    edit: str  #: what was changed, for people: "dog → wolf"
    group: str = ""  #: the item's subset; empty: the kind
    tags: Mapping[str, Tag] = field(default_factory=dict)
    refused: str = ""  #: why its own maker rejects it; it is kept all the same

    @property
    def subset(self) -> str:
        return self.group or self.kind


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a maker proposes for a source: candidates, or why there are none; and how many calls of a model it took."""

    candidates: tuple[Candidate, ...] = ()
    skipped: str = ""
    calls: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)  #: why a kind of foil is not there


#: A check says why a candidate is rejected, or None.
Check = Callable[[SourceCaption, Candidate], str | None]


@runtime_checkable
class BatchCheck(Protocol):
    """A check that is faster on many candidates at once, as models are."""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> Sequence[str | None]: ...


class Maker(Protocol):
    """A way to make captions. Makers are plain picklable values: they are sent to other processes."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the result depends on; recorded, and compared when a job continues."""
        ...

    @property
    def whole(self) -> bool:
        """True where the candidates of a group stand or fall together."""
        ...

    @property
    def tidies(self) -> bool:
        """True where all captions of an item are given one surface style in the end."""
        ...

    @property
    def chunk(self) -> int:
        """How many sources are proposed for at once, and kept at once."""
        ...

    @property
    def parallel(self) -> bool:
        """True where processes beside each other help; False for what waits for a server or holds a large model."""
        ...

    @property
    def checks(self) -> Sequence[Check | BatchCheck]: ...

    def propose(self, sources: Sequence[SourceCaption]) -> Iterable[Proposal]:
        """One proposal per source, in order. The same for a source whatever stands beside it."""
        ...

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Items from a source and its accepted candidates."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A maker whose model costs something, and says how much."""

    @property
    def ledger(self) -> Mapping[str, Any]: ...

    def keep_books(self, folder: Path, job: Mapping[str, Any]) -> None:
        """Book what is paid in a file of this folder, so that a job that is killed does not pay twice."""
        ...


def dice_for(seed: int, maker: str, source: str) -> random.Random:
    """A source's own random numbers: they depend neither on the order of sources nor on who works on them.

    >>> first, again, other = (dice_for(0, "rules:swap", key).random() for key in "778")
    >>> first == again != other
    True
    """
    key = f"{seed}\0{maker}\0{source}".encode("utf-8", "surrogatepass")
    return random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))
