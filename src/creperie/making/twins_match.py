"""Twin mining: which captions are compared, what the evidence is that each is false of the other's image, and which
pairs are chosen.

Captions are neighbours if they share a *key*: all their words, sorted (the order key), or the words before and after a
span of one or two words (a deletion key). Twins of near-duplicate photographs are dropped, and no image or caption is
used twice within a kind. The evidence is `certain`, `likely` or `unchecked`. It comes from, in this order:

- labels: people found a caption false of the other image (VSR); if they found it true, the pair is rejected;
- exclusion: the two words cannot both be true (colours, numbers, opposites, disjoint classes);
- other captions of the two images. They are *silent* if each image has enough of them and none has the word that only
  its twin's caption has. They *confirm* the difference if, for each image, some of them have the word that only its own
  caption has.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from creperie.bench import ImageError, ImageStore, open_image
from creperie.core import installed
from creperie.making.twins_words import Contrast, words_meaning, words_of

#: Minimum number of other captions of each image for their silence to count as evidence.
WITNESSES = 2


@dataclass(frozen=True)
class CrossedCell:
    """A caption combined with the image of its twin: the label that people gave this combination, and the other true
    captions of that image.
    """

    label: bool | None  #: whether people found it true; None if they were not asked
    others: tuple[frozenset[str], ...]  #: lemmas in each other caption of the image


@dataclass(frozen=True)
class Evidence:
    """How certain it is that each of two captions is false of the other's image (`level`), and why (`basis`). If one
    may be true of the other's image, both are empty and `reason` says why it may be true.
    """

    level: str = ""
    basis: str = ""
    reason: str = ""


def weigh(contrast: Contrast | None, cells: Sequence[CrossedCell], shared: Collection[str] = ()) -> Evidence:
    """Return the evidence that each of two captions is false of the other's image. The first of the `cells` combines
    the right caption with the left image, the second the left caption with the right image.

    `shared` are the words that occur in both captions.
    """
    if any(cell.label for cell in cells):
        return Evidence(reason="people found a caption true of the other image")
    labelled = sum(cell.label is False for cell in cells)
    if contrast is None:
        return (
            Evidence("certain", "labels of both crossed cells") if labelled == 2 else Evidence("unchecked", "nothing")
        )
    by_logic = contrast.name.startswith(("exchanged", "opposite"))  # other captions would use other words
    basis = [f"{contrast.name}: {contrast.left} ↔ {contrast.right}"]
    if labelled:
        basis.append("labels of both crossed cells" if labelled == 2 else "the label of one crossed cell")
    silent = confirmed = 0
    for cell, own, twin in zip(cells, (contrast.left, contrast.right), (contrast.right, contrast.left)):
        if by_logic:
            continue
        ours, theirs = words_meaning(own, contrast.name), words_meaning(twin, contrast.name)
        if (theirs - ours) & set(shared):
            return Evidence(reason="both captions contain the twin's word elsewhere")
        if any((theirs - ours) & other_words for other_words in cell.others):
            return Evidence(reason="another caption of the image says the twin's word")
        silent += len(cell.others) >= WITNESSES
        confirmed += any((ours - theirs) & other_words for other_words in cell.others)
    if silent == 2:
        basis.append(f"{len(cells[0].others)} + {len(cells[1].others)} other captions do not say it")
    if confirmed == 2:
        basis.append("other captions of both images confirm it")
    certain = labelled == 2 or silent == confirmed == 2
    level = "certain" if certain else "likely" if labelled or silent == 2 or by_logic else "unchecked"
    return Evidence(level, "; ".join(basis))


#: Photographs whose 256-bit difference hashes differ in at most this many bits show the same scene.
NEAR_BITS = 40
_SIDE = 16
#: Exact matching takes cubic time; larger components get a greedy maximal matching, best edges first.
EXACT_NODES = 1_500


def difference_hash(store: ImageStore, reference: str) -> np.ndarray | None:
    """Return 256 bits that describe a photograph: for each of 16 × 16 patches, whether it is darker than the patch to
    its right. None if the image is unreadable.
    """
    try:
        image = open_image(store, reference)
    except ImageError:
        return None
    grey = np.asarray(image.convert("L").resize((_SIDE + 1, _SIDE)), np.int16)
    return (grey[:, 1:] > grey[:, :-1]).ravel()


@dataclass(frozen=True)
class Edge:
    """A pair of twins as an edge between its two images. The better the evidence for the twins, the lower the `rank`; 0
    is the best.
    """

    left: Hashable
    right: Hashable
    rank: int = 0


def matched(edges: Sequence[Edge]) -> list[int]:
    """Return the indices of edges that share no node: as many as possible and, among such choices, the best ranked.

    >>> matched([Edge("b", "c"), Edge("a", "b", 1), Edge("c", "d", 1)])
    [1, 2]
    """
    nx = installed("networkx")
    graph = nx.Graph()
    for number, edge in enumerate(edges):
        known = graph.get_edge_data(edge.left, edge.right)
        if edge.left != edge.right and (known is None or edge.rank < known["rank"]):
            graph.add_edge(edge.left, edge.right, rank=edge.rank, number=number, weight=10 - edge.rank)
    kept = []
    for nodes in nx.connected_components(graph):
        part = nx.Graph(list(graph.edges(sorted(nodes), data=True)))  # sorted: the same result in every process
        matching: Iterable[tuple[Hashable, Hashable]]
        if len(part) <= EXACT_NODES:
            matching = nx.max_weight_matching(part, maxcardinality=True)
        else:
            matching = _greedy(sorted(((d["rank"], d["number"], a, b) for a, b, d in part.edges(data=True))))
        kept += [int(graph.edges[pair]["number"]) for pair in matching]
    return sorted(kept)


def _greedy(edges: Sequence[tuple[int, int, Hashable, Hashable]]) -> Iterable[tuple[Hashable, Hashable]]:
    used: set[Hashable] = set()
    for _, _, left, right in edges:
        if not used & {left, right}:
            used |= {left, right}
            yield left, right


ORDER, PHRASE = 0, 1
SPANS = (1, 2)  #: numbers of words that a phrase may have; articles are not counted
#: Longer captions rarely have a neighbour, and cost a key per word and span.
MOST_WORDS = 40
#: Maximum number of captions with the same filler under one key, and of pairs of captions under one key.
PER_FILLER, PER_KEY = 10, 1_000

Triple = tuple[int, int, int]


def neighbours(texts: Iterable[str]) -> list[Triple]:
    """Return the pairs of captions that share a key, that is, that differ only in word order or in a few neighbouring
    words. Each is a triple of the left caption's number, the right caption's number and the kind of key. The triples
    are sorted.
    """
    numbers: dict[str, int] = {}
    keys, fillers, captions = (array("q") for _ in range(3))
    for caption, text in enumerate(texts):
        numbered = [numbers.setdefault(word.base, len(numbers)) for word in words_of(text)]
        for kind, key, filler in _keys(numbered) if 2 <= len(numbered) <= MOST_WORDS else ():
            keys.append(key >> 1 << 1 | kind)
            fillers.append(filler)
            captions.append(caption)
    rows = np.array([keys, fillers, captions], np.int64)
    rows = rows[:, np.lexsort(rows[::-1])]
    starts = np.flatnonzero(np.diff(rows[0], prepend=rows[0, :1] - 1)) if keys else np.zeros(0, np.int64)
    pairs: set[Triple] = set()
    for start, end in zip(starts, [*starts[1:], len(keys)]):
        if end - start > 1:
            pairs.update(_pairs(rows[:, start:end].T.tolist()))
    return sorted(pairs)


def _keys(words: list[int]) -> Iterator[Triple]:
    """Yield (kind, hash of the key, hash of the filler) for each way to split a caption into a key, which similar
    captions share, and a filler, in which they differ.

    For the first kind, the key is the sorted words, and the filler is the words in their order. For the second, the
    filler is a few neighbouring words, and the key is the caption without them.
    """
    yield ORDER, hash(tuple(sorted(words))), hash(tuple(words))
    for span in SPANS:
        for at in range(len(words) - span + 1 if len(words) > span else 0):
            rest = (tuple(words[:at]), tuple(words[at + span :]))
            yield PHRASE, hash(rest), hash(tuple(words[at : at + span]))


def _pairs(rows: list[list[int]]) -> Iterator[Triple]:
    """Yield (left number, right number, kind of key) for captions that share a key but have different fillers. `rows`
    holds (key, filler, caption number) for all captions with one key, sorted. If there are many rows, each caption is
    compared only with those in the next few rows.
    """
    few = [row for k, row in enumerate(rows) if k < PER_FILLER or rows[k - PER_FILLER][1] != row[1]]
    reach = max(PER_FILLER, PER_KEY // len(few))
    for k, (key, filler, caption) in enumerate(few):
        for _, other_filler, other in few[k + 1 : k + 1 + reach]:
            if filler != other_filler and caption != other:
                yield min(caption, other), max(caption, other), key & 1
