"""Foils for training that were refined as benchmarks are: those stay that blind attackers cannot tell."""

from __future__ import annotations

from collections.abc import Mapping

from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import Progress, silent

#: attackers that need no model; the published grid balances two
ATTACKERS = ("length-words", "frequency")
HELD_OUT = ("length-chars",)


def keep_refined(
    foils: Mapping[str, tuple[str, ...]], captions: list[str], progress: Progress = silent
) -> dict[str, tuple[str, ...]]:
    """The foils of each type, one a caption, with those struck out ("") that a grid refinement of the type removes."""
    from creperie.refining import RefinePlan, refine

    bench = foil_bench(foils, captions)
    kept = refine(bench, RefinePlan(attackers=ATTACKERS, held_out=HELD_OUT), progress=progress).bench
    stay = {(item.subset, int(item.id)) for item in kept}
    return {
        name: tuple(text if (name, i) in stay else "" for i, text in enumerate(texts)) for name, texts in foils.items()
    }


def foil_bench(foils: Mapping[str, tuple[str, ...]], captions: list[str]) -> Benchmark:
    """Captions and foils as a benchmark without images, a subset a type."""
    items = [
        Item(str(i), name, (), (captions[i], text), choice(1, 1))
        for name, texts in foils.items()
        for i, text in enumerate(texts)
        if text
    ]
    return from_items("training-foils", items)
