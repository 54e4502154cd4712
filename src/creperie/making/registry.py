"""Makers by name. Modules are imported when their maker is requested; plug-ins add makers by entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from creperie.core import load_plugin, packaged_toml
from creperie.making.options import MakerOptions
from creperie.making.pipeline import Maker
from creperie.making.source import Captions

#: A function that builds a maker; `captions` are all captions of the job, for makers that search among them.
Factory = Callable[[str, MakerOptions, Captions], Maker]


class MakerEntry(NamedTuple):
    module: str
    factory: str
    help: str
    needs: str = ""  #: what a user must have or name besides captions


MAKERS = {name: MakerEntry(**record) for name, record in packaged_toml("creperie.making", "makers.toml").items()}
PLUG_INS = "creperie.makers"


def build_maker(name: str, options: MakerOptions, captions: Captions) -> Maker:
    """Return the maker of this name."""
    entry = MAKERS.get(name)
    if entry is None:
        factory: Factory = load_plugin(PLUG_INS, "maker", name, MAKERS)
    else:
        factory = getattr(import_module(entry.module), entry.factory)
    return factory(name, options, captions)
