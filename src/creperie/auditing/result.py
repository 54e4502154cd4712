"""The results of an audit, and the captions that illustrate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.auditing.advice import next_command
from creperie.auditing.attackers import Attacker
from creperie.auditing.cues import Cue, cues_to_list, surest
from creperie.auditing.large import ExactCount
from creperie.auditing.likeness import Likeness
from creperie.auditing.measure import AttackerMargins, GapShape, gap_shape
from creperie.auditing.pairs import Pairs, item_gaps, items_in
from creperie.auditing.symmetry import Symmetry
from creperie.auditing.verdict import ALL, AuditRow, Judgement, by_strength, distinct_tests
from creperie.core import Framed, counted, html_table, late, percent, write_json, write_text

#: Pairs of a subset that are shown as examples.
EXAMPLES = 3


@dataclass(frozen=True)
class ExamplePair:
    """A true and a false caption, with the margin by which an attacker prefers the true one."""

    id: str
    positive: str
    negative: str
    margin: float


@dataclass(frozen=True)
class Audit(Framed):
    """Everything that an audit found."""

    name: str
    hash: str
    items: int
    attackable: int  #: items with a true and a false caption
    seed: int
    threshold: float
    attackers: tuple[Attacker, ...]
    not_sent: dict[str, str]  #: attackers that could not be run, or had too few pairs to learn from, with the reason
    rows: tuple[AuditRow, ...]  #: every attacker on every subset, and on all
    views: tuple[AuditRow, ...]  #: rows against one of several true captions at a time, or by the images alone
    judgements: tuple[Judgement, ...]
    whole: Judgement
    cues: dict[str, list[tuple[Cue, ExamplePair]]]
    examples: dict[str, list[ExamplePair]]
    shapes: dict[str, dict[str, GapShape]]
    likeness: tuple[Likeness, ...] = ()
    symmetry: tuple[Symmetry, ...] = ()  #: of every subset, and of all items last
    spec: str = ""  #: how the benchmark is named in commands
    language: str = "en"  #: of most captions
    part: str = ""  #: the options that select the part that was audited, as they are typed
    counts: tuple[ExactCount, ...] = ()  #: if a sample was audited: quick attackers on all items

    @property
    def verdict(self) -> str:
        return self.whole.verdict

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        return self.whole.text

    @property
    def next(self) -> str:
        """The command to type next."""
        return next_command(self.whole, self.spec, self.part, english=self.language.startswith("en"))

    @property
    def code(self) -> int:
        """The exit code of the verdict."""
        return self.whole.code

    def save(self, path: str | Path) -> Path:
        """Write the audit as JSON, in the form of `creperie audit --json`. If the name ends in .html, write it as an
        HTML page.
        """
        file = Path(path)
        if file.suffix == ".html":
            write_text(file, self.to_html())
        else:
            write_json(file, late("creperie.auditing", "audit_document")(self))
        return file

    def to_html(self) -> str:
        """Return the audit as one HTML page."""
        return str(late("creperie.auditing", "audit_page")(late("creperie.auditing", "audit_document")(self)))

    def __repr__(self) -> str:
        size = f"{counted(self.items, 'item')}, {counted(len(self.attackers), 'attacker')}"
        return f"Audit({self.name!r}, {size}: {self.whole.text})"

    def _repr_html_(self) -> str:
        rows = [
            (r.subset, r.attacker, r.measure.n, *map(percent, (r.measure.accuracy, r.measure.low, r.measure.high)))
            for r in self.rows
        ]
        return html_table(repr(self), ("subset", "attacker", "n", "right, %", "low", "high"), rows)

    def frame(self) -> pa.Table:
        """Return an Arrow table with one row per subset and attacker. In rows with a `view`, attackers saw only a part
        of the data: one of several true captions of each item, or the images without captions.
        """
        rows = [asdict(replace(row, cues=())) for row in (*self.rows, *self.views)]
        for row in rows:
            del row["cues"]
        return pa.Table.from_pylist([{**row.pop("measure"), **row} for row in rows])


def answers_on(answers: AttackerMargins, subset: str) -> AttackerMargins:
    """Return an attacker's answers on one subset, or all answers if `subset` is "all"."""
    return answers if subset == ALL else answers.of_items(items_in(answers.pairs, subset))


def cues_of(
    pairs: Pairs, rows: Sequence[AuditRow], ids: Sequence[str], threshold: float
) -> dict[str, list[tuple[Cue, ExamplePair]]]:
    """Return, for each subset, the words and style marks that distinguish true captions from false ones. Each has an
    example.
    """
    tests, cues = len(distinct_tests(rows)), {}
    for subset in pairs.subsets:
        items, of_subset = np.flatnonzero(items_in(pairs, subset)), pairs.of_subset(subset)
        subset_cues = [cue for row in rows if row.subset == subset and not row.view for cue in row.cues]
        shown = cues_to_list(subset_cues, threshold, tests)
        cues[subset] = [(cue, _example(of_subset, cue.example, items, ids)) for cue in shown]
    return cues


def examples_of(
    pairs: Pairs, rows: Sequence[AuditRow], answers: dict[str, AttackerMargins], ids: Sequence[str]
) -> dict[str, list[ExamplePair]]:
    """Return, for each subset, the pairs that its strongest attacker gets right with the largest margins."""
    examples = {}
    for subset in pairs.subsets:
        ranked = by_strength(r for r in rows if r.subset == subset and not r.view)
        if not ranked:
            continue
        of_subset = answers_on(answers[ranked[0].attacker], subset)
        items = np.flatnonzero(items_in(pairs, subset))
        examples[subset] = [
            replace(_example(of_subset.pairs, pair, items, ids), margin=float(of_subset.margins[pair]))
            for pair in surest(of_subset.pairs, np.nan_to_num(of_subset.margins), EXAMPLES)
        ]
    return examples


def _example(pairs: Pairs, pair: int, items: np.ndarray, ids: Sequence[str]) -> ExamplePair:
    positive, negative = pairs.texts[pairs.left[pair]], pairs.texts[pairs.right[pair]]
    return ExamplePair(ids[items[pairs.item[pair]]], positive, negative, 0.0)


def shapes_of(pairs: Pairs, answers: dict[str, AttackerMargins]) -> dict[str, dict[str, GapShape]]:
    """Return the distributions of the items' gaps (see `item_gaps`), by subset and attacker."""
    gaps = {name: item_gaps(pairs, margins.raw) for name, margins in answers.items()}
    return {
        subset: {name: gap_shape(gap[items_in(pairs, subset)]) for name, gap in gaps.items()}
        for subset in (*pairs.subsets, ALL)
    }
