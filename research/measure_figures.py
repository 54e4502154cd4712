"""The figures of docs/measure.md, drawn by the commands that the page names.

python research/measure_figures.py --data ../shared/data/sugarcrepe
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from creperie.bench import Item, choice, from_items
from creperie.scoring import Run, layout_of_bench, score_table
from creperie.scoring.run import VERSION

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
BLIND = ("length-words", "length-chars", "surface", "negation", "frequency", "rarity")


def simulated_runs(folder: Path, models: int = 40, items: int = 500) -> None:
    """Runs of models that know or guess, with known abilities, on items of which 5 % have a wrong label."""
    rng = np.random.default_rng(0)
    difficulty, slope, ability = rng.normal(0, 1.5, items), rng.lognormal(0.2, 0.3, items), rng.normal(0, 1, models)
    wrong = rng.random(items) < 0.05
    bench = from_items("simulated", [Item(str(k), "s", (), (f"a{k}", f"b{k}"), choice(1, 1), {}) for k in range(items)])
    layout, header = layout_of_bench(bench), {"creperie": VERSION, "tasks": ["blind"], "results": [], "findings": []}
    header |= {"benchmark": {"name": bench.name, "hash": bench.hash}, "settings": {"ties": "wrong"}}
    for m in range(models):
        right = rng.random(items) < 0.5 + 0.5 / (1 + np.exp(-slope * (ability[m] - difficulty)))
        scores = np.stack([right != wrong, right == wrong], axis=1).astype(np.float32)
        about = {"name": f"simulated.{m:02d}", "model": {"uri": f"simulated:{m:02d}"}}
        Run(header | about, score_table(bench, layout, {"text": scores.ravel()})).save(folder)


def creperie(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "creperie", *words], check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, help="the released files of SugarCrepe")
    data = parser.parse_args().data
    with tempfile.TemporaryDirectory() as folder:
        runs, blind = Path(folder, "simulated"), Path(folder, "blind")
        simulated_runs(runs)
        for name in BLIND:
            creperie("score", f"sugarcrepe:{data}", "--model", f"blind:{name}", "--out", str(blind))
        creperie("items", str(runs), "--plot", str(IMAGES / "items.svg"))
        creperie("robust", str(blind), "--plot", str(IMAGES / "robust.svg"))
    creperie("power", "compare", "--items", "1000", "--difference", "0.03", "--plot", str(IMAGES / "power.svg"))


if __name__ == "__main__":
    main()
