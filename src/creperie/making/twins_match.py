"""Which twins are kept, and how sure it is that each caption is false of the other's image.

Twins of near-duplicate photographs are not kept, and no image or caption twice within a kind. The evidence is
`certain`, `likely` or `unchecked`. What is looked at, in this order:

- labels: people who said of the very cell that it is false (VSR), or true, which ends it;
- exclusion: the two words cannot both be true (colours, numbers, opposites, disjoint classes);
- other captions of the image: none says the twin's word (*silent*), and some say its own (*confirmed*).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.bench import ImageError, ImageStore, open_image
from creperie.core import ModelError, missing_extra
from creperie.making.twins_words import Contrast, told_by

#: So many other captions of each image must be silent before their silence says something.
WITNESSES = 2


@dataclass(frozen=True, slots=True)
class CrossedCell:
    """One caption against the other's image: what people said of it, and the other true captions of that image."""

    label: bool | None  #: people found it true or false; None: nobody was asked
    others: tuple[frozenset[str], ...]  #: the words of the image's other captions, by dictionary form


@dataclass(frozen=True, slots=True)
class Evidence:
    """A level with what it rests on, or the reason why the two are not twins."""

    level: str = ""
    basis: str = ""
    reason: str = ""


def weigh(contrast: Contrast | None, cells: Sequence[CrossedCell], shared: Collection[str] = ()) -> Evidence:
    """The evidence of two crossed cells: the right caption on the left image, then the left one on the right image.

    `shared` are the words that both captions have.
    """
    if any(cell.label for cell in cells):
        return Evidence(reason="people found a caption true of the other image")
    labelled = sum(cell.label is False for cell in cells)
    if contrast is None:
        return (
            Evidence("certain", "labels of both crossed cells") if labelled == 2 else Evidence("unchecked", "nothing")
        )
    by_logic = contrast.name.startswith(("exchanged", "opposite"))  # other captions would say it in other words
    basis = [f"{contrast.name}: {contrast.left} ↔ {contrast.right}"]
    if labelled:
        basis.append("labels of both crossed cells" if labelled == 2 else "the label of one crossed cell")
    silent = confirmed = 0
    for cell, own, twin in zip(cells, (contrast.left, contrast.right), (contrast.right, contrast.left)):
        if by_logic:
            continue
        ours, theirs = told_by(own, contrast.name), told_by(twin, contrast.name)
        if (theirs - ours) & set(shared):
            return Evidence(reason="the captions say the twin's word elsewhere")
        if any((theirs - ours) & said for said in cell.others):
            return Evidence(reason="another caption of the image says the twin's word")
        silent += len(cell.others) >= WITNESSES
        confirmed += any((ours - theirs) & said for said in cell.others)
    if silent == 2:
        basis.append(f"{len(cells[0].others)} + {len(cells[1].others)} other captions do not say it")
    if confirmed == 2:
        basis.append("other captions of both images confirm it")
    return Evidence(_level(labelled, silent == 2, confirmed == 2, by_logic), "; ".join(basis))


def _level(labelled: int, silent: bool, confirmed: bool, by_logic: bool) -> str:
    if labelled == 2 or (silent and confirmed):
        return "certain"
    return "likely" if labelled or silent or by_logic else "unchecked"


#: Photographs whose 256-bit difference hashes differ in at most this many bits show the same scene.
NEAR_BITS = 40
_SIDE = 16
#: Photographs whose vectors are this near are of the same scene: all that the house model finds in Flickr8k are.
NEAR_COSINE = 0.90
#: The exact matching takes time with the cube of a component; larger ones get a maximal matching, best edges first.
EXACT_NODES = 1_500


def difference_hash(store: ImageStore, reference: str) -> np.ndarray | None:
    """256 bits of a photograph: whether each patch of 16 × 16 is darker than the next. None if it cannot be read."""
    try:
        image = open_image(store, reference)
    except ImageError:
        return None
    grey = np.asarray(image.convert("L").resize((_SIDE + 1, _SIDE)), dtype=np.int16)
    return (grey[:, 1:] > grey[:, :-1]).ravel()


class ImageLook:
    """Photographs as an image encoder sees them; each is looked at once."""

    def __init__(self, store: ImageStore, uri: str) -> None:
        from creperie.models import ImageEncoder, load_model

        model: Any = load_model(uri)
        if not isinstance(model, ImageEncoder):
            raise ModelError("this model does not encode images", where=uri, hint="name one that does, such as hf:CLIP")
        self._vector = cache(lambda reference: model.encode_images([open_image(store, reference)])[0])

    def alike(self, one: str, two: str) -> bool:
        return float(self._vector(one) @ self._vector(two)) >= NEAR_COSINE


@dataclass(frozen=True, slots=True)
class Edge:
    """A twin as an edge between its images. `rank` 0 is the best evidence."""

    left: Hashable
    right: Hashable
    rank: int = 0


def matched(edges: Sequence[Edge]) -> list[int]:
    """The numbers of edges that share no node: as many as possible, and of those the best ranked.

    >>> matched([Edge("b", "c"), Edge("a", "b", 1), Edge("c", "d", 1)])
    [1, 2]
    """
    try:
        import networkx as nx
    except ImportError:
        raise missing_extra("networkx", "lang") from None
    graph = nx.Graph()
    for number, edge in enumerate(edges):
        known = graph.get_edge_data(edge.left, edge.right)
        if edge.left != edge.right and (known is None or edge.rank < known["rank"]):
            graph.add_edge(edge.left, edge.right, rank=edge.rank, number=number, weight=10 - edge.rank)
    kept = []
    for nodes in nx.connected_components(graph):
        part = nx.Graph(list(graph.edges(sorted(nodes), data=True)))  # in order: the same twins in every process
        found: Iterable[tuple[Hashable, Hashable]]
        if len(part) <= EXACT_NODES:
            found = nx.max_weight_matching(part, maxcardinality=True)
        else:
            found = _greedy(sorted(((d["rank"], d["number"], a, b) for a, b, d in part.edges(data=True))))
        kept += [int(graph.edges[pair]["number"]) for pair in found]
    return sorted(kept)


def _greedy(edges: Sequence[tuple[int, int, Hashable, Hashable]]) -> Iterable[tuple[Hashable, Hashable]]:
    used: set[Hashable] = set()
    for _, _, left, right in edges:
        if not used & {left, right}:
            used |= {left, right}
            yield left, right
