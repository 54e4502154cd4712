"""Fresh draws: is what a maker and a refinement give called clean by the audit, again and again?

    python research/fresh_draws.py flickr8k:DIR sugarcrepe:DIR --seeds 21 22 23 --captions 6000 --out out/fresh

Shows: for every corpus and seed, one-image foils (`make rules:replace --foils 8 --unmatched --apart`, then `refine --method words`) audited by
attackers that were not selected against, with the whole corpus known to n-gram models; and every attacker's accuracy pooled over the draws.
Runs: about four minutes per draw on two cores without a language model (`--lm` names one); `results/fresh_draws.json` and a table for the docs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from creperie.auditing import AttackerModels, audit
from creperie.bench import load
from creperie.cli import main as creperie

ATTACKERS = (
    *("length-words", "length-chars", "frequency", "rarity", "learned-linear", "learned-boosted"),
    *("ngram-3", "ngram-4", "ngram-5", "cooccurrence"),
)


def command(*words: object) -> None:
    """Run a command of creperie; exit codes above 3 are defects."""
    try:
        creperie([str(w) for w in words])
    except SystemExit as ended:
        if ended.code not in (0, 1, 3):
            raise


def draw(corpus: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """One draw: candidates, what the refinement keeps, and its audit."""
    place = asked.out / f"{corpus.partition(':')[0]}-{seed}"
    made, kept = place / "candidates", place / "words"
    how = ("--sample", asked.captions, "--foils", 8, "--unmatched", "--apart", "--seed", seed)
    if not made.is_dir():
        command("make", "rules:replace", "--captions", corpus, *how, "--out", made)
    if not kept.is_dir():
        command("refine", made, "--method", asked.method, "--no-audit", "--seed", seed, "--out", kept)
    models = AttackerModels(lm=asked.lm or "none", encoder="none", corpus=corpus, seed=seed)
    names = (*ATTACKERS, *(("lm-mean", "lm-sum") if asked.lm else ()))
    found = audit(load(str(kept)), names, models)
    rows = [
        {"subset": r.subset, "attacker": r.attacker, "n": r.measure.n, "accuracy": r.measure.raw, "low": r.measure.low}
        | {"high": r.measure.high, "leaks": r.leaks}
        for r in found.rows
    ]
    counts = {"candidates": len(load(str(made))), "kept": found.items, "subsets": load(str(kept)).subsets}
    return {"corpus": corpus.partition(":")[0], "seed": seed, **counts, "text": found.text, "rows": rows}


def pooled(draws: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every attacker's accuracy over all draws, by kind, in the direction that it is named for."""
    total: dict[tuple[str, str], list[float]] = {}
    for row in (row for one in draws for row in one["rows"]):
        sums = total.setdefault((row["subset"], row["attacker"]), [0.0, 0.0])
        sums[0] += row["n"]
        sums[1] += row["n"] * row["accuracy"]
    return [{"subset": s, "attacker": a, "n": int(n), "accuracy": right / n} for (s, a), (n, right) in total.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[21, 22, 23])
    parser.add_argument("--captions", type=int, default=6000)
    parser.add_argument("--method", default="words")
    parser.add_argument("--lm", default="")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    draws = []
    for corpus in asked.corpora:
        for seed in asked.seeds:
            draws.append(draw(corpus, seed, asked))
            print(f"{draws[-1]['corpus']} {seed}: {draws[-1]['kept']:,} kept; {draws[-1]['text']}", file=sys.stderr)
            whole = {"draws": draws, "pooled": pooled(draws)}
            (asked.out / f"fresh-{asked.method}.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")
    subsets = list(dict.fromkeys(row["subset"] for row in whole["pooled"]))
    cells = {(r["subset"], r["attacker"]): f"{100 * r['accuracy']:.1f} ({r['n']:,})" for r in whole["pooled"]}
    print("| attacker | " + " | ".join(subsets) + " |\n" + "|---" * (len(subsets) + 1) + "|")
    for name in dict.fromkeys(row["attacker"] for row in whole["pooled"]):
        print(f"| {name} | " + " | ".join(cells.get((s, name), "–") for s in subsets) + " |")


if __name__ == "__main__":
    main()
