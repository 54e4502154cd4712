"""Captions that begin alike, packed into one sequence: every shared beginning is read once.

A true caption and its foil mostly differ in a few words, and a benchmark's items share captions. In a pack every token
sees its own ancestors only and stands at its own depth, so its log-probability is the one of the caption on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

#: Tokens of a pack: beyond, tokens that may not see each other cost more than the beginnings they share.
PACK = 160


class TokenTree:
    """The tokens of some captions behind a common start, each beginning once."""

    def __init__(self, start: Sequence[int]) -> None:
        self.token = list(start)
        self.parent = list(range(-1, len(start) - 1))
        self.depth = list(range(len(start)))
        self.paths: dict[int, list[int]] = {}  #: by caption: where its own tokens lie
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.token)

    def add(self, caption: int, ids: Sequence[int], root: int) -> None:
        """Add a caption's tokens behind the start's last token, the root."""
        at, path = root, []
        for token in ids:
            child = self._children.get((at, token))
            if child is None:
                child = self._children[at, token] = len(self.token)
                self.token.append(token)
                self.parent.append(at)
                self.depth.append(self.depth[at] + 1)
            path.append(at := child)
        self.paths[caption] = path

    def sees(self, width: int) -> np.ndarray:
        """Which token sees which: itself and its ancestors; padding sees itself."""
        found = np.eye(width, dtype=bool)
        for i, parent in enumerate(self.parent):
            if parent >= 0:
                found[i] |= found[parent]
        return found


def packs_of(captions: Sequence[list[int]], start: Sequence[int]) -> Iterator[TokenTree]:
    """All captions in packs, in alphabetical order of their tokens, so that neighbours begin alike."""
    pack, root = TokenTree(start), len(start) - 1
    for i in sorted(range(len(captions)), key=lambda i: captions[i]):
        if pack.paths and len(pack) + len(captions[i]) > PACK:
            yield pack
            pack = TokenTree(start)
        pack.add(i, captions[i], root)
    if pack.paths:
        yield pack
