"""Write the tables of the docs from the figures that the scripts of this folder left in research/results.

    python research/pages.py

| figures | made by |
|---|---|
| gpu.json | gpu_speed.py --out |
| study-world.json | train study --world --preset large --seeds 3 --arms none,replace,swap,negate,all |
| binding.json | train_binding.py --device cuda --seconds 640 --variants 0,1, and the same with 360, by seconds |
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from first_minute import write

from creperie.world import CLEAN

RESULTS = Path(__file__).resolve().parent / "results"
DOCS = RESULTS.parents[1] / "docs"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text())


def gpu() -> str:
    found = read("gpu.json")
    models = found["models"]
    names = [k for k in next(iter(models.values())) if not k.endswith("stages s") and not k.startswith("decode=fast")]
    rows = [
        [name.removeprefix("exact: "), *(number(m[name]) if name in m else "" for m in models.values())]
        for name in names
    ]
    peak, alone = found["peak TFLOP/s"], found["decoding alone, images/s"]
    resized = ""
    if "one core, resized" in alone:
        resized = (
            f" Decoding and resizing with Pillow alone: {alone['one core, resized']:,} images/s by one core, "
            f"{alone['processes, resized']:,} by a process per core."
        )
    return (
        f"{found['device']} with {found['cores']} CPU cores, torch {found['torch']}, transformers "
        f"{found['transformers']}, TF32 off. Matrix products reach {peak['bfloat16']} TFLOP/s in bfloat16 and "
        f"{peak['float32']} in float32. Decoding alone: {alone['one core']:,} images/s by one core, "
        f"{alone['threads']:,} by threads on three quarters of the cores, {alone['processes']:,} by a process per core."
        f"{resized}\n\n{table(['', *models], rows)}"
    )


def number(value: float) -> str:
    """
    >>> number(1234.5), number(2.345), number(0.000133)
    ('1,234', '2.35', '0.00013')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.5f}"


def gains() -> str:
    """Return what training with template foils adds: template foils rise, clean kinds do not."""
    made = read("study-world.json")["tables"][1]
    shown = ("biased swap", "biased negate", "clean replace", "clean swap", "clean add", "clean negation")
    places = [0, *(made["columns"].index(name) for name in shown)]
    lines = [[line[k].replace("-", "−") for k in places] for line in (made["columns"], *made["rows"])]
    return table(lines[0], lines[1:])


def binding() -> str:
    """Return what CLIP's loss and certified foils reach in the same time, on clean kinds."""
    runs = read("binding.json")["640"]
    clean = [kind for kind in next(iter(runs.values()))["accuracy"] if kind in CLEAN]
    rows = [[kind, *(f"{r['accuracy'][kind]} {r['interval'][kind]}" for r in runs.values())] for kind in clean]
    return table(["test", *(name.removeprefix("large, ") for name in runs)], rows)


def known() -> str:
    """Return how the columns of MIEB's table correlate, as `creperie table` prints it."""
    command = ["creperie", "table", "mieb/1", "--correlate", "--format", "markdown"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip()


def main() -> int:
    for page, mark, made in (
        ("performance.md", "gpu", gpu),
        ("results-training.md", "gains", gains),
        ("results-training.md", "binding", binding),
        ("results-known.md", "known", known),
    ):
        write(DOCS / page, mark, made())
    return 0


if __name__ == "__main__":
    sys.exit(main())
