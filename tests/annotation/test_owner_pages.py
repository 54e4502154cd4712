"""The pages of owners and adjudicators, and pages that say that something is over."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select, update
from tests.annotation.acting import change_settings, set_state
from tests.annotation.test_strangers import work

from creperie.annotation import Database, link_for
from creperie.annotation.schema import Answer, Decision, Link, Visit
from creperie.bench import Benchmark


def test_an_adjudicator_decides_in_one_study_and_does_nothing_else(
    browser: Callable[..., Any], study: Any, db: Database
) -> None:
    study("s", people=1, overlap=1)
    study("t", people=1, overlap=1)
    rob = browser().open(link_for(db, "rob", "adjudicator", "s"))
    listed = rob.get("/owner").text
    assert "/owner/studies/s" in listed
    assert "/owner/studies/t" not in listed
    assert rob.get("/owner/studies/s").status_code == 200
    assert rob.post("/owner/studies/s/questions/0", {"verdict": "true", "comment": "seen"}).status_code == 303
    with db.read() as session:
        (decision,) = session.scalars(select(Decision))
    assert (decision.by, decision.value) == ("adjudicator:rob", {"verdict": "true"})
    assert rob.post("/owner/studies/s/questions/0", {"verdict": "perhaps"}).status_code == 400
    for path in ("export.json", "export.csv", "settings"):
        assert rob.get(f"/owner/studies/s/{path}").status_code == 403
    for path, form in (("state", {"state": "closed"}), ("rules", {}), ("invitations", {"once": "0" * 32})):
        assert rob.post(f"/owner/studies/s/{path}", form).status_code == 403
    for path in ("", "/questions/0", "/adjudicate"):
        assert rob.get(f"/owner/studies/t{path}").status_code == 404


def test_a_study_names_the_folder_of_its_benchmark(
    browser: Callable[..., Any], study: Any, db: Database, bench: Benchmark
) -> None:
    """Several folders may hold benchmarks that call themselves the same."""
    study("s")
    folder = Path(bench.images.location).parent
    assert folder.name != bench.name
    ana = browser().log_in()
    for page in ("/owner", "/owner/studies/s"):
        told = ana.get(page).text
        assert f"{folder.name} ({bench.name})" in told
        assert str(folder) not in told


def test_an_owner_is_told_who_has_begun_and_whether_the_people_are_enough(
    browser: Callable[..., Any], study: Any, db: Database
) -> None:
    """Somebody who only opened the page had begun, and nothing said that three people can never give all answers."""
    first, _ = study("s", people=2, overlap=2, per_annotator=1)
    ana = browser().log_in()
    change_settings(db, "s", pay=4.5, currency="EUR", contact="zoe@example.org")
    who = browser().join(first)
    who.api("/api/next", {})
    page = ana.get("/owner/studies/s").text
    assert "0 of 2 expected people have answered something" in page
    told = re.search(r"give at most 2 of the (\d+) answers that are needed: invite about (\d+) people in total", page)
    assert told, page[page.index("Annotators") :][:600]
    assert int(told[1]) == int(told[2]) > 2
    assert "no answer yet" in page
    end = who.get("/work").text
    assert (
        "Promised for taking part: <b>4.50 EUR</b>. It is paid by the people who invited you: zoe@example.org." in end
    )
    assert end.index('<section id="done"') < end.index('href="/my-data"') < end.index('<section id="trouble"')


def test_refused_settings_keep_what_was_typed_and_mark_what_is_wrong(
    browser: Callable[..., Any], study: Any, db: Database
) -> None:
    """One bad completion URL emptied a long consent text and all other fields; a successful Save said nothing."""
    study("s")
    change_settings(db, "s", contact="old@example.org")
    ana = browser().log_in()
    page = ana.get("/owner/studies/s/settings").text
    assert "Saved." not in page
    revision = re.search(r'name="revision" value="(\d+)"', page)
    assert revision
    typed = {
        "revision": revision[1],
        "instructions": "Look twice.",
        "consent": "A long text\nof consent.",
        "expected": "2",
        "pay": "4.5",
        "cap": "many",
        "contact": "new@example.org",
        "completion_url": "http://example.org/?cc=1",
    }
    change_settings(db, "s", currency="EUR")  # by somebody else: the form refused is still based on what it showed
    refused = ana.post("/owner/studies/s/settings", typed)
    assert refused.status_code == 400
    for text in typed.values():
        assert f'value="{text}"' in refused.text or f">{text}</textarea>" in refused.text, text
    assert re.findall(r'name="(\w+)"[^>]*aria-invalid', refused.text) == ["cap", "completion_url"]
    assert "cap must be a number, not" in refused.text
    assert "the completion URL does not start with https://" in refused.text
    good = typed | {"cap": "", "completion_url": "https://example.org/?cc=1", "revision": "3"}
    saved = ana.post("/owner/studies/s/settings", good)
    assert (saved.status_code, saved.headers["location"]) == (303, "/owner/studies/s/settings?saved=true")
    page = ana.get(saved.headers["location"]).text
    assert '<p class="ribbon" role="status">Saved.</p>' in page
    changes = "names: completion_url, consent, contact, expected, instructions, pay; revision: 4"
    assert changes in ana.get("/owner/studies/s").text
    assert 'value="new@example.org"' in page


def test_an_owner_takes_a_study_from_invitation_to_export(
    browser: Callable[..., Any], study: Any, db: Database
) -> None:
    study("s", people=1, overlap=1)
    ana = browser().log_in()
    once = {"once": "a" * 32, "count": "2", "note": "room 7"}
    shown = ana.post("/owner/studies/s/invitations", once).text
    assert (shown.count("/join/"), ana.post("/owner/studies/s/invitations", once).text.count("/join/")) == (4, 4)
    work(db, 1, 3)
    name = ana.get("/owner/studies/s/export.json", "application/json").json()["people"][0]["annotator"]
    for action, state in (("exclude", "excluded"), ("include", "Exclude"), ("revoke", "ended")):
        sent = ana.post("/owner/studies/s/annotator", {"annotator": name, "action": action})
        assert sent.headers["location"] == "/owner/studies/s#annotators"
        shown = ana.get("/owner/studies/s").text
        assert (state in shown, "excluded: by hand" in shown) == (True, action == "exclude")
    assert "/join/" in ana.post("/owner/studies/s/annotator", {"annotator": name, "action": "reissue"}).text
    assert ana.post("/owner/studies/s/rules").status_code == 303
    assert ana.get("/owner/studies/s/export.csv").text.count("\n") == 4
    assert "nothing left to decide" in ana.get("/owner/studies/s/adjudicate").text
    for state in ("paused", "closed"):
        assert ana.post("/owner/studies/s/state", {"state": state}).status_code == 303
        assert f'<span class="state {state}">' in ana.get("/owner").text
    assert ana.post("/owner/studies/s/state", {"state": "open"}).status_code == 409
    assert ana.post("/owner/studies/s/state", {"state": "gone"}).status_code == 400


def test_an_owner_erases_the_answers_of_somebody_who_asks_for_it(
    browser: Callable[..., Any], study: Any, db: Database
) -> None:
    """No page let an owner withdraw a person or named the command, and the log did not say whom an event was about."""
    study("s", people=2, overlap=2)
    work(db, 1, 3)
    ana = browser().log_in()
    before = ana.get("/owner/studies/s").text
    name = ana.get("/owner/studies/s/export.json", "application/json").json()["people"][0]["annotator"]
    assert f"Withdraw {name} for good?" in before
    assert "creperie annotate withdraw s NAME --yes" in before
    sent = ana.post("/owner/studies/s/annotator", {"annotator": name, "action": "withdraw"})
    assert sent.headers["location"] == "/owner/studies/s#annotators"
    with db.read() as session:
        assert all(one.value is None and one.erased for one in session.scalars(select(Answer)))
    after = ana.get("/owner/studies/s").text
    assert f"Withdraw {name} for good?" not in after
    assert f'withdraw <span class="soft"><bdi>annotator: {name}; answers: 3</bdi></span>' in after


def test_what_people_write_is_text_on_every_page(browser: Callable[..., Any], study: Any, db: Database) -> None:
    token, _ = study("s")
    evil = '<img src=x onerror="alert(1)">{{ 7 * 7 }}'
    change_settings(db, "s", consent=f"{evil} [x](javascript:alert(1))", contact=evil, information=evil)
    who, ana = browser(), browser().log_in()
    pages = [who.get(f"/join/{token}").text]
    consent = pages[0].partition('name="consent" value="')[2].partition('"')[0]
    assert who.post(f"/join/{token}", {"consent": consent}).status_code == 303
    pages.append(who.get("/work").text)
    question = who.question()
    sent = {"slot": question["slot"], "key": "key-00000001", "fields": {"verdict": "true"}, "comment": evil}
    assert who.api("answer", sent).status_code == 200
    ana.post("/owner/studies/s/invitations", {"once": "b" * 32, "note": evil})
    with db.read() as session:
        ordinal = next(q for q in range(16) if session.scalar(select(Answer.id)) is not None)
    pages += [ana.get(f"/owner/studies/s{path}").text for path in ("", "/settings", f"/questions/{ordinal}")]
    for page in pages:
        assert "<img src=x" not in page
        assert 'href="javascript' not in page
        assert "49" not in page.partition("&lt;img")[2][:80]


def test_a_study_that_is_over_says_so(browser: Callable[..., Any], study: Any, db: Database) -> None:
    token, other = study("s")
    who = browser().join(token)
    question = who.question()
    set_state(db, "s", "closed")
    assert "has been stopped" in who.get("/work").text
    late = {"slot": question["slot"], "key": "key-00000001", "fields": {"verdict": "true"}}
    refused = who.api("answer", late)
    assert (refused.status_code, refused.json()["code"]) == (409, "stopped")
    after = browser().join(other).api("next").json()
    assert (after["question"], after["progress"]["stopped"]) == (None, True)


def test_links_and_visits_end_at_their_hour(browser: Callable[..., Any], study: Any, db: Database) -> None:
    token, other = study("s")
    who = browser().join(token)
    with db.write() as session:
        session.execute(update(Visit).values(expires=time.time() - 1))
    assert who.api("next").status_code == 401
    assert browser().join(token).api("next").status_code == 200  # the link opens it again
    with db.write() as session:
        session.execute(update(Link).values(expires=time.time() - 1))
    for ended in (token, other):
        page = browser().get(f"/join/{ended}")
        assert (page.status_code, "This link has ended" in page.text) == (404, True)


def test_a_full_disk_loses_nothing_that_was_acknowledged(browser: Callable[..., Any], study: Any, db: Database) -> None:
    (token,) = study("s", people=1, overlap=1)
    who, full = browser().join(token), [False]

    @event.listens_for(db.engine, "begin")
    def fill(connection: Any) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages if full[0] else 2**30}")

    state, acknowledged, refused = who.api("next").json(), [], 0
    for n in range(16):
        key = f"key-{n:08}"
        body = {"slot": state["question"]["slot"], "key": key, "fields": {"verdict": "true"}, "comment": "x" * 2000}
        full[0] = 4 <= n < 12
        reply = who.api("answer", body)
        if reply.status_code == 503:
            refused, full[0] = refused + 1, False
            reply = who.api("answer", body)  # the page sends it again
        assert reply.status_code == 200
        acknowledged.append(key)
        state = reply.json()
    assert refused >= 2
    with db.read() as session:
        assert list(session.scalars(select(Answer.key).order_by(Answer.turn))) == acknowledged


def test_undo_after_a_skip_brings_the_question_back_unless_somebody_has_it(
    browser: Callable[..., Any], study: Any
) -> None:
    tokens = study("s", people=2, overlap=1, subsets=("pair",))
    one, two = browser().join(tokens[0]), browser().join(tokens[1])
    question = one.question()
    one.api("skip", {"slot": question["slot"], "key": "skip-000001"})
    back = one.api("undo", {"key": "undo-000001"}).json()["question"]
    assert back["texts"] == question["texts"]
    one.api("skip", {"slot": back["slot"], "key": "skip-000002"})
    state = two.api("next").json()
    for n in range(16):
        if state["question"]["texts"] == question["texts"]:
            break
        body = {"slot": state["question"]["slot"], "key": f"key-{n:08}", "fields": {"verdict": "true"}}
        state = two.api("answer", body).json()
    refused = one.api("undo", {"key": "undo-000002"})
    assert (refused.status_code, refused.json()["code"]) == (409, "gone")


@pytest.mark.parametrize("path", ["/work", "/owner", "/owner/studies/s", "/no/such/page"])
def test_strangers_get_a_page_and_not_a_document(browser: Callable[..., Any], study: Any, path: str) -> None:
    study("s")
    page = browser().get(path)
    assert page.status_code in (401, 404)
    assert "<h1>" in page.text
