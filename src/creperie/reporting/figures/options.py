"""What a figure can be asked for beside its sources."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FigureOptions:
    """Every figure reads the few of these that mean something to it."""

    tasks: tuple[str, ...] = ()
    benches: tuple[str, ...] = ()  #: where runs' items are, for figures that show some
    attackers: tuple[str, ...] = ()
    lm: str = ""
    plausibility: str = ""
    grammar: str = ""
    seed: int = 0
    against: Path | None = None
    column: str = ""
    key: str = "model"
    tag: str = ""
    syntax: bool = False
    parser: str = ""  #: a constituency parser for `syntax`, in place of link-grammar
    most: int = 20
