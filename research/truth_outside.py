"""How the truth layer agrees with labels that nobody here wrote: SICK, SNLI, SugarCrepe++ and VISLA.

Rules were first written while looking at SICK's pairs with pair_ID % 4 == 1, at 150 rows of each SugarCrepe++ file (seed
101) and at VISLA's spatial triplets with an even number, and then mended while looking at the errors in all the sets
below: the figures are no estimate for unseen captions. The whole takes about a minute of processor time.

    python research/truth_outside.py ../shared/data            # print
    python research/truth_outside.py ../shared/data --write    # and put it into research/results/truth.md
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

from creperie.lang import decidability, read_together, truth

PAGE = Path(__file__).resolve().parent / "results" / "truth.md"
VERDICTS = ("entailed", "contradicted", "compatible", "unknown")
FILES = ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel")


def table(title: str, counts: dict[str, Counter[str]]) -> list[str]:
    lines = ["", f"## {title}", "", f"| label | n | {' | '.join(VERDICTS)} |", "|---|---:" + "|---:" * 4 + "|"]
    for label, own in counts.items():
        n = own.total()
        cells = (f"{own[v]:,} ({100 * own[v] / n:.1f} %)" for v in VERDICTS)
        lines.append(f"| {label} | {n:,} | {' | '.join(cells)} |")
    return lines


def judged(rows: Iterable[tuple[str, str, str]]) -> tuple[dict[str, Counter[str]], list[str]]:
    """Counts by label, and the pairs that are judged the wrong way round."""
    counts: dict[str, Counter[str]] = {}
    wrong = []
    rows = list(rows)
    read_together(caption for row in rows for caption in row[:2])
    for first, second, label in rows:
        verdict = truth(first, second)
        counts.setdefault(label.lower(), Counter())[verdict.word] += 1
        if (label.lower()[:6], verdict.word) in (("entail", "contradicted"), ("contra", "entailed")):
            wrong.append(f"- {label.lower()}, called {verdict.word}: *{first}* / *{second}* ({verdict.reason})")
    return dict(sorted(counts.items())), wrong


def sick(data: Path) -> list[str]:
    lines = (data / "outside" / "sick" / "sick.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    out: list[str] = []
    for part, title in ((3, "SICK, pair_ID % 4 == 3, errors looked at"), (1, "SICK, pair_ID % 4 == 1, looked at")):
        counts, wrong = judged((r[1], r[2], r[4]) for r in rows if int(r[0]) % 4 == part)
        out += [*table(title, counts), "", *wrong]
    return out


def snli(data: Path) -> list[str]:
    lines = (data / "outside" / "snli" / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [tuple(line.split("\t")) for line in Random(0).sample(lines, 2000)]
    counts, wrong = judged((first, second, label) for first, second, label in rows)
    return [
        *table("SNLI, 2,000 pairs of the development set, those the wrong way round looked at", counts),
        "",
        f"{len(wrong)} the wrong way round.",
    ]


def sugarcrepe(data: Path) -> list[str]:
    out: list[str] = []
    for seed in (0, 1):
        counts: dict[str, Counter[str]] = {"P2": Counter(), "N": Counter()}
        wrong = []
        for name in FILES:
            rows = json.loads((data / "sugarcrepe_pp" / f"{name}.json").read_text(encoding="utf-8"))
            drawn = Random(seed).sample(rows, 150)
            read_together(row[key] for row in drawn for key in ("caption", "caption2", "negative_caption"))
            for row in drawn:
                for which, key, bad in (("P2", "caption2", "contradicted"), ("N", "negative_caption", "entailed")):
                    verdict = truth(row["caption"], row[key])
                    counts[which][verdict.word] += 1
                    if verdict.word == bad:
                        wrong.append(f"- {which} {bad}: *{row['caption']}* / *{row[key]}* ({verdict.reason})")
        out += [*table(f"SugarCrepe++, 150 of each file, seed {seed}", counts), "", *wrong]
    return out


def visla(data: Path) -> list[str]:
    out = ["", "## VISLA: what text alone decides", ""]
    for name, column in (("Spatial", 3), ("Generic", 3)):
        lines = (data / "visla" / f"{name}_VISLA.tsv").read_text(encoding="utf-8").splitlines()[1:]
        rows = [r for r in (line.split("\t") for line in lines) if len(r) > column and r[column].strip()]
        for start, what in ((1, "odd rows, errors looked at"), (0, "even rows, looked at")) if name == "Spatial" else ((0, "a third"),):
            some = rows[start :: 2 if name == "Spatial" else 3]
            read_together(caption for row in some for caption in row[1:4])
            words = Counter(decidability(r[1:3], [r[column]])[0] for r in some)
            out.append(f"- {name}, {what}, {len(some)}: " + ", ".join(f"{w} {n}" for w, n in words.most_common()))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = [
        "# The truth layer against labels from outside",
        "",
        "Written by `python research/truth_outside.py ../shared/data --write`.",
    ]
    lines += [*sick(given.data), *snli(given.data), *sugarcrepe(given.data), *visla(given.data)]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
