"""Do audits find and clear what `creperie power` says, and how often do they raise false alarms?

Real captions (SugarCrepe's), every item with an image of its own, roles drawn at random: sets without a leak, and sets
with a word planted in one caption of every pair. Each set is attacked and judged as by an audit, and the shares are
put beside what `power` predicts. Not a test: run it when a verdict, an attacker or the sampling changes.

    python research/audit_power.py --captions DIR --sets 200 --write     # about four minutes on one core
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from creperie.auditing import AttackerModels, Pairs, corrected, make_attackers, pairs_of
from creperie.auditing.attack import Attack
from creperie.auditing.pairs import ArrowTexts
from creperie.auditing.verdict import ALL, AuditRow, Measurements, judge
from creperie.bench import load
from creperie.core import silent
from creperie.metrics import wilson
from creperie.statistics import power

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results-intervals.md"
BEGIN, END = "<!-- audits: begin -->", "<!-- audits: end -->"
#: Attackers that take milliseconds; `cues` is part of every audit.
CHEAP = ("length-words", "length-chars", "surface", "negation", "frequency", "rarity", "similarity")
TUTORIAL = ("length-words", "surface", "negation")
QUICK = (*CHEAP, "ngram-3", "ngram-4", "ngram-5", "cooccurrence", "learned-linear")


def null_set(pairs: Pairs, size: int, rng: np.random.Generator) -> Pairs:
    """So many items, each with an image of its own and roles drawn at random."""
    keep = np.zeros(pairs.n_items, dtype=bool)
    keep[rng.permutation(pairs.n_items)[:size]] = True
    some = pairs.of_items(keep)
    turned = rng.random(len(some)) < 0.5
    left, right = np.where(turned, some.right, some.left), np.where(turned, some.left, some.right)
    one = {"subset": np.zeros(size, np.int64), "subsets": ("mixed",), "cluster": np.arange(size)}
    return replace(some, left=left, right=right, **one)


def planted(pairs: Pairs, right: float, rng: np.random.Generator) -> Pairs:
    """The word "now" after the first of one caption of every pair: the true one in so many cases."""
    import pyarrow as pa

    texts = [[*pairs.said(side)] for side in (pairs.left, pairs.right)]
    for k, true in enumerate(rng.random(len(pairs)) < right):
        first, _, rest = texts[0 if true else 1][k].partition(" ")
        texts[0 if true else 1][k] = f"{first} now {rest}"
    everything = ArrowTexts(pa.array([*texts[0], *texts[1]]))
    return replace(pairs, texts=everything, left=np.arange(len(pairs)), right=np.arange(len(pairs)) + len(pairs))


def audited(pairs: Pairs, names: Sequence[str]) -> tuple[str, list[AuditRow]]:
    attack = Attack(tuple(make_attackers((*names, "cues"), AttackerModels())), 0, 0.55, silent)
    rows = [row for row in corrected(attack.on(attack.counted(pairs))[0], 0.55) if row.subset != ALL]
    return judge(Measurements("mixed", pairs.n_items, tuple(rows))).verdict, rows


def share(seen: Sequence[bool]) -> str:
    low, high = wilson(sum(seen), len(seen))
    return f"{100 * np.mean(seen):.1f} % ({100 * low:.0f} to {100 * high:.0f})"


def report(captions: str, sets: int, few: int, only: str) -> str:
    everything = pairs_of(load(f"sugarcrepe:{captions}"))
    single = everything.of_items(everything.per_item == 1)
    lines = ["| sets | attackers | items | audits | verdict | `power` says |", "|---|---|---:|---:|---|---|"]

    def row(kind: str, names: Sequence[str], items: int, count: int, word: str, right: float = 0.5) -> None:
        if only and only not in kind:
            return
        seen = []
        for seed in range(count):
            rng = np.random.default_rng([seed, items, len(names)])
            some = null_set(single, items, rng)
            verdict, rows = audited(planted(some, right, rng) if right != 0.5 else some, names)
            named = any(r.leaks and "now" in r.cue for r in rows)
            seen.append(verdict == word and (named or right == 0.5))
        claim = {"clean": "clean", "leaks": "leak"}[word]
        said = ""
        if right != 0.5 or word == "clean":
            plan = {"accuracy": max(right, 1 - right), "simulations": 400, "target": 0.0}
            said = f"{100 * power(claim, items=items, attackers=tuple(names), **plan).power:.0f} %"
        known = {CHEAP: "cheap", TUTORIAL: "tutorial", QUICK: "quick"}[tuple(names)]
        lines.append(f"| {kind} | {known} | {items:,} | {count} | {word}: {share(seen)} | {said} |")
        print(lines[-1], flush=True)

    row("no leak", TUTORIAL, 150, sets, "leaks")
    row("no leak", CHEAP, 600, sets, "leaks")
    row("no leak", CHEAP, 1000, sets, "clean")
    row("no leak", QUICK, 2000, few, "clean")
    row("a word, right on 60 %", CHEAP, 300, sets, "leaks", 0.4)
    row("a word, right on 60 %", CHEAP, 450, sets, "leaks", 0.4)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--captions", required=True, help="a folder with SugarCrepe's files")
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--few", type=int, default=20, help="sets for attackers that learn")
    parser.add_argument("--only", default="", help="print the rows of these sets only, such as 'no leak'")
    parser.add_argument("--write", action="store_true", help="write the table into docs/results-intervals.md")
    chosen = parser.parse_args()
    table = report(chosen.captions, chosen.sets, chosen.few, chosen.only)
    if chosen.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
