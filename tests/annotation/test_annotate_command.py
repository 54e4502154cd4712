"""`creperie annotate`, from the command line alone; and a server that is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from tests.annotation.acting import desk_for

from creperie.annotation import StudyPlan, invite, open_database, store_study
from creperie.annotation.answers import answer
from creperie.annotation.links import csrf_token, link_of, open_visit
from creperie.annotation.plans import TASK_NAMES as COMMAND_TASKS
from creperie.annotation.schema import Annotator, Answer
from creperie.annotation.tasks import TASKS
from creperie.bench import Benchmark


@pytest.fixture
def creperie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> Any:
    """Runs a command in a folder of its own; exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREPERIE_PEOPLE_DB", raising=False)

    def run(*words: str) -> tuple[int, Any]:
        code, out, err = command("annotate", *words)
        text = out if code in (0, 1) else err
        return code, json.loads(text) if "--json" in words and out else text

    return run


def spec(bench: Benchmark) -> str:
    return str(Path(bench.images.location).parent)


def test_from_a_new_study_to_a_new_version(creperie: Any, bench: Benchmark, tmp_path: Path) -> None:
    code, made = creperie("new", "foils", "--bench", spec(bench), "--task", "foil-check", "--subset", "pair", "--json")
    assert (code, made["main"], made["practice"], made["answers"]) == (0, 15, 1, 30)
    code, links = creperie("invite", "foils", "--count", "2", "--url", "https://people.example", "--json")
    assert all(i["link"].startswith("https://people.example/join/") for i in links["invitations"])
    _answer_everything(tmp_path / "creperie-people.db")
    code, seen = creperie("show", "foils", "--json")
    assert (seen["done"], seen["disagreements"], len(seen["annotators"])) == (30, 1, 2)
    code, measured = creperie("agreement", "foils", "--json")
    assert [row["question"] for row in measured["disagreements"]] == [0]
    assert creperie("settings", "foils", "pay=1.5", "currency=EUR", "--json")[1]["revision"] == 2
    assert creperie("payments", "foils", "--out", "pay.csv", "--json")[1]["total"] == 3.0
    assert creperie("close", "foils")[0] == 0
    code, exported = creperie("export", "foils", "--out", "study.json", "--json")
    code, applied = creperie("apply", "foils", "--out", "v2", "--json")
    assert (applied["kept"], applied["export"], applied["fates"]["undecided"]) == (56, exported["digest"], 1)
    again = ("apply", "foils", "--from", "study.json", "--bench", spec(bench), "--out", "v3", "--json")
    assert creperie(*again)[1]["export"] == exported["digest"]
    assert creperie("apply", "foils", "--out", "v2")[0] == 2  # two that apply do not write over each other
    assert creperie("apply", "foils", "--out", "v2", "--force")[0] == 0
    assert json.loads((tmp_path / "v2" / "study.json").read_text())["digest"] == exported["digest"]


def _answer_everything(path: Path) -> None:
    """One annotator finds the first foil true, the other none."""
    db = open_database(path)
    with db.read() as session:
        people = session.scalars(select(Annotator.id)).all()
    going = True
    while going:
        going = False
        for number, who in enumerate(people):
            with db.write() as session:
                desk = desk_for(session, who)
                ticket = desk.take()
                if ticket is None:
                    continue
                first = number == 0 and ticket.kind == "main" and ticket.question.ordinal == 0
                verdict = "true" if first else "false"
                answer(desk, ticket.token or "", f"k-{ticket.id}", {"verdict": verdict}, "")
                going = True
    db.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "nothing"), "unknown study"),
        (("apply", "foils"), "no answers yet"),
        (("withdraw", "foils", "teal-owl"), "--yes"),
        (("exclude", "foils"), "--rules"),
        (("backup", "--out", "x.zip"), "sqlite3"),
        (("new", "x", "--pilot", "5"), "--sample"),
        (("serve", "--root", "."), "annotate new"),
        (("serve", "--trusted-header", "X-User"), "proxy"),
    ],
)
def test_mistakes_are_told_in_one_line(creperie: Any, bench: Benchmark, words: tuple[str, ...], message: str) -> None:
    creperie("new", "foils", "--bench", spec(bench), "--task", "foil-check")
    code, text = creperie(*words)
    assert code == 2
    assert message in text
    assert "Traceback" not in text


def test_the_command_knows_every_task() -> None:
    assert sorted(COMMAND_TASKS) == sorted(TASKS)


def test_a_file_that_is_no_database_is_refused(creperie: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes, " * 100, encoding="utf-8")
    code, text = creperie("show", "--db", "notes.db")
    assert code == 2
    assert "not a creperie database" in text


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_every_acknowledged_answer_survives_a_killed_server(place: str, bench: Benchmark) -> None:
    db = open_database(place)
    store_study(db, "s", bench, StudyPlan("foil-check", practice=0, overlap=1))
    token = invite(db, "s", 1)[0].token
    with db.write() as session:
        who = link_of(session, token)
        cookie = open_visit(session, who.link)
    acknowledged: list[str] = []
    for _ in range(2):
        port, server = _serve(place)
        try:
            _work(port, cookie, 5, acknowledged)
        finally:
            os.kill(server.pid, signal.SIGKILL)
            server.wait(30)
    with db.read() as session:
        stored = list(session.scalars(select(Answer.key).order_by(Answer.turn)))
    db.close()
    assert stored == acknowledged


def _serve(place: str) -> tuple[int, subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    program = "from creperie.cli import main; main()"
    command = [sys.executable, "-c", program, "annotate", "serve", "--db", place, "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return port, server
        time.sleep(0.1)
    server.kill()
    raise TimeoutError("the server did not start")


def _work(port: int, cookie: str, answers: int, acknowledged: list[str]) -> None:
    headers = {"Cookie": f"creperie_session={cookie}", "X-CSRF-Token": csrf_token(cookie)}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, trust_env=False) as client:
        state = client.post("/api/next", json={}).json()
        for _ in range(answers):
            key = f"key-{len(acknowledged):08}"
            body = {"slot": state["question"]["slot"], "key": key, "fields": {"verdict": "false"}}
            reply = client.post("/api/answer", json=body)
            assert reply.status_code == 200
            acknowledged.append(key)
            state = reply.json()
