"""Many annotators at once, and a server that is killed while they work.

    python benchmarks/people_load.py --seconds 60 --annotators 100            SQLite
    python benchmarks/people_load.py --database postgresql                    a PostgreSQL of its own
    python benchmarks/people_load.py --kills 5                                kill -9 of the server under load

Every annotator answers, waits (--think, seconds), answers again. Prints one JSON document: answers per second, the
answer time at the median and the 99th percentile, the processor time of server, database and annotators, and, from the
database, how many acknowledged answers are missing and how many are there twice. The exit code is 1 where one is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from sqlalchemy import select

from creperie.annotation import Database, StudyPlan, invite, open_database, store_study
from creperie.annotation.links import csrf_token, link_of, open_visit
from creperie.annotation.schema import ANSWER, Answer
from creperie.bench import Item, choice, from_items, open_store

STUDY = "load"


@dataclass
class Tally:
    """What the simulated annotators saw."""

    acknowledged: set[str] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    retries: int = 0
    refused: Counter[int] = field(default_factory=Counter)


# -- annotators ------------------------------------------------------------------------------------------------------


@dataclass
class Annotator:
    """A browser reduced to one connection: HTTP/1.1 with keep-alive, opened again when it breaks."""

    port: int
    cookie: str
    tally: Tally
    patient: bool = True  #: sends again what was refused because the server is busy
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Send until an answer comes; the same body every time."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
            f"Cookie: creperie_session={self.cookie}\r\nX-CSRF-Token: {csrf_token(self.cookie)}\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        while True:
            try:
                if self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
                self.writer.write(head.encode() + content)
                status, reply = await self._reply()
                if status not in (500, 503) or not self.patient:
                    return status, reply
                self.tally.refused[status] += 1
                await asyncio.sleep(0.2)
            except (OSError, asyncio.IncompleteReadError):
                self.tally.retries += 1
                if self.writer is not None:
                    self.writer.close()
                self.reader = self.writer = None
                await asyncio.sleep(0.2)

    async def _reply(self) -> tuple[int, Any]:
        assert self.reader is not None
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split(" ", 2)[1])
        length = re.search(r"(?i)content-length: (\d+)", head)
        body = await self.reader.readexactly(int(length[1]) if length else 0)
        return status, json.loads(body) if body else None

    async def work(self, until: float, think: float) -> None:
        dice = random.Random(self.cookie)
        await asyncio.sleep(dice.random() * max(think, 10.0))  # they come within ten seconds
        _, state = await self.post("/api/next", {})
        while time.monotonic() < until and state and state.get("question"):
            key = secrets.token_hex(12)
            body = {
                "slot": state["question"]["slot"],
                "key": key,
                "fields": {"verdict": dice.choice(["false", "true"])},
            }
            start = time.monotonic()
            status, reply = await self.post("/api/answer", body)
            if status == 200:
                self.tally.times.append(time.monotonic() - start)
                self.tally.acknowledged.add(key)
                state = reply
            else:
                self.tally.refused[status] += 1
                _, state = await self.post("/api/next", {})
            if think:
                await asyncio.sleep(dice.uniform(0.5, 1.5) * think)
        if self.writer is not None:
            self.writer.close()


# -- the server ------------------------------------------------------------------------------------------------------


class Server:
    """`creperie annotate serve` in a process of its own, which can be killed."""

    def __init__(self, place: str, port: int) -> None:
        self.command = [sys.executable, "-c", "from creperie.cli.app import main; main()", "annotate", "serve"]
        self.command += ["--db", place, "--port", str(port)]
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise TimeoutError("the server did not start")

    def end(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(60)


def processor_seconds(pid: int, *, children: bool = False) -> float:
    """What a process has used so far; with `children`, also those that it started."""
    used = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            own, fields = path.parent.name, path.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(own) == pid or (children and int(fields[1]) == pid):
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


async def kill_now_and_then(server: Server, kills: int, seconds: float) -> None:
    for _ in range(kills):
        await asyncio.sleep(seconds / (kills + 1))
        server.end(signal.SIGKILL)
        await asyncio.to_thread(server.start)


# -- databases -------------------------------------------------------------------------------------------------------


@contextmanager
def database(kind: str, place: str | None = None) -> Iterator[tuple[str, int]]:
    """A fresh database, and the process that runs it. PostgreSQL runs in a temporary folder, as durable as ever."""
    with nullcontext(place) if place else tempfile.TemporaryDirectory(dir="/tmp") as folder:
        if kind == "sqlite":
            yield f"{folder}/people.db", 0
            return
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        port = free_port()
        root = os.geteuid() == 0
        as_user = ["runuser", "-u", "postgres", "--"] if root else []
        if root:
            shutil.chown(folder, "postgres")
        data = f"{folder}/data"

        def call(*command: str) -> None:
            subprocess.run([*as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder)

        call(f"{binaries}/initdb", "-D", data, "-A", "trust", "-U", "creperie", "-E", "UTF8")
        options = f"-h 127.0.0.1 -p {port} -k {folder}"
        call(f"{binaries}/pg_ctl", "-D", data, "-l", f"{folder}/log", "-w", "-o", options, "start")
        try:
            pid = int(Path(data, "postmaster.pid").read_text().split()[0])
            yield f"postgresql://creperie@127.0.0.1:{port}/postgres", pid
        finally:
            call(f"{binaries}/pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prepare(db: Database, annotators: int, questions: int) -> list[str]:
    """A study with room for everybody; the cookies of the annotators' sessions."""
    items = [
        Item(str(n), f"s{n % 7}", ("x.png",), (f"caption {n}", f"foil {n}"), choice(1, 1)) for n in range(questions)
    ]
    pictures = tempfile.mkdtemp(prefix="people-load-")
    Image.new("RGB", (8, 8)).save(f"{pictures}/x.png")
    bench = from_items("load", items, images=open_store(pictures))
    store_study(db, STUDY, bench, StudyPlan("foil-check", practice=0, overlap=max(2, annotators // 4)))
    return cookies_of(db, STUDY, annotators)


def cookies_of(db: Database, study: str, annotators: int) -> list[str]:
    """New annotators of a study, each with an open session."""
    invited = [i.token for i in invite(db, study, annotators)]
    with db.write() as session:
        return [open_visit(session, who.link) for token in invited if (who := link_of(session, token))]


def checked(db: Database, tally: Tally) -> dict[str, Any]:
    """What the database holds against what was acknowledged."""
    with db.read() as session:
        rows = session.execute(
            select(Answer.key, Answer.annotator_id, Answer.question_id, Answer.slot_id, Answer.kind)
        ).all()
    stored = Counter(row.key for row in rows if row.kind == ANSWER)
    places = Counter((row.annotator_id, row.question_id) for row in rows)
    slots = Counter(row.slot_id for row in rows)
    return {
        "stored": sum(stored.values()),
        "lost": len(tally.acknowledged - set(stored)),
        "doubled": sum(n > 1 for n in stored.values())
        + sum(n > 1 for n in places.values())
        + sum(n > 1 for n in slots.values()),
    }


async def load(options: argparse.Namespace, cookies: list[str], server: Server) -> tuple[Tally, float]:
    tally = Tally()
    start = time.monotonic()
    until = start + options.seconds
    workers = [Annotator(server.port, cookie, tally).work(until, options.think) for cookie in cookies]
    await asyncio.gather(*workers, kill_now_and_then(server, options.kills, options.seconds))
    return tally, time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--annotators", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=1.0, help="seconds between two answers, on average")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--questions", type=int, default=1000)
    options = parser.parse_args()
    with database(options.database) as (place, postmaster):
        db = open_database(place)
        cookies = prepare(db, options.annotators, options.questions)
        server = Server(place, free_port())
        server.start()
        assert server.process is not None
        used = {"client": -time.process_time(), "server": -processor_seconds(server.process.pid)}
        used["database"] = -processor_seconds(postmaster, children=True) if postmaster else 0.0
        try:
            tally, took = asyncio.run(load(options, cookies, server))
            used["client"] += time.process_time()
            used["server"] += processor_seconds(server.process.pid)
            used["database"] += processor_seconds(postmaster, children=True) if postmaster else 0.0
        finally:
            server.end(signal.SIGTERM)
        stored = checked(db, tally)
        db.close()
    times = sorted(tally.times)
    slowest = [1000 * times[min(len(times) - 1, int(share * len(times)))] if times else None for share in (0.5, 0.99)]
    document = {
        **{name: getattr(options, name) for name in ("database", "annotators", "seconds", "think", "kills")},
        "acknowledged": len(tally.acknowledged),
        "answers_per_second": round(len(times) / took, 1),
        **{name: value and round(value, 1) for name, value in zip(("median_ms", "p99_ms"), slowest, strict=True)},
        "processor_seconds": {name: round(value, 1) for name, value in used.items()},
        # A server that was killed took its count along.
        "answers_per_server_second": None if options.kills else round(len(times) / max(0.01, used["server"]), 1),
        "retries": tally.retries,
        "refused": dict(tally.refused),
        **stored,
    }
    print(json.dumps(document, indent=2))
    return 1 if stored["lost"] or stored["doubled"] else 0


if __name__ == "__main__":
    sys.exit(main())
