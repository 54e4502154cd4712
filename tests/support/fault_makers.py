"""A slow maker for tests of faults: it lives here because workers in other processes import it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fault_stages import begin

from creperie.making import MAKERS, Candidate, Captions, Maker, MakerEntry, MakerOptions, Proposal, SourceCaption

NAME = "test:slow"


@dataclass(frozen=True)
class SlowMaker(Maker):
    """Foils are the words turned round, after some seconds a chunk, each with a mark (`begin`)."""

    name: str = NAME
    options: MakerOptions = field(default_factory=MakerOptions)
    chunk: int = 5
    parallel: bool = True
    seconds: float = 0.0
    marks: str = ""

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        if self.marks:
            begin(Path(self.marks), sources[0].id)
        time.sleep(self.seconds)
        for s in sources:
            text = " ".join(reversed(s.text.split()))
            yield Proposal((Candidate(s.id, text, "negative", "turned", self.name, "turned round"),))


def slow(name: str, options: MakerOptions, captions: Captions) -> SlowMaker:
    """The maker's factory; seconds and marks are told through an option that it has no other use for."""
    seconds, _, marks = options.others.partition(":")
    return SlowMaker(seconds=float(seconds or 0), marks=marks)


def register() -> None:
    """Make it known to the command line of this process."""
    MAKERS[NAME] = MakerEntry("fault_makers", "slow", "For tests of faults.")
