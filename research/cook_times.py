"""How long the small profiles took, stage by stage, from the folders that `creperie cook` wrote.

    python research/cook_times.py FOLDER…            # print the table
    python research/cook_times.py FOLDER… --write    # and put it into docs/recipes.md

Seconds are of the clock; stages about the published items, which are optional, are left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from first_minute import write

PAGE = Path(__file__).resolve().parents[1] / "docs" / "recipes.md"


def row(folder: Path) -> str:
    """A recipe: its stages, tables and figures, the sum of their seconds, and the longest three."""
    card = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    seconds, tables, figures = {}, set(), set()
    for name in card["stages"]:
        if "released" not in name and (folder / name / "stage.json").is_file():
            record = json.loads((folder / name / "stage.json").read_text(encoding="utf-8"))
            tables |= set(record["summary"].get("tables", {}))
            figures |= set(record["summary"].get("figures", {}))
            seconds[record["stage"]] = json.loads((folder / name / "time.json").read_text(encoding="utf-8"))["seconds"]
    longest = sorted(seconds, key=lambda name: -seconds[name])[:3]
    told = ", ".join(f"{name} {seconds[name]:.0f} s" for name in longest)
    numbers = (len(seconds), len(tables), len(figures))
    counts = " | ".join(map(str, numbers))
    return f"| {card['recipe']} ({card['profile']}) | {counts} | {sum(seconds.values()):.0f} s | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    lines = [
        "Written by `python research/cook_times.py FOLDER… --write`; one process on a shared machine, empty folder,",
        "empty cache.",
        "",
        "| recipe | stages | tables | figures | together | the longest |",
        "|---|---:|---:|---:|---:|---|",
        *map(row, asked.folders),
    ]
    print("\n".join(lines))
    if asked.write:
        write(PAGE, "times", "\n".join(lines))


if __name__ == "__main__":
    main()
