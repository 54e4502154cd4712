"""`creperie annotate`: web pages where people check, correct, rate and compete."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from creperie.cli.annotate_people import COMMANDS
from creperie.cli.app import CommandGroup
from creperie.cli.options import as_one, database
from creperie.cli.output import CommandResult, answers, echo, say

if TYPE_CHECKING:
    from creperie.annotation import Address, Database, StudyPlan

ROLES = ("owner", "reviewer", "viewer", "member")
TASKS: tuple[str, ...] = ("foil-check", "positive-check", "triplet-check", "find-negative", "choose-caption")
TASKS += ("better-foil", "bias-rating")


@click.group(cls=CommandGroup)
def annotate() -> None:
    """Studies with people: make one, invite, serve the pages, see agreement, apply the answers.

    \b
      creperie annotate new foils --bench out/world --task foil-check
      creperie annotate invite foils --count 2
      creperie annotate serve
    """


@annotate.command()
@click.argument("study")
@click.option("--bench", required=True, help="The benchmark: a folder, catalog name or format:path.")
@click.option("--task", type=click.Choice(TASKS), required=True, help="What people are asked.")
@click.option("--images", metavar="DIR", help="Where the images are.")
@click.option("--other", help="A second benchmark: its foils are compared (better-foil), its items mixed in (bias).")
@click.option("--subset", "subsets", multiple=True, help="Only this subset; may be repeated.")
@click.option("--sample", type=int, help="Only that many items, drawn at random.")
@click.option("--overlap", type=int, default=2, show_default=True, help="Answers per question.")
@click.option("--per-annotator", type=int, help="Questions per annotator; all by default.")
@click.option("--pilot", type=int, default=0, help="First only that many questions; see `annotate go`.")
@click.option("--practice", type=int, help="Questions with feedback at the start [up to 3].")
@click.option("--attention", type=int, default=0, help="Checks with a known answer, at random places.")
@click.option("--skips", type=int, help="Skips per annotator [5, and 1 for every 5 answers].")
@click.option(
    "--attention-every", type=int, default=10, show_default=True, help="One check in each block of this many questions."
)
@click.option("--with-image/--no-image", default=True, help="--no-image: find-negative from the captions alone (TOT).")
@click.option(
    "--timeout",
    "lease",
    type=float,
    default=900.0,
    show_default=True,
    help="Seconds until an abandoned question is given to someone else.",
)
@click.option(
    "--instructions",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Markdown; ![words](image:NAME) shows a picture beside it.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the sample of items.")
@database
@as_one("plan", "creperie.annotation:StudyPlan")
@answers
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
    from creperie.annotation import count_questions, set_instructions, store_study
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
        set_instructions(db, study, instructions.read_text(encoding="utf-8").strip(), "cli", str(instructions.parent))
    with db.read() as session:
        counts = {kind: count_questions(session, made, kind) for kind in ("main", "practice", "attention")}
    document = {
        "study": study,
        "task": plan.task,
        "benchmark": own.name,
        **counts,
        "answers": plan.overlap * counts["main"],
    }

    def show() -> None:
        say(f"[bold]{study}[/]: {counts['main']} questions, {plan.overlap} answers each")
        say(f"{counts['practice']} practice questions, {counts['attention']} attention checks")
        say(f"next: creperie annotate invite {study} --count 2, then creperie annotate serve")

    return CommandResult(document, show)


@annotate.command()
@click.argument("study")
@click.option("--count", type=int, default=1, show_default=True, help="How many annotators.")
@click.option("--days", type=float, default=30.0, show_default=True, help="How long the links are valid.")
@click.option("--note", default="", help="Only the owner sees it.")
@click.option("--url", default="", help="What the links begin with [the address of the server].")
@database
@answers
def invite(study: str, count: int, days: float, note: str, url: str, db: Database) -> CommandResult:
    """New annotators of STUDY, each with a link of their own. The links are shown once."""
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


@annotate.command()
@click.argument("study")
@click.argument("annotator")
@database
@answers
def revoke(study: str, annotator: str, db: Database) -> CommandResult:
    """End the invitation of ANNOTATOR at once. Answers stay."""
    from creperie.annotation import revoke as end

    end(db, study, annotator)
    return CommandResult({"study": study, "revoked": annotator}, lambda: say(f"{annotator}: invitation ended"))


@annotate.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="owner", show_default=True)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, else one is generated.")
@database
@answers
def owner(name: str, role: str, password_stdin: bool, db: Database) -> CommandResult:
    """Give NAME a password for the owner's pages; reviewers look and adjudicate only."""
    from creperie.annotation import set_owner

    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else secrets.token_urlsafe(12)
    set_owner(db, name, password, role)
    shown = {} if password_stdin else {"password": password}

    def show() -> None:
        say(f"{role} [bold]{name}[/] can log in at /owner")
        if shown:
            echo(f"password: {password}")

    return CommandResult({"name": name, "role": role, **shown}, show)


@annotate.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 to be reached from other machines.")
@click.option("--port", type=int, default=8765, show_default=True)
@click.option("--url", default="", help="The address people use, if it differs from host and port.")
@click.option("--proxy", "proxies", multiple=True, help="Trust X-Forwarded headers from this address; repeatable.")
@click.option("--certificate", type=click.Path(exists=True, path_type=Path), help="TLS certificate (PEM).")
@click.option("--key", type=click.Path(exists=True, path_type=Path), help="Its key (PEM).")
@click.option("--root", type=click.Path(path_type=Path), default=Path(), help="Benchmarks that owners can choose [.]")
@click.option("--out", type=click.Path(path_type=Path), default=Path("people-out"), help="Where the pages write.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON document.")
@database
@as_one("address", "creperie.annotation:Address")
def serve(db: Database, root: Path, out: Path, as_json: bool, address: Address) -> None:
    """Serve the pages, by default on this machine only."""
    from creperie.annotation import serve as run

    if as_json:
        echo(json.dumps({"url": address.base}))
    run(db, address, root=root, out=out)


@annotate.command()
@click.argument("study", required=False)
@database
@answers
def show(study: str | None, db: Database) -> CommandResult:
    """Progress of STUDY and of its annotators; without a name, all studies."""
    from creperie.annotation import all_studies, overview, study_named
    from creperie.cli.annotate_text import show_overview, show_studies
    from creperie.metrics import MetricSettings

    with db.read() as session:
        if study is None:
            found = all_studies(session)
            return CommandResult({"studies": found}, lambda: show_studies(found))
        seen = overview(session, study_named(session, study), MetricSettings())
    return CommandResult(seen, lambda: show_overview(seen))


@annotate.command()
@click.argument("study")
@database
@answers
def agreement(study: str, db: Database) -> CommandResult:
    """How far the annotators of STUDY agree: Krippendorff, Fleiss, Cohen, with intervals over items."""
    from creperie.annotation import agreement as measure
    from creperie.annotation import disagreements, judged, study_named, task_named
    from creperie.cli.annotate_text import show_agreement
    from creperie.metrics import MetricSettings

    with db.read() as session:
        stored = study_named(session, study)
        found = judged(session, stored)
    task = task_named(stored.task)
    rows = measure(task, found, MetricSettings())
    listed = [
        {"subset": one.question.subset, "id": one.question.item, "question": one.question.ordinal}
        for one in disagreements(task, found)
    ]
    return CommandResult(
        {"study": study, "agreement": rows, "disagreements": listed}, lambda: show_agreement(rows, len(listed))
    )


@annotate.command()
@click.argument("study")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A .jsonl or .csv file.")
@database
@answers
def export(study: str, out: Path, db: Database) -> CommandResult:
    """Write all events of STUDY: answers, skips, undos, with comments and times."""
    from creperie.annotation import export_study

    n = export_study(db, study, out)
    return CommandResult({"study": study, "events": n, "file": str(out)}, lambda: say(f"{n} events in {out}"))


@annotate.command(name="import")
@click.argument("study")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@database
@answers
def import_(study: str, file: Path, db: Database) -> CommandResult:
    """Add the answers of FILE, as `export` writes them, to STUDY. Answers that are already stored are skipped."""
    from creperie.annotation import import_answers

    counts = import_answers(db, study, file)
    return CommandResult({"study": study, **counts}, lambda: say(f"{counts['added']} added, {counts['known']} known"))


@annotate.command()
@click.argument("study")
@database
@answers
def stop(study: str, db: Database) -> CommandResult:
    """Give out no more questions until `annotate go`."""
    from creperie.annotation import set_state

    set_state(db, study, "paused", "cli")
    return CommandResult({"study": study, "state": "paused"}, lambda: say(f"{study}: stopped"))


@annotate.command()
@click.argument("study")
@click.option("--end-pilot", "ends_pilot", is_flag=True, help="Give out the questions beyond the pilot, too.")
@database
@answers
def go(study: str, ends_pilot: bool, db: Database) -> CommandResult:
    """Resume a stopped study."""
    from creperie.annotation import end_pilot, set_state

    set_state(db, study, "open", "cli")
    if ends_pilot:
        end_pilot(db, study, "cli")
    return CommandResult({"study": study, "state": "open", "pilot_ended": ends_pilot}, lambda: say(f"{study}: open"))


@annotate.command()
@click.argument("study")
@click.option(
    "--checkpoint", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="As `export` writes it."
)
@database
@answers
def verify(study: str, checkpoint: Path | None, db: Database) -> CommandResult:
    """Check that questions, answers, decisions and events are those that were written. Exit code 1 if not."""
    from creperie.annotation import broken_links, read_checkpoint, study_named

    mark = read_checkpoint(checkpoint, db) if checkpoint else None
    with db.read() as session:
        broken = [vars(b) for b in broken_links(session, study_named(session, study), mark)]

    def show() -> None:
        for one in broken:
            echo(f"{one['annotator'] or study}, row {one['turn']}: {one['why']}")
        say("the chain is broken" if broken else "every row is as it was written")

    return CommandResult({"study": study, "broken": broken}, show, ok=not broken)


@annotate.command()
@click.argument("study")
@click.option("--bench", help="The benchmark of the study, where it has moved.")
@click.option("--images", metavar="DIR", help="Where the images are.")
@click.option("--out", type=click.Path(path_type=Path), help="The folder of the new version.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True)
@click.option("--undecided", type=click.Choice(["keep", "drop"]), default="keep", show_default=True)
@click.option("--force", is_flag=True, help="Replace the folder if it is there.")
@database
@answers
def apply(
    study: str,
    bench: str | None,
    images: str | None,
    out: Path | None,
    runs: Path,
    undecided: str,
    force: bool,
    db: Database,
) -> CommandResult:
    """Write the result of the answers: a new version of the benchmark, human runs, or a table of ratings."""
    from creperie.annotation import apply_study, bench_of, write_applied
    from creperie.cli.annotate_text import show_applied

    own = bench_of(db, study, bench, images)
    done = apply_study(db, study, own, undecided=undecided)
    document = write_applied(db, study, done, out=out, runs=runs, force=force)
    return CommandResult(document, lambda: show_applied(document))


for command in COMMANDS:
    annotate.add_command(command)
