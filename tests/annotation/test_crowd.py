"""Exclusion, crowds, consent, withdrawal, qualification: who takes part, whose answers count, who is paid."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError

from creperie.annotation.access import give_role, set_owner
from creperie.annotation.answers import answer
from creperie.annotation.apply import apply_study
from creperie.annotation.chain import broken_links
from creperie.annotation.crowd import Entrant, EntryError, enter, open_link, payments, worker_hash
from creperie.annotation.database import Database
from creperie.annotation.desk import Desk
from creperie.annotation.exchange import export_rows
from creperie.annotation.exclusion import apply_rules, exclude, include
from creperie.annotation.invitations import invite, reissue
from creperie.annotation.manage import archive, copy_study, delete_study
from creperie.annotation.outcome import add_gold, adjudicate, judged
from creperie.annotation.privacy import person_data, retain, withdraw
from creperie.annotation.schema import DONE, FREE, MAIN, VOID, Annotator, Answer, Question, Slot
from creperie.annotation.study import StudyPlan, change_settings, store_study, study_named
from creperie.annotation.web.site import Site
from creperie.bench import Benchmark
from creperie.core import UsageError

both_databases = pytest.mark.parametrize(
    "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
CONSENT = "We store your answers."


def begin(db: Database, bench: Benchmark, people: int = 3, **plan: Any) -> dict[str, int]:
    """A foil check with annotators: their pseudonyms and ids."""
    store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check", **({"practice": 0} | plan)))
    invite(db, "s", people)
    with db.read() as session:
        return {a.pseudonym: a.id for a in session.scalars(select(Annotator).order_by(Annotator.id))}


def work(db: Database, who: int, n: int = 1000, verdict: str = "false") -> int:
    """Answer up to n questions; how many there were."""
    for done in range(n):
        with db.write() as session:
            desk = Desk(db, session, who)
            ticket = desk.take()
            if ticket is None:
                return done
            right = "true" if ticket.slot.kind == "attention" and verdict != "random" else verdict
            said = "unsure" if right == "random" else right
            answer(desk, ticket.slot.token or "", f"k-{who}-{ticket.slot.id}", {"verdict": said}, "a remark")
    return n


def states(db: Database) -> Counter[str]:
    with db.read() as session:
        return Counter(session.scalars(select(Slot.state).where(Slot.kind == MAIN)))


# -- exclusion -------------------------------------------------------------------------------------------------------


@both_databases
def test_an_excluded_annotator_counts_nowhere_and_others_get_the_questions(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, overlap=2)
    (bad, one), (_, two), (_, three) = people.items()
    assert [work(db, one, verdict="true"), work(db, two), work(db, three)] == [16, 16, 0]
    assert apply_study(db, "s", bench.only(["pair"])).document["fates"] == {"undecided": 16}
    assert exclude(db, "s", bad, "noise") == 16
    assert states(db) == {DONE: 16, VOID: 16, FREE: 16}
    with pytest.raises(UsageError, match="already excluded"):
        exclude(db, "s", bad)
    assert apply_study(db, "s", bench.only(["pair"])).document["too_few_answers"] == 16
    assert work(db, three) == 16
    assert apply_study(db, "s", bench.only(["pair"])).document["fates"] == {"confirmed": 16}
    include(db, "s", bad)
    assert states(db) == {DONE: 48}
    with db.read() as session:
        assert broken_links(session, study_named(session, "s")) == []


def test_taking_an_exclusion_back_removes_the_replacements_that_nobody_began(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, overlap=1, people=2)
    (bad, one), (_, two) = people.items()
    work(db, one)
    exclude(db, "s", bad)
    assert work(db, two, 3) == 3
    include(db, "s", bad)
    assert states(db) == {DONE: 19}


def test_rules_exclude_by_checks_time_and_agreement(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=4, overlap=4, attention=3, attention_every=4)
    names = list(people)
    for n, who in enumerate(people.values()):
        work(db, who, verdict="random" if n == 0 else "false")
    change_settings(db, "s", "test", max_attention_failures=0.3)
    assert [r["annotator"] for r in apply_rules(db, "s", dry_run=True)] == names[:1]
    change_settings(db, "s", "test", max_attention_failures=None, min_agreement=0.5)
    assert [r["annotator"] for r in apply_rules(db, "s", dry_run=True)] == names[:1]
    change_settings(db, "s", "test", min_agreement=None, min_median_seconds=60)
    assert len(apply_rules(db, "s", dry_run=True)) == 4
    change_settings(db, "s", "test", min_median_seconds=None, max_attention_failures=0.3)
    (gone,) = apply_rules(db, "s")
    assert gone == {"annotator": names[0], "why": "failed 3 of 3 checks"}
    assert apply_rules(db, "s") == []


# -- consent and withdrawal ------------------------------------------------------------------------------------------


def test_nothing_is_stored_before_consent(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check"))
    token = open_link(site.db, "s", consent=CONSENT, contact="ana@example.org")
    who = browser()
    page = who.get(f"/study/{token}")
    assert CONSENT in page.text
    assert "ana@example.org" in page.text
    assert who.post(f"/study/{token}").status_code == 400
    with site.db.read() as session:
        assert session.scalars(select(Annotator)).all() == []
        version = study_named(session, "s").settings["consent"]
    assert version == CONSENT
    from creperie.annotation.settings import StudySettings

    consent = StudySettings(consent=CONSENT).consent_version
    assert who.post(f"/study/{token}", {"consent": consent}).status_code == 303
    with site.db.read() as session:
        (made,) = session.scalars(select(Annotator)).all()
    assert (made.consent_version, made.consented is not None) == (consent, True)
    who.get("/work")
    assert who.api("next").status_code == 200
    change_settings(site.db, "s", "test", consent="Another text.")
    assert who.api("next").json()["code"] == "consent"
    assert "Another text." in who.get("/work").text
    assert who.post("/consent", {"consent": "x"}).status_code == 400
    assert who.post("/consent", {"consent": StudySettings(consent="Another text.").consent_version}).status_code == 303
    assert who.api("next").status_code == 200


@both_databases
def test_withdrawal_erases_what_was_said_and_the_chain_still_verifies(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=2, overlap=2)
    (gone, one), (_, two) = people.items()
    work(db, one)
    work(db, two)
    assert withdraw(db, "s", gone) == 16
    with db.read() as session:
        study = study_named(session, "s")
        rows = session.scalars(select(Answer).where(Answer.annotator_id == one)).all()
        assert {(r.value is None, r.comment, r.salt, r.seconds) for r in rows} == {(True, "", None, None)}
        assert {s.annotator for q in judged(session, study, everyone=True) for s in q.said} == set(list(people)[1:])
        assert gone not in json.dumps(list(export_rows(session, study)))
        assert broken_links(session, study) == []
    assert states(db) == {DONE: 16, VOID: 16, FREE: 16}
    with pytest.raises(DBAPIError, match="append-only"), db.write() as session:
        session.execute(text("UPDATE answer SET value = NULL, comment = 'x', erased = 1"))


def test_a_participant_sees_their_data_and_withdraws(browser: Callable[..., Any], study: Any, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.api("next").json()["question"]
    body = {"slot": question["slot"], "key": "0123456789abcdef", "fields": {"verdict": "false"}, "comment": "mine"}
    assert who.api("answer", body).status_code == 200
    found = who.get("/my-data").json()
    assert [a["comment"] for a in found["answers"]] == ["mine"]
    assert "note" not in found
    assert browser().get("/my-data", accept="application/json").status_code == 401
    who.get("/work")
    assert "have been erased" in who.post("/withdraw").text
    assert who.api("next").status_code in (401, 403)
    assert browser().get(f"/join/{token}").status_code == 404


def test_personal_data_go_after_the_time_of_retention(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=1, overlap=1)
    (name,) = people
    work(db, people[name])
    change_settings(db, "s", "test", retention_days=10)
    with db.write() as session:
        one = session.scalars(select(Annotator)).one()
        one.note = "Ana from room 7"
        finished = one.finished
    assert finished is not None
    assert retain(db, "s", now=finished + 9 * 86400) == []
    assert retain(db, "s", now=finished + 11 * 86400) == [name]
    data = person_data(db, "s", name)
    assert (data["note"], data["worker_hash"], len(data["answers"])) == ("", None, 16)


# -- crowds ----------------------------------------------------------------------------------------------------------


def test_one_entry_per_worker_a_cap_and_codes(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    plan = StudyPlan("foil-check", practice=0, overlap=3, per_annotator=2)
    store_study(site.db, "s", bench.only(["pair"]), plan)
    url = "https://app.example/done?cc={code}"
    codes = {"completed": "OK1", "screened": "NO1", "timed-out": "LATE1"}
    token = open_link(
        site.db, "s", platform="prolific", cap=2, completion_url=url, codes=codes, pay=2.5, currency="GBP"
    )
    assert browser().get(f"/study/{token}").status_code == 400
    first = _enter(browser(), token, "worker-one")
    for n in range(2):
        question = first.api("next").json()["question"]
        body = {"slot": question["slot"], "key": f"key-{n:08}", "fields": {"verdict": "false"}}
        reply = first.api("answer", body).json()
    assert reply["ending"] == {"outcome": "completed", "code": "OK1", "url": "https://app.example/done?cc=OK1"}
    again = _enter(browser(), token, "worker-one")
    assert again.api("next").json()["ending"]["code"] == "OK1"
    _enter(browser(), token, "worker-two")
    full = browser()
    full.get(f"/study/{token}?PROLIFIC_PID=worker-three")
    assert full.post(f"/study/{token}?PROLIFIC_PID=worker-three").status_code == 403
    with site.db.read() as session:
        assert len(session.scalars(select(Annotator)).all()) == 2
        stored = " ".join(str(vars(a)) for a in session.scalars(select(Annotator)))
        hashed = worker_hash(study_named(session, "s"), "worker-one")
    assert "worker-one" not in stored
    assert hashed in stored
    rows = {r["worker_id"]: r for r in payments(site.db, "s", ["worker-one", "worker-two", "stranger"])}
    assert (rows["worker-one"]["pay"], rows["worker-two"]["pay"]) == (2.5, 0.0)
    assert rows["worker-one"]["code"] == "OK1"


def _enter(who: Any, token: str, worker: str, **form: str) -> Any:
    who.get(f"/study/{token}?PROLIFIC_PID={worker}")
    assert who.post(f"/study/{token}?PROLIFIC_PID={worker}", form).status_code == 303
    who.get("/work")
    return who


def test_mturk_previews_are_turned_away(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check"))
    token = open_link(site.db, "s", platform="mturk")
    preview = browser().get(f"/study/{token}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&workerId=")
    assert "accept the task" in preview.text.lower()
    assert browser().get(f"/study/{token}?assignmentId=A1&workerId=W1").status_code == 200


def test_screening_and_a_practice_that_must_be_passed(
    browser: Callable[..., Any], site: Site, bench: Benchmark
) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check", practice=2, per_annotator=2))
    screening = [{"ask": "Do you read English?", "options": ["yes", "no"], "accept": [0]}]
    settings = {"screening": screening, "pass_practice": 2, "codes": {"screened": "NO1"}}
    token = open_link(site.db, "s", platform="prolific", **settings)
    assert _enter(browser(), token, "w1", screening0="1").api("next").json()["ending"]["code"] == "NO1"
    missing = browser()
    missing.get(f"/study/{token}?PROLIFIC_PID=w2")
    assert missing.post(f"/study/{token}?PROLIFIC_PID=w2").status_code == 400
    fails = _enter(browser(), token, "w3", screening0="0")
    for n in range(2):
        question = fails.api("next").json()["question"]
        body = {"slot": question["slot"], "key": f"key-{n:08}", "fields": {"verdict": "unsure"}}
        reply = fails.api("answer", body).json()
    assert (reply["question"], reply["ending"]["outcome"]) == (None, "screened")


def test_those_who_take_too_long_are_timed_out(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=1)
    change_settings(db, "s", "test", minutes=5, codes={"timed-out": "LATE"})
    (who,) = people.values()
    assert work(db, who, 2) == 2
    import time

    with db.write() as session:
        desk = Desk(db, session, who, time.time() + 301)
        assert desk.take() is None
        ending = desk.ending()
    assert ending is not None
    assert (ending.outcome, ending.code) == ("timed-out", "LATE")


def test_a_worker_who_was_excluded_cannot_come_back(db: Database, bench: Benchmark) -> None:
    begin(db, bench, people=1)
    with db.read() as session:
        study = study_named(session, "s").id
    made = enter(db, study, Entrant("w"))
    exclude(db, "s", made.pseudonym)
    with pytest.raises(EntryError, match="already taken part"):
        enter(db, study, Entrant("w"))


# -- gold, copies, roles ---------------------------------------------------------------------------------------------


def test_gold_questions_come_from_adjudicated_ones(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=2, overlap=2, attention_every=2)
    one, two = people.values()
    work(db, one)
    with pytest.raises(UsageError, match="0 adjudicated"):
        add_gold(db, "s", 1)
    with db.write() as session:
        study = study_named(session, "s")
        for question in session.scalars(select(Question).limit(3)).all():
            adjudicate(session, study, question, {"verdict": "true"}, "", "owner:ana")
    assert add_gold(db, "s", 2) == 2
    work(db, two)
    with db.read() as session:
        study = study_named(session, "s")
        asked = session.scalars(select(Slot.annotator_id).where(Slot.kind == "attention")).all()
        assert broken_links(session, study) == []
    assert set(asked) == {two}  # the first has answered these questions already


def test_copy_archive_and_delete(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench)
    work(db, next(iter(people.values())), 2)
    copy_study(db, "s", "t")
    with db.read() as session:
        s, t = study_named(session, "s"), study_named(session, "t")
        assert s.secret != t.secret
        assert broken_links(session, t) == []
        slots = session.scalars(select(Slot.state).where(Slot.study_id == t.id)).all()
    assert Counter(slots) == {FREE: 32}
    archive(db, "t")
    delete_study(db, "t")
    with pytest.raises(UsageError, match="has answers"):
        delete_study(db, "s")
    delete_study(db, "s", erase_answers=True)
    with db.read() as session:
        assert {r.value for r in session.scalars(select(Answer))} == {None}
    store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check"))


def test_a_lost_link_is_replaced(browser: Callable[..., Any], study: Any, db: Database) -> None:
    old, _ = study()
    with db.read() as session:
        name = session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)).first()
    new = reissue(db, "s", str(name)).token
    assert browser().get(f"/join/{old}").status_code == 404
    assert browser().join(new).api("next").status_code == 200


def test_members_see_only_studies_in_which_they_have_a_role(
    browser: Callable[..., Any], study: Any, site: Site, db: Database
) -> None:
    study("s")
    study("t")
    set_owner(db, "eve", "pancakes for all", "member")
    eve = browser().log_in("eve")
    assert eve.get("/owner/studies/s").status_code == 404
    assert "studies/s" not in eve.get("/owner").text
    for role, codes in (("viewer", (200, 403, 403)), ("reviewer", (200, 303, 403)), ("owner", (200, 303, 303))):
        give_role(db, "s", "eve", role)
        seen = eve.get("/owner/studies/s").status_code
        decided = eve.post("/owner/studies/s/questions/0", {"verdict": "false"}).status_code
        assert (seen, decided, eve.post("/owner/studies/s/state", {"state": "open"}).status_code) == codes
    assert eve.get("/owner/studies/t").status_code == 404
    assert eve.post("/owner/studies/t/state", {"state": "closed"}).status_code == 404


def test_settings_payments_and_preview_pages(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study(attention=2)
    owner = browser().log_in()
    for path in ("settings", "preview"):
        assert owner.get(f"/owner/studies/s/{path}").status_code == 200
    form = {
        "cap": "5",
        "platform": "prolific",
        "code_completed": "C1",
        "screening": "",
        "pay": "1.5",
        "make_link": "yes",
    }
    made = owner.post("/owner/studies/s/settings", form)
    assert "/study/" in made.text
    for wrong in ({"cap": "x"}, {"screening": "{"}, {"completion_url": "javascript:1"}, {"min_agreement": "7"}):
        assert owner.post("/owner/studies/s/settings", wrong).status_code == 400
    rows = list(csv.DictReader(io.StringIO(owner.get("/owner/studies/s/payments.csv").text)))
    assert len(rows) == 2
    with db.read() as session:
        stored = study_named(session, "s").settings
    assert (stored["cap"], stored["codes"], stored["pay"]) == (5, {"completed": "C1"}, 1.5)
