"""Draws that give nothing away.

The words that captions are written with are common and short; a replacement is, more often than not, rarer and longer,
and that alone would tell foils from captions. So replacements are drawn with such weights that their effects cancel
out over many captions: longer ones as often as shorter ones, rarer as often as more common, less likely as often as
more likely. A caption whose replacements all lean to one side gets its foil as well: others lean the other way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import TypeVar

from creperie.lang import words, zipf

T = TypeVar("T")
Effect = tuple[int, ...]
#: Replacements that are looked at for one draw; more would only take time.
MOST = 40
#: What tips the scales, by kind: words, letters, mean frequency, rarest word, likelihood. Chosen such that captions of
#: COCO and Flickr8k are told by none of them.
TILTS: Mapping[str, Sequence[float]] = {
    "object": (0, -0.6, 0.35, 0, 0.6),
    "attribute": (0, 0, 0.5, 0, 0.3),
    "relation": (0, 0, 0.5, 0, -0.6),
    "add-object": (0, 1.6, 0, 0, -0.2),
    "add-attribute": (0, -1.5, 3, 0, -1),
}
#: A foil that is less likely than its caption is kept with probability exp(gap / this).
SOFTENED = {"add-object": 3.5, "add-attribute": 3.0, "relation": 3.5, "object": 3.0, "attribute": 5.0}
#: A relation is kept with probability (how often people say what comes / what goes) to this power.
RETURNED = 0.4
#: Foils that are longer, or whose words are rarer in the mean, are kept with these probabilities.
KEPT: Mapping[str, tuple[float, float]] = {"add-attribute": (0.25, 0.35)}


def effect(caption: str, foil: str) -> Effect:
    """The signs of what an edit does to the number of words and of letters, to how common the words are in the mean,
    and to the rarest of them.

    >>> effect("a dog sleeps", "a dachshund sleeps")
    (0, 1, -1, -1)
    """
    return tuple(sign(new - old) for old, new in zip(_measured(caption), _measured(foil)))


@lru_cache(maxsize=256)
def _measured(text: str) -> tuple[float, ...]:
    values = [zipf(w) for w in words(text)] or [0.0]
    return len(words(text)), len(text), sum(values) / len(values), min(values)


def sign(difference: float) -> int:
    return 0 if abs(difference) < 1e-9 else 1 if difference > 0 else -1


def drawn_evenly(
    found: Sequence[T],
    effects: Sequence[Effect],
    rng: Random,
    *,
    tilt: Sequence[float] = (),
    cost: Callable[[T], float] | None = None,
) -> T | None:
    """One of them: first an effect, with weights exp(tilt · effect), then the one with the lowest cost (or any).

    >>> drawn_evenly(["longer", "shorter"], [(0, 1), (0, -1)], Random(0), tilt=(0, -9))
    'shorter'
    """
    groups: dict[Effect, list[T]] = {}
    for one, signs in zip(found, effects):
        groups.setdefault(signs, []).append(one)
    if not groups:
        return None
    weights = [math.exp(sum(t * sign for t, sign in zip(tilt, signs))) for signs in groups]
    drawn = groups[rng.choices(list(groups), weights)[0]]
    return min(drawn, key=cost) if cost else rng.choice(drawn)
