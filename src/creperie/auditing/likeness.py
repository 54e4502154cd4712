"""Similarity of the captions within an item: of their characters, words and syntactic structure.

Lexical similarity is measured by the Jaccard index of words and by the character-level Levenshtein similarity of
SugarCrepe++ and VISLA. Syntactic similarity is the tree kernel on constituency trees, both in its published asymmetric
form and in a symmetric one. SLS is lexical similarity times (published) syntactic similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pyarrow as pa

from creperie.auditing.measure import Distribution, distribution
from creperie.auditing.pairs import CaptionShapes, caption_shapes
from creperie.bench import Benchmark
from creperie.lang import (
    Tree,
    character_similarity,
    published_similarity,
    tree_similarity,
    word_jaccard,
)

#: A function from a text to its tree; None if it cannot be parsed.
TreeParser = Callable[[str], Tree | None]
#: Caption pairs per batch.
WAITING = 1 << 13
#: Items whose captions are parsed, at most.
PARSED = 200


@dataclass(frozen=True)
class Couple:
    """The similarities of one kind of caption pair. P1-P2 compares the first and the second true caption, P1-N the
    first true caption with a false one, N-N two false ones.
    """

    kind: str
    measures: dict[str, Distribution]


@dataclass(frozen=True)
class Likeness:
    """The similarities between the captions of one subset."""

    subset: str
    couples: tuple[Couple, ...]
    parsed: int = 0  #: items whose captions were parsed
    unparsed: int = 0  #: captions that have no tree


def likeness_of(bench: Benchmark, subset: str, *, parser: TreeParser | None) -> Likeness:
    """Return the similarities of a subset's captions. With a parser, similarities of syntax trees are included; these
    are computed on a small sample of the items.
    """
    bench = bench.only([subset])
    texts, shapes = caption_shapes(bench)
    rows = np.arange(0, len(bench) if parser else 0, max(1, -(-len(bench) // PARSED)))
    sample = bench.with_table(bench.table.take(pa.array(rows)), "sample") if parser else bench
    spoken, sampled = caption_shapes(sample) if parser else (texts, [])
    trees = {text: parser(text) for text in spoken} if parser else {}
    some = _couples(sampled)
    couples = []
    for kind, (left, right) in sorted(_couples(shapes).items()):
        letters, words = [np.zeros(0)], [np.zeros(0)]
        for start in range(0, len(left), WAITING):
            a, b = (texts.of(side[start : start + WAITING]) for side in (left, right))
            letters.append(character_similarity(a, b))
            words.append(np.array([word_jaccard(x, y) for x, y in zip(a, b)]))
        values = {"levenshtein": np.concatenate(letters), "jaccard": np.concatenate(words)}
        if parser:
            a, b = (spoken.of(side) for side in some.get(kind, (left[:0], right[:0])))
            values |= _syntax(a, b, trees)
        couples.append(Couple(kind, {name: distribution(of_pairs) for name, of_pairs in values.items()}))
    return Likeness(subset, tuple(couples), len(rows), sum(tree is None for tree in trees.values()))


def _couples(shapes: CaptionShapes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the pairs of captions of each kind, such as P1-N. All false captions are called N, as their order has no
    meaning.
    """
    couples: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for _, matrix, texts in shapes:
        for (a, i), (b, j) in combinations(_roles(matrix), 2):
            left, right = couples.get(f"{a}-{b}", (texts[:0, 0], texts[:0, 0]))
            couples[f"{a}-{b}"] = np.r_[left, texts[:, i]], np.r_[right, texts[:, j]]
    return couples


def _roles(matrix: np.ndarray) -> list[tuple[str, int]]:
    """Return the name and the index of every caption. True captions are called P1, P2 … and false ones N. The captions
    of an item with several images are called C1, C2 …
    """
    if len(matrix) > 1:  # several images: a caption is true of some and false of others
        return [(f"C{j + 1}", j) for j in range(matrix.shape[1])]
    named = [(f"P{n}" if true else "N", j) for j, (true, n) in enumerate(zip(matrix[0], np.cumsum(matrix[0])))]
    return sorted(named, key=lambda pair: (pair[0] == "N", pair[0]))


def _syntax(left: list[str], right: list[str], trees: dict[str, Tree | None]) -> dict[str, np.ndarray]:
    """Return the similarities of the caption pairs (`left[i]`, `right[i]`) by three measures: the published tree
    kernel, the symmetric one, and SLS. Pairs with a caption that has no tree are left out.
    """
    rows = [np.zeros((0, 3))]
    for a, b, alike in zip(left, right, character_similarity(left, right)):
        x, y = trees.get(a), trees.get(b)
        if x is not None and y is not None:
            published = published_similarity(x, y)
            rows.append(np.array([[published, tree_similarity(x, y), alike * published]]))
    return dict(zip(("syntactic", "syntactic-symmetric", "sls"), np.concatenate(rows).T))


@cache
def linkage_tree(text: str) -> Tree | None:
    """Return a caption's link-grammar tree; None if the caption cannot be parsed."""
    from creperie.lang import parse_linkage, read_linkage

    linkage = parse_linkage(text)
    return read_linkage(linkage.tree) if linkage.tree else None
