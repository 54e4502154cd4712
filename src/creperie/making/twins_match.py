"""Which twins are kept: not those of near-duplicate photographs, and no image or caption twice within a kind."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from creperie.bench import ImageError, ImageStore, open_image
from creperie.core import ModelError, missing_extra

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
