"""Who may enter, and what a hostile visitor can do: each test tries to break one rule."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select, text

from creperie.annotation import Address, Database, link_for, revoke, study_named
from creperie.annotation.schema import Annotator, Answer, Slot
from creperie.annotation.web.guard import MAX_BODY
from creperie.annotation.web.pictures import encode
from creperie.core import UsageError

Browsers = Callable[..., Any]
Studies = Callable[..., list[str]]
KEY = "0123456789abcdef"


def send(who: Any, question: dict[str, Any], key: str = KEY, **fields: Any) -> Any:
    return who.api("answer", {"slot": question["slot"], "key": key, "fields": fields or {"verdict": "false"}})


# -- invitations -----------------------------------------------------------------------------------------------------


def test_a_link_lets_in_and_a_wrong_one_does_not(browser: Browsers, study: Studies) -> None:
    token, _ = study()
    assert browser().join(token).api("next").status_code == 200
    stranger = browser()
    assert stranger.get("/join/" + "x" * 32).status_code == 404
    assert stranger.post("/join/" + "x" * 32).status_code == 404
    assert stranger.api("next").status_code in (401, 403)


def test_a_badly_cut_link_gives_a_page_in_plain_words(browser: Browsers, study: Studies) -> None:
    (token, _) = study()
    cut = (
        f"/join/{token[:5]}",
        f"/join/{token[:20]}",
        "/join/",
        "/join",
        f"/join/{token}).",
        f"/join/{token}/x",
        "/crowd/ab",
    )
    for path in cut:
        reply = browser().get(path)
        assert (path, reply.status_code, reply.headers["content-type"]) == (path, 404, "text/html; charset=utf-8")
        assert "incomplete" in reply.text
        assert "{" not in reply.text.partition("<main")[2]
    owner = browser().log_in()
    owner.get("/owner/studies/s")
    reply = owner.post("/owner/studies/s/invitations", {"count": "many", "once": "ab" * 16})
    assert (reply.status_code, "not valid: count" in reply.text) == (422, True)
    assert browser().get("/join/ab", accept="application/json").json()["detail"][0]["loc"] == ["path", "token"]


def test_tokens_are_not_in_the_database(browser: Browsers, study: Studies, db: Database, tmp_path: Path) -> None:
    token, _ = study()
    who = browser().join(token)
    owner = browser().log_in()
    secrets = [
        token,
        who.client.cookies["creperie_session"],
        owner.client.cookies["creperie_owner"],
        link_for(db, "eve"),
    ]
    assert len(secrets[-1]) >= 43  # 256 bits
    with db.write() as session:
        session.execute(text("SELECT 1"))
    db.close()
    raw = b"".join(p.read_bytes() for p in tmp_path.glob("people.db*"))
    for secret in secrets:
        assert secret.encode() not in raw


def test_a_revoked_invitation_ends_at_once(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who = browser().join(token)
    question = who.question()
    with db.read() as session:
        pseudonym = session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)).first()
    revoke(db, str(pseudonym), "s")
    assert send(who, question).status_code == 401
    assert who.get("/work").status_code == 401
    assert who.get(f"/picture/{question['slot']}/0").status_code == 401
    assert browser().get(f"/join/{token}").status_code == 404
    with db.read() as session:
        assert session.scalars(select(Answer)).all() == []


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
        assert (cookie.startswith("__host-creperie_"), "path=/;" in cookie, "domain" in cookie) == (secure, True, False)
        assert "httponly" in cookie
        assert "samesite=" in cookie
        assert "samesite=none" not in cookie
        assert ("secure" in cookie) == secure
    assert ("strict-transport-security" in set_by[0].headers) == secure


def test_nothing_happens_without_the_csrf_token(browser: Browsers, study: Studies, db: Database) -> None:
    token, _ = study()
    who, owner = browser().join(token), browser().log_in()
    question = who.question()
    who.csrf = owner.csrf  # a token, but of another session
    for path, body in (
        ("answer", {"slot": question["slot"], "key": KEY, "fields": {"verdict": "false"}}),
        ("skip", {"slot": question["slot"], "key": KEY}),
        ("undo", {"key": KEY}),
        ("next", {}),
    ):
        assert who.api(path, body).status_code in (403, 422)
    for path in ("state", "invitations", "rules", "settings"):
        form = {"csrf": "0" * 64, "state": "closed", "once": "0" * 32}
        assert owner.post(f"/owner/studies/s/{path}", form).status_code in (403, 422)
    with db.read() as session:
        assert session.scalars(select(Answer)).all() == []
        assert study_named(session, "s").state == "open"


def test_requests_of_other_origins_and_hosts_are_refused(who: Any) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example"):
        assert who.api("next", origin=origin).status_code == 403
    assert who.api("next", origin="http://127.0.0.1").status_code == 200
    assert who.api("next", host="evil.example").status_code == 400


def test_every_answer_carries_a_strict_policy(who: Any, browser: Browsers) -> None:
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
    assert who.api("skip", None, **{"content-type": "text/plain"}).status_code == 422


def test_the_server_listens_to_this_machine_only_unless_told() -> None:
    assert Address().host == "127.0.0.1"
    assert Address().names == ("127.0.0.1", "127.0.0.1", "localhost", "::1")
    assert Address(url="https://people.example/").names[0] == "people.example"
    with pytest.raises(UsageError, match="without a path"):
        Address(url="https://people.example/x")
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
    slot = a.question()["slot"]
    assert a.get(f"/picture/{slot}/0").status_code == 200
    assert b.get(f"/picture/{slot}/0").status_code == 404
    assert browser().get(f"/picture/{slot}/0", accept="image/png").status_code == 401
    assert a.get(f"/picture/{slot}/1").status_code == 404
    assert a.get(f"/picture/{slot}/99").status_code == 404


def test_an_annotator_cannot_write_into_anothers_slot_or_a_done_one(
    browser: Browsers, study: Studies, db: Database
) -> None:
    first, second = study(overlap=1)
    a, b = browser().join(first), browser().join(second)
    mine = a.question()
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
    question = a.question()
    body = {"slot": question["slot"], "key": KEY, "fields": {"verdict": "unsure"}, "comment": "MY SECRET REMARK"}
    assert a.api("answer", body).status_code == 200
    for reply in (b.get("/work"), b.api("next"), b.api("undo", {"key": "b-key-0001"})):
        assert "SECRET" not in reply.text
    assert b.api("undo", {"key": "b-key-0002"}).json()["code"] == "nothing"


def test_pictures_lose_names_and_metadata(who: Any, bench: Any) -> None:
    slot = who.question()["slot"]
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


# -- what is sent ----------------------------------------------------------------------------------------------------


def test_large_bodies_are_refused_whether_or_not_they_say_so(who: Any, db: Database) -> None:
    question = who.question()
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
    question = who.question()
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
