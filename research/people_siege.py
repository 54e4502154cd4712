"""What the annotation server does when it is pressed: half-open connections, huge pictures, a locked database.

    python research/people_siege.py [--smallest]

Starts the server of `creperie annotate serve` on an SQLite file and prints one JSON document: how it answers a static
file while 1,100 connections are half open; how much memory six pictures of 88 megapixels take when they are asked for
at once; what 45 annotators get, and how soon a static file comes, while another process holds the database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from PIL import Image

from creperie.annotation import StudyPlan, open_database, store_study
from creperie.bench import Item, choice, from_items, open_store

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from people_load import Annotator, Server, Tally, cookies_of, free_port

HALF_OPEN, PICTURES, ANNOTATORS = 1100, 6, 45
SIZE, PROBES = (11000, 8000), 20  #: of a picture; of static files while the database is locked


def resident_mb(pid: int, name: str) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


async def get(port: int, path: str, cookie: str = "") -> tuple[int, float]:
    """Status and seconds of a request."""
    start = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: creperie_session={cookie}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    reply = await reader.read()
    writer.close()
    return int(reply.split(b" ", 2)[1]), round(time.monotonic() - start, 3)


async def half_open(port: int) -> dict[str, Any]:
    opened = []
    for _ in range(HALF_OPEN):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        opened.append(one)
    await asyncio.sleep(2 if HALF_OPEN > 1 else 0)
    for one in opened:
        try:
            one.send(b"POST /api/next HTTP/1.1\r\nHost: ")
        except OSError:  # closed by the server: too many from one address
            continue
    # This machine has too many connections open, so it has to wait until the server closes them.
    start, answer = time.monotonic(), None
    while answer is None and time.monotonic() < start + 60:
        try:
            answer = await get(port, "/static/work.js")
        except (OSError, IndexError):
            await asyncio.sleep(0.2)
    for one in opened:
        one.close()
    return {"connections": HALF_OPEN, "static_after_s": round(time.monotonic() - start, 1), "answer": answer}


async def pictures(port: int, cookies: list[str], pid: int) -> dict[str, Any]:
    people = [Annotator(port, cookie, Tally()) for cookie in cookies[:PICTURES]]
    slots = [(await one.post("/api/next", {}))[1]["question"]["slot"] for one in people]
    before = resident_mb(pid, "VmRSS")
    asked = [get(port, f"/picture/{slot}/0", c) for slot, c in zip(slots, cookies, strict=False)]
    replies = await asyncio.gather(*asked)
    return {
        "replies": Counter(str(status) for status, _ in replies),
        "slowest_s": max(seconds for _, seconds in replies),
        "before_mb": round(before),
        "most_mb": round(resident_mb(pid, "VmHWM")),
    }


async def locked(port: int, cookies: list[str], place: str) -> dict[str, Any]:
    people = [Annotator(port, cookie, Tally(), patient=False) for cookie in cookies]
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    async def static() -> list[float]:
        times = []
        for _ in range(PROBES):
            times.append((await get(port, "/static/work.js"))[1])
            await asyncio.sleep(0.5)
        return times

    asked = asyncio.gather(*(one.post("/api/next", {}) for one in people))
    times = await static()
    if PROBES > 1:  # the smallest siege does not wait until the server gives up
        await asked
    other.execute("COMMIT")
    replies = Counter(str(status) for status, _ in await asked)
    other.close()
    start = time.monotonic()
    after = Counter(str(status) for status, _ in await asyncio.gather(*(one.post("/api/next", {}) for one in people)))
    done = {"replies": replies, "static_slowest_s": max(times), "afterwards": after}
    return done | {"afterwards_s": round(time.monotonic() - start, 2)}


def main() -> int:
    global HALF_OPEN, PICTURES, ANNOTATORS, SIZE, PROBES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="one of everything: only to see that it runs")
    if parser.parse_args().smallest:
        HALF_OPEN, PICTURES, ANNOTATORS, SIZE, PROBES = 1, 1, 1, (8, 8), 1
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        for n in range(PICTURES):
            Image.new("RGB", SIZE, (n * 40, 90, 120)).save(folder / f"{n}.png", compress_level=1)
        items = [Item(str(n), "s", (f"{n % PICTURES}.png",), ("a", "b"), choice(1, 1)) for n in range(100)]
        place = f"{folder}/people.db"
        db = open_database(place)
        bench = from_items("siege", items, images=open_store(str(folder)))
        store_study(db, "siege", bench, StudyPlan("foil-check", practice=0, overlap=2))
        cookies = cookies_of(db, "siege", ANNOTATORS)
        db.close()
        server = Server(place, free_port())
        server.start()
        assert server.process is not None
        pid = server.process.pid
        try:
            found = {
                "pictures": asyncio.run(pictures(server.port, cookies, pid)),
                "locked": asyncio.run(locked(server.port, cookies, place)),
                "half_open": asyncio.run(half_open(server.port)),
            }
        finally:
            server.end(signal.SIGTERM)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
