"""How far a ranking depends on choices: tie rule, task, weighting of subsets, items left out, wrong labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.core import UsageError, option, with_options
from creperie.metrics import (
    HIT,
    TIE,
    VOID,
    MetricSettings,
    Ranking,
    Ties,
    equivalence,
    rank_table,
    share_interval,
    task,
    wilson,
)
from creperie.scoring import Run, load_run
from creperie.statistics.items import Answers, answers_of, difficulty
from creperie.statistics.response import FEWEST_MODELS
from creperie.statistics.table import item_keys

TIE_RULES: tuple[Ties, ...] = ("wrong", "half", "right")


@dataclass(frozen=True)
class RobustOptions:
    """What a ranking has to withstand."""

    margin: float = option(0.02, "Models are equivalent if they surely differ by less, as a share.", minimum=0)
    wrong: str = option("", "Wrong labels among those that were read: 4/100.", metavar="K/N")
    blind: tuple[str, ...] = option((), "Blind runs: items that one of them gets right are left out.", whole=True)


@dataclass(frozen=True)
class PairRobustness:
    """Two models, the better first. `reversing`: wrong labels on items that only the better one gets right that would
    reverse them. `survives`: there are not that many wrong labels, wherever they are; None where nobody read labels.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    p_equivalent: float
    equivalent: bool
    reversing: int
    survives: bool | None


@dataclass(frozen=True)
class NoisyAccuracy:
    """An accuracy with its interval, and what it would be on right labels, the interval including both errors."""

    model: str
    accuracy: float
    low: float
    high: float
    corrected: float
    corrected_low: float
    corrected_high: float


@dataclass(frozen=True)
class Robustness:
    """Ranks under every choice, pairs of models, and accuracies with wrong labels taken into account.

    `ceiling` is the accuracy of a perfect model on these labels, with its interval; None where nobody read labels.
    """

    choices: list[str]
    ranks: list[Ranking]
    pairs: list[PairRobustness]
    accuracies: list[NoisyAccuracy]
    ceiling: tuple[float, float, float] | None

    def frame(self) -> pa.Table:
        """One row per model and choice: accuracy, rank, and places gained against the first choice."""
        rows = [
            {"model": r.name, "choice": c, "accuracy": r.values[k], "rank": r.ranks[k], "gain": r.gains[k]}
            for r in self.ranks
            for k, c in enumerate(self.choices)
        ]
        return pa.Table.from_pylist(rows)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@with_options(options=RobustOptions, settings=MetricSettings)
def robustness(runs: Sequence[Run | str | Path], *, options: RobustOptions, settings: MetricSettings) -> Robustness:
    """Rank the runs of one benchmark under every choice that could have been made otherwise."""
    loaded = [r if isinstance(r, Run) else load_run(r) for r in runs]
    found = answers_of(loaded, settings=settings)
    columns = _choices(loaded, found)
    kept = {"without items that blind runs get right": ~_leaking(found, options.blind)} if options.blind else {}
    if len(loaded) >= FEWEST_MODELS:
        kept["without suspicious items"] = difficulty(loaded, task=found.task, short=0).kinds != "suspicious"
    for name, mask in kept.items():
        columns[name] = _accuracies(found.outcomes, settings, np.where(mask, "kept", ""), only="kept")
    wrong = wrong_labels(options.wrong) if options.wrong else None
    ranks = rank_table(columns)
    names = sorted((r.name for r in ranks), key=lambda name: -settings.worth(found.outcomes[name]).mean())
    return Robustness(
        list(columns),
        ranks,
        [_pair(found, (a, b), options.margin, wrong, settings) for a, b in combinations(names, 2)],
        [_noisy(found, name, wrong, settings) for name in names] if wrong else [],
        (1 - wrong[0], 1 - wrong[2], 1 - wrong[1]) if wrong else None,
    )


def wrong_labels(text: str) -> tuple[float, float, float]:
    """The share of wrong labels among those that were read, "4/100", with Wilson's interval."""
    wrong, _, read = text.partition("/")
    if not (wrong.isdigit() and read.isdigit() and 0 <= int(wrong) <= int(read) and int(read)):
        raise UsageError(f"`wrong={text!r}` is not a count of labels", hint="write wrong/read, as 4/100")
    return (int(wrong) / int(read), *wilson(int(wrong), int(read)))


def _choices(runs: Sequence[Run], found: Answers) -> dict[str, dict[str, float]]:
    """Accuracies by choice and model: every tie rule, subsets weighed alike, and the other tasks that all runs have."""
    tied = any((o == TIE).any() for o in found.outcomes.values())
    rules = TIE_RULES if tied else TIE_RULES[:1]
    columns = {
        f"{found.task}, ties {t}" if tied else found.task: _accuracies(found.outcomes, MetricSettings(t)) for t in rules
    }
    subsets = np.array(found.first.subsets)
    if len(set(subsets.tolist())) > 1:
        columns["subsets weighed alike"] = _accuracies(found.outcomes, MetricSettings(), subsets)
    shared = [t for t in runs[0].tasks if task(t).by_item and all(t in run.tasks for run in runs)]
    for name in shared:
        if name != found.task:
            columns[name] = _accuracies(answers_of(runs, name).outcomes, MetricSettings())
    return columns


def _accuracies(
    outcomes: Mapping[str, np.ndarray], how: MetricSettings, groups: np.ndarray | None = None, only: str = ""
) -> dict[str, float]:
    """The mean over groups of every model's accuracy; of one group where it is named."""
    found = {}
    for model, own in outcomes.items():
        covered = own != VOID
        labels = np.zeros(len(own)) if groups is None else groups
        names = [only] if only else np.unique(labels[covered]).tolist()
        parts = [how.worth(own[covered & (labels == name)]) for name in names]
        found[model] = float(np.mean([part.mean() if len(part) else math.nan for part in parts]))
    return found


def _leaking(found: Answers, blind: Sequence[str]) -> np.ndarray:
    """Which items one of these runs gets right."""
    leaking = np.zeros(len(found.right), dtype=bool)
    keys = item_keys(found.first.table)
    for run in map(load_run, blind):
        hits = {key for key, o in zip(item_keys(run.table), run.outcomes(run.tasks[0]), strict=True) if o == HIT}
        leaking |= np.array([key in hits for key in keys])
    return leaking


def _pair(
    found: Answers,
    names: tuple[str, str],
    margin: float,
    wrong: tuple[float, float, float] | None,
    settings: MetricSettings,
) -> PairRobustness:
    a, b = (found.outcomes[name] for name in names)
    same = equivalence(a, b, margin, found.first.clusters, settings)
    both = (a != VOID) & (b != VOID)
    lead = float((settings.worth(a[both]) - settings.worth(b[both])).sum())
    reversing = math.ceil(lead / 2) if lead > 0 else 0
    survives = None if wrong is None else reversing > wrong[2] * int(both.sum())
    ends = (same.low, same.high, same.p, same.equivalent)
    return PairRobustness(names[0], names[1], same.difference, *ends, reversing, survives)


def _noisy(found: Answers, name: str, wrong: tuple[float, float, float], settings: MetricSettings) -> NoisyAccuracy:
    """The accuracy as observed, and on right labels.

    Where wrong labels, a share e, turn answers round and fall on items that the model understands as on others,
    the observed accuracy is a·(1 − e) + (1 − a)·e. The ends of both intervals taken together are wider than 95 %.
    """
    own = found.outcomes[name]
    right = settings.worth(own[own != VOID])
    interval = share_interval(right, np.ones(len(right)), found.first.clusters[own != VOID], settings)
    values = [float(right.mean()), interval.low, interval.high]
    turned = np.array([[(v - e) / (1 - 2 * e) if e < 0.5 else math.nan for e in wrong] for v in values]).clip(0, 1)
    on_right_labels = (float(turned[0, 0]), float(turned[1].min()), float(turned[2].max()))
    return NoisyAccuracy(name, values[0], values[1], values[2], *on_right_labels)
