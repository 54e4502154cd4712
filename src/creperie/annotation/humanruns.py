"""Runs of human performance, with the same files as runs of models: people's choices fill the score matrix."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from creperie.annotation.outcome import Judged, StudyRecord
from creperie.annotation.quality import agreement_of
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.performance import FIND
from creperie.annotation.tasks.task import Payload, Value
from creperie.bench import Benchmark
from creperie.core import Json
from creperie.metrics import Input, MetricSettings
from creperie.models import Fingerprint
from creperie.scoring import Run, layout_of_bench, nothing_computed, run_header, score_table

EVERYBODY = "everybody"


def human_runs(bench: Benchmark, study: StudyRecord, questions: Sequence[Judged], breakers: int = 0) -> list[Run]:
    """Return one run of everybody's combined votes, followed by one run per annotator. If there is only one annotator,
    return only that annotator's run.

    Each run also holds the number of people whose answers it contains, the agreement of all annotators, and `breakers`,
    the number of people who break the study's rules.
    """
    names, _, alpha = agreement_of(task_named(study["task"]), questions)
    makers = {**({EVERYBODY: len(names)} if len(names) > 1 else {}), **dict.fromkeys(names, 1)}
    about = {"study": study["study"], "alpha": alpha, **({"rule_breakers": breakers} if breakers else {})}
    return [_run(bench, study, questions, who, about | {"number": number}) for who, number in makers.items()]


def _run(bench: Benchmark, study: StudyRecord, questions: Sequence[Judged], who: str, people: Json) -> Run:
    # Without an image, scores are between captions; else between image and caption.
    blind = study["task"] == FIND and not any(one.payload["images"] for one in questions)
    needs: Input = "text_text" if blind else "image_text"
    layout = layout_of_bench(bench)
    votes = {}
    for one in questions:
        values = [s.value for s in one.answers if who in (EVERYBODY, s.annotator)]
        if who == EVERYBODY and one.decision is not None:
            values = [one.decision["value"]]
        if values:
            scores_of = [_scores(study["task"], one.payload, value) for value in values]
            votes[one.subset, one.item] = np.mean(scores_of, axis=0).ravel()
    keys = zip(bench.column("subset").to_pylist(), bench.column("id").to_pylist(), strict=True)
    unasked = (np.full(int(width), np.nan) for width in layout.widths(needs))
    scores = np.concatenate([votes.get(key, missing) for key, missing in zip(keys, unasked)]).astype(np.float32)
    table = score_table(bench, layout, {needs: scores})
    digest = hashlib.sha256(scores.tobytes()).hexdigest()
    prompt = study["revisions"][-1]["instructions"]
    mark = Fingerprint(f"human:{study['study']}/{who}", "people", digest, dtype="answers", prompt=prompt)
    # A benchmark's name is untrusted: it must not lead out of the folder of runs.
    safe = re.sub(r"[^\w.+-]+", "-", bench.name).strip(".-")[:80] or "bench"
    name = f"{safe}.human-{study['study']}-{who}.{digest[:8]}"
    with_pairs = ["itt", "t2i", "group"] if (layout.rows > 1).any() else ["itt"]
    document = {
        **run_header(name, bench, mark, MetricSettings()),
        **nothing_computed(),
        "tasks": ["tot"] if blind else with_pairs,
        "people": people,
        "export": study["digest"],
        "coverage": {"items": len(bench), needs: len(votes)},
    }
    document["results"] = [r.as_dict() for r in Run(document, table).evaluate()]
    return Run(document, table)


def _scores(task: str, payload: Payload, value: Value) -> np.ndarray:
    """Return an answer as a score matrix: the chosen captions have score 1, all others 0. If people were asked which
    caption is false, the scores are reversed: 0 for the chosen caption, 1 for all others.
    """
    captions = np.eye(len(payload["captions"]))
    if task != FIND:
        return captions[value["captions"]]
    same = 1.0 - captions[value["caption"]]
    return same[None] if payload["images"] else np.maximum(np.outer(same, same), captions)
