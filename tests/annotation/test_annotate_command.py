"""`creperie annotate`, from the command line alone; and a server that is killed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from creperie.annotation.links import csrf_token
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


def test_the_command_knows_every_task() -> None:
    assert sorted(COMMAND_TASKS) == sorted(TASKS)


def test_a_file_that_is_no_database_is_refused(creperie: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes, " * 100, encoding="utf-8")
    code, text = creperie("show", "--db", "notes.db")
    assert code == 2
    assert "not a creperie database" in text


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
