"""Stages that check items: by rules, by a model, or by people in a study (by scripts in small profiles).

Scripted annotators are programs that answer a study through the same pages as people, so that a small profile has every
stage. Their answers are not judgements of people. Results based on them are marked `scripted` wherever they are shown.
"""

from __future__ import annotations

import random
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from creperie.bench import ERROR, Benchmark, ProvenanceStep, check, limited, load, save
from creperie.core import DataError, Json, UsageError, write_json
from creperie.lang import words
from creperie.recipes.steps import StageJob, engine_for
from creperie.scoring import Run, benchmark_header

if TYPE_CHECKING:
    from creperie.annotation import Database

OWN_ADDRESS = "http://127.0.0.1"  #: the base URL of the application inside this process
TURNED = {"0": "1", "1": "0"}  #: answers that are positions on the page → the opposite position
CERTAIN = 0.95  #: the probability of the expected answer, if a task has one
EXPECTED = {"foil-check": "false", "positive-check": "accept", "triplet-check": "valid"}


def answer_all(db: Database, tokens: Sequence[str], task: str, seed: int) -> int:
    """Answer all questions of a study, with one scripted annotator per invitation token. Return how many answers were
    stored.
    """
    from creperie.annotation import Site, create_app

    app = create_app(Site(db))
    return sum(_annotate(app, token, task, f"{seed}/{n}") for n, token in enumerate(tokens))


def _annotate(app: Any, token: str, task: str, who: str) -> int:
    from fastapi.testclient import TestClient

    page = {"accept": "text/html"}
    with TestClient(app, base_url=OWN_ADDRESS, headers=page, follow_redirects=False) as client:
        csrf = _csrf(client.get(f"/join/{token}"))
        client.post(f"/join/{token}", data={"csrf": csrf})
        headers = {"X-CSRF-Token": _csrf(client.get("/work", follow_redirects=True))}
        state = _read(client.post("/api/next", json={}, headers=headers))
        count = 0
        while question := state["question"]:
            answer = {
                "slot": question["slot"],
                "key": secrets.token_urlsafe(12),
                "fields": _fields(question, task, who),
                "comment": "scripted",
            }
            state = _read(client.post("/api/answer", json=answer, headers=headers))
            count += 1
        return count


def _csrf(reply: Any) -> str:
    token = re.search(r'name="csrf" (?:content|value)="([^"]+)"', reply.text)
    if reply.status_code != 200 or token is None:
        raise DataError(
            f"the annotation page has no form (status {reply.status_code})",
            where=reply.url,
            hint="start the recipe again; the server's log says more",
        )
    return token[1]


def _read(reply: Any) -> Mapping[str, Any]:
    if reply.status_code != 200:
        raise DataError(
            f"the annotation server answered {reply.status_code}: {reply.text[:200]}",
            where=reply.url,
            hint="start the recipe again",
        )
    return reply.json()


def _fields(question: Mapping[str, Any], task: str, who: str) -> dict[str, str | int]:
    """Return a scripted annotator's answer: usually the one that the task expects, sometimes a random one."""
    # The answer depends only on the annotator and the question, not on the order of questions, captions or options,
    # which the server draws at random. So two studies of the same items get the same answers.
    shown = [text for _, text in question["texts"]]
    labels = sorted(option["label"] for field in question["fields"] for option in field["options"] or ())
    dice = random.Random(repr((who, sorted(shown), labels)))
    turned = shown[-2:] != sorted(shown[-2:])
    expected = EXPECTED.get(task, "")
    answer: dict[str, str | int] = {}
    for field in question["fields"]:
        when = field["when"]
        if when is not None and answer.get(when[0]) != when[1]:
            continue
        if field["kind"] == "scale":
            rating = dice.randint(field["low"], field["high"])
            answer[field["name"]] = field["low"] + field["high"] - rating if turned else rating
        elif field["kind"] == "text":
            answer[field["name"]] = f"{field['value'].rstrip('.')} here."
        else:
            options = sorted(field["options"], key=lambda option: option["label"])
            if field["name"] == "foil":
                missed = _words_missed(shown, [option["label"] for option in options])
                options.sort(key=lambda option: len(missed[option["label"]]))
                expected = expected if not missed[options[0]["label"]] else "invalid"  # all are about other things
            values = [option["value"] for option in options]
            usual = values[0] if field["name"] == "foil" else expected
            chosen = usual if usual in values and dice.random() < CERTAIN else dice.choice(values)
            answer[field["name"]] = TURNED.get(chosen, chosen) if turned and not options[0].get("quote") else chosen
    return answer


def _words_missed(shown: Sequence[str], foils: Sequence[str]) -> dict[str, set[str]]:
    """Return, for each foil, the words that occur in all true captions but not in the foil.

    >>> _words_missed(["A cat is on a bed.", "A bed is under a cat."], ["A cat is under a bed.", "A cat is on a car."])
    {'A cat is under a bed.': set(), 'A cat is on a car.': {'bed'}}
    """
    true = [set(words(text)) for text in shown if text not in foils]
    shared = set.intersection(*true) if true else set()
    return {foil: shared - set(words(foil)) for foil in foils}


Key = tuple[str, str]


def run_check(job: StageJob) -> Json:
    """Save the benchmark without the items in which `data check` finds errors."""
    bench = load(job.input)
    findings = [f for f in check(bench, images=False, progress=job.progress) if f.severity == ERROR]
    summary = keep_others(bench, {(f.subset, f.item) for f in findings if f.item}, job, "check")
    write_json(job.out / "findings.json", [asdict(f) for f in findings])
    return summary | {"findings": dict(Counter(f.code for f in findings))}


def run_validate(job: StageJob) -> Json:
    """Save the benchmark without the items that a validator model rejects."""
    from creperie.making import validate

    bench = load(job.input)
    model, limit = job.option("model"), job.option("limit") or None
    own = {"prompts": job.option("prompts"), "engine": engine_for(job, model)}
    validation = validate(bench, model, limit=limit, progress=job.progress, **own)
    summary = keep_others(bench, validation.failed, job, "validate", model=model)
    write_json(job.out / "validation.json", validation.document)
    return summary | {"calls": validation.document["calls"], "codes": validation.document["codes"]}


def keep_others(bench: Benchmark, bad: set[Key], job: StageJob, why: str, **by: str) -> Json:
    keep = np.array([key not in bad for key in bench.item_keys], bool)
    if not keep.any():
        raise DataError(
            "the check removed every item", where=f"stage {job.name}", hint="give more items or another model"
        )
    rest = bench.filter(keep, why=why) if not keep.all() else bench
    removed = int((~keep).sum())
    save(rest.with_table(rest.table, why, removed=removed, **by), job.out, progress=job.progress)
    return {"items": len(rest), "removed": removed, "subsets": rest.subsets}


RUNS = "runs"  #: the folder of people's choices as runs, like those of models
PEOPLE = "people.json"  #: the file with the results of the study, beside the items
STUDY = "study"


def run_people(job: StageJob) -> Json:
    """Apply people's answers in a study to the items. If there is no study yet, create one and raise an error that says
    how to invite people.

    A second input is a benchmark with which people compare the items.
    """
    benches = [load(place) for place in job.inputs[:2]]
    if each := job.option("per_subset"):
        if job.option("apply"):
            raise UsageError(
                f"stage {job.name!r} asks about only some items of each subset, so it cannot change the benchmark",
                hint="write `apply: false`",
            )
        benches = [_sample_of(bench, each, job.option("seed")) for bench in benches]
    bench, other = benches[0], next(iter(benches[1:]), None)
    database = job.work / "people.db" if job.option("scripted") else job.out.parent / f"{job.name}.db"
    if other is not None and other.name == bench.name:
        raise UsageError(f"both benchmarks are called {bench.name!r}", where=f"stage {job.name}", hint="rename one")
    if job.option("scripted") or not database.is_file():
        _prepare(bench, other, job, database)
    return _by_study(bench, other, job, database)


def _same_parts(bench: Benchmark, other: Benchmark) -> list[str]:
    """Return the names of the subsets that have the same items in both benchmarks."""
    parts: list[dict[str, set[tuple[str, ...]]]] = [{}, {}]
    for part, items in zip(parts, (bench, other), strict=True):
        for item in items:
            part.setdefault(item.subset, set()).add((item.id, *item.captions))
    return [subset for subset, items in parts[0].items() if parts[1].get(subset) == items]


def _sample_of(bench: Benchmark, each: int, seed: int) -> Benchmark:
    """Return a sample of `each` items per subset. If items are left out, the sample gets a name of its own."""
    part = limited(bench, each, seed)
    return part if len(part) == len(bench) else replace(part, name=f"{len(part)}-of-{bench.name}")


def _prepare(bench: Benchmark, other: Benchmark | None, job: StageJob, database: Path) -> None:
    """Create the study in the database and, if the stage is scripted, let scripts answer it."""
    from creperie.annotation import StudyPlan, invite, open_database, store_study

    scripted = job.option("scripted")
    plan = StudyPlan(
        task=job.option("task"),
        overlap=job.option("overlap"),
        subsets=tuple(job.option("subsets")),
        sample=job.option("sample") or None,
        with_image=job.option("with_image"),
        seed=job.option("seed"),
        practice=0 if scripted else None,  # scripts need no practice
    )
    database.parent.mkdir(parents=True, exist_ok=True)
    for old in database.parent.glob(f"{database.name}*") if scripted else ():  # left by an interrupted run
        old.unlink()
    with closing(open_database(database)) as db:
        store_study(db, STUDY, bench, plan, other=other, spec=job.input, pictures=not scripted)
        tokens = [i.token for i in invite(db, STUDY, plan.overlap)]
        if scripted:
            answer_all(db, tokens, plan.task, plan.seed)


def _by_study(bench: Benchmark, other: Benchmark | None, job: StageJob, database: Path) -> Json:
    from creperie.annotation import ApplyPlan, BrokenRulesError, apply_study, open_database

    plan = ApplyPlan(undecided=job.option("undecided"), as_is=job.option("scripted"))  # scripts may break rules
    try:
        with closing(open_database(database)) as db:
            done = apply_study(db, STUDY, bench, plan)
    except BrokenRulesError as e:
        raise UsageError(
            e.what,
            where=f"stage {job.name}",
            hint=f"exclude them with `creperie annotate exclude {STUDY} --rules --db {database}` and let others answer",
        ) from None
    except UsageError as e:
        raise UsageError(
            f"people's answers are not complete: {e.what}",
            where=f"stage {job.name}",
            hint=f"invite people with `creperie annotate invite {STUDY} --db {database}` and serve the pages with "
            f"`creperie annotate serve --db {database}`; to use a benchmark that people have checked, pass "
            f"--use {job.name}=BENCH; to skip the stage, pass --set {job.name}.skip=true",
        ) from None
    judged = done.bench if done.bench is not None and job.option("apply") else bench
    if job.option("scripted") and judged is not bench:
        *before, last = judged.provenance
        marked = ProvenanceStep(last.op, _by_scripts(last.args), last.inputs)
        judged = replace(judged, provenance=(*before, marked))
    save(judged, job.out, progress=job.progress)
    names = [bench.name, *([other.name] if other is not None else [])]
    document = {**done.document, "scripted": job.option("scripted"), "sources": names}
    if other is not None:
        document["same_items"] = _same_parts(*map(load, job.inputs[:2]))
        head = benchmark_header(other)
        document["other"] = {name: head[name] for name in ("name", "provenance")}  # its items are not saved here
    runs = list(done.runs)
    if job.option("scripted"):
        runs = _renamed(runs, document["annotators"])
        document = _by_scripts(document)
        results = [{"run": run.name, "model": run.model, **result} for run in runs for result in run.results]
        document |= {"runs": [run.name for run in runs], "results": results} if runs else {}
    write_json(job.out / PEOPLE, document)
    for run in runs:
        people = {**run.document["people"], "scripted": job.option("scripted")}
        Run({**run.document, "people": people}, run.table).save(job.out / RUNS)
    counts = {"items": len(judged), "removed": len(bench) - len(judged), "subsets": judged.subsets}
    shown = ("task", "annotators", "answers", "alpha", "fates", "scripted")
    return counts | {name: document[name] for name in shown if name in document}


def _renamed(runs: Sequence[Run], annotators: Sequence[str]) -> list[Run]:
    """Return the runs with the random pseudonyms of scripted annotators replaced by `script-1`, `script-2` and so on.
    The numbers are the same in every run.
    """
    # They follow the order of a hash of the annotators' answers.
    own = {name: run for name in annotators for run in runs if run.model.endswith(f"/{name}")}
    renamed = [run for run in runs if run not in own.values()]
    for n, name in enumerate(sorted(own, key=lambda name: own[name].document["model"]["fingerprint"]["weights"]), 1):
        document, script = own[name].document, f"script-{n}"
        uri = own[name].model.removesuffix(name) + script
        fingerprint = {**document["model"]["fingerprint"], "uri": uri}
        model = {**document["model"], "uri": uri, "fingerprint": fingerprint}
        changed = {"name": document["name"].replace(f"-{name}.", f"-{script}."), "model": model}
        renamed.append(Run({**document, **changed}, own[name].table))
    return renamed


def _by_scripts(about: Mapping[str, Any]) -> Json:
    """Return the document of a scripted study without the parts that differ from run to run: pseudonyms, digest and
    date.
    """
    lasting = {name: value for name, value in about.items() if name not in ("export", "when", "rule_breakers")}
    names = [f"script-{n}" for n, _ in enumerate(about["annotators"], 1)]
    return {**lasting, "annotators": names, "scripted": True}
