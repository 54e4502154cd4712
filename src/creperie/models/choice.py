"""Multiple choice: which caption fits the image, or which one does not.

A chooser answers one question at a time, with its options in one order. Which orders are asked, and what becomes of
the answers, is the scorer's business (`creperie.scoring.choice`).
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from PIL import Image

from creperie.core import DataError, UsageError
from creperie.models.answers import CHOSE_OPTION, Parsed
from creperie.models.options import ModelOption
from creperie.models.prompts import PromptText, find_prompt
from creperie.models.protocols import Fingerprint, Model

CHOICE_OPTIONS = (
    ModelOption(
        "by", "choice: read the labels' likelihoods, or generate an answer", "choice", None, ("likelihood", "generate")
    ),
    ModelOption("order", "choice: all orders of the options, as given, or a pattern such as NPP", "text", "all"),
    ModelOption("shots", "choice: a TOML file of demonstrations"),
)
#: the prompt for each question, where none is chosen
DEFAULTS = {"match": "which-fits", "odd": "odd-or-none"}
#: more options than this are asked in rotated orders only: five have 120 orders
PERMUTED = 4


@dataclass(frozen=True)
class ChoiceQuestion:
    """An image, captions in the order they are offered, and whether the one that fits or the odd one is wanted."""

    image: Image.Image
    options: tuple[str, ...]
    asks: str


@dataclass(frozen=True)
class Chosen:
    """How likely each option is to be the answer (1 and 0 where one was named), NaN where nothing could be read.
    `answer` is what was said, empty where likelihoods were read."""

    shares: np.ndarray
    answer: str = ""
    parsed: Parsed | None = None

    @property
    def position(self) -> int | None:
        """The place of the option that was chosen; None where none was, or where several are equally likely."""
        if self.parsed is not None:
            return self.parsed.option
        if not np.isfinite(self.shares).all():
            return None
        if 1 - self.shares.sum() > self.shares.max():  # "none" is likelier than any option
            return None
        best = np.flatnonzero(self.shares == self.shares.max())
        return int(best[0]) if len(best) == 1 else None


@runtime_checkable
class Chooser(Model, Protocol):
    """Answers questions with options. `asks` are the questions it can be asked, `order` which orders it wants."""

    @property
    def asks(self) -> tuple[str, ...]: ...

    @property
    def order(self) -> str: ...

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]: ...


@runtime_checkable
class Rewordable(Chooser, Protocol):
    """A chooser that can be asked in other words."""

    @property
    def form(self) -> QuestionWording: ...

    def asked_with(self, form: QuestionWording) -> Chooser: ...


@dataclass(frozen=True)
class Demonstration:
    """A solved question for the model to go by. `scene` says what the picture would show."""

    captions: tuple[str, ...]
    answer: int  #: counted from 0; −1 for none
    scene: str = ""


@dataclass(frozen=True)
class QuestionWording:
    """How questions are worded: the prompts by what they ask, and the demonstrations before them."""

    prompts: Mapping[str, PromptText]
    shots: tuple[Demonstration, ...] = ()

    @property
    def asks(self) -> tuple[str, ...]:
        return tuple(self.prompts)

    def text(self, question: ChoiceQuestion) -> str:
        """The whole question as text."""
        shown = ["\n".join(turn) for turn in self.turns(question)]
        return "\n\n".join([*shown, self.prompt(question).offering(question.options)])

    def turns(self, question: ChoiceQuestion) -> list[tuple[str, str]]:
        """The demonstrations, each as what is asked and what is answered."""
        prompt = self.prompt(question)
        return [self._shown(prompt, shot) for shot in self.shots]

    def answers(self, question: ChoiceQuestion) -> list[str]:
        """What can be answered: a label an option, and the word for none where there is one."""
        prompt = self.prompt(question)
        return [label.rstrip(".") for label in prompt.labels[: len(question.options)]] + [prompt.none] * bool(
            prompt.none
        )

    def prompt(self, question: ChoiceQuestion) -> PromptText:
        prompt = self.prompts[question.asks]
        if len(question.options) > len(prompt.labels):
            raise UsageError(
                f"the prompt has labels for {len(prompt.labels)} options, an item has {len(question.options)}",
                where=prompt.id,
                hint="give a prompt with more labels by ?prompt=FILE",
            )
        return prompt

    def _shown(self, prompt: PromptText, shot: Demonstration) -> tuple[str, str]:
        label = prompt.none if shot.answer < 0 else prompt.labels[shot.answer].rstrip(".")
        if not label:
            raise UsageError("a demonstration answers none, which this prompt does not offer", where=prompt.id)
        scene = [shot.scene] if shot.scene else []
        return "\n".join([*scene, prompt.offering(shot.captions)]), label

    def described(self) -> str:
        """For the fingerprint."""
        return "\n\n".join([*(f"{p.id}: {p.text}" for p in self.prompts.values()), *map(str, self.shots)])


def read_form(prompt: str | None, shots: str | None, *, where: str) -> QuestionWording:
    """The wording that a URI's options ask for."""
    if prompt:
        chosen = find_prompt(prompt, "choice", where=where)
        prompts = {chosen.asks: chosen}
    else:
        prompts = {asks: find_prompt(name, "choice") for asks, name in DEFAULTS.items()}
    return QuestionWording(prompts, read_demonstrations(shots) if shots else ())


def read_demonstrations(path: str | Path) -> tuple[Demonstration, ...]:
    """Demonstrations from a TOML file: `[[demonstration]]` with captions, answer (from 1; 0 for none), scene."""
    try:
        document = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise DataError(f"cannot be read ({e})", where=str(path), hint="give a TOML file of demonstrations") from None
    records = document.get("demonstration")
    if not isinstance(records, list) or not records:
        raise DataError("holds no [[demonstration]]", where=str(path), hint="see docs/generative.md")
    return tuple(_demonstration(record, f"{path}: demonstration {n}") for n, record in enumerate(records, 1))


def _demonstration(record: Mapping[str, Any], where: str) -> Demonstration:
    captions, answer = record.get("captions"), record.get("answer")
    if not isinstance(captions, list) or not all(isinstance(c, str) for c in captions) or len(captions) < 2:
        raise DataError("needs a list of at least two captions", where=where)
    if not isinstance(answer, int) or not 0 <= answer <= len(captions):
        raise DataError(f"answer={answer!r} is not a number from 0 to {len(captions)}", where=where)
    return Demonstration(tuple(captions), answer - 1, str(record.get("scene", "")))


# -- orders ----------------------------------------------------------------------------------------------------------


def order_pattern(order: Sequence[int], match: Sequence[bool]) -> str:
    """True and false captions as an order shows them.

    >>> order_pattern((2, 0, 1), (True, True, False))
    'NPP'
    """
    return "".join("P" if match[i] else "N" for i in order)


def orders_of(spec: str, match: Sequence[bool]) -> list[tuple[int, ...]]:
    """The orders that are asked: all (beyond four options, the rotations), given, rotations, or a pattern.

    >>> orders_of("PNP", (True, True, False))
    [(0, 2, 1)]
    >>> len(orders_of("all", (True, True, False))), len(orders_of("all", (True, False, False, False, False, False)))
    (6, 6)
    """
    count = len(match)
    rotations = [tuple((i + k) % count for i in range(count)) for k in range(count)]
    if spec == "given":
        return rotations[:1]
    if spec == "rotations" or (spec == "all" and count > PERMUTED):
        return rotations
    if spec == "all":
        return list(itertools.permutations(range(count)))
    wanted = spec.upper()
    if sorted(wanted) != sorted(order_pattern(range(count), match)):
        shown = order_pattern(range(count), match)
        raise UsageError(
            f"order={spec} does not fit an item whose captions are {shown}",
            hint="use all, given, rotations, or a pattern with as many P and N",
        )
    true, false = iter(i for i in range(count) if match[i]), iter(i for i in range(count) if not match[i])
    return [tuple(next(true) if letter == "P" else next(false) for letter in wanted)]


def shares_of(parsed: Parsed, count: int) -> np.ndarray:
    """One for the option that was named, NaN where the answer could not be read, zeros where it names none or all."""
    if parsed.why:
        return np.full(count, np.nan, np.float32)
    shares = np.zeros(count, np.float32)
    if parsed.kind == CHOSE_OPTION and parsed.option is not None:
        shares[parsed.option] = 1
    return shares


class WordedChooser:
    """What choosers share: the words they ask with, the orders they want, what they are."""

    _fingerprint: Fingerprint
    _form: QuestionWording
    _order: str

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    @property
    def form(self) -> QuestionWording:
        return self._form

    @property
    def order(self) -> str:
        return self._order

    @property
    def asks(self) -> tuple[str, ...]:
        return self.form.asks
