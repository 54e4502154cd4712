"""`creperie score`: scoring models on benchmarks."""

from __future__ import annotations

import math
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.bench import DrawOptions
from creperie.cli.options import engine_options, options_of
from creperie.cli.output import CommandResult, answers, bar, echo, say
from creperie.cli.score_text import matrix_text, show_matrix, show_plans, show_run, slurm_script
from creperie.core import Json, UsageError, option, percent, write_text
from creperie.engine import parse_shard
from creperie.metrics import MetricSettings
from creperie.scoring import ScoreOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from creperie.engine import Engine
    from creperie.recipes import Zoo, ZooEntry
    from creperie.scoring import Forecast, Matrix, MatrixCell, Run

#: more runs than this are shown as one table
SHOWN_RUNS = 6
#: suffix of --table → format
TABLES = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".html": "html"}


@dataclass(frozen=True)
class ScoreCall:
    """Options that say what is scored, in which shard, and what is written besides the runs."""

    models: tuple[str, ...] = option((), "A model; repeat for more.", flags="--model -m", metavar="URI", whole=True)
    blind: str | None = option(
        None,
        "Blind twin: replace the images by these, drawn with --seed.",
        flags="--image",
        choices=("noise", "gaussian", "mean", "shuffled"),
    )
    prompts: str | None = option(
        None, "Prompts of your own: a folder of prompt files, or one file of prompts by name.", metavar="DIR|FILE"
    )
    shard: str | None = option(None, "Only this share of the items; `creperie merge` joins shards.", metavar="I/N")
    dry_run: bool = option(False, "Show the plan and what it costs, and stop.")
    no_cache: bool = option(False, "Compute everything anew and store nothing.")
    fail_fast: bool = option(False, "Stop at the first model that fails; by default the others continue.")
    row: int | None = option(None, "Only the N-th model: for array jobs.", minimum=1)
    slurm: str | None = option(None, "Write a Slurm array script with one job per model, and stop.", metavar="FILE")
    table: Path | None = option(None, "Write the matrix: .tex .md .csv .html.", metavar="FILE")
    site: Path | None = option(None, "Write the leaderboard as a web site.", metavar="DIR")
    out: str = option("runs", "The folder for the runs.", metavar="DIR")


@click.command()
@click.argument("benchmarks", nargs=-1, metavar="[BENCH…|ZOO.yaml]")
@options_of("call", ScoreCall)
@options_of("part", DrawOptions)
@options_of("options", ScoreOptions)
@options_of("settings", MetricSettings)
@engine_options
@answers
def score(
    benchmarks: tuple[str, ...],
    call: ScoreCall,
    part: DrawOptions,
    options: ScoreOptions,
    settings: MetricSettings,
    engine: Engine | None,
) -> CommandResult:
    """Score models on benchmarks: one model on one benchmark, or many models and benchmarks listed in a zoo file.

    \b
    creperie score sugarcrepe --model hf:openai/clip-vit-base-patch32
    creperie score zoo.yaml --dry-run
    creperie score zoo.yaml --table zoo.tex --site site

    All models are checked before the first one is run. If a model fails, its cells stay empty, the reason is given,
    and the exit code is 2. The exit code is 3 if more than 5 % of a run's items have answers that were cut off.
    Everything that is computed is kept in the store (`creperie cache`), so the same command resumes where it stopped,
    and a second run computes nothing.
    """
    if call.table and call.table.suffix not in TABLES:
        raise UsageError(f"--table {call.table}: unknown kind of file", hint=f"end the name in {', '.join(TABLES)}")
    zoo, declared = _zoo(benchmarks, call, part)
    if call.slurm:
        write_text(Path(call.slurm), slurm_script(sys.argv[1:], len(zoo.models)))
        return CommandResult({"slurm": call.slurm, "jobs": len(zoo.models)}, lambda: say(f"sbatch {call.slurm}"))
    if engine is not None and call.shard:
        raise UsageError("--shard and --engine both split the work", hint="leave out one of them")
    options = replace(
        options,
        settings=replace(settings, seed=part.seed or 0),
        command=shlex.join(["creperie", *sys.argv[1:]]),
        cache=not call.no_cache,
        shard=parse_shard(call.shard) if call.shard else None,
    )
    matrix, missing = _matrix(call, zoo, options, engine, resume=declared)
    if call.dry_run:
        return _plan(matrix)
    cells = _computed(matrix)
    return _answer(cells, zoo, declared, call, missing)


def _zoo(benchmarks: tuple[str, ...], call: ScoreCall, part: DrawOptions) -> tuple[Zoo, bool]:
    """Return the models and benchmarks to score, as a zoo, and whether they come from a zoo file. With a zoo file,
    incomplete runs are resumed.
    """
    from creperie.recipes import Zoo, ZooEntry, is_zoo, read_zoo

    files = [spec for spec in benchmarks if is_zoo(spec)]
    if files and (len(benchmarks) > 1 or call.models):
        raise UsageError(
            f"the zoo file {files[0]} already names models and benchmarks",
            hint="leave out --model and other benchmarks",
        )
    if files:
        zoo = read_zoo(files[0])
    else:
        zoo = Zoo(tuple(map(ZooEntry, dict.fromkeys(call.models))), tuple(map(ZooEntry, benchmarks)))
    for uri in call.models:
        if len(parts := uri.split(",")) > 1 and all(":" in part for part in parts):
            raise UsageError(f"--model {uri} names several models", hint="repeat --model for each of them")
    if not zoo.models:
        raise UsageError("no model given", hint="pass --model URI or a zoo file")
    if not zoo.benches:
        raise UsageError("no benchmark given", hint="name one, or a zoo file")
    given = {name: value for name, value in vars(part).items() if value not in (None, ())}
    zoo = replace(zoo, defaults={**given, **zoo.defaults})
    if call.prompts:
        zoo = replace(zoo, models=_with_prompts(zoo.models, call.prompts))
    if call.row:
        if call.row > len(zoo.models):
            raise UsageError(
                f"--row {call.row}: there are only {len(zoo.models)} models",
                hint=f"give a number from 1 to {len(zoo.models)}",
            )
        zoo = replace(zoo, models=zoo.models[call.row - 1 : call.row])
    return zoo, bool(files)


def _with_prompts(models: tuple[ZooEntry, ...], place: str) -> tuple[ZooEntry, ...]:
    from creperie.models import prompt_files, with_prompts
    from creperie.recipes import prompt_folder

    folder, _ = prompt_folder(place)
    if not prompt_files(folder):
        raise UsageError(
            f"--prompts {place}: there are no prompts for models in this folder",
            hint="name a folder with caption.toml, choice.toml, vqa.toml or yesno.toml",
        )
    return tuple(replace(entry, spec=with_prompts(entry.spec, folder)) for entry in models)


def _matrix(
    call: ScoreCall, zoo: Zoo, options: ScoreOptions, engine: Engine | None, *, resume: bool
) -> tuple[Matrix, dict[str, str]]:
    from creperie.recipes import matrix_columns, matrix_rows
    from creperie.scoring import Matrix

    columns, missing = matrix_columns(zoo)
    rows = matrix_rows(zoo, options)
    for bench, reason in missing.items():
        if call.fail_fast:
            raise UsageError(reason)
        named = reason if bench in reason else f"{bench}: {reason}"
        echo(f"cannot be loaded, its column is left out: {named}", error=True)
    for row in (r for r in rows if r.fault):
        if len(rows) == 1 or call.fail_fast:
            raise UsageError(row.fault)
        reason = row.fault if row.label in row.fault else f"{row.label}: {row.fault}"
        echo(f"cannot be run, its cells stay empty: {reason}", error=True)
    if call.blind:
        from creperie.scoring import blind_twin

        columns = [replace(c, bench=blind_twin(c.bench, call.blind, options.settings.seed)) for c in columns]
    alone = len(rows) * len(columns) == 1
    matrix = Matrix(
        rows,
        columns,
        Path(call.out),
        fail_fast=call.fail_fast or alone,
        resume=resume and not call.shard,
        engine=engine,
        progress=bar,
    )
    return matrix, missing


def _computed(matrix: Matrix) -> list[MatrixCell]:
    """Compute all cells and return them. If there are several models, print a line on stderr after each model."""
    import time

    from creperie.cli.score_text import duration

    start, cells = time.monotonic(), []
    size, total = len(matrix.columns), len(matrix.rows)
    for number in range(total):
        mine = list(matrix.row(number))
        cells += mine
        if total == 1:
            continue
        failed = [cell for cell in mine if cell.error]
        outcome = f"{len(mine) - len(failed)} of {size} scored" + (f"; {failed[0].error}" if failed else "")
        left = duration((time.monotonic() - start) / (number + 1) * (total - number - 1))
        place = f"model {number + 1} of {total}, cell {(number + 1) * size} of {total * size}, {left} left"
        echo(f"{place}: {matrix.rows[number].label}: {outcome}", error=True)
    matrix.store.trim()
    return cells


def _answer(
    cells: list[MatrixCell], zoo: Zoo, declared: bool, call: ScoreCall, missing: Mapping[str, str]
) -> CommandResult:
    from creperie.scoring import MOST_CUT, rank_runs

    runs = [cell.run for cell in cells if cell.run is not None]
    failed = [cell for cell in cells if cell.error]
    as_table = declared or len(cells) > SHOWN_RUNS or call.table
    ranked = rank_runs(runs, names=zoo.names()) if as_table and runs else None
    named = [replace(cell, model=zoo.names().get(cell.model, cell.model)) for cell in cells]
    document = _document(runs, declared) | ({"standings": ranked.document()} if ranked else {})
    document["written"] = [str(place) for place in (call.table, call.site) if place and runs]
    document["failed"] = [{"model": c.model, "benchmark": c.benchmark, "error": c.error} for c in failed]
    document["failed"] += [{"model": None, "benchmark": bench, "error": error} for bench, error in missing.items()]
    if declared:
        document["tags"] = {entry.spec: dict(entry.tags) for entry in (*zoo.models, *zoo.benches) if entry.tags}
        document["cells"] = {"all": len(cells), "failed": len(failed), "resumed": sum(c.resumed for c in cells)}

    if call.table and ranked:
        write_text(call.table, matrix_text(ranked, TABLES[call.table.suffix], named))
    if declared or call.site:
        from creperie.reporting import remember_zoo

        remember_zoo(Path(call.out), zoo.names(), [(c.model, c.benchmark, c.error) for c in named if c.error])
    if call.site and runs:
        from creperie.reporting import export_site

        export_site(Path(call.out), call.site, progress=bar)

    cut = [run for run in runs if run.cut_off > MOST_CUT * len(run)]
    document["cut_off"] = {run.name: run.cut_off for run in runs if run.cut_off}

    def show() -> None:
        if ranked is not None:
            show_matrix(ranked, named)
        else:
            _show(runs)
        for place in document["written"]:
            say(f"written: {place}")
        for model in dict.fromkeys(c.model for c in failed):
            own = [c for c in failed if c.model == model]
            for error in dict.fromkeys(c.error for c in own):
                where = "all benchmarks" if len(own) == len({c.benchmark for c in cells}) else own[0].benchmark
                echo(f"creperie: {model} on {where}: {error}", error=True)
        for run in cut:
            share = percent(run.cut_off / len(run))
            echo(
                f"creperie: {run.model} on {run.benchmark}: {share} % of the items have cut-off answers, more than "
                f"{MOST_CUT:.0%}: exit code 3; pass a larger ?max_tokens=",
                error=True,
            )

    return CommandResult(document, show, code=2 if failed or missing else 3 if cut else 0)


def _plan(matrix: Matrix) -> CommandResult:
    forecasts, faults = matrix.forecasts()

    def document(f: Forecast) -> Json:
        use = {name: getattr(f, name) for name in ("images", "captions", "pairs")}
        counts = {n: {"needed": u.needed, "stored": u.stored, "missing": u.missing} for n, u in use.items()}
        return {**vars(f), **counts}

    total = sum(f.seconds for f in forecasts if not math.isnan(f.seconds))
    answer = {
        "plan": [document(f) for f in forecasts],
        "failed": [{"model": model, "error": error} for model, error in faults.items()],
        "models": len(matrix.rows),
        "cells": len(matrix.rows) * len(matrix.columns),
        "seconds": total,
    }
    return CommandResult(answer, lambda: show_plans(forecasts, faults, total), code=2 if faults else 0)


# -- for scripts -----------------------------------------------------------------------------------------------------


def _document(runs: list[Run], declared: bool) -> Json:
    """Return the JSON document of a single run. If there are several runs, or if a zoo file named them (`declared`),
    return an object with a list of their documents.
    """
    from creperie.reporting import known_places

    keys = ("benchmark", "tasks", "ties", "seed", "coverage", "finding_counts", "findings", "notes", "work", "timings")
    documents = [
        {
            "run": str(run.path),
            "model": run.model,
            "results": run.results,
            "known": [place.document() for place in known_places(run)],
            **{name: run.document[name] for name in keys},
        }
        for run in runs
    ]
    return documents[0] if len(runs) == 1 and not declared else {"runs": documents}


def _show(runs: list[Run]) -> None:
    for number, run in enumerate(runs):
        if number:
            say()
        show_run(run)
