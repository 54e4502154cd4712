"""Fresh draws: is what a maker and a refinement give called clean by the audit, again and again?

    python research/fresh_draws.py flickr8k=flickr8k:DIR coco=out/coco --seeds 31 32 33 --out out/fresh --write research/results/fresh_draws.md

For every corpus and seed: one-image foils of all captions (`make rules:replace --foils 8 --unmatched --apart`, made
once per corpus), of which `refine --method coin` keeps what its attackers cannot tell; then the audit of what stays,
by these and by attackers that the selection never saw: a neural model of the corpus, `--lm` and `--encoder`.
Accuracies are pooled over the draws. `--write` puts the tables into research/results/fresh_draws.md.

    python research/fresh_draws.py --by-design flickr8k=DIR vsr=DIR coco=DIR world=twins world=choice --seeds 41 42 43 --write research/results/fresh_draws.md

does the same for what the docs call clean by construction: twins and scenes mined from a random half of a corpus'
images, and the world's clean kinds; each draw is judged by the audit with its standard battery.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from first_minute import write

from creperie.auditing import AttackerModels, audit
from creperie.bench import load
from creperie.cli import main as creperie
from creperie.refining.coin import METHOD

SELECTED = METHOD.attackers
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


def half(corpus: str, folder: str, seed: int, out: Path) -> list[object]:
    """Write the captions or boxes of a random half of a corpus' images; return the maker and its arguments."""
    file, maker, spec = HALVES[corpus]
    lines = (Path(folder) / file).read_text(encoding="utf-8")
    image = {
        "flickr8k": lambda line: line.partition("#")[0],
        "vsr": lambda line: json.loads(line)["image"],
        "coco": lambda row: row.get("image_id", row["id"]),
    }[corpus]
    if corpus == "coco":
        boxes = json.loads(lines)
        names = sorted(row["id"] for row in boxes["images"])
    else:
        names = sorted({image(line) for line in lines.splitlines()})
    chosen = set(random.Random(seed).sample(names, len(names) // 2))
    out.mkdir(parents=True, exist_ok=True)
    if corpus == "coco":
        boxes["images"] = [row for row in boxes["images"] if row["id"] in chosen]
        boxes["annotations"] = [row for row in boxes["annotations"] if row["image_id"] in chosen]
        lines = json.dumps(boxes)
    else:
        lines = "\n".join(line for line in lines.splitlines() if image(line) in chosen) + "\n"
    (out / file).write_text(lines, encoding="utf-8")
    images = {"flickr8k": ("--images", Path(folder) / "images.zip"), "coco": ("--images", Path(folder) / "images")}
    return [maker, "--captions", spec.format(out), *images.get(corpus, ())]


#: By corpus: its file of captions or boxes, the maker, and how the file is named to it.
HALVES = {
    "flickr8k": ("Flickr8k.token.txt", "mine:twins", "flickr-captions:{}/Flickr8k.token.txt"),
    "vsr": ("all_vsr_validated_data.jsonl", "mine:twins", "vsr:{}"),
    "coco": ("instances.json", "mine:scenes", "annotations:{}/instances.json"),
}
#: Items of each of the world's 15 clean kinds.
WORLD = 6


def by_design(given: str, seed: int, out: Path) -> dict[str, Any]:
    """Draw anew from a corpus, or from the world in one form, and audit it; return the row of the draw."""
    corpus, _, folder = given.partition("=")
    drawn = out / f"{corpus}-{folder}-{seed}" if corpus == "world" else out / f"{corpus}-{seed}"
    name = f"world, {folder}" if corpus == "world" else f"{HALVES[corpus][1]} of {corpus}"
    if not drawn.is_dir() and corpus == "world":
        how = ("--kinds", "clean", "--form", folder, "--items", WORLD, "--seed", seed)
        command("world", "make", *how, "--out", drawn)
    elif not drawn.is_dir():
        command("make", *half(corpus, folder, seed, out / f"{corpus}-{seed}-half"), "--out", drawn)
    audited = audit(load(str(drawn)), progress=None)
    most = max(r.measure.n for r in audited.rows)
    rows = [r for r in audited.rows if r.measure.n >= most / 10]
    best = max(rows, key=lambda r: (round(r.measure.accuracy, 4), r.measure.n))
    m = best.measure
    interval = f"{100 * m.accuracy:.1f} [{100 * m.low:.1f}, {100 * m.high:.1f}]"
    strongest = f"{best.attacker} on {best.subset} ({m.n:,}): {interval}"
    facts = {"items": audited.items, "subsets": len(audited.judgements), "balanced": audited.whole.measured.balanced}
    return {"made": name, "seed": seed, **facts, "verdict": audited.verdict, "strongest": strongest}


def design_table(rows: list[dict[str, Any]]) -> str:
    """Return the verdicts on what is clean by construction."""
    lines = ["| made | seed | items (kinds) | verdict | strongest attacker (items), % |", "|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda r: (r["made"], r["seed"])):
        verdict = f"{row['verdict']}: balanced by design" if row["balanced"] == row["items"] else row["verdict"]
        size = f"{row['items']:,} ({row['subsets']})"
        lines.append(f"| {row['made']} | {row['seed']} | {size} | {verdict} | {row['strongest']} |")
    return "\n".join(lines)


def designs(asked: argparse.Namespace) -> None:
    """Draw and judge what is clean by construction; rows of other corpora and seeds are kept."""
    file = asked.results.with_name("fresh_designs.json")
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    for given in asked.by_design:
        for seed in asked.seeds:
            new = by_design(given, seed, asked.out)
            print(new, flush=True)
            rows = [r for r in rows if (r["made"], r["seed"]) != (new["made"], seed)] + [new]
            file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(design_table(rows))
    if asked.write:
        write(asked.write, "by design", design_table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help="NAME=SPEC")
    parser.add_argument("--seeds", type=int, nargs="+", default=[31, 32, 33])
    parser.add_argument("--by-design", nargs="+", default=[], help="CORPUS=FOLDER, or world=FORM")
    parser.add_argument("--method", default="coin")
    parser.add_argument("--lm", default="")
    parser.add_argument("--encoder", default="")
    parser.add_argument("--jobs", type=int, default=1, help="draws at a time")
    parser.add_argument("--out", type=Path, default=Path("out/fresh"))
    parser.add_argument("--results", type=Path, default=Path("research/results/fresh_draws.json"))
    parser.add_argument("--write", type=Path, help="the page with the marks")
    asked = parser.parse_args()
    if asked.by_design:
        return designs(asked)
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
        write(asked.write, "fresh draws", f"{verdicts(draws)}\n\n{pooled(draws)}")


if __name__ == "__main__":
    sys.exit(main())
