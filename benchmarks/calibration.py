"""Do our intervals and tests hold their level? Simulations over clusters, ties and small samples.

Writes its tables into docs/statistics.md, between the two markers there. Not a test: run it when a statistic changes.

    python benchmarks/calibration.py            # print the tables
    python benchmarks/calibration.py --write    # and put them into docs/statistics.md

With a folder of SugarCrepe's files (`--captions DIR`) the learned attackers' null distribution is measured on real
captions: roles are drawn at random, image by image, and the answers computed anew, all draws at once (ridge regression,
whose out-of-fold answers are linear in the roles); and the attackers of an audit are trained on `--sets` null sets of
each kind, in `--processes` processes. Rows of these go to research/results/nulls.jsonl as they come, and what is
there already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from creperie.auditing import Pairs
from creperie.auditing.measure import bits_interval
from creperie.metrics import (
    HIT,
    MISS,
    MetricSettings,
    bounded_interval,
    cluster_sums,
    cohen_kappa,
    compare,
    macro,
    of_outcomes,
    ratio,
    share_interval,
    sign_flip_p,
    wilson,
)
from creperie.metrics.detection import auroc, auroc_interval, f1
from creperie.scoring.compare_runs import _macro as _macro_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
NULLS = "**The whole standard battery on null sets**"
ROWS = Path(__file__).resolve().parents[1] / "research" / "results" / "nulls.jsonl"
SHAPES = ((60, 8), (60, 15), (200, 8), (200, 30), (200, 60), (500, 200), (2000, 8), (2000, 1000))
SHARES = ((0.5, 0.0), (0.7, 0.0), (0.9, 0.0), (0.5, 0.5))
REPEATS = 4000
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


def clustered(
    rng: np.random.Generator, items: int, clusters: int, share: float, ties: float
) -> tuple[np.ndarray, np.ndarray]:
    """Wins of items in clusters of uneven size that lean to their cluster's side (intraclass correlation 0.2)."""
    own = np.sort(np.r_[np.arange(clusters), rng.integers(0, clusters, items - clusters)])
    lean = rng.beta(4 * share, 4 * (1 - share), clusters)
    wins = (rng.random(items) < lean[own]).astype(float)
    return np.where(rng.random(items) < ties, 0.5, wins), own


def rows_of(row: Callable[[Any], str], cells: Iterable[Any], processes: int) -> list[str]:
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return pool.map(row, cells, chunksize=1)


def coverage(shape: tuple[int, int]) -> str:
    items, clusters = shape
    rng = np.random.default_rng([1, items, clusters])
    held = np.zeros(len(SHARES))
    for k, (share, ties) in enumerate(SHARES):
        truth = share * (1 - ties) + 0.5 * ties
        for _ in range(REPEATS):
            wins, own = clustered(rng, items, clusters, share, ties)
            found = share_interval(wins, np.ones(items), own, MetricSettings())
            held[k] += found.low <= truth <= found.high
    cells = " | ".join(f"{100 * count / REPEATS:.1f}" for count in held)
    return f"| {items:,} | {clusters:,} | {cells} |"


def held_at(correlation: float) -> float:
    """How often the interval of 2,000 items in 8 clusters holds 90 %, items of a cluster correlated by so much."""
    rng, own = np.random.default_rng([5, int(100 * correlation)]), np.repeat(np.arange(8), 250)
    lean = rng.beta(0.9 * (1 / correlation - 1), 0.1 * (1 / correlation - 1), (REPEATS, 8))
    wins = (rng.random(2000) < np.repeat(row, 250) for row in lean)
    found = (share_interval(right.astype(float), np.ones(2000), own, MetricSettings()) for right in wins)
    return 100 * sum(interval.low <= 0.9 <= interval.high for interval in found) / REPEATS


def boundary() -> list[str]:
    """What no interval can help: few clusters of which a share near 1 is asked."""
    rng = np.random.default_rng(5)
    own = np.stack([clustered(rng, 60, 8, 0.9, 0.0)[0].sum() for _ in range(REPEATS)])
    perfect, almost = 100 * (own == 60).mean(), 100 * (own >= 59).mean()
    leans = rng.beta(3.6, 0.4, (REPEATS, 8)).mean(axis=1)
    weak, strong = held_at(0.05), held_at(0.4)
    return [
        f"At 90 %, all of 60 items in 8 clusters are right in {perfect:.1f} % of the sets, all but one in another "
        f"{almost - perfect:.1f} %, and such a set says next to nothing about how clusters differ: a truth of 90 % can "
        "hardly be missed from above, and where it cannot, the whole 5 % lie below. Of 8 large clusters the mean lies "
        f"above 95 % in {100 * (leans > 0.95).mean():.0f} % of the sets, those in which no poor cluster was drawn; "
        "nothing in them says so, and the variance between their clusters is small. The lower limit therefore counts "
        "up to an eighth of one more cluster, all of it wrong. The eighth was found for a correlation of 0.2: with "
        f"0.05 these intervals hold 90 % in {weak:.1f} % of the sets, with 0.4 in {strong:.1f} %. Of clusters of two "
        "kinds, of which one in five is poor and the others are all alike, 8 show no poor one in 17 % of the sets "
        "(0.8⁸): the data are then those of a better model, and no interval can know.",
    ]


def differences(items: int, clusters: int, share: float, sets: int) -> np.ndarray:
    """How often, in percent, intervals hold what is true: the difference of two models on the same items (75 and 70 %
    right, say), and the bits of an attacker like the first model."""
    gains = 1 + np.log2(np.array([1 - share, share]))
    rng, held = np.random.default_rng([2, items, clusters, int(100 * share)]), np.zeros(2)
    for _ in range(sets):
        wins, own = clustered(rng, items, clusters, share, 0.0)
        other = np.where(rng.random(items) < 0.5, rng.random(items) < share - 0.1, wins)  # 5 points less on average
        compared = compare(wins.astype(int), other.astype(int), clusters=own)
        low, high = bits_interval(gains[wins.astype(int)], own)
        held += (compared.low <= 0.05 <= compared.high, low <= (1 - share) * gains[0] + share * gains[1] <= high)
    return 100 * held / sets


def other_intervals(shape: tuple[int, int]) -> str:
    held = [*differences(*shape, 0.75, REPEATS), *differences(*shape, 0.9, REPEATS)]
    return f"| {shape[0]:,} | {shape[1]:,} | " + " | ".join(f"{h:.1f}" for h in held) + " |"


def _macro(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float, float]:
    """The mean of three subsets, the first of which is harder; images have items of all three."""
    subset, lean = rng.integers(0, 3, len(own)), rng.beta(3.6, 0.4, own.max() + 1)[own]
    right = rng.random(len(own)) < np.where(subset == 0, 0.85, 1) * lean
    row = macro(of_outcomes(np.where(right, HIT, MISS), ""), subset, clusters=own)
    return row.accuracy, row.low, row.high


def _macro_difference(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float, float]:
    """Of two models of 90 and 85 %, over three subsets, as `creperie compare` prints it."""
    subset, lean = rng.integers(0, 3, len(own)), rng.beta(3.6, 0.4, own.max() + 1)[own]
    a = rng.random(len(own)) < lean
    b = np.where(rng.random(len(own)) < 0.5, rng.random(len(own)) < 0.8, a)
    left, right = (np.where(x, HIT, MISS) for x in (a, b))
    names = np.unique(subset)
    each = [compare(left[subset == s], right[subset == s], clusters=own[subset == s]) for s in names]
    whole = compare(left, right, clusters=own)
    found = _macro_of(list(zip(names, each)), whole, (left, right), subset, own, MetricSettings())
    return found.difference, found.low, found.high


def _f1(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float, float]:
    """Captions are taken for true in 90 % of the items, foils for false in 81 %."""
    lean, one = rng.beta(3.6, 0.4, own.max() + 1)[own], np.ones(len(own))
    columns = np.stack([rng.random(len(own)) < lean, rng.random(len(own)) < 0.9 * lean, one, one], axis=1)
    sums = cluster_sums(np.column_stack([columns, 2 * one]), own)
    found = bounded_interval(sums[:, :4], f1, sums[:, 4], MetricSettings())
    return float(f1(columns.sum(axis=0))), found.low, found.high


def _kappa(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float, float]:
    """Two raters who are each right about 90 % of the items, four fifths of which are of one kind."""
    truth, lean = rng.random(len(own)) < 0.8, rng.beta(3.6, 0.4, own.max() + 1)[own]
    a, b = (np.where(rng.random(len(own)) < lean, truth, ~truth) for _ in range(2))
    found = cohen_kappa(a, b, clusters=own)
    return found.value, found.low, found.high


def _auroc(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float, float]:
    """Scores of a caption and a foil per item; images differ in the scores' level and in the gap."""
    level, gap = rng.normal(0, 0.45, own.max() + 1)[own], rng.normal(1.8, 0.9, own.max() + 1)[own]
    scores = np.r_[level + gap, level] + rng.normal(0, 0.9, 2 * len(own))
    truth = np.arange(2 * len(own)) < len(own)
    area = auroc(scores, truth)
    found = auroc_interval(area.value, area.pull, truth, np.r_[own, own], MetricSettings())
    return area.value, found.low, found.high


def _mean_rank(rng: np.random.Generator, own: np.ndarray) -> tuple[float, float, float]:
    """The true caption's rank among ten; each false one comes first in 10 % of the items."""
    rank = 1.0 + rng.binomial(9, 1 - rng.beta(3.6, 0.4, own.max() + 1)[own])
    sums = cluster_sums(np.stack([rank, np.ones(len(own))], axis=1), own)
    found = bounded_interval(sums, ratio, sums[:, 1], MetricSettings(), (1, 10))
    return float(rank.mean()), found.low, found.high


def further_intervals(shape: tuple[int, int]) -> str:
    """How often intervals of statistics that are not shares hold what is true: the value of 500,000 items."""
    items, clusters = shape
    cells = []
    for k, draw in enumerate((_macro, _macro_difference, _f1, _kappa, _auroc, _mean_rank)):
        rng = np.random.default_rng([6, k])
        truth = np.mean([draw(rng, np.repeat(np.arange(4000), 5))[0] for _ in range(25)])
        rng, held = np.random.default_rng([6, k, items, clusters]), 0
        for _ in range(REPEATS):
            own = np.sort(np.r_[np.arange(clusters), rng.integers(0, clusters, items - clusters)])
            _, low, high = draw(rng, own)
            held += low <= truth <= high
        cells.append(f"{100 * held / REPEATS:.1f}")
    return f"| {items:,} | {clusters:,} | {' | '.join(cells)} |"


def false_alarms(clusters: int) -> str:
    """Sign-flip tests of two equally good models: how often p lies at or below a level (ties make that rarer), and
    how far the distribution of p lies from the uniform one at the levels that it can take (no ties)."""
    rng = np.random.default_rng([3, clusters])
    draws = rng.integers(-3, 4, (REPEATS, clusters)).astype(float)
    p = np.array([sign_flip_p(d) for d in draws])
    sizes = rng.integers(1, 10_000 // clusters, (REPEATS, clusters))  # whole numbers, so that p is exact
    untied = np.sort([sign_flip_p(d) for d in sizes * rng.choice([-1.0, 1.0], sizes.shape)])
    levels = np.unique(untied.round(9))
    apart = np.abs(np.searchsorted(untied, levels + 1e-9) / len(untied) - levels).max()
    cells = " | ".join(f"{100 * share:.1f} %" for share in ((p <= 0.05).mean(), (p <= 0.01).mean(), apart))
    return f"| {clusters} | {cells} |"


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
    from creperie.auditing import AttackerModels, pairs_of, sendable
    from creperie.bench import load

    models = AttackerModels()
    names, missing = sendable([], models)
    if missing:
        raise SystemExit(f"not the whole battery: {missing}")
    return pairs_of(load(f"sugarcrepe:{captions}")), models, names


def attacked(task: tuple[str, str, int, int, int]) -> dict[str, Any]:
    """The whole standard battery on one null set, judged as an audit judges it."""
    from creperie.auditing import make_attackers
    from creperie.auditing.run import THRESHOLD, _attack
    from creperie.auditing.verdict import ALL, corrected
    from creperie.core import silent

    captions, subset, size, per_image, seed = task
    pairs, models, names = battery(captions)
    some = null_set(np.random.default_rng([seed, size, per_image]), pairs, subset, size, per_image)
    judged = corrected(_attack(some, make_attackers(names, models), models.seed, "", silent)[0], THRESHOLD)
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


def report(captions: str | None, sets: int, processes: int, only: str | None) -> str:
    off = f"± {200 * math.sqrt(0.95 * 0.05 / REPEATS):.1f}"
    parts = [
        f"Written by `python benchmarks/calibration.py --write --captions DIR --sets {sets}`.",
        "",
        "**Coverage of 95 % intervals** of an accuracy of so much, in percent; clusters of uneven size, items of a "
        f"cluster correlated by 0.2 ({REPEATS:,} simulated sets per cell, so {off}):",
        "",
        "| items | clusters | 50 % | 70 % | 90 % | 50 %, half ties |",
        "|---|---|---|---|---|---|",
        *rows_of(coverage, SHAPES, processes),
        "",
        *boundary(),
        "",
        f"**Of differences and bits** ({REPEATS:,} sets per cell, {off}), of models of 75 and 70 %, and of 90 and "
        "85 %, where poor clusters are rare:",
        "",
        "| items | clusters | difference, 75 and 70 % | bits, 75 % | difference, 90 and 85 % | bits, 90 % |",
        "|---|---|---|---|---|---|",
        *rows_of(other_intervals, SHAPES, processes),
        "",
        f"**Of statistics that are not shares**, for models (or raters) of 90 % ({REPEATS:,} sets per cell, "
        f"{off}): a mean over three subsets and its difference between two models, F1, Cohen's kappa, AUROC, the "
        "mean rank among ten:",
        "",
        "| items | clusters | macro mean | its difference | F1 | kappa | AUROC | mean rank |",
        "|---|---|---|---|---|---|---|---|",
        *rows_of(further_intervals, SHAPES, processes),
        "",
        "**False alarms of the paired test** (two equally good models, whose ties make it careful; with 5 clusters p "
        "is never below 1/16). Without ties p is uniform: the last column is the largest distance between a level that "
        f"p can take and how often p lies at or below it ({REPEATS:,} draws: chance alone gives up to "
        f"{136 / math.sqrt(REPEATS):.1f} %):",
        "",
        "| clusters | p ≤ 0.05 | p ≤ 0.01 | farthest from uniform |",
        "|---|---|---|---|",
        *rows_of(false_alarms, (5, 8, 15, 40, 200), processes),
    ]
    if captions:
        from creperie.auditing import pairs_of
        from creperie.bench import load

        parts += [
            "",
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
    parser.add_argument("--write", action="store_true", help="write the tables into docs/statistics.md")
    parser.add_argument("--captions", help="a folder with SugarCrepe's files, for the learned attackers")
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
