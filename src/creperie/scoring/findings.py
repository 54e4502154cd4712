"""Findings: problems with individual items that do not stop a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from creperie.core import one_line
from creperie.scoring.plan import BenchmarkPart, ScoringPlan
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

    def merge(self, other: Findings) -> None:
        for finding in other.listed:
            if self.counts[finding.code] + 1 <= LISTED:
                self.listed.append(finding)
            self.counts[finding.code] += 1
        for code, n in other.counts.items():
            self.counts[code] += max(0, n - LISTED)

    def document(self) -> dict[str, Any]:
        return {"findings": [asdict(f) for f in self.listed], "finding_counts": dict(self.counts)}


def cut_message(tokens: int) -> str:
    return f"{tokens} tokens do not fit the model and are cut off"


def item_findings(
    part: BenchmarkPart, images: Iterable[Fault], captions: Iterable[Fault], cut: Mapping[int, int], plan: ScoringPlan
) -> Findings:
    """Return the findings about one benchmark. They name the items with an unusable image or caption, and the items
    with a caption that was cut off. `cut` maps the index of a cut-off caption in the plan to the number of tokens that
    it lost.
    """
    findings = Findings()
    too_long = [Fault(row, "caption-cut", cut_message(n)) for row, n in cut.items()]
    quoted = [Fault(f.row, f.code, f"{f.message}: {one_line(plan.texts[f.row], 60)!r}") for f in [*captions, *too_long]]
    findings.merge(cell_findings(part, images, part.images, part.image_starts))
    findings.merge(cell_findings(part, quoted, part.captions, part.caption_starts))
    return findings


def cell_findings(part: BenchmarkPart, faults: Iterable[Fault], numbers: np.ndarray, starts: np.ndarray) -> Findings:
    """Return the findings about items whose scores depend on a table row with a fault. The scores of item i depend on
    the rows numbers[starts[i]:starts[i + 1]] of that table. Equal findings about an item are reported once.
    """
    findings = Findings()
    subset, ids = part.bench.column("subset"), part.bench.column("id")
    seen = set()
    for fault, item in _with_items(faults, numbers, starts):
        if (item, fault.code, fault.message) not in seen:
            seen.add((item, fault.code, fault.message))
            findings.add(UnscoredItem(fault.code, subset[item].as_py(), ids[item].as_py(), fault.message))
    return findings


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
