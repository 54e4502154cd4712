"""Human performance as runs, beside those of models: what people chose fills the score matrix."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from creperie.annotation.outcome import Judged, StudyRecord
from creperie.annotation.quality import agreement_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.performance import FIND
from creperie.annotation.tasks.task import Payload, Value
from creperie.bench import Benchmark
from creperie.metrics import Input, Layout, MetricSettings
from creperie.models import Fingerprint
from creperie.scoring import Run, layout_of_bench, nothing_computed, run_header, score_table

EVERYBODY = "everybody"


def human_runs(bench: Benchmark, study: StudyRecord, questions: Sequence[Judged]) -> list[Run]:
    """A run of everybody's votes together, and one of each annotator.

    How many people a run stands for, and how far they agree, is shown beside the accuracy in reports.
    """
    names, _, alpha = agreement_of(task_named(study["task"]), questions)
    makers = [EVERYBODY, *names] if len(names) > 1 else names
    people = {who: len(names) if who == EVERYBODY else 1 for who in makers}
    about = {"study": study["study"], "alpha": alpha}
    return [_run(bench, study, questions, who, about | {"number": n}) for who, n in people.items()]


def _run(bench: Benchmark, study: StudyRecord, questions: Sequence[Judged], who: str, people: dict[str, Any]) -> Run:
    needs = _needs(study, questions)
    layout = layout_of_bench(bench)
    votes = {
        (one.question.subset, one.question.item): _mean(_scores(study["task"], one.question.payload, values))
        for one in questions
        if (values := _values_of(one, who))
    }
    scores = _flat(bench, layout, needs, votes)
    table = score_table(bench, layout, {needs: scores})
    digest = hashlib.sha256(scores.tobytes()).hexdigest()
    prompt = study["revisions"][-1]["instructions"]
    mark = Fingerprint(f"human:{study['study']}/{who}", "people", digest, dtype="answers", prompt=prompt)
    # A benchmark's name is its author's: it must not lead out of the folder of runs.
    safe = re.sub(r"[^\w.+-]+", "-", bench.name).strip(".-")[:80] or "bench"
    name = f"{safe}.human-{study['study']}-{who}.{digest[:8]}"
    document = {
        **run_header(name, bench, mark, MetricSettings()),
        **nothing_computed(),
        "tasks": _tasks(needs, layout),
        "people": people,
        "export": study["digest"],
        "coverage": {"items": len(bench), needs: len(votes)},
    }
    document["results"] = [r.as_dict() for r in Run(document, table).evaluate()]
    return Run(document, table)


def _values_of(one: Judged, who: str) -> list[Value]:
    """Return what somebody chose; for everybody together, an owner's decision goes before the votes."""
    if who == EVERYBODY and one.decision is not None:
        return [one.decision["value"]]
    return [s.value for s in one.answers if who in (EVERYBODY, s.annotator)]


def _needs(study: StudyRecord, questions: Sequence[Judged]) -> Input:
    """Return which scores the answers are: between captions where no image was shown, else of image and caption."""
    blind = study["task"] == FIND and not any(one.question.payload["images"] for one in questions)
    return "text_text" if blind else "image_text"


def _tasks(needs: Input, layout: Layout) -> list[str]:
    if needs == "text_text":
        return ["tot"]
    return ["itt", "t2i", "group"] if (layout.rows > 1).any() else ["itt"]


def _scores(task: str, payload: Payload, values: Iterable[Value]) -> list[np.ndarray]:
    """Return the score matrix that each answer stands for."""
    width = len(payload["captions"])
    if task == FIND and payload["images"]:
        return [1.0 - np.eye(width)[value["caption"]][None] for value in values]
    if task == FIND:
        return [_alike(width, value["caption"]) for value in values]
    return [np.eye(width)[value["captions"]] for value in values]


def _alike(width: int, odd: int) -> np.ndarray:
    """Return captions by captions: 1 where both are not the odd one."""
    same = np.arange(width) != odd
    matrix: np.ndarray = (same[:, None] & same[None, :]).astype(float)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _mean(matrices: Sequence[np.ndarray]) -> np.ndarray:
    mean: np.ndarray = np.mean(np.stack(matrices), axis=0).astype(np.float32).ravel()
    return mean


def _flat(bench: Benchmark, layout: Layout, needs: Input, votes: Mapping[tuple[str, str], np.ndarray]) -> np.ndarray:
    """Return the scores of all items in one array; NaN where nobody was asked."""
    widths = layout.widths(needs)
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    parts = [votes.get(key, np.full(int(width), np.nan, np.float32)) for key, width in zip(keys, widths, strict=True)]
    flat: np.ndarray = np.concatenate(parts).astype(np.float32)
    return flat
