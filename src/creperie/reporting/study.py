"""A study of hard negatives as one HTML page: its tables, the gains, every training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from creperie.core import DataError, UsageError, read_json
from creperie.reporting.html_tables import HtmlCell, number, part, table, text
from creperie.reporting.page import page_of
from creperie.reporting.page_figures import figure_html
from creperie.training import (
    ARMS,
    GAIN_MARK,
    MARKED_GAIN,
    STUDY_FILE,
    ExamResult,
    TrainingStudy,
    arm_name,
    read_study,
    seed_interval,
    seed_share_interval,
)


def study_in(places: Sequence[str | Path]) -> Path | None:
    """Return the study file of a call that names it or its folder; None if the call names runs."""
    files = [_study_file(Path(place)) for place in places]
    if len(files) > 1 and any(files):
        raise UsageError(
            "a study is reported alone", where=str(next(filter(None, files))), hint="give it a page of its own"
        )
    return files[0] if files else None


def _study_file(place: Path) -> Path | None:
    if place.name == STUDY_FILE and place.is_file():
        return place
    return place / STUDY_FILE if (place / STUDY_FILE).is_file() else None


def load_study(path: Path) -> TrainingStudy:
    """Return the study in a file; raise a DataError that says what is wrong if no page can be made of it."""
    hint = "write one with `creperie train study`"
    try:
        study = read_study(read_json(path))
        wrong = _wrong(study)
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise DataError(f"is not a study ({type(e).__name__}: {e})", where=str(path), hint=hint) from None
    if wrong:
        raise DataError(f"is not a study ({wrong})", where=str(path), hint=hint)
    return study


def _wrong(study: TrainingStudy) -> str:
    """Return why a study cannot be shown; empty if it can."""
    for arm in study.arms:
        if arm not in ARMS:
            return f"there is no arm {arm!r}"
    if not study.seeds or not study.base:
        return "it has no seed or no exam before the training"
    for sat in (*study.base, *study.sat):
        if sat.arm not in (*study.arms, "base"):
            return f"an exam of {sat.arm!r}, which is not an arm of it"
        for value in (*(sat.values[c] for c in study.columns), *sat.kinds.values(), sat.foils, sat.seconds, sat.seed):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                return f"{value!r} is not a number"
    return "" if isinstance(study.seconds, int | float) and all(isinstance(n, str) for n in study.notes) else "its head"


def study_page(study: TrainingStudy, *, title: str = "", figures: bool = True) -> str:
    """Return the HTML page of a study."""
    if not study.sat:
        raise DataError("no training of this study is finished", hint="call `creperie train study` again")
    sections = [("answer", "Does the gain survive?", _answer(study)), ("table-5", "Table 5", _table_5(study))]
    if len(study.done) > 1:
        sections.append(("gains", "Gains", part("joined", [_chart(study) if figures else "", _gains(study)])))
    if any(ARMS[arm][1] for arm in study.done):
        sections.append(("table-10", "Table 10", _table_10(study)))
    sections.append(("trainings", "Trainings", _trainings(study)))
    title = title or f"Hard negatives in training: {study.preset}"
    return page_of(title, sections=sections, notes=study.notes)


def _parts(column: str) -> tuple[str, str]:
    """Return the test and the kind of a column."""
    test, _, kind = column.partition(" ")
    return test, kind


# -- what is said first ----------------------------------------------------------------------------------------------


def _answer(study: TrainingStudy) -> str:
    seeds = "1 seed" if len(study.seeds) == 1 else f"{len(study.seeds)} seeds"
    missing = "" if study.finished else f" Not finished: {len(study.sat)} of {study.size} trainings."
    size = f"{len(study.done)} arms, {seeds}, {study.seconds:,.0f} s.{missing}"
    return part("arms", list(_by_arm(study)), size, GAIN_MARK)


def _seeds(study: TrainingStudy) -> str:
    """Return a sentence that explains the small numbers."""
    n = len(study.seeds)
    spread = "the lowest and the highest" if n == 2 else "the 95 % interval over seeds"
    return "One seed." if n == 1 else f"Mean of {n} seeds; in small {spread}."


def _by_arm(study: TrainingStudy) -> Iterable[tuple[str, list[tuple[str, float, str, bool]]]]:
    """Yield each arm with the kind of each test on which it gained most: (test, gain, kind, whether it is marked)."""
    for arm in study.done:
        best: dict[str, tuple[float, str]] = {}
        for column in study.columns:
            gains = study.gains(arm, column)
            test, kind = _parts(column)
            if gains and arm != "none":
                best[test] = max(best.get(test, (-1e9, "")), (seed_interval(gains)[0], kind))
        if best:
            yield arm_name(arm), [(test, gain, kind, gain > MARKED_GAIN) for test, (gain, kind) in best.items()]


# -- tables ----------------------------------------------------------------------------------------------------------


def _table_5(study: TrainingStudy) -> str:
    rows = [[text("before", "name"), *[_value([s.values[c] for s in study.base]) for c in study.columns]]]
    for arm in study.done:
        cells = [_value(study.values(arm, c), study.gains(arm, c)) for c in study.columns]
        rows.append([text(arm_name(arm), "name"), *cells])
    note = f"Percent right. {GAIN_MARK}: more than {MARKED_GAIN:g} points above the same training without foils. "
    return _shown(("foils in training", *study.columns), rows, "Table 5", note + _seeds(study))


def _gains(study: TrainingStudy) -> str:
    rows = [
        [text(arm_name(arm), "name"), *[_gain(study.gains(arm, c)) for c in study.columns]]
        for arm in study.done
        if arm != "none"
    ]
    note = f"Points gained over the same training without foils, seed by seed. {_seeds(study)}"
    return _shown(("foils in training", *study.columns), rows, "Gains", note)


def _table_10(study: TrainingStudy) -> str:
    columns = [name for name in study.columns if name.startswith("clean ")]
    rows = []
    for arm in sorted(study.done, key=lambda arm: (len(ARMS[arm][0]), ARMS[arm])):
        types, refined = ARMS[arm]
        how = "without foils" if not types else "refined foils" if refined else "template foils"
        cells = [_value(study.values(arm, c), study.gains(arm, c)) for c in columns]
        rows.append([text(" + ".join(types) or "none", "name"), text(how), number(study.foils(arm)), *cells])
    names = ("foils", "training", "examples with foils", *columns)
    note = f"Percent right on clean foils, {GAIN_MARK} as above. {_seeds(study)}"
    return _shown(names, rows, "Table 10", note, ("foils", "training"))


def _trainings(study: TrainingStudy) -> str:
    """Return a table of all exams by kind."""
    sat = [*study.base, *study.sat]
    kinds = list(dict.fromkeys(kind for s in sat for kind in s.kinds))
    rows = [[*_about(s), *[number(s.kinds.get(kind), ".1f") for kind in kinds]] for s in sat]
    shown = _shown(("training", "seed", "examples with foils", "s", *kinds), rows, "Trainings", "Percent right.")
    return part("folded", f"All {len(sat)} exams, kind by kind", shown)


def _about(sat: ExamResult) -> list[HtmlCell]:
    name = "before" if sat.arm == "base" else arm_name(sat.arm)
    named = HtmlCell(part("titled", sat.model, name), name, "name")
    return [named, number(sat.seed), number(sat.foils), number(sat.seconds, ",.0f")]


def _shown(
    columns: Sequence[str], rows: Iterable[Sequence[HtmlCell]], label: str, note: str, words: Sequence[str] = ()
) -> str:
    shown = table(columns, rows, label=label, text=words or columns[:1])
    return part("slim", shown, note)


def _value(values: Sequence[float], gains: Sequence[float] = ()) -> HtmlCell:
    mean, low, high = seed_share_interval(values)
    marked = bool(gains) and seed_interval(gains)[0] > MARKED_GAIN
    mark = f" {GAIN_MARK}" if marked else ""
    return HtmlCell(part("bold", f"{mean:.1f}{mark}", _span(values, low, high, ".1f")), mean, "sure" if marked else "")


def _gain(gains: Sequence[float]) -> HtmlCell:
    if not gains:
        return HtmlCell("–")
    mean, low, high = seed_interval(gains)
    level = min(6, round(abs(mean) / 4))
    inner = part("tint", level, mean > 0, f"{mean:+.1f}", _span(gains, low, high, "+.1f"))
    return HtmlCell(inner, mean, "heat sure" if mean > MARKED_GAIN else "heat")


def _span(values: Sequence[float], low: float, high: float, form: str) -> str:
    return f"{low:{form}} to {high:{form}}" if len(values) > 1 else ""


# -- the chart -------------------------------------------------------------------------------------------------------


def _chart(study: TrainingStudy) -> str:
    if find_spec("matplotlib") is None:
        return ""
    from creperie.reporting.figures.bars import Gain, gains_by_arm

    arms = {}
    for arm in study.done:
        known = {c: study.gains(arm, c) for c in study.columns}
        if arm != "none" and all(known.values()):
            arms[arm_name(arm)] = [Gain(*_parts(c), *seed_interval(gains)) for c, gains in known.items()]
    if not arms:
        return ""
    caption = "Points gained by kind of test, biased and clean; a line is the range or the interval over seeds"
    return part("figures", [figure_html(gains_by_arm(arms, mark=MARKED_GAIN), caption, "gains")], "figures single")
