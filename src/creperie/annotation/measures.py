"""How a study is going: progress, agreement, and how fast and reliable each annotator is."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from creperie.annotation.outcome import Judged, Said, disagreements, judged, settle, stamp_of
from creperie.annotation.schema import (
    ATTENTION,
    DONE,
    HELD,
    MAIN,
    SKIP,
    VOID,
    Annotator,
    Answer,
    Question,
    Slot,
    StudyRow,
)
from creperie.annotation.study import StudyPlan
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.task import Dimension, StudyTask
from creperie.metrics import Agreement, MetricSettings, cohen_kappa, fleiss_kappa, krippendorff_alpha, percent_agreement

#: Cohen's kappa is for two raters; for more, every pair is listed up to this many annotators.
PAIRS_UP_TO = 6


def progress(session: Session, study: StudyRow) -> list[dict[str, Any]]:
    """Slots by subset: how many there are, how many are done, how many are in somebody's hands."""
    rows = session.execute(
        select(Question.subset, Slot.state, func.count())
        .join(Question, Question.id == Slot.question_id)
        .where(Slot.study_id == study.id, Slot.kind == MAIN)
        .group_by(Question.subset, Slot.state)
    ).all()
    found: dict[str, dict[str, Any]] = {}
    for subset, state, n in rows:
        row = found.setdefault(subset, {"subset": subset, "slots": 0, "done": 0, "held": 0})
        row["slots"] += n if state != VOID else 0
        if state in (DONE, HELD):
            row[state] += n
    return [found[name] for name in sorted(found)]


# -- agreement -------------------------------------------------------------------------------------------------------


def agreement(task: StudyTask, found: Sequence[Judged], settings: MetricSettings) -> list[dict[str, Any]]:
    """Every coefficient for every dimension of the task, with intervals over items."""
    clusters = _clusters(found)
    rows = []
    for dimension in task.dimensions:
        matrix, names = rating_matrix(dimension, found)
        for one in _coefficients(dimension, matrix, names, clusters, settings):
            rows.append({"dimension": dimension.name, **one})
    return rows


def rating_matrix(dimension: Dimension, found: Sequence[Judged]) -> tuple[np.ndarray, list[str]]:
    """Questions × annotators, NaN for no answer."""
    names = sorted({s.annotator for one in found for s in one.said})
    column = {name: n for n, name in enumerate(names)}
    matrix = np.full((len(found), len(names)), np.nan)
    for row, one in enumerate(found):
        for said in one.said:
            matrix[row, column[said.annotator]] = dimension.code(one.question.payload, said.value)
    return matrix, names


def _clusters(found: Sequence[Judged]) -> np.ndarray:
    """Questions about one picture, or about one item, are not independent."""
    keys: dict[Any, int] = {}
    return np.array(
        [keys.setdefault(tuple(one.question.payload["images"]) or one.key, len(keys)) for one in found], np.int64
    )


def _coefficients(
    dimension: Dimension, matrix: np.ndarray, names: list[str], clusters: np.ndarray, settings: MetricSettings
) -> list[dict[str, Any]]:
    if len(names) < 2:
        return []
    raters = (~np.isnan(matrix)).sum(axis=1)
    rows = [_shown(percent_agreement(matrix, clusters, settings), "all")]
    rows.append(_shown(krippendorff_alpha(matrix, dimension.scale, clusters, settings), "all"))
    common = np.bincount(raters[raters >= 2]) if (raters >= 2).any() else np.zeros(0)
    if len(common) and dimension.scale == "nominal":
        same = raters == int(common.argmax())
        rows.append(
            _shown(fleiss_kappa(matrix[same], clusters[same], settings), f"{int(common.argmax())} answers each")
        )
    if len(names) <= PAIRS_UP_TO:
        weights = "none" if dimension.scale == "nominal" else "quadratic"
        for a, b in itertools.combinations(range(len(names)), 2):
            both = ~np.isnan(matrix[:, [a, b]]).any(axis=1)
            if both.any():
                kappa = cohen_kappa(matrix[both, a], matrix[both, b], weights, clusters[both], settings)  # type: ignore[arg-type]
                rows.append(_shown(kappa, f"{names[a]}, {names[b]}"))
    return rows


def _shown(one: Agreement, who: str) -> dict[str, Any]:
    return {"kind": one.kind, "who": who, **{k: v for k, v in asdict(one).items() if k != "kind"}}


# -- annotators ------------------------------------------------------------------------------------------------------


def annotators(
    session: Session, study: StudyRow, measured: dict[str, dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Per annotator: answers, skips, speed, attention checks passed, agreement with the others."""
    known = measured if measured is not None else _measured_people(session, study, judged(session, study))
    everybody = select(Annotator).where(Annotator.study_id == study.id).order_by(Annotator.id)
    return [
        {
            "annotator": one.pseudonym,
            "quota": one.quota,
            **known[one.pseudonym],
            "note": one.note,
            "revoked": one.revoked is not None,
            "excluded": one.excluded is not None,
            "excluded_why": one.excluded_why,
            "withdrawn": one.withdrawn is not None,
            "outcome": one.outcome,
            "expires": one.expires,
        }
        for one in session.scalars(everybody)
    ]


def _measured_people(session: Session, study: StudyRow, found: Sequence[Judged]) -> dict[str, dict[str, Any]]:
    task = task_named(study.task)
    checks = _by_annotator_and_question(judged(session, study, ATTENTION, everyone=True))
    skips, skipped_checks = _skips(session, study, MAIN), _skips(session, study, ATTENTION)
    everything = judged(session, study, everyone=True)
    said = _by_annotator(everything)
    compared = _with_others(task, everything, {s.annotator for one in found for s in one.said})
    named = session.execute(select(Annotator.id, Annotator.pseudonym).where(Annotator.study_id == study.id))
    rows = {}
    for number, name in named:
        own = said.get(name, [])
        seconds = [s.seconds for s in own if s.seconds is not None]
        passed = sum(known is not None and task.right(value, known) for value, known in checks.get(name, ()))
        agreed, pairs = compared.get(name, (0, 0))
        rows[name] = {
            "answers": len(own),
            "skipped": skips.get(number, 0),
            "comments": sum(bool(s.comment) for s in own),
            "median_seconds": statistics.median(seconds) if seconds else math.nan,
            "active_seconds": sum(seconds),
            "attention_passed": passed,
            # whoever skips a check does not pass it
            "attention_asked": len(checks.get(name, ())) + skipped_checks.get(number, 0),
            "agreement": agreed / pairs if pairs else math.nan,
            "compared": pairs,
            "last": max((s.at for s in own), default=None),
        }
    return rows


def _by_annotator_and_question(checks: Sequence[Judged]) -> dict[str, list[tuple[Any, Any]]]:
    """What each annotator said to the checks, with the known answers."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for one in checks:
        for said in one.said:
            found.setdefault(said.annotator, []).append((said.value, one.question.expected))
    return found


def _skips(session: Session, study: StudyRow, kind: str) -> dict[int, int]:
    """Skipped questions of a kind per annotator, less those that were taken back."""
    rows = session.execute(
        select(Answer.annotator_id, Answer.question_id, Answer.kind)
        .join(Question, Question.id == Answer.question_id)
        .where(Answer.study_id == study.id, Question.kind == kind)
        .where(Answer.annotator_id.in_(select(Answer.annotator_id).where(Answer.kind == SKIP)))
        .order_by(Answer.annotator_id, Answer.turn)
    )
    last = {(who, question): done for who, question, done in rows}
    return Counter(who for (who, _), done in last.items() if done == SKIP)


def _by_annotator(found: Sequence[Judged]) -> dict[str, list[Said]]:
    said: dict[str, list[Said]] = {}
    for one in found:
        for own in one.said:
            said.setdefault(own.annotator, []).append(own)
    return said


def _with_others(task: StudyTask, found: Sequence[Judged], admitted: set[str]) -> dict[str, tuple[int, int]]:
    """For each annotator: how many answers of admitted others to the same questions are the same, of how many."""
    counts: dict[str, tuple[int, int]] = {}
    for one in found:
        codes = [[d.code(one.question.payload, s.value) for d in task.dimensions] for s in one.said]
        for a, b in itertools.combinations(range(len(codes)), 2):
            same = all(
                abs(x - y) <= (1 if d.scale == "interval" else 0)
                for d, x, y in zip(task.dimensions, codes[a], codes[b])
            )
            for me, other in ((one.said[a], one.said[b]), (one.said[b], one.said[a])):
                if other.annotator in admitted:
                    agreed, pairs = counts.get(me.annotator, (0, 0))
                    counts[me.annotator] = (agreed + same, pairs + 1)
    return counts


# -- all of it -------------------------------------------------------------------------------------------------------


_SEEN: WeakKeyDictionary[Any, OrderedDict[Any, dict[str, Any]]] = WeakKeyDictionary()


def overview(session: Session, study: StudyRow, settings: MetricSettings) -> dict[str, Any]:
    """A study as its owner sees it. What has not changed since it was last looked at is not computed again."""
    kept = _SEEN.setdefault(session.get_bind().engine.pool, OrderedDict())
    key = (study.id, stamp_of(session, study), settings)
    if key not in kept:
        kept[key] = _measured(session, study, settings)
        while len(kept) > 8:
            kept.popitem(last=False)
    subsets = progress(session, study)
    return {
        "study": study.name,
        "task": study.task,
        "state": study.state,
        "pilot": study.phase == 0,
        "bench": study.bench,
        "plan": asdict(StudyPlan(**study.plan)),
        "slots": sum(s["slots"] for s in subsets),
        "done": sum(s["done"] for s in subsets),
        "held": sum(s["held"] for s in subsets),
        "subsets": subsets,
        **kept[key],
        "annotators": annotators(session, study, kept[key]["annotators"]),
    }


def _measured(session: Session, study: StudyRow, settings: MetricSettings) -> dict[str, Any]:
    task = task_named(study.task)
    found = judged(session, study)
    how = Counter(settle(task, one).how for one in found)
    differ = disagreements(task, found)
    return {
        "questions": len(found),
        "settled": dict(how),
        "disagreements": len(differ),
        "to_adjudicate": sum(one.decision is None for one in differ),
        "agreement": agreement(task, found, settings),
        "annotators": _measured_people(session, study, found),
    }
