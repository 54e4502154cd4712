"""What a hostile or careless visitor can do to a study, and what it cannot."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from PIL import Image
from sqlalchemy import select
from tests.annotation.acting import begin, desk_for, listening, seen_in, set_state, work

from creperie.annotation import (
    Address,
    Database,
    Site,
    StudyPlan,
    apply_study,
    create_app,
    invite,
    open_database,
    store_study,
)
from creperie.annotation.answers import WorkError, answer, skip
from creperie.annotation.connections import ConnectionLimits, Places, limited_protocol
from creperie.annotation.database import BusyError
from creperie.annotation.schema import ATTENTION, MAIN, PRACTICE, Annotator, Answer, Question, Slot
from creperie.annotation.state import StateError
from creperie.annotation.tasks import TASKS
from creperie.annotation.web.pictures import StudyPictures
from creperie.bench import Benchmark
from creperie.core import UsageError

SUBSETS = {"positive-check": "triplet", "find-negative": "triplet", "better-foil": "several"}


# -- guessing the truth ----------------------------------------------------------------------------------------------


def test_two_studies_of_the_same_seed_and_name_ask_different_checks(bench: Benchmark, tmp_path: Path) -> None:
    drawn = []
    for n in range(2):
        db = open_database(tmp_path / f"{n}.db")
        store_study(db, "s", bench.only(["pair"]), StudyPlan("foil-check", practice=2, attention=5))
        with db.read() as session:
            drawn.append(session.execute(select(Question.kind, Question.item).where(Question.kind != MAIN)).all())
        db.close()
    assert drawn[0] != drawn[1]


# -- attention checks and skips --------------------------------------------------------------------------------------


def test_a_skipped_check_is_a_failed_one(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, 1, attention=2, attention_every=2)
    for n in range(40):
        with db.write() as session:
            desk = desk_for(session, who)
            if (ticket := desk.take()) is None:
                break
            if ticket.kind == ATTENTION:
                skip(desk, ticket.token or "", f"k{n}", "")
            else:
                answer(desk, ticket.token or "", f"k{n}", {"verdict": "false"}, "")
    (seen,) = seen_in(db, "s")["annotators"]
    assert (seen["attention_passed"], seen["attention_asked"]) == (0, 2)


def test_skips_are_bounded(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, 1, skips=2)
    for n in range(3):
        with db.write() as session:
            desk = desk_for(session, who)
            ticket = desk.take()
            assert ticket is not None
            if n < 2:
                skip(desk, ticket.token or "", f"k{n}", "")
            else:
                with pytest.raises(WorkError, match="skipped too many"):
                    skip(desk, ticket.token or "", f"k{n}", "")


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
        question = who.question()
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
        feedback = reply.json()["receipt"]["feedback"]
        told += feedback is not None
        assert task != "foil-check" or not feedback or "It was written for" in feedback  # the reason
    assert told >= (1 if TASKS[task].makes == "rate" else 3)
    with site.db.read() as session:
        kinds = session.scalars(select(Slot.kind).where(Slot.state == "done")).all()
    assert (kinds.count(PRACTICE), kinds.count(ATTENTION)) == (3, 2)


# -- decisions -------------------------------------------------------------------------------------------------------


def test_fewer_answers_than_asked_for_decide_nothing(db: Database, bench: Benchmark) -> None:
    people = begin(db, bench, 3, overlap=3)
    work(db, people[0], 4, lambda desk, ticket: {"verdict": "true"})
    done = apply_study(db, "s", bench.only(["pair"]))
    assert done.document["removed"] == 0
    assert done.document["fates"] == {"undecided": 4, "not judged": 12}
    assert done.document["too_few_answers"] == 16
    for who in people:
        work(db, who, 16, lambda desk, ticket: {"verdict": "true" if int(ticket.question.item) < 4 else "false"})
    fates = apply_study(db, "s", bench.only(["pair"])).document["fates"]
    assert fates["confirmed"] >= 8
    assert fates["removed"] >= 4


# -- the server ------------------------------------------------------------------------------------------------------


def test_strange_headers_and_numbers_are_refused_not_failed(
    who: Any, browser: Callable[..., Any], site: Site, bench: Benchmark
) -> None:
    assert who.api("next", origin="http://[").status_code == 403
    store_study(site.db, "rate", bench.only(["pair"]), StudyPlan("bias-rating", practice=0))
    owner = browser().log_in()
    owner.get("/owner/studies/rate/questions/0")
    for rating in ("--5", "-", "5-", "٣", "9" * 40):
        assert owner.post("/owner/studies/rate/questions/0", {"rating": rating}).status_code == 400


def test_a_stopped_study_takes_the_answer_in_hand(who: Any, db: Database) -> None:
    question = who.question()
    set_state(db, "s", "paused", "test")
    body = {"slot": question["slot"], "key": "0123456789abcdef", "fields": {"verdict": "false"}}
    reply = who.api("answer", body).json()
    assert reply["question"] is None
    assert reply["progress"]["stopped"]
    with db.read() as session:
        assert len(session.scalars(select(Answer)).all()) == 1


def test_seconds_never_come_from_a_clock_that_jumps(db: Database, bench: Benchmark) -> None:
    (who,) = begin(db, bench, 1)
    seconds = []
    for n, (shown, answered, visible) in enumerate(
        ((20_000.0, 5_600.0, None), (20_000.0, 5_600.0, 3.5), (1000.0, 1001.0, 9999.0))
    ):
        with db.write() as session:
            ticket = desk_for(session, who, shown).take()
        with db.write() as session:
            desk = desk_for(session, who, answered)
            answer(desk, ticket.token or "", f"k{n}", {"verdict": "false"}, "", visible)
        with db.read() as session:
            seconds.append(session.scalars(select(Answer.seconds).order_by(Answer.id.desc())).first())
    assert seconds == [None, 3.5, 1.0]  # what the page did not measure, nobody did


def test_only_named_proxies_are_believed() -> None:
    assert Address().proxies == ()
    with pytest.raises(UsageError, match="not an IP address"):
        Address(proxies=("*",))
    with pytest.raises(UsageError, match="must be an address"):
        Address(url="people.example")


def test_an_owner_who_opens_an_invitation_stays_logged_in(browser: Callable[..., Any], study: Any) -> None:
    token, _ = study()
    both = browser().log_in().join(token)
    assert both.api("next").status_code == 200
    assert both.get("/owner").status_code == 200


def test_a_form_that_is_sent_eight_times_at_once_invites_once(
    browser: Callable[..., Any], study: Any, db: Database, site: Site
) -> None:
    study(people=1)
    owners, form = [browser().log_in(f"owner{n}") for n in range(8)], {"count": "2", "once": "cd" * 16}
    gate, pages = threading.Barrier(8), []
    for owner in owners:
        owner.get("/owner/studies/s")

    def send(owner: Any) -> None:
        gate.wait(20)
        pages.append(owner.post("/owner/studies/s/invitations", form).text)

    threads = [threading.Thread(target=send, args=(owner,)) for owner in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    links = {tuple(sorted(set(re.findall(r"/join/[\w-]{43}", text)))) for text in pages}
    assert (len(pages), len(links), len(next(iter(links)))) == (8, 1, 2)
    site.shown_links.clear()  # as after a restart
    text = owners[0].post("/owner/studies/s/invitations", form).text
    assert "cannot be shown again" in text
    with db.read() as session:
        assert len(session.scalars(select(Annotator)).all()) == 3


def test_nobody_is_invited_to_a_closed_study(browser: Callable[..., Any], study: Any, db: Database) -> None:
    study(people=1)
    set_state(db, "s", "closed")
    with pytest.raises(StateError, match="the study is closed"):
        invite(db, "s", 1)
    owner = browser().log_in()
    assert "/invitations" not in owner.get("/owner/studies/s").text
    reply = owner.post("/owner/studies/s/invitations", {"count": "2", "once": "ef" * 16})
    assert (reply.status_code, "the study is closed" in reply.text.lower()) == (409, True)
    with db.read() as session:
        assert len(session.scalars(select(Annotator)).all()) == 1


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

    def wait(*args: Any) -> Any:
        raise BusyError("the database is busy")

    monkeypatch.setattr(type(site.db), "write", wait)
    reply = who.api("next")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
    assert who.get("/static/work.js").status_code == 200


@contextmanager
def serving(site: Site, **limits: Any) -> Iterator[tuple[str, int]]:
    """A server with these limits on connections; where it listens."""
    protocol = limited_protocol((), ConnectionLimits(**limits))
    with listening(uvicorn.Config(create_app(site), log_level="critical", http=protocol, backlog=512)) as address:
        yield address


def ask(address: tuple[str, int], path: str, source: str = "127.0.0.1", keep: bool = False) -> Any:
    """The status of a request from a loopback address of one's own, 0 if the connection is closed; or, with `keep`, the
    socket that is still open.
    """
    one = socket.create_connection(address, timeout=10, source_address=(source, 0))
    try:
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\n\r\n".encode())
        head = one.recv(4096)
    except ConnectionError:
        head = b""
    if keep:
        return one
    one.close()
    return int(head.split(b" ", 2)[1]) if head else 0


def test_half_open_connections_are_limited_and_closed(site: Site) -> None:
    with serving(site, per_network=20, header_seconds=0.5) as address:
        opened = [socket.create_connection(address) for _ in range(30)]
        for half in opened:
            half.settimeout(5)
        for half in opened[10:]:  # the first ten had to go
            half.sendall(b"POST /api/next HTTP/1.1\r\nHost: ")
        assert [_ended(half) for half in opened] == [True] * 30
        assert ask(address, "/health") == 200


def test_four_addresses_with_idle_connections_keep_nobody_out(site: Site, study: Any) -> None:
    """Four addresses hold more idle connections than there are places, and go on opening more; people from four other
    networks, and from the networks of those four, open their links all the same.
    """
    tokens = study(people=8)
    with serving(site, total=80, strangers=40, per_network=19) as address:
        idle = [_idle(address, f"127.{n % 4 + 1}.0.1") for n in range(100)]
        for n, token in enumerate(tokens):
            source = f"127.{n % 4 + 1}.0.9" if n < 4 else f"127.9.{n}.1"
            assert ask(address, f"/join/{token}", source) == 200
            idle += [_idle(address, f"127.{k % 4 + 1}.0.1") for k in range(25)]
        kept = ask(address, f"/join/{tokens[0]}", "127.9.0.1", keep=True)
        idle += [_idle(address, f"127.{k % 4 + 1}.0.1") for k in range(100)]
        kept.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200 OK" in kept.recv(4096) + kept.recv(4096)  # who has shown a link is not closed for strangers
        for one in (kept, *idle):
            one.close()


def _idle(address: tuple[str, int], source: str) -> socket.socket:
    return socket.create_connection(address, timeout=10, source_address=(source, 0))


def test_a_class_of_sixty_behind_one_address_works(site: Site, study: Any) -> None:
    """Sixty browsers with six connections each, all at once from one address, beside four addresses that hold idle
    connections: everybody gets the page of their link and its static files.
    """
    tokens, replies = study(people=60, overlap=1), []
    parts = ("/static/people.css", "/static/face.css", "/static/theme.js", "/static/mark.svg", "/static/work.js")

    def browse(address: tuple[str, int], token: str) -> None:
        opened = [ask(address, f"/join/{token}", "127.0.5.1", keep=True)]
        opened += [ask(address, part, "127.0.5.1", keep=True) for part in parts]
        for one in opened:  # all six are open now, and each is used again
            _drain(one, 0.1)
            one.sendall(b"GET /static/mark.svg HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            replies.append(b"200 OK" in _drain(one))
            one.close()

    with serving(site) as address:
        idle = [_idle(address, f"127.{n % 4 + 1}.0.1") for n in range(480)]
        threads = [threading.Thread(target=browse, args=(address, token)) for token in tokens]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for one in idle:
            one.close()
    assert replies == [True] * 360


def _drain(one: socket.socket, seconds: float = 20) -> bytes:
    """What comes until the other side closes, or until nothing comes for so long."""
    data = b""
    one.settimeout(seconds)
    with suppress(TimeoutError, ConnectionError):
        while more := one.recv(65536):
            data += more
    return data


class Held:
    """A connection as `Places` sees it."""

    def __init__(self, address: str, since: float, waiting: bool = True) -> None:
        self.address, self.network, self.silent_since, self.waiting = address, address[:2], since, waiting
        self.aborted = False

    def waits(self) -> bool:
        return self.waiting

    def abort(self) -> None:
        self.aborted = True


def test_who_goes_when_there_are_too_many_connections() -> None:
    """Strangers before people with a link, the largest network first, and in it the one that was silent for longest;
    never one for which the server is working.
    """
    places = Places(ConnectionLimits(total=6, strangers=4, per_network=3, per_address=5))
    gone = []

    def enter(address: str, since: float, waiting: bool = True) -> Held:
        one = Held(address, since, waiting)
        places.enter(one)
        gone.extend(other for other in [*places_seen, one] if other.aborted and other not in gone)
        places_seen.append(one)
        return one

    places_seen: list[Held] = []
    a1, a2, b1 = enter("a.1", 2), enter("a.2", 1), enter("b.1", 0)
    a3 = enter("a.3", 3)
    assert gone == []
    a4 = enter("a.4", 4)  # the fourth of its network
    assert gone == [a2]
    b2 = enter("b.2", 5)  # the fifth stranger: the largest network has three
    assert gone == [a2, a1]
    places.welcome("c.1")
    enter("c.1", 0)
    enter("c.1", 0)
    assert (len(places.open), len(gone)) == (6, 2)
    enter("c.1", 0)  # the seventh in all: a stranger goes, however long the others are silent
    assert gone[2:] == [b1]
    for one in (a3, a4, b2):
        one.waiting = False
    late = enter("d.1", 9)  # it may be a person: the address with most places gives one up
    assert (late.aborted, gone[3].address) == (False, "c.1")
    for one in places.open:
        one.waiting = False
    assert enter("e.1", 9).aborted


def _ended(half: socket.socket) -> bool:
    try:
        return half.recv(100) == b""
    except ConnectionError:
        return True
    finally:
        half.close()
