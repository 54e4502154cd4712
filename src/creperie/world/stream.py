"""Pictures and captions without end, for training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.core import UsageError, unknown
from creperie.world.dice import Dice, key_of
from creperie.world.foils import CLEAN
from creperie.world.picture import render
from creperie.world.scene import Scene
from creperie.world.splits import SPLITS
from creperie.world.twins import find_twins
from creperie.world.wording import say, two_wordings


@dataclass(frozen=True, slots=True)
class WorldExample:
    """One picture for training: two true captions in different words, and a hard negative (a certified foil)."""

    image: np.ndarray  #: (size, size, 3) uint8
    caption: str
    paraphrase: str
    foil: str
    kind: str
    scene: Scene


def training_pairs(
    n: int, seed: int = 0, split: str = "train", *, size: int = 64, kinds: Sequence[str] = tuple(CLEAN)
) -> Iterator[WorldExample]:
    """n examples, the same for the same seed and split. Twins come one after the other: batches hold both.

    >>> first, second = training_pairs(2, seed=1)
    >>> first.image.shape, first.caption == second.foil
    ((64, 64, 3), True)
    """
    if n < 0:
        raise UsageError(f"cannot make {n} examples")
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    for kind in kinds:
        if kind not in CLEAN:
            raise unknown("clean kind", kind, CLEAN)
    return _examples(n, Dice(seed, key_of(f"pairs {split}")), split, size, tuple(kinds))


def _examples(n: int, dice: Dice, split: str, size: int, kinds: tuple[str, ...]) -> Iterator[WorldExample]:
    made = 0
    while made < n:
        kind = dice.pick(kinds)
        twins = find_twins(CLEAN[kind].propose, dice, split)
        first, second = two_wordings(kind, twins, dice)
        for side in dice.shuffled((0, 1)):
            if made == n:
                return
            image = render(twins.scenes[side], size)
            caption, other = say(twins, side, first), say(twins, side, second)
            yield WorldExample(image, caption, other, say(twins, 1 - side, first), kind, twins.scenes[side])
            made += 1
