"""What a hostile or careless visitor can do to a study, and what it cannot."""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import stat
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import func, select, text

from creperie.annotation.access import TRIES_PER_ACCOUNT
from creperie.annotation.answers import answer, skip, undo
from creperie.annotation.apply import apply_study, write_applied
from creperie.annotation.chain import broken_links, read_checkpoint
from creperie.annotation.database import BusyError, Database, open_database
from creperie.annotation.desk import Desk, WorkError
from creperie.annotation.exchange import as_csv, export_rows, export_study, import_answers
from creperie.annotation.invitations import invite, served_at
from creperie.annotation.measures import overview
from creperie.annotation.schema import ATTENTION, MAIN, PRACTICE, Annotator, Answer, Question, Slot
from creperie.annotation.server import Address, limited_protocol
from creperie.annotation.study import StudyPlan, set_state, store_study, study_named
from creperie.annotation.tasks import TASKS
from creperie.annotation.web import guard
from creperie.annotation.web.app import create_app
from creperie.annotation.web.pictures import StudyPictures
from creperie.annotation.web.site import Site
from creperie.bench import Benchmark, Item, choice
from creperie.bench.benchmark import from_items
from creperie.core import DataError, UsageError
from creperie.metrics import MetricSettings

SUBSETS = {"positive-check": "triplet", "find-negative": "triplet", "better-foil": "several"}


def begin(db: Database, bench: Benchmark, people: int = 1, task: str = "foil-check", **plan: Any) -> list[int]:
    """A study with annotators; their ids."""
    subset = SUBSETS.get(task, "pair")
    store_study(db, "s", bench.only([subset]), StudyPlan(task, **({"practice": 0} | plan)))
    invite(db, "s", people)
    with db.read() as session:
        return list(session.scalars(select(Annotator.id).order_by(Annotator.id)))


def first_option(ticket: Any, place: int = 0) -> dict[str, Any]:
    """An answer that the page could send: the option at a place of every field."""
    fields: dict[str, Any] = {}
    for field in ticket.form.fields:
        if field.when is None or fields.get(field.when[0]) == field.when[1]:
            fields[field.name] = (
                field.options[place % len(field.options)].value
                if field.options
                else ("a corrected caption" if field.kind == "text" else place)
            )
    return fields


def work(db: Database, who: int, n: int = 10_000, choose: Callable[[Any], dict[str, Any]] = first_option) -> list[Any]:
    """Answer up to n questions; the tickets."""
    seen: list[Any] = []
    while len(seen) < n:
        with db.write() as session:
            desk = Desk(db, session, who)
            ticket = desk.take()
            if ticket is None:
                break
            answer(desk, ticket.slot.token or "", f"k-{who}-{ticket.slot.id}-{len(seen)}", choose(ticket), "")
            seen.append(ticket)
    return seen


# -- guessing the truth ----------------------------------------------------------------------------------------------


def _shuffled(key: object) -> int:
    """Where the third of three captions would stand, if this key were the seed of the order."""
    order = [0, 1, 2]
    random.Random(key).shuffle(order)  # type: ignore[arg-type]
    return order.index(2)


def _hashed(key: object) -> int:
    return hashlib.sha256(str(key).encode()).digest()[0] % 3


def test_whoever_knows_the_code_the_ids_and_ten_answers_guesses_no_better_than_chance(db: Database) -> None:
    """Thousands of ways to compute a place from what is public: those that fit ten known questions best are tried on
    400 later ones, and so are rules that need no key. A third is right by chance; 0.46 is more than five standard
    deviations away, so that some forty rules pass it by luck once in a million studies.
    """
    items = [Item(str(n), "t", (), (f"p {n}", f"q {n}", f"n {n}"), choice(2, 1)) for n in range(410)]
    begun = int(time.time())
    store_study(db, "s", from_items("t", items), StudyPlan("find-negative", practice=0, overlap=1, with_image=False))
    invite(db, "s", 1)
    shown = [
        {"n": n, "slot": t.slot.id, "question": t.question.id, "item": int(t.question.item), "token": t.slot.token,
         "place": list(t.slot.order).index(2)}
        for n, t in enumerate(work(db, 1))
    ]  # fmt: skip
    with db.read() as session:
        name = session.scalars(select(Annotator.pseudonym)).one()
    known, later = shown[:10], shown[10:]
    assert len(later) == 400

    def right(rule: Callable[[dict[str, Any]], int], among: list[dict[str, Any]]) -> float:
        return sum(rule(one) == one["place"] for one in among) / len(among)

    seeds = [*range(200), "s", "t", "", name, "find-negative", *range(begun - 20, begun + 20)]
    forms = ("{s}/{slot}/1", "{s}/{question}/1", "{s}-{slot}", "{s}{item}", "{s}/{n}", "{s}:{slot}:" + name)
    keyed = [
        lambda one, s=s, form=form, draw=draw: draw(form.format(s=s, **one))
        for s in seeds
        for form in forms
        for draw in (_shuffled, _hashed)
    ]
    streams = [random.Random(s) for s in seeds]
    drawn = [[stream.sample(range(3), 3).index(2) for _ in shown] for stream in streams]
    keyed += [lambda one, places=places: places[one["n"]] for places in drawn]
    best = sorted(keyed, key=lambda rule: -right(rule, known))[:20]
    assert right(best[0], known) > 0.6  # with so many to choose from, some fit what is known

    common = max(range(3), key=lambda place: sum(one["place"] == place for one in known))
    after = {one["place"]: other["place"] for one, other in pairwise(known)}
    simple: list[Callable[[dict[str, Any]], int]] = [lambda one: common]
    for field in ("n", "slot", "question", "item"):
        simple += [lambda one, f=field, k=k: (one[f] + k) % 3 for k in range(3)]
    simple += [lambda one, k=k: ord(one["token"][k]) % 3 for k in (0, -1)]
    simple += [lambda one: sum(map(ord, one["token"])) % 3]
    simple += [lambda one, k=k: (shown[one["n"] - 1]["place"] + k) % 3 for k in range(3)]  # told the one before
    simple += [lambda one: after.get(shown[one["n"] - 1]["place"], 0)]
    assert [n for n, rule in enumerate([*best, *simple]) if right(rule, later) > 0.46] == []


def test_two_studies_of_the_same_seed_and_name_ask_different_checks(bench: Benchmark, tmp_path: Path) -> None:
    drawn = []
    for n in range(2):
        db = open_database(tmp_path / f"{n}.db")
        store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check", practice=2, attention=5))
        with db.read() as session:
            drawn.append(session.execute(select(Question.kind, Question.item).where(Question.kind != MAIN)).all())
        db.close()
    assert drawn[0] != drawn[1]


def test_orders_stay_out_of_exports_until_the_study_is_closed(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, task="find-negative", overlap=1)
    work(db, who, 3)
    shown = {}
    for state in ("open", "paused", "closed"):
        set_state(db, "s", state, "test")
        with db.read() as session:
            study = study_named(session, "s")
            rows = list(export_rows(session, study))
            assert study.secret not in json.dumps(rows)
            shown[state] = [row["shown_order"] for row in rows]
    assert shown["open"] == shown["paused"] == [None] * 3
    assert all(sorted(order) == [0, 1, 2] for order in shown["closed"])


# -- attention checks and skips --------------------------------------------------------------------------------------


def test_checks_come_at_different_places_for_everybody(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, 6, overlap=6, attention=3, attention_every=5)
    places = []
    for who in people:
        kinds = [t.slot.kind for t in work(db, who)]
        assert kinds.count(ATTENTION) == 3
        places.append(tuple(n for n, kind in enumerate(kinds) if kind == ATTENTION))
    assert len(set(places)) >= 3


def test_a_skipped_check_is_a_failed_one(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, attention=2, attention_every=2)
    for n in range(40):
        with db.write() as session:
            desk = Desk(db, session, who)
            if (ticket := desk.take()) is None:
                break
            if ticket.slot.kind == ATTENTION:
                skip(desk, ticket.slot.token or "", f"k{n}", "")
            else:
                answer(desk, ticket.slot.token or "", f"k{n}", {"verdict": "false"}, "")
    with db.read() as session:
        (seen,) = overview(session, study_named(session, "s"), MetricSettings(resamples=100))["annotators"]
    assert (seen["attention_passed"], seen["attention_asked"]) == (0, 2)


def test_skips_are_bounded(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, skips=2)
    for n in range(3):
        with db.write() as session:
            desk = Desk(db, session, who)
            ticket = desk.take()
            assert ticket is not None
            if n < 2:
                skip(desk, ticket.slot.token or "", f"k{n}", "")
            else:
                with pytest.raises(WorkError, match="skipped too many"):
                    skip(desk, ticket.slot.token or "", f"k{n}", "")


def test_undo_after_a_skip_brings_the_skipped_question_back(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, overlap=1)
    (first,) = work(db, who, 1)
    with db.write() as session:
        desk = Desk(db, session, who)
        second = desk.take()
        assert second is not None
        skip(desk, second.slot.token or "", "s", "")
    with db.write() as session:
        desk = Desk(db, session, who)
        undo(desk, "u1")
        again = desk.take()
    assert again is not None
    assert again.question.id == second.question.id
    with db.write() as session:
        desk = Desk(db, session, who)
        undo(desk, "u2")
        before = desk.take()
    assert before is not None
    assert before.question.id == first.question.id


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_task_works_with_its_defaults_practice_and_checks_included(
    site: Site, browser: Callable[..., Any], task: str, bench: Benchmark
) -> None:
    subset = SUBSETS.get(task, "pair")
    store_study(
        site.db, "s", bench.only([subset]), StudyPlan(task, practice=3, attention=2, attention_every=3, overlap=1)
    )
    who = browser().join(invite(site.db, "s", 1)[0].token)
    told = 0
    for n in range(40):
        question = who.api("next").json()["question"]
        if question is None:
            break
        fields: dict[str, Any] = {}
        for field in question["fields"]:
            if field["when"] is None or fields.get(field["when"][0]) == field["when"][1]:
                options = [o["value"] for o in field["options"]]
                fields[field["name"]] = (
                    options[n % len(options)] if options else ("x" if field["kind"] == "text" else 0)
                )
        reply = who.api("answer", {"slot": question["slot"], "key": f"key-{n:08}", "fields": fields})
        assert reply.status_code == 200, reply.text
        told += reply.json()["receipt"]["feedback"] is not None
    assert told >= (1 if TASKS[task].makes == "rate" else 3)
    with site.db.read() as session:
        kinds = session.scalars(select(Slot.kind).where(Slot.state == "done")).all()
    assert (kinds.count(PRACTICE), kinds.count(ATTENTION)) == (3, 2)


# -- decisions -------------------------------------------------------------------------------------------------------


def test_fewer_answers_than_asked_for_decide_nothing(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, 3, overlap=3)
    work(db, people[0], 4, lambda ticket: {"verdict": "true"})
    done = apply_study(db, "s", bench.only(["pair"]))
    assert done.document["removed"] == 0
    assert done.document["fates"] == {"undecided": 4, "not judged": 12}
    assert done.document["too_few_answers"] == 16
    for who in people:
        work(db, who, 16, lambda ticket: {"verdict": "true" if int(ticket.question.item) < 4 else "false"})
    fates = apply_study(db, "s", bench.only(["pair"])).document["fates"]
    assert fates["confirmed"] >= 8
    assert fates["removed"] >= 4


def test_a_benchmark_name_cannot_lead_out_of_the_runs_folder(db: Database, tmp_path: Path) -> None:
    items = [Item(str(n), "t", (), (f"p {n}", f"q {n}", f"n {n}"), choice(2, 1)) for n in range(4)]
    evil = from_items("../../../x", items)
    store_study(db, "s", evil, StudyPlan("find-negative", practice=0, overlap=1, with_image=False))
    invite(db, "s", 1)
    work(db, 1)
    runs = tmp_path / "deep" / "er" / "runs"
    written = write_applied(db, "s", apply_study(db, "s", evil), out=None, runs=runs)
    assert all(Path(path).resolve().parent == runs.resolve() for path in written["written_runs"])


def test_adjudication_counts_in_the_run_of_everybody(site: Site, bench: Benchmark, browser: Callable[..., Any]) -> None:
    db = site.db
    people = begin(db, bench, 2, task="find-negative")
    for who in people:
        work(db, who, 100, lambda ticket: {"caption": str(list(ticket.order).index(0))})  # everybody is wrong
    before = apply_study(db, "s", bench.only(["triplet"])).runs[0].results[0]["hits"]
    owner = browser().log_in()
    owner.get("/owner/studies/s/questions/0")
    assert owner.post("/owner/studies/s/questions/0", {"caption": "2"}).status_code == 303
    assert apply_study(db, "s", bench.only(["triplet"])).runs[0].results[0]["hits"] == before + 1


# -- files that come in and go out -----------------------------------------------------------------------------------


def row_of(db: Database, **changes: Any) -> dict[str, Any]:
    with db.read() as session:
        first = session.scalars(select(Question).where(Question.kind == MAIN).order_by(Question.ordinal)).first()
    assert first is not None
    row = {"question": first.ordinal, "subset": first.subset, "id": first.item, "annotator": "a", "event": "answer"}
    return row | {"key": "k", "value": None} | changes


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("bias-rating", {"value": {"rating": 999}}),
        ("bias-rating", {"value": {"rating": True}}),
        ("find-negative", {"value": {"caption": -1}}),
        ("find-negative", {"value": {"caption": 7}}),
        ("find-negative", {"value": {"caption": "1"}}),
        ("positive-check", {"value": {"verdict": "edit", "text": {"a": 1}, "error": "other"}}),
        ("foil-check", {"value": {"verdict": "false", "more": 1}}),
        ("foil-check", {"value": {"verdict": "false"}, "seconds": float("nan")}),
        ("foil-check", {"value": {"verdict": "false"}, "seconds": -14400}),
        ("foil-check", {"value": {"verdict": "false"}, "seconds": "inf"}),
        ("foil-check", {"value": {"verdict": "false"}, "at": "+999999-01-01"}),
    ],
)
def test_an_import_that_does_not_fit_writes_nothing(
    db: Database, bench: Benchmark, tmp_path: Path, task: str, changes: dict[str, Any]
) -> None:
    begin(db, bench, task=task)
    good = row_of(db, annotator="b", key="good", value=None)
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in (good, row_of(db, **changes))), encoding="utf-8")
    with pytest.raises(DataError):
        import_answers(db, "s", path)
    with db.read() as session:
        assert session.scalars(select(Answer)).all() == []
        assert "a" not in session.scalars(select(Annotator.pseudonym)).all()


def test_every_column_of_a_csv_is_safe_in_a_spreadsheet(db: Database) -> None:
    items = [Item(f"=1+{n}", "@sum", (), ("p", "q", "n"), choice(2, 1)) for n in range(3)]
    store_study(db, "s", from_items("t", items), StudyPlan("find-negative", practice=0, overlap=1, with_image=False))
    invite(db, "s", 1)
    work(db, 1)
    with db.read() as session:
        lines = as_csv(export_rows(session, study_named(session, "s"))).splitlines()[1:]
    assert len(lines) == 3
    for line in lines:
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in line.split(","))


# -- chains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM answer WHERE turn = 3", "rows at the end are missing"),
        ('UPDATE answer SET value = \'{"verdict": "true"}\' WHERE turn = 2', "a row was changed"),
        ("UPDATE question SET expected = '{}' WHERE ordinal = 0", "questions were changed"),
        ("DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)", "events at the end are missing"),
        ("UPDATE event SET actor = 'x' WHERE what = 'invite'", "an event was changed"),
    ],
)
def test_the_chain_covers_answers_questions_and_events(
    db: Database, bench: Benchmark, statement: str, why: str
) -> None:
    (who,) = begin(db, bench)
    work(db, who, 3)
    with db.read() as session:
        assert broken_links(session, study_named(session, "s")) == []
    _tamper(db, statement)
    with db.read() as session:
        assert why in {b.why.partition(",")[0] for b in broken_links(session, study_named(session, "s"))}


def _tamper(db: Database, *statements: str) -> None:
    with db.write() as session:
        for table in ("answer", "decision", "event"):
            for verb in ("update", "delete"):
                session.execute(text(f"DROP TRIGGER IF EXISTS {table}_no_{verb}"))
        for statement in statements:
            session.execute(text(statement))


def test_a_signed_checkpoint_shows_rows_that_were_removed_with_the_end_of_their_chain(
    db: Database, bench: Benchmark, tmp_path: Path
) -> None:
    (who,) = begin(db, bench)
    work(db, who, 3)
    export_study(db, "s", tmp_path / "s.jsonl")
    with db.read() as session:
        second = session.scalars(select(Answer).where(Answer.turn == 2)).one()
    _tamper(db, "DELETE FROM answer WHERE turn = 3", f"UPDATE annotator SET turns = 2, head = '{second.digest}'")
    mark = read_checkpoint(tmp_path / "s.checkpoint.json", db)
    with db.read() as session:
        study = study_named(session, "s")
        assert broken_links(session, study) == []
        assert [b.why for b in broken_links(session, study, mark)] == ["a row differs from the checkpoint"]
    forged = json.loads((tmp_path / "s.checkpoint.json").read_text()) | {"at": 0}
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    with pytest.raises(DataError, match="signature is not valid"):
        read_checkpoint(tmp_path / "forged.json", db)


def test_decisions_are_covered_by_the_chain(site: Site, study: Any, browser: Callable[..., Any]) -> None:
    study()
    owner = browser().log_in()
    owner.get("/owner/studies/s/questions/0")
    assert owner.post("/owner/studies/s/questions/0", {"verdict": "true"}).status_code == 303
    for statement, why in (
        ('UPDATE decision SET value = \'{"verdict": "false"}\'', "a decision was changed or slipped in"),
        ("DELETE FROM decision", "1 decisions are missing"),
    ):
        _tamper(site.db, statement)
        with site.db.read() as session:
            assert why in {b.why for b in broken_links(session, study_named(session, "s"))}


def test_the_database_and_its_key_are_private(tmp_path: Path, bench: Benchmark) -> None:
    old = os.umask(0o000)
    try:
        db = open_database(tmp_path / "people.db")
        store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check"))
        export_study(db, "s", tmp_path / "s.jsonl")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.glob("people.db*")}
        db.close()
    finally:
        os.umask(old)
    assert {"people.db", "people.db.key"} <= set(modes)
    assert set(modes.values()) == {0o600}


# -- the server ------------------------------------------------------------------------------------------------------


def test_strange_headers_and_numbers_are_refused_not_failed(
    browser: Callable[..., Any], study: Any, site: Site, bench: Benchmark
) -> None:
    token, _ = study()
    who = browser().join(token)
    assert who.api("next", origin="http://[").status_code == 403
    store_study(site.db, "rate", bench.only(["pair"]), StudyPlan("bias-rating", practice=0))
    owner = browser().log_in()
    owner.get("/owner/studies/rate/questions/0")
    for rating in ("--5", "-", "5-", "٣", "9" * 40):
        assert owner.post("/owner/studies/rate/questions/0", {"rating": rating}).status_code == 400


def test_a_stopped_study_takes_the_answer_in_hand(browser: Callable[..., Any], study: Any, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.api("next").json()["question"]
    set_state(db, "s", "paused", "test")
    body = {"slot": question["slot"], "key": "0123456789abcdef", "fields": {"verdict": "false"}}
    reply = who.api("answer", body).json()
    assert reply["question"] is None
    assert reply["standing"]["stopped"]
    with db.read() as session:
        assert len(session.scalars(select(Answer)).all()) == 1


def test_seconds_never_come_from_a_clock_that_jumps(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench)
    seconds = []
    for n, (shown, answered, visible) in enumerate(
        ((20_000.0, 5_600.0, None), (20_000.0, 5_600.0, 3.5), (1000.0, 1001.0, 9999.0))
    ):
        with db.write() as session:
            ticket = Desk(db, session, who, shown).take()
        assert ticket is not None
        with db.write() as session:
            desk = Desk(db, session, who, answered)
            answer(desk, ticket.slot.token or "", f"k{n}", {"verdict": "false"}, "", visible)
        with db.read() as session:
            seconds.append(session.scalars(select(Answer.seconds).order_by(Answer.id.desc())).first())
    assert all(s is not None and 0 <= s < 60 for s in seconds), seconds


def test_an_account_cannot_be_guessed_from_many_addresses(browser: Callable[..., Any], site: Site) -> None:
    codes = []
    for n in range(TRIES_PER_ACCOUNT + 2):
        guess = browser(f"10.1.0.{n}")
        guess.get("/owner/login")
        codes.append(guess.post("/owner/login", {"name": "ana", "password": f"guess {n}"}).status_code)
    assert codes == [403] * TRIES_PER_ACCOUNT + [429] * 2


def test_only_named_proxies_are_believed() -> None:
    assert Address().proxies == ()
    with pytest.raises(UsageError, match="not an IP address"):
        Address(proxies=("*",))
    with pytest.raises(UsageError, match="not an address"):
        Address(url="people.example")


def test_cookies_are_bound_to_the_host_over_tls(browser: Callable[..., Any], study: Any) -> None:
    token, _ = study()
    who = browser(base="https://127.0.0.1")
    for reply in (who.get(f"/join/{token}"), who.post(f"/join/{token}")):
        cookie = reply.headers["set-cookie"]
        assert cookie.startswith("__Host-creperie_")
        assert "Path=/;" in cookie
        assert "domain" not in cookie.lower()


def test_an_owner_who_opens_an_invitation_stays_logged_in(browser: Callable[..., Any], study: Any) -> None:
    token, _ = study()
    both = browser().log_in().join(token)
    assert both.api("next").status_code == 200
    assert both.get("/owner").status_code == 200


def test_a_form_that_is_sent_again_invites_nobody_again(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study(people=1)
    owner = browser().log_in()
    owner.get("/owner/studies/s")
    form = {"count": "2", "once": "ab" * 16}
    pages = [owner.post("/owner/studies/s/invitations", form).text for _ in range(2)]
    with db.read() as session:
        assert len(session.scalars(select(Annotator)).all()) == 3
    assert pages[0].count("/join/") == pages[1].count("/join/") > 0


def test_two_that_apply_at_once_get_a_version_each(browser: Callable[..., Any], study: Any, site: Site) -> None:
    tokens = study(overlap=1)
    work(site.db, 1, 4)
    assert tokens
    owners = [browser().log_in() for _ in range(3)]
    for owner in owners:
        owner.get("/owner/studies/s")
    threads = [threading.Thread(target=owner.post, args=("/owner/studies/s/apply",)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    made = sorted(p.name for p in site.out.glob("s-v*"))
    assert made == ["s-v1", "s-v2", "s-v3"]
    assert all((site.out / name / "decisions.jsonl").is_file() for name in made)


def test_pages_work_under_a_sub_path_whether_or_not_the_proxy_takes_it_off(
    db: Database, bench: Benchmark, tmp_path: Path, site: Site, study: Any
) -> None:
    from fastapi.testclient import TestClient

    token, _ = study()
    under = Site(db, site.root, tmp_path / "out", url="https://people.example/sub", secure=True)
    app = create_app(under, Address(url=under.url).names)
    for prefix in ("", "/sub"):
        with TestClient(app, base_url="https://people.example") as client:
            page = client.get(f"{prefix}/join/{token}", headers={"accept": "text/html"})
            assert 'action="/sub/join/' in page.text
            assert 'href="/sub/static/people.css"' in page.text
            assert client.get(f"{prefix}/static/people.css").status_code == 200
            away = client.get(f"{prefix}/owner", headers={"accept": "text/html"}, follow_redirects=False)
            assert away.headers["location"] == "/sub/owner/login"


def test_invite_prints_the_address_of_the_server(db: Database) -> None:
    from creperie.annotation.invitations import remember_address

    with db.read() as session:
        assert served_at(session) == "http://127.0.0.1:8765"
    for url in ("http://127.0.0.1:9000", "https://people.example/sub", "https://people.example/sub"):
        remember_address(db, url)
    with db.read() as session:
        assert served_at(session) == "https://people.example/sub"


# -- being overwhelmed -----------------------------------------------------------------------------------------------


def test_large_pictures_are_decoded_one_at_a_time_and_links_do_not_lead_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from creperie.annotation.web import pictures
    from creperie.bench import ImageError

    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(4):
        Image.new("RGB", (60, 40), "red").save(folder / f"{n}.png")
    Image.new("RGB", (60, 40)).save(tmp_path / "outside.png")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    real, busy, most = pictures.open_image, [0], [0]

    def slow(*args: Any, **more: Any) -> Any:
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        time.sleep(0.02)
        busy[0] -= 1
        return real(*args, **more)

    monkeypatch.setattr(pictures, "open_image", slow)
    own = StudyPictures()
    threads = [threading.Thread(target=own.get, args=(str(folder), f"{n % 4}.png")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    with pytest.raises(ImageError, match="leads out"):
        own.get(str(folder), "link.png")
    monkeypatch.setattr(pictures, "MAX_PIXELS", 1000)
    with pytest.raises(ImageError, match="more than 1,000"):
        StudyPictures().get(str(folder), "0.png")


def test_a_locked_database_gives_503_and_static_files_still_come(
    site: Site, study: Any, browser: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = study(people=1)
    who = browser().join(tokens[0])
    monkeypatch.setattr(guard, "PATIENCE", 0.2)

    def wait(*args: Any) -> Any:
        raise BusyError("the database is busy")

    monkeypatch.setattr(type(site.db), "write", wait)
    reply = who.api("next")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
    assert who.get("/static/work.js").status_code == 200


def test_half_open_connections_are_limited_and_closed(site: Site) -> None:
    import uvicorn

    protocol = limited_protocol((), per_address=20, header_seconds=0.5)
    server = uvicorn.Server(uvicorn.Config(create_app(site), log_level="critical", http=protocol))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        address = listener.getsockname()
        while not server.started:
            time.sleep(0.02)
        opened = [socket.create_connection(address) for _ in range(30)]
        for half in opened:
            half.settimeout(5)
        begun = time.monotonic()
        for half in opened[:20]:
            half.sendall(b"POST /api/next HTTP/1.1\r\nHost: ")
        assert [_ended(half) for half in opened] == [True] * 30
        assert time.monotonic() - begun < 4
        with socket.create_connection(address) as fine:
            fine.settimeout(5)
            fine.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in fine.recv(4096)
        server.should_exit = True
        thread.join(20)


def _ended(half: socket.socket) -> bool:
    try:
        return half.recv(100) == b""
    except ConnectionError:
        return True
    finally:
        half.close()


def test_a_disk_without_room_is_told_as_busy_not_as_a_mistake(db: Database) -> None:
    """Statements go to the driver as they are, and so do its errors come back."""
    driver = db.engine.dialect.loaded_dbapi

    def job(session: Any) -> None:
        raise driver.OperationalError("no space left on device")

    with pytest.raises(BusyError):
        db.submit(job).result(60)
    assert db.submit(lambda session: session.scalar(select(func.count()).select_from(Answer))).result(60) == 0


def test_jobs_that_share_a_transaction_fail_alone_and_are_on_disk_when_they_return(
    db: Database, bench: Benchmark, another: Callable[[], Database]
) -> None:
    people = begin(db, bench, 8, overlap=8)
    other = another()
    seen: dict[int, Any] = {}

    def one(who: int) -> None:
        def job(session: Any) -> str:
            desk = Desk(db, session, who)
            ticket = desk.take()
            assert ticket is not None
            answer(desk, ticket.slot.token or "", f"k{who}", {"verdict": "false" if who % 2 else "nonsense"}, "")
            return f"k{who}"

        try:
            key = db.submit(job).result(60)
        except DataError as e:
            seen[who] = e
        else:
            with other.read() as session:
                seen[who] = session.scalars(select(Answer.key).where(Answer.key == key)).first()

    threads = [threading.Thread(target=one, args=(who,)) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {who: seen[who] for who in people if who % 2} == {who: f"k{who}" for who in people if who % 2}
    assert all(isinstance(seen[who], DataError) for who in people if who % 2 == 0)
    with db.read() as session:
        assert len(session.scalars(select(Answer)).all()) == 4
        assert broken_links(session, study_named(session, "s")) == []
        held = session.scalars(select(Slot).where(Slot.state == "held")).all()
    assert held == []  # what a refused job took is given back
