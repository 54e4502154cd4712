"""What do learned attackers reach when roles mean nothing?

Writes its tables into research/results/nulls.md, between the two markers there.
Not a test: run it when a statistic changes.

    python research/attacker_nulls.py --captions DIR            # print the tables
    python research/attacker_nulls.py --captions DIR --write    # and put them into research/results/nulls.md

With a folder of SugarCrepe's files the learned attackers' null distribution is measured on real
captions: roles are drawn at random, image by image, and the answers computed anew, all draws at once (ridge regression,
whose out-of-fold answers are linear in the roles); and the attackers of an audit are trained on `--sets` null sets of
each kind, in `--processes` processes. Rows of these go to research/results/nulls.jsonl as they come, and what is
there already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from creperie.auditing import Pairs
from creperie.metrics import wilson

PAGE = Path(__file__).resolve().parents[1] / "research" / "results" / "nulls.md"
BEGIN, END = "<!-- attackers: begin -->", "<!-- attackers: end -->"
NULLS = "**The whole standard battery on null sets**"
ROWS = Path(__file__).resolve().parents[1] / "research" / "results" / "nulls.jsonl"
SETS = (
    ("swap_obj", 60),
    ("swap_obj", 245),
    ("replace_att", 245),
    ("swap_att", 600),
    ("add_obj", 600),
    ("replace_rel", 1000),
)
#: Null sets for the whole battery: captions of a subset (or of all), items, items of an image (0: as it comes).
REFITTED = (
    ("swap_obj", 60, 0),
    ("", 64, 8),
    ("", 240, 5),
    ("swap_obj", 245, 0),
    ("swap_att", 245, 0),
    ("replace_rel", 500, 0),
    ("", 700, 0),
    ("add_obj", 2000, 0),
)
#: Of sets larger than this, every fourth seed is run.
LARGE = 600
LEARNED = ("learned", "learned-embedding", "ensemble")


def null_set(rng: np.random.Generator, pairs: Pairs, subset: str, size: int, per_image: int = 0) -> Pairs:
    """So many items of a subset, or of all, each cluster's roles drawn at random."""
    mine = pairs.of_subset(subset) if subset else pairs
    keep = np.zeros(mine.n_items, dtype=bool)
    order = rng.permutation(mine.n_items)
    if per_image:  # so many items of each image that has as many
        order = order[np.argsort(mine.cluster[order], kind="stable")]
        _, start, count = np.unique(mine.cluster[order], return_index=True, return_counts=True)
        chosen = rng.permutation(start[count >= per_image])[: size // per_image]
        order = order[(chosen[:, None] + np.arange(per_image)).ravel()]
    keep[order[:size]] = True
    some = mine.of_items(keep)
    if per_image:  # one subset: as an audit of a small benchmark sees it
        some = replace(some, subset=np.zeros_like(some.subset), subsets=("mixed",))
    flipped = (rng.random(int(some.cluster.max()) + 1) < 0.5)[some.cluster[some.item]]
    return replace(some, left=np.where(flipped, some.right, some.left), right=np.where(flipped, some.left, some.right))


def learned_null(pairs: Pairs) -> list[str]:
    """Ridge regression: the spread is found with some draws of roles, coverage is counted on others."""
    from creperie.auditing import fold_count, kernel_of, null_accuracies, null_spreads, pair_features

    lines = ["| captions | pairs | mean | spread | covered |", "|---|---|---|---|---|"]
    for subset, size in SETS:
        some = null_set(np.random.default_rng([4, size]), pairs, subset, size)
        spread = float(null_spreads(some, 1)[0])
        kernel = kernel_of(pair_features(some))
        fold = some.folds_of(np.arange(len(some)), fold_count(some.n_items), 0)
        drawn = [null_accuracies(kernel, some, fold, seed) for seed in (2, 3, 4)]
        reached, coin = np.concatenate([d[0] for d in drawn]), np.concatenate([d[1] for d in drawn])
        held = (np.abs(reached - 0.5) <= 1.96 * spread * coin).mean()
        lines.append(f"| {subset} | {len(some)} | {100 * reached.mean():.1f} % | {spread:.2f} | {100 * held:.1f} % |")
    return lines


@cache
def battery(captions: str) -> tuple[Pairs, Any, list[str]]:
    from creperie.auditing import AttackerModels, pairs_of, runnable_attackers
    from creperie.bench import load

    models = AttackerModels()
    names, missing = runnable_attackers([], models)
    if missing:
        raise SystemExit(f"not the whole battery: {missing}")
    return pairs_of(load(f"sugarcrepe:{captions}")), models, names


def attacked(task: tuple[str, str, int, int, int]) -> dict[str, Any]:
    """The whole standard battery on one null set, judged as an audit judges it."""
    from creperie.auditing import AuditOptions, make_attackers
    from creperie.auditing.run import Attack
    from creperie.auditing.verdict import ALL, corrected
    from creperie.core import silent

    captions, subset, size, per_image, seed = task
    pairs, models, names = battery(captions)
    some = null_set(np.random.default_rng([seed, size, per_image]), pairs, subset, size, per_image)
    attack = Attack(tuple(make_attackers(names, models)), models.seed, AuditOptions().threshold, silent)
    judged = corrected(attack.on(some)[0], attack.threshold)
    found = {row.attacker: row.measure for row in judged if row.subset == ALL}
    least = min(judged, key=lambda row: row.p_holm)
    return {
        **{"captions": subset, "n": size, "per_image": per_image, "seed": seed},
        "clusters": len(np.unique(some.cluster)),
        "held": [name for name in LEARNED if found[name].low <= 0.5 <= found[name].high],
        "p": float(f"{least.p_holm:.3g}"),
        "by": least.attacker,
        "called": sorted({row.attacker for row in judged if row.leaks}),
        "raw": {name: float(f"{measure.p:.3g}") for name, measure in found.items()},
    }


def refitted_null(captions: str, sets: int, processes: int, only: str | None) -> list[str]:
    """The whole standard battery on null sets: coverage, and family-wise false alarms."""
    kinds: dict[tuple[str, int, int], list[dict[str, Any]]] = {kind: [] for kind in REFITTED}
    for line in ROWS.read_text().splitlines() if ROWS.exists() else []:
        row = json.loads(line)
        kinds.get((row["captions"], row["n"], row["per_image"]), []).append(row)
    tasks = [
        (captions, *kind, seed)
        for seed in range(sets)
        for kind, rows in kinds.items()
        if only in (None, kind[0]) and seed not in {row["seed"] for row in rows} and (kind[1] <= LARGE or seed % 4 == 0)
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool, ROWS.open("a") as out:
        for row in pool.imap_unordered(attacked, tasks):
            kinds[row["captions"], row["n"], row["per_image"]].append(row)
            out.write(json.dumps(row) + "\n")
            out.flush()
    lines = ["| captions | items | per image | sets | " + " | ".join(LEARNED) + " | some p < 0.05 | called a leak |"]
    lines.append("|---|---|---|---|" + "---|" * len(LEARNED) + "---|---|")
    every = [row for rows in kinds.values() for row in rows]
    for (subset, size, per), mine in [*kinds.items(), (("together", 0, 0), every)]:
        cells = [100 * np.mean([name in row["held"] for row in mine]) for name in LEARNED]
        cells += [
            100 * np.mean([row["p"] < 0.05 for row in mine]),
            100 * np.mean([bool(row["called"]) for row in mine]),
        ]
        named = f"| {subset or 'all subsets'} | {size or ''} | {per or ''} | {len(mine)} | "
        lines.append(named + " | ".join(f"{cell:.1f} %" for cell in cells) + " |")
    by = Counter(row["by"] for row in every if row["p"] < 0.05)
    low, high = (100 * end for end in wilson(by.total(), len(every)))
    told = ", ".join(f"{name} {times}" for name, times in by.most_common())
    lines += ["", f"Together {by.total()} of {len(every)} sets, 95 % interval {low:.1f} to {high:.1f} %, by {told}."]
    return lines


def battery_nulls(captions: str, sets: int, processes: int, only: str | None) -> list[str]:
    return [
        f"{NULLS}: real captions, roles drawn at random, every attacker "
        "trained anew (SmolLM2-135M, MiniLM, ensemble). Coverage of 95 % intervals, and how often any attacker "
        "has p < 0.05 after Holm's correction, and is called a leak (also above 55 %):",
        "",
        *refitted_null(captions, sets, processes, only),
    ]


def report(captions: str, sets: int, processes: int, only: str | None) -> str:
    from creperie.auditing import pairs_of
    from creperie.bench import load

    parts = [
        "**Learned attackers when roles mean nothing**: real captions, roles flipped at random per image and "
        "learned anew (ridge regression, 1,200 draws). The accuracy varies by *spread* times as much as that of as "
        "many coins; the audit finds the spread of each subset in the same way, with draws of its own, and widens "
        "intervals and tests by it (coverage of 95 % intervals in the last column):",
        "",
        *learned_null(pairs_of(load(f"sugarcrepe:{captions}"))),
    ]
    if sets or ROWS.exists():
        parts += ["", *battery_nulls(captions, sets, processes, only)]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="write the tables into research/results/nulls.md")
    parser.add_argument("--captions", required=True, help="a folder with SugarCrepe's files")
    parser.add_argument(
        "--sets", type=int, default=100, help="null sets on which real attackers are trained; 0 for none"
    )
    parser.add_argument("--only", metavar="SUBSET", help="train them on null sets of this subset's captions only")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--nulls-only", action="store_true", help="leave the page's other tables as they are")
    chosen = parser.parse_args()
    if chosen.nulls_only:
        before = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(NULLS)[0].strip()
        text = "\n".join([before, "", *battery_nulls(chosen.captions, chosen.sets, chosen.processes, chosen.only)])
    else:
        text = report(chosen.captions, chosen.sets, chosen.processes, chosen.only)
    print(text)
    if chosen.write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
