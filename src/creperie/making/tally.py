"""What a making yields, counted as its outcomes pass by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from creperie.bench import Item
from creperie.making.pipeline import SourceOutcome


@dataclass
class Tally:
    """Yields by stage: sources, why they were skipped, candidates, why they were rejected, items by subset."""

    sources: int = 0
    made: int = 0
    calls: int = 0
    items: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    subsets: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, outcome: SourceOutcome) -> None:
        self.sources += 1
        self.calls += outcome.calls
        if outcome.skipped:
            self.skipped[outcome.skipped] += 1
        for v in outcome.verdicts:
            kind = self.kinds.setdefault(v.candidate.kind, {"proposed": 0, "made": 0})
            kind["proposed"] += 1
            if v.reason:
                self.reasons[v.reason] += 1
            else:
                kind["made"] += 1
                self.made += 1

    def add_item(self, item: Item) -> None:
        self.items += 1
        self.subsets[item.subset] += 1

    @property
    def report(self) -> dict[str, Any]:
        return {
            "sources": self.sources,
            "skipped": dict(self.skipped.most_common()),
            "made": self.made,
            "rejected": self.reasons.total(),
            "reasons": dict(self.reasons.most_common()),
            "calls": self.calls,
            "items": self.items,
            "subsets": dict(self.subsets),
            "kinds": self.kinds,
        }
