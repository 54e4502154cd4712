"""The tables of a study, laid out as in the papers: Tables 5 and 10 of SugarCrepe, Table 13 of SugarCrepe++."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from creperie.core import write_json
from creperie.training.findings import ARMS, TrainingStudy, seed_interval, seed_share_interval

if TYPE_CHECKING:
    from creperie.training.tuning_study import TuningComparison  # imports torch, without which reports are made

STUDY_FILE = "study.json"
MARKED_GAIN = 10.0  #: gain in points over the training without foils above which a cell is marked
GAIN_MARK = "▲"


@dataclass(frozen=True)
class SeedCell:
    """A table cell with the results of all seeds: accuracies in percent, or gains over training without foils in
    percentage points.
    """

    values: Sequence[float]
    marked: bool = False  #: the gain is above `MARKED_GAIN`
    gain: bool = False

    @property
    def interval(self) -> tuple[float, float, float]:
        """The mean and the two ends of its interval; all are NaN if no seed has a result."""
        if not self.values:
            return math.nan, math.nan, math.nan
        return (seed_interval if self.gain else seed_share_interval)(self.values)

    @property
    def texts(self) -> tuple[str, str]:
        """The mean and the interval as text. With fewer than two seeds, the interval is empty."""
        mean, low, high = (f"{x:+z.1f}" if self.gain else f"{x:z.1f}" for x in self.interval)
        return (mean if self.values else "–"), f"[{low}, {high}]" if len(self.values) > 1 else ""

    def __str__(self) -> str:
        return " ".join(filter(None, (*self.texts, GAIN_MARK if self.marked else "")))


Row = tuple[str | int | SeedCell, ...]


@dataclass(frozen=True)
class StudyTable:
    """A table of a study, with a note that explains how to read it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""

    @property
    def texts(self) -> list[list[str]]:
        """The rows of the table as text."""
        return [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in self.rows]


def study_tables(study: TrainingStudy) -> list[StudyTable]:
    """Return the tables for which the study has results: Table 5, the table of gains, and Table 10."""
    return [t for t in (table_5(study), gains_table(study), table_10(study)) if t.rows]


def write_study(study: TrainingStudy, out: Path) -> dict[str, Any]:
    """Write study.json into the study's folder, atomically, and return its content."""
    document = {**study.document, "tables": [vars(t) | {"rows": t.texts} for t in study_tables(study)]}
    write_json(out / STUDY_FILE, document)
    return document


def table_5(study: TrainingStudy) -> StudyTable:
    """Return SugarCrepe's Table 5: accuracy on biased and on clean test foils, for each type of training foils.

    Gains of more than `MARKED_GAIN` points over training without foils are marked.
    """
    before: Row = ("before", *[SeedCell([s.values[c] for s in study.base]) for c in study.columns])
    rows: list[Row] = [(arm_name(arm), *_cells(study, arm, study.columns)) for arm in study.done]
    title = "Hard negatives in training, tested on biased and on clean foils"
    note = f"Percent right. {_marks_note(study)}"
    return StudyTable(title, ("foils in training", *study.columns), (before, *rows), note)


def gains_table(study: TrainingStudy) -> StudyTable:
    """Return the table of gains over training without foils."""
    arms = [arm for arm in study.done if arm != "none"]
    rows: list[Row] = [(arm_name(arm), *[gain_cell(study, arm, c) for c in study.columns]) for arm in arms]
    note = f"Points gained over the same training without foils, seed by seed. {_marks_note(study)}"
    return StudyTable("Gains", ("foils in training", *study.columns), tuple(rows), note)


def table_10(study: TrainingStudy) -> StudyTable:
    """Return SugarCrepe's Table 10: the accuracy on clean test foils, after training with template foils and after
    training with refined ones. The table has no rows if no model was trained with refined foils.
    """
    columns = [name for name in study.columns if name.startswith("clean ")]
    rows: list[Row] = []
    for arm in sorted(study.done, key=lambda arm: (len(ARMS[arm][0]), ARMS[arm])):
        types, refined = ARMS[arm]
        how = "without foils" if not types else "refined foils" if refined else "template foils"
        rows.append((arm_name(arm).removesuffix(", refined"), how, study.foils(arm), *_cells(study, arm, columns)))
    names = ("foils", "training", "examples with foils", *columns)
    note = f"Percent right on clean foils. {_marks_note(study)}"
    any_refined = any(ARMS[arm][1] for arm in study.done)
    return StudyTable("Refined foils in training", names, tuple(rows) if any_refined else (), note)


def gain_cell(study: TrainingStudy, arm: str, column: str) -> SeedCell:
    """Return a table cell with a gain: the accuracy in `column` after training with the foils that `arm` names, minus
    the accuracy after training without foils.
    """
    gains = study.gains(arm, column)
    return SeedCell(gains, bool(gains) and fmean(gains) > MARKED_GAIN, gain=True)


def _cells(study: TrainingStudy, arm: str, columns: Sequence[str]) -> list[SeedCell]:
    return [SeedCell(study.values(arm, c), gain_cell(study, arm, c).marked) for c in columns]


def table_13(comparison: TuningComparison) -> StudyTable:
    """Return SugarCrepe++'s Table 13: the accuracy on each subset (rows) after each method of tuning (columns).

    Further rows have the recall on held-out pairs, which shows how much the model has forgotten, and the number of
    trained weights.
    """
    names = ("", "test items", *[row.way for row in comparison.rows])
    rows = []
    for subset in comparison.subsets:
        mark = "" if subset in comparison.trained_on else " (not trained on)"
        cells = [f"{r.accuracy[subset]:.2f}" if subset in r.accuracy else "–" for r in comparison.rows]
        rows.append((subset + mark, str(comparison.sizes[subset][1]), *cells))
    for measure in comparison.rows[0].recall:
        rows.append((f"recall {measure}", "", *[f"{r.recall[measure]:.2f}" for r in comparison.rows]))
    rows.append(("trained weights", "", *[f"{r.trained_weights:,}" for r in comparison.rows]))
    note = "Image-to-text accuracy in percent on the items that were not trained on; no image is on both sides."
    return StudyTable(f"Ways of tuning {comparison.model}", names, tuple(rows), note)


def arm_name(arm: str) -> str:
    """Return the name of an arm (a type of training foils) in tables.

    >>> arm_name("swap-refined"), arm_name("all"), arm_name("none")
    ('swap, refined', 'replace + swap + negate', 'none')
    """
    types, refined = ARMS[arm]
    return (" + ".join(types) or "none") + ", refined" * refined


def _marks_note(study: TrainingStudy) -> str:
    above = f"more than {MARKED_GAIN:g} points above the training without foils"
    return f"{GAIN_MARK}: {above}. {_seeds_note(study)}"


def _seeds_note(study: TrainingStudy) -> str:
    """Return a note on how to read the intervals and on which results are still missing."""
    n = len(study.seeds)
    seeds = (
        "One seed." if n == 1 else f"Mean of {n} seeds [{'lowest, highest' if n == 2 else '95 % interval over seeds'}]."
    )
    if study.finished:
        return seeds
    return f"{seeds} Not finished: {len(study.sat)} of {study.size} trainings so far."
