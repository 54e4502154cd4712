"""The tasks: which scores each task reads, by which rule it judges items, and what papers call it. They are declared in
tasks.toml.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from creperie.core import UnknownNameError, UsageError, decimal, packaged_toml, percent, unknown
from creperie.metrics import rules
from creperie.metrics.layout import INPUTS, Input, Layout
from creperie.metrics.rules import (
    VOID,
    CaptionPreference,
    CountRule,
    Decided,
    Judge,
    JudgedBy,
    OutcomeRule,
    Outrank,
    Sides,
    Within,
)

#: How a task's value is computed from its counts.
Value = Literal[
    "share", "captions", "foils", "balanced", "lower", "pooled", "precision", "f1", "auroc", "mean-rank", "median-rank"
]


@dataclass(frozen=True)
class Task:
    """A task. `rule` turns the scores of each item into an outcome, such as a hit or a miss, or into counts. `value`
    says how these become the value of the task.

    In some items the true captions P1 and P2 are swapped (see `second_is_nearer`). `swapped` names the task that is
    then used instead.
    """

    name: str
    what: str
    needs: Input
    rule: OutcomeRule | CountRule
    aliases: tuple[str, ...] = ()
    value: Value = "share"
    swapped: str = ""

    @property
    def by_item(self) -> bool:
        """True if the task gives every item one outcome, such as a hit. Other tasks give a rank, or one value over the
        captions of all items.
        """
        return isinstance(self.rule, OutcomeRule) and self.value == "share"

    @property
    def is_rank(self) -> bool:
        """True if the task's value is a rank (1 or more) instead of a proportion."""
        return self.value in ("mean-rank", "median-rank")

    @property
    def has_margins(self) -> bool:
        """True if every item has a margin: the smallest lead of a right candidate over a wrong one."""
        return isinstance(self.rule, Outrank) and not self.swapped

    def text(self, value: float | None, digits: int = 1) -> str:
        """Return a value of the task as text: a rank, or a percentage."""
        return decimal(value, max(2, digits)) if self.is_rank else percent(value, digits)


def _read_task(name: str, rule: list[Any], aliases: Sequence[str] = (), **fields: Any) -> Task:
    """Return the task that a record in tasks.toml describes. `rule` is the name of a class or function of the module
    `rules`, followed by its arguments.
    """
    kind = getattr(rules, rule[0])
    made = kind(*rule[1:]) if isinstance(kind, type) else kind
    judge = made if isinstance(made, OutcomeRule | CountRule) else Outrank(made)
    return Task(name, **{"needs": "image_text", **fields}, rule=judge, aliases=tuple(aliases))


#: Tasks without a number in their name. `task()` also knows aliases and the families below.
TASKS: Mapping[str, Task] = {
    name: _read_task(name, **record) for name, record in packaged_toml("creperie.metrics", "tasks.toml").items()
}

#: Families of tasks: a name, `@`, and a number. For `recall` the number is k, for the others the threshold on the
#: score.
_CUT: Mapping[str, tuple[str, Value, tuple[str, ...]]] = {
    "recall": ("the best true caption is among the k highest", "share", ("r", "hits")),
    "decided": ("every true caption is above the threshold, every false one below it", "share", ("yes-yes-no",)),
    "p_c": ("true captions above the threshold", "captions", ("p-c", "recall-of-captions")),
    "p_f": ("false captions below the threshold", "foils", ("p-f",)),
    "acc": ("mean of p_c and p_f", "balanced", ("balanced",)),
    "min": ("the lower of p_c and p_f", "lower", ("min-pc-pf", "min(p_c,p_f)")),
    "binary": ("captions on the right side of the threshold", "pooled", ("vsr", "binary-accuracy")),
    "precision": ("true captions among those above the threshold", "precision", ()),
    "f1": ("harmonic mean of precision and p_c", "f1", ()),
}
FAMILIES: Mapping[str, str] = {
    f"{name}@{'k' if name == 'recall' else 't'}": what for name, (what, _, _) in _CUT.items()
}

#: tasks that a program added, by name
_OWN: dict[str, Task] = {}

_ALIASES: Mapping[str, str] = {alias: t.name for t in TASKS.values() for alias in t.aliases}


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


#: names and aliases as `_plain` writes them, of tasks and of families
_NAMES = {_plain(alias): name for alias, name in [*zip(TASKS, TASKS), *_ALIASES.items()]}
_CUT_NAMES = {_plain(alias): name for name, (_, _, aliases) in _CUT.items() for alias in (name, *aliases)}


def task(name: str) -> Task:
    """Return the task with this name, alias or family name (such as recall@5). Case, spaces and underscores do not
    matter.

    >>> task("Image-to-Text").name, task("R@5").name, task("p_c@0.5").value
    ('itt', 'recall@5', 'captions')
    """
    key = _plain(name)
    if key in _NAMES:
        return TASKS[_NAMES[key]]
    if name in _OWN:
        return _OWN[name]
    family, at, number = key.partition("@")
    if family in _CUT_NAMES:
        return _cut(_CUT_NAMES[family], number if at else "")
    if at or not key.startswith("prefer"):
        raise _unknown(name)
    return _preferred(name, key)


def _unknown(name: str) -> UnknownNameError:
    """Return an error for an unknown name. It lists the tasks and, if an alias is similar to the name, that alias."""
    names = [*TASKS, *FAMILIES, "prefer:i-j"]
    return unknown("task", name, names + difflib.get_close_matches(name.lower(), [*names, *_ALIASES], n=1))


def _cut(family: str, number: str) -> Task:
    what, value, _ = _CUT[family]
    if family == "recall":
        if not number.isdigit() or int(number) < 1:
            raise UsageError(
                f"the number in recall@{number} is not a whole number of at least 1",
                hint="write, for instance, recall@1 or recall@5",
            )
        k = int(number)
        return Task(f"recall@{k}", what.replace("k highest", f"{k} highest"), "image_text", Within(k))
    try:
        threshold = float(number)
    except ValueError:
        threshold = math.nan
    if math.isnan(threshold):
        raise UsageError(
            f"{family} needs a threshold on the score",
            hint=f"write {family}@0.5 if scores are match probabilities, {family}@0 if they are differences of logits",
        )
    rule = Decided(threshold) if family == "decided" else Sides(threshold)
    return Task(f"{family}@{threshold:g}", what, "image_text", rule, value=value)


def _preferred(name: str, key: str) -> Task:
    numbers = re.fullmatch(r"prefer:(\d+)-(\d+)", key)
    if not numbers:
        raise _unknown(name)
    i, j = int(numbers[1]), int(numbers[2])
    if i == j:
        raise UsageError(f"{name} compares caption {i} with itself", hint="write two different numbers")
    return Task(f"prefer:{i}-{j}", f"caption {i} outranks caption {j}", "image_text", Outrank(CaptionPreference(i, j)))


def own_task(judge: Judge) -> str:
    """Add a task that is judged by a function of your own, and return its name. The function takes an item's match
    matrix and its scores, both images × captions.

    The function returns True, False, or None for a tie. The task is named after the function; the function's docstring
    says what is judged, and its attribute `chance`, if it has one, is the chance level.

    >>> def clearly(match, scores):
    ...     "the true caption leads by 0.1"
    ...     return scores[match].min() - scores[~match].max() > 0.1
    >>> own_task(clearly), task("clearly").what
    ('clearly', 'the true caption leads by 0.1')
    """
    name = getattr(judge, "__name__", "")
    if not name.isidentifier() or name in {*TASKS, *_ALIASES}:
        raise UsageError(
            f"creperie has a built-in task {name!r}" if name.isidentifier() else "a task of your own needs a name",
            hint="write the rule as a function with a name of its own: `def clearly(match, scores)`",
        )
    about = " ".join((judge.__doc__ or "a rule of your own").split("\n\n")[0].split())
    _OWN[name] = Task(name, about, "image_text", JudgedBy(judge))
    return name


def as_task(which: Task | str) -> Task:
    return task(which) if isinstance(which, str) else which


def outcomes(which: Task | str, layout: Layout, scores: np.ndarray, swap: np.ndarray | None = None) -> np.ndarray:
    """Return the outcome of each item as int8: HIT, MISS, TIE, or VOID if the task has nothing to compare in the item.
    `scores` is the flat array of the scores that the task needs.

    `swap` says for which items the true captions P1 and P2 are swapped (see `second_is_nearer`). Only tasks that
    distinguish P1 from P2 need it.

    >>> from creperie.metrics.layout import layout_of
    >>> winoground = layout_of([[[1, 0], [0, 1]]])
    >>> scores = np.array([0.9, 0.2, 0.3, 0.8], np.float32)
    >>> [int(outcomes(name, winoground, scores)[0]) for name in ("itt", "t2i", "group")]
    [1, 1, 1]
    """
    chosen = as_task(which)
    if not chosen.by_item:
        raise UsageError(
            f"task {chosen.name!r} has no outcome per item", hint="call `evaluate`, which scores the task as a whole"
        )
    judged = _judged(chosen, layout, scores)
    if not chosen.swapped:
        return judged
    if swap is None:
        raise UsageError(
            f"task {chosen.name!r} needs `swap`, which says for each item whether P2 is nearer to N than P1 is",
            hint="compute it with `second_is_nearer` and pass it as `swap=`",
        )
    return np.where(np.asarray(swap, bool), _judged(TASKS[chosen.swapped], layout, scores), judged)


def _judged(chosen: Task, layout: Layout, scores: np.ndarray) -> np.ndarray:
    judged = np.full(len(layout), VOID, np.int8)
    rule = chosen.rule
    assert isinstance(rule, OutcomeRule)
    for group, cells in layout.blocks(chosen.needs, scores):
        if rule.applies(group.match):
            judged[group.items] = rule.outcomes(group.match, cells)
    return judged


def margins(which: Task | str, layout: Layout, scores: np.ndarray) -> np.ndarray:
    """Return each item's margin: the smallest lead of a right candidate over a wrong one. It is NaN for void items.

    A positive margin is a hit, zero is a tie, and a negative one is a miss. Only tasks with the rule `Outrank` have
    margins.
    """
    chosen = as_task(which)
    if not isinstance(chosen.rule, Outrank):
        raise UsageError(
            f"task {chosen.name!r} has no margins: it does not compare winners with losers",
            hint="choose a task such as itt, t2i or tot",
        )
    leads = np.full(len(layout), np.nan)
    for group, cells in layout.blocks(chosen.needs, scores):
        if chosen.rule.applies(group.match):
            leads[group.items] = chosen.rule.margins(group.match, cells)
    return leads


def unit_of(tasks: Iterable[str]) -> str:
    """Return the unit of these tasks' values: accuracies in percent, ranks, or both.

    >>> unit_of(["itt"]), unit_of(["mean-rank"]), unit_of(["itt", "mean-rank"])
    ('accuracy in %', 'rank from 1', 'accuracy in % or rank from 1')
    """
    kinds = {task(name).is_rank for name in tasks}
    return " or ".join(text for rank, text in ((False, "accuracy in %"), (True, "rank from 1")) if rank in kinds)


def chances(which: Task | str, layout: Layout) -> np.ndarray:
    """Return the exact chance level of each item; NaN for an item in which the task has nothing to compare."""
    chosen = as_task(which)
    if chosen.is_rank or chosen.value in ("precision", "f1"):
        raise UsageError(
            f"task {chosen.name!r} has a chance level for a set of items, but none for a single item",
            hint="call `evaluate`, which scores the task as a whole",
        )
    rule = chosen.rule
    return layout.spread(lambda match: rule.chance(match) if rule.applies(match) else math.nan)


def applies(which: Task | str, layout: Layout) -> np.ndarray:
    """Return a boolean for each item: True if the item has something that the task can compare."""
    return layout.spread(as_task(which).rule.applies) > 0


def applicable(layout: Layout, inputs: Iterable[Input] = INPUTS) -> list[str]:
    """Return the names of the tasks that apply to at least one item and need only the score columns in `inputs`."""
    at_hand = set(inputs)
    return [t.name for t in TASKS.values() if t.needs in at_hand and bool(applies(t, layout).any())]


def second_is_nearer(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a boolean for each item: True if VISLA swaps the true captions P1 and P2, because P2 is nearer to the
    false caption N. `first` and `second` are the character edit distances from N to P1 and to P2.

    If both distances are equal, P1 and P2 are not swapped.
    """
    return np.asarray(second) < np.asarray(first)
