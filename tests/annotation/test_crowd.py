"""Exclusion, crowds, consent, withdrawal, qualification: who takes part, whose answers count, who is paid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from tests.annotation.acting import begin, change_settings, judged_in, record_of, work

from creperie.annotation import (
    ApplyPlan,
    Database,
    Site,
    StudyPlan,
    StudySettings,
    apply_study,
    crowd_address,
    exclude,
    exclude_by_rules,
    exported,
    include,
    list_workers,
    overview,
    payments,
    signature,
    store_study,
    study_named,
    withdraw,
)
from creperie.annotation.crowd import EntryError, enter, is_worker, worker_hash
from creperie.annotation.links import reissue
from creperie.annotation.schema import DONE, FREE, MAIN, VOID, Annotator, Answer, Event, Slot
from creperie.bench import Benchmark
from creperie.core import UsageError

both_databases = pytest.mark.parametrize(
    "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
CONSENT = "We store your answers."


def start(db: Database, bench: Benchmark, people: int = 3, **plan: Any) -> dict[str, int]:
    """A foil check with annotators: their pseudonyms and ids."""
    begin(db, bench, people, **plan)
    with db.read() as session:
        return {a.pseudonym: a.id for a in session.scalars(select(Annotator).order_by(Annotator.id))}


def careful(desk: Any, ticket: Any) -> Any:
    """Passes every check."""
    return ticket.question.expected if ticket.kind == "attention" else {"verdict": "false"}


def states(db: Database) -> Counter[str]:
    with db.read() as session:
        return Counter(session.scalars(select(Slot.state).where(Slot.kind == MAIN)))


# -- exclusion -------------------------------------------------------------------------------------------------------


@both_databases
def test_an_excluded_annotator_counts_nowhere_and_others_get_the_questions(db: Database, bench: Benchmark) -> None:
    people = start(db, bench, overlap=2)
    (bad, one), (_, two), (_, three) = people.items()
    assert work(db, one, fields=lambda desk, ticket: {"verdict": "true"}) == 16
    assert [work(db, two), work(db, three)] == [14, 2]
    as_is = apply_study(db, "s", bench.only(["pair"]), ApplyPlan(as_is=True))
    assert as_is.document["fates"] == {"undecided": 16}
    assert exclude(db, "s", bad, "noise") == 16
    assert states(db) == {DONE: 16, VOID: 16, FREE: 16}
    with pytest.raises(UsageError, match="already excluded"):
        exclude(db, "s", bad)
    assert apply_study(db, "s", bench.only(["pair"])).document["too_few_answers"] == 16
    assert work(db, three) + work(db, two) == 16
    assert apply_study(db, "s", bench.only(["pair"])).document["fates"] == {"confirmed": 16}
    include(db, "s", bad)
    assert states(db) == {DONE: 48}


def test_taking_an_exclusion_back_removes_the_replacements_that_nobody_began(db: Database, bench: Benchmark) -> None:
    people = start(db, bench, overlap=1, people=2)
    (bad, one), (_, two) = people.items()
    work(db, one)
    exclude(db, "s", bad)
    assert work(db, two, 3) == 3
    include(db, "s", bad)
    assert states(db) == {DONE: 19}


def test_rules_exclude_by_checks_time_and_agreement(db: Database, bench: Benchmark) -> None:
    people = start(db, bench, people=4, overlap=4, attention=3, attention_every=4)
    names = list(people)
    for n, who in enumerate(people.values()):
        work(db, who, fields=careful if n else lambda desk, ticket: {"verdict": "unsure"})
    change_settings(db, "s", "test", max_attention_failures=0.3)
    assert [r["annotator"] for r in exclude_by_rules(db, "s", dry_run=True)] == names[:1]
    change_settings(db, "s", "test", max_attention_failures=1)  # the largest share
    change_settings(db, "s", "test", max_attention_failures=None, min_median_seconds=60)
    assert len(exclude_by_rules(db, "s", dry_run=True)) == 4
    change_settings(db, "s", "test", min_median_seconds=None, max_attention_failures=0.3)
    (gone,) = exclude_by_rules(db, "s")
    assert (gone["annotator"], "failed 3 of 3 checks" in gone["why"]) == (names[0], True)
    assert exclude_by_rules(db, "s") == []


# -- consent and withdrawal ------------------------------------------------------------------------------------------


def shared_address(db: Database, bench: Benchmark, ids: tuple[str, ...] = ("w1",), **settings: Any) -> str:
    """The shared address of a study with a list of ids."""
    change_settings(db, "s", **({"platform": "prolific"} | settings))
    list_workers(db, "s", ids)
    return f"/crowd/{crowd_address(db, 's')}"


def test_nothing_is_stored_before_consent(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check"))
    path = shared_address(site.db, bench, consent=CONSENT, contact="ana@example.org") + "?PROLIFIC_PID=w1"
    who = browser()
    page = who.get(path)
    assert CONSENT in page.text
    assert "ana@example.org" in page.text
    assert who.post(path).status_code == 400
    with site.db.read() as session:
        assert session.scalars(select(Annotator)).all() == []
    consent = StudySettings(consent=CONSENT).consent_version
    assert who.post(path, {"consent": consent}).status_code == 200
    with site.db.read() as session:
        (made,) = session.scalars(select(Annotator)).all()
    assert (made.consent_version, made.consented is not None) == (consent, True)
    who.get("/work")
    assert who.api("next").status_code == 200
    change_settings(site.db, "s", consent="Another text.")
    assert who.api("next").json()["code"] == "consent"
    assert "Another text." in who.get("/work").text
    assert who.post("/consent", {"consent": "x"}).status_code == 400
    assert who.post("/consent", {"consent": StudySettings(consent="Another text.").consent_version}).status_code == 303
    assert who.api("next").status_code == 200


@both_databases
def test_withdrawal_erases_what_was_said_and_exports_count_it(db: Database, bench: Benchmark) -> None:
    people = start(db, bench, people=2, overlap=2)
    (gone, one), (_, two) = people.items()
    work(db, one)
    work(db, two)
    assert withdraw(db, "s", gone) == 16
    with db.read() as session:
        rows = session.scalars(select(Answer).where(Answer.annotator_id == one)).all()
        (told,) = session.scalars(select(Event).where(Event.what == "withdraw"))
    assert (told.study_id, told.detail) == (rows[0].study_id, {"annotator": gone, "answers": 16})
    assert {(r.value, r.given, r.comment, r.seconds, r.shown_order) for r in rows} == {(None, None, "", None, None)}
    assert {s.annotator for q in judged_in(db, "s", everyone=True) for s in q.answers} == set(list(people)[1:])
    assert exported(record_of(db, "s"))["erased"] == 16
    assert states(db) == {DONE: 16, VOID: 16, FREE: 16}


def test_a_participant_sees_their_data_and_withdraws(browser: Callable[..., Any], study: Any, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.question()
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


# -- crowds ----------------------------------------------------------------------------------------------------------


def test_one_entry_per_worker_a_cap_and_codes(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    plan = StudyPlan("foil-check", practice=0, overlap=3, per_annotator=2)
    store_study(site.db, "s", bench.only(["pair"]), plan)
    url = "https://app.example/done?cc=OK1"
    ids = ("worker-one", "worker-two", "worker-three")
    assert [is_worker(w) for w in (*ids, "", "w" * 129, "w\u00e9", "a\tb")] == [True] * 3 + [False] * 4
    more = {"cap": 2, "completion_url": url, "pay": 2.5, "currency": "GBP"}
    path = shared_address(site.db, bench, ids, **more)
    assert browser().get(path).status_code == 403
    first = _enter(browser(), path, "worker-one")
    for n in range(2):
        question = first.question()
        body = {"slot": question["slot"], "key": f"key-{n:08}", "fields": {"verdict": "false"}}
        reply = first.api("answer", body).json()
    assert reply["ending"] == url
    assert first.get(f"{path}?PROLIFIC_PID=worker-one").headers["location"] == "/work"  # the browser that is in
    _enter(browser(), path, "worker-two")
    full = browser()
    assert full.get(f"{path}?PROLIFIC_PID=worker-three").status_code == 403  # before anybody reads and consents
    assert full.post(f"{path}?PROLIFIC_PID=worker-three").status_code == 403
    first.post("/withdraw")
    gone = first.get(f"{path}?PROLIFIC_PID=worker-one")
    assert (gone.status_code, "already taken part in this study." in gone.text) == (403, True)
    with site.db.read() as session:
        assert len(session.scalars(select(Annotator)).all()) == 2
        stored = " ".join(str(vars(a)) for a in session.scalars(select(Annotator)))
        study = study_named(session, "s")
        rows = [{**row, "active_seconds": 420} for row in overview(session, study)["annotators"]]
    assert "worker-one" not in stored
    assert worker_hash(study, "worker-one") in stored
    owed = {r["worker_id"]: r for r in payments(study, rows, ["worker-one", "worker-two", "stranger"])}
    assert [(r["pay"], r["per_hour"]) for r in owed.values()] == [(2.5, 21.43), (0.0, 0.0)]  # for 7 minutes


def _enter(who: Any, path: str, worker: str, more: str = "", **form: str) -> Any:
    address = f"{path}?PROLIFIC_PID={worker}{more}"
    who.get(address)
    entered = who.post(address, form)
    assert entered.status_code == 200
    assert "/join/" in entered.text  # the personal link
    who.get("/work")
    return who


def test_a_signed_id_comes_back_and_a_forged_one_does_not_enter(
    browser: Callable[..., Any], site: Site, bench: Benchmark
) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check", practice=0))
    path = shared_address(site.db, bench)
    with site.db.read() as session:
        good = f"&sig={signature(study_named(session, 's'), 'signed')}"
    first = _enter(browser(), path, "signed", good).question()
    again = _enter(browser(), path, "signed", good).question()
    assert first["slot"] == again["slot"]
    for more in ("", "&sig=", "&sig=abc", good):
        stranger, address = browser(), f"{path}?PROLIFIC_PID=forged{more}"
        assert (stranger.get(address).status_code, stranger.post(address).status_code) == (403, 403)
    with site.db.read() as session:
        assert len(session.scalars(select(Annotator)).all()) == 1


def test_mturk_previews_are_turned_away(browser: Callable[..., Any], site: Site, bench: Benchmark) -> None:
    store_study(site.db, "s", bench.only(["pair"]), StudyPlan("foil-check"))
    path = shared_address(site.db, bench, ("W1",), platform="mturk")
    preview = browser().get(f"{path}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&workerId=")
    assert "accept the task" in preview.text.lower()
    assert browser().get(f"{path}?assignmentId=A1&workerId=W1").status_code == 200


def test_a_worker_who_was_excluded_cannot_come_back(db: Database, bench: Benchmark) -> None:
    start(db, bench, people=1)
    with db.read() as session:
        study = study_named(session, "s")
    query = {"id": "w", "sig": signature(study, "w")}
    made, _ = enter(db, "s", query)
    exclude(db, "s", made.pseudonym)
    with pytest.raises(EntryError, match="already taken part"):
        enter(db, "s", query)


# -- the owner -----------------------------------------------------------------------------------------------------


def test_a_lost_link_is_replaced(browser: Callable[..., Any], study: Any, db: Database) -> None:
    old, _ = study()
    with db.read() as session:
        name = session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)).first()
    new = reissue(db, "s", str(name)).token
    assert browser().get(f"/join/{old}").status_code == 404
    assert browser().join(new).api("next").status_code == 200


def test_settings_are_saved_and_wrong_ones_are_refused(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study(attention=2)
    owner = browser().log_in()
    assert owner.get("/owner/studies/s/settings").status_code == 200
    form = {"cap": "5", "platform": "prolific", "pay": "1.5", "instructions": "Look well.", "revision": "1"}
    assert owner.post("/owner/studies/s/settings", form).status_code == 303
    assert "Added: 2 new ids." in owner.post("/owner/studies/s/crowd", {"ids": "w1\nw2"}).text
    assert "Added: 1 new id." in owner.post("/owner/studies/s/crowd", {"ids": "w1\nw3"}).text
    shared = owner.post("/owner/studies/s/crowd").text
    assert "?PROLIFIC_PID={{%PROLIFIC_PID%}}</code>" in shared  # as the platform wants it
    for wrong in ({"cap": "x"}, {"completion_url": "javascript:1"}, {"max_attention_failures": "7"}):
        assert owner.post("/owner/studies/s/settings", {**wrong, "revision": "3"}).status_code == 400
    with db.read() as session:
        stored = study_named(session, "s")
    assert (stored.settings["cap"], stored.settings["pay"], stored.instructions) == (5, 1.5, "Look well.")
