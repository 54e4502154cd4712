"""Turning a table and a declared analysis into the outcome, the design matrix and the groups.

A contrast is defined by the meaning of its coefficients: each is a weighted sum of the means of the levels. The columns
of the design matrix are found by inverting the matrix of these weights.

- `treatment`: each level is compared with the first; the intercept is the first level's mean.
- `centred`: each level is compared with the first; the intercept is the mean of all levels.
- `rest`: each level except the first is compared with the mean of all the others (for two levels: second minus first).
  The paper Hit or Be Hit explains its coefficients in this way, in the note to its results.
- `orthogonal`: each level is compared with the mean of those before it (Helmert); the columns are orthogonal to each
  other.
- `sum`: each level except the first is compared with the mean of all levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from creperie.bench import TAG_PREFIX
from creperie.core import DataError, UsageError, check_name, unknown
from creperie.statistics.declare import Analysis
from creperie.statistics.groups import Groups

#: The weights of the means of k levels in each coefficient, but for the intercept.
_WEIGHTS: Mapping[str, Callable[[int], np.ndarray]] = {
    "treatment": lambda k: np.eye(k)[1:] - np.eye(1, k),
    "centred": lambda k: np.eye(k)[1:] - np.eye(1, k),
    "rest": lambda k: np.where(np.eye(k)[1:] > 0, 1.0, -1.0 / (k - 1)),
    "orthogonal": lambda k: np.eye(k)[1:] - np.tril(np.ones((k - 1, k))) / np.arange(1, k)[:, None],
    "sum": lambda k: np.eye(k)[1:] - 1.0 / k,
}
NAMES = tuple(_WEIGHTS)


def columns_of(contrast: str, levels: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the columns of a named contrast and their labels. The columns are a matrix of n × (n − 1) numbers for n
    levels.

    >>> columns_of("rest", ["no", "yes"])[0].tolist()
    [[-0.5], [0.5]]
    >>> columns_of("orthogonal", ["caption", "equal", "foil"])[0].round(3).tolist()
    [[-0.5, -0.333], [0.5, -0.333], [0.0, 0.667]]
    """
    check_name("contrast", contrast, _WEIGHTS)
    k = len(levels)
    if k < 2:
        raise UsageError(
            f"a contrast needs a factor with at least two levels, but this one has {k}", hint="leave the factor out"
        )
    middle = np.eye(1, k) if contrast == "treatment" else np.full((1, k), 1.0 / k)
    means = np.concatenate([middle, _WEIGHTS[contrast](k)])
    return np.linalg.inv(means)[:, 1:].round(12), tuple(levels[1:])


#: Maximum number of levels of a fixed factor; a factor with more should be a random effect.
MOST_LEVELS = 200
_CALL = re.compile(r"(log10|log|z)\((.+)\)")


@dataclass(frozen=True, eq=False)
class Design:
    """The outcome, the design matrix and the groups of an analysis. Rows with missing values are left out, and a note
    says how many.
    """

    y: np.ndarray
    x: np.ndarray
    names: tuple[str, ...]
    groups: Groups
    rows: np.ndarray  #: indices of the rows of the table that were used
    parts: Mapping[str, Coded]
    terms: Sequence[tuple[str, ...]]
    kept: Sequence[int]  #: indices of the linearly independent columns
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.y)

    def mean_row(self, settings: Mapping[str, str]) -> np.ndarray:
        """Return the mean row of the design matrix after giving every row the levels in `settings`. `settings` maps
        factors to levels. All other values stay as they are.
        """
        means = [np.ones(1)]
        for term in self.terms:
            parts = [self.parts[p].at(settings[p]) if p in settings else self.parts[p] for p in term]
            means.append(_term(parts)[0].mean(axis=0))
        return np.concatenate(means)[list(self.kept)]


def design(table: pa.Table, analysis: Analysis) -> Design:
    """Return the outcome, the design matrix and the groups for an analysis of a table."""
    parts = list(dict.fromkeys(p for term in analysis.factors for p in term))
    groupings = (name for term in analysis.random for name in term.split(":"))
    columns = list(dict.fromkeys([analysis.outcome, *(column_of(p) for p in parts), *groupings]))
    table = with_short_names(table, [*columns, *analysis.where])
    chosen = chosen_rows(table, analysis.where)
    table = table.take(pa.array(chosen))
    good, dropped = _complete(table, columns, analysis)
    rows = chosen[good]
    used = table.select(columns).take(pa.array(good))
    y = _numbers(used, analysis.outcome)
    if analysis.family == "logistic" and not np.isin(y, (0.0, 1.0)).all():
        raise DataError(
            f"the outcome {analysis.outcome!r} has values other than 0 and 1",
            hint="count ties as wrong or right, or use `family=` linear",
        )
    coded = {part: _coded(used, part, analysis) for part in parts}
    blocks, names = [np.ones((len(y), 1))], ["(Intercept)"]
    for term in analysis.factors:
        block, labels = _term([coded[p] for p in term])
        blocks.append(block)
        names += labels
    x, independent, aliased = _independent(np.concatenate(blocks, axis=1))
    notes = [f"{dropped:,} rows left out: a value is missing, or not among the levels given"] if dropped else []
    if aliased:
        notes.append("left out, as other columns determine them: " + ", ".join(names[k] for k in aliased))
    groups = Groups(tuple(analysis.random), tuple(grouped(used, term) for term in analysis.random))
    _check_groups(groups, len(y))
    return Design(
        y, x, tuple(names[k] for k in independent), groups, rows, coded, analysis.factors, independent, tuple(notes)
    )


def with_short_names(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the table with a column for each of these names. A name is the full name of a column, or a short name,
    which lacks the prefix `tag.`. For a short name, a copy of the column is added.
    """
    for name in names:
        if name in table.column_names:
            continue
        if TAG_PREFIX + name not in table.column_names:
            raise unknown("column", name, table.column_names)
        table = table.append_column(name, table.column(TAG_PREFIX + name))
    return table


def chosen_rows(table: pa.Table, where: Mapping[str, tuple[str, ...]]) -> np.ndarray:
    """Return the indices of the rows with permitted values. `where` maps a column to its permitted values. Raise an
    error if no row is left.
    """
    good = np.ones(len(table), bool)
    for name, permitted in where.items():
        good &= _among(table.column(name), permitted)
        if not good.any():
            there = sorted(set(_text(table.column(name)).drop_null().unique().to_pylist()))
            raise UsageError(
                f"no row is left with {name} = {' or '.join(permitted)}", hint="choose among: " + ", ".join(there[:20])
            )
    return np.flatnonzero(good)


def _among(values: pa.ChunkedArray, permitted: Sequence[str]) -> np.ndarray:
    """Return a boolean for each value: True if it is one of `permitted`."""
    return np.asarray(pc.is_in(_text(values), value_set=pa.array(permitted, pa.string())), bool)


def column_of(part: str) -> str:
    """Return the name of the column that a part of a term refers to.

    >>> column_of("log10(size)"), column_of("tag.verb")
    ('size', 'tag.verb')
    """
    call = _CALL.fullmatch(part)
    return call[2] if call else part


def _complete(table: pa.Table, columns: list[str], analysis: Analysis) -> tuple[np.ndarray, int]:
    """Return the indices of the complete rows, and the number of other rows. A row is complete if it has no missing
    values and only declared levels.
    """
    good = np.ones(len(table), bool)
    for name in columns:
        values = table.column(name)
        good &= ~np.asarray(pc.is_null(values, nan_is_null=True), bool)
        if name in analysis.levels:
            good &= _among(values, analysis.levels[name])
    rows = np.flatnonzero(good)
    if not len(rows):
        raise DataError(
            "no row has all the values that the model needs", hint="look for missing values in: " + ", ".join(columns)
        )
    return rows, len(table) - len(rows)


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values if pa.types.is_string(values.type) else pc.cast(values, pa.string())


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    values = table.column(name)
    if not (pa.types.is_boolean(values.type) or _is_number(values.type)):
        raise DataError(f"the column {name!r} holds {values.type}, not numbers", hint="name a numeric column")
    return np.asarray(values.to_numpy(zero_copy_only=False), float)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


@dataclass(frozen=True, eq=False)
class Coded:
    """One part of a term as columns of the design matrix. If the part is a factor, its levels are included, with the
    level of each row and the columns for each level.
    """

    name: str
    columns: np.ndarray
    labels: tuple[str, ...]
    levels: tuple[str, ...] = ()
    code: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    matrix: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def at(self, level: str) -> Coded:
        """Return a copy of this factor in which every row has the level `level`."""
        return replace(self, columns=self.matrix[self.levels.index(level)][None, :])


def _coded(table: pa.Table, part: str, analysis: Analysis) -> Coded:
    name = column_of(part)
    values = table.column(name)
    call = _CALL.fullmatch(part)
    if _is_number(values.type) and name not in analysis.levels:
        return Coded(part, _transformed(_numbers(table, name), part, call[1] if call else "")[:, None], (part,))
    if call:
        raise DataError(f"{part}: the column {name!r} is not numeric", hint=f"write {name} alone, as a factor")
    text = _text(values).to_numpy(zero_copy_only=False).astype(str)
    there = set(text.tolist())
    levels = tuple(v for v in analysis.levels.get(name) or sorted(there) if v in there)
    if len(levels) < 2:
        only = f" ({levels[0]!r})" if levels else ""
        raise DataError(f"the factor {name!r} has one level only{only}", hint="leave it out of the fixed effects")
    if len(levels) > MOST_LEVELS:
        raise UsageError(
            f"the factor {name!r} has {len(levels):,} levels, more than {MOST_LEVELS}",
            hint=f"make it a random effect: `random=` {name}",
        )
    contrast = analysis.contrasts.get(name, analysis.contrast)
    matrix, labels = columns_of(contrast, levels)
    order = np.array([levels.index(v) for v in sorted(levels)])
    code = order[np.searchsorted(np.array(sorted(levels)), text)]
    return Coded(part, matrix[code], tuple(f"{name}[{label}]" for label in labels), levels, code, matrix)


def _transformed(values: np.ndarray, part: str, how: str) -> np.ndarray:
    if how in ("log", "log10"):
        if (values <= 0).any():
            raise DataError(f"{part}: values of zero or less have no logarithm", hint="use z(…) or the plain column")
        return np.log(values) if how == "log" else np.log10(values)
    if how == "z":
        spread = float(values.std())
        if not spread:
            raise DataError(f"{part}: all values are equal, so they cannot be standardised", hint="leave the term out")
        return (values - values.mean()) / spread
    return values


def _term(parts: list[Coded]) -> tuple[np.ndarray, list[str]]:
    """Return the columns of a term (the products of the columns of its parts) and their labels."""
    block, labels = parts[0].columns, list(parts[0].labels)
    for part in parts[1:]:
        block = block[:, :, None] * part.columns[:, None, :]
        block = block.reshape(len(block), -1)
        labels = [f"{a}:{b}" for a in labels for b in part.labels]
    return block, labels


def _independent(x: np.ndarray) -> tuple[np.ndarray, list[int], list[int]]:
    """Return linearly independent columns of x, their indices, and the indices of the other columns."""
    norms = np.sqrt((x**2).sum(axis=0))
    scaled = x / np.where(norms > 0, norms, 1.0)
    left = scaled.T @ scaled  # swept column by column: the residual of each column after the kept ones
    independent, aliased = [], []
    for k in range(x.shape[1]):
        residual = left[k, k]
        if residual < 1e-9:
            aliased.append(k)
            continue
        independent.append(k)
        left = left - np.outer(left[:, k], left[k]) / residual
    return x[:, independent], independent, aliased


def grouped(table: pa.Table, term: str) -> np.ndarray:
    """Return a group number for each row. Rows with the same values in the columns of the random term are in the same
    group.
    """
    codes = np.zeros(len(table), np.int64)
    for name in term.split(":"):
        level = table.column(name).combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy() + np.int64(1)
        codes = np.unique(codes * (int(level.max()) + 1) + level, return_inverse=True)[1]
    return codes


def _check_groups(groups: Groups, n: int) -> None:
    for name, size in zip(groups.names, groups.sizes):
        if size < 2:
            raise DataError(f"the random effect {name!r} has one group only", hint="leave it out")
        if size == n:
            raise DataError(
                f"the random effect {name!r} has a group for every row: it cannot be distinguished from the residual",
                hint="leave it out, or use a table with more rows per group",
            )
