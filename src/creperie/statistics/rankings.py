"""How much a ranking of models depends on wrong labels and on choices in the analysis: the tie rule, the task, the
weights of subsets, and the items left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from creperie.core import UsageError, counted, option, with_options
from creperie.metrics import (
    HIT,
    MISS,
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
from creperie.scoring import Run, item_keys, load_run, unblinded
from creperie.statistics.items import Answers, answers_of, difficulty
from creperie.statistics.response import FEWEST_MODELS

TIE_RULES: tuple[Ties, ...] = ("wrong", "half", "right")


@dataclass(frozen=True)
class RobustOptions:
    """Options of a robustness analysis: the choices and the wrong labels that a ranking should withstand."""

    margin: float = option(
        0.02, "Accuracies that surely differ by less than this share are equivalent.", minimum=0, maximum=1
    )
    wrong: str = option("", "Wrong labels among those checked: 4/100.", metavar="K/N")
    blind: tuple[str, ...] = option((), "Blind runs: items that one of them gets right are left out.", whole=True)


@dataclass(frozen=True)
class PairRobustness:
    """A pair of models, the better one first.

    `reversing` is the number of wrong labels that would reverse the order of the pair; None if no number would. Only
    items that the better model alone gets right are considered. `survives` is True if the order is safe: `reversing` is
    None or exceeds the upper limit for the number of wrong labels. It is None if the labels were not checked.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    p_equivalent: float
    equivalent: bool
    different: bool  #: the whole interval lies outside the margin
    reversing: int | None
    survives: bool | None


@dataclass(frozen=True)
class NoisyAccuracy:
    """The observed accuracy of a model and its accuracy on correct labels, both with intervals. The interval of the
    accuracy on correct labels also covers the uncertainty of the share of wrong labels.
    """

    model: str
    accuracy: float
    low: float
    high: float
    corrected: float
    corrected_low: float
    corrected_high: float


@dataclass(frozen=True)
class Robustness:
    """The ranks of the models under every choice in the analysis (such as each tie rule), the pairs of models, and the
    accuracies corrected for wrong labels.

    `ceiling` is the accuracy of a perfect model on these labels, with its interval; None if the labels were not
    checked.
    """

    choices: list[str]
    ranks: list[Ranking]
    pairs: list[PairRobustness]
    accuracies: list[NoisyAccuracy]
    ceiling: tuple[float, float, float] | None
    notes: tuple[str, ...] = ()
    margin: float = 0.02

    def frame(self) -> pa.Table:
        """Return a table with one row per model and choice. It has the accuracy, the rank, and the number of ranks
        gained compared with the first choice.
        """
        rows = [
            {"model": r.name, "choice": c, "accuracy": r.values[k], "rank": r.ranks[k], "gain": r.gains[k]}
            for r in self.ranks
            for k, c in enumerate(self.choices)
        ]
        return pa.Table.from_pylist(rows)

    def document(self) -> dict[str, Any]:
        """Return the results as a document for JSON."""
        return asdict(self)


@with_options(options=RobustOptions, settings=MetricSettings)
def robustness(runs: Sequence[Run | str | Path], *, options: RobustOptions, settings: MetricSettings) -> Robustness:
    """Return how the ranking of runs on one benchmark changes with the choices of the analysis.

    Runs with meaningless images (blind twins) are not ranked if other runs saw the real images.
    """
    given = [r if isinstance(r, Run) else load_run(r) for r in runs]
    loaded = unblinded(given)
    twins = len(given) - len(loaded)
    answers = answers_of(loaded, settings=settings)
    columns = _choices(loaded, answers)
    masks = {"without items that blind runs get right": ~_leaking(answers, options.blind)} if options.blind else {}
    if len(loaded) >= FEWEST_MODELS:
        masks["without suspicious items"] = difficulty(loaded, task=answers.task, short=0).kinds != "suspicious"
    for name, mask in masks.items():
        columns[name] = _accuracies(answers.outcomes, settings, np.where(mask, "kept", ""), only="kept")
    wrong = wrong_labels(options.wrong) if options.wrong else None
    notes = [f"{counted(twins, 'blind twin')} not ranked"] if twins else []
    missing = {name: int((o == VOID).sum()) for name, o in answers.outcomes.items()}
    notes += [
        f"{name}: {n:,} of {len(answers.right):,} items have no score; its rank is over the others"
        for name, n in missing.items()
        if n
    ]
    ranks = rank_table(columns)
    names = sorted((r.name for r in ranks), key=lambda name: -settings.worth(answers.outcomes[name]).mean())
    return Robustness(
        list(columns),
        ranks,
        [_pair(answers, (a, b), options.margin, wrong, settings) for a, b in combinations(names, 2)],
        [_noisy(answers, name, wrong, settings) for name in names] if wrong else [],
        (1 - wrong[0], 1 - wrong[2], 1 - wrong[1]) if wrong else None,
        tuple(notes),
        options.margin,
    )


def wrong_labels(text: str) -> tuple[float, float, float]:
    """Return the fraction of wrong labels and both ends of its Wilson interval. `text` is a fraction such as "4/100"
    (wrong/checked).
    """
    wrong, _, read = text.partition("/")
    if not (wrong.isdigit() and read.isdigit() and 0 <= int(wrong) <= int(read) and int(read)):
        raise UsageError(
            f"`wrong={text!r}` is not a fraction", hint="give the numbers of wrong and of checked items, as in 4/100"
        )
    return (int(wrong) / int(read), *wilson(int(wrong), int(read)))


def _choices(runs: Sequence[Run], answers: Answers) -> dict[str, dict[str, float]]:
    """Return the accuracies by choice and model. The choices are each tie rule, equal weights for all subsets, and
    every other task that all runs have. If such a task covers fewer or more items than the main task, its name says
    how many.
    """
    tied = any((o == TIE).any() for o in answers.outcomes.values())
    rules = TIE_RULES if tied else TIE_RULES[:1]
    columns = {
        f"{answers.task}, ties {t}" if tied else answers.task: _accuracies(answers.outcomes, MetricSettings(t))
        for t in rules
    }
    subsets = np.array(answers.first.subsets)
    if len(set(subsets.tolist())) > 1:
        columns["subsets weighed alike"] = _accuracies(answers.outcomes, MetricSettings(), subsets)
    shared = [t for t in runs[0].tasks if task(t).by_item and all(t in run.tasks for run in runs)]
    for name in shared:
        if name != answers.task and all(task(name).needs in run.inputs for run in runs):
            outcomes = answers_of(runs, name).outcomes
            n, most = (max(int((o != VOID).sum()) for o in own.values()) for own in (outcomes, answers.outcomes))
            columns[name if n == most else f"{name} (n = {n:,})"] = _accuracies(outcomes, MetricSettings())
    return columns


def _accuracies(
    outcomes: Mapping[str, np.ndarray], how: MetricSettings, groups: np.ndarray | None = None, only: str = ""
) -> dict[str, float]:
    """Return each model's accuracy over all items, by the tie rule of `how`. `groups` names the group of each item.
    With `groups`, return the mean of the groups' accuracies instead; with `only`, return the accuracy on that group
    alone.
    """
    accuracies = {}
    for model, values in outcomes.items():
        covered = values != VOID
        labels = np.zeros(len(values)) if groups is None else groups
        names = [only] if only else np.unique(labels[covered]).tolist()
        parts = [how.worth(values[covered & (labels == name)]) for name in names]
        accuracies[model] = float(np.mean([part.mean() if len(part) else math.nan for part in parts]))
    return accuracies


def _leaking(answers: Answers, blind: Sequence[str]) -> np.ndarray:
    """Return a boolean for each item: True if at least one of the runs without images gets it right. `blind` holds
    the folders of these runs.
    """
    hits = {
        key
        for run in map(load_run, blind)
        for key, o in zip(item_keys(run.table), run.outcomes(run.tasks[0]), strict=True)
        if o == HIT
    }
    return np.array([key in hits for key in item_keys(answers.first.table)])


def _pair(
    answers: Answers,
    names: tuple[str, str],
    margin: float,
    wrong: tuple[float, float, float] | None,
    settings: MetricSettings,
) -> PairRobustness:
    a, b = (answers.outcomes[name] for name in names)
    same = equivalence(a, b, margin, answers.first.clusters, settings)
    both = (a != VOID) & (b != VOID)
    lead = float((settings.worth(a[both]) - settings.worth(b[both])).sum())
    if lead < 0:  # of items that both cover, the other is better
        return _pair(answers, (names[1], names[0]), margin, wrong, settings)
    reversing = _reversing(lead, int(((a == HIT) & (b == MISS)).sum()), int(((a == HIT) & (b == TIE)).sum()))
    survives = None if wrong is None else reversing is None or reversing > wrong[2] * int(both.sum())
    ends = (same.low, same.high, same.p, same.equivalent, same.low > margin or same.high < -margin)
    return PairRobustness(names[0], names[1], same.difference, *ends, reversing, survives)


def _reversing(lead: float, missed: int, tied: int) -> int | None:
    """Return how many wrong labels would reverse the lead of a model over another; None if no number would. Only labels
    of items that the better model alone gets right are considered. The other model is wrong on `missed` of these items
    and ties on `tied` of them.

    A wrong label on a missed item reduces the lead by two, because one model loses the item and the other gains it. A
    wrong label on a tied item reduces the lead by one.

    >>> _reversing(12, 12, 0), _reversing(12, 0, 12), _reversing(4, 1, 8), _reversing(0, 3, 3)
    (7, None, 4, 0)
    """
    if lead <= 0:
        return 0
    if 2 * missed > lead:
        return math.floor(lead / 2) + 1
    rest = lead - 2 * missed
    return missed + math.floor(rest) + 1 if tied > rest else None


def _noisy(answers: Answers, name: str, wrong: tuple[float, float, float], settings: MetricSettings) -> NoisyAccuracy:
    """Return the observed accuracy of a model, and the accuracy A that it would have on correct labels. `wrong` holds
    the share e of wrong labels and the ends of its interval.
    """
    # The labels are assumed to be wrong independently of what the model understands. On an item with a wrong label, a
    # right answer counts as wrong. A wrong answer counts as right only if it is the same as the wrong label, which
    # happens for a share r of the wrong answers. The observed accuracy is therefore A·(1 − e) + (1 − A)·e·r. If wrong
    # answers are spread evenly over the other k − 1 of k candidates, r is 1/(k − 1), which is the odds of a right
    # guess; for two candidates, r is 1. The interval of A combines the ends for e with those of the observed accuracy,
    # so it covers more than 95 %.
    outcomes = answers.outcomes[name]
    covered = outcomes != VOID
    right, chance = settings.worth(outcomes[covered]), answers.chance[covered]
    interval = share_interval(right, answers.first.clusters[covered], settings.level)
    values = [float(right.mean()), interval.low, interval.high]
    odds = float((chance / (1 - chance)).mean())
    on_right_labels = np.array([[_on_right_labels(v, e, odds) for e in wrong] for v in values])
    if on_right_labels[2].max() < 0 or on_right_labels[1].min() > 1:
        on_right_labels[:] = math.nan  # no accuracy on right labels gives the observed one
    first, low, high = on_right_labels.clip(0, 1)
    return NoisyAccuracy(name, values[0], values[1], values[2], float(first[0]), float(low.min()), float(high.max()))


def _on_right_labels(observed: float, wrong: float, odds: float) -> float:
    """Return the accuracy on correct labels that would explain the observed one; NaN if too many labels are wrong.
    `odds` is the share of wrong answers that a wrong label turns into right ones.

    >>> round(_on_right_labels(0.704, 0.04, 1 / 3), 3), round(_on_right_labels(0.704, 0.04, 1), 3)
    (0.73, 0.722)
    """
    kept = 1 - wrong * (1 + odds)
    return (observed - wrong * odds) / kept if kept > 0 else math.nan
