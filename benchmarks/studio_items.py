"""Processor seconds that the studio spends on filters over 100,000 items, page and first cards included.

python benchmarks/studio_items.py [ITEMS]

The first figure of a line is that of the request's thread, which other work on the machine does not change; the
second is that of the whole process, with what is prepared meanwhile.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient

from creperie.bench import Item, choice, from_items, save
from creperie.reporting import make_studio
from creperie.reporting.studio.pages import Studio
from creperie.reporting.studio.query import StudioQuery
from creperie.scoring.replies import answered_run

WORDS = ("&words=CAT 99", "&words=dog -99 sees", "&subset=s3&words=cat 99")
QUERIES = ("", "&subset=s3", *WORDS, "&tag=side=left", "&at=s3/3", "&show=disagree")
ATTACKERS = ("length-words", "length-chars", "surface", "negation")
shown = Studio.items
spent: list[float] = []


def timed(studio: Studio, query: StudioQuery) -> str:
    """Show the items; keep the seconds of this thread."""
    start = time.thread_time()
    page = shown(studio, query)
    spent.append(time.thread_time() - start)
    return page


def main(count: int) -> None:
    """Build a benchmark, ask for each filter five times, and print the seconds of the first and the median answer."""
    items = (
        Item(str(i), f"s{i % 9}", (), (f"a dog sees cat {i}", f"cat {i} sees a dog"), choice(1, 1), {"side": side})
        for i in range(count)
        for side in ("left" if i % 2 else "right",)
    )
    Studio.items = timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        bench = save(from_items("many", items), Path(folder) / "many")
        for seed in range(3):  # three models
            scores = np.random.default_rng(seed).normal(size=2 * count).astype(np.float32)
            answered_run(bench, scores, f"toy:{seed}").save(Path(folder) / "runs")
        client = TestClient(make_studio(folder, "token", hosts=("testserver",)))
        client.get("/?token=token")
        for query in ("", *QUERIES, *(f"&attacker={name}" for name in ATTACKERS)):
            begun, whole = len(spent), []
            for _ in range(1 if not begun else 5):
                start = time.process_time()
                answer = client.get(f"/items?name=many{query}")
                whole.append(time.process_time() - start)
                assert answer.status_code == 200, answer.text
            took = spent[begun:]
            middle = f", median {sorted(took)[2]:.3f} s (process {sorted(whole)[2]:.3f} s)" if begun else ""
            name = query or ("no filter" if begun else "first page")
            print(f"{name:26} first {took[0]:.3f} s (process {whole[0]:.3f} s){middle}")
            if not begun:
                time.sleep(5)  # as long as a reader looks at the page before choosing a filter


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
