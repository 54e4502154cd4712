"""A small benchmark in the shape of Hit or Be Hit, and runs on it whose preferences are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from creperie.bench import Benchmark, Item, choice, from_items, save
from creperie.metrics import MetricSettings
from creperie.scoring import Run, layout_of_bench, score_table
from creperie.scoring.run import VERSION

VERBS = {"push": ("pushes", "pushed"), "chase": ("chases", "chased"), "paint": ("paints", "painted")}
NOUNS = ("robot", "farmer", "goat", "duck", "singer", "pilot")


def _item(k: int, simplified: bool, rng: np.random.Generator) -> Item:
    first, second = rng.choice(NOUNS, 2, replace=False)
    active, passive = VERBS[str(rng.choice(list(VERBS)))]
    if not simplified:
        first, second = f"tall {first}", f"small {second}"
    captions = (
        f"A {first} {active} a {second}.",
        f"A {second} is {passive} by a {first}.",
        f"A {second} {active} a {first}.",
        f"A {first} is {passive} by a {second}.",
    )
    tags = {"construction": "passive", "simplified": simplified, "source": "web" if k % 3 else "film"}
    subset = "passive-simplified" if simplified else "passive"
    return Item(str(k), subset, (f"picture-{k}.png",), captions, choice(2, 2), tags)


@pytest.fixture(scope="session")
def events() -> Benchmark:
    """60 pictures, each with a long and a simplified item of two captions and two foils."""
    rng = np.random.default_rng(5)
    return from_items("events", [_item(k, simple, rng) for k in range(60) for simple in (False, True)])


@pytest.fixture(scope="session")
def make_run(events: Benchmark) -> Callable[..., Run]:
    """A run whose captions lead by `lead`, and by `simple` more where they are simplified."""

    def made(model: str, lead: float, simple: float = 0.0, seed: int = 0, bench: Benchmark = events) -> Run:
        rng = np.random.default_rng(seed)
        layout = layout_of_bench(bench)
        scores = rng.normal(0, 1, (len(bench), 4)).astype(np.float32)
        easy = np.array([bool(item.tags["simplified"]) for item in bench])
        scores[:, :2] += (lead + simple * easy)[:, None].astype(np.float32)
        table = score_table(bench, layout, {"image_text": scores.ravel()})
        document = {
            "creperie": VERSION,
            "name": f"events.{model.replace(':', '-')}",
            "model": {"uri": model},
            "benchmark": {"name": bench.name, "hash": bench.hash},
            "tasks": ["itt"],
            "settings": {"ties": MetricSettings().ties},
            "results": [],
            "findings": [],
        }
        return Run(document, table)

    return made


@pytest.fixture
def saved(events: Benchmark, make_run: Callable[..., Run], tmp_path: Path) -> tuple[Path, list[Path]]:
    """The benchmark and three runs, on disk."""
    save(events, tmp_path / "events")
    leads = {"fake:good": 0.9, "fake:fair": 0.4, "fake:poor": -0.1}
    runs = [make_run(m, lead, 0.5, k).save(tmp_path / "runs") for k, (m, lead) in enumerate(leads.items())]
    return tmp_path / "events", [r.path for r in runs if r.path]
