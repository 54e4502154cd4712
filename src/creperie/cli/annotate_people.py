"""`creperie annotate`: managing the people in a study (exclusion, crowds, consent, payment, privacy)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from creperie.cli.options import EXISTING, FILE, study_command
from creperie.cli.output import CommandResult, echo, print_table, say
from creperie.core import (
    DataError,
    Json,
    UsageError,
    counted,
    csv_text,
    one_line,
    parse_json,
    read_json,
    read_text,
    write_text,
)

if TYPE_CHECKING:
    from creperie.annotation import Database


@study_command
@click.argument("annotator", required=False)
@click.option("--why", default="", help="The reason, which is recorded.")
@click.option("--rules", is_flag=True, help="Exclude all who break a rule, until nobody is left who does.")
@click.option("--dry-run", is_flag=True, help="With --rules: only show who would be excluded.")
def exclude(study: str, annotator: str | None, why: str, rules: bool, dry_run: bool, db: Database) -> CommandResult:
    """Leave the answers of ANNOTATOR out of all results, and give the same questions to other people."""
    if bool(annotator) == rules:
        raise UsageError("expected either ANNOTATOR or --rules", hint="give one of the two")
    if dry_run and not rules:
        raise UsageError(
            "--dry-run works only together with --rules", hint="pass --rules as well, to see whom the rules exclude"
        )
    from creperie.annotation import answers_missing, exclude_by_rules, study_named, study_record
    from creperie.annotation import exclude as leave_out

    if rules:
        excluded = exclude_by_rules(db, study, dry_run=dry_run)
    else:
        given = leave_out(db, study, str(annotator), why)
        excluded = [{"annotator": annotator, "why": why, "given_out_again": given}]
    with db.read() as session:
        missing = answers_missing(study_record(session, study_named(session, study)), excluded)

    def show() -> None:
        for one in excluded:
            say(f"{one['annotator']}: {'would be ' if dry_run else ''}excluded ({one['why'] or 'no reason given'})")
        if not excluded:
            say("nobody breaks a rule")
        say(f"{counted(missing, 'answer')} {'would be' if dry_run and excluded else 'are'} missing")

    document = {"study": study, "excluded": excluded, "missing": missing, "dry_run": dry_run}
    return CommandResult(document, show)


@study_command
@click.argument("annotator")
def include(study: str, annotator: str, db: Database) -> CommandResult:
    """Undo the exclusion of ANNOTATOR."""
    from creperie.annotation import include as take_back

    take_back(db, study, annotator)
    return CommandResult({"study": study, "included": annotator}, lambda: say(f"{annotator}: included again"))


@study_command
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--file", "path", type=EXISTING, help="Settings as one JSON object.")
def settings(study: str, changes: tuple[str, ...], path: Path | None, db: Database) -> CommandResult:
    """Show or change the settings of STUDY: instructions, consent, crowd, exclusion rules.

    A value is read as JSON or, if it is not JSON, as text; with @FILE it is read from a file.

    \b
      creperie annotate settings foils instructions=@task.md consent=@consent.md
      creperie annotate settings foils max_attention_failures=0.3 min_median_seconds=1.5
      creperie annotate settings foils platform=prolific cap=30 pay=4.5 currency=GBP
    """
    from creperie.annotation import change_settings, settings_of, study_named

    given: Json = read_json(path) if path else {}
    for change in changes:
        name, separator, value = change.partition("=")
        if not separator:
            raise UsageError(f"expected NAME=VALUE, got {change!r}", hint="write it like this: cap=30")
        given[name] = _value(value)
    if given:
        with db.write() as session:
            change_settings(session, study_named(session, study), "cli", given)
    with db.read() as session:
        stored = study_named(session, study)
    now = {k: v for k, v in vars(settings_of(stored.settings)).items() if k != "crowd_address"}
    shown = [[name, "–" if value in (None, "") else one_line(value, 60)] for name, value in now.items()]
    return CommandResult(
        {"study": study, "revision": stored.revision, "settings": now},
        lambda: print_table(["setting", "value"], shown),
    )


def _value(text: str) -> Any:
    if text.startswith("@"):
        return read_text(Path(text[1:])).strip()
    try:
        return parse_json(text, "the value")
    except DataError:
        return text


@study_command
@click.option("--ids", type=EXISTING, help="Worker ids, one per line.")
@click.option("--sign", is_flag=True, help="With --ids: print a signed address for each instead of listing them.")
@click.option("--new-address", is_flag=True, help="Make a new address for all workers to share; the old one ends.")
@click.option("--url", default="", help="What addresses begin with [the address of the server].")
def crowd(study: str, ids: Path | None, sign: bool, new_address: bool, url: str, db: Database) -> CommandResult:
    """Let crowd workers enter STUDY through one shared address, each with an id.

    The id of a worker must be in the list given with --ids or, with --sign, be part of a signed address.

    \b
      creperie annotate crowd foils --new-address --ids prolific-ids.txt
      creperie annotate crowd foils --new-address --sign --ids our-people.txt
    """
    from urllib.parse import urlencode

    from creperie.annotation import (
        PLACEHOLDER,
        SIGNATURE,
        WORKER_PARAMETER,
        crowd_address,
        list_workers,
        served_at,
        settings_of,
        signature,
        study_named,
    )

    if not new_address and (sign or not ids):
        raise UsageError(
            "there is nothing to do without --ids or --new-address",
            hint="pass --ids FILE with the ids of workers who may take part, or --new-address for a new address",
        )
    workers = [line.strip() for line in read_text(ids).splitlines() if line.strip()] if ids else []
    listed = list_workers(db, study, workers) if workers and not sign else 0
    token = crowd_address(db, study) if new_address else ""
    with db.read() as session:
        stored = study_named(session, study)
        base = f"{(url or served_at(session)).rstrip('/')}/crowd/{token}" if token else ""
    platform = settings_of(stored.settings).platform
    parameter = WORKER_PARAMETER[platform]
    signed = [f"{base}?{urlencode({parameter: one, SIGNATURE: signature(stored, one)})}" for one in workers if sign]
    shared = f"{base}?{parameter}={PLACEHOLDER.get(platform, '…')}" if base else None

    def show() -> None:
        if listed:
            say(f"{listed} new ids may enter")
        for one in signed or ([shared] if shared else []):
            echo(one)

    return CommandResult({"study": study, "listed": listed, "address": shared, "signed": signed}, show)


@study_command
@click.option("--out", type=FILE, required=True, help="A .csv file.")
@click.option(
    "--workers",
    type=EXISTING,
    help="Worker ids of the platform, one per line, to be listed beside their hashes.",
)
def payments(study: str, out: Path, workers: Path | None, db: Database) -> CommandResult:
    """Write how much each annotator of STUDY is owed, with active time and completion code."""
    from operator import itemgetter

    from creperie.annotation import PAYMENT_COLUMNS, overview, study_named
    from creperie.annotation import payments as compute

    ids = read_text(workers).splitlines() if workers else ()
    with db.read() as session:
        stored = study_named(session, study)
        rows = compute(stored, overview(session, stored)["annotators"], ids)
    write_text(out, csv_text(PAYMENT_COLUMNS, map(itemgetter(*PAYMENT_COLUMNS), rows)))
    total = round(sum(row["pay"] for row in rows), 2)
    document = {"study": study, "file": str(out), "people": len(rows), "total": total}
    return CommandResult(document, lambda: say(f"{len(rows)} people, {total:.2f} in all: {out}"))


@study_command
@click.argument("annotator")
@click.option("--yes", is_flag=True, help="Confirm: the answers are erased for good.")
def withdraw(study: str, annotator: str, yes: bool, db: Database) -> CommandResult:
    """Erase the answers of ANNOTATOR and give the same questions to other people. Exports say how many were erased."""
    if not yes:
        raise UsageError(f"this would erase the answers of {annotator} for good", hint="pass --yes to confirm")
    from creperie.annotation import withdraw as erase

    n = erase(db, study, annotator)
    return CommandResult({"study": study, "withdrawn": annotator, "erased": n}, lambda: say(f"{n} rows erased"))


COMMANDS: tuple[click.Command, ...] = (exclude, include, settings, crowd, payments, withdraw)
