"""Does `creperie items` recover what it estimates? Simulated answers of models that know or guess.

Abilities are normal, difficulties normal, discriminations log-normal (mean of the logs 0.2, deviation 0.2). Difficulties
are compared on the scale of the models drawn, whose abilities have mean 0 and deviation 1.

With the answers of 21 models to SEED-Bench, with and without picture (CyberAgentAILab/M3IRT, arXiv 2603.02663), it also
shows what blind twins add: which items need no picture, which pictures were exchanged, and how well held-out answers are
predicted.

    python research/items.py --draws 12 --write      # the tables of docs/results-intervals.md
    python research/items.py --draws 0 --responses ../shared/data/outside/responses --write
"""

from __future__ import annotations

import argparse
import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from creperie.metrics import auroc
from creperie.statistics import fit_responses, picture_gain

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


@dataclass(frozen=True, eq=False)
class SeedAnswers:
    """Right and wrong answers (items, models) with and without picture; `kind`: sound, or what was exchanged."""

    full: np.ndarray
    blind: np.ndarray
    kind: np.ndarray


def seed_answers(folder: Path) -> SeedAnswers:
    parts = []
    for name in ("seedbench_normal.csv", "seedbench_shuffled.csv"):
        with (folder / name).open(encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        values = np.array([[float(v) for v in row[1:]] for row in rows]).T
        place = {column: k for k, column in enumerate(head[1:])}
        items = [column for column in place if not column.startswith("<")]
        kinds = [found[1] if (found := re.match(r"shuffle_([a-z]+)", item)) else "sound" for item in items]
        parts.append([values[[place[prefix + i] for i in items]] for prefix in ("", "<no_image>")] + [np.array(kinds)])
    return SeedAnswers(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def area(scores: np.ndarray, positive: np.ndarray) -> float:
    return float(auroc(scores, positive).value)


def seed_table(folder: Path, seeds: int = 2) -> list[str]:
    """Return what blind twins add, beside the plain model."""
    answers = seed_answers(folder)
    chance = 0.25
    lines = ["| | plain model | with blind twins |", "|---|---|---|"]
    sound = answers.kind == "sound"
    full, blind = answers.full[sound], answers.blind[sound]
    half = picture_gain(full[:, ::2], blind[:, ::2], np.full(len(full), chance))
    needless = blind[:, 1::2].mean(axis=1) >= (1 + chance) / 2
    plain = fit_responses(full[:, ::2], floor=chance).expected.mean(axis=1)
    row = (area(plain, needless), area(half.text.mean(axis=1), needless))
    lines.append(f"| items that ten other models know without the picture: AUC | {row[0]:.3f} | {row[1]:.3f} |")
    without = fit_responses(answers.full, floor=chance).flipped
    gain = picture_gain(answers.full, answers.blind, np.full(len(answers.full), chance))
    assert gain.fit is not None
    together = without + gain.fit.flipped
    for kind, what in (("image", "picture"), ("text", "text"), ("all", "both")):
        own = sound | (answers.kind == kind)
        row = tuple(area(score[own], ~sound[own]) for score in (without, together))
        lines.append(f"| 333 items with {what} exchanged among 1,000 sound ones: AUC | {row[0]:.3f} | {row[1]:.3f} |")
    losses = []
    for seed in range(seeds):
        hidden = np.random.default_rng(seed).random(full.shape) < 0.1
        known = np.where(hidden, np.nan, full)
        twin = picture_gain(known, blind, np.full(len(full), chance)).fit
        assert twin is not None
        losses.append([log_loss(fit.expected, full, hidden) for fit in (fit_responses(known, floor=chance), twin)])
    row = tuple(np.mean(losses, axis=0))
    lines.append(f"| a tenth of the answers held out, {seeds} times: log loss | {row[0]:.4f} | {row[1]:.4f} |")
    counts = {kind: int((half.solved_by == kind).sum()) for kind in ("text", "picture", "neither")}
    print(counts)
    return lines


def log_loss(expected: np.ndarray, right: np.ndarray, hidden: np.ndarray) -> float:
    p = np.clip(expected, 1e-3, 1 - 1e-3)
    return float(-(right * np.log(p) + (1 - right) * np.log(1 - p))[hidden].mean())


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
    parser.add_argument("--responses", type=Path, help="the folder of answers to SEED-Bench")
    chosen = parser.parse_args()
    if chosen.responses:
        lines = [
            "By `python research/items.py --draws 0 --responses FOLDER --write`:",
            "",
            *seed_table(chosen.responses),
        ]
        print("\n".join(lines))
        if chosen.write:
            write("sight", lines)
    if not chosen.draws:
        return
    lines = [f"By `python research/items.py --draws {chosen.draws} --write`:", "", *table(chosen.draws)]
    if chosen.write:
        write("items", lines)


if __name__ == "__main__":
    main()
