"""What two readers said of foils from captions that nobody had seen when the rules were frozen.

    python research/new_corpora.py --write docs/foil-quality.md
    python research/new_corpora.py --yields Flickr8k=400.txt COCO=coco.txt --write docs/foil-quality.md

The captions (research/readings/frozen-captions.csv) were written by somebody who knew no rule and marked what could
change places; the false captions of `creperie make all` were then read once, by two readers (frozen-foils.csv). Files
that end in -1 hold an earlier set of captions and its reading.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from creperie import make
from creperie.metrics import wilson

READINGS = Path(__file__).parent / "readings"
MARKS = {name: (f"<!-- {name} -->\n", f"<!-- end of {name} -->\n") for name in ("new", "yields")}


def rows_of(name: str) -> list[dict[str, str]]:
    with (READINGS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def share(rows: list[dict[str, str]]) -> str:
    """Return how many foils both readers found usable, as cells of a table."""
    both = sum(r["first"] == r["second"] == "yes" for r in rows)
    if not rows:
        return "0 | "
    low, high = wilson(both, len(rows))
    return f"{len(rows)} | {both} ({100 * both / len(rows):.0f} %) [{100 * low:.0f}, {100 * high:.0f}]"


def tables() -> str:
    read, captions = rows_of("frozen-foils.csv"), rows_of("frozen-captions.csv")
    lines = ["| kind | read | usable in both |", "|---|---:|---:|"]
    for kind in sorted({r["kind"] for r in read}):
        lines.append(f"| {kind} | {share([r for r in read if r['kind'] == kind])} |")
    heads = "captions | items | false captions read | usable in both | with material for a swap | of these, with a swap"
    lines += ["", f"| corpus | {heads} |", "|---|" + "---:|" * 6]
    for corpus in (*dict.fromkeys(r["corpus"] for r in captions), "all"):
        own = [r for r in captions if corpus in (r["corpus"], "all")]
        able = [r for r in own if r["material"] == "yes"]
        foils = share([r for r in read if corpus in (r["corpus"], "all")])
        swaps = sum(bool(r["swaps"]) for r in able)
        items = sum(int(r["items"]) for r in own)
        lines.append(f"| {corpus} | {len(own)} | {items} | {foils} | {len(able)} | {swaps} |")
    agreed = sum((r["first"] == "yes") == (r["second"] == "yes") for r in read)
    lines += ["", f"The readers agree on {agreed} of {len(read)}."]
    return "\n" + "\n".join(lines) + "\n\n"


def yields(corpora: list[str]) -> str:
    """Return how many items `make all` makes by default from files of captions, given as NAME=FILE."""
    lines = ["| corpus | captions | items | per caption | captions with any |", "|---|---:|---:|---:|---:|"]
    for corpus in corpora:
        name, _, path = corpus.partition("=")
        made = make("all", path, progress=None)
        captions, sources = made.report["sources"], len({item.id for item in made.items})
        share = 100 * sources / captions
        lines.append(
            f"| {name} | {captions:,} | {len(made.items):,} | {len(made.items) / captions:.2f} | {share:.0f} % |"
        )
    return "\n" + "\n".join(lines) + "\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write the tables into")
    parser.add_argument("--yields", nargs="+", default=[], metavar="NAME=FILE", help="make foils of these captions")
    arguments = parser.parse_args()
    name, text = ("yields", yields(arguments.yields)) if arguments.yields else ("new", tables())
    print(text)
    if arguments.write:
        (begin, end), page = MARKS[name], arguments.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(begin)
        arguments.write.write_text(before + begin + text + end + rest.partition(end)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
