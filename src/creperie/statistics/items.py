"""Item analysis from runs on a benchmark: the difficulty and discrimination of items, suspicious items, and a short
form of the benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from creperie.core import Framed, UsageError, html_table, listing, option, with_options
from creperie.metrics import (
    VOID,
    Comparison,
    MetricSettings,
    PairAgreement,
    chances,
    compare,
    pair_agreements,
    task,
)
from creperie.scoring import Run, load_run, on_shared_items, run_labels
from creperie.statistics.response import FEWEST_MODELS, WRONG_LABELS, ResponseFit, ResponseModel, fit_responses
from creperie.statistics.sight import PictureGain, picture_gain, split_twins

#: What a suspicious item is: with a response model, and without one.
READ = "The label may be wrong, or right and misleading to all alike: answers alone cannot tell which. Read the item."
SUSPICIOUS = (
    f"suspicious: models choose another answer more often than guesses would, above all the better models. {READ}"
)
CORRELATED = (
    "suspicious: of so few models, those that do well on the other items do worse on this one; by chance alone, this "
    f"happens on about one item in twenty. {READ}"
)
SOLVED = ("text", "picture", "neither")
#: Minimum number of models for an item–rest correlation.
FEWEST = 3
#: Cross-validation folds of models to evaluate a short form.
FOLDS = 5


@dataclass(frozen=True)
class ItemOptions:
    """Options of an item analysis."""

    task: str = option("", "The task by which items are judged; by default the first that all runs have.")
    response: Literal["auto", "2pl", "1pl", "none"] = option(
        "auto", "Item response model; auto: 2pl from eight runs on, item–rest correlations below."
    )
    short: float = option(0.1, "The share of items in the short form.", minimum=0, maximum=1)


@dataclass(frozen=True, eq=False)
class Answers:
    """Which models get which items right. `right` has the shape (items, models), with values from 0 to 1 and NaN for
    missing results. The items are in the order of the run `first`. `chance` is the probability of a right guess for
    each item, 0 if unknown.
    """

    right: np.ndarray
    outcomes: dict[str, np.ndarray]
    task: str
    first: Run
    chance: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> list[str]:
        return list(self.outcomes)

    def split(self, models: Sequence[str]) -> tuple[Answers, np.ndarray]:
        """Return the answers of `models`, and a matrix with the columns of `right` for all other models. The first
        columns of `right` must be those of `models`.
        """
        n = len(models)
        labels = models if len(set(models)) == n else self.models[:n]
        outcomes = dict(zip(labels, self.outcomes.values()))
        return replace(self, right=self.right[:, :n], outcomes=outcomes), self.right[:, n:]


@dataclass(frozen=True, eq=False)
class ShortForm:
    """A selection of items that should rank models as the whole benchmark does. Its measures say how well it ranks
    models that were not used to select it.

    `pairs` is the fraction of pairs of models that have the same order as on the whole benchmark. `error` is the root
    mean squared difference between the accuracies on the selection and on the whole benchmark, from 0 to 1.
    `random_pairs` and `random_error` are the same measures for equally many random items.
    """

    items: np.ndarray
    pairs: float
    error: float
    random_pairs: float
    random_error: float

    def document(self) -> dict[str, Any]:
        return {"n": len(self.items), **{k: v for k, v in asdict(self).items() if k != "items"}}


@dataclass(frozen=True, eq=False)
class ItemStudy(Framed):
    """The results of an item analysis. `fit` is None if there are too few runs for an item response model. `gain` (how
    much the pictures help) is None if the same models were not also run without pictures.
    """

    answers: Answers
    rest: np.ndarray
    fit: ResponseFit | None
    short: ShortForm | None
    gain: PictureGain | None = None
    counted: tuple[Comparison, ...] = ()  #: every model's answers with the picture against those without

    @cached_property
    def suspicion(self) -> np.ndarray:
        """The log odds that the label of each item is wrong. If there is no response model, the value is −artanh(r) ·
        √(m − 3), where r is the item–rest correlation and m the number of models.
        """
        if self.fit is not None:
            return self.fit.flipped + np.log(WRONG_LABELS / (1 - WRONG_LABELS))
        models = self.answers.right.shape[1]
        return -np.arctanh(np.clip(np.nan_to_num(self.rest), -0.999, 0.999)) * np.sqrt(max(models - 3, 0))

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of each item: "suspicious", "right for all", "wrong for all", or "separates" (some models are right
        and others wrong).
        """
        share = np.nan_to_num(np.nanmean(self.answers.right, axis=1), nan=-1)
        doubtful = self.suspicion > (0 if self.fit is not None else 1.645)
        choices = [doubtful, share == 1, share == 0]
        return np.select(choices, ["suspicious", "right for all", "wrong for all"], "separates")

    @cached_property
    def agreement(self) -> list[PairAgreement]:
        """For every two runs (including those of people), how often they get the same items right or wrong."""
        return pair_agreements(self.answers.outcomes, self.answers.first.clusters)

    def frame(self) -> pa.Table:
        """Return an Arrow table with one row per item, the most suspicious first. `images` holds image keys."""
        table, right = self.answers.first.table, self.answers.right
        columns: dict[str, Any] = {name: table.column(name) for name in ("subset", "id", "images")}
        columns |= {"right": np.nanmean(right, axis=1), "n": (~np.isnan(right)).sum(axis=1), "rest": self.rest}
        columns["chance"] = self.answers.chance
        if self.fit is not None:
            for name in ("difficulty", "difficulty_se", "discrimination", "discrimination_se"):
                columns[name] = getattr(self.fit, name)
        if self.gain is not None:
            columns |= {"text": self.gain.text.mean(axis=1), "picture": self.gain.picture.mean(axis=1)}
            columns["solved_by"] = pa.array(self.gain.solved_by.tolist())
        columns |= {"suspicion": self.suspicion, "kind": pa.array(self.kinds.tolist())}
        if self.short is not None:
            columns["short"] = np.isin(np.arange(len(right)), self.short.items)
        order = np.argsort(-np.nan_to_num(self.suspicion, nan=-np.inf), kind="stable")
        return pa.table(columns).take(pa.array(order))

    def abilities(self) -> list[dict[str, Any]]:
        """Return one row per model, the best first, with its accuracy and, if there is a response model,
        its ability.
        """
        shares = np.nanmean(self.answers.right, axis=0)
        rows: list[dict[str, Any]] = [{"model": m, "right": float(s)} for m, s in zip(self.answers.models, shares)]
        for k, row in enumerate(rows if self.fit is not None else ()):
            row |= {"ability": float(self.fit.ability[k]), "se": float(self.fit.ability_se[k])}  # type: ignore[union-attr]
        for k, c in enumerate(self.counted):
            rows[k] |= {"text": c.accuracy_b, "picture": c.difference, "picture_low": c.low, "picture_high": c.high}
            rows[k]["picture_expected"] = float(self.gain.picture[:, k].mean())  # type: ignore[union-attr]
        return sorted(rows, key=lambda row: -row["right"])

    @cached_property
    def notes(self) -> list[str]:
        """Notes on omitted items, on the meaning of "suspicious", and on a poor fit of the response model."""
        meaning = CORRELATED if self.fit is None else SUSPICIOUS
        notes = [*self.answers.notes, *([meaning] if "suspicious" in self.kinds else [])]
        if self.fit is None:
            models = self.answers.right.shape[1]
            limit = -np.tanh(1.645 / np.sqrt(models - 3)) if models > 3 else -1
            needed = f"below {limit:.2f}" if models > 3 else "of more than 3 models"
            notes.append(
                "without a response model (from eight runs on), items are judged by their correlation with the others: "
                f"of {models} models, one {needed} makes an item suspicious"
            )
        if self.fit is not None and not self.fit.converged:
            notes.append("the item response model did not converge: difficulties and suspicions are uncertain")
        rows = self.abilities() if self.counted else []
        misfit = [r["model"] for r in rows if not r["picture_low"] <= r["picture_expected"] <= r["picture_high"]]
        if misfit:
            what = f"the item response model does not fit what the picture adds to {listing(misfit)}"
            notes.append(f"{what}: read the columns text and picture of single items with care")
        return notes

    def document(self) -> dict[str, Any]:
        """Return the study as a document for JSON."""
        kinds, counts = np.unique(self.kinds, return_counts=True)
        return {
            "benchmark": self.answers.first.benchmark,
            "task": self.answers.task,
            "kinds": dict(zip(kinds.tolist(), counts.tolist())),
            "solved_by": None if self.gain is None else {k: int((self.gain.solved_by == k).sum()) for k in SOLVED},
            "converged": None if self.fit is None else self.fit.converged,
            "models": self.abilities(),
            "agreement": [asdict(pair) for pair in self.agreement],
            "short_form": None if self.short is None else self.short.document(),
            "items": self.frame().to_pylist(),
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        doubtful = int((self.kinds == "suspicious").sum())
        items, models = self.answers.right.shape
        return f"ItemStudy({items:,} items, {models} models, {self.answers.task}: {doubtful:,} suspicious)"

    def _repr_html_(self) -> str:
        columns = [name for name in self.frame().column_names if name not in ("images", "n")]
        shown = self.frame().select(columns).slice(0, 20).to_pylist()
        cells = [[f"{v:.2f}" if isinstance(v, float) else v for v in row.values()] for row in shown]
        return html_table(repr(self), columns, cells)


@with_options(options=ItemOptions, settings=MetricSettings)
def difficulty(runs: Sequence[Run | str | Path], *, options: ItemOptions, settings: MetricSettings) -> ItemStudy:
    """Analyse the items of a benchmark, given the runs of at least three models on it.

    With eight models or more, item response theory gives every item a difficulty and a discrimination. The difficulty
    is the ability at which half of the models know the answer and the others guess. Items that models get wrong more
    often than by guessing are flagged. The item–rest correlation is always computed: the correlation between being
    right on the item and the accuracy on the other items.

    If there is also a run of every model on replaced images (`score --image noise`), the study says how much the
    picture helps with each item and each model.
    """
    seeing, blind = split_twins([r if isinstance(r, Run) else load_run(r) for r in runs])
    answers = answers_of([*seeing, *blind], options.task, settings)
    pairs = list(zip(answers.outcomes.values(), [*answers.outcomes.values()][len(seeing) :], strict=False))
    counted = tuple(compare(*pair, clusters=answers.first.clusters, settings=settings) for pair in pairs)
    answers, unseen = answers.split([run.model for run in seeing])
    models = answers.right.shape[1]
    if models < FEWEST:
        raise UsageError(
            f"{models} runs are too few for an item analysis", hint=f"give runs of at least {FEWEST} models"
        )
    fit = None
    model: ResponseModel = "1pl" if options.response == "1pl" else "2pl"
    if options.response != "none" and (models >= FEWEST_MODELS or options.response != "auto"):
        fit = fit_responses(answers.right, model, answers.chance[:, None])
    size = round(options.short * len(answers.right))
    short = short_form(answers.right, size) if size and models > FOLDS else None
    gain = picture_gain(answers.right, unseen, answers.chance, model if fit else None) if blind else None
    return ItemStudy(answers, item_rest(answers.right), fit, short, gain, counted)


def answers_of(runs: Sequence[Run], name: str = "", settings: MetricSettings | None = None) -> Answers:
    """Return which items each run gets right in the task `name`. If `name` is empty, use the first task that gives
    every item one outcome in all runs. Only items that all runs share are included: those with the same subset, id and
    match matrix.
    """
    if not runs:
        raise UsageError("no run given", hint="name at least one run")
    shared = [t for t in runs[0].tasks if task(t).by_item and all(task(t).needs in r.inputs for r in runs)]
    if not (name or shared):
        raise UsageError("the runs share no task with one outcome per item", hint="name one with `task=`")
    chosen = task(name or shared[0])
    if not chosen.by_item:
        raise UsageError(f"task {chosen.name!r} has no outcome per item", hint=f"choose one of: {', '.join(shared)}")
    for run in runs:
        run.scored_task(chosen.name)
    taken, most = on_shared_items(runs), max(len(run) for run in runs)
    n = len(taken[0])
    notes = (f"only the {n:,} items that all runs share, of up to {most:,}",) if n < most else ()
    outcomes = {label: run.outcomes(chosen.name) for label, run in zip(run_labels(runs), taken)}
    how = settings or runs[0].settings
    right = np.stack([np.where(o == VOID, np.nan, how.worth(o)) for o in outcomes.values()], axis=1)
    chance = np.nan_to_num(chances(chosen, taken[0].layout))
    return Answers(right, outcomes, chosen.name, taken[0], chance, notes)


def item_rest(right: np.ndarray) -> np.ndarray:
    """Return, for each item, the correlation over models between being right on the item and the accuracy on all other
    items.

    It is NaN if all models do equally well on the item or on the other items.

    >>> item_rest(np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])).round(2).tolist()
    [nan, -0.5, -0.87]
    """
    answered = ~np.isnan(right)
    values = np.where(answered, right, 0.0)
    others = (values.sum(axis=0) - values) / np.maximum(answered.sum(axis=0) - answered, 1)
    n = np.maximum(answered.sum(axis=1, keepdims=True), 1)
    x = np.where(answered, values - values.sum(axis=1, keepdims=True) / n, 0.0)
    y = np.where(answered, others - (others * answered).sum(axis=1, keepdims=True) / n, 0.0)
    size = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return np.divide((x * y).sum(axis=1), size, out=np.full(len(right), np.nan), where=size > 1e-12)


def short_form(right: np.ndarray, size: int) -> ShortForm:
    """Return a short form of the benchmark: the items are divided into `size` strata of difficulty, and the item with
    the highest item–rest correlation is chosen from each stratum.

    The measures of the short form are cross-validated: they are computed for models that were not used to choose the
    items, one fifth of the models at a time (see `_rank_error`).
    """
    rng = np.random.default_rng(0)
    models = right.shape[1]
    folds = rng.permutation(models) % min(FOLDS, models)
    figures = []
    for fold in range(int(folds.max()) + 1):
        new = folds == fold
        chosen = _spread_over_difficulty(right[:, ~new], size)
        drawn = [rng.choice(len(right), size, replace=False) for _ in range(10)]
        figures.append((_rank_error(right, chosen, new), np.mean([_rank_error(right, d, new) for d in drawn], axis=0)))
    (pairs, error), (random_pairs, random_error) = np.mean(figures, axis=0).tolist()
    items = np.sort(_spread_over_difficulty(right, size))
    return ShortForm(items, pairs, error**0.5, random_pairs, random_error**0.5)


def _spread_over_difficulty(right: np.ndarray, size: int) -> np.ndarray:
    """Return one item from each of `size` strata of difficulty: the one with the highest item–rest correlation."""
    share, rest = np.nanmean(right, axis=1), np.nan_to_num(item_rest(right), nan=-2)
    steps = np.array_split(np.argsort(share, kind="stable"), size)
    return np.array([step[rest[step].argmax()] for step in steps])


def _rank_error(right: np.ndarray, items: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Return two measures of how well the accuracies on `items` represent those on all items, for the models marked in
    `new`.

    The first is the fraction of pairs of models that are in the same order by both accuracies. Only pairs with a marked
    model are counted, and a pair that is tied by only one accuracy counts half. The second is the mean squared
    difference between a marked model's accuracies on `items` and on all items.
    """
    whole, part = np.nanmean(right, axis=0), np.nanmean(right[items], axis=0)
    gaps, order = (np.sign(v[new][:, None] - v[None, :]) for v in (whole, part))
    other = np.arange(len(new))[None, :] != np.flatnonzero(new)[:, None]
    agreeing = np.where(gaps == order, 1.0, np.where((gaps == 0) | (order == 0), 0.5, 0.0))[other].mean()
    return float(agreeing), float(((whole - part)[new] ** 2).mean())
