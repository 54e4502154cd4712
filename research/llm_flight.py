"""How many requests LLM making keeps in flight, beside the number that is configured.

    python research/llm_flight.py [--captions 600] [--concurrency 16] [--latency 50,150] [--quick]

A chat server on loopback, in a process of its own, answers every request after a random time. `creperie make` and
`creperie validate` run against it as a user would run them. The server says how many requests were in flight, on
average over time: in the whole, from the first request to the last answer, and in steady state, between the first
tenth of the answers and the last. The ideal is the configured number; in requests a second, that number over the mean
latency. Exit code 1 where less than 95 % of it is reached in steady state.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WANTED = 0.95
THINGS = ["dog", "cat", "horse", "boat", "kite", "bench", "child", "bird", "truck", "ball"]
MAKERS = ("llm:replace-object", "llm:paraphrase")


# -- the server ------------------------------------------------------------------------------------------------------


def answer_to(body: dict[str, Any]) -> dict[str, Any]:
    """An obedient answer to one of our prompts. The name of the model tells prompts apart that are given the same."""
    first = body["messages"][0]["content"]
    given = json.loads(first.rsplit("\nInput: ", 1)[1].removesuffix("\nOutput:"))
    caption = given.get("caption", "")
    if "second" in given:
        return {"reason": "alike", "verdict": "yes", "correction": "NA"}
    if "new" in given:
        return {"sentence": caption.replace(given["selected"], given["new"], 1)}
    if "selected" in given:
        return {"new": THINGS[(THINGS.index(given["selected"]) + 5) % len(THINGS)]}
    if body["model"] == "paraphrase":
        return {"plan": "turn it round", "paraphrase": f"There we see {caption}"}
    return {"concepts": [w for w in caption.rstrip(".").split() if w in THINGS]}


@dataclass
class Meter:
    """What was in flight when."""

    changes: list[tuple[float, int]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def change(self, by: int) -> None:
        self.changes.append((time.perf_counter(), by))

    def report(self) -> dict[str, float]:
        ends = [t for t, by in self.changes if by < 0]
        whole = (self.changes[0][0], ends[-1])
        steady = (ends[len(ends) // 10], ends[len(ends) * 9 // 10])
        within = sum(steady[0] < t <= steady[1] for t in ends)
        return {
            "requests": len(ends),
            "seconds": whole[1] - whole[0],
            "mean_latency": sum(self.waited) / len(self.waited),
            "in_flight": self._mean(*whole),
            "in_flight_steady": self._mean(*steady),
            "per_second_steady": within / (steady[1] - steady[0]),
        }

    def _mean(self, begin: float, end: float) -> float:
        area, flying, last = 0.0, 0, begin
        for t, by in self.changes:
            at = min(max(t, begin), end)
            area += flying * (at - last)
            last, flying = at, flying + by
        return (area + flying * (end - last)) / (end - begin)


class Server:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high, self.rng, self.meter = low, high, random.Random(0), Meter()

    async def serve(self) -> None:
        server = await asyncio.start_server(self.talk, "127.0.0.1", 0, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await server.serve_forever()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(head.split("content-length:")[1].split("\r\n")[0]) if "content-length:" in head else 0
                body = await reader.readexactly(size)
                data = json.dumps(await self.answer(body) if size else self.told()).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def told(self) -> dict[str, float]:
        """What was measured since it was asked for last."""
        report, self.meter = self.meter.report(), Meter()
        return report

    async def answer(self, body: bytes) -> dict[str, Any]:
        self.meter.change(+1)
        begin = time.perf_counter()
        # what the answer takes to write is part of the latency, and so is what a busy machine adds to a sleep
        text = json.dumps(answer_to(json.loads(body)))
        await asyncio.sleep(max(0.0, self.rng.uniform(self.low, self.high) - (time.perf_counter() - begin)))
        self.meter.change(-1)
        self.meter.waited.append(time.perf_counter() - begin)
        usage = {"prompt_tokens": 300, "completion_tokens": 20}
        return {"choices": [{"message": {"content": text}}], "usage": usage}


# -- the client ------------------------------------------------------------------------------------------------------


def creperie(*args: str, cache: Path) -> None:
    """The command as a user runs it; exit code 1 is an answer too."""
    code = "from creperie.cli.app import main; main()"
    environment = {**os.environ, "CREPERIE_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code, *args, "--json"], env=environment, capture_output=True, text=True
    )
    if done.returncode > 1:
        raise SystemExit(done.stderr)


def captions(n: int) -> str:
    rng = random.Random(1)
    lines = []
    for k in range(n):
        one, two = rng.sample(THINGS, 2)
        lines.append(f"A {one} next to a {two} in picture {k}.\n")
    return "".join(lines)


def row(name: str, told: dict[str, float], concurrency: int) -> dict[str, Any]:
    ideal = concurrency / told["mean_latency"]
    return {
        "what": name,
        "requests": told["requests"],
        "seconds": round(told["seconds"], 2),
        "mean_latency_ms": round(1000 * told["mean_latency"], 1),
        "ideal_per_s": round(ideal, 1),
        "per_s": round(told["per_second_steady"], 1),
        "in_flight": round(told["in_flight"], 2),
        "in_flight_steady": round(told["in_flight_steady"], 2),
        "of_ideal": round(told["in_flight"] / concurrency, 3),
        "of_ideal_steady": round(told["in_flight_steady"] / concurrency, 3),
    }


def measure(port: int, n: int, concurrency: int) -> list[dict[str, Any]]:
    rows = []

    def told() -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            return dict(json.load(answer))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "captions.txt").write_text(captions(n))
        for maker in MAKERS:
            kind = maker.removeprefix("llm:")
            uri = f"api:{kind}?base_url=http://127.0.0.1:{port}/v1&concurrency={concurrency}"
            given = ("--captions", str(folder / "captions.txt"), "--model", uri, "--out", str(folder / kind))
            creperie("make", maker, *given, cache=folder / "cache")
            rows.append(row(maker, told(), concurrency))
        # another cache: making has asked the same about the same pairs
        creperie("validate", str(folder / "paraphrase"), "--model", uri, cache=folder / "other")
        rows.append(row("validate", told(), concurrency))
    return rows


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--captions", type=int, default=600)
    arguments.add_argument("--concurrency", type=int, default=16)
    arguments.add_argument("--latency", default="50,150", metavar="LOW,HIGH", help="milliseconds")
    arguments.add_argument("--quick", action="store_true", help="200 captions")
    arguments.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    low, high = (float(t) / 1000 for t in chosen.latency.split(","))
    if chosen.serve:
        asyncio.run(Server(low, high).serve())
        return 0
    command = [sys.executable, __file__, "--serve", "--latency", chosen.latency]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        rows = measure(port, 200 if chosen.quick else chosen.captions, chosen.concurrency)
    finally:
        server.kill()
        server.wait()
    load = os.getloadavg()[0]
    print(
        json.dumps(
            {"concurrency": chosen.concurrency, "load": round(load, 1), "wanted": WANTED, "runs": rows}, indent=2
        )
    )
    return 0 if all(r["of_ideal_steady"] >= WANTED for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
