"""The one table of docs/foil-quality.md: yield, diversity, two readings, truth and attackers, kind by kind.

    python research/foil_quality.py --draw flickr8k:PATH --name Flickr8k --sample 6000 --seed 51829 --keep foils.json
    python research/foil_quality.py --write docs/foil-quality.md

The first command makes foils by all rule makers from captions drawn at random, and audits them; its figures go to
research/results/foil_quality.json (one entry per corpus), the foils to --keep, for reading. The second writes the
tables from these figures and from research/readings/foil_quality.json (verdicts of two readings) into the page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from creperie import audit, make
from creperie.bench import Item, from_items
from creperie.metrics import cohen_kappa, wilson

HERE = Path(__file__).resolve().parent
FIGURES, READINGS = HERE / "results" / "foil_quality.json", HERE / "readings" / "foil_quality.json"
MAKERS = ("rules:replace", "rules:swap", "rules:add")
ATTACKERS = ("length-words", "length-chars", "frequency", "learned-linear", "lm-sum")
FEW = 50  #: kinds with fewer foils are left out: attackers could learn nothing from them
SHOWN = ("length-chars", "frequency", "lm-sum", "learned-linear")  #: of them, in the table
KINDS = ("replace-object", "replace-attribute", "replace-count", "replace-relation", "swap-object", "swap-attribute")
KINDS = (*KINDS, "swap-phrase", "swap-count", "add-object", "add-attribute")


def draw(spec: str, sample: int, seed: int) -> list[Item]:
    """Return the foils of all rule makers as items with two captions."""
    items: list[Item] = []
    for maker in MAKERS:
        items += make(maker, spec, sample=sample, seed=seed, progress=None).items
    return items


def figures(items: list[Item], captions: int) -> dict[str, Any]:
    """Return yield, diversity and the accuracy of attackers by kind."""
    audited = audit(from_items("foils", items), ATTACKERS, lm="lm:pkg:pocketsphinx", progress=None)
    found: dict[str, Any] = {"captions": captions, "kinds": {}}
    for kind in KINDS:
        # an addition repeats itself by what it adds, whatever made room for it
        own = (str(i.tags["edit"]).lower() for i in items if i.subset == kind)
        edits = Counter(edit.partition(", + ")[2] or edit for edit in own)
        total = edits.total()
        measures = {row.attacker: row.measure for row in audited.rows if row.subset == kind}
        attackers = {name: [m.accuracy, m.low, m.high] for name, m in measures.items()}
        top = sum(n for _, n in edits.most_common(20)) / max(total, 1)
        found["kinds"][kind] = {"foils": total, "edits": len(edits), "top_20": top, "attackers": attackers}
    return found


def percent(values: list[float] | None) -> str:
    return "" if not values else f"{100 * values[0]:.0f} [{100 * values[1]:.0f}, {100 * values[2]:.0f}]"


def yield_table(results: dict[str, Any]) -> str:
    """Return one row per corpus and kind: how many foils, how varied, and what attackers get."""
    head = ["corpus", "kind", "foils", "of captions, %", "20 most frequent, %", *SHOWN]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * (len(head) - 2)]
    for corpus, found in results.items():
        for kind, row in found["kinds"].items():
            if row["foils"] < FEW:
                continue
            share = f"{100 * row['foils'] / found['captions']:.1f}"
            cells = [corpus, kind, f"{row['foils']:,}", share, f"{100 * row['top_20']:.0f}"]
            lines.append(f"| {' | '.join([*cells, *(percent(row['attackers'].get(a)) for a in SHOWN)])} |")
    return "\n".join(lines)


def reading_table(rows: list[dict[str, str]]) -> str:
    """Return one row per kind: usable in each reading, in both, true, and how far the readings agree."""
    head = (
        "kind",
        "read",
        "usable, first",
        "usable, second",
        "usable in both",
        "true",
        "may be true",
        "same verdict",
        "kappa",
    )
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for kind in [*dict.fromkeys(r["kind"] for r in rows), "all"]:
        mine = [r for r in rows if kind in (r["kind"], "all")]
        both = np.array([[r[f"reading_{k}"] == "usable" for k in (1, 2)] for r in mine])
        words = [{r["reading_1"], r["reading_2"]} for r in mine]
        low, high = wilson(int(both.all(axis=1).sum()), len(mine))
        kappa = cohen_kappa(*both.astype(float).T).value if both.std(axis=0).min() > 0 else float("nan")
        cells = [
            kind,
            str(len(mine)),
            *(str(int(both[:, k].sum())) for k in (0, 1)),
            f"{both.all(axis=1).sum()} ({100 * both.all(axis=1).mean():.0f} %) [{100 * low:.0f}, {100 * high:.0f}]",
            str(sum("true" in w for w in words)),
            str(sum("may be true" in w and "true" not in w for w in words)),
            f"{100 * (both[:, 0] == both[:, 1]).mean():.0f} %",
            "" if np.isnan(kappa) else f"{kappa:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", help="captions: a file or a benchmark spec")
    parser.add_argument("--name", help="the corpus, as the table names it")
    parser.add_argument("--sample", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="where the foils go")
    parser.add_argument("--write", type=Path, help="the page whose tables are written anew")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="the file of figures")
    asked = parser.parse_args()
    results = json.loads(asked.figures.read_text()) if asked.figures.is_file() else {}
    if asked.draw:
        items = draw(asked.draw, asked.sample, asked.seed)
        if asked.keep:
            keys = ("id", "subset", "captions", "images")
            rows = [{k: getattr(i, k) for k in keys} | {"edit": i.tags["edit"]} for i in items]
            asked.keep.write_text(json.dumps(rows, ensure_ascii=False, indent=0))
        results[asked.name or asked.draw] = figures(items, asked.sample)
        asked.figures.write_text(json.dumps(results, indent=1) + "\n")
    if asked.write:
        sheets = json.loads(READINGS.read_text())
        tables = {"yield": yield_table(results)}
        tables |= {name: reading_table(rows) for name, rows in sheets["sheets"].items()}
        page = asked.write.read_text()
        for name, table in tables.items():
            page = re.sub(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", rf"\1\n{table}\n\2", page, flags=re.S)
        asked.write.write_text(page)


if __name__ == "__main__":
    main()
