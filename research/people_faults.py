"""Annotators at work while something breaks: is every acknowledged answer there, once?

    python research/people_faults.py                                        both databases, every fault
    python research/people_faults.py --only "sqlite kill" --seconds 10
    python research/people_faults.py --write docs/results-studies.md                 also put the table there

Faults: the server killed (kill -9), the database killed and started again (PostgreSQL), a disk without room that gets
some again (a small tmpfs: needs root), and the server's clock jumping by hours, both ways. The annotators of
people_load.py send an answer again, with the same key, until it is acknowledged. Prints a Markdown table; the exit code
is 1 where an answer is lost or doubled, and where a fault did not bite: nobody noticed it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from creperie.annotation import open_database

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from people_load import Annotator, Server, Tally, checked, database, free_port, prepare

HEAD = ("database", "fault", "acknowledged", "stored", "lost", "doubled", "refused and sent again", "connections lost")
#: A server whose clock can be set: what it is off by stands in a file.
CLOCK = """
import os, time
real = time.time
def off():
    try:
        return float(open({file!r}).read() or 0)
    except OSError:
        return 0.0
time.time = lambda: real() + off()
from creperie.cli.app import main
main()
"""
Fault = Callable[[SimpleNamespace], Awaitable[None]]


async def kill(at: SimpleNamespace) -> None:
    """kill -9 of the server, three times."""
    for _ in range(3):
        await asyncio.sleep(at.seconds / 4)
        at.server.end(signal.SIGKILL)
        await asyncio.to_thread(at.server.start)


async def restart(at: SimpleNamespace) -> None:
    """The database server is killed and started again, twice."""
    for _ in range(2):
        await asyncio.sleep(at.seconds / 3)
        await asyncio.to_thread(at.database.restart)


async def disk(at: SimpleNamespace) -> None:
    """The disk is full for a quarter of the time."""
    await asyncio.sleep(at.seconds / 3)
    filler = Path(at.folder, "filler")
    with filler.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(b"0" * size)
            except OSError:
                size //= 2
    before = len(at.tally.acknowledged)
    await asyncio.sleep(at.seconds / 4)
    at.notes.append(f"{len(at.tally.acknowledged) - before} taken while full")
    filler.unlink()
    if at.database.is_down():
        await asyncio.to_thread(at.database.restart)


async def clock(at: SimpleNamespace) -> None:
    """Four hours ahead, four hours back, an hour ahead, right again."""
    for hours in (4, -4, 1, 0):
        await asyncio.sleep(at.seconds / 5)
        Path(at.folder, "clock").write_text(str(3600 * hours))


FAULTS: dict[str, Fault] = {"kill": kill, "restart": restart, "disk": disk, "clock": clock}
WORDS = {
    "kill": "`kill -9` of the server, three times",
    "restart": "the database killed and started again, twice",
    "disk": "a full disk",
    "clock": "clock 4 h ahead, 4 h back, 1 h ahead",
}


@contextmanager
def place_for(kind: str, fault: str) -> Iterator[tuple[str, str, SimpleNamespace]]:
    """A folder, a database in it, and how that is started again."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        small = fault == "disk"
        if small:
            size = "12m" if kind == "sqlite" else "160m"
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", folder], check=True)
        try:
            with database(kind, folder) as (place, pid):
                yield place, folder, _control(folder, pid)
        finally:
            if small:
                subprocess.run(["umount", "-l", folder], check=True)


def _control(folder: str, pid: int) -> SimpleNamespace:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    options = (Path(folder) / "data" / "postmaster.opts").read_text().split(" ", 1)[1] if pid else ""
    listen = re.sub(r'"-D" "[^"]*"', "", options).replace('"', "").strip()

    def control(*words: str) -> int:
        own = [*user, f"{binaries[-1]}/pg_ctl", "-D", f"{folder}/data", *words]
        return subprocess.run(own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder).returncode

    def restart_it() -> None:
        control("-m", "immediate", "-w", "stop")
        assert control("-l", f"{folder}/log", "-w", "-o", listen, "start") == 0, "PostgreSQL does not start again"

    return SimpleNamespace(restart=restart_it, is_down=lambda: bool(pid) and control("status") != 0)


async def press(at: SimpleNamespace, cookies: list[str], fault: Fault, think: float) -> None:
    until = time.monotonic() + at.seconds
    workers = [Annotator(at.server.port, cookie, at.tally).work(until, think) for cookie in cookies]
    await asyncio.gather(*workers, fault(at))


def provoke(kind: str, fault: str, options: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    with place_for(kind, fault) as (place, folder, control):
        db = open_database(place)
        cookies = prepare(db, options.annotators, 1000)
        db.close()  # its connections; the database may be restarted meanwhile
        server = Server(place, free_port())
        if fault == "clock":
            server.command[2] = CLOCK.format(file=f"{folder}/clock")
        at = SimpleNamespace(server=server, database=control, folder=folder, tally=Tally(), seconds=options.seconds)
        at.notes = []
        server.start()
        try:
            asyncio.run(press(at, cookies, FAULTS[fault], options.think))
        finally:
            server.end(signal.SIGTERM)
        stored = checked(db, at.tally)
        db.close()
    row = dict.fromkeys(HEAD, "") | {
        "database": {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[kind],
        "fault": WORDS[fault] + "".join(f" ({note})" for note in at.notes),
        "acknowledged": f"{len(at.tally.acknowledged):,}",
        "refused and sent again": ", ".join(f"{n:,} × {code}" for code, n in sorted(at.tally.refused.items())) or "0",
        "connections lost": at.tally.retries,
        **{name: f"{stored[name]:,}" for name in ("stored", "lost", "doubled")},
    }
    wrong = [name for name in ("lost", "doubled") if stored[name]]
    # A fault that no annotator noticed has tested nothing.
    noticed = at.tally.retries if fault == "kill" else sum(at.tally.refused.values()) + at.tally.retries
    return row, wrong if noticed else [*wrong, "the fault did not bite"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--think", type=float, default=0.2)
    parser.add_argument("--only", default="", help="words that a row must have, such as 'sqlite disk'")
    parser.add_argument("--write", type=Path, help="a page with <!-- faults --> to put the table into")
    options = parser.parse_args()
    rows, wrong = [], []
    for kind in ("sqlite", "postgresql"):
        for fault in FAULTS:
            if (kind, fault) == ("sqlite", "restart") or set(options.only.split()) - {kind, fault}:
                continue
            row, bad = provoke(kind, fault, options)
            rows.append(row)
            wrong += [f"{kind} {fault}: {name}" for name in bad]
            print(row, file=sys.stderr, flush=True)
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    lines += [f"| {' | '.join(str(row[name]) for name in HEAD)} |" for row in rows]
    print("\n".join(lines))
    if options.write:
        text = options.write.read_text(encoding="utf-8")
        table = "<!-- faults -->\n" + "\n".join(lines) + "\n<!-- /faults -->"
        options.write.write_text(re.sub(r"<!-- faults -->.*?<!-- /faults -->", lambda _: table, text, flags=re.S))
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
