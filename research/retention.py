"""Draws the retention curve of docs/refine.md: what a family of attackers that was held out reaches on what stays.

    python research/retention.py

research/results/rotation.json was written by a command that is gone (`refine --rotate`).
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

ROWS = Path(__file__).resolve().parent / "results" / "rotation.json"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "retention.svg"
LOOKS = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"))
#: Chance, give or take so much, counts as withstood.
MARGIN = 3


def main() -> None:
    found = json.loads(ROWS.read_text(encoding="utf-8"))
    mpl.rcParams.update({"svg.hashsalt": "retention", "svg.fonttype": "none", "font.size": 10})
    figure, axes = plt.subplots(figsize=(7.5, 4.2))
    axes.axhspan(50 - MARGIN, 50 + MARGIN, color="0.9", label=f"withstood: 50 ± {MARGIN} %")
    held_out = list(dict.fromkeys(point["held_out"] for point in found["before"]))
    for number, (family, (marker, dash)) in enumerate(zip(held_out, LOOKS)):
        points = [p for p in (*found["before"], *found["points"]) if p["held_out"] == family]
        right, low, high = ([100 * p[name] for p in points] for name in ("accuracy", "low", "high"))
        kept = [100 * p["n"] / found["items"] * 1.015 ** (number - 1.5) for p in points]  # beside each other
        errors = [[r - x for r, x in zip(right, low)], [x - r for r, x in zip(right, high)]]
        axes.errorbar(kept, right, errors, label=family, marker=marker, ls=dash, ms=5, lw=1.3, capsize=2)
    axes.set_xscale("log")
    axes.set_xticks([10, 20, 50, 100], ["10 %", "20 %", "50 %", "all"])
    axes.minorticks_off()
    axes.invert_xaxis()
    axes.set(xlabel="items that stay", ylabel="held-out family is right, %", ylim=(38, 84))
    axes.legend(fontsize=8.5, ncols=2, loc="lower left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
