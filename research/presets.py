"""Do the presets of `creperie stats` hold their level? Null data, on which no factor matters.

Items, their images and, within items, comparisons differ in difficulty; models differ in ability. Every effect but
that of the model is false then, and about one in twenty should have p < 0.05. With families, the models of one share
what a factor does to them and which items they find hard; over all families, no factor matters.

    python research/presets.py --tables 200 --jobs 2
    python research/presets.py --preset foils --families 4 --tables 60      # and --ignore, for the same without families
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
from creperie.statistics import find_analysis_preset, fit_study, with_families

ITEMS = 90
STEMS = ("alder", "birch", "cedar", "dogwood", "elm", "fir")
#: Deviation of the comparisons of an item, relative to that of items.
WITHIN = 0.5
#: The comparisons of an item, caption and foil, by preset.
COMPARISONS = {"foils": ("1-1",), "construction": ("1-1", "2-2"), "argument-order": ("1-1", "2-2", "2-1")}
TYPES = ("active", "passive", "dative", "ditransitive")


#: What a factor does to the models of a family, and how hard they find an item: deviations between families, in logits.
FAMILY = 0.7


def null_table(rng: np.random.Generator, preset: str, models: int, deviation: float, families: int = 0) -> pa.Table:
    """Answers of models on items that differ in difficulty by `deviation`, as logits; nothing else matters, but for
    families of models.
    """
    compared = COMPARISONS[preset]
    item, comparison = np.repeat(np.arange(ITEMS), len(compared)), np.tile(compared, ITEMS)
    image = rng.integers(0, ITEMS * 2 // 3, ITEMS)
    ease = 0.8 + rng.normal(0, deviation, ITEMS) + rng.normal(0, 0.5, ITEMS)[image]
    pair = ease[item] + (rng.normal(0, WITHIN * deviation, len(item)) if len(compared) > 1 else 0)
    ability, luck = rng.normal(0, 0.5, models), rng.random((models, len(item)))
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
    eta = ability[:, None] + np.tile(pair, (models, 1))
    family = np.arange(models) % families if families else np.arange(models)
    if families:
        eta += rng.normal(0, FAMILY, (families, ITEMS))[family][:, item]
        for factor in ("longer", "subset", "grammaticality", "type", "order"):
            _, level = np.unique(columns[factor], return_inverse=True)
            eta += rng.normal(0, FAMILY, (families, int(level.max()) + 1))[family][:, level]
    chosen = luck < 1 / (1 + np.exp(-eta))
    named = [f"{STEMS[f]}-{m:02d}" if families else f"m{m:02d}" for m, f in enumerate(family)]
    names = np.repeat(named, len(item))
    table = {"chosen": chosen.ravel().astype(float), "model": names}
    return pa.table({**table, **{k: np.tile(v, models) for k, v in columns.items()}})


def p_values(task: tuple[Any, ...]) -> list[float]:
    """The p-values of all effects but the models', of one null table: preset, models, deviation, seed and, if any, how
    many families there are and the option `families=`.
    """
    preset, models, deviation, seed, families, option = (*task, 0, "")[:6] if len(task) == 4 else task
    table = null_table(np.random.default_rng([seed, models, int(10 * deviation)]), preset, models, deviation, families)
    chosen = find_analysis_preset(preset)
    try:
        study = with_families(table, chosen.analyses, option, chosen.ours)
        found = fit_study(study.table, study.analyses, lenient=True)
    except CreperieError:
        return []
    return [c.p for one in found.fits for c in one.fit.coefficients[1:] if not c.name.startswith("model")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tables", type=int, default=100, help="null tables per row")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--preset", choices=list(COMPARISONS), action="append")
    parser.add_argument("--families", type=int, default=0, help="families that the models belong to")
    parser.add_argument("--ignore", action="store_true", help="leave families out of the analysis")
    parser.add_argument("--models", type=int, action="append", help="by default 5 and 12")
    chosen = parser.parse_args()
    print("| preset | models | item deviation | effects | p < 0.05, % | standard error | s |")
    print("|---|---|---|---|---|---|---|")
    for preset, models, deviation in product(chosen.preset or COMPARISONS, chosen.models or (5, 12), (1.0, 2.0)):
        started = time.time()
        more = (chosen.families, "none" if chosen.ignore else "auto" if chosen.families else "")
        tasks = [(preset, models, deviation, seed, *more) for seed in range(chosen.tables)]
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
