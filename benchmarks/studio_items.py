"""Seconds that the studio takes to answer filters over 100,000 items, page and first cards included.

python benchmarks/studio_items.py [ITEMS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from fastapi.testclient import TestClient

from creperie.bench import Item, choice, from_items, save
from creperie.reporting import make_studio

QUERIES = ("", "&subset=s3", "&words=CAT 99", "&subset=s3&words=cat 99", "&tag=side=left", "&at=s3/3")
ATTACKERS = ("length-words", "length-chars", "surface", "negation")


def main(count: int) -> None:
    """Build a benchmark, ask for each filter five times, and print the first and the median answer's seconds."""
    items = (
        Item(str(i), f"s{i % 9}", (), (f"a dog sees cat {i}", f"cat {i} sees a dog"), choice(1, 1), {"side": side})
        for i in range(count)
        for side in ("left" if i % 2 else "right",)
    )
    with tempfile.TemporaryDirectory() as folder:
        save(from_items("many", items), Path(folder) / "many")
        client = TestClient(make_studio(folder, "token", hosts=("testserver",)))
        client.get("/?token=token")
        start = time.perf_counter()
        client.get("/items?name=many")
        print(f"{'first page':30} {time.perf_counter() - start:12.3f} s")
        time.sleep(5)  # as long as a reader looks at the page before choosing a filter
        for query in (*QUERIES, *(f"&attacker={name}" for name in ATTACKERS)):
            taken = []
            for _ in range(5):
                start = time.perf_counter()
                answer = client.get(f"/items?name=many{query}")
                taken.append(time.perf_counter() - start)
                assert answer.status_code == 200, answer.text
            print(f"{query or 'no filter':30} first {taken[0]:6.3f} s, median {sorted(taken)[2]:6.3f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
