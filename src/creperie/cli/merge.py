"""`creperie merge`: shards put together."""

from __future__ import annotations

from pathlib import Path

import click

from creperie.cli.output import CommandResult, answers, print_table, say
from creperie.core import UsageError


@click.command()
@click.argument("out")
@click.argument("parts", nargs=-1, required=True, metavar="PART…")
@click.option("--force", is_flag=True, help="Replace a benchmark that creperie wrote.")
@answers
def merge(out: str, parts: tuple[str, ...], force: bool) -> CommandResult:
    """Put the shards of a generation job, or of a run, together: `creperie merge out/mine out/mine-*`.

    The result is what one job would have written. Gaps, overlaps and shards of different work are refused. The shards
    of a generation job become the benchmark OUT; those of a run become a run in the folder OUT.
    """
    kinds = {_kind(Path(part)) for part in parts}
    if len(kinds) > 1:
        raise UsageError("these are shards of generation jobs and of runs", hint="merge one kind at a time")
    return _merged_run(out, parts) if kinds == {"run"} else _merged_making(out, parts, force)


def _kind(folder: Path) -> str:
    if (folder / "shard.json").is_file():
        return "making"
    if (folder / "run.json").is_file():
        return "run"
    what = "is not a shard: it has neither shard.json nor run.json"
    raise UsageError(what, where=str(folder), hint="name folders that `make --shard` or `score --shard` wrote")


def _merged_making(out: str, parts: tuple[str, ...], force: bool) -> CommandResult:
    from rich.markup import escape

    from creperie.making import merge_making

    made = merge_making(parts, out, force=force)
    document = {"out": out, "merged": len(parts), **made.report}

    def show() -> None:
        rows = [(f"items: {subset}", f"{n:,}") for subset, n in document["subsets"].items()]
        print_table("", ["", "n"], [("captions", f"{document['sources']:,}"), *rows], right=("n",))
        say(f"{len(parts)} shards merged into {escape(out)}")

    return CommandResult(document, show)


def _merged_run(out: str, parts: tuple[str, ...]) -> CommandResult:
    from rich.markup import escape

    from creperie.cli.score_text import percent
    from creperie.scoring import merge_runs

    run = merge_runs(parts, out)
    document = {"run": str(run.path), "model": run.model, "merged": len(parts), "results": run.results}

    def show() -> None:
        rows = [
            (r["task"], r["subset"], f"{r['n']:,}", f"{r['hits']:,}", percent(r["accuracy"]))
            for r in run.results
            if r["n"]
        ]
        print_table("", ["task", "subset", "n", "hits", "accuracy"], rows, right=("n", "hits", "accuracy"))
        say(f"{len(parts)} shards merged into {escape(str(run.path))}")

    return CommandResult(document, show)
