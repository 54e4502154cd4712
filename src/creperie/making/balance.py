"""Draws that give nothing away.

The words that captions are written with are common and short; a replacement is, more often than not, rarer and longer,
and that alone would tell foils from captions. So a replacement is drawn only if another one has the opposite effect,
longer where the first is shorter and rarer where it is more common, and either of the two is as likely. A caption whose
replacements all lean to one side gets no foil: whatever was drawn, it would be told by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from creperie.lang import words, zipf

T = TypeVar("T")
Effect = tuple[int, ...]
#: Replacements that are looked at for one draw; more would only take time.
MOST = 40


def effect(caption: str, foil: str) -> Effect:
    """The signs of what an edit does to the number of words and of letters, to how common the words are in the mean,
    and to the rarest of them.

    >>> effect("a dog sleeps", "a dachshund sleeps")
    (0, 1, -1, -1)
    """
    before, after = words(caption), words(foil)
    known, new = [zipf(w) for w in before], [zipf(w) for w in after]
    return (
        _sign(len(after) - len(before)),
        _sign(len(foil) - len(caption)),
        _sign(_mean(new) - _mean(known)),
        _sign(min(new, default=0.0) - min(known, default=0.0)),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _sign(difference: float) -> int:
    return 0 if abs(difference) < 1e-9 else 1 if difference > 0 else -1


def drawn_evenly(found: Sequence[T], effects: Sequence[Effect], rng: Random) -> T | None:
    """One of those that have an opposite among them, such that either of the two is as likely; None where none has.

    >>> drawn_evenly(["longer"], [(0, 1, -1, 0)], Random(0)) is None
    True
    """
    groups: dict[Effect, list[T]] = {}
    for one, signs in zip(found, effects):
        groups.setdefault(signs, []).append(one)
    paired = {signs: groups[back] for signs in groups if (back := tuple(-s for s in signs)) in groups}
    if not paired:
        return None
    # an effect and its opposite have the same weight, however many replacements there are of each
    weights = [min(len(groups[signs]), len(others)) for signs, others in paired.items()]
    return rng.choice(groups[rng.choices(list(paired), weights)[0]])
