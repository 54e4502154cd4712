"""Who may enter, and what a hostile visitor can do: each test tries to break one rule."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select, text

from creperie.annotation.access import TRIES_PER_NAME
from creperie.annotation.database import Database
from creperie.annotation.exchange import as_csv, export_rows
from creperie.annotation.invitations import revoke
from creperie.annotation.schema import Annotator, Answer, Login, Owner, Slot
from creperie.annotation.server import Address
from creperie.annotation.study import study_named
from creperie.annotation.web.guard import MAX_BODY
from creperie.annotation.web.pictures import encode
from creperie.annotation.web.site import Site

Browsers = Callable[..., Any]
Studies = Callable[..., list[str]]
KEY = "0123456789abcdef"
NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def send(who: Any, question: dict[str, Any], key: str = KEY, **fields: Any) -> Any:
    return who.api("answer", {"slot": question["slot"], "key": key, "fields": fields or {"verdict": "false"}})


# -- invitations -----------------------------------------------------------------------------------------------------


def test_a_link_lets_in_and_a_wrong_one_does_not(browser: Browsers, study: Studies) -> None:
    token, _ = study()
    assert browser().join(token).api("next").status_code == 200
    stranger = browser()
    assert stranger.get("/join/" + "x" * 32).status_code == 404
    assert stranger.post("/join/" + "x" * 32).status_code == 403
    assert stranger.api("next").status_code in (401, 403)


def test_looking_at_a_link_changes_nothing(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    browser().get(f"/join/{token}")
    with db.read() as session:
        assert session.scalars(select(Login)).all() == []


def test_tokens_and_passwords_are_not_in_the_database(
    browser: Browsers, study: Studies, db: Database, tmp_path: Path
) -> None:
    token, _ = study()
    who = browser().join(token)
    owner = browser().log_in()
    cookies = [who.client.cookies["creperie_session"], owner.client.cookies["creperie_owner"]]
    with db.write() as session:
        session.execute(text("SELECT 1"))
    db.close()
    raw = b"".join(p.read_bytes() for p in tmp_path.glob("people.db*"))
    for secret in [token, *cookies, "pancakes for all"]:
        assert secret.encode() not in raw


def test_a_revoked_invitation_ends_at_once(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.api("next").json()["question"]
    with db.read() as session:
        pseudonym = session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)).first()
    revoke(db, "s", str(pseudonym))
    assert send(who, question).status_code == 401
    assert who.get("/work").status_code == 401
    assert who.get(f"/picture/{question['slot']}/0").status_code == 401
    assert browser().get(f"/join/{token}").status_code == 404
    with db.read() as session:
        assert session.scalars(select(Answer)).all() == []


def test_an_expired_invitation_ends(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    with db.write() as session:
        for annotator in session.scalars(select(Annotator)):
            annotator.expires = time.time() - 1
    assert who.api("next").status_code == 401
    assert browser().post(f"/join/{token}").status_code == 403


# -- owners and roles ------------------------------------------------------------------------------------------------


def test_wrong_passwords_do_not_let_in_and_are_limited(browser: Browsers, site: Site) -> None:
    guess = browser("10.0.0.9")
    guess.get("/owner/login")
    codes = [
        guess.post("/owner/login", {"name": "ana", "password": f"guess {n}"}).status_code
        for n in range(TRIES_PER_NAME + 2)
    ]
    assert codes == [403] * TRIES_PER_NAME + [429] * 2
    assert guess.post("/owner/login", {"name": "ana", "password": "pancakes for all"}).status_code == 429
    assert browser("10.0.0.10").log_in().get("/owner").status_code == 200


def test_a_good_password_resets_the_count(browser: Browsers, site: Site) -> None:
    who = browser("10.0.0.11")
    who.get("/owner/login")
    for _ in range(3):
        for n in range(TRIES_PER_NAME - 2):
            who.post("/owner/login", {"name": "ana", "password": f"guess {n}"})
        done = who.post("/owner/login", {"name": "ana", "password": "pancakes for all"})
        assert done.status_code == 303
        who.client.cookies.delete("creperie_owner")


def test_the_owners_pages_are_closed_to_strangers_and_annotators(browser: Browsers, study: Studies) -> None:
    token, _ = study()
    annotator = browser().join(token)
    pages = ("", "/studies/s", "/studies/s/questions/0", "/studies/s/answers.jsonl", "/studies/s/pictures/0/0")
    for path in (*pages, "/api/studies/s", "/studies/s/adjudicate", "/studies/s/answers.csv"):
        for who in (browser(), annotator):
            assert who.get(f"/owner{path}", accept="application/json").status_code == 401, path
    for path in ("/studies", "/studies/s/state", "/studies/s/invitations", "/studies/s/rules", "/studies/s/apply"):
        form = {"name": "x", "bench": "x", "task": "x", "state": "closed", "annotator": "x"}
        assert annotator.post(f"/owner{path}", form).status_code in (303, 401), path
        assert "login" in annotator.post(f"/owner{path}", form).headers.get("location", "login")


def test_a_reviewer_looks_and_adjudicates_but_changes_nothing_else(
    browser: Browsers, study: Studies, db: Database
) -> None:
    study()
    reviewer = browser().log_in("rob")
    assert reviewer.get("/owner/studies/s").status_code == 200
    for path, form in (
        ("studies", {"name": "t", "bench": "bench", "task": "foil-check"}),
        ("studies/s/state", {"state": "closed"}),
        ("studies/s/invitations", {"count": "1"}),
        ("studies/s/instructions", {"text": "x"}),
        ("studies/s/apply", {}),
        ("studies/s/annotator", {"annotator": "x", "action": "revoke"}),
        ("studies/s/rules", {}),
        ("studies/s/settings", {"pay": "1"}),
        ("studies/s/manage", {"action": "archive"}),
    ):
        assert reviewer.post(f"/owner/{path}", form).status_code == 403, path
    assert reviewer.post("/owner/studies/s/questions/0", {"verdict": "false"}).status_code == 303


def test_a_new_password_ends_open_sessions(browser: Browsers, site: Site) -> None:
    from creperie.annotation.access import set_owner

    who = browser().log_in()
    set_owner(site.db, "ana", "quite another one")
    assert who.get("/owner", accept="application/json").status_code == 401
    with site.db.read() as session:
        assert len(session.scalars(select(Owner).where(Owner.name == "ana")).all()) == 1


# -- cookies, CSRF, origins ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "secure"), [("http://127.0.0.1", False), ("https://127.0.0.1", True)])
def test_cookies_are_closed_to_scripts_and_other_sites(
    browser: Browsers, study: Studies, base: str, secure: bool
) -> None:
    token, _ = study()
    who = browser(base=base)
    set_by = [who.get(f"/join/{token}"), who.post(f"/join/{token}")]
    for reply in set_by:
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=" in cookie
        assert "samesite=none" not in cookie
        assert ("secure" in cookie) == secure
    assert ("strict-transport-security" in set_by[0].headers) == secure


def test_nothing_happens_without_the_csrf_token(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who, owner = browser().join(token), browser().log_in()
    question = who.api("next").json()["question"]
    who.csrf = owner.csrf  # a token, but of another session
    for path, body in (
        ("answer", {"slot": question["slot"], "key": KEY, "fields": {"verdict": "false"}}),
        ("skip", {"slot": question["slot"], "key": KEY}),
        ("undo", {"key": KEY}),
        ("next", {}),
    ):
        assert who.api(path, body).status_code == 403
    for path in ("state", "invitations", "apply", "instructions"):
        form = {"csrf": "0" * 64, "state": "closed", "text": "x"}
        assert owner.post(f"/owner/studies/s/{path}", form).status_code == 403
    with db.read() as session:
        assert session.scalars(select(Answer)).all() == []
        assert study_named(session, "s").state == "open"


def test_requests_of_other_origins_and_hosts_are_refused(browser: Browsers, study: Studies) -> None:
    token, _ = study()
    who = browser().join(token)
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example"):
        assert who.api("next", origin=origin).status_code == 403
    assert who.api("next", origin="http://127.0.0.1").status_code == 200
    assert who.api("next", host="evil.example").status_code == 400


def test_every_answer_carries_a_strict_policy(browser: Browsers, study: Studies) -> None:
    token, _ = study()
    who = browser().join(token)
    for reply in (
        who.get("/work"),
        who.api("next"),
        who.get("/static/work.js"),
        who.get("/nowhere"),
        browser().get("/"),
    ):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert who.api("next").headers["content-disposition"].startswith("attachment")
    assert who.api("skip", None, **{"content-type": "text/plain"}).status_code == 415


def test_pages_hold_no_inline_scripts_styles_or_foreign_addresses(browser: Browsers, study: Studies) -> None:
    token, _ = study()
    owner = browser().log_in()
    pages = [browser().get(f"/join/{token}"), browser().join(token).get("/work"), browser().get("/owner/login")]
    pages += [owner.get(p) for p in ("/owner", "/owner/studies/s", "/owner/studies/s/questions/0")]
    for reply in pages:
        assert reply.status_code == 200
        html = reply.text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        for word in ("http://", "https://", " style=", " onclick=", "<style", "javascript:"):
            assert word not in html
        assert html.count("<script") == html.count("<script src=")


def test_the_server_listens_to_this_machine_only_unless_told() -> None:
    assert Address().host == "127.0.0.1"
    assert Address().names == ("127.0.0.1", "127.0.0.1", "localhost", "::1")
    assert Address(url="https://people.example/x").names[0] == "people.example"
    assert Address(url="https://people.example").base.startswith("https://")


# -- the truth, and what others said ---------------------------------------------------------------------------------


def test_neither_pages_nor_api_tell_the_truth(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study(
        task="find-negative", subsets=("triplet",), attention=2, attention_every=2, per_annotator=6, overlap=1
    )
    who = browser().join(token)
    orders, allowed = set(), {"slot", "practice", "ask", "texts", "pictures", "fields"}
    for n in range(8):
        reply = who.api("next")
        state = reply.json()
        question = state["question"]
        assert set(question) == allowed
        for word in ("truth", "match", "odd", "expected", "attention", ".png", "subset", "triplet", "order"):
            assert word not in reply.text.replace("The odd caption", "")
        options = question["fields"][0]["options"]
        assert [o["value"] for o in options] == ["0", "1", "2"]
        with db.read() as session:
            orders.add(tuple(session.scalars(select(Slot.order).where(Slot.token == question["slot"])).one()))
        page = who.get("/work").text
        assert "truth" not in page.replace('id="truth"', "")
        reply = send(who, question, f"key-{n:08}", caption="0")
        assert reply.status_code == 200
        assert reply.json()["receipt"]["right"] is None
    assert len(orders) >= 3  # the false caption is not always at the same place


def test_tokens_change_hands_with_the_slot(browser: Browsers, study: Studies) -> None:
    first, second = study(overlap=1)
    a, b = browser().join(first), browser().join(second)
    slot = a.api("next").json()["question"]["slot"]
    assert a.get(f"/picture/{slot}/0").status_code == 200
    assert b.get(f"/picture/{slot}/0").status_code == 404
    assert browser().get(f"/picture/{slot}/0", accept="image/png").status_code == 401
    assert a.get(f"/picture/{slot}/1").status_code == 404
    assert a.get(f"/picture/{slot}/99").status_code == 422


def test_an_annotator_cannot_write_into_anothers_slot_or_a_done_one(
    browser: Browsers, study: Studies, db: Database
) -> None:
    first, second = study(overlap=1)
    a, b = browser().join(first), browser().join(second)
    mine = a.api("next").json()["question"]
    for path in ("answer", "skip"):
        body = {"slot": mine["slot"], "key": KEY} | ({"fields": {"verdict": "true"}} if path == "answer" else {})
        assert b.api(path, body).json()["code"] == "slot"
    assert send(a, mine).status_code == 200
    assert send(a, mine, "another-key-1", verdict="true").json()["code"] == "slot"
    assert send(a, {"slot": "A" * 22}, "another-key-2").json()["code"] == "slot"
    with db.read() as session:
        assert [r.value for r in session.scalars(select(Answer))] == [{"verdict": "false"}]


def test_an_annotator_sees_nothing_of_others(browser: Browsers, study: Studies) -> None:
    first, second = study(overlap=2)
    a, b = browser().join(first), browser().join(second)
    question = a.api("next").json()["question"]
    body = {"slot": question["slot"], "key": KEY, "fields": {"verdict": "unsure"}, "comment": "MY SECRET REMARK"}
    assert a.api("answer", body).status_code == 200
    for reply in (b.get("/work"), b.api("next"), b.api("undo", {"key": "b-key-0001"})):
        assert "SECRET" not in reply.text
    assert b.api("undo", {"key": "b-key-0002"}).json()["code"] == "nothing"


def test_pictures_lose_names_and_metadata(browser: Browsers, study: Studies, bench: Any) -> None:
    token, _ = study()
    who = browser().join(token)
    slot = who.api("next").json()["question"]["slot"]
    reply = who.get(f"/picture/{slot}/0")
    assert reply.headers["content-type"] == "image/png"
    assert "filename" not in str(reply.headers)
    assert b"truth" not in reply.content
    big = Image.new("RGB", (900, 900), "red")
    buffer = io.BytesIO()
    big.save(buffer, "JPEG", comment=b"the foil is false", exif=big.getexif())
    with Image.open(buffer) as loaded:
        loaded.load()
        assert b"foil" not in encode(loaded).data


@pytest.mark.parametrize(
    "path",
    [
        "/picture/../../etc/passwd/0",
        "/picture/..%2f..%2fetc%2fpasswd/0",
        "/static/../schema.py",
        "/static/..%2fschema.py",
        "/static/%2e%2e/templates/base.html",
        "/static//etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_static_files(browser: Browsers, study: Studies, path: str) -> None:
    token, _ = study()
    reply = browser().join(token).get(path)
    assert reply.status_code in (404, 405, 422)
    assert "root:" not in reply.text


def test_an_item_cannot_point_at_files_outside_the_images(site: Site, bench: Any, browser: Browsers) -> None:
    from creperie.annotation.invitations import invite
    from creperie.annotation.study import StudyPlan, store_study
    from creperie.bench import Item, choice
    from creperie.bench.benchmark import from_items

    items = [Item(str(n), "x", ("../../../etc/passwd",), (f"a{n}", f"b{n}"), choice(1, 1)) for n in range(3)]
    store_study(site.db, "evil", from_items("evil", items, images=bench.images), StudyPlan("foil-check", practice=0))
    who = browser().join(invite(site.db, "evil", 1)[0].token)
    reply = who.get(f"/picture/{who.api('next').json()['question']['slot']}/0")
    assert reply.status_code == 404
    assert "passwd" not in reply.text


def test_only_listed_benchmarks_can_be_chosen(browser: Browsers, site: Site) -> None:
    owner = browser().log_in()
    for place in ("../", "/etc", "bench/../bench", "sugarcrepe", "native:/etc"):
        reply = owner.post("/owner/studies", {"name": "x", "bench": place, "task": "foil-check"})
        assert reply.status_code == 400
        assert "not a benchmark on this server" in reply.text


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_captions_comments_and_names_are_escaped_everywhere(site: Site, bench: Any, browser: Browsers) -> None:
    from creperie.annotation.invitations import invite
    from creperie.annotation.study import StudyPlan, set_instructions, store_study
    from creperie.bench import Item, choice
    from creperie.bench.benchmark import from_items

    items = [Item(f"{NASTY}{n}", NASTY, (), (f"{NASTY} a", f"b {NASTY}", "c"), choice(2, 1)) for n in range(2)]
    plan = StudyPlan("positive-check", practice=0, overlap=2)
    store_study(site.db, "nasty", from_items("nasty", items), plan)
    set_instructions(site.db, "nasty", NASTY, "test")
    links = invite(site.db, "nasty", 2, note=NASTY)
    for n, link in enumerate(links):
        who = browser().join(link.token)
        assert "<script>alert" not in who.get("/work").text
        for k in range(2):
            question = who.api("next").json()["question"]
            fields = {"verdict": "edit", "text": f"{NASTY}{n}", "error": "other"}
            body = {"slot": question["slot"], "key": f"key-{n}-{k}-000", "fields": fields, "comment": NASTY}
            assert who.api("answer", body).status_code == 200
    owner = browser().log_in()
    for path in ("/owner/studies/nasty", "/owner/studies/nasty/questions/0", f"/join/{links[0].token}"):
        html = owner.get(path).text
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "&lt;script&gt;alert(1)" in html


def test_large_bodies_are_refused_whether_or_not_they_say_so(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.api("next").json()["question"]
    body = {"slot": question["slot"], "key": KEY, "fields": {"verdict": "false"}, "comment": "x" * MAX_BODY}
    assert who.api("answer", body).status_code == 413

    def pieces() -> Any:
        yield from (b"x" * 8192 for _ in range(40))

    headers = {"X-CSRF-Token": who.csrf, "content-type": "application/json"}
    assert who.client.post("/api/answer", content=pieces(), headers=headers).status_code == 413
    body["comment"] = "x" * 2001
    assert who.api("answer", body).status_code == 422
    with db.read() as session:
        assert session.scalars(select(Answer)).all() == []


@pytest.mark.parametrize("place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_text_that_no_database_holds_is_refused(browser: Browsers, study: Studies) -> None:
    token, _ = study(task="positive-check", subsets=("triplet",))
    who = browser().join(token)
    question = who.api("next").json()["question"]
    raw = '{{"slot": "{}", "key": "{}", "fields": {{"verdict": "accept"}}, "comment": "a\\u0000b"}}'.format(
        question["slot"],
        KEY,
    )
    headers = {"X-CSRF-Token": who.csrf, "content-type": "application/json"}
    for content in (raw, raw.replace("\\u0000", "\\ud800")):
        assert who.client.post("/api/answer", content=content, headers=headers).status_code == 422
    for wrong in ("a\0b", " ", "x" * 2001):
        assert send(who, question, verdict="edit", error="other", text=wrong).status_code == 422
    assert send(who, question, verdict="edit", error="no-such", text="fine").status_code == 422
    assert send(who, question, verdict="edit", error="other", text="fine").status_code == 200


def test_a_comment_is_no_formula_in_a_spreadsheet(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.api("next").json()["question"]
    formula = "=cmd|' /C calc'!A0"
    who.api("answer", {"slot": question["slot"], "key": KEY, "fields": {"verdict": "false"}, "comment": formula})
    with db.read() as session:
        rows = as_csv(export_rows(session, study_named(session, "s")))
    assert f",'{formula}," in rows
