"""The words method. If a caption has several foils, one of them is chosen so that word counts are balanced."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from creperie.auditing import text_asks
from creperie.bench import Item
from creperie.core import Progress
from creperie.lang import words
from creperie.refining.pair import symmetric_part
from creperie.refining.select import Choice, ChoiceSettings, ItemSurplus, RefinementMethod, SelectionPool


def surplus_of_words(item: Item) -> ItemSurplus:
    """Return a number for each word and each pair of neighbouring words in an item: how often it occurs in true
    captions, minus how often in false ones.
    """
    surplus: Counter[tuple[str, ...]] = Counter()
    for true, false in text_asks(item):
        surplus.update(_grams(true))
        surplus.subtract(_grams(false))
    pairs = tuple((("words", *key), n) for key, n in sorted(surplus.items()) if n)
    return ItemSurplus(pairs, "\n".join((*item.images, "", *item.positives)))


def _grams(text: str) -> Counter[tuple[str, ...]]:
    row = ["", *words(text), ""]
    return Counter([*((w,) for w in row), *pairwise(row)])


def _choose(pool: SelectionPool, settings: ChoiceSettings, progress: Progress) -> Choice:
    keep = symmetric_part(pool.surplus, settings.time_limit, settings.seed)
    return Choice(keep, (("all", len(keep)), ("even", int(keep.sum()))))


def _detail(pool: SelectionPool, item: int) -> str:
    words = [(key[1], n) for key, n in pool.surplus[item].pairs if len(key) == 2]
    sides = (("true", 1), ("false", -1))
    return "; ".join(f"{what}: {', '.join(w for w, n in words if n * s > 0)}" for what, s in sides)


METHOD = RefinementMethod(
    name="words",
    does="choose one of several foils per caption so that word counts balance",
    reason="words",
    why="with it, words or word pairs would be in true or in false captions more often than by chance",
    choose=_choose,
    attackers=("length-words", "length-chars", "surface", "frequency"),  # only measured
    surplus=surplus_of_words,
    detail=_detail,
)
