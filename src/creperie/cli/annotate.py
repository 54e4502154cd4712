"""`creperie annotate`: web pages where people check, correct and rate items, or answer the same questions as models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.annotation import Address, ApplyPlan, StudyPlan
from creperie.cli.annotate_people import COMMANDS
from creperie.cli.app import CommandGroup
from creperie.cli.options import EXISTING, FILE, database, open_place, options_of, study_command
from creperie.cli.output import CommandResult, answers, echo, print_table, say
from creperie.core import Json, UsageError, called, counted, decimal, read_text

if TYPE_CHECKING:
    from creperie.annotation import Database

ROLES = ("owner", "adjudicator")
#: The kinds of questions with a known answer, in words.
KNOWN = {"practice": "practice question", "attention": "attention check"}


@click.group(cls=CommandGroup)
def annotate() -> None:
    """Studies with people: create one, invite people, serve its pages, measure agreement, apply the answers.

    \b
      creperie annotate new foils --bench out/world --task foil-check
      creperie annotate invite foils --count 2
      creperie annotate serve
    """


@study_command
@click.option("--bench", required=True, help="The benchmark: a folder, catalog name or format:path.")
@click.option("--images", metavar="DIR", help="Where the images are.")
@click.option("--other", help="A second benchmark: its foils are compared (better-foil), its items mixed in (bias).")
@options_of("plan", StudyPlan)
@click.option(
    "--instructions",
    type=EXISTING,
    help="What annotators read first, in Markdown.",
)
def new(
    study: str,
    bench: str,
    images: str | None,
    other: str | None,
    instructions: Path | None,
    db: Database,
    plan: StudyPlan,
) -> CommandResult:
    """Create the study STUDY from a benchmark and a task."""
    from creperie.annotation import change_settings, count_questions, store_study, study_named
    from creperie.bench import load

    own = load(bench, images=images)
    made = store_study(
        db,
        study,
        own,
        plan,
        other=load(other) if other else None,
        spec=str(Path(bench).resolve()) if Path(bench).exists() else bench,
    )
    if instructions is not None:
        text = {"instructions": read_text(instructions).strip()}
        with db.write() as session:
            change_settings(session, study_named(session, study), "cli", text)
    with db.read() as session:
        number = count_questions(session, made)
    counts = {kind: number[kind] for kind in ("main", *KNOWN)}
    about = {"study": study, "task": plan.task, "benchmark": own.name}
    document = {**about, **counts, "answers": plan.overlap * counts["main"]}

    def show() -> None:
        say(f"[bold]{study}[/]: {counts['main']} questions, {plan.overlap} answers each")
        practice, checks = (counted(counts[kind], noun) for kind, noun in KNOWN.items())
        say(f"{practice} and {checks} for each annotator")
        say(f"next: creperie annotate invite {study} --count 2, then creperie annotate serve")

    return CommandResult(document, show)


@study_command
@click.option("--count", type=int, default=1, show_default=True, help="How many annotators.")
@click.option("--days", type=float, default=30.0, show_default=True, help="How long the links are valid.")
@click.option("--note", default="", help="A note that only the owner sees.")
@click.option("--url", default="", help="What the links begin with [the address of the server].")
def invite(study: str, count: int, days: float, note: str, url: str, db: Database) -> CommandResult:
    """Invite annotators to STUDY, each with a personal link. The links are shown only once."""
    from creperie.annotation import invite as make
    from creperie.annotation import served_at

    made = make(db, study, count, days=days, note=note)
    with db.read() as session:
        base = url or served_at(session)
    links = [{"annotator": i.pseudonym, "link": i.link(base)} for i in made]

    def show() -> None:
        for one in links:
            echo(f"{one['annotator']}\t{one['link']}")

    return CommandResult({"study": study, "invitations": links}, show)


@study_command
@click.argument("annotator")
def revoke(study: str, annotator: str, db: Database) -> CommandResult:
    """End the invitation of ANNOTATOR immediately. Answers already given are kept."""
    from creperie.annotation import revoke as end

    end(db, annotator, study)
    return CommandResult({"study": study, "revoked": annotator}, lambda: say(f"{annotator}: invitation ended"))


@annotate.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="owner", show_default=True)
@click.option("--study", default="", help="The study of an adjudicator.")
@click.option("--days", type=float, default=30.0, show_default=True, help="How long the link is valid.")
@click.option("--url", default="", help="What the link begins with [the address of the server].")
@click.option("--revoke", "ends", is_flag=True, help="End all links of NAME instead.")
@database
@answers
def link(name: str, role: str, study: str, days: float, url: str, ends: bool, db: Database) -> CommandResult:
    """Give the owner or adjudicator NAME a new link to the owners' pages. The link is shown only once."""
    from creperie.annotation import Invitation, link_for, served_at
    from creperie.annotation import revoke as end

    if ends:
        count = end(db, name)
        return CommandResult({"name": name, "revoked": count}, lambda: say(f"{name}: {count} links ended"))
    token = link_for(db, name, role, study, days)
    with db.read() as session:
        made = Invitation("", token).link(url or served_at(session))
    return CommandResult({"name": name, "role": role, "study": study, "link": made}, lambda: echo(made))


@annotate.command()
@options_of("address", Address)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON document.")
@database
def serve(db: Database, as_json: bool, address: Address) -> None:
    """Serve the web pages of the studies, by default on this machine only, and print the owner's link."""
    from creperie.annotation import serve as run

    if as_json:
        echo(json.dumps({"url": address.base}))
    run(db, address)


@annotate.command()
@click.argument("study", required=False)
@database
@answers
def show(study: str | None, db: Database) -> CommandResult:
    """Show the progress of STUDY and of its annotators; without a name, of all studies."""
    from creperie.annotation import all_studies, overview, study_named

    with db.read() as session:
        if study is None:
            studies = all_studies(session)
            return CommandResult({"studies": studies}, lambda: show_studies(studies))
        seen = overview(session, study_named(session, study))
    return CommandResult(seen, lambda: show_overview(seen))


@study_command
def agreement(study: str, db: Database) -> CommandResult:
    """Measure how far the annotators of STUDY agree, with coefficients (alpha, kappa) and their intervals."""
    from creperie.annotation import agreement as measure
    from creperie.annotation import disagreements, judged, study_named, study_record, task_named

    with db.read() as session:
        record = study_record(session, study_named(session, study))
    task, questions = task_named(record["task"]), judged(record)
    rows = measure(record)
    listed = [{"subset": one.subset, "id": one.item, "question": one.ordinal} for one in disagreements(task, questions)]
    return CommandResult(
        {"study": study, "agreement": rows, "disagreements": listed}, lambda: show_agreement(rows, len(listed))
    )


@study_command
@click.option("--out", type=FILE, required=True, help="A .json file, or .csv for answers only.")
def export(study: str, out: Path, db: Database) -> CommandResult:
    """Write a record of STUDY: answers, exclusions, adjudications, plan and settings, with a digest of all of it."""
    from creperie.annotation import export_study

    done = export_study(db, study, out)
    return CommandResult(
        {"study": study, "file": str(out), **done},
        lambda: say(f"{done['events']} events in {out}, {done['erased']} of them erased; digest {done['digest']}"),
    )


def _move(db: Database, study: str, state: str) -> CommandResult:
    from creperie.annotation import set_state, study_named

    with db.write() as session:
        set_state(session, study_named(session, study), state, "cli")
    return CommandResult({"study": study, "state": state}, lambda: say(f"{study}: {state}"))


@study_command
def stop(study: str, db: Database) -> CommandResult:
    """Stop giving out questions of STUDY until `annotate go` is run. A closed study becomes a stopped one."""
    return _move(db, study, "paused")


@study_command
def close(study: str, db: Database) -> CommandResult:
    """Close STUDY to answers and changes. From then on, answers, decisions, invitations, exclusions and settings can no
    longer be added or changed.
    """
    return _move(db, study, "closed")


@study_command
def go(study: str, db: Database) -> CommandResult:
    """Continue a stopped STUDY."""
    return _move(db, study, "open")


@annotate.command()
@click.argument("study")
@click.option("--bench", help="The benchmark of the study, if it has moved.")
@click.option("--images", metavar="DIR", help="Where the images are.")
@options_of("plan", ApplyPlan)
@click.option(
    "--from",
    "record",
    type=EXISTING,
    help="Compute from this file of `annotate export` instead of the database.",
)
@click.option("--db", "place", metavar="FILE|URL", help="SQLite file or postgresql:// URL, as in the other commands.")
@answers
def apply(
    study: str, bench: str | None, images: str | None, record: Path | None, place: str | None, plan: ApplyPlan
) -> CommandResult:
    """Turn the answers of STUDY into results: a new version of the benchmark, runs in which people take the place of
    models, or a table of ratings, depending on the task.

    If annotators break the rules of the study, nothing is written and the exit code is 3, unless --as-is is given.
    """
    from creperie.annotation import (
        BrokenRulesError,
        apply_record,
        apply_study,
        bench_of,
        read_export,
        write_applied,
    )
    from creperie.bench import load

    db = open_place(place) if record is None else None
    try:
        if db is not None:
            done = apply_study(db, study, bench_of(db, study, bench, images), plan)
        elif record is not None and bench is not None:
            done = apply_record(read_export(record), load(bench, images=images), plan)
        else:
            raise UsageError("an exported record does not name the benchmark's folder", hint="pass --bench BENCH")
    except BrokenRulesError as e:
        refused, next_step = {**e.document, "applied": False}, e.next_step

        def show() -> None:
            say("[bold]not applied[/]: the answers of people who break the study's rules would count")
            show_breakers(refused["rule_breakers"], refused["missing_without_them"])
            say(f"next: {next_step}, then let others answer; or apply all the same with --as-is")

        return CommandResult(refused, show, code=3)
    document = {**write_applied(db, done, plan), "applied": True}
    return CommandResult(document, lambda: show_applied(document))


# -- showing ---------------------------------------------------------------------------------------------------------


def show_studies(studies: Sequence[Json]) -> None:
    rows = [
        [s["study"], s["task"], called(s["place"], s["benchmark"]), s["state"], f"{s['done']} / {s['slots']}"]
        for s in studies
    ]
    print_table(["study", "task", "benchmark", "state", "answers"], rows)


def show_overview(seen: Json) -> None:
    say(f"[bold]{seen['study']}[/] ({seen['task']}, {seen['state']}): {seen['done']} of {seen['slots']} answers")
    rows = [[s["subset"], s["done"], s["slots"]] for s in seen["subsets"]]
    print_table(["subset", "done", "of"], rows)
    people = []
    for a in seen["annotators"]:
        attention = f"{a['attention_passed']} / {a['attention_asked']}"
        figures = (decimal(a["median_seconds"], 1), attention, decimal(a["competence"], 2))
        people.append([a["annotator"], a["answers"], a["skipped"], *figures, "; ".join(a["flags"])])
    print_table(["annotator", "answers", "skipped", "median s", "attention", "accuracy", "flags"], people)
    if seen["without_accuracy"]:
        say("no accuracy: too few answers that can be compared with those of others or with known ones")
    show_agreement(seen["agreement"], seen["disagreements"])
    if seen["rule_breakers"]:
        say("people who break the study's rules, so that `annotate apply` refuses:")
        show_breakers(seen["rule_breakers"], seen["missing_without_them"])
        say(f"next: creperie annotate exclude {seen['study']} --rules")


def show_agreement(rows: Sequence[Json], disagreements: int) -> None:
    if not rows:
        say("no agreement yet: it needs two annotators who answered the same questions")
        return
    cells = []
    for r in rows:
        interval = f"{decimal(r['low'])} to {decimal(r['high'])}"
        cells.append([r["dimension"], r["kind"], r["who"], decimal(r["value"]), interval, r["n"]])
    print_table(["about", "coefficient", "who", "value", "95 % interval", "questions"], cells)
    say(f"{counted(disagreements, 'question')} with different answers")


def show_breakers(breakers: Sequence[Json], missing: int) -> None:
    """Print which annotators break the rules of a study, and how many answers would be lost by excluding them."""
    for one in breakers:
        say("  {}: {}", one["annotator"], one["why"])
    say(f"without them {counted(missing, 'answer')} would be missing")


def show_applied(document: Json) -> None:
    if breakers := document.get("rule_breakers"):
        names = ", ".join(breakers)
        say("[bold]applied as is[/]: the answers of {}, who break the study's rules, count", names)
    if "kept" in document:
        say(f"{document['kept']} items kept, {document['removed']} removed")
        for fate, n in document["fates"].items():
            say(f"  {n} {fate}")
    if document.get("table"):
        rows = [[decimal(v, 2) if isinstance(v, float) else v for v in row.values()] for row in document["table"]]
        print_table(list(document["table"][0]), rows)
    if "results" in document:
        rows = [
            [r["model"], r["task"], r["subset"], r["n"], decimal(r["accuracy"])]
            for r in document["results"]
            if r["subset"] == "all"
        ]
        print_table(["run", "task", "subset", "n", "accuracy"], rows)
    say(f"from the record with digest {document['export']}")
    for path in [document["folder"], *document["written_runs"]]:
        if path:
            say(f"written: {path}")


for command in (new, invite, revoke, agreement, export, stop, close, go, *COMMANDS):
    annotate.add_command(command)
