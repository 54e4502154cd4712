"""Constituency trees: reading them from brackets, and the similarity of two trees."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from creperie.core import DataError

_PIECE = re.compile(r"\(|\)|[^\s()]+")
#: link-grammar marks a word's class (dog.n), guesses ([!], {?}) and words that it left out ({the}, [the]).
_CLASS = re.compile(r"\.([a-z][a-z-]*)$")
_GUESS = re.compile(r"[\[{][!?~&].*?[\]}]")
_DETERMINERS = frozenset(
    ("a", "an", "the", "this", "that", "these", "those", "some", "any", "no", "every", "each")
    + ("its", "his", "her", "their", "our", "your", "my")
)


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent. A pre-terminal (the node of a single word) has a word and no children; all others have children
    and no word.
    """

    label: str
    children: tuple[Tree, ...] = ()
    word: str = ""

    def nodes(self) -> Iterator[Tree]:
        """Yield this constituent and all constituents within it. Words are not nodes."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def __str__(self) -> str:
        return f"({self.label} {self.word or ' '.join(map(str, self.children))})".replace(" )", ")")


def read_tree(brackets: str, *, where: str = "") -> Tree:
    """Return the tree that a text in Penn brackets describes; raise a DataError if it is not exactly one tree.

    >>> tree = read_tree("(S (NP (DT a) (NN dog)) (VP (VBZ runs)))")
    >>> [node.label for node in tree.nodes()]
    ['S', 'NP', 'DT', 'NN', 'VP', 'VBZ']
    >>> str(tree)
    '(S (NP (DT a) (NN dog)) (VP (VBZ runs)))'
    """
    pieces = _PIECE.findall(brackets)
    stack: list[tuple[str, list[Tree | str]]] = []
    done: list[Tree] = []
    for i, piece in enumerate(pieces):
        if piece == "(":
            stack.append(("", []))
        elif not stack:  # an unmatched closing bracket, or a word outside all brackets
            done.clear()
            break
        elif piece == ")":
            label, parts = stack.pop()
            closed = _constituent(label, parts)
            (stack[-1][1] if stack else done).append(closed)
        elif pieces[i - 1] == "(":
            stack[-1] = (piece, stack[-1][1])
        else:
            stack[-1][1].append(piece)
    if stack or len(done) != 1:
        raise DataError(f"{brackets[:60]!r} is not a tree in brackets", where=where, hint="write (S (NP …) (VP …))")
    return done[0]


def _constituent(label: str, parts: list[Tree | str]) -> Tree:
    words = [p for p in parts if isinstance(p, str)]
    if len(words) == len(parts):
        return Tree(label, word=" ".join(words))
    # A word beside constituents becomes its own pre-terminal.
    return Tree(label, tuple(Tree(p, word=p) if isinstance(p, str) else p for p in parts))


def read_linkage(brackets: str) -> Tree:
    """Return the tree that link-grammar's output describes. The output has no part-of-speech tags, so each word gets a
    pre-terminal labelled with its word class.

    The class is the suffix of the word in the output (`n`, `v`). Without a suffix it is `left-out` for a word in braces
    or brackets, which the parser ignored, `det` for a determiner, and `word` for all others.

    >>> print(read_linkage("(S (NP a player.n) (VP hits.v (NP {the} ball.s)) .)"))
    (S (NP (det a) (n player)) (VP (v hits) (NP (left-out the) (s ball))) (. .))
    """
    pieces = _PIECE.findall(_GUESS.sub("", brackets))
    shown = [
        piece if piece in "()" or pieces[i - 1] == "(" else f"({_word_class(piece)} {_bare(piece)})"
        for i, piece in enumerate(pieces)
    ]
    return read_tree(" ".join(shown))


def _bare(word: str) -> str:
    inner = word.strip("{}[]") or word
    return _CLASS.sub("", inner) or inner


def _word_class(word: str) -> str:
    if word[0] in "{[" and len(word) > 1:
        return "left-out"
    known = _CLASS.search(word)
    if known:
        return known.group(1)
    if word.lower() in _DETERMINERS:
        return "det"
    return "word" if any(c.isalnum() for c in word) else word


LAMBDA = 0.4
SIGMA = 1.0


def kernel(x: Tree, y: Tree, *, lam: float = LAMBDA, sigma: float = SIGMA) -> float:
    """Return the tree kernel of two trees: the sum of delta over all pairs of a node of `x` and a node of `y`.

    delta is 0 if the labels of the two nodes differ. Otherwise it is `lam` times a product with one factor for each
    child of the first node: `sigma` plus the sum of delta over this child and each child of the second node.
    """
    left, right = _numbered(x), _numbered(y)
    deltas: dict[tuple[int, int], float] = {}
    total = 0.0
    # children come before their parents, so every delta is computed once
    for i, (label, children) in enumerate(left):
        for j, (other, others) in enumerate(right):
            if label != other:
                continue
            value = lam
            for c in children:
                value *= sigma + sum(deltas.get((c, d), 0.0) for d in others)
            deltas[i, j] = value
            total += value
    return total


def _numbered(tree: Tree) -> list[tuple[str, list[int]]]:
    """Return the nodes as (label, indices of the children), children before parents."""
    nodes: list[tuple[str, list[int]]] = []

    def visit(node: Tree) -> int:
        children = [visit(child) for child in node.children]
        nodes.append((node.label, children))
        return len(nodes) - 1

    visit(tree)
    return nodes


def published_similarity(x: Tree, y: Tree) -> float:
    """Return kernel(x, y) / √(kernel(x, x) · kernel(y, y)), the published measure. Because `kernel` is not symmetric,
    the value depends on the order of the trees and can exceed 1.
    """
    return kernel(x, y) / math.sqrt(kernel(x, x) * kernel(y, y))


def tree_similarity(x: Tree, y: Tree) -> float:
    """Return the mean of `published_similarity` in both orders, which is symmetric."""
    return (kernel(x, y) + kernel(y, x)) / 2 / math.sqrt(kernel(x, x) * kernel(y, y))
