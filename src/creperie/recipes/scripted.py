"""Annotators that are programs: they answer a study through the real server, so that a small profile has every stage.

Nothing they say counts as a person's judgement: what comes of it is marked `scripted` wherever it is shown.
"""

from __future__ import annotations

import random
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from creperie.core import DataError

STARTING = 60.0  #: seconds that a server may take to answer
CERTAIN = 0.95  #: how often the expected answer is given, where a task has one
EXPECTED = {"foil-check": "false", "positive-check": "accept", "triplet-check": "valid"}
SERVE = (
    "import sys; from pathlib import Path; from creperie.annotation import Address, open_database, serve; "
    "serve(open_database(sys.argv[1]), Address(port=int(sys.argv[2])), root=Path(sys.argv[3]), out=Path(sys.argv[3]))"
)


@contextmanager
def served(database: Path) -> Iterator[str]:
    """The annotation server on a free port of this machine, for as long as it is needed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", SERVE, str(database), str(port), str(database.parent)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and process.poll() is None:
        try:
            httpx.get(url, timeout=5)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise DataError("the annotation server did not start", where=url)


def answer_all(url: str, tokens: Sequence[str], task: str, seed: int) -> int:
    """Let one scripted annotator per invitation answer everything it is asked; how many answers were stored."""
    return sum(_annotate(url, token, task, random.Random(f"{seed}/{n}")) for n, token in enumerate(tokens))


def _annotate(url: str, token: str, task: str, dice: random.Random) -> int:
    with httpx.Client(base_url=url, timeout=60, headers={"accept": "text/html"}) as client:
        csrf = _csrf(client.get(f"/join/{token}"))
        client.post(f"/join/{token}", data={"csrf": csrf})
        headers = {"X-CSRF-Token": _csrf(client.get("/work", follow_redirects=True))}
        state = _read(client.post("/api/next", json={}, headers=headers))
        count = 0
        while question := state["question"]:
            given = {
                "slot": question["slot"],
                "key": secrets.token_urlsafe(12),
                "fields": _fields(question, task, dice),
                "comment": "scripted",
            }
            state = _read(client.post("/api/answer", json=given, headers=headers))
            count += 1
        return count


def _csrf(reply: httpx.Response) -> str:
    found = re.search(r'name="csrf" (?:content|value)="([0-9a-f]+)"', reply.text)
    if reply.status_code != 200 or found is None:
        raise DataError(f"the annotation page answered {reply.status_code} without a form", where=str(reply.url))
    return found[1]


def _read(reply: httpx.Response) -> Mapping[str, Any]:
    if reply.status_code != 200:
        raise DataError(f"the annotation server answered {reply.status_code}: {reply.text[:200]}", where=str(reply.url))
    state: Mapping[str, Any] = reply.json()
    return state


def _fields(question: Mapping[str, Any], task: str, dice: random.Random) -> dict[str, str | int]:
    """What a scripted annotator says: mostly what the task expects, otherwise anything."""
    said: dict[str, str | int] = {}
    for field in question["fields"]:
        when = field["when"]
        if when is not None and said.get(when[0]) != when[1]:
            continue
        if field["kind"] == "scale":
            said[field["name"]] = dice.randint(field["low"], field["high"])
        elif field["kind"] == "text":
            said[field["name"]] = f"{field['value'].rstrip('.')} here."
        else:
            values: list[str] = [option["value"] for option in field["options"]]
            usual = values[0] if field["name"] == "foil" else EXPECTED.get(task, "")
            said[field["name"]] = usual if usual in values and dice.random() < CERTAIN else dice.choice(values)
    return said
