"""How long mixed models take at 10^5 rows: python research/stats_speed.py [--rows N] [--lme4].

Rows are comparisons of captions with foils by six models on 4,200 pictures with two captions each; the outcome is
drawn from known effects. With --lme4 the same data and formulas go to R, where it is installed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from creperie.statistics import Analysis, Family, terms, write_table
from creperie.statistics.analyse import fit

MODELS = 6
FIXED = "grammaticality*type + simplified"
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "image": (FIXED + " + model", ("image",)),
    "image, caption in image": (FIXED + " + model", ("image", "caption")),
    "image, caption in image, model": (FIXED, ("image", "caption", "model")),
    "image, 500 verbs across images, model": (FIXED, ("image", "verb", "model")),
}


def rows(n: int, seed: int = 0) -> pa.Table:
    """About n rows."""
    rng = np.random.default_rng(seed)
    images = n // (4 * MODELS)
    image = np.repeat(np.arange(images), 4 * MODELS)
    caption = np.repeat(np.arange(2 * images), 2 * MODELS)
    verb = rng.integers(0, 500, 2 * images)[caption]
    model = np.tile(np.arange(MODELS), 4 * images)
    grammar = rng.integers(0, 3, 4 * images).repeat(MODELS)
    simplified = rng.integers(0, 2, images).repeat(4 * MODELS)
    kind = rng.integers(0, 3, 2 * images).repeat(2 * MODELS)
    eta = 0.2 + np.array([0.1, -0.3, 0.0])[grammar] + 0.2 * simplified + np.linspace(-0.5, 0.5, MODELS)[model]
    eta += rng.normal(0, 0.6, images)[image] + rng.normal(0, 0.4, 2 * images)[caption] + rng.normal(0, 0.3, 500)[verb]
    chosen = (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(int)
    return pa.table(
        {
            "chosen": chosen,
            "image": np.char.add("i", image.astype(str)),
            "caption": np.char.add("c", caption.astype(str)),
            "verb": np.char.add("v", verb.astype(str)),
            "model": np.char.add("m", model.astype(str)),
            "grammaticality": np.array(["caption", "equal", "foil"])[grammar],
            "type": np.array(["active", "ditransitive", "passive"])[kind],
            "simplified": np.where(simplified, "yes", "no"),
        }
    )


def timed(table: pa.Table, fixed: str, random: tuple[str, ...], family: Family) -> str:
    """Seconds of this process (a busy machine does not change them) and of the clock, and what came out."""
    start, clock = time.process_time(), time.perf_counter()
    found, _ = fit(table, Analysis("chosen", terms(fixed), random, family))
    seconds = f"{time.process_time() - start:6.1f} s of CPU, {time.perf_counter() - clock:6.1f} s"
    spreads = ", ".join(f"{s.name} {s.sd:.3f}" for s in found.spreads)
    return f"{seconds}  {found.convergence.line.split(' (')[0]}; log-lik {found.log_likelihood:.2f}; {spreads}"


def by_lme4(file: Path, fixed: str, random: tuple[str, ...], family: Family) -> str:
    formula = f"chosen ~ {fixed} + " + " + ".join(f"(1 | {name})" for name in random)
    call = f"lmer({formula}, d)" if family == "linear" else f"glmer({formula}, d, binomial)"
    code = (
        f"suppressMessages(library(lme4)); d <- read.csv('{file}', stringsAsFactors = TRUE); "
        f"t <- system.time(m <- {call}); "
        "cat(sprintf('%.1f s of CPU, %.1f s; log-lik %.2f', t[[1]] + t[[2]], t[['elapsed']], logLik(m)))"
    )
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False, timeout=3600)
    return done.stdout or done.stderr.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_800)
    parser.add_argument("--lme4", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--family", choices=["linear", "logistic"])
    arguments = parser.parse_args()
    if arguments.lme4 and not shutil.which("Rscript"):
        parser.error("--lme4 needs R and its package lme4")
    table = rows(arguments.rows)
    print(f"{len(table):,} rows")
    families: list[Family] = [arguments.family] if arguments.family else ["linear", "logistic"]
    with tempfile.TemporaryDirectory() as folder:
        file = write_table(table, Path(folder) / "rows.csv")
        for family in families:
            for name, (fixed, random) in CASES.items():
                if arguments.only not in name:
                    continue
                print(f"{family:8}  {name:40}  {timed(table, fixed, random, family)}", flush=True)
                if arguments.lme4:
                    print(f"{'':8}  {'R lme4':40}  {by_lme4(file, fixed, random, family)}", flush=True)


if __name__ == "__main__":
    main()
