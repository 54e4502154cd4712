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

from creperie.annotation.access import ANNOTATOR_SESSION, csrf_token, open_session
from creperie.annotation.chain import broken_links
from creperie.annotation.database import open_database
from creperie.annotation.invitations import invite
from creperie.annotation.outcome import judged
from creperie.annotation.study import StudyPlan, store_study, study_named
from creperie.annotation.tasks import TASKS
from creperie.bench import Benchmark
from creperie.cli.annotate import TASKS as COMMAND_TASKS
from creperie.cli.app import main


@pytest.fixture
def creperie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in a folder of its own; exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CREPERIE_PEOPLE_DB", raising=False)

    def run(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["annotate", *words])
        printed = capsys.readouterr()
        text = printed.out if ended.value.code in (0, 1) else printed.err
        return int(str(ended.value.code)), json.loads(text) if "--json" in words and printed.out else text

    return run


def spec(bench: Benchmark) -> str:
    return str(Path(bench.images.location).parent)


def answers_file(path: Path, listed: list[tuple[str, str, int]]) -> None:
    """Answers as a file: one annotator finds the first foil true, the other none."""
    rows = [
        {
            "question": ordinal,
            "subset": subset,
            "id": item,
            "annotator": who,
            "event": "answer",
            "value": {"verdict": "true" if item == "0" and who == "a" else "false"},
            "key": f"{who}-{subset}-{item}",
        }
        for subset, item, ordinal in listed
        for who in ("a", "b")
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def test_from_a_new_study_to_a_new_version(creperie: Any, bench: Benchmark, tmp_path: Path) -> None:
    code, made = creperie("new", "foils", "--bench", spec(bench), "--task", "foil-check", "--subset", "pair", "--json")
    assert code == 0
    assert (made["main"], made["practice"], made["answers"]) == (15, 1, 30)
    code, links = creperie("invite", "foils", "--count", "2", "--url", "https://people.example", "--json")
    assert code == 0
    assert all(i["link"].startswith("https://people.example/join/") for i in links["invitations"])
    assert (tmp_path / "creperie-people.db").is_file()
    db = open_database(tmp_path / "creperie-people.db")
    with db.read() as session:
        found = judged(session, study_named(session, "foils"))
    db.close()
    listed = [(one.question.subset, one.question.item, one.question.ordinal) for one in found]
    answers_file(tmp_path / "in.jsonl", listed)
    assert creperie("import", "foils", "in.jsonl", "--json")[1] == {"study": "foils", "added": 30, "known": 0}
    code, seen = creperie("agreement", "foils", "--json")
    assert code == 0
    asked_first = any(item == "0" for _, item, _ in listed)
    assert [d["id"] for d in seen["disagreements"]] == (["0"] if asked_first else [])
    assert {r["kind"] for r in seen["agreement"]} >= {"cohen kappa", "fleiss kappa", "krippendorff alpha (nominal)"}
    code, shown = creperie("show", "foils", "--json")
    assert (shown["done"], shown["slots"]) == (30, 30)
    assert creperie("export", "foils", "--out", "out.csv")[0] == 0
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 31
    assert creperie("verify", "foils")[0] == 0
    code, done = creperie("apply", "foils", "--out", "v2", "--undecided", "drop", "--json")
    assert code == 0
    assert done["removed"] == len(seen["disagreements"])
    assert (tmp_path / "v2" / "creperie.json").is_file()
    assert creperie("stop", "foils")[0] == 0
    assert creperie("show", "--json")[1]["studies"][0]["state"] == "paused"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("invite", "foil"), "unknown study 'foil'; did you mean 'foils'?"),
        (("revoke", "foils", "nobody"), "unknown annotator 'nobody'"),
        (("export", "foils", "--out", "x.txt"), "must end in .jsonl or .csv"),
        (("apply", "foils", "--out", "v2"), "has no answers yet; run `creperie annotate serve`"),
        (("serve", "--db", "mysql://nowhere/x"), "unknown database scheme 'mysql'"),
        (("serve", "--db", "postgresql://127.0.0.1:1/x"), "cannot be opened"),
        (("agree", "foils"), "did you mean 'agreement'?"),
    ],
)
def test_mistakes_are_told_in_one_line(creperie: Any, bench: Benchmark, words: tuple[str, ...], said: str) -> None:
    creperie("new", "foils", "--bench", spec(bench), "--task", "foil-check", "--subset", "pair")
    code, text = creperie(*words)
    assert code == 2
    assert said in text
    assert len(text.strip().splitlines()) == 1


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
    store_study(db, "s", bench, StudyPlan("foil-check", subsets=("pair", "several"), practice=0, overlap=1))
    invite(db, "s", 1)
    with db.write() as session:
        cookie = open_session(session, ANNOTATOR_SESSION, annotator_id=1)
    acknowledged: list[str] = []
    for _ in range(3):
        port, server = _serve(place)
        try:
            _work(port, cookie, 5, acknowledged)
        finally:
            os.kill(server.pid, signal.SIGKILL)
            server.wait(60)
    with db.read() as session:
        study = study_named(session, "s")
        said = [s for one in judged(session, study) for s in one.said]
        assert broken_links(session, study) == []
    db.close()
    assert len(said) == len(acknowledged) == len(set(acknowledged)) == 15


def _serve(place: str) -> tuple[int, subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    program = "from creperie.cli.app import main; main()"
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
