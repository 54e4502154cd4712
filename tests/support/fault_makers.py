"""A slow maker for tests of faults: it lives here because workers in other processes import it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.bench import Item
from creperie.making import MAKERS, Candidate, Captions, MakerEntry, MakerOptions, Proposal, SourceCaption, with_source

NAME = "test:slow"


@dataclass(frozen=True)
class SlowMaker:
    """Foils are the words turned round, after some seconds a chunk; every chunk that is begun leaves a mark."""

    seconds: float = 0.0
    marks: str = ""
    name: str = NAME
    whole: bool = False
    tidies: bool = False
    chunk: int = 5
    parallel: bool = True
    checks: tuple[Any, ...] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"seed": 0}

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        if self.marks:
            Path(self.marks, f"{sources[0].id}-{time.time_ns()}-{os.getpid()}").touch()
        time.sleep(self.seconds)
        for s in sources:
            text = " ".join(reversed(s.text.split()))
            yield Proposal((Candidate(s.id, text, "negative", "turned", self.name, "turned round"),))

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        return with_source(source, accepted)


def slow(name: str, options: MakerOptions, captions: Captions) -> SlowMaker:
    """The maker's factory; seconds and marks are told through an option that it has no other use for."""
    seconds, _, marks = options.others.partition(":")
    return SlowMaker(float(seconds or 0), marks)


def register() -> None:
    """Make it known to the command line of this process."""
    MAKERS[NAME] = MakerEntry("fault_makers", "slow", "For tests of faults.")
