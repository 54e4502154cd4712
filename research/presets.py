"""Do the presets of `creperie stats` hold their level? Null data, on which no factor matters.

Items, their images and, within items, comparisons differ in difficulty; models differ in ability. Every effect but
that of the model is false then, and about one in twenty should have p < 0.05.

    python research/presets.py --tables 200 --jobs 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.core import CreperieError
from creperie.statistics import AnalysisExtras, find_analysis_preset, fit_study

ITEMS = 90
#: Deviation of the comparisons of an item, relative to that of items.
WITHIN = 0.5
#: The comparisons of an item, caption and foil, by preset.
COMPARISONS = {"foils": ("1-1",), "construction": ("1-1", "2-2"), "argument-order": ("1-1", "2-2", "2-1")}
TYPES = ("active", "passive", "dative", "ditransitive")


def null_table(rng: np.random.Generator, preset: str, models: int, deviation: float) -> pa.Table:
    """Answers of models on items that differ in difficulty by `deviation`, as logits; nothing else matters."""
    compared = COMPARISONS[preset]
    item, comparison = np.repeat(np.arange(ITEMS), len(compared)), np.tile(compared, ITEMS)
    image = rng.integers(0, ITEMS * 2 // 3, ITEMS)
    ease = 0.8 + rng.normal(0, deviation, ITEMS) + rng.normal(0, 0.5, ITEMS)[image]
    pair = ease[item] + (rng.normal(0, WITHIN * deviation, len(item)) if len(compared) > 1 else 0)
    ability = rng.normal(0, 0.5, models)
    chosen = rng.random((models, len(item))) < 1 / (1 + np.exp(-ability[:, None] - pair))
    # The second caption of an item says the same in the other construction of the pair.
    first = rng.choice([0, 2], ITEMS) if preset == "argument-order" else np.where(rng.random(ITEMS) < 0.5, 0, 2)
    other = np.array([0 if c[0] == "1" else 1 for c in comparison])
    kind = np.where(first[item] == 0, other, np.where(other == 0, 0 if preset == "construction" else 2, 3))
    columns: dict[str, Any] = {
        "longer": rng.choice(["caption", "equal", "foil"], len(item)),
        "subset": rng.choice(["swap", "replace", "add"], ITEMS)[item],
        "grammaticality": rng.choice(["caption", "equal", "foil"], len(item)),
        "type": np.array(TYPES)[kind],
        "order": np.where(comparison == "2-1", "different", "alike"),
        "simplified": rng.choice(["no", "yes"], ITEMS)[item],
        "source": rng.choice(["one", "two"], ITEMS)[item],
        "comparison": comparison,
        "image": image[item].astype(str),
        "item": item.astype(str),
    }
    names = np.repeat([f"m{m:02d}" for m in range(models)], len(item))
    table = {"chosen": chosen.ravel().astype(float), "model": names}
    return pa.table({**table, **{k: np.tile(v, models) for k, v in columns.items()}})


def p_values(task: tuple[str, int, float, int]) -> list[float]:
    """The p-values of all effects but the models', of one null table."""
    preset, models, deviation, seed = task
    table = null_table(np.random.default_rng([seed, models, int(10 * deviation)]), preset, models, deviation)
    try:
        found = fit_study(table, find_analysis_preset(preset).analyses, AnalysisExtras(lenient=True))
    except CreperieError:
        return []
    return [c.p for one in found.fits for c in one.fit.coefficients[1:] if not c.name.startswith("model")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tables", type=int, default=100, help="null tables per row")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--preset", choices=list(COMPARISONS), action="append")
    chosen = parser.parse_args()
    print("| preset | models | item deviation | effects | p < 0.05, % | standard error | s |")
    print("|---|---|---|---|---|---|---|")
    for preset, models, deviation in product(chosen.preset or COMPARISONS, (5, 12), (1.0, 2.0)):
        started = time.time()
        tasks = [(preset, models, deviation, seed) for seed in range(chosen.tables)]
        if chosen.jobs == 1:
            tables = list(map(p_values, tasks))
        else:
            with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
                tables = pool.map(p_values, tasks, chunksize=1)
        false = np.array([p < 0.05 for one in tables for p in one])
        # Effects of one table are correlated: tables are the units.
        shares = np.array([np.mean(np.array(one) < 0.05) for one in tables if one])
        error = shares.std(ddof=1) / np.sqrt(len(shares))
        row = (preset, models, deviation, len(false), f"{100 * false.mean():.1f}", f"{100 * error:.1f}")
        print("| " + " | ".join(map(str, row)) + f" | {time.time() - started:.0f} |", flush=True)


if __name__ == "__main__":
    main()
