"""How long recipe runs took, stage by stage, from the folders that `creperie cook` wrote.

    python research/cook_times.py FOLDER…            # print the table
    python research/cook_times.py FOLDER… --write    # and put it into docs/recipes.md

Seconds by the clock and of the processor; in small profiles, optional stages about published items are left out.
"""

from __future__ import annotations

import argparse
import json
import math
from datetime import UTC, datetime
from pathlib import Path

from first_minute import write

PAGE = Path(__file__).resolve().parents[1] / "docs" / "recipes.md"


def row(folder: Path) -> str:
    """A recipe: its stages, tables and figures, the sum of their seconds, and the longest three."""
    card = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
    seconds, worked, tables, figures = {}, 0.0, set(), set()
    for name in card["stages"]:
        optional = card["profile"] == "small" and "released" in name
        if not optional and (folder / name / "stage.json").is_file():
            record = json.loads((folder / name / "stage.json").read_text(encoding="utf-8"))
            tables |= set(record["summary"].get("tables", {}))
            figures |= set(record["summary"].get("figures", {}))
            spent = json.loads((folder / name / "time.json").read_text(encoding="utf-8"))
            seconds[record["stage"]], worked = spent["seconds"], worked + spent.get("processor", math.nan)
    longest = sorted(seconds, key=lambda name: -seconds[name])[:3]
    named = ", ".join(f"{name} {seconds[name]:.0f} s" for name in longest)
    numbers = (len(seconds), len(tables), len(figures))
    counts = " | ".join(map(str, numbers))
    times = f"{sum(seconds.values()):.0f} s | " + ("" if math.isnan(worked) else f"{worked:.0f} s")
    return f"| {card['recipe']} ({card['profile']}) | {counts} | {times} | {named} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    lines = [
        f"Written on {datetime.now(UTC):%-d %B %Y} by `python research/cook_times.py FOLDER… --write`; one",
        "process on cores that other work shared: read the processor's time.",
        "",
        "| recipe | stages | tables | figures | clock | processor | the longest |",
        "|---|---:|---:|---:|---:|---:|---|",
        *map(row, asked.folders),
    ]
    print("\n".join(lines))
    if asked.write:
        write(PAGE, "times", "\n".join(lines))


if __name__ == "__main__":
    main()
