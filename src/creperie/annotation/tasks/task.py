"""What a task is: how items become questions, how a question is shown, and what an answer means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from creperie.annotation.tasks.form import AnswerOption, PageForm
from creperie.bench import Item

Payload = Mapping[str, Any]
Value = dict[str, Any]
Order = Sequence[int]


@dataclass(frozen=True)
class QuestionDraft:
    """A question that is not stored yet."""

    source: str
    subset: str
    item: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class Material:
    """What questions are made of: a benchmark's items, for comparisons another one's, and whether images are shown."""

    source: str
    items: Sequence[Item]
    other_source: str = ""
    others: Sequence[Item] = ()
    with_image: bool = True


@dataclass(frozen=True)
class Dimension:
    """One thing that annotators can agree on: how an answer becomes a number."""

    name: str
    code: Callable[[Payload, Value], float]
    scale: Literal["nominal", "ordinal", "interval"] = "nominal"


@dataclass(frozen=True)
class StudyTask:
    """A task as data: the functions say how it differs from the others."""

    name: str
    draft: Callable[[Material], list[QuestionDraft]]
    #: how many things stand in random order
    shuffled: Callable[[Payload], int]
    show: Callable[[Payload, Order], PageForm]
    #: what the fields of an answer mean, whatever order they were shown in
    mean: Callable[[Payload, Order, Value], Value]
    #: an answer in words
    say: Callable[[Payload, Value], str]
    #: questions whose answer is known, made of a real item and of another one whose captions contradict it: one for
    #: each answer that can be told apart
    known: Callable[[Payload, Payload | None], list[tuple[dict[str, Any], Value]]]
    dimensions: tuple[Dimension, ...]
    #: what `apply` makes of the answers: "check" changes the benchmark, "run" makes human runs, "rate" makes ratings
    makes: Literal["check", "run", "rate"]
    #: whether a given answer passes a check with a known one
    right: Callable[[Value, Value], bool] = field(default=lambda given, known: given == known)

    @property
    def words(self) -> Mapping[str, Any]:
        return texts()[self.name]


@cache
def texts() -> Mapping[str, Mapping[str, Any]]:
    """Return the texts of the pages, by task."""
    path = resources.files("creperie.annotation.tasks") / "texts.yaml"
    words: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return words


@cache
def options_of(task: str, key: str = "options") -> tuple[AnswerOption, ...]:
    """The fixed options of a task."""
    return tuple(AnswerOption(**o) for o in texts()[task][key])


def label_of(options: Sequence[AnswerOption], value: str) -> str:
    """Return the label of an option on the page."""
    return next((o.label for o in options if o.value == value), value)


def captions_as_options(captions: Sequence[str], order: Order) -> tuple[AnswerOption, ...]:
    """Captions in the order shown. Their values are their places on the page, which say nothing about truth."""
    return tuple(AnswerOption(str(place), captions[j], quote=True) for place, j in enumerate(order))


def one_row(item: Item) -> tuple[bool, ...] | None:
    """The match row of an item with at most one image."""
    return item.match[0] if len(item.match) == 1 else None
