"""Small benchmarks of captions with foils."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from creperie.bench import Benchmark, Item, choice, from_items


def foil_items(texts: Iterable[Sequence[str]], subset: str = "s", images: str = "", true: int = 1) -> list[Item]:
    """An item per row of captions, the true ones first; `images="{}.png"` gives each a picture of its number."""
    return [
        Item(str(k), subset, (images.format(k),) if images else (), tuple(row), choice(true, len(row) - true))
        for k, row in enumerate(texts)
    ]


def foil_bench(texts: Iterable[Sequence[str]], name: str = "b", **how: object) -> Benchmark:
    """These items as a benchmark."""
    return from_items(name, foil_items(texts, **how))  # type: ignore[arg-type]
