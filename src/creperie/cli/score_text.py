"""The text output of `creperie score`: a run, a plan, or a matrix of models and benchmarks."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from creperie.cli.output import print_table, say, show_notes
from creperie.core import counted, percent, with_interval

if TYPE_CHECKING:
    from creperie.reporting import TableCell
    from creperie.scoring import Forecast, MatrixCell, Run, Standings

SHOWN_FINDINGS = 5
NAMES = {
    "image": "images",
    "text": "captions",
    "blind": "captions",
    "pair": "pairs",
    "joint": "pairs",
    "between": "caption pairs",
}
RANKED = (
    "accuracy in %, # rank: 1 + the number of models that are significantly better (paired differences over "
    "images, Holm over all pairs of a column, 5 %); models that share a letter do not differ so; – where a task "
    "does not apply"
)
UNSAID = (("void", "0"), ("human", "–"), ("human", ""))  #: columns that are left out if every cell has this value


def show_run(run: Run) -> None:
    from creperie.metrics import task, unit_of
    from creperie.reporting import known_places
    from creperie.scoring import human_level, human_source

    say("[bold]{}[/bold]  {}", run.benchmark, run.model)
    rows = []
    for r in run.results:
        if r["n"] == 0 and r["void"] == r["vacuous"]:
            continue  # the task has nothing to compare in this subset
        human = human_level(run.benchmark, r["task"], r["subset"])
        shown = task(r["task"]).text
        interval = with_interval(r["accuracy"], r["low"], r["high"], form=shown)
        counts = (f"{r['n']:,}", f"{r['hits']:,}", interval, f"{r['ties']:,}", f"{r['void']:,}")
        rows.append((r["task"], r["subset"], *counts, shown(r["chance"]), shown(human)))
    columns = ["task", "subset", "n", "hits", "accuracy", "ties", "void", "chance", "human"]
    constant = {name: rows[0][i] for i, name in enumerate(columns) if len({row[i] for row in rows}) == 1}
    dropped = {name for name, value in constant.items() if name in ("task", "chance") or (name, value) in UNSAID}
    keep = [i for i, name in enumerate(columns) if name not in dropped]
    print_table([columns[i] for i in keep], [[row[i] for i in keep] for row in rows])
    if footnotes := [f"{name} {constant[name]}" for name in ("task", "chance") if name in dropped]:
        say("[dim]{}[/dim]", "; ".join(footnotes))
    level = f"{run.settings.level:.0%}".replace("%", " %")
    methods = ", ".join(dict.fromkeys(r["interval"] for r in run.results))
    say(f"[dim]{unit_of(run.tasks)}, {level} interval ({methods}); a tie counts as {run.document['ties']}[/dim]")
    for name in run.tasks:
        if source := human_source(run.benchmark, name):
            say("[dim]human, {}: {}[/dim]", name, source)
    for place in known_places(run):
        say("published: {}", str(place))
    _show_findings(run)
    work = (f"{s['computed']:,} of {s['needed']:,} {NAMES[kind]} computed" for kind, s in run.document["work"].items())
    say("[dim]{}[/dim]", f"{'; '.join(work)}; {run.document['timings']['total']:.1f} s")
    say("run {}", str(run.path))


def _show_findings(run: Run) -> None:
    counts = run.document["finding_counts"]
    for code, n in counts.items():
        say(f"[yellow]{code}[/yellow]: {counted(n, 'item')}")
        for finding in [f for f in run.findings if f["code"] == code][:SHOWN_FINDINGS]:
            say("  {}/{}: {}", finding["subset"], finding["item"], finding["message"])
    show_notes(run.document["notes"])
    coverage = run.document["coverage"]
    short = {k: n for k, n in coverage.items() if k != "items" and n < coverage["items"]}
    for name, n in short.items():
        say(f"[yellow]{name} covers {n:,} of {coverage['items']:,} items[/yellow]")


# -- a matrix --------------------------------------------------------------------------------------------------------


def show_matrix(ranked: Standings, cells: Sequence[MatrixCell] = ()) -> None:
    """Print a matrix of models × benchmarks, with notes. Every cell has the accuracy, the rank, and letters. Models
    that share a letter do not differ significantly. The last columns are the mean accuracy and the mean rank of each
    model.
    """
    columns, rows = matrix_table(ranked, cells)
    brief = [re.sub(":/.*/", ":…/", str(row[0])) for row in rows]  # only the last part of a folder, if unique
    shown = [[b if brief.count(b) == 1 else str(row[0]), *map(str, row[1:])] for b, row in zip(brief, rows)]
    print_table(columns, shown)
    say(f"[dim]{RANKED}[/dim]")
    show_notes(ranked.notes)
    if not cells:
        return
    resumed = sum(cell.resumed for cell in cells)
    failed = sum(bool(cell.error) for cell in cells)
    scored = f"{len(cells) - failed} of {len(cells)} cells scored"
    say(f"{scored}, {resumed} of them earlier" if resumed else scored)


def matrix_table(ranked: Standings, cells: Sequence[MatrixCell] = ()) -> tuple[list[str], list[list[str | TableCell]]]:
    """Return the column heads and the rows of the matrix. The highest accuracy of each column is marked as best."""
    from creperie.reporting import TableCell

    top = [max((s.accuracy for s in column.models.values()), default=math.nan) for column in ranked.columns]
    failed = {(c.model, c.benchmark) for c in cells if c.error}
    rows: list[list[str | TableCell]] = []
    for model in ranked.models:
        own = [column.models.get(model) for column in ranked.columns]
        shown = [
            TableCell(percent(s.accuracy), f"#{s.rank} {s.groups}", s.accuracy == best)
            if s
            else "failed"
            if (model, column.benchmark) in failed
            else "–"
            for s, best, column in zip(own, top, ranked.columns, strict=True)
        ]
        rank = ranked.mean_rank[model]
        rows.append([model, *shown, percent(ranked.mean[model]), "–" if math.isnan(rank) else f"{rank:.1f}"])
    missing = list(dict.fromkeys(c.model for c in cells if c.error and c.model not in ranked.models))
    rows += [[model, *["failed"] * len(ranked.columns), "–", "–"] for model in missing]
    return ["model", *(column.name for column in ranked.columns), "mean", "mean rank"], rows


def matrix_text(ranked: Standings, form: str, cells: Sequence[MatrixCell] = ()) -> str:
    """Return the matrix as Markdown, LaTeX, CSV or HTML, followed by the errors of models that failed."""
    from creperie.reporting import render_rows

    heads, rows = matrix_table(ranked, cells)
    failures = dict.fromkeys(f"{c.model}: {c.error}" for c in cells if c.error)
    return render_rows(heads, rows, form, notes=(RANKED, *ranked.notes, *failures))


def slurm_script(args: Sequence[str], jobs: int) -> str:
    """Return a SLURM array script with one job per model. Its comment ends with the command that prints the table.

    >>> print(slurm_script(["score", "zoo.yaml", "--slurm", "zoo.sh"], 3).splitlines()[3])
    #SBATCH --array=1-3
    """
    rest = list(args)
    while "--slurm" in rest:
        at = rest.index("--slurm")
        del rest[at : at + 2]
    command = shlex.join(["creperie", *(a for a in rest if not a.startswith("--slurm="))])
    return f"""#!/bin/bash
# One job per model. Add your cluster's options (partition, time, GPUs); jobs may be repeated, they resume.
#SBATCH --job-name=creperie
#SBATCH --array=1-{jobs}
#SBATCH --output=creperie-%A_%a.log
# When all are done, the same command computes nothing and prints the table:
#   {command}
set -e
exec {command} --row "$SLURM_ARRAY_TASK_ID"
"""


# -- the plan --------------------------------------------------------------------------------------------------------


def show_plans(forecasts: Sequence[Forecast], faults: Mapping[str, str], total: float) -> None:
    for forecast in forecasts:
        _show_plan(forecast)
    for model, error in faults.items():
        say("[red]cannot run[/red] {}: {}", model, error)
    if len(forecasts) + len(faults) > 1:
        unknown = sum(math.isnan(f.seconds) for f in forecasts)
        more = f", and {unknown} models of unknown speed" if unknown else ""
        say(f"[bold]{len(forecasts)} models can run[/bold], about {duration(total)} in all{more}")


def _show_plan(f: Forecast) -> None:
    say("[bold]{}[/bold]  {:,} items", f.model, f.items)
    shares = (("images", f.images), ("captions", f.captions), ("image-caption pairs", f.pairs))
    rows = [(name, s.needed, s.stored, s.missing) for name, s in shares if s.needed]
    print_table(["", "needed", "in the store", "to compute"], rows)
    if f.broken_images:
        say(f"[yellow]{f.broken_images:,} images cannot be read[/yellow]")
    tokens = f", {f.tokens:,} tokens" if f.tokens else ""
    batches = f"{f.batches:,} batches{tokens}; " if f.batches else ""
    took = "unknown, no run of this model to judge by" if math.isnan(f.seconds) else f"about {duration(f.seconds)}"
    say(f"{batches}{f.memory / 2**20:,.0f} MB of vectors and scores; {took} [dim](by {f.basis})[/dim]")


def duration(seconds: float) -> str:
    """Return a duration as text.

    >>> duration(0.2), duration(75), duration(7300)
    ('0.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
