"""The attacks on studies that once worked, one test each.

Those that are not about studies stand with what they attacked: files that hang whoever reads them in
`tests/fuzz/test_limits.py`, model servers that report negative usage or answer without end in
`tests/models/test_api.py`.
"""

from __future__ import annotations

import asyncio
import csv
import io
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foils import foil_bench
from limits import RateLimitItemPerHour
from sqlalchemy import select, update
from tests.annotation.acting import begin, change_settings, desk_for, record_of, set_state, work

from creperie.annotation import (
    Database,
    Site,
    StudyPlan,
    apply_record,
    apply_study,
    create_app,
    crowd_address,
    exclude,
    exclude_by_rules,
    exported,
    invite,
    link_for,
    list_workers,
    open_database,
    overview,
    payments,
    read_export,
    store_study,
    study_named,
)
from creperie.annotation.answers import answer, undo
from creperie.annotation.schema import Annotator, Answer, Link, Question, Slot
from creperie.annotation.settings import changed
from creperie.annotation.state import PERMITTED, StateError
from creperie.annotation.tasks import TASKS
from creperie.annotation.web import entry, guard
from creperie.bench import Benchmark, Item, choice, from_items, open_store
from creperie.core import DataError, UsageError, write_json


def answer_some(who: Any, n: int = 1000) -> list[dict[str, Any]]:
    """Answer up to n questions with the first option of every field; what was asked."""
    asked, state = [], who.api("next").json()
    while (question := state["question"]) and len(asked) < n:
        asked.append(question)
        fields = {
            f["name"]: f["options"][0]["value"] if f["options"] else 1 for f in question["fields"] if not f["when"]
        }
        sent = who.api("answer", {"slot": question["slot"], "key": f"key-{len(asked):08}", "fields": fields})
        assert sent.status_code == 200, sent.text
        state = sent.json()
    return asked


def test_own_data_come_in_the_order_shown_and_never_say_the_truth(browser: Callable[..., Any], site: Site) -> None:
    """Truth was assigned by coin after the captions were fixed: where the true caption stands says nothing about it."""
    dice = random.Random(4)
    coins = [dice.random() < 0.5 for _ in range(40)]
    pairs = [(f"alpha {n}", f"beta {n}") for n in range(40)]
    store_study(
        site.db,
        "s",
        foil_bench([p if c else p[::-1] for (p, c) in zip(pairs, coins)], "coins"),
        StudyPlan("bias-rating", practice=0, overlap=1),
    )
    who = browser().join(invite(site.db, "s", 1)[0].token)
    answer_some(who)
    document = who.get("/my-data").json()
    first = {}
    for row in document["answers"]:
        assert set(row) == {"number", "event", "shown", "given", "comment", "seconds", "at", "revision", "erased"}
        alpha_first = row["shown"]["texts"][0].startswith("alpha")
        first[int(row["shown"]["texts"][0].split()[1])] = alpha_first
    agree = sum(first[n] == coins[n] for n in range(40))
    assert 9 <= agree <= 31  # outside with a probability of 0.0003; it was 40 of 40
    text = who.get("/my-data").text
    assert "expected" not in text
    assert "attention" not in text


def _coins(task: str, folder: Path) -> tuple[Benchmark, list[bool]]:
    """Items whose captions were fixed before a coin said which of them are true; the coins."""
    from PIL import Image

    Image.new("RGB", (8, 8), "white").save(folder / "x.png")
    dice, items, coins = random.Random(11), [], list[bool]()
    for n in range(56 if task.endswith("-check") else 40):
        word = "bcdfghjk"[n // 8] + "lmnpqrst"[n % 8]
        one, two = (f"{word}alpha", f"{word}omega")[:: dice.choice((1, -1))]
        coins.append(one.endswith("alpha"))
        third = f"{word}gamma"
        if task == "better-foil":  # which foil is whose
            captions, truth = (third, one, two), choice(1, 2)
        elif task in ("positive-check", "triplet-check", "find-negative"):
            captions, truth = (one, third, two), choice(2, 1)
        else:
            captions, truth = (one, two), choice(1, 1)
        items.append(Item(str(n), "s", ("x.png",), captions, truth))
    return from_items("coins", items, images=open_store(folder)), coins


def _features(who: Any, reply: Any, place: int) -> list[float]:
    """What a response, and those of the other routes at that moment, give away besides the words of the captions."""
    question = reply.json()["question"]
    words = [o["label"] for f in question["fields"] for o in f["options"] if o["quote"]]
    words += [text for _, text in question["texts"]]
    pages = [reply, who.get("/work"), *([who.get(f"/picture/{question['slot']}/0")] if question["pictures"] else [])]
    fixed = [len(page.content) - sum(map(len, words)) * (page is reply) for page in pages]
    headers = [len(page.headers.raw) for page in pages]
    slot = question["slot"]
    by_place = [float(w.endswith("alpha")) - float(w.endswith("omega")) for w in [*words, ""][:3]]
    return [float(x) for x in (place, slot < "V", len(slot), len(words), *by_place, *fixed, *headers)]


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.slow
def test_no_feature_of_any_response_depends_on_the_truth(
    browser: Callable[..., Any], site: Site, tmp_path: Path, task: str
) -> None:
    """Every task and route against the coins, or against what is a check, by permutation."""
    bench, coins = _coins(task, tmp_path)
    checks = task.endswith("-check")  # their questions show which caption is doubted: the secret is which are checks
    plan = StudyPlan(task, practice=0, overlap=1, attention=8 if checks else 0, attention_every=5)
    store_study(site.db, "s", bench, plan)
    who = browser().join(invite(site.db, "s", 1)[0].token)
    rows, truth, reply, n = [], [], who.api("next"), 0
    while (question := reply.json()["question"]) is not None:
        rows.append(_features(who, reply, n))
        with site.db.read() as session:
            slot = session.scalars(select(Slot).where(Slot.token == question["slot"])).one()
            item = session.get_one(Question, slot.question_id).item
        truth.append(slot.kind == "attention" if checks else coins[int(item)])
        n += 1
        plain = [f for f in question["fields"] if not f["when"]]
        fields = {f["name"]: f["options"][0]["value"] if f["options"] else 1 for f in plain}
        if n % 7 == 0:  # what was skipped comes back
            assert who.api("skip", {"slot": question["slot"], "key": f"skip-{n:06}"}).status_code == 200
            question = who.api("undo", {"key": f"undo-{n:06}"}).json()["question"]
        reply = who.api("answer", {"slot": question["slot"], "key": f"key-{n:08}", "fields": fields})
        assert reply.status_code == 200, reply.text
    own = who.get("/my-data").json()["answers"]
    kept = [row for row in own if row["event"] == "answer"]
    for features, row in zip(rows, kept, strict=True):
        features += [float(len(row)), float(row["revision"]), row["number"] - features[0], float(row["erased"] is None)]
    assert n >= 40
    features = np.array(rows)
    # Of the check tasks the words say what is doubted, as they must; where the words stand may not tell more.
    features[:, 4:7] *= not checks
    p = permutation_p(features, np.array(truth, float))
    assert (p > 1e-4).all(), (p, features[:, p <= 1e-4])


def permutation_p(features: np.ndarray, truth: np.ndarray, times: int = 20_000) -> np.ndarray:
    """How often a shuffled truth goes with each feature as much as the real one."""
    own = features - features.mean(axis=0)
    shuffled = np.random.default_rng(0).permuted(np.tile(truth, (times, 1)), axis=1)
    return (1 + (np.abs(shuffled @ own) >= abs(truth @ own) - 1e-9).sum(axis=0)) / (1 + times)


def test_rewritten_answers_give_another_digest_and_a_changed_export_is_refused(
    db: Database, bench: Benchmark, tmp_path: Path
) -> None:
    people = begin(db, bench)
    for who in people:
        work(db, who)
    before = exported(record_of(db, "s"))
    write_json(tmp_path / "e.json", before, plain=True)
    with db.engine.begin() as connection:  # by hand, past every guard
        connection.execute(update(Answer).values(value={"verdict": "true"}, erased=1.0))
    with db.write() as session:
        study_named(session, "s").created += 0.001
    set_state(db, "s", "closed")
    after = exported(record_of(db, "s"))
    assert after["digest"] != before["digest"]
    assert after["erased"] == len(after["answers"])
    done = apply_record(read_export(tmp_path / "e.json"), bench.only(["pair"]))
    assert done.document["export"] == before["digest"]
    assert done.document["fates"] == {"confirmed": 16}
    write_json(tmp_path / "f.json", {**before, "answers": after["answers"]}, plain=True)
    with pytest.raises(DataError, match=r"digest mismatch.*annotate export"):
        read_export(tmp_path / "f.json")


def test_bodies_that_drip_do_not_keep_others_from_their_turn(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """More dripping connections than turns: a page comes at once, and the drips end at a total time.

    The time is over when the test says so: nothing depends on how busy the machine is.
    """
    over = asyncio.Event()
    limits: list[float] = []

    async def wait_for(body: Any, seconds: float) -> Any:
        limits.append(seconds)
        reading, end = asyncio.ensure_future(body), asyncio.ensure_future(over.wait())
        await asyncio.wait([reading, end], return_when=asyncio.FIRST_COMPLETED)
        end.cancel()
        if reading.done():
            return reading.result()
        reading.cancel()
        raise TimeoutError

    monkeypatch.setattr(guard.asyncio, "wait_for", wait_for)
    app = create_app(site)
    scope = {"type": "http", "method": "POST", "path": "/api/next", "raw_path": b"/api/next", "query_string": b""}
    scope |= {"headers": [(b"host", b"127.0.0.1")], "scheme": "http", "client": ("1.2.3.4", 1), "server": ("x", 80)}
    scope |= {"http_version": "1.1", "root_path": "", "asgi": {"version": "3.0"}}

    async def call(path: str, method: str, drips: bool) -> int:
        status: list[int] = []

        async def receive() -> Any:
            await asyncio.sleep(0.01 if drips else 0)
            return {"type": "http.request", "body": b"x" if drips else b"", "more_body": drips}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])

        await app({**scope, "path": path, "raw_path": path.encode(), "method": method}, receive, send)
        return status[0]

    async def siege() -> tuple[int, list[int]]:
        drips = [asyncio.create_task(call("/api/next", "POST", True)) for _ in range(60)]
        await asyncio.sleep(0.1)
        page = await call("/", "GET", False)
        assert not any(one.done() for one in drips)  # the page came while all of them were dripping
        over.set()
        return page, list(await asyncio.gather(*drips))

    page, ended = asyncio.run(siege())
    assert page == 200
    assert set(ended) == {408}
    assert set(limits) == {guard.BODY_SECONDS}


def test_a_closed_study_is_frozen(who: Any, browser: Callable[..., Any], db: Database) -> None:
    assert len(answer_some(who, 1)) == 1
    held = who.question()
    set_state(db, "s", "closed")
    body = {"slot": held["slot"], "key": "key-late-1", "fields": {"verdict": "true"}}
    assert (who.api("answer", body).status_code, who.api("undo", {"key": "key-undo-1"}).status_code) == (409, 409)
    owner = browser().log_in()
    assert owner.post("/owner/studies/s/questions/0", {"verdict": "true"}).status_code == 409
    with db.read() as session:
        name = session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)).first()
        assert len(session.scalars(select(Answer)).all()) == 1
    with pytest.raises(StateError, match="closed"):
        exclude(db, "s", str(name))
    with pytest.raises(StateError, match="closed"):
        change_settings(db, "s", pay=3.0)


@pytest.mark.parametrize("state", ["open", "paused", "closed"])
def test_what_may_happen_in_every_state(db: Database, bench: Benchmark, state: str) -> None:
    """Every action from every state, against the table."""
    who, _ = begin(db, bench)
    work(db, who, 2)
    with db.write() as session:
        ticket = desk_for(session, who).take()
        name = session.get_one(Annotator, who).pseudonym
    assert ticket is not None
    if state != "open":
        set_state(db, "s", state)

    def act(action: str) -> None:
        with db.write() as session:
            desk = desk_for(session, who)
            if action == "answer":
                answer(desk, ticket.token or "", "k-now", {"verdict": "false"}, "")
            else:
                undo(desk, "k-undo")

    actions: dict[str, Callable[[], Any]] = {
        "answer": lambda: act("answer"),
        "undo": lambda: act("undo"),
        "settings": lambda: change_settings(db, "s", pay=1.0),
        "invite": lambda: invite(db, "s", 1),
        "exclude": lambda: exclude(db, "s", name),
    }
    for action, do in actions.items():
        if action in PERMITTED[state]:
            do()
        else:
            with pytest.raises(StateError):
                do()


def test_checks_are_balanced_and_depend_on_the_picture(db: Database, bench: Benchmark) -> None:
    """Whoever always says the same passes half of the checks; and no caption of a check comes twice."""
    for number, task in enumerate(("foil-check", "positive-check", "triplet-check")):
        subset = "pair" if task == "foil-check" else "triplet"
        store_study(db, f"s{number}", bench.only([subset]), StudyPlan(task, practice=0, attention=4))
        with db.read() as session:
            study = study_named(session, f"s{number}")
            own = select(Question).where(Question.study_id == study.id)
            checks = session.scalars(own.where(Question.kind == "attention")).all()
            main = {(q.subset, q.item) for q in session.scalars(own.where(Question.kind == "main"))}
        answers = [q.expected["verdict"] for q in checks if q.expected]
        assert sorted(answers.count(a) for a in set(answers)) == [2, 2]
        assert not main & {(q.subset, q.item) for q in checks}
        captions = [c for q in checks for c in (q.payload.get("captions") or [q.payload["caption"]])]
        assert len(captions) == len(set(captions))


def test_three_who_always_say_true_are_excluded_by_the_rules(db: Database, bench: Benchmark) -> None:
    """Beside honest people; before, each passed all of the one-sided checks."""
    people = begin(db, bench, people=8, overlap=6, attention=4, attention_every=2)

    def honest(desk: Any, ticket: Any) -> Any:
        return ticket.question.expected or {"verdict": "false"}

    for _ in range(16):  # all at the same time
        for n, who in enumerate(people):
            work(db, who, 1, (lambda desk, ticket: {"verdict": "true"}) if n < 3 else honest)
    with db.read() as session:
        names = list(session.scalars(select(Annotator.pseudonym).order_by(Annotator.id)))
    assert {one["annotator"] for one in exclude_by_rules(db, "s")} == set(names[:3])


def test_one_address_enters_as_many_people_as_the_limit_allows(
    browser: Callable[..., Any], study: Any, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    study()
    list_workers(db, "s", [f"worker-{n}" for n in range(4)])
    path = f"/crowd/{crowd_address(db, 's')}"
    monkeypatch.setattr(entry, "ENTRIES", RateLimitItemPerHour(2))
    codes = []
    for n in range(4):
        who = browser("192.0.2.9")
        who.get(f"{path}?id=worker-{n}")
        codes.append(who.post(f"{path}?id=worker-{n}").status_code)
    assert codes == [200, 200, 429, 429]


def test_colluders_who_come_first_own_no_question(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, people=12, overlap=3)
    for who in people[:3]:
        work(db, who)
    with db.read() as session:
        rows = session.execute(select(Answer.question_id, Answer.annotator_id)).all()
    counts = [sum(q == question for q, _ in rows) for question in {q for q, _ in rows}]
    assert max(counts) == 1


def test_the_second_owner_to_save_is_shown_both_values(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study()
    one, two = browser().log_in("ana"), browser().log_in("ben")
    first = {"consent": "Please agree.", "pay": "2.5", "revision": "1"}
    assert one.post("/owner/studies/s/settings", first).status_code == 303
    refused = two.post("/owner/studies/s/settings", {"consent": "", "pay": "", "revision": "1"})
    assert refused.status_code == 409
    assert "Please agree." in refused.text
    with db.read() as session:
        stored = study_named(session, "s")
    assert (stored.settings["consent"], stored.settings["pay"], stored.revision) == ("Please agree.", 2.5, 2)
    assert [r["number"] for r in record_of(db, "s")["revisions"]] == [1, 2]


def test_pictures_that_are_missing_unreadable_or_led_out_to_are_refused(db: Database, tmp_path: Path) -> None:
    folder, outside = tmp_path / "images", tmp_path / "secret.png"
    folder.mkdir()
    from PIL import Image

    Image.new("RGB", (8, 8)).save(outside)
    (folder / "broken.png").write_bytes(b"not a picture")
    (folder / "link.png").symlink_to(outside)
    for name in ("missing.png", "broken.png", "link.png"):
        items = [Item("0", "s", (name,), ("a", "b"), choice(1, 1))]
        with pytest.raises(UsageError, match="1 of 1 pictures cannot be shown"):
            store_study(db, "s", from_items("x", items, images=open_store(folder)), StudyPlan("foil-check", practice=0))


def test_a_comment_cannot_leave_its_cell(who: Any, browser: Callable[..., Any]) -> None:
    slot = who.question()["slot"]
    body = {"slot": slot, "key": "key-00000001", "fields": {"verdict": "false"}, "comment": "fine\r=1+cmd|'/C calc'!A0"}
    assert who.api("answer", body).status_code == 200
    text = browser().log_in().get("/owner/studies/s/export.csv").text
    assert "=1+cmd" in text
    assert "\r" not in text
    for row in csv.reader(io.StringIO(text)):
        assert not any(cell.startswith(("=", "+", "@", "\t")) for cell in row)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pay": math.nan},
        {"pay": -5},
        {"pay": float("1e400")},
        {"cap": 0.5},
        {"screening": [1]},
        {"consent": [1]},
    ],
)
def test_settings_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        changed({}, wrong)


def test_a_lost_link_locks_nobody_out(browser: Callable[..., Any], site: Site) -> None:
    old = link_for(site.db, "ana")
    new = link_for(site.db, "ana")
    assert browser().get(f"/join/{old}").status_code == 404
    browser().open(new)


def test_a_name_is_believed_from_the_identity_proxy_only(site: Site) -> None:
    from fastapi.testclient import TestClient

    from creperie.annotation.server import behind_proxies

    link_for(site.db, "ana@example.org")
    own = Site(site.db, trusted_header="X-Forwarded-User")
    app = behind_proxies(create_app(own), ("10.0.0.0/8",), "X-Forwarded-User")
    headers = {"X-Forwarded-User": "ana@example.org", "accept": "text/html"}
    for address, name, status in (
        ("10.1.2.3", "ana@example.org", 200),
        ("10.1.2.3", "eve@example.org", 401),
        ("192.0.2.1", "ana@example.org", 401),
    ):
        client = TestClient(app, base_url="http://127.0.0.1", client=(address, 5))
        assert client.get("/owner", headers={**headers, "X-Forwarded-User": name}).status_code == status


def test_guessing_links_ends_at_the_limit(browser: Callable[..., Any]) -> None:
    stranger = browser("192.0.2.7")
    codes = [stranger.get(f"/join/{n:043}").status_code for n in range(31)]
    assert codes == [404] * 30 + [429]


def test_a_database_of_the_first_version_is_migrated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Accounts become links that nobody can open yet, annotators keep theirs, and the owner is told."""
    import sqlite3

    path = tmp_path / "old.db"
    tables = Path(__file__).with_name("data") / "first_version.sql"
    old = sqlite3.connect(path)
    old.executescript(tables.read_text().format(id="INTEGER", float="DOUBLE", bytes="BLOB").replace("\n\n", "\n"))
    settings = '{"consent": "yes?", "pay": -5}'
    study = (
        "INSERT INTO study VALUES ('s','foil-check','Look.','{\"overlap\": 2}','{}','open',1,1.0,'x',?,0,'0',NULL,1)"
    )
    old.execute(study, (settings,))
    old.execute("INSERT INTO owner VALUES ('ana','hash','owner',1.0,NULL,1), ('rob','hash','reviewer',1.0,NULL,2)")
    person = "INSERT INTO annotator VALUES (1,?,?,?,NULL,9e9,NULL,1.0,?,NULL,NULL,NULL,'',NULL,NULL,'',0,'0',?)"
    old.executemany(person, [("teal-owl", "", "abc", None, 1), ("red-auk", "prolific", "def", "w", 2)])
    old.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    old.execute("INSERT INTO alembic_version VALUES ('0001')")
    old.commit()
    old.close()
    db = open_database(path)
    with db.read() as session:
        links = {(link.kind, link.name, link.token_hash) for link in session.scalars(select(Link))}
        entries = {a.pseudonym: a.entry for a in session.scalars(select(Annotator))}
        kept = study_named(session, "s")
    assert links == {
        ("owner", "ana", None),
        ("adjudicator", "rob", None),
        ("annotator", "teal-owl", "abc"),
        ("annotator", "red-auk", "def"),
    }
    assert entries == {"teal-owl": "invited", "red-auk": "unverified"}
    assert (kept.settings["consent"], "pay" in kept.settings, kept.revision) == ("yes?", False, 1)
    assert "ana (owner), rob (adjudicator)" in capfd.readouterr().err
    invite(db, "s", 1)
    db.close()


def test_a_task_that_does_not_fit_names_those_that_do(db: Database, bench: Benchmark) -> None:
    with pytest.raises(UsageError, match="needs at most one image and two or more true captions") as caught:
        store_study(db, "s", bench.only(["pair"]), StudyPlan("positive-check"))
    assert "foil-check (16 questions)" in str(caught.value)
    assert set(TASKS) >= {"foil-check"}


def test_measures_count_nobody_who_was_not_vouched_for(db: Database, bench: Benchmark) -> None:
    one, two = begin(db, bench)
    change_settings(db, "s", pay=3.0)
    work(db, one)
    work(db, two)
    with db.write() as session:
        session.get_one(Annotator, one).entry = "unverified"
    set_state(db, "s", "paused")
    assert apply_study(db, "s", bench.only(["pair"])).document["too_few_answers"] == 16
    with db.read() as session:
        study = study_named(session, "s")
        rows = overview(session, study)["annotators"]
    assert [row["pay"] for row in payments(study, rows)] == [0.0, 3.0]
    cheat = {"excluded": True, "excluded_why": "cheated", "withdrawn": True}
    assert [row["pay"] for row in payments(study, [rows[1] | cheat])] == [0.0]
