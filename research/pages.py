"""Write the tables of the docs from the figures that the scripts of this folder left in research/results.

    python research/pages.py

| figures | made by |
|---|---|
| gpu.json | gpu_speed.py --out |
| pictures.json | gpu_speed.py --pictures ZIP --out |
| vlm.json | the last line of vlm_speed.py --gpu |
| growth.jsonl | growth.py --out |
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from first_minute import write

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
    names = [k for k in next(iter(models.values())) if not k.endswith("stages s")]
    rows = [[name, *(number(m[name]) if name in m else "" for m in models.values())] for name in names]
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


def pictures() -> str:
    found = read("pictures.json")
    parts = ("pictures", "kB", "pixels", *(f"{w}: {p} ms" for w in ("exact", "fast") for p in ("decode", "prepare")))
    rows = []
    for name, row in found["sets"].items():
        both = sum(row[f"exact: {p} ms"] for p in ("decode", "prepare"))
        fast = sum(row[f"fast: {p} ms"] for p in ("decode", "prepare"))
        rows.append([name, *(f"{row[p]:,.0f}" if row[p] >= 100 else row[p] for p in parts), *rates(both, fast)])
    return f"{found['processor']}:\n\n" + table(
        ["", *parts, "exact: pictures/s of 16 cores", "fast: of 16 cores"], rows
    )


def rates(*milliseconds: float) -> list[str]:
    return [f"{16_000 / ms:,.0f}" for ms in milliseconds]


def number(value: float) -> str:
    """
    >>> number(1234.5), number(2.345), number(0.000133)
    ('1,234', '2.35', '0.00013')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.5f}"


def vlm() -> str:
    found = read("vlm.json")
    rows = []
    for part in (found["plain"], *found["text_before"]):
        for n, way in enumerate(part["ways"]):
            share = f"{way['of_floor']:.0%}".replace("%", " %")
            ms = f"{way['ms']:.1f}"
            rows.append(["" if n else part["before"], way["way"], ms, way["faster"], f"{way['tokens_per_s']:,}", share])
    head = ["tokens before the image", "way", "ms per image", "times the naive loop", "tokens/s", "of the floor"]
    return (
        f"{found['device']}, {found['dtype']}, torch {found['torch']}, transformers {found['transformers']}; floor "
        f"{found['plain']['floor_ms']} ms per image at {found['tflops']:.0f} TFLOP/s:\n\n{table(head, rows)}"
    )


def growth() -> str:
    rows = [json.loads(line) for line in (RESULTS / "growth.jsonl").read_text().splitlines()]
    current = [row for row in rows if row.get("code", "now") in ("now", "shortly before")]
    shown = [
        [row["stage"], f"{row['captions']:,}", f"{row['seconds']:.1f}", f"{row['peak_mb']:,.0f}"]
        for row in sorted(current, key=lambda r: (r["stage"], r["captions"]))
    ]
    return table(["stage", "captions", "processor s", "peak MB"], shown)


def percent(row: dict[str, Any], part: str = "accuracy") -> str:
    return f"{100 * row[part]:.1f}"


def main() -> int:
    for page, mark, made in (
        ("performance.md", "gpu", gpu),
        ("performance.md", "pictures", pictures),
        ("performance.md", "vlm", vlm),
        ("performance.md", "growth", growth),
    ):
        write(DOCS / page, mark, made())
    return 0


if __name__ == "__main__":
    sys.exit(main())
