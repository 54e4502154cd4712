"""Stages that write results: the papers' tables with rows from these runs, and the papers' figures."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from creperie.bench import MANIFEST_FILE, load
from creperie.core import CreperieError, Json, UsageError, read_json, write_json, write_text
from creperie.recipes.judging import ANSWERS, PAIRWISE, runs_in
from creperie.recipes.people import PEOPLE, RUNS
from creperie.recipes.steps import StageJob
from creperie.recipes.training import TUNING
from creperie.reporting import (
    DRAWINGS,
    FigureOptions,
    PublishedTable,
    RecipeFindings,
    draw_figure,
    fact_rows,
    fill_table,
    misplaced,
    published_table,
    render_table,
    save_figure,
)
from creperie.scoring import Run, benchmark_header
from creperie.training import STUDY_FILE

FORMS = (("text", "txt"), ("markdown", "md"), ("html", "html"))


def run_table(job: StageJob) -> Json:
    """Write every table as text, Markdown, HTML and JSON, with the rows that can be filled. Return the number of rows,
    and the reason for each run that fills no row.
    """
    runs = [run for folder in job.inputs for run in runs_in(Path(folder))]
    findings = replace(findings_of(job), runs=tuple((run.model, run.benchmark, run.results) for run in runs))
    sets = [*map(benchmark_header, findings.benches.values())]
    sets += [study["other"] for study in findings.people.values() if "other" in study]
    job.out.mkdir(parents=True)
    if runs:
        write_results(runs, job.out / "results.csv")
    filled = {}
    for key in job.option("tables"):
        table = published_table(key)
        fitting, reasons = _fitting(table, runs, job.option("same"))
        rows = fact_rows(key, findings)
        done = fill_table(table, fitting, rows=rows, sets=sets, same=job.option("same"), any_benchmark=True)
        stem = key.replace("/", "-")
        for form, ending in FORMS:
            write_text(job.out / f"{stem}.{ending}", render_table(done, form))
        write_json(job.out / f"{stem}.json", done.document())
        filled[key] = {"rows": len(done.ours), "not_filled": reasons}
    return {"tables": filled, "runs": len(runs)}


def _fitting(table: PublishedTable, runs: Sequence[Run], same: dict[str, str]) -> tuple[list[Run], dict[str, str]]:
    """Return two values: the runs that fit into the table, and the reasons why other runs do not, by the name of the
    run. `same` maps model URIs to the names of printed rows.
    """
    # A run does not fit, for example, if an earlier run of the same model already fills the column.
    fitting: list[Run] = []
    reasons = {}
    for run in runs:
        if why := misplaced(table, run):
            reasons[run.name] = why
            continue
        own = [other for other in fitting if other.model == run.model]
        try:
            fill_table(table, [*own, run], same=same, any_benchmark=True)
            fitting.append(run)
        except UsageError as e:
            reasons[run.name] = e.what
    return fitting, reasons


def findings_of(job: StageJob) -> RecipeFindings:
    """Return the content of a stage's inputs other than runs: benchmarks, people's answers, training studies and other
    documents. Each is given by the name of the stage that wrote it.
    """
    findings = RecipeFindings()
    piles = {
        PAIRWISE: findings.pairwise,
        PEOPLE: findings.people,
        STUDY_FILE: findings.trainings,
        TUNING: findings.tunings,
        ANSWERS: findings.answers,
    }
    for stage, place in own_places(job.sources, job.inputs).items():
        folder = Path(place)
        has_items = (folder / MANIFEST_FILE).is_file()
        if has_items and not (folder / RUNS).is_dir():  # a study of choices made no items
            findings.benches[stage] = load(place)
        for path in sorted(folder.glob("*.json")):
            if path.name in piles:
                piles[path.name][stage] = read_json(path)
            elif not has_items and isinstance(document := read_json(path), dict) and "fits" in document:
                findings.fits[f"{stage} {path.stem}"] = document
    return findings


def own_places(stages: Sequence[str], places: Sequence[str]) -> dict[str, str]:
    """Return the path of each input, by the name of the stage that wrote it. This is usually the stage named in
    `stages`. But a skipped stage passes on its own input, so its path leads to the output of an earlier stage; the name
    is then that of the earlier stage.

    >>> own_places(["refine", "trainings", "released"], ["out/04-people", "out/04-people", "sugarcrepe:data"])
    {'people': 'out/04-people', 'released': 'sugarcrepe:data'}
    """
    made_by = (re.fullmatch(r"\d+-(.+)", Path(place).name) for place in places)
    return {made[1] if made else stage: place for stage, place, made in zip(stages, places, made_by, strict=True)}


def write_results(runs: Sequence[Run], path: Path) -> None:
    """Write all results of the runs as CSV, one line per result. Scripted annotators are labelled `script:` instead of
    `human:`.
    """
    names = ("task", "subset", "n", "hits", "ties", "accuracy", "low", "high", "chance")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["benchmark", "model", *names])
        for run in runs:
            scripted = run.document.get("people", {}).get("scripted")
            model = run.model.replace("human:", "script:", 1) if scripted else run.model
            for row in run.results:
                writer.writerow([run.benchmark, model, *(row[name] for name in names)])


def run_figure(job: StageJob) -> Json:
    """Draw each figure as SVG. Each entry of the option `figures` is `NUMBER: DRAWING STAGE…`. STAGE/PATTERN selects a
    file or run of a stage.

    A figure that cannot be drawn from the output of its stages is left out, and the reason is recorded.
    """
    places = dict(zip(job.sources, job.inputs, strict=True))
    options = job.settings(FigureOptions)
    job.out.mkdir(parents=True)
    drawn = {}
    reasons = {}
    for number, line in job.option("figures").items():
        drawing, *words = line.split()
        if drawing not in DRAWINGS:
            raise UsageError(
                f"unknown figure {drawing!r}", where=f"stage {job.name}", hint="`creperie figure` lists them"
            )
        try:
            figure = draw_figure(drawing, [_place(word, places, job) for word in words], options)
            save_figure(figure, job.out / f"figure-{number}.svg")
            drawn[number] = drawing
        except CreperieError as e:
            reasons[number] = e.what  # without the path, which depends on the machine
    write_json(job.out / "figures.json", {"drawn": drawn, "not_drawn": reasons})
    return {"figures": drawn, "not_drawn": reasons}


def _place(word: str, places: dict[str, str], job: StageJob) -> str:
    stage, slash, file = word.partition("/")
    if stage not in places:
        raise UsageError(f"{stage!r} is not an input of stage {job.name!r}", hint=f"write `from: [{stage}, …]`")
    if not slash:
        return places[stage]
    files = sorted(Path(places[stage]).glob(file))
    if not files:
        raise UsageError(
            f"stage {stage!r} has no file that matches {file!r}",
            where=f"stage {job.name}",
            hint="correct the file name in the option `figures`",
        )
    return str(files[0])
