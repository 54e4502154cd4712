"""Draws that give nothing away.

The words that captions are written with are common and short; a replacement is, more often than not, rarer and longer,
and that alone would tell foils from captions. So replacements are drawn with such weights that their effects cancel
out: longer ones as often as shorter ones, rarer as often as more common, less likely as often as more likely. A caption
whose replacements all lean to one side gets no foil, because whatever was drawn would be found by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import numpy as np
from scipy.optimize import nnls

from creperie.lang import words, zipf

T = TypeVar("T")
Effect = tuple[int, ...]
#: Replacements that are looked at for one draw; more would only take time.
MOST = 40
#: How far the mean effect of a draw may lean to one side (0: not at all, 1: always): on likelihood, on the others.
FIRM_LEAN, LOOSE_LEAN = 0.34, 0.85
_FIRM = 30.0


def effect(caption: str, foil: str) -> Effect:
    """The signs of what an edit does to the number of words and of letters, to how common the words are in the mean,
    and to the rarest of them.

    >>> effect("a dog sleeps", "a dachshund sleeps")
    (0, 1, -1, -1)
    """
    before, after = words(caption), words(foil)
    known, new = [zipf(w) for w in before], [zipf(w) for w in after]
    return (
        sign(len(after) - len(before)),
        sign(len(foil) - len(caption)),
        sign(_mean(new) - _mean(known)),
        sign(min(new, default=0.0) - min(known, default=0.0)),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def sign(difference: float) -> int:
    return 0 if abs(difference) < 1e-9 else 1 if difference > 0 else -1


def drawn_evenly(
    found: Sequence[T], effects: Sequence[Effect], rng: Random, *, cost: Callable[[T], float] | None = None
) -> T | None:
    """One of them, drawn so that in the mean the effects cancel out; None where all lean to one side.

    Of those with the drawn effect, the one with the lowest cost (without `cost`, any).

    >>> drawn_evenly(["longer"], [(0, 1, -1, 0)], Random(0)) is None
    True
    """
    groups: dict[Effect, list[T]] = {}
    for one, signs in zip(found, effects):
        groups.setdefault(signs, []).append(one)
    weights = even_weights(list(groups))
    if weights is None:
        return None
    drawn = groups[rng.choices(list(groups), weights)[0]]
    return min(drawn, key=cost) if cost else rng.choice(drawn)


def even_weights(effects: Sequence[Effect]) -> list[float] | None:
    """How often each effect must be drawn so that they cancel out in the mean; None where they cannot.

    The last effect (how likely a language model finds the caption) must cancel out; the others may lean a little, for
    else few captions would get a foil.

    >>> even_weights([(0, 1, -1), (0, -1, 0), (0, 0, 1)])
    [0.3333, 0.3333, 0.3333]
    >>> even_weights([(0, 1), (0, 1)]) is None
    True
    """
    if not effects:
        return None
    table = np.array(list(zip(*effects)), dtype=float)
    rows = np.vstack([table[:-1], _FIRM * table[-1:], np.full((1, table.shape[1]), _FIRM)])
    wanted = np.zeros(len(rows))
    wanted[-1] = _FIRM
    weights, _ = nnls(rows, wanted)
    weights = weights / max(weights.sum(), 1e-12)
    leans = np.abs(table @ weights)
    if leans[-1] > FIRM_LEAN or (leans[:-1] > LOOSE_LEAN).any():
        return None
    return [round(float(w), 4) for w in weights]
