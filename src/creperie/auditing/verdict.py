"""From figures to a verdict: clean, leaks through what, and what can be done about it.

An attacker *leaks* on a subset when it is told from chance after correction for all attackers and subsets, and its
accuracy is above the threshold. What can be done:

- *repairable*: once the captions of every item are brought into one style, the attacker no longer leaks;
- *removable*: items can be left out until as many speak for the cue as against it;
- *structural*: that would leave less than a tenth of the items. The captions have to be written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from creperie.auditing.measure import AttackerMargins, Measure
from creperie.auditing.pairs import item_gaps

LEVEL = 0.05
#: Balancing a cue by selection must leave at least this share of the items.
LEAST_KEPT = 0.10
#: From worst to best: what a subset needs is what its worst leak needs.
FIXES = ("structural", "removable", "repairable")


@dataclass(frozen=True)
class AuditRow:
    """One attacker on one subset (or one view of it, such as P2-N), judged."""

    subset: str
    view: str
    attacker: str
    choice: str  #: what it chooses, in words
    measure: Measure
    p_holm: float = float("nan")
    leaks: bool = False
    kept: float = float("nan")  #: the share of items that balancing this cue by selection would leave
    repaired: float | None = None  #: its accuracy once the captions of every item have one style
    fix: str = ""


def leaks(measure: Measure, p: float, threshold: float) -> bool:
    """Whether an attacker is surely better than chance, and by more than is tolerated."""
    return p < LEVEL and measure.accuracy > threshold


def share_kept(answers: AttackerMargins) -> float:
    """The share of items that stay when as many gaps are above zero as below; those at zero stay."""
    gaps = item_gaps(answers.pairs, answers.margins)
    gaps = gaps[answers.pairs.per_item > 0]
    above, below = int((gaps > 0).sum()), int((gaps < 0).sum())
    return (2 * min(above, below) + len(gaps) - above - below) / len(gaps) if len(gaps) else float("nan")


def fix_of(row: AuditRow, repaired: Measure | None, threshold: float) -> AuditRow:
    """Say what can be done about a leak, given how its attacker does on the repaired captions."""
    after = None if repaired is None else repaired.accuracy
    if repaired is not None and not leaks(repaired, repaired.p, threshold):
        return replace(row, repaired=after, fix="repairable")
    return replace(row, repaired=after, fix="structural" if row.kept < LEAST_KEPT else "removable")


@dataclass(frozen=True)
class Judgement:
    """What is to be said about one subset, or about the whole."""

    subset: str
    items: int
    verdict: str  #: "clean", "leaks" or "unsolvable"
    fix: str  #: of its worst leak; empty where nothing leaks
    through: tuple[AuditRow, ...]  #: what leaks, the strongest first
    strongest: AuditRow | None  #: the most accurate attacker, whether it leaks or not
    unsolvable: tuple[str, ...]  #: ids of items whose true and false captions are the same
    balanced: int  #: items that are balanced by design
    detectable: float  #: the least accuracy that would have been told from chance
    leaking: tuple[int, int] | None = None  #: of the whole: how many subsets leak, of how many

    @property
    def headline(self) -> tuple[AuditRow, ...]:
        """The leaks worth naming first: cues that say what they are, then the strongest learned attacker."""
        plain = [row for row in self.through if not row.attacker.startswith("learned")]
        learned = [row for row in self.through if row.attacker.startswith("learned")]
        seen: dict[str, AuditRow] = {}
        for row in plain:
            seen.setdefault(_family(row.attacker), row)
        return (*list(seen.values())[:3], *learned[:1])

    @property
    def families(self) -> str:
        """Of the whole: each cue with the number of subsets that leak through it, and where it is worst."""
        found: dict[str, list[AuditRow]] = {}
        for row in self.through:
            found.setdefault(_family(row.attacker), []).append(row)
        where = {name: len({row.subset for row in rows}) for name, rows in found.items()}
        ordered = sorted(found, key=lambda name: (-where[name], -found[name][0].measure.accuracy))
        worst = {name: " ".join(filter(None, (found[name][0].subset, found[name][0].view))) for name in ordered}
        return ", ".join(
            f"{name} in {where[name]} (up to {100 * found[name][0].measure.accuracy:.1f} % on {worst[name]})"
            for name in ordered
        )

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        if self.verdict == "leaks":
            said = "leaks through " + ", ".join(_named(row) for row in self.headline)
            if self.leaking:
                said = f"leaks in {self.leaking[0]} of {self.leaking[1]} subsets: {self.families}"
        elif self.balanced == self.items and self.items:
            said = "clean: balanced by design, every caption is as often true as false"
        else:
            said = f"clean: no attacker is told from chance (one above {100 * self.detectable:.0f} % would be)"
            if self.strongest and self.strongest.p_holm < LEVEL:
                said = f"clean: nothing above the threshold (strongest: {_named(self.strongest)})"
        if self.unsolvable:
            some = ", ".join(self.unsolvable[:3]) + (", …" if len(self.unsolvable) > 3 else "")
            said += f"; {len(self.unsolvable)} unsolvable (a true caption is also a false one: {some})"
        return said


def _family(attacker: str) -> str:
    """Length in words, letters and tokens is one cue, and so is what is learned in several ways."""
    return attacker.partition("-")[0]


def _named(row: AuditRow) -> str:
    view = f" on {row.view}" if row.view else ""
    fix = f", {row.fix}" if row.fix else ""
    return f"{row.attacker}{view} ({100 * row.measure.accuracy:.1f} %{fix})"


def judge(
    subset: str,
    rows: Sequence[AuditRow],
    *,
    items: int,
    unsolvable: Sequence[str] = (),
    balanced: int = 0,
    detectable: float = 1.0,
) -> Judgement:
    """The verdict on a subset from the rows of its attackers."""
    ordered = sorted(rows, key=lambda r: -np.nan_to_num(r.measure.accuracy))
    through = tuple(r for r in ordered if r.leaks)
    fixes = {r.fix for r in through}
    worst = next((fix for fix in FIXES if fix in fixes), "")
    verdict = "leaks" if through else "unsolvable" if unsolvable else "clean"
    return Judgement(
        subset, items, verdict, worst, through, ordered[0] if ordered else None, tuple(unsolvable), balanced, detectable
    )


def judge_all(whole: Judgement, subsets: Sequence[Judgement]) -> Judgement:
    """The verdict on a benchmark: it leaks where a subset leaks, through what leaks most there."""
    leaking = [j for j in subsets if j.verdict == "leaks"]
    if len(subsets) < 2 or not leaking:
        return whole
    through = sorted((row for j in leaking for row in j.through), key=lambda r: -r.measure.accuracy)
    fix = min((j.fix for j in leaking), key=FIXES.index)
    return replace(whole, verdict="leaks", through=tuple(through), fix=fix, leaking=(len(leaking), len(subsets)))
