"""Fresh draws: is what a maker and a refinement give called clean by the audit, again and again?

    python research/fresh_draws.py flickr8k=flickr8k:DIR coco=out/coco --seeds 31 32 33 --out out/fresh --write research/results/fresh_draws.md

For every corpus and seed: one-image foils of all captions (`make rules:replace --foils 8 --unmatched --apart`, made
once per corpus), of which `refine --method coin` keeps what its attackers cannot tell; then the audit of what stays,
by these and by attackers that the selection never saw: a neural model of the corpus, `--lm` and `--encoder`. Accuracies are pooled over the draws. `--write` puts the tables
into research/results/fresh_draws.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from creperie.auditing import AttackerModels, audit
from creperie.bench import load
from creperie.cli import main as creperie

SELECTED = (
    *("length-words", "length-chars", "surface", "frequency", "rarity", "ngram-3", "ngram-4", "ngram-5"),
    *("cooccurrence", "learned-linear", "learned-boosted"),
)
HELD_OUT = ("neural-lm",)


def command(*words: object) -> None:
    """Run a command of creperie; exit codes above 3 are defects."""
    try:
        creperie([str(w) for w in words])
    except SystemExit as ended:
        if ended.code not in (0, 1, 3):
            raise


def candidates(name: str, corpus: str, out: Path) -> Path:
    """All foils of all captions of a corpus."""
    made = out / name / "candidates"
    if not made.is_dir():
        how = ("--foils", 8, "--unmatched", "--apart", "--seed", 31)
        command("make", "rules:replace", "--captions", corpus, *how, "--out", made)
    return made


def draw(name: str, corpus: str, seed: int, asked: argparse.Namespace) -> dict[str, Any]:
    """One draw: what the refinement keeps, and its audit."""
    made, kept = asked.out / name / "candidates", asked.out / name / f"{asked.method}-{seed}"
    models = AttackerModels(lm=asked.lm or "none", encoder=asked.encoder or "none", corpus=corpus, seed=seed)
    if not kept.is_dir():
        known = ("--corpus", corpus, "--lm", "none", "--encoder", "none", "--seed", seed)
        attackers = ("--attackers", ",".join(SELECTED), "--held-out", "surface")
        command("refine", made, "--method", asked.method, *attackers, "--no-audit", *known, "--out", kept)
    more = (*(("lm-mean", "lm-sum") if asked.lm else ()), *(("learned-embedding",) if asked.encoder else ()))
    audited = audit(load(str(kept)), (*SELECTED, *HELD_OUT, *more), models=models)
    figures = ("n", "raw", "low", "high", "p")
    rows = [
        {"subset": r.subset, "attacker": r.attacker, "leaks": r.leaks}
        | {key: getattr(r.measure, key) for key in figures}
        for r in audited.rows
    ]
    counts = {"candidates": len(load(str(made))), "kept": audited.items, "subsets": load(str(kept)).subsets}
    return {"corpus": name, "seed": seed, **counts, "verdict": audited.verdict, "text": audited.text, "rows": rows}


def pooled(draws: list[dict[str, Any]]) -> str:
    """Every attacker's accuracy over the draws of a corpus, by kind, in the direction that it is named for."""
    total: dict[str, dict[tuple[str, str], list[float]]] = {}
    for one in draws:
        for row in one["rows"]:
            sums = total.setdefault(row["attacker"], {}).setdefault((one["corpus"], row["subset"]), [0, 0.0])
            sums[0] += row["n"]
            sums[1] += row["n"] * row["raw"]
    heads = sorted({key for own in total.values() for key in own if key[1] != "all"})
    size = {key: max(int(own[key][0]) for own in total.values() if key in own) for key in heads}
    labels = [f"{corpus} {subset.removeprefix('replace-')} ({size[corpus, subset]:,})" for corpus, subset in heads]
    lines = ["| attacker | " + " | ".join(labels) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, own in total.items():
        cells = [f"{100 * own[key][1] / own[key][0]:.1f}" if key in own and own[key][0] else "–" for key in heads]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def verdicts(draws: list[dict[str, Any]]) -> str:
    """What the audit says of every draw."""
    lines = ["| corpus | seed | candidates | kept | verdict |", "|---|---|---|---|---|"]
    lines += [
        f"| {d['corpus']} | {d['seed']} | {d['candidates']:,} | {d['kept']:,} | {d['text'].partition(' in ')[0].partition(':')[0]} |"
        for d in draws
    ]
    return "\n".join(lines)


def written(draws: list[dict[str, Any]], page: Path) -> None:
    """Put both tables between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split("<!-- fresh draws -->\n", 1)
    after = rest.split("<!-- end fresh draws -->", 1)[1]
    tables = f"\n{verdicts(draws)}\n\n{pooled(draws)}\n\n"
    page.write_text(f"{before}<!-- fresh draws -->\n{tables}<!-- end fresh draws -->{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help="NAME=SPEC")
    parser.add_argument("--seeds", type=int, nargs="+", default=[31, 32, 33])
    parser.add_argument("--method", default="coin")
    parser.add_argument("--lm", default="")
    parser.add_argument("--encoder", default="")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
    parser.add_argument("--out", type=Path, default=Path("out/fresh"))
    parser.add_argument("--results", type=Path, default=Path("research/results/fresh_draws.json"))
    parser.add_argument("--write", type=Path, help="the page with the marks")
    asked = parser.parse_args()
    corpora = [given.partition("=")[::2] for given in asked.corpora]
    for name, corpus in corpora:
        candidates(name, corpus, asked.out)
    tasks = [(name, corpus, seed) for name, corpus in corpora for seed in asked.seeds]
    if tasks:
        draws = []
        with ProcessPoolExecutor(asked.jobs) as pool:
            for one in pool.map(draw, *zip(*tasks), [asked] * len(tasks)):
                draws.append(one)
                asked.results.write_text(json.dumps(draws, indent=1), encoding="utf-8")
    draws = json.loads(asked.results.read_text(encoding="utf-8"))
    worst = max(abs(row["raw"] - 0.5) for one in draws for row in one["rows"] if row["n"] > 500)
    print(verdicts(draws), pooled(draws), f"furthest from one half with 500 items: {100 * worst:.1f}", sep="\n\n")
    if asked.write:
        written(draws, asked.write)


if __name__ == "__main__":
    sys.exit(main())
