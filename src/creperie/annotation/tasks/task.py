"""The definition of a task: how items become questions, how a question is shown, and what an answer means."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import yaml
from jinja2 import Template

from creperie.annotation.tasks.form import AnswerOption, PageForm
from creperie.bench import Item
from creperie.core import Json, packaged

Payload = Mapping[str, Any]
#: The meaning of an answer, in terms of the item.
Value = Json
Order = Sequence[int]
#: Questions with their known answers.
KnownAnswers = list[tuple[Json, Value]]


@dataclass(frozen=True)
class QuestionDraft:
    """A question that has not been stored in the database yet."""

    source: str
    subset: str
    item: str
    payload: Json
    kind: str = "main"
    expected: Json | None = None  #: the known answer, for practice and checks

    @property
    def key(self) -> tuple[str, str, str]:
        return self.source, self.subset, self.item


@dataclass(frozen=True)
class Dimension:
    """An aspect of an answer for which the annotators' agreement is measured. `code` turns an answer into a number."""

    name: str
    code: Callable[[Payload, Value], float]
    scale: Literal["nominal", "ordinal", "interval"] = "nominal"


@dataclass(frozen=True)
class StudyTask:
    """A task for annotators, defined by functions: how items become questions, and what answers mean."""

    name: str
    #: what `apply` makes of the answers: "check" changes the benchmark, "run" makes human runs, "rate" makes ratings
    makes: Literal["check", "run", "rate"]
    #: the questions about an item; the second argument says whether its picture is shown
    questions: Callable[[Item, bool], Iterable[Json]]
    show: Callable[[Payload, Order], PageForm]
    #: an answer in words
    say: Callable[[Payload, Value], str]
    #: questions with a known answer, one for each answer that is possible: made from an item and, if there is one,
    #: another item whose true captions are false of its picture
    known: Callable[[Payload, Payload | None], KnownAnswers]
    dimensions: tuple[Dimension, ...]
    #: the number of things to shuffle
    shuffled: Callable[[Payload], int] = lambda payload: 0
    #: from the fields of an answer to its value, independent of the order shown
    mean: Callable[[Payload, Order, Value], Value] = lambda payload, order, read: dict(read)
    #: True if a given answer agrees with the known one
    right: Callable[[Value, Value], bool] = lambda given, known: given == known

    @property
    def words(self) -> Mapping[str, Any]:
        return texts()[self.name]

    def instructions(self, payloads: Sequence[Payload]) -> str:
        """Return the instructions for these questions. They mention pictures, a second true caption and several false
        ones only if there are any.
        """
        about = {
            "pictures": any(one["images"] for one in payloads),
            "second": any("column" in one for one in payloads),
            "several": any(list(one.get("match", ())).count(False) > 1 for one in payloads),
        }
        return Template(self.words["instructions"], trim_blocks=True).render(about).strip()

    def draft(self, source: str, items: Iterable[Item], with_image: bool = True) -> list[QuestionDraft]:
        """Return the questions about these items. Items that the task cannot ask about are left out."""
        asked = ((item, payload) for item in items for payload in self.questions(item, with_image))
        return [QuestionDraft(source, item.subset, item.id, payload) for item, payload in asked]


@cache
def texts() -> Mapping[str, Mapping[str, Any]]:
    """Return the texts shown on pages, by task."""
    return yaml.safe_load(packaged("creperie.annotation.tasks", "texts.yaml"))


@cache
def options_of(task: str, key: str = "options") -> tuple[AnswerOption, ...]:
    """Return the answer options of a task, which are the same for every question."""
    return tuple(AnswerOption(**o) for o in texts()[task][key])


def ask_of(task: str, payload: Payload) -> str:
    """Return the question that the page asks about an item; it mentions a picture only if the item has one."""
    return str(texts()[task]["ask" if payload["images"] else "ask_blind"])


def label_of(value: str, task: str, key: str = "options") -> str:
    """Return the label that the page shows for an answer option."""
    return next((o.label for o in options_of(task, key) if o.value == value), value)


def choice_of(name: str, task: str) -> Dimension:
    """Return a `Dimension` that measures agreement on the field `name`. Its code is the index of the chosen option."""
    values = [o.value for o in options_of(task)]
    return Dimension(name, lambda payload, value: float(values.index(value[name])))


def captions_as_options(captions: Sequence[str], order: Order) -> tuple[AnswerOption, ...]:
    """Return captions as answer options, in the order shown. The value of an option is its position on the page, so
    that it does not reveal which caption is true.
    """
    return tuple(AnswerOption(str(place), captions[j], quote=True) for place, j in enumerate(order))


def caption_code(payload: Payload, chosen: Sequence[int]) -> float:
    """Return a number that stands for the chosen captions when agreement is measured. The captions of each question are
    first renumbered by a permutation that depends on the question.
    """
    # In some benchmarks the false caption is always the last one. Without the permutation, everybody who is right would
    # give the same answer to every question, and a coefficient of agreement would treat their agreement as chance.
    captions = payload["captions"]
    digests = [hashlib.sha256("\0".join((text, *captions)).encode()).digest() for text in captions]
    return float(sum(sorted(digests).index(digests[j]) * len(captions) ** n for n, j in enumerate(chosen)))
