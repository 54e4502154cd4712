"""Findings: problems with individual items that do not stop a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from creperie.scoring.plan import BenchmarkPart
from creperie.scoring.sheet import Fault

#: how many findings per code a run lists; all are counted
LISTED = 1000


@dataclass(frozen=True)
class UnscoredItem:
    """An item that lacks some or all of its scores. It has the same fields as a finding of `creperie data check`."""

    code: str
    subset: str
    item: str
    message: str


@dataclass
class Findings:
    """The findings about one benchmark. All are counted, but only the first ones of each code are listed."""

    listed: list[UnscoredItem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, finding: UnscoredItem) -> None:
        self.counts[finding.code] += 1
        if self.counts[finding.code] <= LISTED:
            self.listed.append(finding)

    def add_faults(self, part: BenchmarkPart, faults: Iterable[Fault], numbers: np.ndarray, starts: np.ndarray) -> None:
        """Add findings about items whose scores depend on a table row with a fault. The scores of item i depend on the
        rows numbers[starts[i]:starts[i + 1]] of that table. Equal findings about an item are reported once.
        """
        subset, ids = part.bench.column("subset"), part.bench.column("id")
        faults_of_items = ((item, fault.code, fault.message) for fault, item in _with_items(faults, numbers, starts))
        for item, code, message in dict.fromkeys(faults_of_items):
            self.add(UnscoredItem(code, subset[item].as_py(), ids[item].as_py(), message))

    def document(self) -> dict[str, Any]:
        return {"findings": [asdict(f) for f in self.listed], "finding_counts": dict(self.counts)}


def _with_items(faults: Iterable[Fault], numbers: np.ndarray, starts: np.ndarray) -> Iterator[tuple[Fault, int]]:
    """Yield (fault, item number) for every item whose scores depend on a table row with a fault, in the order of the
    items. The scores of item i depend on the rows numbers[starts[i]:starts[i + 1]] of that table.
    """
    by_row: dict[int, list[Fault]] = {}
    for fault in faults:
        by_row.setdefault(fault.row, []).append(fault)
    if not by_row or not len(numbers):
        return
    hit = np.flatnonzero(np.isin(numbers, np.fromiter(by_row, np.int64)))
    items = np.searchsorted(starts, hit, side="right") - 1
    for item, row in dict.fromkeys(zip(items.tolist(), numbers[hit].tolist(), strict=True)):
        for fault in by_row[row]:
            yield fault, item
