"""Sheets: tables with one vector or number per row, which are filled batch by batch. If a row has no result, the sheet
records the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.core import Advance, ModelError


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a row of a sheet has no result."""

    row: int
    code: str
    message: str

    def at(self, *rows: int) -> list[Fault]:
        """Return one fault per row, all with this reason."""
        return [replace(self, row=int(row)) for row in rows]


@dataclass(frozen=True, slots=True)
class PairJob:
    """One image and the captions to score with it: the captions' texts, and the row of the sheet for each of them."""

    image: int
    rows: np.ndarray
    texts: Sequence[str]


class Sheet:
    """A table with one vector or number per row, which is filled batch by batch. Rows marked as done are not computed
    again.

    `advance` is called with the number of rows that were computed or that failed.
    """

    def __init__(self, rows: int) -> None:
        self.done = np.zeros(rows, bool)
        self.cut = np.zeros(rows, np.int32)
        self.vectors = np.zeros((rows, 0), np.float32)
        self.faults: list[Fault] = []
        self.advance: Advance = lambda rows: None
        self._filled = False

    def give_up(self, faults: Iterable[Fault]) -> None:
        """Record the faults of rows that cannot be computed, and mark these rows as done; their vectors stay NaN."""
        for fault in faults:
            self.faults.append(fault)
            self.done[fault.row] = True

    def lose(self, faults: Sequence[Fault]) -> None:
        """Record the faults of rows that cannot be computed in this run; another run tries them again."""
        self.faults += faults
        self.advance(len(faults))

    def __len__(self) -> int:
        return len(self.done)

    @property
    def cut_rows(self) -> list[Fault]:
        """One fault for each row that lost tokens. These rows have results, from the tokens that were left."""
        message = "{} tokens do not fit the model and are cut off"
        return [Fault(int(r), "caption-cut", message.format(self.cut[r])) for r in np.flatnonzero(self.cut)]

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers in these rows; NaN for row −1 and for rows that were not computed."""
        values = np.full(len(self) + 1, np.nan, np.float32)
        if self.vectors.ndim == 1:
            values[:-1] = self.vectors
        return values[rows]

    def finish(self, rows: np.ndarray, vectors: np.ndarray, cut: np.ndarray | None = None) -> None:
        """Enter the vectors of a batch with `put`, save the valid rows with `keep`, and report the progress."""
        self.keep(self.put(rows, vectors, cut))
        self.advance(len(rows))

    def keep(self, rows: np.ndarray) -> None:
        """Save finished rows so that later processes can use them. This class does nothing; `StoredSheet` overrides the
        method.
        """

    def put(self, rows: np.ndarray, vectors: np.ndarray, cut: np.ndarray | None = None) -> np.ndarray:
        """Enter the vectors of a batch, mark its rows as done, and return the valid rows. A row with NaN or infinity
        gets a fault instead. `cut` is the number of tokens that were cut off in each row.
        """
        if len(rows) == 0:
            return rows
        if not self._filled:
            self.vectors = np.full((len(self), *vectors.shape[1:]), np.nan, np.float32)
            self._filled = True
        if self.vectors.shape[1:] != vectors.shape[1:]:
            what = (
                f"the model returns vectors of shape {vectors.shape[1:]}, but returned {self.vectors.shape[1:]} before"
            )
            raise ModelError(what, hint="return vectors of one shape for all inputs")
        finite = np.isfinite(vectors.reshape(len(rows), -1)).all(axis=1)
        not_finite = Fault(0, "not-a-number", "the model answers with NaN, infinity or a zero vector")
        self.faults += not_finite.at(*rows[~finite])
        sound: np.ndarray = rows[finite]
        self.vectors[sound] = vectors[finite]
        self.done[sound] = True
        if cut is not None:
            self.cut[rows] = cut
        return sound
