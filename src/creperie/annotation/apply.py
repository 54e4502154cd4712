"""From answers to a new version of the benchmark, to human runs, and to tables of ratings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from creperie.annotation.database import Database
from creperie.annotation.export import exported, study_record
from creperie.annotation.humanruns import human_runs
from creperie.annotation.outcome import MAJORITY, UNANSWERED, WEIGHTED, Judged, Settled, StudyRecord, judged, settle
from creperie.annotation.quality import rating_matrix, weights_of
from creperie.annotation.state import record, study_named
from creperie.annotation.tasks import task_named
from creperie.annotation.tasks.checks import FOIL
from creperie.annotation.tasks.preference import BIAS, FOILS, TIE
from creperie.annotation.tasks.task import StudyTask
from creperie.bench import Benchmark, Item, items_of, load, save, table_of
from creperie.core import UsageError, unknown, write_json
from creperie.metrics import MetricSettings, krippendorff_alpha
from creperie.scoring import Run

KEEP, DROP = "keep", "drop"
#: The study's record beside the benchmark that was made of it.
RECORD = "study.json"
#: Verdicts that speak against an item.
AGAINST = {"foil-check": "true", "positive-check": "reject", "triplet-check": "invalid"}


@dataclass(frozen=True)
class Applied:
    """What became of a study: a benchmark where the task changes or tags one, runs where people competed."""

    document: dict[str, Any]
    record: StudyRecord  #: the exported record that it was computed from
    bench: Benchmark | None = None
    runs: tuple[Run, ...] = ()


def apply_study(
    db: Database,
    name: str,
    bench: Benchmark,
    *,
    undecided: str = KEEP,
    verdict: str = MAJORITY,
    settings: MetricSettings | None = None,
) -> Applied:
    """Turn the answers of a study into what its task is for. Writes nothing."""
    with db.read() as session:
        document = exported(study_record(session, study_named(session, name)))
    return apply_record(document, bench, undecided=undecided, verdict=verdict, settings=settings)


def apply_record(
    document: StudyRecord,
    bench: Benchmark,
    *,
    undecided: str = KEEP,
    verdict: str = MAJORITY,
    settings: MetricSettings | None = None,
) -> Applied:
    """As `apply_study`, from an exported record alone. `verdict` is by majority or weighted by competence."""
    if undecided not in (KEEP, DROP):
        raise unknown("choice", undecided, (KEEP, DROP))
    if verdict not in (MAJORITY, WEIGHTED):
        raise unknown("verdict", verdict, (MAJORITY, WEIGHTED))
    name, expected, found = document["study"], document["bench"]["hash"], judged(document)
    if expected != bench.hash:
        raise UsageError(
            f"study {name!r} was made from different content (hash {expected[:12]}, not {bench.hash[:12]})",
            where=bench.name,
            hint="give the benchmark that the study was made from",
        )
    if not any(one.said or one.decision for one in found):
        hint = "run `creperie annotate serve` and send the links of `annotate invite`"
        raise UsageError(f"study {name!r} has no answers yet", hint=hint)
    task = task_named(document["task"])
    about = _about(document, task, found)
    if task.makes == "run":
        runs = human_runs(bench, document, found, settings or MetricSettings())
        return Applied(about | {"runs": [r.name for r in runs], "results": _results(runs)}, document, runs=tuple(runs))
    if task.makes == "rate":
        return _apply_ratings(bench, document, found, about)
    return _apply_checks(bench, document, found, about, undecided, verdict)


def _about(document: StudyRecord, task: StudyTask, found: Sequence[Judged]) -> dict[str, Any]:
    dimension = task.dimensions[0]
    matrix, names = rating_matrix(dimension, found)
    alpha = krippendorff_alpha(matrix, dimension.scale).value if len(names) > 1 else math.nan
    return {
        "study": document["study"],
        "task": document["task"],
        "export": document["digest"],
        "erased": document["erased"],
        "annotators": names,
        "answers": int((~np.isnan(matrix)).sum()),
        "alpha": None if math.isnan(alpha) else round(alpha, 4),
        "questions": len(found),
        "too_few_answers": sum(not one.complete for one in found),
    }


def _results(runs: Sequence[Run]) -> list[dict[str, Any]]:
    return [{"run": run.name, "model": run.model, **result} for run in runs for result in run.results]


# -- checks ----------------------------------------------------------------------------------------------------------


def _apply_checks(
    bench: Benchmark,
    document: StudyRecord,
    found: Sequence[Judged],
    about: dict[str, Any],
    undecided: str,
    verdict: str,
) -> Applied:
    task = task_named(document["task"])
    weights = weights_of(document) if verdict == WEIGHTED else {}
    verdicts: dict[tuple[str, str], list[tuple[Judged, Settled]]] = {}
    for one in found:
        settled = settle(task, one, weights.get(one.question.ordinal))
        verdicts.setdefault((one.question.subset, one.question.item), []).append((one, settled))
    kept, fates = [], []
    for item in items_of(bench.table):
        changed, fate = _judge(task.name, item, verdicts.get((item.subset, item.id), []), undecided)
        fates.append(fate)
        if changed is not None:
            kept.append(changed)
    settled_by = Counter(s.how for own in verdicts.values() for _, s in own)
    about = about | {
        "fates": dict(Counter(fates)),
        "settled": dict(settled_by),
        "undecided": undecided,
        "verdict": verdict,
    }
    if not kept:
        raise UsageError("no item would be left", where=bench.name, hint="adjudicate the disagreements first")
    made = bench.with_table(table_of(kept), "annotate", **about, when=_today())
    return Applied(about | {"kept": len(kept), "removed": len(bench) - len(kept)}, document, made)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _judge(
    task: str, item: Item, verdicts: Sequence[tuple[Judged, Settled]], undecided: str
) -> tuple[Item | None, str]:
    """An item after its verdicts, None where it goes, and what happened to it."""
    asked = list(verdicts)
    if all(s.how == UNANSWERED for _, s in asked):
        return item, "not judged"
    open_ = [s for _, s in asked if s.value is None or s.value["verdict"] == "unsure"]
    if open_ and undecided == DROP:
        return None, "removed (undecided)"
    against = [one for one, s in asked if s.value is not None and s.value["verdict"] == AGAINST[task]]
    tags = {**item.tags, f"people.{task}": "undecided" if open_ else "confirmed"}
    if against:
        rest = _without_columns(item, {one.question.payload["column"] for one in against}) if task == FOIL else None
        if rest is None:
            return None, "removed"
        return replace(rest, tags={**tags, f"people.{task}": "foil removed"}), "foil removed"
    if (corrected := _corrected(item, asked)) is not None:
        fate = "corrected" if set(corrected.captions) - set(item.captions) else "foil chosen"
        return replace(corrected, tags={**tags, f"people.{task}": fate}), fate
    return replace(item, tags=tags), "undecided" if open_ else "confirmed"


def _without_columns(item: Item, columns: set[int]) -> Item | None:
    """An item without the foils that turned out true; None where none is left, or images share its captions."""
    if len(item.images) > 1:
        return None
    left = [j for j in range(len(item.captions)) if j not in columns]
    row = tuple(item.match[0][j] for j in left)
    if all(row):
        return None
    return replace(item, captions=tuple(item.captions[j] for j in left), match=(row,))


def _corrected(item: Item, asked: Sequence[tuple[Judged, Settled]]) -> Item | None:
    """An item with captions as they were corrected and the one foil that was chosen; None where that is the item."""
    captions, dropped = list(item.captions), set[int]()
    for one, settled in asked:
        value, payload = settled.value or {}, one.question.payload
        if value.get("verdict") == "edit":
            captions[payload["column"]] = value["text"]
        if "foil" in value:
            dropped |= {j for j, fits in enumerate(payload["match"]) if not fits and str(j) != value["foil"]}
    if tuple(captions) == item.captions and not dropped:
        return None
    return _without_columns(replace(item, captions=tuple(captions)), dropped)


# -- ratings ---------------------------------------------------------------------------------------------------------


def _apply_ratings(bench: Benchmark, document: StudyRecord, found: Sequence[Judged], about: dict[str, Any]) -> Applied:
    """The table of a comparison, and the items with what was said about them as tags."""
    tags: Mapping[tuple[str, str], Mapping[str, str | float]]
    if document["task"] == FOILS:
        table, tags = preference_table(found), _preference_tags(found)
    else:
        table, tags = rating_table(found), _rating_tags(found, bench.name)
    items = [replace(i, tags={**i.tags, **tags.get((i.subset, i.id), {})}) for i in items_of(bench.table)]
    made = bench.with_table(table_of(items), "annotate", **about, when=_today())
    return Applied(about | {"table": table, "tagged": len(tags)}, document, made)


def preference_table(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """How often each source's foil was the better one: counts of questions by what most annotators said."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for one in found:
        for name in ("sense", "grammar"):
            if (winner := _preferred(one, name)) is None:
                continue
            for subset in (one.question.subset, "all"):
                row = rows.setdefault((subset, name), {"subset": subset, "evaluation": name, "n": 0})
                for column in (*one.question.payload["sources"], TIE):
                    row.setdefault(column, 0)
                row["n"] += 1
                row[TIE if winner == TIE else one.question.payload["sources"][int(winner)]] += 1
    return [rows[key] for key in sorted(rows, key=lambda k: (k[0] == "all", k))]


def _preferred(one: Judged, name: str) -> str | None:
    """What more annotators said than anything else; as many for either side is a tie."""
    values = [one.decision["value"][name]] if one.decision else [s.value[name] for s in one.said]
    if not values or not one.complete:
        return None
    ranked = Counter(values).most_common(2)
    return TIE if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else str(ranked[0][0])


def _preference_tags(found: Sequence[Judged]) -> dict[tuple[str, str], dict[str, str]]:
    tags: dict[tuple[str, str], dict[str, str]] = {}
    for one in found:
        for name in ("sense", "grammar"):
            if (winner := _preferred(one, name)) is not None:
                said = TIE if winner == TIE else one.question.payload["sources"][int(winner)]
                tags.setdefault((one.question.subset, one.question.item), {})[f"people.better-{name}"] = said
    return tags


def rating_table(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """Mean ratings by source and subset, each item worth the same, with a 95 % interval of the mean."""
    groups: dict[tuple[str, str], list[float]] = {}
    for one in found:
        if (rating := _rating(one)) is not None:
            for subset in (one.question.subset, "all"):
                groups.setdefault((one.question.source, subset), []).append(rating)
    rows = []
    for source, subset in sorted(groups, key=lambda k: (k[0], k[1] == "all", k[1])):
        values = np.array(groups[source, subset])
        half = 1.96 * values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        mean = float(values.mean())
        rows.append(
            {
                "source": source,
                "subset": subset,
                "n": len(values),
                "mean": mean,
                "low": mean - half,
                "high": mean + half,
            }
        )
    return rows


def _rating(one: Judged) -> float | None:
    values = [one.decision["value"]["rating"]] if one.decision else [s.value["rating"] for s in one.said]
    return float(np.mean(values)) if values and one.complete else None


def _rating_tags(found: Sequence[Judged], source: str) -> dict[tuple[str, str], dict[str, float]]:
    return {
        (one.question.subset, one.question.item): {f"people.{BIAS}": rating}
        for one in found
        if one.question.source == source and (rating := _rating(one)) is not None
    }


# -- reading and writing -----------------------------------------------------------------------------------------------


def bench_of(db: Database, name: str, spec: str | None = None, images: str | None = None) -> Benchmark:
    """The benchmark that a study was made of."""
    with db.read() as session:
        study = study_named(session, name)
    where = spec or study.bench.get("spec")
    if not where:
        raise UsageError(f"study {name!r} does not say where its benchmark is", hint="pass `bench=`")
    return load(where, images=images)


def write_applied(
    db: Database | None,
    done: Applied,
    *,
    out: Path | None,
    runs: Path | None,
    force: bool = False,
    actor: str = "cli",
) -> dict[str, Any]:
    """Write what was made: the benchmark with the study's record beside it, the runs into their folder.

    Without a database, from an exported file, no event is recorded.
    """
    written: dict[str, Any] = {"folder": None, "written_runs": []}
    if done.bench is not None:
        if out is None:
            raise UsageError("no folder given for the new version", hint="pass `out='DIR'`")
        save(done.bench, out, force=force, copy_images=False)
        write_json(out / RECORD, done.record)
        written["folder"] = str(out)
    for run in done.runs:
        written["written_runs"].append(str(run.save(runs or Path("runs")).path))
    if db is not None:
        with db.write() as session:
            detail = {"hash": done.bench.hash if done.bench else None, "export": done.record["digest"], **written}
            record(session, actor, "apply", study_named(session, done.record["study"]), detail)
    return done.document | written
