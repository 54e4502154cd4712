"""Makers by name. A module is imported when its maker is requested; plug-ins add makers by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from creperie.core import UsageError, load_plugin, packaged_toml
from creperie.making.candidate import Candidate, Proposal
from creperie.making.options import MakerOptions
from creperie.making.pipeline import Maker
from creperie.making.source import Captions, SourceCaption

#: A function that returns a false caption for a true one, or several, or None.
WriteFoils = Callable[[str], str | Sequence[str] | None]
#: A function that builds a maker; `captions` are all captions of the job, for makers that search among them.
Factory = Callable[[str, MakerOptions, Captions], Maker | WriteFoils]


class MakerEntry(NamedTuple):
    module: str
    factory: str
    help: str
    needs: str = ""  #: what a user must have or name besides captions


MAKERS = {name: MakerEntry(**record) for name, record in packaged_toml("creperie.making", "makers.toml").items()}
PLUG_INS = "creperie.makers"


def build_maker(name: str, options: MakerOptions, captions: Captions) -> Maker:
    """Return the maker with this name."""
    entry = MAKERS.get(name)
    if entry is None:
        factory: Factory = load_plugin(PLUG_INS, "maker", name, MAKERS)
    else:
        factory = getattr(import_module(entry.module), entry.factory)
    return as_maker(factory(name, options, captions), options)


@dataclass(frozen=True)
class FunctionMaker(Maker):
    """A maker that calls one function per caption."""

    function: WriteFoils

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        for source in sources:
            foils = self.function(source.text)
            texts: list[Any] = list(foils) if isinstance(foils, (list, tuple)) else [] if foils is None else [foils]
            if not all(isinstance(text, str) for text in texts):
                what = "the function does not return a caption, a list of captions or None"
                raise UsageError(what, where=self.name, hint="return the foils as text")
            made = [Candidate(source.id, text, "negative", self.name, self.name, "") for text in texts]
            yield Proposal(made, skipped="" if made else "no foil")


def as_maker(maker: Any, options: MakerOptions) -> Maker:
    """Return a maker unchanged, or a function wrapped as a maker; raise a UsageError for anything else."""
    if isinstance(maker, Maker):
        return maker
    kind = type(maker).__name__
    if not callable(maker):
        hint = "pass a maker's name, a creperie.making.Maker, or a function of a caption that returns foils or None"
        raise UsageError(f"{kind} is not a maker", hint=hint)
    own = getattr(maker, "__name__", kind)
    return FunctionMaker("function" if own == "<lambda>" else own, options, maker)
