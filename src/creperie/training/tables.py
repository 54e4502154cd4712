"""The tables of a study, in the form of the papers': Tables 5 and 10 of SugarCrepe, Table 13 of SugarCrepe++."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import write_json
from creperie.training.findings import ARMS, TrainingStudy, seed_interval, seed_share_interval
from creperie.training.tuning_study import TuningComparison

STUDY_FILE = "study.json"
MARKED_GAIN = 10.0  #: gain in points over the training without foils above which a cell is marked
GAIN_MARK = "▲"

NAMES = {"none": "none", "all": "replace + swap + negate", "refined": "replace + swap + negate, refined"}


@dataclass(frozen=True)
class TextTable:
    """A table of text cells, with a note on how to read them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def study_tables(study: TrainingStudy) -> list[TextTable]:
    """Return all tables for which the study has results."""
    return [t for t in (table_5(study), gains_table(study), table_10(study)) if t is not None]


def write_study(study: TrainingStudy, out: Path) -> dict[str, Any]:
    """Write study.json into the study's folder, atomically, and return its content."""
    document = {**study.document, "tables": [vars(t) for t in study_tables(study)]}
    write_json(out / STUDY_FILE, document)
    return document


def table_5(study: TrainingStudy) -> TextTable:
    """Return the table of foils in training × biased and clean test foils; gains of more than ten points are marked."""
    names = study.columns
    rows = [("before", *[_cell([s.values[c] for s in study.base]) for c in names])]
    for arm in study.done:
        marks = [f" {GAIN_MARK}" if seed_interval(study.gains(arm, c))[0] > MARKED_GAIN else "" for c in names]
        rows.append((arm_name(arm), *[_cell(study.values(arm, c)) + mark for c, mark in zip(names, marks)]))
    above = f"more than {MARKED_GAIN:g} points above the training without foils"
    note = f"Percent right. {GAIN_MARK}: {above}. {_seeds(study)}"
    title = "Hard negatives in training, tested on biased and on clean foils"
    return TextTable(title, ("foils in training", *names), tuple(rows), note)


def gains_table(study: TrainingStudy) -> TextTable:
    """Return the table of gains over the training without foils."""
    names = study.columns
    arms = [arm for arm in study.done if arm != "none"]
    rows = [(arm_name(arm), *[_cell(study.gains(arm, column), sign=True) for column in names]) for arm in arms]
    note = f"Points gained over the same training without foils, seed by seed. {_seeds(study)}"
    return TextTable("Gains", ("foils in training", *names), tuple(rows), note)


def table_10(study: TrainingStudy) -> TextTable | None:
    """Return the table that compares template foils with refined ones, tested on clean foils; None if no arm was
    refined.
    """
    if not any(ARMS[arm][1] for arm in study.done):
        return None
    names = [name for name in study.columns if name.startswith("clean ")]
    rows = []
    for arm in study.done:
        types, refined = ARMS[arm]
        how = "without foils" if not types else "refined foils" if refined else "template foils"
        what = " + ".join(types) or "none"
        rows.append((how, what, str(study.foils(arm)), *[_cell(study.values(arm, column)) for column in names]))
    rows.sort(key=lambda row: (row[1] != "none", row[1].count("+"), row[1], row[0] != "template foils"))
    note = " ".join((f"Percent right. {_seeds(study)}", *[f"{line[0].upper()}{line[1:]}." for line in study.notes]))
    return TextTable(
        "Refined foils in training", ("training", "foils", "examples with foils", *names), tuple(rows), note
    )


def table_13(comparison: TuningComparison) -> TextTable:
    """Return the table of subsets × tuning methods, and the recall on held-out pairs, which shows forgetting."""
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
    return TextTable(f"Ways of tuning {comparison.model}", names, tuple(rows), note)


def arm_name(arm: str) -> str:
    return NAMES.get(arm, arm.replace("-refined", ", refined"))


def _cell(values: list[float], sign: bool = False) -> str:
    mean, low, high = (seed_interval if sign else seed_share_interval)(values)
    shown = "{:+.1f}" if sign else "{:.1f}"
    if len(values) == 1:
        return shown.format(mean)
    return f"{shown.format(mean)} [{shown.format(low)}, {shown.format(high)}]"


def _seeds(study: TrainingStudy) -> str:
    """Return a note on how to read the intervals, and on what is still missing."""
    n = len(study.seeds)
    seeds = (
        "One seed." if n == 1 else f"Mean of {n} seeds [{'lowest, highest' if n == 2 else '95 % interval over seeds'}]."
    )
    if study.finished:
        return seeds
    return f"{seeds} Not finished: {len(study.sat)} of {study.size} trainings so far."
