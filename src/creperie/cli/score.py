"""`creperie score`: models on benchmarks."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.engines import engine_options
from creperie.cli.output import CommandResult, answers, bar, print_table, say
from creperie.core import UsageError

if TYPE_CHECKING:
    from creperie.bench import Benchmark
    from creperie.engine import Engine
    from creperie.scoring import Forecast, Run, ScoreOptions

SHOWN_FINDINGS = 5
NAMES = {
    "image": "images",
    "text": "captions",
    "blind": "captions",
    "pair": "pairs",
    "joint": "pairs",
    "between": "caption pairs",
}
RIGHT = ("n", "hits", "accuracy", "ties", "void", "chance", "human")


@click.command()
@click.argument("benchmarks", nargs=-1, required=True, metavar="BENCH…")
@click.option("--model", "-m", "models", multiple=True, required=True, metavar="URI", help="A model; repeat for more.")
@click.option("--task", "-t", "tasks", multiple=True, help="Tasks, by comma or repeated; by default those that apply.")
@click.option("--images", type=click.Path(exists=True), help="Folder, zip, tar or Parquet with the images.")
@click.option(
    "--image",
    "blind",
    type=click.Choice(["noise", "gaussian", "mean", "shuffled"]),
    help="Blind twin: show these images instead, by --seed.",
)
@click.option("--subset", "subsets", multiple=True, help="Only these subsets, by comma or repeated.")
@click.option("--limit", type=click.IntRange(1), help="At most N items of every subset: the first, or drawn by --seed.")
@click.option("--seed", type=int, help="Seed of --limit's draw and of the intervals (0).")
@click.option("--ties", type=click.Choice(["wrong", "half", "right"]), default="wrong", show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps.")
@click.option("--dtype", default="float32", show_default=True, help="float32, bfloat16, float16; scores are float32.")
@click.option("--batch-size", type=click.IntRange(1), help="Fix what is otherwise found from the memory.")
@engine_options
@click.option("--shard", metavar="I/N", help="Only this share of the items; `creperie merge` puts shards together.")
@click.option("--dry-run", is_flag=True, help="Show the plan and what it costs, and stop.")
@click.option("--out", type=click.Path(file_okay=False), default="runs", show_default=True, help="Where runs go.")
@answers
def score(
    benchmarks: tuple[str, ...],
    models: tuple[str, ...],
    subsets: tuple[str, ...],
    limit: int | None,
    seed: int | None,
    images: str | None,
    blind: str | None,
    dry_run: bool,
    out: str,
    **how: Any,
) -> CommandResult:
    """Score models on benchmarks: `creperie score sugarcrepe++:DIR --model st:NAME --task tot`.

    Everything computed is kept in the store (`creperie cache`), so the same command goes on where it was stopped,
    and a second run computes nothing.
    """
    from creperie.scoring import blind_twin, forecast_all, score_all

    options = _options(how, seed)
    benches = [_bench(spec, images, _listed(subsets), limit, seed) for spec in benchmarks]
    if blind:
        benches = [blind_twin(bench, blind, seed or 0) for bench in benches]
    if dry_run:
        return _plan_answer(forecast_all(benches, models, options, progress=bar))
    if how["engine"] is not None:
        runs = _on_engine(how["engine"], benches, models, options, Path(out))
    else:
        runs = score_all(benches, models, options, out=Path(out), progress=bar)
    return CommandResult(_document(runs), lambda: _show(runs))


def _on_engine(
    engine: Engine, benches: list[Benchmark], models: tuple[str, ...], options: ScoreOptions, out: Path
) -> list[Run]:
    from creperie.scoring import score_on

    if options.shard:
        raise UsageError("--shard and --engine cut the same work twice", hint="leave out one of them")
    return score_on(engine, benches, models, options, out=out, progress=bar)


def _options(how: dict[str, Any], seed: int | None) -> ScoreOptions:
    from creperie.engine import parse_shard
    from creperie.metrics import MetricSettings
    from creperie.scoring import ScoreOptions

    return ScoreOptions(
        tasks=tuple(_listed(how["tasks"])),
        settings=MetricSettings(ties=how["ties"], seed=seed or 0),
        device=how["device"],
        dtype=how["dtype"],
        batch_size=how["batch_size"],
        command=shlex.join(["creperie", *sys.argv[1:]]),
        shard=parse_shard(how["shard"]) if how["shard"] else None,
    )


def _listed(values: tuple[str, ...]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def _bench(spec: str, images: str | None, subsets: list[str], limit: int | None, seed: int | None) -> Benchmark:
    from creperie.bench import load
    from creperie.scoring import limited

    bench = load(spec, images=images)
    if subsets:
        bench = bench.only(subsets)
    return limited(bench, limit, seed) if limit else bench


# -- for scripts -----------------------------------------------------------------------------------------------------


def _document(runs: list[Run]) -> dict[str, Any]:
    documents = [_run_document(run) for run in runs]
    return documents[0] | ({"runs": documents} if len(documents) > 1 else {})


def _run_document(run: Run) -> dict[str, Any]:
    kept = ("benchmark", "tasks", "ties", "seed", "coverage", "finding_counts", "findings", "notes", "work", "timings")
    return {
        "run": str(run.path),
        "model": run.model,
        "results": run.results,
        **{name: run.document[name] for name in kept},
    }


# -- for people ------------------------------------------------------------------------------------------------------


def _show(runs: list[Run]) -> None:
    for number, run in enumerate(runs):
        if number:
            say()
        _show_run(run)


def _show_run(run: Run) -> None:
    from rich.markup import escape

    from creperie.scoring import human_level, human_source

    say(f"[bold]{escape(run.benchmark)}[/bold]  {escape(run.model)}")
    rows = []
    for r in run.results:
        if r["n"] == 0 and r["void"] == r["vacuous"]:
            continue  # the task has nothing to compare in this subset
        human = human_level(run.benchmark, r["task"], r["subset"])
        interval = f"{percent(r['accuracy'])} [{percent(r['low'])}, {percent(r['high'])}]"
        counts = (f"{r['n']:,}", f"{r['hits']:,}", interval, f"{r['ties']:,}", f"{r['void']:,}")
        rows.append((r["task"], r["subset"], *counts, percent(r["chance"]), percent(human)))
    columns = ["task", "subset", "n", "hits", "accuracy", "ties", "void", "chance", "human"]
    keep = [i for i, name in enumerate(columns) if name != "human" or any(row[i] for row in rows)]
    print_table("", [columns[i] for i in keep], [[row[i] for i in keep] for row in rows], right=RIGHT)
    level = f"{run.settings.level:.0%}".replace("%", " %")
    say(f"[dim]accuracy in %, {level} interval ({_methods(run)}); a tie counts as {run.document['ties']}[/dim]")
    for name in run.tasks:
        if source := human_source(run.benchmark, name):
            say(f"[dim]human, {name}: {escape(source)}[/dim]")
    _show_findings(run)
    say(f"[dim]{escape(_work(run))}[/dim]")
    say(f"run {escape(str(run.path))}")


def _show_findings(run: Run) -> None:
    from rich.markup import escape

    counts = run.document["finding_counts"]
    for code, n in counts.items():
        say(f"[yellow]{code}[/yellow]: {n:,} {'item' if n == 1 else 'items'}")
        for finding in [f for f in run.findings if f["code"] == code][:SHOWN_FINDINGS]:
            say(f"  {escape(finding['subset'])}/{escape(finding['item'])}: {escape(finding['message'])}")
    for note in run.document["notes"]:
        say(f"[yellow]note[/yellow]: {escape(note)}")
    coverage = run.document["coverage"]
    short = {k: n for k, n in coverage.items() if k != "items" and n < coverage["items"]}
    for name, n in short.items():
        say(f"[yellow]{name} covers {n:,} of {coverage['items']:,} items[/yellow]")


def _methods(run: Run) -> str:
    return ", ".join(dict.fromkeys(r["interval"] for r in run.results))


def _work(run: Run) -> str:
    parts = [f"{s['computed']:,} of {s['needed']:,} {NAMES[kind]} computed" for kind, s in run.document["work"].items()]
    return f"{'; '.join(parts)}; {run.document['timings']['total']:.1f} s"


def percent(value: float | None) -> str:
    """A share in percent with one decimal; empty where there is none.

    >>> percent(0.14285), percent(None)
    ('14.3', '')
    """
    return "" if value is None or math.isnan(value) else f"{100 * value:.1f}"


# -- the plan --------------------------------------------------------------------------------------------------------


def _plan_answer(forecasts: list[Forecast]) -> CommandResult:
    def document(f: Forecast) -> dict[str, Any]:
        shares = {
            name: {"needed": s.needed, "stored": s.stored, "missing": s.missing}
            for name, s in (("images", f.images), ("captions", f.captions), ("pairs", f.pairs))
        }
        return {**vars(f), **shares}

    def show() -> None:
        for f in forecasts:
            _show_plan(f)

    return CommandResult({"plan": [document(f) for f in forecasts]}, show)


def _show_plan(f: Forecast) -> None:
    from rich.markup import escape

    say(f"[bold]{escape(f.model)}[/bold]  {f.items:,} items")
    shares = (("images", f.images), ("captions", f.captions), ("image-caption pairs", f.pairs))
    rows = [(name, f"{s.needed:,}", f"{s.stored:,}", f"{s.missing:,}") for name, s in shares if s.needed]
    print_table("", ["", "needed", "in the store", "to compute"], rows, right=("needed", "in the store", "to compute"))
    if f.broken_images:
        say(f"[yellow]{f.broken_images:,} images cannot be read[/yellow]")
    tokens = f", {f.tokens:,} tokens" if f.tokens else ""
    batches = f"{f.batches:,} batches{tokens}; " if f.batches else ""
    took = "unknown, no run of this model to judge by" if math.isnan(f.seconds) else f"about {duration(f.seconds)}"
    say(f"{batches}{f.memory / 2**20:,.0f} MB of vectors and scores; {took} [dim](by {f.basis})[/dim]")


def duration(seconds: float) -> str:
    """
    >>> duration(0.2), duration(75), duration(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
