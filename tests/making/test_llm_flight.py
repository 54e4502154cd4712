"""Requests in flight and the ledger: talks do not wait for each other, nothing is paid twice."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from creperie.core import CreperieError
from creperie.making import Captions, LLMMaker, MakerOptions, SourceCaption, build_maker, make
from creperie.making.llm import maker as makers
from creperie.making.llm.flight import generator
from creperie.models import RequestQueue
from creperie.models.api.endpoint import Endpoint
from creperie.models.api.ledger import PAID_BY, SpendLedger

PATIENCE = 60


def captions(n: int) -> Captions:
    return Captions(
        "own", tuple(SourceCaption(str(i), f"A brown dog chases a white cat behind boat {i}.") for i in range(n))
    )


def making(uri: str, given: Captions, out: Path, name: str = "llm:replace-object") -> Any:
    chosen = build_maker(name, MakerOptions(model=uri), given)
    assert isinstance(chosen, LLMMaker)
    made = make(chosen, given, out)
    return made, json.loads((out / "making.json").read_text())["ledger"]


def digest(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_talk_does_not_wait_for_another(chat: Any, tmp_path: Path) -> None:
    """The first caption is not answered before another has come to its last question: in rounds, it never would."""
    last_step = threading.Event()
    waited = []

    def script(q: Any) -> None:
        if q.step == "compose":
            last_step.set()
        if q.step == "locate" and "boat 0" in q.given["caption"]:
            waited.append(last_step.wait(PATIENCE))

    chat.script = script
    _, ledger = making(chat.uri + "&concurrency=2", captions(3), tmp_path / "out")
    assert waited == [True]
    assert ledger["calls"] == 9


@pytest.mark.slow
def test_timing_changes_nothing(chat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(makers, "SERVER_CHUNK", 3)
    found = []
    for number in range(3):
        monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / f"cache{number}"))
        rng = random.Random(number)
        chat.script = lambda q, rng=rng: time.sleep(rng.random() / 50)
        place = tmp_path / str(number) / "out"
        making(chat.uri + f"&concurrency={4 * number + 1}", captions(7), place)
        found.append(digest(place))
    assert found[0] == found[1] == found[2]


def test_a_budget_stops_all_chunks_and_keeps_what_was_answered(
    chat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(makers, "SERVER_CHUNK", 2)
    with pytest.raises(CreperieError, match="budget"):
        making(chat.uri + "&concurrency=2&budget=0.009", captions(20), tmp_path / "out")
    before = len(chat.answered)
    assert 0 < before < 60
    _, ledger = making(chat.uri + "&concurrency=2&budget=100", captions(20), tmp_path / "out")
    assert len(chat.answered) == len(set(chat.answered)) == 60  # nothing was paid twice
    assert ledger["calls"] == 60
    assert (ledger["tokens_in"], ledger["tokens_out"]) == (6000, 600)


def test_a_budget_is_for_all_processes_of_a_making(chat: Any, tmp_path: Path) -> None:
    uri = chat.uri + "&concurrency=1&budget=0.006"
    for _ in range(3):
        generator.cache_clear()  # as a new process has it
        with pytest.raises(CreperieError, match="budget"):
            making(uri, captions(20), tmp_path / "out")
    assert 0 < len(chat.answered) * 0.00012 <= 0.006  # what an answer of this server costs


def test_answers_of_other_makings_are_not_counted_as_paid(chat: Any, tmp_path: Path) -> None:
    _, first = making(chat.uri, captions(2), tmp_path / "first")
    _, second = making(chat.uri, captions(3), tmp_path / "second")
    assert (first["calls"], first["cached"]) == (6, 0)
    assert (second["calls"], second["cached"], second["tokens_in"]) == (3, 6, 300)


# -- killed ----------------------------------------------------------------------------------------------------------

CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import creperie.making.llm.maker as makers
makers.SERVER_CHUNK = 3
from creperie.cli.app import main
main()
"""


def child(uri: str, file: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    args = ["make", "llm:replace-object", "--captions", str(file), "--out", str(out), "--model", uri]
    command = [sys.executable, "-c", CHILD, *args, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ.copy())


def text_file(folder: Path, n: int) -> Path:
    file = folder / "captions.txt"
    file.write_text("".join(s.text + "\n" for s in captions(n).sources))
    return file


def until(holds: Any) -> None:
    for _ in range(PATIENCE * 20):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to that")


@pytest.mark.slow
def test_the_ledger_of_a_killed_shard_is_that_of_an_undisturbed_one(
    chat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with several chunks open; the whole costs what it would have cost at once."""
    more = ("--shard", "1/1")
    uri, file, out = chat.uri + "&concurrency=4", text_file(tmp_path, 10), tmp_path / "out"
    chat.hold_from = 23
    first = child(uri, file, out, *more)
    assert chat.reached.wait(PATIENCE)
    cache = tmp_path / "cache" / "api"
    until(lambda: len(list(cache.rglob("*.json"))) == 22)
    first.kill()
    first.communicate()
    chat.hold_from = None
    chat.release.set()
    child(uri, file, out, *more).communicate(timeout=2 * PATIENCE)
    assert len(chat.answered) == len(set(chat.answered)) == 30  # each was paid once
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "other"))
    other = tmp_path / "undisturbed" / "out"
    child(uri, file, other, *more).communicate(timeout=2 * PATIENCE)
    ledger, undisturbed = (json.loads((made / "shard.json").read_text())["ledger"] for made in (out, other))
    assert ledger == undisturbed
    assert ledger["calls"] == 30
    assert digest(out) == digest(other)


@pytest.mark.slow
def test_interrupted_it_ends_though_answers_are_outstanding(chat: Any, tmp_path: Path) -> None:
    chat.hold_from = 5
    begun = child(chat.uri + "&concurrency=3&timeout=600", text_file(tmp_path, 9), tmp_path / "out")
    assert chat.reached.wait(PATIENCE)
    begun.send_signal(signal.SIGINT)
    begun.communicate(timeout=PATIENCE)
    assert begun.returncode not in (0, -9)


# -- the books -------------------------------------------------------------------------------------------------------

ANSWER = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}


def opened(books: Path) -> SpendLedger:
    ledger = SpendLedger(Endpoint("api:m", "m", price_in=1e6, price_out=1e6))
    ledger.keep_in(books)
    return ledger


def test_books_go_on(tmp_path: Path) -> None:
    first = opened(tmp_path / "books")
    first.paid("a", ANSWER)
    first.found("b", ANSWER)
    first.tried_again()
    second = opened(tmp_path / "books")
    assert second.document() == first.document()
    assert second.document() == {
        "calls": 1, "cached": 1, "retried": 1, "tokens_in": 7, "tokens_out": 2, "cost": 9.0,
    }  # fmt: skip
    second.found("a", {**ANSWER, PAID_BY: first.making})  # already in the books
    assert second.calls == 1


def test_an_answer_that_was_kept_but_not_booked_is_booked_by_the_next_process(tmp_path: Path) -> None:
    first = opened(tmp_path / "books")
    orphan = {**ANSWER, PAID_BY: first.making}
    second = opened(tmp_path / "books")
    assert second.making == first.making
    second.found("a", orphan)
    second.found("a", orphan)
    assert (second.calls, second.cached) == (1, 0)
    assert opened(tmp_path / "books").calls == 1
    stranger = opened(tmp_path / "others")
    stranger.found("a", orphan)
    assert (stranger.calls, stranger.cached) == (0, 1)


@pytest.mark.parametrize("torn", [b'{"key": "b", "ca', b"[1]\n", b"\xff\xfe\n", b'{"calls": "x"}\n'])
def test_a_line_cut_short_is_passed_over(tmp_path: Path, torn: bytes) -> None:
    books = tmp_path / "books"
    opened(books).paid("a", ANSWER)
    with books.open("ab") as file:
        file.write(torn)
    opened(books).paid("c", ANSWER)
    assert opened(books).calls == 2


def test_a_queue_can_be_opened_again_and_by_many(chat: Any) -> None:
    endpoint = Endpoint("api:m", "m", base_url=chat.url, concurrency=2)
    queue = RequestQueue(endpoint, SpendLedger(endpoint))
    with pytest.raises(AssertionError, match="inside `with queue:`"):
        queue.begin({"model": "m", "messages": []})
    with queue, queue:
        pass
    with queue:
        queue.stop(CreperieError("enough"))
        with pytest.raises(CreperieError, match="enough"):
            queue.begin({"model": "m", "messages": []}).result(PATIENCE)
    assert not chat.bodies
