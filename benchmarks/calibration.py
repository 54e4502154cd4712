"""Do our intervals and tests hold their level? Simulations over clusters, ties and small samples.

Writes its tables into docs/statistics.md, between the two markers there. Not a test: run it when a statistic changes.

    python benchmarks/calibration.py            # print the tables
    python benchmarks/calibration.py --write    # and put them into docs/statistics.md

With a folder of SugarCrepe's files (`--captions DIR`) the learned attackers' null distribution is measured on real
captions: roles are drawn at random, image by image, and the answers computed anew, all draws at once (ridge regression,
whose out-of-fold answers are linear in the roles); and the attackers of an audit are trained on `--sets` null sets.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from creperie.auditing import Pairs
from creperie.metrics import (
    MetricSettings,
    bootstrap,
    cluster_sums,
    jackknife_t,
    ratio,
    share_interval,
    sign_flip_p,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
SHAPES = ((60, 8), (60, 15), (200, 30), (200, 60), (500, 200), (2000, 1000))
REPEATS = 1000
SETS = (
    ("swap_obj", 60),
    ("swap_obj", 245),
    ("replace_att", 245),
    ("swap_att", 600),
    ("add_obj", 600),
    ("replace_rel", 1000),
)
REFITTED = (("swap_obj", 60), ("swap_obj", 150))
LEARNED = ("learned-linear", "learned-embedding", "ensemble")


def clustered(
    rng: np.random.Generator, items: int, clusters: int, share: float, ties: float
) -> tuple[np.ndarray, np.ndarray]:
    """Wins of items in clusters of uneven size that lean to their cluster's side (intraclass correlation 0.2)."""
    own = np.sort(np.r_[np.arange(clusters), rng.integers(0, clusters, items - clusters)])
    lean = rng.beta(4 * share, 4 * (1 - share), clusters)
    wins = (rng.random(items) < lean[own]).astype(float)
    return np.where(rng.random(items) < ties, 0.5, wins), own


def coverage(rng: np.random.Generator) -> list[str]:
    lines = ["| items | clusters | 50 % | 70 % | 90 % | 50 %, half ties |", "|---|---|---|---|---|---|"]
    for items, clusters in SHAPES:
        cells = []
        for share, ties in ((0.5, 0.0), (0.7, 0.0), (0.9, 0.0), (0.5, 0.5)):
            truth = share * (1 - ties) + 0.5 * ties
            held = 0
            for _ in range(REPEATS):
                wins, own = clustered(rng, items, clusters, share, ties)
                found = share_interval(wins, np.ones(items), own, MetricSettings())
                held += found.low <= truth <= found.high
            cells.append(f"{100 * held / REPEATS:.1f}")
        lines.append(f"| {items:,} | {clusters:,} | " + " | ".join(cells) + " |")
    return lines


def other_intervals(rng: np.random.Generator) -> list[str]:
    """The difference of two models on the same items (75 and 70 % right); the bits that an attacker of 75 % gets."""
    lines = ["| items | clusters | difference of two models | bits |", "|---|---|---|---|"]
    gains = 1 + np.log2(np.array([0.25, 0.75]))
    for items, clusters in SHAPES:
        held = np.zeros(2)
        for _ in range(REPEATS // 2):
            wins, own = clustered(rng, items, clusters, 0.75, 0.0)
            other = np.where(rng.random(items) < 0.5, rng.random(items) < 0.65, wins)  # 70 % on average
            ones = np.ones(items)
            gap = bootstrap(cluster_sums(np.stack([wins - other, ones], axis=1), own), ratio, MetricSettings())
            bits = jackknife_t(cluster_sums(np.stack([gains[wins.astype(int)], ones], axis=1), own), ratio, 0.95)
            held += gap.low <= 0.05 <= gap.high, bits.low <= 0.25 * gains[0] + 0.75 * gains[1] <= bits.high
        cells = " | ".join(f"{200 * h / REPEATS:.1f}" for h in held)
        lines.append(f"| {items:,} | {clusters:,} | {cells} |")
    return lines


def false_alarms(rng: np.random.Generator) -> list[str]:
    """Sign-flip tests of two equally good models: how often p lies at or below a level."""
    lines = ["| clusters | p ≤ 0.05 | p ≤ 0.01 |", "|---|---|---|"]
    for clusters in (5, 8, 15, 40, 200):
        draws = rng.integers(-3, 4, (4 * REPEATS, clusters)).astype(float)
        p = np.array([sign_flip_p(d) for d in draws])
        lines.append(f"| {clusters} | {100 * (p <= 0.05).mean():.1f} % | {100 * (p <= 0.01).mean():.1f} % |")
    return lines


def null_set(rng: np.random.Generator, pairs: Pairs, subset: str, size: int) -> Pairs:
    """So many items of a subset, each cluster's roles drawn at random."""
    mine = pairs.of_subset(subset)
    keep = np.zeros(mine.n_items, dtype=bool)
    keep[rng.permutation(mine.n_items)[:size]] = True
    some = mine.of_items(keep)
    flipped = (rng.random(int(some.cluster.max()) + 1) < 0.5)[some.cluster[some.item]]
    return replace(some, left=np.where(flipped, some.right, some.left), right=np.where(flipped, some.left, some.right))


def learned_null(rng: np.random.Generator, pairs: Pairs) -> list[str]:
    """Ridge regression: the spread is found with some draws of roles, coverage is counted on others."""
    from creperie.auditing import fold_count, kernel_of, null_accuracies, null_spreads, pair_features

    lines = ["| captions | pairs | mean | spread | covered |", "|---|---|---|---|---|"]
    for subset, size in SETS:
        some = null_set(rng, pairs, subset, size)
        spread = float(null_spreads(some, 1)[0])
        kernel = kernel_of(pair_features(some))
        fold = some.folds_of(np.arange(len(some)), fold_count(some.n_items), 0)
        drawn = [null_accuracies(kernel, some, fold, seed) for seed in (2, 3, 4)]
        reached, coin = np.concatenate([d[0] for d in drawn]), np.concatenate([d[1] for d in drawn])
        held = (np.abs(reached - 0.5) <= 1.96 * spread * coin).mean()
        lines.append(f"| {subset} | {len(some)} | {100 * reached.mean():.1f} % | {spread:.2f} | {100 * held:.1f} % |")
    return lines


def refitted_null(rng: np.random.Generator, pairs: Pairs, sets: int) -> list[str]:
    """The whole standard battery on null sets: coverage, and family-wise false alarms."""
    from creperie.auditing import AttackerModels, calibrated, make_attackers, measure_attacker, sendable
    from creperie.metrics import holm

    models = AttackerModels()
    names, missing = sendable([], models)
    if missing:
        raise SystemExit(f"not the whole battery: {missing}")
    lines = ["| captions | pairs | sets | " + " | ".join(LEARNED) + " | some p < 0.05 | called a leak |"]
    lines.append("|---|---|---|" + "---|" * len(LEARNED) + "---|---|")
    for subset, size in REFITTED:
        held, alarms, called = dict.fromkeys(LEARNED, 0), 0, 0
        for _ in range(sets):
            some, p, high = null_set(rng, pairs, subset, size), [], []
            for attacker in make_attackers(names, models):
                found = measure_attacker(calibrated(some, attacker.margins(some), directed=attacker.directed))
                p.append(found.p)
                high.append(found.accuracy)
                if attacker.name in held:
                    held[attacker.name] += found.low <= 0.5 <= found.high
            corrected = np.array(holm(p))
            alarms += bool((corrected < 0.05).any())
            called += bool(((corrected < 0.05) & (np.array(high) > 0.55)).any())
        cells = " | ".join(f"{100 * held[name] / sets:.0f} %" for name in LEARNED)
        lines.append(
            f"| {subset} | {size} | {sets} | {cells} | {100 * alarms / sets:.0f} % | {100 * called / sets:.0f} % |"
        )
    return lines


def report(captions: str | None, sets: int) -> str:
    rng = np.random.default_rng(0)
    parts = [
        f"Written by `python benchmarks/calibration.py --write --captions DIR --sets {sets}` "
        f"({REPEATS:,} simulated sets per cell).",
        "",
        "**Coverage of 95 % intervals** of an accuracy of so much, in percent; clusters of uneven size, items of a "
        "cluster correlated by 0.2:",
        "",
        *coverage(rng),
        "",
        "60 items in so few clusters are worth 25 to 35 independent ones, so at 90 % some three wrong answers tell all "
        "there is to know about the spread: the interval then reaches lower than it must and covers more than it says.",
        "",
        f"**Of other 95 % intervals** ({REPEATS // 2:,} sets per cell):",
        "",
        *other_intervals(rng),
        "",
        "**False alarms of the paired test** (two equally good models; exact, so never above the level):",
        "",
        *false_alarms(rng),
    ]
    if captions:
        from creperie.auditing import pairs_of
        from creperie.bench import load

        pairs = pairs_of(load(f"sugarcrepe:{captions}"))
        parts += [
            "",
            "**Learned attackers when roles mean nothing**: real captions, roles flipped at random per image and "
            "learned anew (ridge regression, 1,200 draws). The accuracy varies by *spread* times as much as that of as "
            "many coins; the audit finds the spread of each subset in the same way, with draws of its own, and widens "
            "intervals and tests by it (coverage of 95 % intervals in the last column):",
            "",
            *learned_null(rng, pairs),
        ]
        if sets:
            parts += [
                "",
                "**The whole standard battery on null sets**: real captions, roles drawn at random, every attacker "
                "trained anew (SmolLM2-135M, MiniLM, ensemble). Coverage of 95 % intervals, and how often any attacker "
                "has p < 0.05 after Holm's correction, and is called a leak (also above 55 %):",
                "",
                *refitted_null(rng, pairs, sets),
            ]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/statistics.md")
    parser.add_argument("--captions", help="a folder with SugarCrepe's files, for the learned attackers")
    parser.add_argument(
        "--sets", type=int, default=100, help="null sets on which real attackers are trained; 0 for none"
    )
    chosen = parser.parse_args()
    text = report(chosen.captions, chosen.sets)
    print(text)
    if chosen.write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
