"""How alike two sentences are in structure: the label tree kernel of FastKASSIM, as published and made symmetric.

delta(x, y) is zero where the labels differ, λ where both are pre-terminals (words are not looked at), and otherwise
λ · Π over the children c of x of (σ + Σ over the children d of y of delta(c, d)). The kernel sums delta over all
pairs of nodes. The product runs over one tree's children only, so the kernel depends on the order of its arguments.
"""

from __future__ import annotations

import math

from creperie.lang.trees import Tree

LAMBDA = 0.4
SIGMA = 1.0


def kernel(x: Tree, y: Tree, *, lam: float = LAMBDA, sigma: float = SIGMA) -> float:
    """The sum of delta over all pairs of nodes."""
    left, right = _numbered(x), _numbered(y)
    deltas: dict[tuple[int, int], float] = {}
    total = 0.0
    # Children come before their parents, so that every delta is computed once, from ready ones.
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
    """The nodes as (label, numbers of the children), children first."""
    found: list[tuple[str, list[int]]] = []

    def visit(node: Tree) -> int:
        children = [visit(child) for child in node.children]
        found.append((node.label, children))
        return len(found) - 1

    visit(tree)
    return found


def published_similarity(x: Tree, y: Tree) -> float:
    """The kernel, normalised by the trees' own kernels; not symmetric, and not bounded by one."""
    return kernel(x, y) / math.sqrt(kernel(x, x) * kernel(y, y))


def tree_similarity(x: Tree, y: Tree) -> float:
    """The same made symmetric: the mean of both orders."""
    return (kernel(x, y) + kernel(y, x)) / 2 / math.sqrt(kernel(x, x) * kernel(y, y))
