"""Benchmarks with planted cues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from creperie.bench import Benchmark, Item, choice, from_items, save

NOUNS = [
    "dog",
    "cat",
    "man",
    "woman",
    "horse",
    "bird",
    "car",
    "boat",
    "tree",
    "chair",
    "table",
    "child",
    "girl",
    "lamp",
]
VERBS = ["sees", "holds", "finds", "follows", "carries", "watches", "paints", "draws"]
PLACES = ["park", "street", "kitchen", "garden", "field", "room", "house", "yard"]


def sentence(rng: np.random.Generator) -> tuple[str, str]:
    """A sentence and the same with its two nouns exchanged: neither looks truer than the other."""
    a, b = rng.choice(NOUNS, 2, replace=False)
    verb, place = rng.choice(VERBS), rng.choice(PLACES)
    return f"The {a} {verb} the {b} in the {place}.", f"The {b} {verb} the {a} in the {place}."


def planted(n: int, seed: int, *, period: float = 0.5, word: float = 0.0, longer: bool = False) -> list[Item]:
    """Items whose false caption ends in a period with probability `period` (0.5 is fair against the true one's half),
    holds a give-away word with probability `word`, and is longer, always, if asked for."""
    rng = np.random.Generator(np.random.PCG64(seed))
    items = []
    for i in range(n):
        true, false = sentence(rng)
        true = true if rng.random() < 0.5 else true[:-1]
        false = false if rng.random() < period else false[:-1]
        if rng.random() < word:
            false = false.replace("The ", "The lovely ", 1)
            true = true.replace("The ", "The simple ", 1)
        elif word and rng.random() < 0.3:
            false, true = false.replace("The ", "The simple ", 1), true.replace("The ", "The lovely ", 1)
        if longer:
            false = false.replace(" in the", " and a hat in the")
        items.append(Item(str(i), "planted", (f"{i}.jpg",), (true, false), choice(1, 1), {"kind": "ab"[i % 5 == 0]}))
    return items


@pytest.fixture
def make() -> Callable[..., list[Item]]:
    return planted


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    """A planted benchmark on disk, with one unsolvable item; the folder."""

    def write(n: int = 400, seed: int = 0, **cues: float) -> Path:
        bad = Item("bad", "planted", ("bad.jpg",), ("A dog runs.", "A dog runs."), choice(1, 1), {"kind": "a"})
        save(bench_of([*planted(n, seed, **cues), bad]), tmp_path / "bench")
        return tmp_path / "bench"

    return write


def bench_of(items: list[Item]) -> Benchmark:
    return from_items("planted", items)
