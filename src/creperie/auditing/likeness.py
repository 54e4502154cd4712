"""How alike an item's captions are, in letters, words and structure; and how alike positives and negatives are as sets.

Lexical similarity is the character Levenshtein similarity of SugarCrepe++ and VISLA, word Jaccard beside it. Syntactic
similarity is the tree kernel on constituency trees, in the published asymmetric form and in a symmetric one, and SLS
is lexical times (published) syntactic similarity.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from creperie.bench import Benchmark, Item
from creperie.core import DataError
from creperie.lang import (
    Tree,
    character_similarity,
    ngrams,
    published_similarity,
    read_tree,
    tokens,
    tree_similarity,
    word_jaccard,
    words,
)


def read_trees(path: Path) -> dict[str, Tree]:
    """The trees of a file, by text."""
    trees: dict[str, Tree] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                record = json.loads(line.decode("utf-8"))
                text, brackets = record["text"], record["tree"]
            except (ValueError, KeyError, TypeError, RecursionError) as e:
                raise DataError("this line is not a record with text and tree", where=where) from e
            if not isinstance(text, str):
                raise DataError("the text of this line is not text", where=where)
            trees[text] = read_tree(str(brackets), where=where)
    return trees


#: A text to its tree, None where it has none.
TreeParser = Callable[[str], Tree | None]
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: How many digests of n-grams wait to be put in order.
WAITING = 1 << 20


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
    items = list(bench.only([subset]))
    step = max(1, -(-len(items) // parse_most))
    sample = items[::step] if parser else []
    trees: dict[str, Tree | None] = {}
    if parser:
        trees = {text: parser(text) for item in sample for text in dict.fromkeys(item.captions)}
    couples = []
    for kind, (left, right) in sorted(_couples(items).items()):
        measures = {
            "levenshtein": spread(character_similarity(left, right)),
            "jaccard": spread([word_jaccard(a, b) for a, b in zip(left, right)]),
        }
        if parser:
            measures |= _syntax(*_couples(sample).get(kind, ([], [])), trees)
        couples.append(Couple(kind, measures))
    missing = sum(tree is None for tree in trees.values())
    return Likeness(subset, tuple(couples), _overlap(items), _doubles(items), len(sample), missing)


def _couples(items: Iterable[Item]) -> dict[str, tuple[list[str], list[str]]]:
    """Caption pairs by kind. Several negatives share the kind N: their number says nothing."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for item in items:
        roles = list(_roles(item))
        for (a, left), (b, right) in combinations(roles, 2):
            pile = found.setdefault(f"{a}-{b}", ([], []))
            pile[0].append(left)
            pile[1].append(right)
    return found


def _roles(item: Item) -> Iterable[tuple[str, str]]:
    if len(item.match) > 1:  # several images: a caption is true of some and false of others
        return [(f"C{j + 1}", caption) for j, caption in enumerate(item.captions)]
    number = 0
    named = []
    for caption, true in zip(item.captions, item.match[0]):
        number += bool(true)
        named.append((f"P{number}" if true else "N", caption))
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


def _overlap(items: Sequence[Item]) -> Overlap:
    true, false = _piles(items)
    a, b = ({w for t in pile for w in words(t)} for pile in (true, false))
    only_true, only_false = {}, {}
    for n in (1, 2, 3):
        p, q = (_grams(pile, n) for pile in (true, false))
        shared = len(np.intersect1d(p, q, assume_unique=True))
        only_true[f"{n}-grams"] = (len(p) - shared) / len(p) if len(p) else float("nan")
        only_false[f"{n}-grams"] = (len(q) - shared) / len(q) if len(q) else float("nan")
    return Overlap(len(a), len(b), len(a & b) / len(a | b) if a | b else float("nan"), only_false, only_true)


def _piles(items: Iterable[Item]) -> tuple[list[str], list[str]]:
    """The captions in the role of true ones and of false ones; a two-image item's captions are both."""
    true: list[str] = []
    false: list[str] = []
    for item in items:
        for row in item.match:
            for caption, match in zip(item.captions, row):
                (true if match else false).append(caption)
    return list(dict.fromkeys(true)), list(dict.fromkeys(false))


def _grams(texts: Iterable[str], n: int) -> np.ndarray:
    """The different n-grams, as their digests: eight bytes each, where their letters would take a hundred."""
    found, waiting = np.zeros(0, np.int64), array("q")
    for text in texts:
        waiting.extend(hash(g) for g in ngrams(tokens(text), n) if g.count(" ") == n - 1)
        if len(waiting) > WAITING:
            found, waiting = np.union1d(found, np.array(waiting, np.int64)), array("q")
    return np.union1d(found, np.array(waiting, np.int64))


def _doubles(items: Sequence[Item]) -> Doubles:
    seen: set[tuple[object, ...]] = set()
    again, positives, negatives = [], [], []
    for item in items:
        key = (item.images, item.captions, item.match)
        if key in seen:
            again.append(item.id)
        seen.add(key)
        if len(item.match) == 1:
            if len(set(item.positives)) < len(item.positives):
                positives.append(item.id)
            if len(set(item.negatives)) < len(item.negatives):
                negatives.append(item.id)
    true, false = _piles(items)
    return Doubles(tuple(again), tuple(positives), tuple(negatives), len(set(true) & set(false)))


@cache
def linkage_tree(text: str) -> Tree | None:
    """A caption's tree by link-grammar; None where it cannot parse it."""
    from creperie.lang import parse_linkage, read_linkage

    found = parse_linkage(text)
    return read_linkage(found.tree) if found.tree else None
