"""Makers by name. Modules are imported when their maker is asked for; plug-ins add theirs by entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import NamedTuple

from creperie.errors import unknown
from creperie.make.candidate import Maker
from creperie.make.options import Options
from creperie.make.source import Captions

#: Builds a maker from options; `captions` are all that will be made from, for makers that look around.
Factory = Callable[[str, Options, Captions], Maker]


class Entry(NamedTuple):
    module: str
    factory: str
    help: str


MAKERS: dict[str, Entry] = {
    "grammar:passive": Entry("creperie.make.grammar", "passive", "Active and passive, and both with roles exchanged."),
    "grammar:dative": Entry("creperie.make.grammar", "dative", "Ditransitive and dative, and both exchanged."),
    "grammar:with-against": Entry("creperie.make.grammar", "with_against", "With and against, and both exchanged."),
    "rules:replace": Entry(
        "creperie.make.replace", "replace", "CREPE's atomic foils: a word replaced by a related one."
    ),
    "rules:swap": Entry("creperie.make.swap", "swap", "Two nouns, adjectives or noun phrases exchanged."),
    "rules:negate": Entry("creperie.make.negate", "negate", "CREPE's four forms of negation."),
    "rules:rebuild": Entry(
        "creperie.make.rebuild", "rebuild", "ARO and CREPE rebuilt: one foil of each of four types."
    ),
    "rules:vl-checklist": Entry("creperie.make.replace", "vl_checklist", "VL-CheckList's: any other word of its kind."),
    "rules:shuffle": Entry("creperie.make.shuffle", "shuffle", "ARO's four shuffles and the full one."),
    "content": Entry("creperie.make.content", "content", "Nouns and adjectives only, against fluent captions (SADE)."),
    "mine:spatial": Entry("creperie.make.mine", "spatial_miner", "VISLA's spatial triplets, mined from VSR."),
    "llm:replace-object": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: a thing replaced by another."),
    "llm:replace-attribute": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: an adjective replaced."),
    "llm:replace-relation": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: an action or a place replaced."),
    "llm:swap-object": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: two things change places."),
    "llm:swap-attribute": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: two adjectives change places."),
    "llm:add-object": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: a thing added, length kept."),
    "llm:add-attribute": Entry("creperie.make.llm.maker", "llm", "SugarCrepe's: an adjective added, length kept."),
    "llm:paraphrase": Entry("creperie.make.llm.maker", "llm", "SugarCrepe++'s second positive, validated."),
    "llm:enrich": Entry("creperie.make.llm.maker", "llm", "SADE's richer captions (granularity)."),
}
PLUG_INS = "creperie.makers"


def build(name: str, options: Options, captions: Captions) -> Maker:
    """The maker of this name."""
    return _factory(name)(name, options, captions)


def _factory(name: str) -> Factory:
    if name in MAKERS:
        entry = MAKERS[name]
        factory: Factory = getattr(import_module(entry.module), entry.factory)
        return factory
    plugged = {e.name: e for e in entry_points(group=PLUG_INS)}
    if name in plugged:
        loaded: Factory = plugged[name].load()
        return loaded
    raise unknown("maker", name, [*MAKERS, *plugged])
