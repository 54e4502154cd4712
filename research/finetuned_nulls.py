"""The fine-tuned attacker beside the linear one on SugarCrepe's subsets, and on sets whose roles are drawn at random.

    python research/finetuned_nulls.py sugarcrepe:DIR --encoder st:… [--also BENCH] [--nulls 50] [--processes 8]

Each set is attacked in a process of its own, on a GPU if there is one; rows go to research/results/finetuned.jsonl as
they come, and what is there already is not computed again. A null set is swap_obj, or the benchmark of --also, with
true and false swapped by a coin for all captions of an image at once: an attacker is at chance there if its 95 %
interval holds 50 %. `research/pages.py` makes the table in docs/audit.md of it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))
RESULTS = HERE / "results" / "finetuned.jsonl"
SUBSETS = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
Task = tuple[str, str, str, str, int, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sugarcrepe")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--also", help="another benchmark, as a saved folder")
    parser.add_argument("--nulls", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    sets = [(args.sugarcrepe, name, name) for name in SUBSETS]
    small = [sets[-1]]
    if args.also:
        sets.append((args.also, "", Path(args.also).name))
        small.append(sets[-1])
    tasks = [(*one, "true", 0, who) for who in ("finetuned", "learned-linear") for one in sets]
    tasks += [
        (*one, "random", seed + 100 * (one is sets[6]), "finetuned") for seed in range(args.nulls) for one in small
    ]
    known = {key(json.loads(line)) for line in RESULTS.read_text().splitlines()} if RESULTS.exists() else set()
    missing = [(*task, args.encoder) for task in tasks if task[2:] not in known]
    RESULTS.parent.mkdir(exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool, RESULTS.open("a") as out:
        for row in pool.imap_unordered(attack, missing):
            print(row, flush=True)
            out.write(json.dumps(row) + "\n")
            out.flush()
    return 0


def key(row: dict[str, Any]) -> tuple[str, str, int, str]:
    return row["set"], row["roles"], row["seed"], row["attacker"]


def attack(task: tuple[str, str, str, str, int, str, str]) -> dict[str, Any]:
    from creperie.auditing import AttackerModels, calibrated, make_attackers, measure_attacker, pairs_of
    from creperie.bench import load

    spec, subset, name, roles, seed, who, encoder = task
    start = time.time()
    bench = load(spec)
    pairs = pairs_of(bench.only([subset]) if subset else bench)
    if roles == "random":
        rng = np.random.default_rng(seed)
        flip = (rng.random(pairs.cluster.max() + 1) < 0.5)[pairs.cluster][pairs.item]
        left, right = np.where(flip, pairs.right, pairs.left), np.where(flip, pairs.left, pairs.right)
        pairs = replace(pairs, left=left, right=right)
    attacker = make_attackers([who], AttackerModels(seed=0, encoder=encoder))[0]
    found = measure_attacker(calibrated(pairs, attacker.margins(pairs), directed=True))
    row = {"set": name, "roles": roles, "seed": seed, "attacker": who, "n": int(found.n)}
    row |= {part: round(float(getattr(found, part)), 4) for part in ("accuracy", "low", "high")}
    return row | {"p": float(f"{found.p:.3g}"), "seconds": round(time.time() - start, 1)}


if __name__ == "__main__":
    sys.exit(main())
