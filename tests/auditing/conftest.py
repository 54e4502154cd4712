"""Planted benchmarks: captions made by hand and by rule, whose leaks are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from creperie.bench import Benchmark, Item, choice, from_items

ANIMALS = ("dog", "cat", "horse", "cow", "sheep", "bear", "goat", "duck", "crow", "frog")
PLACES = ("table", "bench", "road", "field", "boat", "bed", "roof", "hill", "stage", "rug")
COLOURS = ("red", "blue", "green", "black", "white", "brown", "grey", "pink")

#: From a fair sentence and a random generator to the captions of an item, the true one first.
Plant = Callable[[str, str, np.random.Generator], tuple[str, ...]]


def planted_benchmark(plant: Plant, n: int = 240, *, positives: int = 1, subset: str = "planted") -> Benchmark:
    """n items, two an image. True and false captions are drawn from the same sentences; then the leak is planted."""
    rng = np.random.Generator(np.random.PCG64(1))
    scenes = [scene for scene in product(COLOURS, ANIMALS, COLOURS, PLACES) if scene[0] != scene[2]]
    items = []
    for i in range(n):
        c, a, d, p = scenes[rng.integers(len(scenes))]
        one, other = f"A {c} {a} on a {d} {p}.", f"A {d} {a} on a {c} {p}."
        true, false = (one, other) if rng.random() < 0.5 else (other, one)
        captions = plant(true, false, rng)
        match = choice(positives, len(captions) - positives)
        items.append(Item(str(i), subset, (f"{i // 2}.jpg",), captions, match))
    return from_items("planted", items)


@pytest.fixture
def planted() -> Callable[..., Benchmark]:
    return planted_benchmark
