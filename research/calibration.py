"""Do the intervals and tests of creperie.metrics hold their level? A grid of simulations in the regime of use.

Every cell draws data with a known truth, asks for the 95 % interval through the functions that print it, and counts how
often the interval holds the truth, how often none is given, and how wide it is.

    python research/calibration.py --draws 4000 --jobs 16 --json grid.json
    python research/calibration.py --from grid.json --write      # the tables of docs/results-intervals.md
    python research/calibration.py --only "independent difference" --draws 4000 --write      # a table of its own

Needs numpy and creperie.metrics only.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from creperie.metrics import (
    HIT,
    MISS,
    MetricSettings,
    auroc,
    bounded_interval,
    cohen_kappa,
    compare,
    compare_subsets,
    fleiss_kappa,
    krippendorff_alpha,
    macro,
    of_outcomes,
    ratio,
    share_interval,
)
from creperie.metrics.detection import auroc_confidence, f1
from creperie.metrics.intervals import two_share_confidence

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results-intervals.md"
BLOCK = "calibration"  #: of the page; a kind that is run alone has a block named after it
SETTINGS = MetricSettings()
#: Of a cell in which fewer draws have an interval, there is none.
MOSTLY = 0.5

Cell = dict[str, Any]
#: From a cell to the truth and to a function that draws data and gives the interval.
Kind = Callable[..., tuple[float, Callable[[np.random.Generator], tuple[float, float]]]]


def clusters_of(rng: np.random.Generator, clusters: int, size: float) -> np.ndarray:
    """The cluster of every item: lognormal sizes of this mean."""
    sizes = np.maximum(1, np.round(rng.lognormal(math.log(size) - 0.32, 0.8, clusters))).astype(int)
    return np.repeat(np.arange(clusters), sizes)


def leaning(rng: np.random.Generator, own: np.ndarray, icc: float, share: float | np.ndarray) -> np.ndarray:
    """The probability of every item: its cluster's, beta distributed."""
    strength = 1 / icc - 1
    return rng.beta(share * strength, (1 - np.asarray(share)) * strength, int(own.max()) + 1)[own]


def outcome(right: np.ndarray) -> np.ndarray:
    return np.where(right, HIT, MISS)


def accuracy(clusters: int, size: int, icc: float, share: float) -> Any:
    def draw(rng: np.random.Generator) -> tuple[float, float]:
        own = clusters_of(rng, clusters, size)
        right = rng.random(len(own)) < leaning(rng, own, icc, share)
        found = share_interval(right.astype(float), own, SETTINGS.level)
        return found.low, found.high

    return share, draw


def difference(clusters: int, size: int, icc: float, share: float, gap: float) -> Any:
    """The second model is redrawn on half of the items, with twice the gap."""

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        own = clusters_of(rng, clusters, size)
        a = rng.random(len(own)) < leaning(rng, own, icc, share)
        other = rng.random(len(own)) < leaning(rng, own, icc, share - 2 * gap)
        b = np.where(rng.random(len(own)) < 0.5, other, a)
        return _judged(compare(outcome(a), outcome(b), clusters=own, settings=SETTINGS))

    return gap, draw


def independent_difference(items: int, share: float, gap: float, changed: float) -> Any:
    """Two models on items with an image each, of which the second answers this share anew (Tango's score interval)."""

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        a, other = rng.random(items) < share, rng.random(items) < share - gap / changed
        b = np.where(rng.random(items) < changed, other, a)
        return _judged(compare(outcome(a), outcome(b), clusters=np.arange(items), settings=SETTINGS))

    return gap, draw


def small_against_large(clusters: int, size: int, icc: float, share: float) -> Any:
    """One model is better in small clusters, the other in large ones; over all items they are equal."""
    sizes = np.maximum(1, np.round(np.random.default_rng(1).lognormal(math.log(size) - 0.32, 0.8, 400_000)))
    large = float(sizes[sizes > size].sum() / sizes.sum())  #: the share of items in large clusters

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        own = clusters_of(rng, clusters, size)
        lead = np.where(np.bincount(own) > size, 0.24 * (1 - large), -0.24 * large)
        a, b = (rng.random(len(own)) < leaning(rng, own, icc, share + side * lead) for side in (0.5, -0.5))
        return _judged(compare(outcome(a), outcome(b), clusters=own, settings=SETTINGS))

    return 0.0, draw


def _judged(found: Any) -> tuple[float, float]:
    if not math.isnan(found.p) and (found.p < 0.05) != (not found.low <= 0 <= found.high):
        raise AssertionError(f"p-value and interval disagree: {found}")
    return found.low, found.high


def macro_mean(sizes: tuple[int, ...], share: float, icc: float) -> Any:
    """Subsets of these sizes, items of five on one image, which are of all subsets; the first subset is harder."""
    shares = np.r_[0.85 * share, np.full(len(sizes) - 1, share)]

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        subset = np.repeat(np.arange(len(sizes)), sizes)
        own = rng.permutation(len(subset)) // 5
        right = rng.random(len(own)) < leaning(rng, own, icc, share) * shares[subset] / share
        row = macro(of_outcomes(outcome(right), ""), subset, clusters=own, settings=SETTINGS)
        return row.low, row.high

    return float(shares.mean()), draw


def macro_difference(sizes: tuple[int, ...], share: float, icc: float) -> Any:
    """Of two models, the second redrawn on half of the items with 10 points less."""

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        subset = np.repeat(np.arange(len(sizes)), sizes)
        own = rng.permutation(len(subset)) // 5
        a = rng.random(len(own)) < leaning(rng, own, icc, share)
        b = np.where(rng.random(len(own)) < 0.5, rng.random(len(own)) < share - 0.1, a)
        return _judged(compare_subsets(outcome(a), outcome(b), subset, clusters=own, settings=SETTINGS))

    return 0.05, draw


def agreement(items: int, rare: float, kappa: float, readers: int, coefficient: str) -> Any:
    """A reader sees the truth, or guesses with the rare answer's share: kappa is the square of how often it is seen."""

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        truth = rng.random((items, 1)) < rare
        seen = rng.random((items, readers)) < math.sqrt(kappa)
        ratings = np.where(seen, truth, rng.random((items, readers)) < rare).astype(float)
        if coefficient == "cohen":
            found = cohen_kappa(ratings[:, 0], ratings[:, 1], settings=SETTINGS)
        else:
            found = {"alpha": krippendorff_alpha, "fleiss": fleiss_kappa}[coefficient](ratings, settings=SETTINGS)
        return found.low, found.high

    return kappa, draw


def f1_score(clusters: int, size: int, icc: float, share: float) -> Any:
    """Captions are taken for true by `share`, foils for false by nine tenths of that."""

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        own = clusters_of(rng, clusters, size)
        lean, one = leaning(rng, own, icc, share), np.ones(len(own))
        columns = np.stack([rng.random(len(own)) < lean, rng.random(len(own)) < 0.9 * lean, one, one], axis=1)
        found = two_share_confidence(columns, f1, own).interval(SETTINGS.level)
        return found.low, found.high

    return 2 * share / (2 + 0.1 * share), draw


def area(clusters: int, size: int, icc: float, share: float) -> Any:
    """Scores of a caption and a foil per item; images differ in the gap, and a little in the level."""
    noise, spread, level = 1.0, math.sqrt(icc / (1 - icc)), 0.1
    deviation = math.sqrt(2 * noise**2 + spread**2 + 2 * level**2)
    from statistics import NormalDist

    gap = NormalDist().inv_cdf(share) * deviation

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        own = clusters_of(rng, clusters, size)
        base = rng.normal(0, level, clusters)[own]
        lead = rng.normal(gap, spread, clusters)[own]
        scores = np.r_[base + lead, base] + rng.normal(0, noise, 2 * len(own))
        cells = np.arange(2 * len(own))
        found = auroc_confidence(auroc(scores, cells < len(own)), cells % len(own), np.r_[own, own]).interval(0.95)
        return found.low, found.high

    return share, draw


def mean_rank(clusters: int, size: int, icc: float, share: float) -> Any:
    """The true caption's rank among ten; each false one comes first with probability 1 − share."""

    def draw(rng: np.random.Generator) -> tuple[float, float]:
        own = clusters_of(rng, clusters, size)
        rank = 1.0 + rng.binomial(9, 1 - leaning(rng, own, icc, share))
        found = bounded_interval(np.stack([rank, np.ones(len(own))], axis=1), ratio, own, SETTINGS, (1, 10))
        return found.low, found.high

    return 1 + 9 * (1 - share), draw


KINDS: dict[str, Kind] = {
    "accuracy": accuracy,
    "difference": difference,
    "independent difference": independent_difference,
    "small against large": small_against_large,
    "macro mean": macro_mean,
    "macro difference": macro_difference,
    "agreement": agreement,
    "F1": f1_score,
    "AUROC": area,
    "mean rank": mean_rank,
}
SUBSETS = ((1, 600), (1, 5, 40, 600), (3, 3, 3), (20, 20, 20), (1,) * 8 + (100,), (200, 300, 600))


def cells() -> Iterator[Cell]:
    """The whole grid."""
    counts, iccs = (8, 15, 30, 60, 100), (0.05, 0.2, 0.4)
    for clusters, size, icc, share in product(counts, (4, 20), iccs, (0.5, 0.7, 0.9, 0.98)):
        yield {"kind": "accuracy", "clusters": clusters, "size": size, "icc": icc, "share": share}
    for clusters, icc, share, gap in product(counts, iccs, (0.7, 0.95), (0.0, 0.05)):
        yield {"kind": "difference", "clusters": clusters, "size": 8, "icc": icc, "share": share, "gap": gap}
    for items, share, gap, changed in product((30, 100, 400, 2000), (0.7, 0.95), (0.0, 0.03), (0.06, 0.3)):
        yield {"kind": "independent difference", "items": items, "share": share, "gap": gap, "changed": changed}
    for clusters, icc in product(counts, iccs):
        yield {"kind": "small against large", "clusters": clusters, "size": 8, "icc": icc, "share": 0.75}
    for kind, sizes, share, icc in product(("macro mean", "macro difference"), SUBSETS, (0.6, 0.9), (0.05, 0.3)):
        yield {"kind": kind, "sizes": sizes, "share": share, "icc": icc}
    for items, rare, kappa, readers in product((20, 50, 100, 300), (0.02, 0.05, 0.1, 0.2), (0.4, 0.7, 0.95), (2, 3, 4)):
        coefficient = {2: "cohen", 3: "alpha", 4: "fleiss"}[readers]
        yield {
            **{"kind": "agreement", "items": items, "rare": rare, "kappa": kappa},
            **{"readers": readers, "coefficient": coefficient},
        }
    for kind, clusters, icc, share in product(("F1", "AUROC", "mean rank"), counts, iccs, (0.6, 0.9, 0.98)):
        yield {"kind": kind, "clusters": clusters, "size": 8, "icc": icc, "share": share}


def measured(task: tuple[Cell, int]) -> Cell:
    """A cell with its coverage, the share of draws without an interval, and the median width."""
    cell, draws = task
    numbers = [int(1000 * v) for v in _flat(cell)]
    rng = np.random.default_rng([len(cell["kind"]), *numbers])
    truth, draw = KINDS[cell["kind"]](**{k: v for k, v in cell.items() if k != "kind"})
    ends = np.array([draw(rng) for _ in range(draws)])
    known = ~np.isnan(ends).any(axis=1)
    low, high = ends[known].T
    held = float(((low <= truth + 1e-12) & (truth - 1e-12 <= high)).mean()) if known.any() else math.nan
    width = float(np.median(high - low)) if known.any() else math.nan
    missed_below, missed_above = ((float(x.mean()) if known.any() else math.nan) for x in (low > truth, high < truth))
    return {
        **cell,
        **{"truth": truth, "draws": draws, "coverage": held, "none": 1 - float(known.mean()), "width": width},
        **{"truth below": missed_below, "truth above": missed_above},
    }


def _flat(cell: Cell) -> Iterator[float]:
    for value in cell.values():
        if isinstance(value, (tuple, list)):
            yield from value
        elif not isinstance(value, str):
            yield value


def within(cell: Cell) -> bool:
    return bool(0.93 <= cell["coverage"] <= 0.99)


def summary(found: Sequence[Cell]) -> list[str]:
    """One row per kind of statistic."""
    lines = [
        "| statistic | cells | without an interval | 93 to 99 % | above 99 % | below 93 % | lowest | median width |",
        "|---|---|---|---|---|---|---|---|",
    ]
    kinds = list(dict.fromkeys(cell["kind"] for cell in found))
    for kind in [*kinds, "together"] if len(kinds) > 1 else kinds:
        mine = [cell for cell in found if kind in (cell["kind"], "together")]
        given = [cell for cell in mine if cell["none"] <= 1 - MOSTLY]
        coverage = [100 * cell["coverage"] for cell in given]
        width = np.median([cell["width"] for cell in given])
        good, high = sum(within(cell) for cell in given), sum(share > 99 for share in coverage)
        counts = (len(mine), len(mine) - len(given), good, high, len(given) - good - high)
        lines.append(f"| {kind} | {' | '.join(map(str, counts))} | {min(coverage):.1f} | {width:.2f} |")
    return lines


def outside(found: Sequence[Cell]) -> list[str]:
    """The cells that are not between 93 and 99 %."""
    lines = []
    for cell in found:
        if cell["none"] <= 1 - MOSTLY and not within(cell):
            own = ", ".join(f"{k} {v}" for k, v in list(cell.items())[1:] if k in _named(cell))
            lines.append(f"{cell['kind']}: {own}: {100 * cell['coverage']:.1f} %, width {cell['width']:.3f}")
    return lines


def _named(cell: Cell) -> set[str]:
    return {
        "clusters",
        "size",
        "icc",
        "share",
        "gap",
        "changed",
        "sizes",
        "items",
        "rare",
        "kappa",
        "readers",
        "coefficient",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=400, help="simulated sets per cell")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="cells of this kind")
    parser.add_argument("--every", type=int, default=1, help="every n-th cell")
    parser.add_argument("--skip", type=int, default=0, help="cells before the first one")
    parser.add_argument("--json", type=Path, help="write the cells into this file")
    parser.add_argument("--from", dest="sources", type=Path, nargs="+", help="read the cells from these files")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/results-intervals.md")
    chosen = parser.parse_args()
    started = time.time()
    if chosen.sources:
        found = [cell for path in chosen.sources for cell in json.loads(path.read_text())]
    else:
        tasks = [(c, chosen.draws) for c in cells() if chosen.only in (None, c["kind"])][chosen.skip :: chosen.every]
        if chosen.jobs > 1:
            with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
                found = pool.map(measured, tasks, chunksize=1)
        else:
            found = [measured(task) for task in tasks]
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))
    draws, whole = min(cell["draws"] for cell in found), sum(chosen.only in (None, c["kind"]) for c in cells())
    way = "--draws 4000 --jobs 16 --json grid.json`, then `--from grid.json --write"
    way = f'--only "{chosen.only}" --draws {draws} --write' if chosen.only else way
    lines = [
        f"Coverage of 95 % intervals in percent, {draws:,} draws or more per cell, {len(found)} of {whole} cells; by "
        f"`python research/calibration.py {way}`.",
        "",
        *summary(found),
    ]
    print("\n".join([*lines, "", "outside of 93 to 99 %:", *outside(found), f"{time.time() - started:.0f} s"]))
    if chosen.write:
        begin, end = (f"<!-- {chosen.only or BLOCK}: {word} -->" for word in ("begin", "end"))
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        low = [cell for cell in found if cell["coverage"] < 0.93]
        text = "\n".join([*lines, "", *("- " + line for line in outside(low))]).rstrip()
        PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
