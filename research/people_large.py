"""A study with 6,000 answers: how long the import takes and what others notice, the dashboard, the adjudication.

    python research/people_large.py                      SQLite
    python research/people_large.py --database postgresql

2,000 questions of three answers each are imported with `creperie annotate import` while twenty annotators of another
study of the same server go on answering. Then an owner opens the pages, after a change and again. Prints one JSON
document; processor seconds are those of the process that does the work and do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from people_load import STUDY, Annotator, Server, Tally, database, free_port, prepare, processor_seconds

from creperie.annotation import StudyPlan, open_database, store_study
from creperie.annotation.access import set_owner
from creperie.bench import Item, choice, from_items

QUESTIONS, PEOPLE, PASSWORD = 2000, ("ada", "ben", "cy"), "bold otter walks"


def answers(path: Path) -> None:
    """A file as `export` writes it: three people who agree on most questions."""
    dice = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for n in range(QUESTIONS):
            for who in PEOPLE:
                row = {"study": "large", "subset": f"s{n % 7}", "id": str(n), "question": n, "source": "large"}
                row |= {"kind": "main", "annotator": who, "event": "answer", "key": f"{who}-{n:08d}", "comment": ""}
                row |= {"value": {"verdict": dice.choice(["false"] * 9 + ["true"])}, "seconds": 2.5}
                file.write(json.dumps({**row, "at": "2026-01-01T00:00:00+00:00"}) + "\n")


class Owner:
    """A browser of an owner, as far as it is needed."""

    def __init__(self, server: Server) -> None:
        assert server.process is not None
        self.port, self.pid, self.cookies = server.port, server.process.pid, dict[str, str]()
        page = self.get("/owner/login")[0]
        token = re.search(r'name="csrf" content="([0-9a-f]+)"', page)
        assert token is not None
        self.get("/owner/login", urlencode({"csrf": token[1], "name": "ana", "password": PASSWORD}))

    def get(self, path: str, form: str | None = None) -> tuple[str, dict[str, float]]:
        """A page, the seconds until it was there and the server's processor seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        head = {"Accept": "text/html", "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())}
        if form is not None:
            head["Content-Type"] = "application/x-www-form-urlencoded"
        start, used = time.monotonic(), processor_seconds(self.pid)
        connection.request("GET" if form is None else "POST", path, form, head)
        reply = connection.getresponse()
        text = reply.read().decode()
        assert reply.status in (200, 303), (path, reply.status)
        for name, value in reply.getheaders():
            if name.lower() == "set-cookie":
                self.cookies |= [value.partition(";")[0].split("=", 1)]
        took = {"seconds": time.monotonic() - start, "processor": processor_seconds(self.pid) - used}
        return text, {name: round(value, 2) for name, value in took.items()}


async def import_beside(place: str, file: Path, cookies: list[str], port: int) -> dict[str, Any]:
    """Import while others work; how long their answers took before and meanwhile."""
    before, meanwhile = Tally(), Tally()
    await asyncio.gather(*(Annotator(port, c, before).work(time.monotonic() + 4, 0.5) for c in cookies))
    command = [sys.executable, "-c", "from creperie.cli.app import main; main()", "annotate", "import", "large"]
    start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([*command, str(file), "--db", place], stdout=subprocess.DEVNULL)
    beside = [asyncio.create_task(Annotator(port, c, meanwhile).work(start + 300, 0.5)) for c in cookies]
    while process.poll() is None:
        await asyncio.sleep(0.05)
    took = time.monotonic() - start
    for one in beside:
        one.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    longest = {"before": max(before.times), "meanwhile": max(meanwhile.times, default=0.0)}
    return {
        "import": {"seconds": round(took, 1), "processor": round(spent, 1)},
        "others_longest_answer": {name: round(value, 2) for name, value in longest.items()},
        "others_refused": sum(meanwhile.refused.values()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    options = parser.parse_args()
    with database(options.database) as (place, _), tempfile.TemporaryDirectory() as folder:
        db = open_database(place)
        set_owner(db, "ana", PASSWORD)
        cookies = prepare(db, 20, 1000)
        items = [
            Item(str(n), f"s{n % 7}", ("x.png",), (f"caption {n}", f"foil {n}"), choice(1, 1)) for n in range(QUESTIONS)
        ]
        store_study(db, "large", from_items("large", items), StudyPlan("foil-check", practice=0, overlap=3))
        file = Path(folder, "answers.jsonl")
        answers(file)
        server = Server(place, free_port())
        server.start()
        try:
            document = asyncio.run(import_beside(place, file, cookies, server.port))
            owner = Owner(server)
            owner.get(f"/owner/studies/{STUDY}")  # what Python has to load is loaded
            for name, path in (
                ("dashboard", "/owner/studies/large"),
                ("dashboard_again", "/owner/studies/large"),
                ("adjudication", "/owner/studies/large/adjudicate"),
                ("adjudication_again", "/owner/studies/large/questions/1"),
            ):
                document[name] = owner.get(path)[1]
        finally:
            server.end(signal.SIGTERM)
            db.close()
    print(json.dumps({"database": options.database, "answers": QUESTIONS * len(PEOPLE), **document}, indent=2))
    return 0


if __name__ == "__main__":
    assert STUDY != "large"
    sys.exit(main())
