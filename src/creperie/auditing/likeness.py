"""How alike an item's captions are, in letters, words and structure; and how alike positives and negatives are as sets.

Lexical similarity is the character Levenshtein similarity of SugarCrepe++ and VISLA, word Jaccard beside it. Syntactic
similarity is the tree kernel on constituency trees, in the published asymmetric form and in a symmetric one, and SLS
is lexical times (published) syntactic similarity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.auditing.features import run_digests, token_digests
from creperie.auditing.pairs import ArrowTexts, CaptionShapes, caption_shapes, distinct, list_kinds
from creperie.bench import Benchmark
from creperie.core import DataError, parse_json, read_lines
from creperie.lang import (
    Tree,
    character_similarity,
    published_similarity,
    read_tree,
    tokens,
    tree_similarity,
    word_jaccard,
)


def read_trees(path: Path) -> dict[str, Tree]:
    """The trees of a file, by text."""
    trees: dict[str, Tree] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        record = parse_json(line, where)
        if not isinstance(record, dict) or not {"text", "tree"} <= record.keys():
            raise DataError("this line is not a record with text and tree", where=where)
        if not isinstance(record["text"], str):
            raise DataError("the text of this line is not text", where=where)
        trees[record["text"]] = read_tree(str(record["tree"]), where=where)
    return trees


#: A text to its tree, None where it has none.
TreeParser = Callable[[str], Tree | None]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Captions that are read at once.
WAITING = 1 << 13


@dataclass(frozen=True)
class SimilaritySpread:
    """A number over many pairs."""

    n: int
    mean: float
    quantiles: tuple[float, ...]  #: at 5, 25, 50, 75 and 95 %


def spread(values: Sequence[float] | np.ndarray) -> SimilaritySpread:
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return SimilaritySpread(0, float("nan"), (float("nan"),) * len(QUANTILES))
    return SimilaritySpread(len(known), float(known.mean()), tuple(float(q) for q in np.quantile(known, QUANTILES)))


@dataclass(frozen=True)
class Couple:
    """The similarities of one kind of caption pair: P1-N, P1-P2, N1-N2 …"""

    kind: str
    measures: dict[str, SimilaritySpread]


@dataclass(frozen=True)
class Overlap:
    """Positives and negatives of a subset as two piles of text."""

    positive_words: int  #: different words
    negative_words: int
    shared_words: float  #: Jaccard of the two vocabularies
    only_negative: dict[str, float]  #: share of the negatives' different n-grams that no positive has, by length
    only_positive: dict[str, float]


@dataclass(frozen=True)
class Doubles:
    """What a subset says twice. Ids of items, in order."""

    items: tuple[str, ...] = ()  #: same images and captions as an earlier item
    positives: tuple[str, ...] = ()  #: two true captions are the same text
    negatives: tuple[str, ...] = ()  #: two false captions are the same text
    both_roles: int = 0  #: texts that are true in one item and false in another


@dataclass(frozen=True)
class Likeness:
    """One subset's captions compared."""

    subset: str
    couples: tuple[Couple, ...]
    overlap: Overlap
    doubles: Doubles
    parsed: int = 0  #: items whose captions were parsed
    unparsed: int = field(default=0)  #: captions that have no tree


def likeness_of(bench: Benchmark, subset: str, *, parser: TreeParser | None = None, parse_most: int = 200) -> Likeness:
    """Compare the captions of a subset; with a parser also the structure of `parse_most` items spread over it."""
    bench = bench.only([subset])
    texts, shapes = caption_shapes(bench)
    rows = np.arange(0, len(bench) if parser else 0, max(1, -(-len(bench) // parse_most)))
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
        measures = {"levenshtein": spread(np.concatenate(letters)), "jaccard": spread(np.concatenate(words))}
        if parser:
            a, b = (spoken.of(side) for side in some.get(kind, (left[:0], right[:0])))
            measures |= _syntax(a, b, trees)
        couples.append(Couple(kind, measures))
    missing = sum(tree is None for tree in trees.values())
    piles = _piles(shapes)
    doubles = _doubles(bench, shapes, len(np.intersect1d(*piles)))
    return Likeness(subset, tuple(couples), _overlap(texts, *piles), doubles, len(rows), missing)


def _couples(shapes: CaptionShapes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Caption pairs by kind. Several negatives share the kind N: their number says nothing."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for _, matrix, mine in shapes:
        for (a, i), (b, j) in combinations(_roles(matrix), 2):
            left, right = found.get(f"{a}-{b}", (mine[:0, 0], mine[:0, 0]))
            found[f"{a}-{b}"] = np.r_[left, mine[:, i]], np.r_[right, mine[:, j]]
    return found


def _roles(matrix: np.ndarray) -> list[tuple[str, int]]:
    """What every caption is called, and which it is."""
    if len(matrix) > 1:  # several images: a caption is true of some and false of others
        return [(f"C{j + 1}", j) for j in range(matrix.shape[1])]
    named = [(f"P{n}" if true else "N", j) for j, (true, n) in enumerate(zip(matrix[0], np.cumsum(matrix[0])))]
    return sorted(named, key=lambda pair: (pair[0] == "N", pair[0]))


def _syntax(left: list[str], right: list[str], trees: dict[str, Tree | None]) -> dict[str, SimilaritySpread]:
    published, symmetric, joint = [], [], []
    lexical = character_similarity(left, right).tolist()
    for a, b, alike in zip(left, right, lexical):
        x, y = trees.get(a), trees.get(b)
        if x is None or y is None:
            continue
        published.append(published_similarity(x, y))
        symmetric.append(tree_similarity(x, y))
        joint.append(alike * published[-1])
    return {"syntactic": spread(published), "syntactic-symmetric": spread(symmetric), "sls": spread(joint)}


def _overlap(texts: ArrowTexts, true: np.ndarray, false: np.ndarray) -> Overlap:
    (a, *of_true), (b, *of_false) = (_digests(texts, pile) for pile in (true, false))
    only_true, only_false = (
        {f"{n}-grams": len(np.setdiff1d(p, q)) / len(p) if len(p) else float("nan") for n, p, q in zip((1, 2, 3), x, y)}
        for x, y in ((of_true, of_false), (of_false, of_true))
    )
    both = len(np.union1d(a, b))
    return Overlap(len(a), len(b), (len(a) + len(b) - both) / both if both else float("nan"), only_false, only_true)


def _piles(shapes: CaptionShapes) -> tuple[np.ndarray, np.ndarray]:
    """The captions in the role of true ones and of false ones; a two-image item's captions are both."""
    none = np.zeros(0, np.int64)
    true = [mine[:, line].ravel() for _, matrix, mine in shapes for line in matrix]
    false = [mine[:, ~line].ravel() for _, matrix, mine in shapes for line in matrix]
    return np.unique(np.concatenate([none, *true])), np.unique(np.concatenate([none, *false]))


def _digests(texts: ArrowTexts, pile: np.ndarray) -> list[np.ndarray]:
    """The different words, and the different runs of 1, 2 and 3 words and marks, in eight bytes each."""
    found: list[list[np.ndarray]] = [[np.zeros(0, np.uint64)] for _ in range(4)]
    for start in range(0, len(pile), WAITING):
        cut = [tokens(t) for t in texts.of(pile[start : start + WAITING])]
        flat = [token for own in cut for token in own]
        digest, at, size = run_digests(token_digests(flat), np.array([*map(len, cut)], np.int64), 3)
        word = np.array([t[0].isalnum() or t[0] == "_" for t in flat], bool)[at]
        for n, mine in enumerate(((size == 1) & word, size == 1, size == 2, size == 3)):
            found[n].append(np.unique(digest[mine]))
    return [np.unique(np.concatenate(parts)) for parts in found]


def _doubles(bench: Benchmark, shapes: CaptionShapes, both_roles: int) -> Doubles:
    kinds = []
    for column in ("images", "captions", "match"):
        offsets, values = bench.ragged(column)
        codes = values.to_numpy(zero_copy_only=False) if column == "match" else distinct(values)[1]
        kinds.append(list_kinds(offsets, codes))
    again = np.ones(len(bench), dtype=bool)
    again[np.unique(np.stack(kinds, axis=1), axis=0, return_index=True)[1]] = False
    twice = np.zeros((2, len(bench)), dtype=bool)
    for items, matrix, mine in shapes:
        for side in (0, 1) if len(matrix) == 1 else ():
            for i, j in combinations(np.flatnonzero(matrix[0] == (side == 0)), 2):
                twice[side, items[mine[:, i] == mine[:, j]]] = True
    ids = bench.column("id")
    first, positives, negatives = (tuple(ids.filter(pa.array(mask)).to_pylist()) for mask in (again, *twice))
    return Doubles(first, positives, negatives, both_roles)


@cache
def linkage_tree(text: str) -> Tree | None:
    """A caption's tree by link-grammar; None where it cannot parse it."""
    from creperie.lang import parse_linkage, read_linkage

    found = parse_linkage(text)
    return read_linkage(found.tree) if found.tree else None
