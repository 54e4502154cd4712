"""Fresh draws: is what a maker and a refinement give called clean by the audit, again and again?

    python research/fresh_draws.py flickr8k:DIR sugarcrepe:DIR --seeds 21 22 23 --captions 6000 --out out/fresh

Shows, for every corpus and seed, one-image foils (`make rules:replace --foils 8 --unmatched --apart`, then `refine
--method words`) audited by attackers that were not selected against and that know the corpus; and their accuracies
pooled over the draws. About four minutes per draw on two cores without a language model (`--lm` names one).
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


def table(draws: list[dict[str, Any]]) -> str:
    """Every attacker's accuracy over the draws of a corpus, by kind, in the direction that it is named for."""
    total: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in draws:
        for row in one["rows"]:
            sums = total.setdefault((row["attacker"], one["corpus"]), {}).setdefault(row["subset"], [0, 0.0])
            sums[0] += row["n"]
            sums[1] += row["n"] * row["accuracy"]
    subsets = sorted({subset for own in total.values() for subset in own})
    lines = ["| attacker | corpus | " + " | ".join(subsets) + " |", "|---" * (len(subsets) + 2) + "|"]
    for (name, corpus), own in total.items():
        cells = [f"{100 * own[s][1] / own[s][0]:.1f} ({own[s][0]:,})" if s in own else "–" for s in subsets]
        lines.append(f"| {name} | {corpus} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
            text = json.dumps(draws, indent=1)
            (asked.out / f"fresh-{asked.method}.json").write_text(text, encoding="utf-8")
    print(table(draws))


if __name__ == "__main__":
    main()
