"""Does `creperie items` recover what it estimates? Simulated answers of models that know or guess.

Abilities are normal, difficulties normal, discriminations log-normal (mean of the logs 0.2, deviation 0.2). Difficulties
are compared on the scale of the models drawn, whose abilities have mean 0 and deviation 1.

    python research/items.py --draws 25 --write      # the table of docs/results-intervals.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from creperie.statistics import fit_responses

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results-intervals.md"
#: Models, items, chance, deviation of the difficulties, share of reversed labels.
DESIGNS = (
    (40, 500, 0.5, 1.0, 0.0),
    (40, 500, 0.5, 1.5, 0.05),
    (40, 500, 0.25, 1.0, 0.0),
    (40, 500, 0.0, 1.0, 0.0),
    (20, 300, 0.5, 1.0, 0.0),
    (12, 300, 0.5, 1.0, 0.0),
    (100, 300, 0.5, 1.0, 0.0),
)


def drawn(rng: np.random.Generator, models: int, items: int, chance: float, spread: float, wrong: float) -> list[float]:
    """Return coverage, bias and discriminations with the floor, coverage and bias without it, and, of reversed labels
    and of sound ones, the shares that are flagged, in percent where they are shares.
    """
    theta, b = rng.normal(size=models), rng.normal(0, spread, items)
    a = np.exp(rng.normal(0.2, 0.2, items))
    known = 1 / (1 + np.exp(-a[:, None] * (theta - b[:, None])))
    reversed_ = rng.random(items) < wrong
    share = np.where(reversed_[:, None], (chance or 1) * (1 - known), chance + (1 - chance) * known)
    right = (rng.random(share.shape) < share).astype(float)
    truth = (b - theta.mean()) / theta.std()
    fit, bare = fit_responses(right, floor=chance), fit_responses(right)
    sound = ~reversed_
    covered, uncovered = (
        100 * float(np.mean((np.abs(f.difficulty - truth) < 1.96 * f.difficulty_se)[sound])) for f in (fit, bare)
    )
    bias, without = (float((f.difficulty - truth)[sound].mean()) for f in (fit, bare))
    ratio = float(np.abs(fit.discrimination[sound]).mean() / (a[sound].mean() * theta.std()))
    flagged = fit.discrimination < 0
    found = 100 * float(flagged[reversed_].mean()) if wrong else np.nan
    return [covered, bias, ratio, uncovered, without, found, 100 * float(flagged[sound].mean())]


def table(draws: int) -> list[str]:
    lines = [
        "| models | items | chance, % | difficulty SD | labels reversed, % | covered, % | bias | discrimination / truth "
        "| covered, % and bias without a floor | reversed and flagged, % | sound and flagged, % |",
        "|---" * 11 + "|",
    ]
    for k, design in enumerate(DESIGNS):
        rows = np.array([drawn(np.random.default_rng([seed, k]), *design) for seed in range(draws)])
        covered, bias, ratio, uncovered, without, found, flagged = rows.mean(axis=0)
        models, items, chance, spread, wrong = design
        lines.append(
            f"| {models} | {items} | {100 * chance:.0f} | {spread} | {100 * wrong:.0f} | {covered:.1f} | {bias:+.2f} "
            f"| {ratio:.2f} | {uncovered:.0f}, {without:+.1f} | {'' if np.isnan(found) else f'{found:.0f}'} "
            f"| {flagged:.1f} |"
        )
        print(lines[-1], flush=True)
    return lines


def write(name: str, lines: list[str]) -> None:
    """Replace what stands between the marks of this name on the page of results."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(begin)
    PAGE.write_text(head + "\n".join([begin, *lines, end]) + rest.partition(end)[2], encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=25, help="data sets per row")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/results-intervals.md")
    chosen = parser.parse_args()
    lines = [f"By `python research/items.py --draws {chosen.draws} --write`:", "", *table(chosen.draws)]
    if chosen.write:
        write("items", lines)


if __name__ == "__main__":
    main()
