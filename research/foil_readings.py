"""The tables of two readings in docs/foil-quality.md: how much is usable, and how far the readers agree.

    python research/foil_readings.py --write docs/foil-quality.md

Reads research/readings/final.csv, rules-8.csv and even.csv, which have both verdicts of every line.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from creperie.metrics import cohen_kappa, wilson

SHEETS = Path(__file__).resolve().parent / "readings"
KINDS = ("replace-object", "replace-attribute", "replace-relation", "swap-object", "swap-attribute", "swap-phrase")
KINDS = (*KINDS, "add-object", "add-attribute", "passive", "passive-2", "passive-foil", "sugarcrepe")
CODES = ("ungrammatical", "true", "maybe-true", "implausible", "not-minimal")
Row = dict[str, str]


def share(good: int, n: int) -> str:
    low, high = wilson(good, n)
    return f"{good} of {n} ({100 * good / n:.0f} %) [{100 * low:.0f}, {100 * high:.0f}]" if n else ""


def usable(rows: Sequence[Row], reader: str) -> str:
    codes = Counter(r[reader] for r in rows)
    return f"{share(codes['ok'], len(rows))}"


def lost(rows: Sequence[Row], reader: str) -> str:
    codes = Counter(r[reader] for r in rows)
    return ", ".join(f"{codes[c]} {c}" for c in CODES if codes[c])


def agreement(rows: Sequence[Row]) -> tuple[str, str]:
    """Raw agreement and Cohen's kappa on usable or not."""
    pairs = [(r["reading_1"] == "ok", r["reading_2"] == "ok") for r in rows]
    same = sum(a == b for a, b in pairs)
    if len({a for a, _ in pairs}) == len({b for _, b in pairs}) == 1:
        return share(same, len(rows)), "not defined: all verdicts alike"
    kappa = cohen_kappa(*np.array(pairs, dtype=float).T)
    if np.isnan(kappa.low):
        return share(same, len(rows)), f"{kappa.value:.2f}, no interval: too few unusable"
    return share(same, len(rows)), f"{kappa.value:.2f} [{kappa.low:.2f}, {kappa.high:.2f}]"


def tables(rows: Sequence[Row]) -> dict[str, str]:
    by = {k: [r for r in rows if r["kind"] == k] for k in KINDS}
    by = {k: mine for k, mine in by.items() if mine}
    head = ("kind", "usable, reader 1", "usable, reader 2", "both usable", "true (maybe true), by both readers")
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---|---|"]
    for kind, mine in by.items():
        both = sum(r["reading_1"] == r["reading_2"] == "ok" for r in mine)
        readers = ("reading_1", "reading_2")
        told = [sum(r[c] == code for r in mine for c in readers) for code in ("true", "maybe-true")]
        cells = [*(usable(mine, c) for c in readers), share(both, len(mine)), f"{told[0]} ({told[1]})"]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    why = ["| kind | reader 1 | reader 2 |", "|---|---|---|"]
    why += [f"| {kind} | {lost(mine, 'reading_1')} | {lost(mine, 'reading_2')} |" for kind, mine in by.items()]
    agreed = ["| kind | same verdict, usable or not | Cohen's kappa |", "|---|---|---|"]
    agreed += [f"| {kind} | {' | '.join(agreement(mine))} |" for kind, mine in [*by.items(), ("all", rows)] if mine]
    return {"readings": "\n".join(lines), "reasons": "\n".join(why), "agreement": "\n".join(agreed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", default="")
    args = parser.parse_args()
    made: dict[str, str] = {}
    for sheet, mark in (("final", ""), ("rules-8", "-8"), ("even", "-even")):
        with (SHEETS / f"{sheet}.csv").open(newline="") as file:
            made |= {f"{name}{mark}": text for name, text in tables(list(csv.DictReader(file))).items()}
    print("\n\n".join(made.values()))
    if args.write:
        page = Path(args.write).read_text()
        for name, text in made.items():
            body = f"<!-- {name} -->\n\n{text}\n\n<!-- end {name} -->"
            page = re.sub(rf"<!-- {name} -->.*?<!-- end {name} -->", lambda m, b=body: b, page, flags=re.DOTALL)
        Path(args.write).write_text(page)


if __name__ == "__main__":
    main()
