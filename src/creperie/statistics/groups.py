"""Crossed grouping factors: their sparse cross-products, and the factorisation of Λ Z'WZ Λ + I.

Z has one column per group, and each of its rows has a single 1 for each factor. W has the weights of the rows on its
diagonal, and Λ the standard deviation of each group's effect. In Z'WZ, the blocks of a single factor are therefore
diagonal matrices; the other blocks hold weighted counts of co-occurrence.

The factor with the most groups is eliminated first, by dividing by its diagonal. The remaining Schur complement is
small if the other factors have few groups (models). It is sparse if the factors are nested or nearly so (captions in
images).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from creperie.core import UsageError

#: A Schur complement of up to this many groups is factored densely, whatever its pattern.
SMALL = 300
#: A Schur complement with a larger share of non-zeros is factored densely.
DENSE = 0.2
#: A dense Schur complement of more groups would take minutes per step and gigabytes.
MOST_DENSE = 12_000


@dataclass(frozen=True, eq=False)
class Groups:
    """The grouping factors of n rows. `codes` holds, for every factor, the number of each row's group, from 0."""

    names: tuple[str, ...]
    codes: tuple[np.ndarray, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(c.max()) + 1 if len(c) else 0 for c in self.codes)

    @cached_property
    def starts(self) -> np.ndarray:
        """The position at which the groups of each factor begin in a vector over all groups."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def total(self) -> int:
        return int(self.starts[-1])

    def sorted(self) -> Groups:
        """Return the same factors, ordered by their number of groups, the largest number first. The factor with the
        most groups comes first because it will be eliminated first.
        """
        order = sorted(range(len(self.names)), key=lambda k: -self.sizes[k])
        return Groups(tuple(self.names[k] for k in order), tuple(self.codes[k] for k in order))

    def spread(self, theta: np.ndarray) -> np.ndarray:
        """Return the diagonal of Λ: each factor's value in `theta`, repeated for each of its groups."""
        return np.repeat(theta, self.sizes)

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Return the sum of the rows in each group (the product Zᵀ · `rows`). `rows` is a vector or a matrix."""
        if rows.ndim == 1:
            return np.concatenate([np.bincount(c, rows, n) for c, n in zip(self.codes, self.sizes)])
        return np.stack([self.sums(rows[:, j]) for j in range(rows.shape[1])], axis=1)

    def rows(self, effects: np.ndarray) -> np.ndarray:
        """Return Z·effects: for each row, the sum of the effects of its groups."""
        sums = np.zeros(len(self.codes[0]))
        for code, start in zip(self.codes, self.starts):
            sums += effects[start + code]
        return sums

    @cached_property
    def meetings(self) -> tuple[Meeting, ...]:
        """For every two factors, the pairs of groups that occur together in a row."""
        meetings = []
        for k in range(len(self.names)):
            for m in range(k + 1, len(self.names)):
                pairs = self.codes[k] * self.sizes[m] + self.codes[m]
                unique, inverse = np.unique(pairs, return_inverse=True)
                meetings.append(Meeting(k, m, unique // self.sizes[m], unique % self.sizes[m], inverse))
        return tuple(meetings)

    @cached_property
    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """The row and column indices of the non-zero entries of Z'WZ: first the diagonal, then the upper triangle, then
        the lower triangle.
        """
        above = np.concatenate([m.first + self.starts[m.k] for m in self.meetings])
        across = np.concatenate([m.second + self.starts[m.m] for m in self.meetings])
        diagonal = np.arange(self.total)
        return np.concatenate([diagonal, above, across]), np.concatenate([diagonal, across, above])

    def gram(self, weights: np.ndarray | None = None) -> Gram:
        """Return the matrix Z'WZ. W is the diagonal matrix of the weights; without `weights`, it is the identity."""
        diagonal = [np.bincount(c, weights, n).astype(float) for c, n in zip(self.codes, self.sizes)]
        beside = [np.bincount(m.inverse, weights, len(m.first)).astype(float) for m in self.meetings]
        return Gram(self, diagonal, beside)


@dataclass(frozen=True, eq=False)
class Meeting:
    """The pairs of groups of two factors, `k` and `m`, that occur together in a row. `inverse` is the number of each
    row's pair.
    """

    k: int
    m: int
    first: np.ndarray
    second: np.ndarray
    inverse: np.ndarray


@dataclass(frozen=True, eq=False)
class Gram:
    """The matrix Z'WZ, stored as its diagonal blocks and its off-diagonal blocks (`beside`)."""

    groups: Groups
    diagonal: list[np.ndarray]
    beside: list[np.ndarray]

    def factor(self, theta: np.ndarray) -> Factor:
        """Return the factorisation of Λ Z'WZ Λ + I."""
        from scipy import sparse
        from scipy.linalg import cho_factor

        groups = self.groups
        diagonal = 1.0 + np.concatenate([t**2 * d for t, d in zip(theta, self.diagonal)])
        if len(groups.names) == 1:
            return _Divided(diagonal, None, None)
        beside = np.concatenate([theta[m.k] * theta[m.m] * c for m, c in zip(groups.meetings, self.beside)])
        rows, columns = groups.pattern
        shape = (groups.total, groups.total)
        values = np.concatenate([diagonal, beside, beside])
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
    """Return the factorisation of a matrix. Its first `sizes[0]` rows belong to the first grouping factor, the next
    `sizes[1]` to the second, and so on.
    """
    # As long as the block of the first remaining factor is a diagonal matrix, that factor is eliminated by a division.
    # At the start, the blocks of all factors are diagonal matrices. After an elimination, the block of another factor
    # is still a diagonal matrix if the eliminated factor is nested in it, as captions are nested in images.
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
    """Return the factorisation of a matrix. It is dense if the matrix is small or mostly non-zero, else sparse."""
    from scipy.linalg import cho_factor
    from scipy.sparse.linalg import splu

    n = matrix.shape[0]
    if n <= SMALL or matrix.nnz > DENSE * n * n:
        if n > MOST_DENSE:
            raise UsageError(
                f"the random effects have too many groups to fit together ({n:,}): most of them share rows",
                hint="leave out a random effect, or make it a fixed one",
            )
        return _Dense(cho_factor(matrix.toarray(), check_finite=False, overwrite_a=True))
    options = {"SymmetricMode": True}
    return _Sparse(splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options))


@dataclass(frozen=True, eq=False)
class _Divided:
    """The result of eliminating a diagonal block: that block (`pivot`), the off-diagonal block in the same rows
    (`edge`), and the factorised Schur complement (`rest`).
    """

    pivot: np.ndarray
    edge: Any
    rest: Factor | None

    @property
    def log_determinant(self) -> float:
        total = float(np.log(self.pivot).sum())
        return total if self.rest is None else total + self.rest.log_determinant

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

        return cho_solve(self.factored, right, check_finite=False)


@dataclass(frozen=True, eq=False)
class _Sparse:
    factored: Any

    @property
    def log_determinant(self) -> float:
        return float(np.log(np.abs(self.factored.U.diagonal())).sum())

    def solve(self, right: np.ndarray) -> np.ndarray:
        return self.factored.solve(np.ascontiguousarray(right))
