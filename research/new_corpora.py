"""What two readers said of foils from captions that nobody had seen when the rules were written.

    python research/new_corpora.py --write docs/foil-quality.md

The captions (research/readings/new-captions.csv) were written by somebody who knew no rule, who also marked what could
change places; the foils of `creperie make all` were then read once, by two readers (research/readings/new-corpora.csv).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from creperie.metrics import wilson

READINGS = Path(__file__).parent / "readings"
BEGIN, END = "<!-- new -->\n", "<!-- end of new -->\n"
NAMES = {"news-product": "news and products", "interiors-sports": "interiors and sports"}


def rows_of(name: str) -> list[dict[str, str]]:
    with (READINGS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables() -> str:
    read, captions = rows_of("new-corpora.csv"), rows_of("new-captions.csv")
    heads = "".join(f" {shown}, read | usable in both |" for shown in NAMES.values())
    lines = [f"| kind |{heads}", "|---|" + "---:|---:|" * len(NAMES)]
    foils = [r for r in read if r["first"]]
    for kind in (*dict.fromkeys(sorted(r["kind"] for r in foils)), "all"):
        cells = [kind]
        for corpus in NAMES:
            own = [r for r in foils if r["corpus"] == corpus and kind in (r["kind"], "all")]
            both = sum(r["first"] == r["second"] == "usable" for r in own)
            low, high = wilson(both, len(own))
            cells += [str(len(own)), f"{both} ({100 * both / len(own):.0f} %) [{100 * low:.0f}, {100 * high:.0f}]"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| corpus | captions | items | with material for a swap | of these, with a swap |", "|---|---:|---:|---:|---:|"]
    for corpus, shown in NAMES.items():
        own = [r for r in captions if r["corpus"] == corpus]
        able = [r for r in own if set(r["material"].split()) - {"places-absurd"}]
        items = sum(r["corpus"] == corpus for r in read)
        lines.append(f"| {shown} | {len(own)} | {items} | {len(able)} | {sum(bool(r['swaps']) for r in able)} |")
    return "\n" + "\n".join(lines) + "\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write the tables into")
    where = parser.parse_args().write
    print(tables())
    if where:
        page = where.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        where.write_text(before + BEGIN + tables() + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
