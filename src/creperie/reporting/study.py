"""A study of hard negatives as one HTML page: its tables, the gains, and every training run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from creperie.core import DataError, UsageError, counted, read_json
from creperie.reporting.html_tables import HtmlCell, number, part, table, text
from creperie.reporting.page import page_of
from creperie.reporting.page_figures import figure_html
from creperie.training import (
    ARMS,
    GAIN_MARK,
    MARKED_GAIN,
    STUDY_FILE,
    SeedCell,
    StudyTable,
    TrainingStudy,
    arm_name,
    gain_cell,
    gains_table,
    read_study,
    table_5,
    table_10,
)


def study_in(places: Sequence[str | Path]) -> Path | None:
    """Return the study file in `places`, which may name the file or its folder. Return None if `places` are runs. Raise
    a UsageError if anything else is named besides the study.
    """
    files = [
        next((file for file in (place, place / STUDY_FILE) if file.name == STUDY_FILE and file.is_file()), None)
        for place in map(Path, places)
    ]
    if len(files) > 1 and any(files):
        raise UsageError(
            "a report on a training study cannot include other files",
            where=str(next(filter(None, files))),
            hint="pass the study alone",
        )
    return files[0] if files else None


def load_study(path: Path) -> TrainingStudy:
    """Return the study in a file. Raise a DataError if it cannot be shown as a page."""
    try:
        study = read_study(read_json(path))
        wrong = _wrong(study)
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        wrong = f"{type(e).__name__}: {e}"
    if wrong:
        raise DataError(f"is not a study ({wrong})", where=str(path), hint="write one with `creperie train study`")
    return study


def _wrong(study: TrainingStudy) -> str:
    """Return why a study cannot be shown; empty if it can."""
    for arm in study.arms:
        if arm not in ARMS:
            return f"there is no arm {arm!r}"
    if not study.seeds or not study.base:
        return "it has no seed, or no result before the training"
    for sat in (*study.base, *study.sat):
        if sat.arm not in (*study.arms, "base"):
            return f"a result of {sat.arm!r}, which is not one of its arms"
        for value in (*(sat.values[c] for c in study.columns), *sat.kinds.values(), sat.foils, sat.seconds, sat.seed):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                return f"{value!r} is not a number"
    fine = isinstance(study.seconds, int | float) and all(isinstance(n, str) for n in study.notes)
    return "" if fine else "its seconds or notes have the wrong type"


def study_page(study: TrainingStudy, *, title: str = "", figures: bool = True) -> str:
    """Return the HTML page of a study."""
    if not study.sat:
        raise DataError("no training of this study is finished", hint="call `creperie train study` again")
    sections = [
        ("answer", "Does the gain survive?", _answer(study)),
        ("table-5", "Table 5", _table(table_5(study), "Table 5")),
    ]
    if (gains := gains_table(study)).rows:
        drawn = [_chart(study) if figures else "", _table(gains, "Gains")]
        sections.append(("gains", "Gains", part("joined", drawn)))
    if (refined := table_10(study)).rows:
        sections.append(("table-10", "Table 10", _table(refined, "Table 10")))
    sections.append(("trainings", "Trainings", _trainings(study)))
    title = title or f"Hard negatives in training: {study.preset}"
    return page_of(title, sections=sections, notes=study.notes)


def _test_and_foil(column: str) -> tuple[str, str]:
    """Split the name of a column into the test and the kind of foil."""
    test, _, kind = column.partition(" ")
    return test, kind


# -- the answer ------------------------------------------------------------------------------------------------------


def _answer(study: TrainingStudy) -> str:
    seeds = counted(len(study.seeds), "seed")
    missing = "" if study.finished else f" Not finished: {len(study.sat)} of {study.size} trainings."
    size = f"{len(study.done)} arms, {seeds}, {study.seconds:,.0f} s of training.{missing}"
    return part("arms", list(_by_arm(study)), size, GAIN_MARK)


def _by_arm(study: TrainingStudy) -> Iterable[tuple[str, list[tuple[str, float, str, bool]]]]:
    """Yield, for each type of training foils, its name and a list of its largest gains, one per test. A gain is the
    increase in accuracy over training without foils. Each entry of the list has the test, the gain, the kind of test
    foils with this gain, and whether the gain is large enough to be marked.
    """
    for arm in study.done:
        best: dict[str, tuple[float, str, bool]] = {}
        for column in study.columns:
            cell = gain_cell(study, arm, column)
            test, kind = _test_and_foil(column)
            if cell.values and arm != "none":
                best[test] = max(best.get(test, (-math.inf, "", False)), (cell.interval[0], kind, cell.marked))
        if best:
            yield arm_name(arm), [(test, *most) for test, most in best.items()]


# -- tables ----------------------------------------------------------------------------------------------------------


def _table(shown: StudyTable, label: str) -> str:
    rows = [[_html(cell, name=k == 0) for k, cell in enumerate(row)] for row in shown.rows]
    words = [column for column, cell in zip(shown.columns, shown.rows[0]) if isinstance(cell, str)]
    return _results_part(shown.columns, rows, label, shown.note, words)


def _html(cell: str | int | SeedCell, name: bool) -> HtmlCell:
    if isinstance(cell, str):
        return text(cell, "name" if name else "")
    if isinstance(cell, int):
        return number(cell)
    if not cell.values:
        return HtmlCell("–")
    mean, (shown, span) = cell.interval[0], cell.texts
    sure, shown = ("sure", f"{shown} {GAIN_MARK}") if cell.marked else ("", shown)
    if not cell.gain:
        return HtmlCell(part("bold", shown, span), mean, sure)
    level = min(6, round(abs(mean) / 4))
    return HtmlCell(part("tint", level, mean > 0, shown, span), mean, f"heat {sure}".rstrip())


def _trainings(study: TrainingStudy) -> str:
    """Return a table of the test results of every training run, by kind of foil."""
    sat = [*study.base, *study.sat]
    kinds = list(dict.fromkeys(kind for s in sat for kind in s.kinds))
    rows = []
    for s in sat:
        name = "before" if s.arm == "base" else arm_name(s.arm)
        about = [HtmlCell(part("titled", s.model, name), name, "name"), number(s.seed), number(s.foils)]
        rows.append([*about, number(s.seconds, ",.0f"), *(number(s.kinds.get(kind), ".1f") for kind in kinds)])
    shown = _results_part(("training", "seed", "examples with foils", "s", *kinds), rows, "Trainings", "Percent right.")
    return part("folded", f"All {len(sat)} test results, by kind", shown)


def _results_part(
    columns: Sequence[str], rows: Iterable[Sequence[HtmlCell]], label: str, note: str, words: Sequence[str] = ()
) -> str:
    shown = table(columns, rows, label=label, text=words or columns[:1])
    return part("slim", shown, note)


# -- the chart -------------------------------------------------------------------------------------------------------


def _chart(study: TrainingStudy) -> str:
    if find_spec("matplotlib") is None:
        return ""
    from creperie.reporting.figures.bars import Gain, gains_by_arm

    arms = {}
    for arm in study.done:
        cells = {c: gain_cell(study, arm, c) for c in study.columns}
        if arm != "none" and all(cell.values for cell in cells.values()):
            arms[arm_name(arm)] = [Gain(*_test_and_foil(c), *cell.interval) for c, cell in cells.items()]
    if not arms:
        return ""
    caption = "Points gained by kind of test, biased and clean; a line is the range or the interval over seeds"
    rows = [[arm, *vars(gain).values()] for arm, gains in arms.items() for gain in gains]
    heads = ["arm", "test", "kind", "points", "low", "high"]
    drawn = figure_html("gains", gains_by_arm(arms, mark=MARKED_GAIN), caption, heads, rows)
    return part("figures", [drawn], "figures single")
