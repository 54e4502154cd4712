"""The types that makers and checks share: candidates, proposals, and the interface of a check."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from creperie.bench import Tag
from creperie.making.source import SourceCaption

Role = Literal["positive", "negative"]
#: why nothing is made from a source whose caption is in the item of another source; nothing is lost by it
IN_ANOTHER = "in the item of another caption"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A caption that a maker proposes for a source caption. A source's candidates with the same `subset` become one
    item.
    """

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
    """What a maker proposes for a source caption: candidates or, if it has none, the reason why. The number of model
    calls is also recorded.
    """

    candidates: Sequence[Candidate] = ()
    skipped: str = ""
    calls: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)  #: kind of foil → why there is none


#: A check returns why a candidate is rejected, or None.
Check = Callable[[SourceCaption, Candidate], str | None]


@runtime_checkable
class BatchCheck(Protocol):
    """A check that reviews many candidates in one call, for instance with a model."""

    def review(self, pairs: Sequence[tuple[SourceCaption, Candidate]]) -> Sequence[str | None]: ...


def dice_for(seed: int, maker: str, source: str) -> random.Random:
    """Return a random generator for one source caption. The same seed, maker name and source id always give the same
    random numbers, in any process and for any order of the sources.

    >>> first, again, other = (dice_for(0, "rules:swap", key).random() for key in "778")
    >>> first == again != other
    True
    """
    key = f"{seed}\0{maker}\0{source}".encode("utf-8", "surrogatepass")
    return random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))
