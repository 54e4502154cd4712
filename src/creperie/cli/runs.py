"""`creperie runs` and `creperie merge`: runs from the answers of other tools, and from shards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from creperie.cli.app import CommandGroup
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import UsageError, option, percent


@click.group(cls=CommandGroup)
def runs() -> None:
    """Import the answers of other tools as runs."""


@dataclass(frozen=True)
class AnswerOptions:
    """The model and benchmark of the imported answers, and where the runs are written."""

    model: str = option("", "The model's name; by default taken from the file's name.")
    order: str | None = option(None, "Which caption was offered first.", choices=("positive-first", "negative-first"))
    bench: str | None = option(None, "The benchmark that another harness ran.", metavar="BENCH")
    out: Path = option(Path("runs"), "The folder for the runs.", metavar="DIR")


@runs.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE…")
@options_of("options", AnswerOptions)
@answers
def import_(files: tuple[str, ...], options: AnswerOptions) -> CommandResult:
    """Import answers of other tools as runs: files of two-option answers, or with --bench results of other harnesses.

    Such results are samples of lm-eval and lmms-eval (likelihoods, or answers to an exported task), or tables (CSV,
    JSONL) of id, subset and scores or choice.

    \b
    creperie runs import gpt4v-swap_obj.json
    creperie runs import logs/…_samples_creperie_mine.jsonl --bench out/mine --model llava
    creperie runs import scores.csv --bench out/mine --model my-model
    """
    from creperie.bench import load
    from creperie.scoring import import_answers, import_replies

    if options.bench:
        bench = load(options.bench)
        read = [import_replies(file, bench, model=options.model) for file in files]
    else:
        read = [import_answers(file, model=options.model, order=options.order or "") for file in files]
    made = [run.save(options.out) for run in read]
    documents = [
        {
            "run": str(run.path),
            "model": run.model,
            "results": run.results,
            "finding_counts": run.document["finding_counts"],
            "findings": run.findings,
            "notes": run.document["notes"],
        }
        for run in made
    ]

    def show() -> None:
        rows = []
        for run in made:
            for r in run.results:
                if r["subset"] not in ("all", "macro"):
                    unread = run.document["finding_counts"].get("unparsable-answer", 0)
                    counts = (f"{r['hits']:,}", f"{r['n']:,}", percent(r["accuracy"]), f"{unread:,}")
                    rows.append((run.model, r["subset"], *counts))
        right = ("hits", "n", "accuracy", "unreadable")
        print_table(["model", "subset", "hits", "n", "accuracy", "unreadable"], rows, right=right)
        for run in made:
            for note in run.document["notes"]:
                say("[yellow]note[/yellow]: {}: {}", run.name, note)
            say("run {}", str(run.path))

    return CommandResult(documents[0] | ({"runs": documents} if len(documents) > 1 else {}), show)


@click.command()
@click.argument("out")
@click.argument("parts", nargs=-1, required=True, metavar="PART…")
@click.option("--force", is_flag=True, help="Replace a benchmark that creperie wrote.")
@answers
def merge(out: str, parts: tuple[str, ...], force: bool) -> CommandResult:
    """Join the shards of a generation job or of a run: `creperie merge out/mine out/mine-*`.

    The result is what one job would have written. Gaps, overlaps and shards of different work are refused. The shards
    of a generation job become the benchmark OUT; those of a run become a run in the folder OUT.
    """
    kinds = {_kind(Path(part)) for part in parts}
    if len(kinds) > 1:
        raise UsageError("got shards of generation jobs and of runs", hint="merge one kind at a time")
    return _merged_run(out, parts) if kinds == {"run"} else _merged_making(out, parts, force)


def _kind(folder: Path) -> str:
    if (folder / "shard.json").is_file():
        return "making"
    if (folder / "run.json").is_file():
        return "run"
    raise UsageError(
        "is not a shard: it has neither shard.json nor run.json",
        where=folder,
        hint="name folders that `make --shard` or `score --shard` wrote",
    )


def _merged_making(out: str, parts: tuple[str, ...], force: bool) -> CommandResult:
    from creperie.making import merge_making

    made = merge_making(parts, out, force=force)
    document = {"out": out, "merged": len(parts), **made.report}

    def show() -> None:
        rows = [(f"items: {subset}", f"{n:,}") for subset, n in document["subsets"].items()]
        print_table(["", "n"], [("captions", f"{document['sources']:,}"), *rows], right=("n",))
        say("{} shards merged into {}", len(parts), out)

    return CommandResult(document, show)


def _merged_run(out: str, parts: tuple[str, ...]) -> CommandResult:
    from creperie.scoring import merge_runs

    run = merge_runs(parts, out)
    document = {"run": str(run.path), "model": run.model, "merged": len(parts), "results": run.results}

    def show() -> None:
        rows = [
            (r["task"], r["subset"], f"{r['n']:,}", f"{r['hits']:,}", percent(r["accuracy"]))
            for r in run.results
            if r["n"]
        ]
        print_table(["task", "subset", "n", "hits", "accuracy"], rows, right=("n", "hits", "accuracy"))
        say("{} shards merged into {}", len(parts), str(run.path))

    return CommandResult(document, show)
