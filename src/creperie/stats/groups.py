"""Crossed grouping factors: their sparse cross-products, and the factor of Λ Z'WZ Λ + I.

Z has one column a group and one 1 a row and factor, so Z'WZ has diagonal blocks on its diagonal and weighted counts
of co-occurrence beside it. The factor with most groups is eliminated by a division; what is left (its Schur
complement) is small where the others are few (models), and sparse where they nest or nearly do (captions in images).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from creperie.errors import UsageError

#: A rest of so many groups is factored densely whatever its pattern.
SMALL = 300
#: A rest with a larger share of non-zeros is factored densely.
DENSE = 0.2
#: A dense rest of more groups would take minutes a step and gigabytes.
MOST_DENSE = 12_000


@dataclass(frozen=True, eq=False)
class Groups:
    """The grouping factors of n rows: a code from 0 on for every row and factor."""

    names: tuple[str, ...]
    codes: tuple[np.ndarray, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(c.max()) + 1 if len(c) else 0 for c in self.codes)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each factor's groups begin in a vector over all groups."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def total(self) -> int:
        return int(self.starts[-1])

    def sorted(self) -> Groups:
        """The same factors, that with most groups first: it is the one that is eliminated."""
        order = sorted(range(len(self.names)), key=lambda k: -self.sizes[k])
        return Groups(tuple(self.names[k] for k in order), tuple(self.codes[k] for k in order))

    def spread(self, theta: np.ndarray) -> np.ndarray:
        """One number a factor as one number a group: the diagonal of Λ."""
        return np.repeat(theta, self.sizes)

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Z'rows, for a vector or a matrix of columns."""
        if rows.ndim == 1:
            return np.concatenate([np.bincount(c, rows, n) for c, n in zip(self.codes, self.sizes)])
        return np.stack([self.sums(rows[:, j]) for j in range(rows.shape[1])], axis=1)

    def rows(self, effects: np.ndarray) -> np.ndarray:
        """Z effects: what the groups' effects add to every row."""
        found = np.zeros(len(self.codes[0]))
        for code, start in zip(self.codes, self.starts):
            found += effects[start + code]
        return found

    @cached_property
    def meetings(self) -> tuple[Meeting, ...]:
        """For every two factors, the pairs of groups that meet in some row."""
        found = []
        for k in range(len(self.names)):
            for m in range(k + 1, len(self.names)):
                pairs = self.codes[k] * self.sizes[m] + self.codes[m]
                unique, inverse = np.unique(pairs, return_inverse=True)
                found.append(Meeting(k, m, unique // self.sizes[m], unique % self.sizes[m], inverse))
        return tuple(found)

    def gram(self, weights: np.ndarray | None = None) -> Gram:
        """Z'WZ."""
        diagonal = [np.bincount(c, weights, n).astype(float) for c, n in zip(self.codes, self.sizes)]
        beside = [np.bincount(m.inverse, weights, len(m.first)).astype(float) for m in self.meetings]
        return Gram(self, diagonal, beside)


@dataclass(frozen=True, eq=False)
class Meeting:
    """Groups of factor `k` and of factor `m` that share rows; `inverse` says for every row which pair it is."""

    k: int
    m: int
    first: np.ndarray
    second: np.ndarray
    inverse: np.ndarray


@dataclass(frozen=True, eq=False)
class Gram:
    """Z'WZ by its blocks."""

    groups: Groups
    diagonal: list[np.ndarray]
    beside: list[np.ndarray]

    def factor(self, theta: np.ndarray) -> Factor:
        """The factor of Λ Z'WZ Λ + I."""
        from scipy import sparse

        groups = self.groups
        first = groups.sizes[0]
        rest = groups.total - first
        pivot = 1.0 + theta[0] ** 2 * self.diagonal[0]
        if not rest:
            return Factor(pivot, None, None)
        edge_parts, rest_parts = [], []
        for meeting, counts in zip(groups.meetings, self.beside):
            values = theta[meeting.k] * theta[meeting.m] * counts
            column = meeting.second + groups.starts[meeting.m] - first
            if meeting.k == 0:
                edge_parts.append((meeting.first, column, values))
            else:
                rest_parts.append((meeting.first + groups.starts[meeting.k] - first, column, values))
        edge = _sparse(edge_parts, (first, rest))
        own = 1.0 + np.concatenate([t**2 * d for t, d in zip(theta[1:], self.diagonal[1:])])
        complement = sparse.diags_array(own, format="csr")
        if rest_parts:
            upper = _sparse(rest_parts, (rest, rest))
            complement = complement + upper + upper.T
        complement = complement - edge.T @ (sparse.diags_array(1.0 / pivot) @ edge)
        return Factor(pivot, edge, _factored(complement))


def _sparse(parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], shape: tuple[int, int]) -> Any:
    from scipy import sparse

    rows, columns, values = (np.concatenate(p) for p in zip(*parts))
    return sparse.csr_array((values, (rows, columns)), shape=shape)


@dataclass(frozen=True, eq=False)
class Factor:
    """A factored Λ Z'WZ Λ + I: its log-determinant, and solutions with it."""

    pivot: np.ndarray
    edge: Any
    rest: _Dense | _Sparse | None

    @cached_property
    def log_determinant(self) -> float:
        own = float(np.log(self.pivot).sum())
        return own if self.rest is None else own + self.rest.log_determinant

    def solve(self, right: np.ndarray) -> np.ndarray:
        pivot = self.pivot if right.ndim == 1 else self.pivot[:, None]
        if self.rest is None:
            return right / pivot
        first = len(self.pivot)
        below = self.rest.solve(right[first:] - self.edge.T @ (right[:first] / pivot))
        return np.concatenate([(right[:first] - self.edge @ below) / pivot, below])


@dataclass(frozen=True, eq=False)
class _Dense:
    factored: Any

    @property
    def log_determinant(self) -> float:
        return 2.0 * float(np.log(np.diag(self.factored[0])).sum())

    def solve(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self.factored, right, check_finite=False))


@dataclass(frozen=True, eq=False)
class _Sparse:
    factored: Any

    @property
    def log_determinant(self) -> float:
        return float(np.log(np.abs(self.factored.U.diagonal())).sum())

    def solve(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self.factored.solve(np.ascontiguousarray(right)))


def _factored(matrix: Any) -> _Dense | _Sparse:
    """A symmetric positive definite matrix, factored densely where it is small or full."""
    from scipy.linalg import cho_factor
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    if n <= SMALL or matrix.nnz > DENSE * n * n:
        if n > MOST_DENSE:
            raise UsageError(
                f"the random effects cross so densely that {n:,} groups must be solved at once",
                mend="leave out a random effect, or make it a fixed one",
            )
        return _Dense(cho_factor(matrix.toarray(), check_finite=False, overwrite_a=True))
    options = {"SymmetricMode": True}
    return _Sparse(splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options))
