"""Makers by name. Modules are imported when their maker is asked for; plug-ins add theirs by entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from creperie.core import load_plugin
from creperie.making.candidate import Maker
from creperie.making.options import MakerOptions
from creperie.making.source import Captions

#: Builds a maker from options; `captions` are all that will be made from, for makers that look around.
Factory = Callable[[str, MakerOptions, Captions], Maker]


class MakerEntry(NamedTuple):
    module: str
    factory: str
    help: str


MAKERS: dict[str, MakerEntry] = {
    "grammar:passive": MakerEntry(
        "creperie.making.grammar", "passive", "Active and passive, and both with roles exchanged."
    ),
    "grammar:dative": MakerEntry("creperie.making.grammar", "dative", "Ditransitive and dative, and both exchanged."),
    "grammar:with-against": MakerEntry(
        "creperie.making.grammar", "with_against", "With and against, and both exchanged."
    ),
    "rules:replace": MakerEntry(
        "creperie.making.replace", "replace", "A thing, an attribute or a relation replaced by another."
    ),
    "rules:swap": MakerEntry("creperie.making.swap", "swap", "Two things or attributes exchanged, if reversible."),
    "rules:add": MakerEntry("creperie.making.add", "add", "An object or an attribute added, length kept."),
    "rules:negate": MakerEntry("creperie.making.negate", "negate", "CREPE's four forms of negation."),
    "rules:rebuild": MakerEntry(
        "creperie.making.shuffle", "rebuild", "ARO and CREPE rebuilt: one foil of each of four types."
    ),
    "rules:vl-checklist": MakerEntry(
        "creperie.making.replace", "vl_checklist", "VL-CheckList's: any other word of its kind."
    ),
    "rules:shuffle": MakerEntry("creperie.making.shuffle", "shuffle", "ARO's four shuffles and the full one."),
    "content": MakerEntry(
        "creperie.making.content", "content_maker", "Nouns and adjectives only, against fluent captions (SADE)."
    ),
    "mine:spatial": MakerEntry("creperie.making.mine", "spatial_miner", "VISLA's spatial triplets, mined from VSR."),
    "mine:twins": MakerEntry(
        "creperie.making.twins", "twin_miner", "Captions of two images that differ in one phrase or in their order."
    ),
    "llm:replace-object": MakerEntry("creperie.making.llm.maker", "llm", "SugarCrepe's: a thing replaced by another."),
    "llm:replace-attribute": MakerEntry("creperie.making.llm.maker", "llm", "SugarCrepe's: an adjective replaced."),
    "llm:replace-relation": MakerEntry(
        "creperie.making.llm.maker", "llm", "SugarCrepe's: an action or a place replaced."
    ),
    "llm:swap-object": MakerEntry("creperie.making.llm.maker", "llm", "SugarCrepe's: two things change places."),
    "llm:swap-attribute": MakerEntry("creperie.making.llm.maker", "llm", "SugarCrepe's: two adjectives change places."),
    "llm:add-object": MakerEntry("creperie.making.llm.maker", "llm", "SugarCrepe's: a thing added, length kept."),
    "llm:add-attribute": MakerEntry(
        "creperie.making.llm.maker", "llm", "SugarCrepe's: an adjective added, length kept."
    ),
    "llm:paraphrase": MakerEntry("creperie.making.llm.maker", "llm", "SugarCrepe++'s second positive, validated."),
    "llm:enrich": MakerEntry("creperie.making.llm.maker", "llm", "SADE's richer captions (granularity)."),
}
PLUG_INS = "creperie.makers"


def build_maker(name: str, options: MakerOptions, captions: Captions) -> Maker:
    """The maker of this name."""
    return _factory(name)(name, options, captions)


def _factory(name: str) -> Factory:
    if name in MAKERS:
        entry = MAKERS[name]
        factory: Factory = getattr(import_module(entry.module), entry.factory)
        return factory
    loaded: Factory = load_plugin(PLUG_INS, "maker", name, MAKERS)
    return loaded
