"""Do our intervals and tests hold their level? Simulations over clusters, ties and small samples.

Writes its tables into docs/statistics.md, between the two markers there. Not a test: run it when a statistic changes.

    python benchmarks/calibration.py            # print the tables
    python benchmarks/calibration.py --write    # and put them into docs/statistics.md

With a folder of SugarCrepe's files (`--captions DIR`) the learned attackers' null distribution is measured on real
captions: roles are drawn at random, image by image, and the answers computed anew, all draws at once (ridge regression,
whose out-of-fold answers are linear in the roles).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from creperie.metrics import MetricSettings, share_interval, sign_flip_p

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
SHAPES = ((60, 8), (60, 15), (200, 30), (200, 60), (500, 200), (2000, 1000))
REPEATS = 1000
SETS = (("swap_obj", 60), ("swap_obj", 245), ("replace_att", 245), ("swap_att", 600), ("add_obj", 600))


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


def false_alarms(rng: np.random.Generator) -> list[str]:
    """Sign-flip tests of two equally good models: how often p lies at or below a level."""
    lines = ["| clusters | p ≤ 0.05 | p ≤ 0.01 |", "|---|---|---|"]
    for clusters in (5, 8, 15, 40, 200):
        draws = rng.integers(-3, 4, (4 * REPEATS, clusters)).astype(float)
        p = np.array([sign_flip_p(d) for d in draws])
        lines.append(f"| {clusters} | {100 * (p <= 0.05).mean():.1f} % | {100 * (p <= 0.01).mean():.1f} % |")
    return lines


def learned_null(rng: np.random.Generator, folder: str) -> list[str]:
    from creperie.auditing import LEARNED_SPREAD, grouped_folds, pair_features, pairs_of
    from creperie.bench import load

    pairs = pairs_of(load(f"sugarcrepe:{folder}"))
    lines = ["| captions | pairs | mean | SD, in coins | covered |", "|---|---|---|---|---|"]
    for subset, size in SETS:
        mine = pairs.of_subset(subset)
        keep = np.zeros(mine.n_items, dtype=bool)
        keep[rng.permutation(mine.n_items)[:size]] = True
        some = mine.of_items(keep)
        features = pair_features(some)
        scale = np.sqrt((features.dense**2).mean(axis=0))
        dense = features.dense / np.where(scale > 0, scale, 1)
        kernel = np.asarray((features.sparse @ features.sparse.T).todense()) + dense @ dense.T
        cluster = np.unique(some.cluster, return_inverse=True)[1][some.item]
        roles = rng.choice([-1.0, 1.0], size=(cluster.max() + 1, REPEATS))[cluster]
        answers = np.zeros_like(roles)
        fold = grouped_folds(some.group[some.item], 10, 0)
        for k in range(10):
            train, test = fold != k, fold == k
            solved = np.linalg.solve(kernel[np.ix_(train, train)] + 30 * np.eye(train.sum()), roles[train])
            answers[test] = kernel[np.ix_(test, train)] @ solved
        reached = (answers * roles > 0).mean(axis=0)
        coin = np.sqrt((np.bincount(cluster) ** 2).sum() / 4) / len(some)
        held = (np.abs(reached - 0.5) <= 1.96 * LEARNED_SPREAD * coin).mean()
        figures = f"{100 * reached.mean():.1f} % | {reached.std() / coin:.2f} | {100 * held:.1f} %"
        lines.append(f"| {subset} | {len(some)} | {figures} |")
    return lines


def report(captions: str | None) -> str:
    rng = np.random.default_rng(0)
    parts = [
        f"Written by `python benchmarks/calibration.py --write` ({REPEATS:,} simulated sets per cell).",
        "",
        "**Coverage of 95 % intervals** of an accuracy of so much, in percent; clusters of uneven size, items of a "
        "cluster correlated by 0.2:",
        "",
        *coverage(rng),
        "",
        "**False alarms of the paired test** (two equally good models; exact, so never above the level):",
        "",
        *false_alarms(rng),
    ]
    if captions:
        parts += [
            "",
            "**Learned attackers when roles mean nothing**: real captions, roles drawn at random per image and learned "
            "anew. The accuracy varies more than that of as many coins (third column); `LEARNED_SPREAD` widens its "
            "intervals (coverage in the last column):",
            "",
            *learned_null(rng, captions),
        ]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/statistics.md")
    parser.add_argument("--captions", help="a folder with SugarCrepe's files, for the learned attackers")
    chosen = parser.parse_args()
    text = report(chosen.captions)
    print(text)
    if chosen.write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
