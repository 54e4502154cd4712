"""`creperie cook`: running the recipe of a whole paper."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.options import engine_options, options_of, pairs_of
from creperie.cli.output import CommandResult, answers, bar, echo, print_table, say, text_result
from creperie.core import Document, UsageError, counted, listing, option, percent
from creperie.recipes import CookOptions

if TYPE_CHECKING:
    from creperie.engine import Engine
    from creperie.recipes import PlanLine, Recipe, Shortfall, StageResult


SHOWN = 2  #: of a recipe that is no paper's, most tables of a stage that are printed in full


@dataclass(frozen=True)
class CookWay:
    """Options that say where a recipe runs, and whether it is only planned."""

    out: Path | None = option(None, "Output folder (out/cook/RECIPE-PROFILE).", metavar="DIR")
    plan: bool = option(False, "Only show calls, cost, time, and what is missing.", flags="--plan --dry-run")


@click.command()
@click.argument("recipe", metavar="RECIPE|list|status|verify")
@click.argument("runs", nargs=-1, metavar="[FOLDER]...")
@options_of("options", CookOptions)
@options_of("way", CookWay)
@engine_options
@answers
def cook(
    recipe: str, runs: tuple[str, ...], options: CookOptions, way: CookWay, engine: Engine | None
) -> CommandResult:
    """Run the recipe of a paper: captions, generation, checks, people, refinement, audits, scores, tables, figures.

    RECIPE is a name of the cookbook (`creperie cook list`) or a YAML file. `creperie cook status FOLDER…` lists the
    tables and figures of the papers, and says which of them are reproduced by the recipe runs in these folders.
    `creperie cook verify A B` compares two recipe runs stage by stage. Before anything runs, packages, model names,
    data, keys and disk space are checked. The results of stages whose inputs and options have not changed are reused,
    so an interrupted run continues where it stopped.

    With --engine and --workers, generation, validation, audits and scoring run on that engine.
    """
    from creperie.recipes import chosen_recipe, default_folder, directions, main_tables, plan_recipe
    from creperie.recipes import cook as cook_recipe

    if recipe == "status":
        return _status_answer(way.out, (*options.use, *runs))
    if recipe == "verify":
        return _verify_answer(runs)
    if runs:
        raise UsageError(
            f"`cook {recipe}` takes no folders", hint="leave them out; `cook status` and `cook verify` take folders"
        )
    if recipe == "list":
        return _list_answer()
    given = pairs_of(options.use, "--use", "STAGE=PLACE")
    read = chosen_recipe(recipe, options)
    folder = way.out or default_folder(read)
    if way.plan:
        return _plan_answer(read, folder, plan_recipe(read, folder, given))
    served = cook_recipe(read, folder, use=given, engine=engine, progress=bar, tell=tell_stage)
    claims = directions(folder)
    document = {
        "recipe": read.name,
        "profile": read.profile,
        "out": str(folder),
        "stages": [s.document() for s in served],
        "seconds": round(sum(s.seconds for s in served if s.state == "cooked"), 2),
        "directions": [asdict(claim) for claim in claims],
    }

    def show() -> None:
        show_stages(f"{read.title}, profile {read.profile}", folder, served, main_tables(read.name))
        if claims:
            rows = [[claim.claim, claim.who, claim.numbers, claim.holds] for claim in claims]
            print_table(["what the papers say", "model", "this run", "holds"], rows)

    return CommandResult(document, show)


def tell_stage(line: str) -> None:
    echo(f"· {line}", error=True)


def _list_answer() -> CommandResult:
    from creperie.recipes import list_recipes, read_recipe

    recipes = [read_recipe(path) for path in list_recipes().values()]
    document = {
        "recipes": [
            {"name": r.name, "title": r.title, "stages": [{"name": s.name, "does": s.does} for s in r.stages]}
            for r in recipes
        ]
    }

    def show() -> None:
        rows = [[r.name, r.title, " → ".join(s.name for s in r.stages)] for r in recipes]
        print_table(["recipe", "what", "stages"], rows)
        say("\ncreperie cook RECIPE --plan shows calls, cost and time; --profile paper has the published parameters.")

    return CommandResult(document, show)


def _status_answer(out: Path | None, folders: tuple[str, ...]) -> CommandResult:
    """Return the status of every table and figure of the papers, according to the recipe runs in `folders`. By default,
    these are all recipe runs under out/cook.
    """
    from creperie.recipes import directions, paper_status, runs_said, status_page, totals

    chosen = [Path(folder) for folder in folders] or sorted(p.parent for p in Path("out/cook").glob("*/recipe.json"))
    parts = paper_status(chosen)
    claims = [claim for folder in chosen for claim in directions(folder)]
    page = status_page(parts, claims, "creperie cook status", runs_said(chosen))
    document = {"totals": totals(parts), "parts": [asdict(part) for part in parts], "written": None}
    return text_result({**document, "directions": [asdict(claim) for claim in claims]}, page + "\n", out)


def _verify_answer(folders: tuple[str, ...]) -> CommandResult:
    """Return the comparison of two recipe runs. The exit code is 1 if a stage differs."""
    from creperie.recipes import verify_runs

    if len(folders) != 2:
        raise UsageError("expected two folders of recipe runs", hint="use `creperie cook verify A B`")
    matches = verify_runs(Path(folders[0]), Path(folders[1]))
    same = all(match.same for match in matches)
    rows = [[m.stage, "same" if m.same else "differs", m.why] for m in matches]
    document = {"same": same, "stages": [vars(match) for match in matches]}
    return CommandResult(document, lambda: print_table(["stage", "", ""], rows), ok=same)


def _plan_answer(recipe: Recipe, folder: Path, lines: list[PlanLine]) -> CommandResult:
    from creperie.recipes import check_plan

    lacks = check_plan(lines, folder)
    calls = sum(line.expected.calls for line in lines)
    costs = [line.expected.cost for line in lines]
    known = [line.expected.seconds for line in lines if line.expected.seconds is not None]
    document = {
        "recipe": recipe.name,
        "profile": recipe.profile,
        "out": str(folder),
        "stages": [line.document() for line in lines],
        "calls": calls,
        "cost": None if any(c is None for c in costs) else sum(c for c in costs if c is not None),
        "seconds": sum(known),
        "missing": [asdict(short) for short in lacks],
    }

    def show() -> None:
        say(f"[bold]{recipe.title}[/bold], profile {recipe.profile}, into {folder}\n")
        columns = ["stage", "does", "state", "items ≤", "calls", "cost", "time", "note"]
        print_table(columns, [_plan_row(line) for line in lines])
        rest = " without what is marked ?" if len(known) < len(lines) else ""
        say(f"\n{calls:,} calls, {_dollars(document['cost'])}, about {_span(sum(known))} on one slow core{rest}")
        if lacks:
            say("\n[bold]Missing[/bold]")
            print_table(["stage", "what", "", "what to do"], _lack_rows(lacks))

    return CommandResult(document, show)


def _plan_row(line: PlanLine) -> list[object]:
    e = line.expected
    items = "?" if e.items is None else e.items
    cost = _dollars(e.cost) if e.calls or e.cost is None else ""
    time = _span(e.seconds) if line.state == "to do" else ""
    return [line.stage.name, line.stage.does, line.state, items, e.calls or "", cost, time, e.note]


def _lack_rows(lacks: list[Shortfall]) -> list[list[str]]:
    """Return one table row for each missing requirement. All weights to download share one row."""
    rows = [[s.stage or "–", s.kind, s.message, s.hint] for s in lacks if s.kind != "weights"]
    for stage in dict.fromkeys(s.stage for s in lacks if s.kind == "weights"):
        own = [s.message.partition(": ")[0] for s in lacks if s.kind == "weights" and s.stage == stage]
        rows.append([stage, "weights", f"{len(own)} to download: {listing(own)}", ""])
    return rows


def _dollars(cost: Any) -> str:
    return "price not known" if cost is None else f"${cost:,.2f}"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


def show_stages(title: str, folder: Path, served: list[StageResult], main: list[str]) -> None:
    """Print the outcome of every stage, and the main tables of the paper in full. The other tables are in the stages'
    folders.
    """
    from creperie.recipes import run_digest

    say(f"[bold]{title}[/bold]\n")
    rows = [
        [s.name, s.does, s.state, _span(s.seconds) if s.state == "cooked" else "", "; ".join(_numbers_of(s))]
        for s in served
    ]
    print_table(["stage", "does", "", "time", "what came of it"], rows)
    written = [s for s in served if s.does == "table" and s.state in ("cooked", "unchanged")]
    few = [key for s in written for key in s.summary["tables"] if len(s.summary["tables"]) <= SHOWN]
    for key in main or few:
        filled = {s.name: s.summary["tables"][key]["rows"] for s in written if key in s.summary["tables"]}
        for s in written:
            if key in s.summary["tables"] and (filled[s.name] or not any(filled.values())):
                echo()
                sys.stdout.write((Path(s.place) / f"{key.replace('/', '-')}.txt").read_text(encoding="utf-8"))
    say(f"\nEverything is in {folder}. The digest of its results is {run_digest(folder)}.")


def _why_rejected(reports: Iterable[Document]) -> str:
    """Return the three most frequent reasons for rejecting candidates, in brackets. Words of captions in the reasons
    are left out.
    """
    from creperie.making import QUARANTINED

    reasons: Counter[str] = Counter()
    for report in reports:
        for reason, n in report.get("reasons", {}).items():
            reasons[reason.removeprefix(QUARANTINED).partition(":")[0]] += n
    frequent = ", ".join(f"{reason}: {n:,}" for reason, n in reasons.most_common(3))
    return f" ({frequent})" if frequent else ""


def _accuracy_context(summary: Document, model: str, task: str) -> str:
    """Return, in brackets, what a reader needs to judge an accuracy: the chance level, the number of ties (which count
    as wrong) and, if some items are not covered, the number of items.
    """
    void, chance, ties = (summary.get(part, {}).get(model, {}).get(task) for part in ("void", "chance", "ties"))
    n = summary["items"] - (void or 0)
    remarks = [f"of {n:,} items"] * bool(void) + [f"chance {percent(chance)} %"] * (chance is not None)
    remarks += [f"{ties:,} of {n:,} are ties, counted as wrong"] * bool(ties)
    return f" ({'; '.join(remarks)})" if remarks else ""


def _numbers_of(s: StageResult) -> Iterator[str]:
    """Yield phrases on what a stage did."""
    from creperie.reporting import model_label

    summary = s.summary
    if s.state == "skipped" or not (s.place or "makers" in summary):
        yield s.why
        return
    if not s.place:
        yield s.why
    if "items" in summary and s.place:
        yield f"{summary['items']:,} items" + f" ({summary.get('name')})" * ("name" in summary)
    if n := summary.get("true_foils"):
        yield f"{counted(n, 'item')} changed or left out, as foils were true of the drawn picture"
    if summary.get("answers") and s.does == "people":
        who = "scripted annotator" if summary.get("scripted") else "annotator"
        yield f"{counted(summary['answers'], 'answer')} by {counted(len(summary['annotators']), who)}"
    if calls := summary.get("calls"):
        reports = summary.get("makers", {}).values()
        tally = {k: sum(report[k] for report in reports) for k in ("made", "rejected")}
        told = f", {tally['made']:,} candidates accepted, {tally['rejected']:,} rejected" if reports else ""
        yield f"{counted(calls, 'call')} of the writer{told}{_why_rejected(reports)}"
    if "loss" in summary:
        yield f"{summary['examples']:,} examples, {summary['steps']:,} steps, loss {summary['loss']:.3f}"
    if summary.get("removed"):
        yield f"{summary['removed']:,} left out"
    if "verdict" in summary:
        yield str(summary.get("text") or summary["verdict"])
    for name, figures in summary.get("attackers", {}).items() if s.does == "refine" else ():
        whole = f"{percent(figures['before'])} % → {percent(figures['after'])} %"
        mean = f"{percent(figures['mean_before'])} % → {percent(figures['mean_after'])} %"
        yield f"{name}{', not selected against,' * figures['held_out']} {whole}, mean of subsets {mean}"
    for model, tasks in summary.get("results", {}).items():
        told = ", ".join(
            f"{task} {percent(value)} %{_accuracy_context(summary, model, task)}" for task, value in tasks.items()
        )
        ranked = " (captions ranked by the probability of yes)" if "score=yesno" in model else ""
        yield f"{model_label(model)}: {told}{ranked}"
    if counts := summary.get("decidable"):
        text = ", ".join(f"{n:,} {word}" for word, n in sorted(counts.items()))
        yield f"by the logic of words for place and role alone: {text}"
    for model in dict.fromkeys(model for model, *_ in summary.get("shuffled", ())):
        above = ", ".join(f"{kind} {n} of {of}" for who, kind, n, of in summary["shuffled"] if who == model)
        yield f"{model_label(model)} has the caption above {above}"
    for name, fitted in summary.get("presets", {}).items():
        together = {label: n for label, n in fitted["rows"].items() if not label.endswith(")")}
        fits = ", ".join(f"{label}: {n:,} rows" for label, n in together.items())
        rest = len(fitted["rows"]) - len(together)
        alone = f", and {counted(rest, 'fit')} of one model alone" if rest else ""
        yield f"{name} ({fits}{alone}; {'converged' if fitted['converged'] else 'not converged'})"
    for key, rows in summary.get("tables", {}).items():
        yield f"{key} with {counted(rows['rows'], 'row')} of ours"
    if drawn := summary.get("figures"):
        yield f"figure{'s' * (len(drawn) > 1)} {', '.join(drawn)}"
    for number, why in summary.get("not_drawn", {}).items():
        yield f"figure {number} not drawn: {why}"
    if s.does == "tiny":
        yield str(summary["model"])
    if s.does == "answers":
        yield f"{summary['model']} on {counted(summary['subsets'], 'subset')}"
    if s.does == "tune":
        ways = (f"{way} {subsets['all']:.1f} %" for way, subsets in summary["accuracy"].items())
        yield f"itt on items held out: {', '.join(ways)}"
