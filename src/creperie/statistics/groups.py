"""Crossed grouping factors: their sparse cross-products, and the factor of Λ Z'WZ Λ + I.

Z has one column per group and one 1 per row and factor, so Z'WZ has diagonal blocks on its diagonal and weighted counts
of co-occurrence beside it. The factor with most groups is eliminated by a division; what is left (its Schur
complement) is small where the others are few (models), and sparse where they nest or nearly do (captions in images).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from creperie.core import UsageError

#: A rest of so many groups is factored densely whatever its pattern.
SMALL = 300
#: A rest with a larger share of non-zeros is factored densely.
DENSE = 0.2
#: A dense rest of more groups would take minutes per step and gigabytes.
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
        """One number per factor as one number per group: the diagonal of Λ."""
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

    @cached_property
    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of Z'WZ that are not zero: the diagonal, what is above it, what is below."""
        above = np.concatenate([m.first + self.starts[m.k] for m in self.meetings])
        across = np.concatenate([m.second + self.starts[m.m] for m in self.meetings])
        own = np.arange(self.total)
        return np.concatenate([own, above, across]), np.concatenate([own, across, above])

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
        from scipy.linalg import cho_factor

        groups = self.groups
        own = 1.0 + np.concatenate([t**2 * d for t, d in zip(theta, self.diagonal)])
        if len(groups.names) == 1:
            return _Divided(own, None, None)
        beside = np.concatenate([theta[m.k] * theta[m.m] * c for m, c in zip(groups.meetings, self.beside)])
        rows, columns = groups.pattern
        shape = (groups.total, groups.total)
        values = np.concatenate([own, beside, beside])
        if groups.total <= SMALL:
            full = np.zeros(shape)
            full[rows, columns] = values
            return _Dense(cho_factor(full, check_finite=False, overwrite_a=True))
        return _factored(sparse.csr_array((values, (rows, columns)), shape=shape), groups.sizes)


class Factor(Protocol):
    """A factored symmetric positive definite matrix."""

    @property
    def log_determinant(self) -> float: ...

    def solve(self, right: np.ndarray) -> np.ndarray: ...


def _factored(matrix: Any, sizes: Sequence[int]) -> Factor:
    """Factor a matrix whose first `sizes[0]` rows belong to one factor, and so on.

    As long as the first factor's own block is diagonal it is eliminated by a division. It always is at the start, and
    stays so where the factor before it nests in it: captions in images.
    """
    from scipy import sparse

    first = sizes[0]
    block = matrix[:first, :first]
    if len(sizes) > 1 and block.nnz == first:
        pivot = block.diagonal()
        edge = matrix[:first, first:]
        rest = matrix[first:, first:] - edge.T @ (sparse.diags_array(1.0 / pivot) @ edge)
        return _Divided(pivot, edge, _factored(rest.tocsr(), sizes[1:]))
    return _factored_whole(matrix)


def _factored_whole(matrix: Any) -> Factor:
    """Densely where the matrix is small or full, else sparsely."""
    from scipy.linalg import cho_factor
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    if n <= SMALL or matrix.nnz > DENSE * n * n:
        if n > MOST_DENSE:
            raise UsageError(
                f"the random effects cross so densely that {n:,} groups must be solved at once",
                hint="leave out a random effect, or make it a fixed one",
            )
        return _Dense(cho_factor(matrix.toarray(), check_finite=False, overwrite_a=True))
    options = {"SymmetricMode": True}
    return _Sparse(splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options))


@dataclass(frozen=True, eq=False)
class _Divided:
    """A diagonal block, and the factored rest after it is eliminated."""

    pivot: np.ndarray
    edge: Any
    rest: Factor | None

    @property
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
