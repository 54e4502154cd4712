"""Stages that evaluate a benchmark, and models on it: refine, audit, compare, probe, score, stats, answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from creperie.bench import MANIFEST_FILE, Benchmark, load, record_audit
from creperie.core import DataError, Json, UsageError, check_name, read_json, write_json
from creperie.recipes.people import RUNS
from creperie.recipes.steps import StageJob
from creperie.recipes.training import trained_models
from creperie.scoring import RUN_FILE, SHOTS_FILE, Run, ScoreOptions, blind_twin, load_run, score_all

PAIRWISE = "pairwise.json"
ANSWERS = "answers.json"
#: option → the only probe that takes it
ALONE = {"captioner": "order", "references": "order", "others": "cases", "shuffles": "cases"}
FIGURES = {"construction": "1", "argument-order": "2"}  #: analysis → number of its figure in Hit or Be Hit

if TYPE_CHECKING:
    from creperie.refining import AttackerStanding


def run_refine(job: StageJob) -> Json:
    """Refine the benchmark until the attackers have no advantage, and save it. Return its counts and the verdict."""
    from creperie.auditing import AttackerModels
    from creperie.refining import RefinePlan, refine, write_refined

    plan, models = job.settings(RefinePlan), job.settings(AttackerModels)
    refined = refine(load(job.input), plan=plan, models=models, progress=job.progress)
    if not len(refined.bench):
        raise DataError(
            "no item is left after refinement", where=f"stage {job.name}", hint="give more items, or fewer bins"
        )
    name = job.option("name") or f"{refined.bench.name}-refined"  # never the name of the original benchmark
    bench = write_refined(replace(refined, bench=replace(refined.bench, name=name)), job.out, place=job.place)
    standings = {s.name: _before_and_after(s) for s in refined.standings if "all" in s.before and "all" in s.after}
    counts = {"items": len(bench), "removed": len(refined.removed), "subsets": bench.subsets}
    return {**counts, "verdict": refined.judgement.verdict, "text": refined.judgement.text, "attackers": standings}


def _before_and_after(attacker: AttackerStanding) -> Json:
    """Return an attacker's accuracy before and after refinement, on all items and as the unweighted mean over
    subsets.
    """
    # Only the mean shows the change within subsets, because the weights of the subsets among all items change.
    numbers = {"held_out": attacker.held_out, "leaks": list(attacker.leaks)}
    subsets = [name for name in attacker.after if name != "all" and name in attacker.before]
    for when, figures in (("before", attacker.before), ("after", attacker.after)):
        numbers[when] = figures["all"].accuracy
        numbers[f"mean_{when}"] = sum(figures[name].accuracy for name in subsets) / len(subsets)
        numbers[f"{when}_interval"] = [figures["all"].low, figures["all"].high]
    return numbers


def run_audit(job: StageJob) -> Json:
    """Audit the benchmark with blind attackers, and write the verdict as JSON and as an HTML page."""
    from creperie.auditing import AttackerModels, audit, audit_document, write_audit_page

    chosen = {name: job.option(name) for name in ("attackers", "threshold")}
    models = job.settings(AttackerModels)
    bench = load(job.input)
    report = audit(bench, **chosen, models=models, engine=job.engine, progress=job.progress)
    document = audit_document(report)
    write_json(job.out / "audit.json", document)
    write_audit_page(document, job.out / "audit.html")
    record_audit(Path(job.input), audit_document(report, job.input))  # its cards state the verdict
    accuracies = {r.attacker: r.measure.accuracy for r in report.rows if r.subset == "all"}
    return {"verdict": report.verdict, "text": report.whole.text, "items": report.items, "attackers": accuracies}


def run_compare(job: StageJob) -> Json:
    """Compare the foils of two benchmarks, as in Table 4 of SugarCrepe, and write the counts."""
    from creperie.auditing import (
        AttackerModels,
        compare_pairwise,
        make_attackers,
        runnable_attackers,
        scoring_attackers,
    )

    if len(job.inputs) != 2:
        raise UsageError(f"stage {job.name!r} needs two benchmarks to compare", hint="write `from: [rebuild, make]`")
    models = job.settings(AttackerModels)
    sent = scoring_attackers(make_attackers(runnable_attackers(list(job.option("attackers")), models)[0], models))
    a, b = (load(place) for place in job.inputs)
    rows = [asdict(row) for row in compare_pairwise(a, b, sent, progress=job.progress)]
    used = {"lm-mean": models.lm_uri, "plausibility": models.plausibility, "grammar": models.grammar or "link-grammar"}
    named = {attacker.name: used.get(attacker.name, "") for attacker in sent}
    write_json(job.out / PAIRWISE, {"first": a.name, "second": b.name, "models": named, "results": rows})
    return {
        "pairs": max(row["n"] for row in rows),
        "better": {f"{r['kind']} {r['attacker']}": r["better"] for r in rows},
    }


def run_probe(job: StageJob) -> Json:
    """Probe models as in the SADE paper, and write one document per probe. The figures are drawn from these
    documents.
    """
    from creperie.auditing import PROBES
    from creperie.recipes.making import chosen_items

    bench = chosen_items(load(job.input, images=job.option("images") or None), (), job.option("limit") or None)
    options = ScoreOptions(device=job.option("device"))
    models = [*job.option("models"), *trained_models(job.inputs[1:])]
    orders = []
    for what in job.option("to"):
        check_name("probe", what, PROBES)
        more = {name: job.option(name) for name, probe in ALONE.items() if probe == what}
        answer = PROBES[what](bench, models, options, seed=job.option("seed"), progress=job.progress, **more)
        write_json(job.out / f"{what}.json", answer.document())
        orders += [[s.model, s.kind, s.above, s.n] for s in answer.spreads if s.kind != "caption" and what == "order"]
    about = {"items": len(bench), "probes": list(job.option("to")), "models": len(models)}
    return about | ({"shuffled": orders} if orders else {})


def run_score(job: StageJob) -> Json:
    """Score the models that the options name or that an input stage trained, and write one run per model."""
    bench, models, options = scoring_of(job)
    runs = score_all([bench], models, options, out=job.out, engine=job.engine, progress=job.progress)
    return scored(runs) | decided(bench, runs)


def scoring_of(job: StageJob) -> tuple[Benchmark, list[str], ScoreOptions]:
    """Return what a stage scores: the benchmark, the URIs of the models, and the options."""
    from creperie.metrics import MetricSettings
    from creperie.models import prompt_files, with_prompts

    settings = MetricSettings(seed=job.option("seed"))
    options = ScoreOptions(tasks=tuple(job.option("tasks")), settings=settings, device=job.option("device"))
    bench = load(job.input, images=job.option("images") or None)
    bench = blind_twin(bench, job.option("blind")) if job.option("blind") else bench
    models = [*job.option("models"), *trained_models(job.inputs[1:])]
    if (folder := job.option("prompts")) and prompt_files(folder):
        models = [with_prompts(uri, folder) for uri in models]
    if (shots := Path(job.input) / SHOTS_FILE).is_file():  # only models that can be shown demonstrations
        models = [f"{uri}&shots={quote(str(shots))}" for uri in models if "score=choice" in uri]
    if not models:
        raise UsageError(
            f"stage {job.name!r} has no model",
            hint="name models in `models`, or list in `from` a stage that trains a model",
        )
    return bench, models, options


def scored(runs: Sequence[Run]) -> Json:
    """Return a summary of the runs: their number, the number of items, and one entry for each model and task. An entry
    has the accuracy, the chance level, and the numbers of ties and of items without an outcome.
    """
    parts = {"results": "accuracy", "ties": "ties", "void": "void", "chance": "chance"}
    figures = {
        part: {run.model: {r["task"]: r[key] for r in run.results if r["subset"] == "all"} for run in runs}
        for part, key in parts.items()
    }
    return {"runs": len(runs), "items": len(runs[0]), **figures}


def decided(bench: Benchmark, runs: Sequence[Run]) -> Json:
    """Return {"decidable": counts}. The counts say for how many items text alone distinguishes the foils from the true
    captions: "decidable", "not decidable" or "unknown". Only items with several true captions are counted.

    The result is empty if there are no such items, or if no run has text-only scores.
    """
    from creperie.lang import decidability

    if not any("text_text" in run.inputs for run in runs):
        return {}
    several = [item for item in bench if len(item.positives) > 1 and item.negatives]
    counts = Counter(decidability(item.positives, item.negatives)[0] for item in several)
    return {"decidable": dict(counts)} if counts else {}


def run_stats(job: StageJob) -> Json:
    """Fit the mixed models named in the options to the runs. Captions and tags come from the benchmarks among the
    inputs.
    """
    from creperie.reporting import interactions, save_figure
    from creperie.statistics import (
        LINK_GRAMMAR,
        AnalysisExtras,
        TableReading,
        find_analysis_preset,
        fit_study,
        load_preference,
        long_table,
        with_families,
    )

    folders = [Path(place) for place in job.inputs]
    runs = [run for folder in folders for run in runs_in(folder)]
    benches = [load(place) for place in job.inputs if (Path(place) / MANIFEST_FILE).is_file()]
    if not runs or not benches:
        raise UsageError(f"stage {job.name!r} needs runs and their benchmark", hint="write `from: [score, make]`")
    reading = TableReading(grammar=load_preference(job.option("grammar") or LINK_GRAMMAR))
    long = long_table(runs, benches, reading, job.progress)
    fitted = {}
    drawn = {}
    own = {"family": job.option("family"), "random": tuple(job.option("random"))}
    given = {option: value for option, value in own.items() if value}
    for name in job.option("presets"):
        chosen = find_analysis_preset(name)
        analyses = {label: replace(analysis, **given) for label, analysis in chosen.analyses.items()}
        wish = AnalysisExtras(job.option("per_model"), lenient=True, required=chosen.plot[1], cells=chosen.plot)
        ready = with_families(long.table, analyses, "", chosen.ours)
        done = fit_study(ready.table, ready.analyses, wish=wish, progress=job.progress)
        about = {"grammar": job.option("grammar") or LINK_GRAMMAR, "benchmarks": [bench.name for bench in benches]}
        write_json(job.out / f"{name}.json", done.document() | about)
        number = FIGURES.get(name)
        if number and any(f.cells for f in done.fits):
            title = " and ".join(about["benchmarks"])
            save_figure(interactions(done.fits, chosen.plot, title), job.out / f"figure-{number}.svg")
            drawn[number] = "interaction"
        fitted[name] = {
            "converged": done.converged,
            "effects": {f.name: {c.name: c.estimate for c in f.fit.coefficients} for f in done.fits},
            "rows": {f.name: f.fit.n for f in done.fits},
            "not_fitted": {skipped.name: skipped.reason for skipped in done.skipped},
        }
    return {"presets": fitted, "runs": len(runs), "rows": len(long.table), "figures": drawn}


def run_answers(job: StageJob) -> Json:
    """Write the share of right answers in each subset, averaged over the orders in which the captions were shown.

    The answers are GPT-4V's, as SugarCrepe released them: one folder per order (positive first, negative first), with
    one file per subset.
    """
    shares: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    for path in sorted(Path(job.option("source")).glob("*/*.json")):
        right = [bool(row["correct"]) for row in read_json(path).values() if isinstance(row, dict)]  # one is a number
        subset = path.stem.partition("-")[2]
        shares.setdefault(subset, []).append(100 * sum(right) / len(right))
        sizes.setdefault(subset, len(right))
    if not shares:
        raise DataError(
            "found no files with answers",
            where=job.option("source"),
            hint="name a folder with a subfolder for each order of the captions; each holds files NAME-SUBSET.json",
        )
    values = {subset: sum(own) / len(own) for subset, own in shares.items()}
    write_json(job.out / ANSWERS, {"model": job.option("row"), "values": values, "n": sizes})
    return {"model": job.option("row"), "subsets": len(values), "orders": {s: len(own) for s, own in shares.items()}}


def runs_in(folder: Path) -> list[Run]:
    """Return the runs in a folder, including those of people's choices, sorted by model. The folder may itself be a
    run.
    """
    if (folder / RUN_FILE).is_file():
        return [load_run(folder)]
    places = [*folder.glob(f"*/{RUN_FILE}"), *folder.glob(f"{RUNS}/*/{RUN_FILE}")]
    return sorted((load_run(path.parent) for path in sorted(places)), key=lambda run: run.model)
