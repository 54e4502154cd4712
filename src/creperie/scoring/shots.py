"""Demonstrations for few-shot questions: drawn from the subset that is asked about, and taken out of what is tested."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from creperie.bench import Benchmark, Item, open_image, save
from creperie.core import Progress, UsageError, silent, write_text

SHOTS_FILE = "shots.toml"


def draw_shots(
    bench: Benchmark, count: int, out: str | Path, *, seed: int = 0, progress: Progress = silent
) -> Benchmark:
    """Write `count` demonstrations per subset, with their images, to `out`/shots.toml for `?shots=`. `out` itself is
    the benchmark without them, which is returned. Captions are shown in a drawn order."""
    folder, keep = Path(out), np.ones(len(bench), bool)
    drawn: list[tuple[Item, list[int]]] = []
    items = list(bench)
    for subset in bench.subsets:
        dice = random.Random(f"{seed} {subset}")
        mine = (i for i, item in enumerate(items) if item.subset == subset and len(item.images) == 1)
        able = [i for i in mine if sum(items[i].match[0]) in (1, len(items[i].captions) - 1)]
        if len(able) <= count:
            raise UsageError(
                f"subset {subset!r} has {len(able)} items with one image and one answer, {count} demonstrations and "
                "something to test are wanted",
                where=bench.name,
                hint="ask for fewer",
            )
        for i in dice.sample(able, count):
            keep[i] = False
            drawn.append((items[i], dice.sample(range(len(items[i].captions)), len(items[i].captions))))
    rest = save(bench.filter(keep, why=f"{count} demonstrations per subset, seed {seed}"), folder, progress=progress)
    (folder / "shots").mkdir()
    records = []
    for number, (item, order) in enumerate(drawn, 1):
        image = f"shots/{number}.png"
        open_image(bench.images, item.images[0]).convert("RGB").save(folder / image)
        told = {"subset": item.subset, "id": item.id, "image": image, "captions": [item.captions[k] for k in order]}
        fits = [place for place, k in enumerate(order, 1) if item.match[0][k]]
        lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in {**told, "fits": fits}.items())
        records.append("\n".join(["[[demonstration]]", *lines, ""]))
    write_text(folder / SHOTS_FILE, "\n".join(records))
    return rest
