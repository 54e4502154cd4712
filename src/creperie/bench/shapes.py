"""The distinct match matrices of a benchmark, and the accuracy of random guessing on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from creperie.bench.benchmark import Benchmark
from creperie.bench.item import match_rows
from creperie.bench.rows import list_codes, pair_codes


@dataclass(frozen=True)
class MatchShape:
    """A match matrix and the number of items that have it. Its rows are images; without images, there is one row."""

    images: int
    captions: int
    match: tuple[tuple[bool, ...], ...]
    items: int

    @property
    def text(self) -> str:
        """The matrix as text, in the usual notation.

        >>> MatchShape(2, 2, ((True, False), (False, True)), 400).text
        '[[1,0],[0,1]]'
        """
        return f"[{','.join('[' + ','.join(str(int(cell)) for cell in row) + ']' for row in self.match)}]"

    @property
    def chance(self) -> float:
        """The probability that random scores rank all true captions above all false ones in every row.

        >>> MatchShape(1, 3, ((True, True, False),), 1).chance
        0.3333333333333333
        """
        return math.prod(1 / math.comb(len(row), sum(row)) for row in self.match)


def shape_codes(bench: Benchmark) -> tuple[np.ndarray, list[MatchShape]]:
    """Return an array and a list. The list has the distinct shapes in order of first use; the array has, for each item,
    the position of its shape in the list.
    """
    match = bench.ragged("match")
    images = np.diff(bench.ragged("images")[0])
    captions = np.diff(match[0]) // np.maximum(images, 1)  # without reading the captions
    codes = pair_codes(images, captions, list_codes(match))
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    shapes = []
    for row, items in zip(first, counts, strict=True):
        rows, width = max(1, int(images[row])), int(captions[row])
        flat = match[1].slice(match[0][row], rows * width).to_pylist()
        shapes.append(MatchShape(int(images[row]), width, match_rows(flat, rows), int(items)))
    return codes, shapes


def match_shapes(bench: Benchmark) -> list[MatchShape]:
    """Return the distinct match matrices of a benchmark, the most frequent first."""
    counts: dict[MatchShape, int] = {}
    for part in _pieces(bench):
        for shape in shape_codes(part)[1]:
            plain = replace(shape, items=0)
            counts[plain] = counts.get(plain, 0) + shape.items
    return sorted((replace(shape, items=n) for shape, n in counts.items()), key=lambda s: -s.items)


def match_chance(bench: Benchmark) -> dict[str, float]:
    """Return the image-to-text accuracy that random guessing has on each subset."""
    totals: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for part in _pieces(bench):
        codes, kinds = shape_codes(part)
        levels = np.array([s.chance for s in kinds])
        subset = part.column("subset").combine_chunks().dictionary_encode()
        names, of = subset.dictionary.to_pylist(), subset.indices.to_numpy()
        sums = np.bincount(of, weights=levels[codes], minlength=len(names))
        for name, total, n in zip(names, sums, np.bincount(of, minlength=len(names)), strict=True):
            totals[name] = totals.get(name, 0.0) + float(total)
            sizes[name] = sizes.get(name, 0) + int(n)
    return {name: total / sizes[name] for name, total in totals.items()}


def _pieces(bench: Benchmark) -> Iterator[Benchmark]:
    """Yield the benchmark in pieces that fit into memory. They have only the columns from which shapes are computed."""
    for piece in bench.pieces(["subset", "images", "match"]):
        yield Benchmark(bench.name, piece)
