"""`creperie runs` and `creperie merge`: runs made from the answers of other tools, and runs made from shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from creperie.cli.app import CommandGroup
from creperie.cli.options import options_of
from creperie.cli.output import CommandResult, answers, print_table, say, show_notes
from creperie.core import CreperieError, Json, UsageError, as_flags, counted, option, percent
from creperie.scoring import ResponseOptions, Run, UnmatchedError

LISTED = 20  #: unmatched rows that are printed


@click.group(cls=CommandGroup)
def runs() -> None:
    """Import the answers of other tools as runs; export runs."""


@dataclass(frozen=True)
class AnswerOptions:
    """Options for imported answers: their model, their benchmark, and where the runs are written."""

    model: str = option("", "The model's name; by default taken from the file.")
    order: str | None = option(None, "Which caption was offered first.", choices=("positive-first", "negative-first"))
    bench: str | None = option(None, "The benchmark that another harness ran.", metavar="BENCH")
    partial: bool = option(False, "Import the other rows if more than a tenth match no item.")
    out: Path = option(Path("runs"), "The folder for the runs.", metavar="DIR")


@runs.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="FILE…")
@options_of("options", AnswerOptions)
@options_of("matrix", ResponseOptions)
@answers
def import_(files: tuple[str, ...], options: AnswerOptions, matrix: ResponseOptions) -> CommandResult:
    """Import the answers of other tools as runs: response matrices, logs of harnesses, answers to two-option questions.

    A response matrix is a CSV file with one row per model and one column per item. If its header begins with `item`, it
    has one row per item and one column per model instead. A cell is a score, or says whether the answer is right. Logs
    need --bench: Inspect (.eval), samples of lm-eval and lmms-eval (.jsonl), tables of VLMEvalKit (.xlsx, .tsv), or
    tables (CSV, JSONL) with id, subset, and scores or choice. A row is listed as unmatched if it belongs to no item, or
    if its answer key contradicts the item. If more than a tenth of the rows are unmatched, nothing is written, and the
    exit code is 3.

    \b
    creperie runs import responses.csv --choices 4 --columns '[0-9]*'
    creperie runs import logs/2026_task.eval --bench out/mine
    creperie runs import scores.csv --bench out/mine --model my-model
    creperie runs import gpt4v-swap_obj.json
    """
    try:
        made = [run.save(options.out) for run in _imported(files, options, matrix)]
    except UnmatchedError as e:
        refused, why = [asdict(row) for row in e.rows], str(e)

        def show() -> None:
            _show_unmatched(refused)
            say("Nothing was written: {}", as_flags(why))

        return CommandResult({"runs": [], "rows": e.total, "unmatched": refused, "notes": [why]}, show, code=3)
    documents = [
        {
            "run": str(run.path),
            "model": run.model,
            "unmatched": run.document.get("unmatched", []),
            **{name: run.document[name] for name in ("results", "finding_counts", "unreadable", "findings", "notes")},
        }
        for run in made
    ]
    return CommandResult(
        documents[0] | ({"runs": documents} if len(documents) > 1 else {}), lambda: _show_imported(made)
    )


def _imported(files: tuple[str, ...], options: AnswerOptions, matrix: ResponseOptions) -> list[Run]:
    from creperie.bench import load
    from creperie.scoring import import_answers, import_replies, import_responses, is_response_matrix

    bench = load(options.bench) if options.bench else None
    read: list[Run] = []
    for file in files:
        if is_response_matrix(file):
            read += import_responses(file, bench, matrix, partial=options.partial)
        elif bench is not None:
            read.append(import_replies(file, bench, model=options.model, partial=options.partial))
        elif not file.endswith(".json"):
            raise UsageError(
                "is a log, which does not contain the benchmark",
                where=file,
                hint="name the benchmark that was run: `bench=`",
            )
        else:
            read.append(import_answers(file, model=options.model, order=options.order or ""))
    return read


def _show_unmatched(rows: Sequence[Mapping[str, str]]) -> None:
    shown = [[row["row"], row["why"]] for row in rows[:LISTED]]
    if shown:
        print_table(["row", "left out because"], shown)
    if len(rows) > LISTED:
        say("… and {:,} more; --json lists them", len(rows) - LISTED)


def _show_imported(made: Sequence[Run]) -> None:
    rows, several = [], len(made) > 1
    for run in made:
        unreadable = run.document["unreadable"]
        for r in run.results:
            if (r["subset"] == "all") if several else r["subset"] not in ("all", "macro"):
                unread = sum(unreadable.values()) if several else unreadable.get(r["subset"], 0)
                counts = [r[name] for name in ("hits", "ties", "n", "void")]
                shares = map(percent, (r["accuracy"], r["chance"]))
                subset = counted(len(set(run.subsets)), "subset") if several else r["subset"]
                rows.append((run.model, run.benchmark, subset, *counts, *shares, unread))
    heads = ["model", "benchmark", "subset", "hits", "ties", "n", "no answer", "accuracy", "chance"]
    print_table([*heads, "unreadable answers"], rows)
    if any(run.blinded for run in made):
        say("~none: the same questions without images, blind twins of the other runs")
    about: dict[str, list[str]] = {}
    for run in made:
        _show_unmatched(run.document.get("unmatched", []))
        for note in run.document["notes"]:
            about.setdefault(note, []).append(run.name)
    for note, names in about.items():
        say("[yellow]note[/yellow]: {}: {}", names[0] if len(names) == 1 else counted(len(names), "run"), note)
    for run in made[: 1 if len(made) > LISTED else None]:
        say("run {}", str(run.path))
    if len(made) > LISTED:
        say("… and {:,} more in {}", len(made) - 1, str(made[0].path.parent if made[0].path else ""))


@runs.command()
@click.argument("places", nargs=-1, required=True, metavar="RUN…|FOLDER")
@click.option("--out", default="mieb", show_default=True, metavar="DIR", help="The folder for the files.")
@answers
def export(places: tuple[str, ...], out: str) -> CommandResult:
    """Write runs as results files of MIEB: `creperie runs export runs --out results`.

    The exit code is 3 if some of the runs cannot be written.
    """
    from creperie.reporting import export_mieb, runs_in
    from creperie.scoring import load_run

    files, refused = [], {}
    for path in runs_in(places):
        try:
            files.append(str(export_mieb(load_run(path), out)))
        except CreperieError as e:
            refused[str(path)] = str(e)
    if not files:
        raise UsageError(next(iter(refused.values()), "no run given"), hint="name runs that `creperie score` wrote")

    def show() -> None:
        print_table(["file"], [[file] for file in files])
        show_notes(f"not written: {why}" for why in refused.values())

    return CommandResult({"files": files, "refused": refused}, show, code=3 if refused else None)


@click.command()
@click.argument("out")
@click.argument("parts", nargs=-1, required=True, metavar="PART…")
@click.option("--force", is_flag=True, help="Replace a benchmark that creperie wrote.")
@answers
def merge(out: str, parts: tuple[str, ...], force: bool) -> CommandResult:
    """Join the shards of a generation job or of a run: `creperie merge out/mine out/mine-*`.

    The result is the same as if one job had written it. Missing or overlapping shards, and shards of different jobs,
    are refused. The shards of a generation job become the benchmark OUT; those of a run become a run in the folder OUT.
    """
    kinds = {_kind(Path(part)) for part in parts}
    if len(kinds) > 1:
        raise UsageError("these are shards of generation jobs and of runs", hint="merge one kind at a time")
    if kinds == {"run"}:
        from creperie.scoring import merge_runs

        run = merge_runs(parts, out)
        document: Json = {"run": str(run.path), "model": run.model, "merged": len(parts), "results": run.results}
        heads, place = ["task", "subset", "n", "hits", "accuracy"], str(run.path)
        rows = [[r["task"], r["subset"], r["n"], r["hits"], percent(r["accuracy"])] for r in run.results if r["n"]]
    else:
        from creperie.making import merge_making

        document = {"out": out, "merged": len(parts), **merge_making(parts, out, force=force).report}
        heads, place = ["", "n"], out
        subsets = [[f"items: {subset}", n] for subset, n in document["subsets"].items()]
        rows = [["captions", document["sources"]], *subsets]

    def show() -> None:
        print_table(heads, rows)
        say("{} shards merged into {}", len(parts), place)

    return CommandResult(document, show)


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
