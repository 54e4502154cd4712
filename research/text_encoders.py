"""Published rows of text encoders, recomputed: SugarCrepe++ Table 16 and VISLA Table 2, into docs/reproduction.md.

    python research/text_encoders.py --sugarcrepe-pp DIR --visla DIR --out FILE.json \
        "GTE-small=st:weights/gte-small?backend=onnx" …

Each model is `name in the papers=URI`; what FILE.json has is not computed again. `--page` writes the table.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from first_minute import write

from creperie.core import write_text

SUBSETS = ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel")


def printed(name: str) -> dict[str, str]:
    """What the papers print for a model, by column."""
    found: dict[str, str] = {}
    for table in ("sugarcrepe-pp-16", "visla-2"):
        text = resources.files("creperie.reporting").joinpath("published", f"{table}.csv").read_text()
        for row in csv.DictReader(text.splitlines()):
            if row["model"].lower() == name.lower():
                found |= row
    return found


def scored(bench: str, uri: str) -> dict[str, tuple[int, int]]:
    """Hits and items per subset of the text-only task, by `creperie score`."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "creperie", "score", bench, "--model", uri, "--task", "tot"]
        done = subprocess.run([*command, "--json", "--out", place], stdout=subprocess.PIPE, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return {r["subset"]: (r["hits"], r["n"]) for r in rows if r["subset"] != "macro"}


def table(known: dict[str, dict[str, Any]]) -> str:
    head = ["encoder", "test", "printed, %", "here, %", "right of", "exact"]
    rows = []
    for name, found in known.items():
        papers = printed(name)
        for test, (hits, n) in found["right"].items():
            here, told = f"{100 * hits / n:.2f}", papers.get(test, "")
            off = round(float(told) * n / 100) - hits if told else 0
            missed = f"no, {abs(off)} item{'s' * (abs(off) > 1)}"
            exact = "no row is printed" if not told else missed if off else "yes"
            label = f"VISLA {test}" if test in ("generic", "spatial") else f"SugarCrepe++ {test}"
            rows.append([name, label, told or "–", here, f"{hits} of {n}", exact])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="NAME=URI")
    parser.add_argument("--sugarcrepe-pp", required=True)
    parser.add_argument("--visla", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_intermixed_args()
    known: dict[str, dict[str, Any]] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for model in asked.models:
        name, _, uri = model.partition("=")
        if name in known:
            continue
        right: dict[str, tuple[int, int]] = {}
        for kind in ("generic", "spatial"):
            right[kind] = scored(f"visla-{kind}:{asked.visla}", uri)["all"]
        swapped = scored(f"sugarcrepe++:{asked.sugarcrepe_pp}", uri)
        known[name] = {"uri": uri, "right": {**right, **{subset: swapped[subset] for subset in SUBSETS}}}
        write_text(asked.out, json.dumps(known, indent=1))
        print(name, known[name]["right"], flush=True)
    print(table(known))
    if asked.page:
        write(asked.page, "encoders", f"\n{table(known)}\n")


if __name__ == "__main__":
    main()
