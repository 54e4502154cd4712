"""The only place that turns attackers' results into a verdict, with its sentence, its exit code and the fix.

Everything that states a verdict (audit, refine, validate, reports, cards, datasheets, JUnit, badges, CI) gets it from
here. All tests of an audit (every attacker on every subset and view) are one family of hypotheses, which are corrected
together.

- *leaks*: after correction for all attackers and subsets, an attacker does significantly better than chance, and its
  accuracy is above the threshold;
- *anti-learned*: an attacker is significantly worse than chance, and its reversed answers may exceed the threshold. The
  items were selected against such an attacker (or mirror each other);
- *clean*: the upper limit of every attacker's interval lies below the threshold. The verdict names these attackers;
- *not shown*: there are too few items to show any of these; the text says how many are needed;
- *incomplete*: no leak so far, but attackers of the standard battery were not run;
- *unsolvable*: clean, but some items have the same caption as true and as false;
- *not run*: there was no audit. *nothing left*: a refinement removed every item;
- of a validation: *valid* (a model confirms all captions), *in doubt* (it does not), *not shown* (it did not answer).

A leak has one of three fixes:

- *repairable*: once the captions of every item are brought into one style, the attacker no longer leaks;
- *removable*: items can be left out so that equally many remain for and against the cue;
- *structural*: removing items would leave less than a tenth of them, so the captions have to be rewritten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from creperie.auditing.cues import Cue
from creperie.auditing.measure import Measure
from creperie.auditing.registry import LEARNED_FAMILIES, entry_of, family_of
from creperie.core import by_key, counted, percent
from creperie.metrics import holm

SIGNIFICANCE = 0.05
THRESHOLD = 0.55  #: the blind accuracy that is tolerated unless a user says otherwise
ALL = "all"
#: Balancing a cue by selection must leave at least this share of the items.
LEAST_KEPT = 0.10
#: From worst to best: the fix of a subset is that of its worst leak.
FIXES = ("structural", "removable", "repairable")


@dataclass(frozen=True)
class AuditRow:
    """The results of one attacker on one subset, and whether they are a leak. With a `view`, only some pairs of the
    subset were attacked: "P2-N", for example, compares the second true caption of each item with the false ones.
    """

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
    cue: str = ""  #: the cue that it chooses by, if it is the strongest of several that were tried
    cues: tuple[Cue, ...] = ()  #: the cues of this subset for the table of cues

    @property
    def title(self) -> str:
        return f"{self.attacker}: {self.cue}" if self.cue else self.attacker

    @property
    def place(self) -> str:
        """The name of the subset, followed by the `view` if only some pairs of the subset were attacked."""
        return f"{self.subset} {self.view}".rstrip()


def by_strength(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """Return the rows in order of accuracy, the highest first. Cues that do not leak come last, because the best of
    many cues has too high an accuracy by chance.
    """
    ordered = sorted(rows, key=lambda r: -np.nan_to_num(r.measure.accuracy))
    return sorted(ordered, key=lambda r: bool(r.cue) and not r.leaks)


def leaks(measure: Measure, p: float, threshold: float) -> bool:
    """Return True if an attacker's result is a leak: significant (`p` is corrected), with an accuracy above the
    threshold.
    """
    return p < SIGNIFICANCE and measure.accuracy > threshold


def balanced_share(gaps: np.ndarray) -> float:
    """Return the proportion of items that remain if items are removed until gaps above and below zero are equally
    frequent. Items with a gap of zero are kept. `gaps` has one gap per item (see `item_gaps`).
    """
    above, below = int((gaps > 0).sum()), int((gaps < 0).sum())
    return (2 * min(above, below) + len(gaps) - above - below) / len(gaps) if len(gaps) else float("nan")


def distinct_tests(rows: Sequence[AuditRow]) -> list[AuditRow]:
    """Return the rows without repeated tests. If there is only one subset, the row for "all" repeats the row of that
    subset.
    """
    single = len({row.subset for row in rows}) == 2
    return [row for row in rows if not (single and row.subset == ALL)]


def corrected(rows: Sequence[AuditRow], threshold: float) -> list[AuditRow]:
    """Return the rows with p-values corrected by Holm's method for all tests of the audit, and with `leaks` set."""
    tests = distinct_tests(rows)
    by_test = {
        (r.view, r.attacker, r.subset): p for r, p in zip(tests, holm([r.measure.p for r in tests]), strict=True)
    }
    own = {row.subset for row in tests}
    p_values = [by_test[r.view, r.attacker, r.subset if r.subset in own else tests[0].subset] for r in rows]
    return [replace(r, p_holm=p, leaks=leaks(r.measure, p, threshold)) for r, p in zip(rows, p_values)]


def fix_of(row: AuditRow, repaired: Measure | None, threshold: float) -> AuditRow:
    """Return the row with the fix of its leak: repairable, removable or structural. `repaired` is the attacker's result
    on the repaired captions; None if the attacker was not run on them.
    """
    after = None if repaired is None else repaired.accuracy
    if repaired is not None and not leaks(repaired, repaired.p, threshold):
        return replace(row, repaired=after, fix="repairable")
    return replace(row, repaired=after, fix="structural" if row.kept < LEAST_KEPT else "removable")


#: The verdicts on a subset, from worst to best.
WORST_FIRST = ("leaks", "anti-learned", "incomplete", "not shown", "unsolvable", "clean")
#: Exit codes by verdict.
EXIT_CODES = {
    "clean": 0,
    "valid": 0,
    "leaks": 1,
    "anti-learned": 1,
    "unsolvable": 1,
    "nothing left": 1,
    "in doubt": 1,
    "not shown": 3,
    "incomplete": 3,
    "not run": 3,
}


@dataclass(frozen=True)
class Measurements:
    """What an audit measured on one subset, or on the whole benchmark. The verdict is computed from this alone."""

    subset: str
    items: int
    rows: tuple[AuditRow, ...] = ()  #: what every attacker reached
    unsolvable: tuple[str, ...] = ()  #: ids of items whose true and false captions are the same
    balanced: int = 0  #: items that are balanced by design
    detectable: float = 1.0  #: the smallest accuracy that would be detected with a power of 80 %
    threshold: float = THRESHOLD
    missing: Mapping[str, str] = field(default_factory=dict)  #: attackers that were not run, with the reasons
    extras: tuple[str, ...] = ()  #: the extras whose packages they need
    abstained: tuple[str, ...] = ()  #: attackers for which there are too few pairs to learn from
    enough: int = 0  #: number of pairs from which on they would answer
    sample: tuple[tuple[int, tuple[str, ...]], ...] = ()  #: numbers of items that slow attackers saw, and these
    repeated: float = 0.0  #: share of items that share a pair of captions with another, in the same roles
    reversed: float = 0.0  #: share of items that share a pair of captions with another, with true and false exchanged
    drawn: int = 0  #: if these items are a random sample: the number of all
    models: Mapping[str, str] = field(default_factory=dict)  #: the model used by each family

    @property
    def all_balanced(self) -> bool:
        return self.items == self.balanced > 0


@dataclass(frozen=True)
class Judgement:
    """The verdict on one subset, or on the whole benchmark, and the results that led to it."""

    measured: Measurements
    verdict: str
    fix: str = ""  #: the fix of its worst leak; empty if nothing leaks
    through: tuple[AuditRow, ...] = ()  #: what leaks, the strongest first
    strongest: AuditRow | None = None  #: the most accurate attacker, whether it leaks or not
    headline: AuditRow | None = None  #: the strongest of all attackers and their ensemble, where that was run
    bound: float = math.nan  #: the highest upper limit of any attacker
    against: tuple[str, ...] = ()  #: the families of attackers that were run
    needed: int = 0  #: items that would show it clean, were its attackers no better; 0: unknown
    full: bool = False  #: if not shown: True if its attackers saw a sample, and all the items there are would decide
    worst_subsets: tuple[int, int] | None = None  #: for the whole benchmark: how many subsets have its verdict, of all

    @property
    def subset(self) -> str:
        return self.measured.subset

    @property
    def code(self) -> int:
        """The exit code of the verdict."""
        return EXIT_CODES[self.verdict]

    @property
    def _by_family(self) -> dict[str, list[AuditRow]]:
        return by_key((family_of(row.attacker), row) for row in self.through)

    @property
    def plainest(self) -> tuple[AuditRow, ...]:
        """The leaks to name first. These are up to three leaks whose cue can be named in words, then the leak of the
        strongest learned attacker.
        """
        first = {name: rows[0] for name, rows in self._by_family.items()}
        plain = [row for name, row in first.items() if name not in LEARNED_FAMILIES]
        learned = [row for name, row in first.items() if name in LEARNED_FAMILIES]
        return (*plain[:3], *learned[:1])

    @property
    def families(self) -> str:
        """The families of attackers that find a leak, as a string. For each family, it states the number of subsets
        with a leak and the highest accuracy.
        """
        by_family = self._by_family
        where = {name: len({row.subset for row in rows}) for name, rows in by_family.items()}
        ordered = sorted(by_family, key=lambda n: (n in LEARNED_FAMILIES, -where[n], -by_family[n][0].measure.accuracy))
        return ", ".join(
            f"{name} in {where[name]} (up to {percent(best.measure.accuracy)} % on {best.place})"
            for name in ordered
            for best in by_family[name][:1]
        )

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        parts, seen = [_SENTENCES[self.verdict](self)], self.measured
        if seen.missing and self.verdict != "incomplete":
            parts.append(f"not run: {', '.join(seen.missing)}")
        if seen.abstained:
            needed = f"needs about {seen.enough} pairs with different captions"
            parts.append(f"not run: {', '.join(seen.abstained)} ({needed})")
        if seen.sample:
            asked = ", ".join(f"{', '.join(names)} on {n:,}" for n, names in seen.sample)
            seconds = sum((seen.items - n) * entry_of(name).seconds for n, names in seen.sample for name in names)
            time = f"{seconds / 60:,.0f} minutes" if seconds > 90 else f"{max(1, round(seconds, -1)):.0f} seconds"
            parts.append(f"{asked} of {seen.items:,} items (--full takes all: about {time} more)")  # on one core
        if seen.drawn:
            parts.append(f"on a random sample of {seen.items:,} of {seen.drawn:,} items (--full takes all)")
        if seen.unsolvable:
            some = ", ".join(seen.unsolvable[:3]) + (", …" if len(seen.unsolvable) > 3 else "")
            parts.append(f"{len(seen.unsolvable)} unsolvable (a true caption is also a false one: {some})")
        return "; ".join(parts)

    @property
    def power(self) -> str:
        """A text that says how small a leak this audit could have detected, and how many items have a pair of captions
        that also occurs in another item.
        """
        # If the items are too few to detect any leak but the verdict is *leaks* or *anti-learned*, the first part is
        # left out.
        seen = self.measured
        least = math.ceil(seen.detectable * 1000)
        if seen.all_balanced:
            found = "captions alone are right exactly half of the time, so nothing is left for an attacker"
        elif least < 1000:
            found = f"an attacker right on {least / 10:.1f} % would be found in 4 of 5 cases"
        elif self.verdict in ("leaks", "anti-learned"):
            found = ""
        else:
            found = "too few items: even an attacker that is always right could stay unseen"
        shares = [(seen.repeated, "in the same roles"), (seen.reversed, "with true and false exchanged")]
        text = ", ".join(f"{percent(share, 0)} % {how}" for share, how in shares if share >= 0.01)
        shared = f"items that share a pair of captions with another: {text}" if text else ""
        return "; ".join(filter(None, (found, shared)))

    def document(self, next: str) -> dict[str, Any]:
        """Return the verdict as a document for JSON. `next` is the command to type next."""
        return {"verdict": self.verdict, "text": self.text, "next": next, "code": self.code, "power": self.power}


def unjudged(word: str, items: int = 0) -> Judgement:
    """Return the verdict on a benchmark that was not audited. `word` is "not run", or "nothing left" for a benchmark
    without items; `items` is the number of its items.
    """
    return Judgement(Measurements(ALL, items), word)


def _leaks_text(j: Judgement) -> str:
    if j.worst_subsets:
        return f"leaks{_headline(j)} in {j.worst_subsets[0]} of {j.worst_subsets[1]} subsets: {j.families}"
    return f"leaks{_headline(j)} through " + ", ".join(_described(row) for row in j.plainest)


def _anti_text(j: Judgement) -> str:
    row = j.strongest
    where = f" in {row.place if j.worst_subsets else row.view}" if row and (j.worst_subsets or row.view) else ""
    reached = f"{row.attacker} is right on only {percent(row.measure.accuracy)} %" if row else "an attacker is"
    otherwise = f"reversed, its answers may pass {percent(j.measured.threshold, 0)} %"
    return f"anti-learned{where}: {reached}, surely below chance; {otherwise}"


def _clean_text(j: Judgement) -> str:
    if j.measured.all_balanced:
        return "clean: balanced by design, every caption is as often true as false"
    return f"clean{_headline(j)} against {_named_families(j)}: at most {percent(j.bound)} %"


def _not_shown_text(j: Judgement) -> str:
    row = j.strongest
    where = f" on {row.place if j.worst_subsets else row.view}" if row and (j.worst_subsets or row.view) else ""
    best = f"{row.title} may reach {percent(_upper(row))} %{where}" if row else "no attacker could be measured"
    there = " there" if where else ""
    enough = f"; about {j.needed:,} items{there} would decide" if j.needed else ""
    if row and j.needed and _is_above(row, j.measured.threshold):
        there = f" there, on {counted(row.measure.n, 'item')}" if where else ""
        enough = f"; it reaches {percent(_either_way(row))} %{there}: if that stays so, more items can only show a leak"
    if j.needed and j.measured.sample:
        enough += ": --full takes as many" if j.full else ", with --full"
    return f"not shown{_headline(j)}: too few items to exclude {percent(j.measured.threshold, 0)} % ({best}){enough}"


def _incomplete_text(j: Judgement) -> str:
    missing, extras = j.measured.missing, j.measured.extras
    lacking = f"install {', '.join(f'creperie[{name}]' for name in extras)}" if extras else ", ".join(missing)
    so_far = f"; so far at most {percent(j.bound)} % against {_named_families(j)}" if j.against else ""
    return f"incomplete{_headline(j)}: {len(missing)} attackers not run ({lacking}){so_far}"


_SENTENCES: dict[str, Callable[[Judgement], str]] = {
    "leaks": _leaks_text,
    "anti-learned": _anti_text,
    "clean": _clean_text,
    "unsolvable": _clean_text,
    "not shown": _not_shown_text,
    "incomplete": _incomplete_text,
    "not run": lambda j: "not run: no audit was run",
    "nothing left": lambda j: "nothing left: no item could be kept",
}


def _headline(j: Judgement) -> str:
    """Return the accuracy of the ensemble, or of a single attacker if that is higher, as text in brackets."""
    if j.headline is None:
        return ""
    reached, low, high = map(percent, (j.headline.measure.accuracy, j.headline.measure.low, j.headline.measure.high))
    who = "all attackers together" if j.headline.attacker == "ensemble" else j.headline.attacker
    return f" ({reached} % [{low}, {high}] by {who})"


def _named_families(j: Judgement) -> str:
    return ", ".join(f"{name} ({j.measured.models[name]})" if name in j.measured.models else name for name in j.against)


def _described(row: AuditRow) -> str:
    view = f" on {row.view}" if row.view else ""
    fix = f", {row.fix}" if row.fix else ""
    return f"{row.title}{view} ({percent(row.measure.accuracy)} %{fix})"


def judge(seen: Measurements) -> Judgement:
    """Return the verdict on a subset, given what was measured."""
    measured = [r for r in seen.rows if r.measure.n]
    ordered = by_strength(measured)
    through = tuple(r for r in ordered if r.leaks)
    below = [r for r in reversed(ordered) if r.p_holm < SIGNIFICANCE and r.measure.accuracy < 0.5]
    wrong = [r for r in below if _upper(r) >= seen.threshold]
    widest = max(measured, key=_upper, default=None)
    families = dict.fromkeys(family_of(row.attacker) for row in measured)
    verdict, strongest, full = "unsolvable" if seen.unsolvable else "clean", next(iter(ordered), None), False
    bound, needed = (_upper(widest), _needed(widest, seen.threshold)) if widest else (math.nan, 0)
    if through:
        verdict = "leaks"
    elif seen.all_balanced:
        pass
    elif wrong:
        verdict, strongest = "anti-learned", wrong[0]
    elif seen.missing:
        verdict = "incomplete"
    elif not bound < seen.threshold:
        verdict, strongest = "not shown", widest
        sampled = widest is not None and widest.measure.n < max(r.measure.n for r in measured)
        full = bool(seen.sample) and sampled and needed <= seen.items
    return Judgement(
        seen,
        verdict,
        fix=next((fix for fix in FIXES if fix in {r.fix for r in through}), ""),
        through=through,
        strongest=strongest,
        headline=_strongest_of_all(measured),
        bound=bound,
        against=tuple(sorted(families, key=lambda name: name in LEARNED_FAMILIES)),
        needed=needed,
        full=full,
    )


def _strongest_of_all(rows: Sequence[AuditRow]) -> AuditRow | None:
    """Return the row of the ensemble. If another attacker is more accurate, return its row instead. Return None if no
    ensemble was run.
    """
    plain = [row for row in rows if not row.view and (row.leaks or not row.cue)]
    if not any(row.attacker == "ensemble" for row in plain):
        return None
    return max(plain, key=lambda r: (*np.nan_to_num((r.measure.accuracy, r.measure.low)), r.attacker == "ensemble"))


def _upper(row: AuditRow) -> float:
    """Return the upper limit of the interval of an attacker's accuracy. If the upper limit for its reversed answers is
    higher, return that instead. Return 1 if there is no interval.
    """
    m = row.measure
    return 1.0 if math.isnan(m.accuracy + m.low + m.high) else max(m.high, 1 - m.low)


def _either_way(row: AuditRow) -> float:
    """Return an attacker's accuracy. If the attacker is mostly wrong, return the accuracy of its reversed answers."""
    return max(row.measure.accuracy, 1 - row.measure.accuracy)


def _is_above(row: AuditRow, threshold: float) -> bool:
    """Return True if the accuracy of the attacker, or of its reversed answers, is at least the threshold minus half a
    percentage point. More items could then hardly rule out a leak.
    """
    return _either_way(row) >= threshold - 0.005


def _needed(row: AuditRow, threshold: float) -> int:
    """Return the number of items that would decide whether an attacker leaks; 0 if this number is unknown."""
    # Usually it is the number of items with which the upper limit of an attacker at chance would be below the
    # threshold. If there are that many items already, the attacker's measured accuracy is used instead of chance. If
    # the measured accuracy is above the threshold, it is the number of items with which the lower limit would be above
    # one half. Intervals are computed as in the audit, with its corrections for repeated tests, ties and shared images:
    # Wilson's limit u satisfies n (u − p)² = z² u (1 − u).
    m, far = row.measure, _either_way(row)
    limit, aim, shares = _upper(row), threshold, (0.5, far)
    if _is_above(row, threshold):
        limit, aim, shares = max(m.low, 1 - m.high), 0.5, (far, far)
    if math.isnan(m.accuracy + m.low + m.high) or not 0 < limit < 1 or aim in shares:
        return 0
    spread = m.n * (limit - far) ** 2 / (limit * (1 - limit)) * aim * (1 - aim)
    return next((n for p in shares if (n := math.ceil(spread / (aim - p) ** 2)) > m.n), m.n + 1)


def judge_all(whole: Judgement, subsets: Sequence[Judgement]) -> Judgement:
    """Return the verdict on a whole benchmark: the worst of the verdicts on its subsets and on all items together
    (`whole`). The verdict *leaks* lists all leaks of the leaking subsets, the strongest first.
    """
    if len(subsets) < 2:
        return whole
    worst = next((v for v in WORST_FIRST if any(j.verdict == v for j in (*subsets, whole))), whole.verdict)
    worst_subsets = [j for j in subsets if j.verdict == worst]
    bound = float(np.max([j.bound for j in (*subsets, whole)]))  # NaN if any bound is NaN
    if worst == "leaks" and worst_subsets:
        through = sorted((row for j in worst_subsets for row in j.through), key=lambda r: -r.measure.accuracy)
        fix = min((j.fix for j in worst_subsets), key=FIXES.index)
        return replace(
            whole, verdict=worst, through=tuple(through), fix=fix, worst_subsets=(len(worst_subsets), len(subsets))
        )
    if not worst_subsets:
        return replace(whole, verdict=worst, bound=bound)
    hardest = max(worst_subsets, key=lambda j: np.nan_to_num(j.bound))  # NaN: no attacker could be measured there
    return replace(
        whole,
        verdict=worst,
        bound=bound,
        strongest=hardest.strongest,
        full=hardest.full,
        needed=hardest.needed if worst == "not shown" else 0,
        worst_subsets=(len(worst_subsets), len(subsets)),
    )
