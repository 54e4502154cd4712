"""A language model's server that hangs: told, and gone on with when it answers again; the key is never told."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foils import foil_bench
from loopback import Request, serving

from creperie.bench import Benchmark, save
from creperie.core import ModelError
from creperie.making import validate

SECRET = "sk-nobody-may-see-this"


class Server:
    """Says "not the same" to every question; from request `hangs_from` on it listens and says nothing."""

    def __init__(self) -> None:
        self.hangs_from: int | None = None
        self.asked = 0
        self.delay = 0.0
        self.let_go = threading.Event()
        self.url = ""

    def answer(self, request: Request) -> None:
        request.read()
        self.asked += 1
        if self.hangs_from is not None and self.asked > self.hangs_from:
            self.let_go.wait(60)
            return
        time.sleep(self.delay)
        request.say(json.dumps({"reason": "other things", "verdict": "no", "correction": "NA"}))

    @property
    def uri(self) -> str:
        return f"api:tiny?base_url={self.url}&timeout=1&retries=1&concurrency=1&key_env=TEST_KEY"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TEST_KEY", SECRET)
    monkeypatch.setattr("creperie.core.http.FIRST_WAIT", 0.01)
    server = Server()
    with serving(server.answer) as server.url:
        yield server
        server.let_go.set()


@pytest.fixture
def bench() -> Benchmark:
    return foil_bench([(f"{i} dogs", f"{i} cats") for i in range(6)], "small")


def test_a_hanging_server_is_told_and_gone_on_with(server: Server, bench: Benchmark, tmp_path: Path) -> None:
    server.hangs_from = 4
    with pytest.raises(
        ModelError, match=r"gave up after 2 tries: no answer within 1 s.*answers received so far are kept"
    ) as told:
        validate(bench, server.uri, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    server.hangs_from, before = None, server.asked
    found = validate(bench, server.uri, out=tmp_path / "out")
    assert server.asked - before == 2, "the four that were answered are not asked again"
    assert [v.code for v in found.verdicts] == [""] * 6
    assert (tmp_path / "out" / "verdicts.parquet").is_file()
    # No message and no file holds the key.
    assert SECRET not in str(told.value)
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) > 3
    assert not [p for p in files if SECRET.encode() in p.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM], ids=lambda s: s.name)
def test_a_stopped_validation_asks_only_for_the_rest(
    server: Server,
    bench: Benchmark,
    creperie: Callable[..., subprocess.Popen[str]],
    wait_for: Callable[[Callable[[], bool]], None],
    tmp_path: Path,
    stop: signal.Signals,
) -> None:
    save(bench, tmp_path / "small")
    command = ("validate", str(tmp_path / "small"), "--model", server.uri.replace("timeout=1", "timeout=60"), "--out")
    server.delay = 0.5
    first = creperie(*command, str(tmp_path / "out"))
    wait_for(lambda: server.asked >= 4)
    first.send_signal(stop)
    _, told = first.communicate(timeout=280)
    if stop != signal.SIGKILL:
        assert first.returncode == 130
        assert told.splitlines()[-1] == "creperie: interrupted; run the same command to continue"
    time.sleep(1)  # the request that was in flight is answered to nobody
    assert not (tmp_path / "out").exists()
    server.delay, before = 0.0, server.asked
    second = creperie(*command, str(tmp_path / "out"), "--json")
    told, problems = second.communicate(timeout=280)
    assert second.returncode == 0, problems
    assert json.loads(told)["pairs"] == 6
    assert json.loads(told)["failed"] == 0
    assert 6 - before <= server.asked - before <= 3, "three answers at least were kept"
