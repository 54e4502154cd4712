"""Multiple choice: questions about which caption fits the image, or which one does not.

A chooser answers one question at a time, with its options in one order. `creperie.scoring.choice` decides which orders
to use, and how the answers become scores.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from creperie.core import DataError, UsageError, parse_toml, read_text, sha256_of_text
from creperie.models.answers import CHOSE_OPTION, Parsed
from creperie.models.prompts import PromptText, find_prompt, in_folder
from creperie.models.protocols import Fingerprint, Model, Prompt
from creperie.models.uri import ModelOption

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

CHOICE_OPTIONS = (
    ModelOption(
        "by", "choice: read the labels' likelihoods, or generate an answer", "choice", None, ("likelihood", "generate")
    ),
    ModelOption(
        "order", "choice: all, given, rotations, or a pattern of true (P) and false (N) such as NPP", "text", "all"
    ),
    ModelOption("shots", "choice: a TOML file of demonstrations, as `creperie data shots` draws them"),
)
#: the default prompt for each question
DEFAULTS = {"match": "which-fits", "odd": "odd-or-none"}
#: enough tokens for a label and a few words around it; a server's model may explain itself
ANSWER_TOKENS, SERVER_TOKENS = 64, 1024
#: with more options than this, only rotated orders are asked: five options have 120 orders
PERMUTED = 4


@dataclass(frozen=True)
class ChoiceQuestion:
    """A question about an image, with the captions in the order in which they are offered.

    `asks` is "match" (which caption fits the image) or "odd" (which caption does not). `subset` selects the
    demonstrations that are shown before the question.
    """

    image: Image.Image
    options: tuple[str, ...]
    asks: str
    subset: str = ""


@dataclass(frozen=True)
class Chosen:
    """An answer, as one probability per option. If the model named an option, its probability is 1 and all others are
    0. If the answer could not be parsed, all are NaN.

    `answer` is the generated text, with the reasoning if it is a `GeneratedText`. It is empty if the probabilities come
    from likelihoods.
    """

    shares: np.ndarray
    answer: str = ""
    parsed: Parsed | None = None

    @property
    def position(self) -> int | None:
        """The index of the chosen option. None if no option was chosen, or if several are equally likely."""
        if self.parsed is not None:
            return self.parsed.option
        import numpy as np

        if not np.isfinite(self.shares).all():
            return None
        if 1 - self.shares.sum() > self.shares.max():  # "none" is likelier than any option
            return None
        best = np.flatnonzero(self.shares == self.shares.max())
        return int(best[0]) if len(best) == 1 else None


@runtime_checkable
class Chooser(Model, Protocol):
    """A model that answers multiple-choice questions.

    `asks` lists the questions that it can answer ("match", "odd"). `order` says in which orders the options are
    offered.
    """

    @property
    def asks(self) -> tuple[str, ...]: ...

    @property
    def order(self) -> str: ...

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]: ...


@runtime_checkable
class Rewordable(Chooser, Protocol):
    """A chooser whose questions can be worded differently."""

    @property
    def form(self) -> QuestionWording: ...

    def asked_with(self, form: QuestionWording) -> Chooser: ...


@dataclass(frozen=True)
class Demonstration:
    """A question with its answer, shown to the model as an example. It comes with an image or with a description of the
    scene.

    If `subset` is set, the example is shown only before questions of that subset.
    """

    captions: tuple[str, ...]
    answer: int  #: index from 0; −1 for none
    fits: tuple[int, ...] = ()  #: the captions that fit; if given, the answer depends on what is asked
    scene: str = ""
    subset: str = ""
    picture: bytes = field(default=b"", repr=False)
    digest: str = ""  #: hash of the picture, for the fingerprint

    @cached_property
    def image(self) -> Image.Image | None:
        from creperie.bench import decode_image

        return decode_image(self.picture) if self.picture else None


class Turn(NamedTuple):
    """A demonstration as a turn of a conversation: the question, the answer and the image."""

    asked: str
    answered: str
    image: Image.Image | None = None


#: the demonstrations before a question
Turns = Sequence[Turn]


@dataclass(frozen=True)
class QuestionWording:
    """How questions are worded: the prompt for each kind of question, and the demonstrations shown before it."""

    prompts: Mapping[str, PromptText]
    shots: tuple[Demonstration, ...] = ()

    @property
    def asks(self) -> tuple[str, ...]:
        return tuple(self.prompts)

    def asked(self, question: ChoiceQuestion) -> Prompt:
        """Return the prompt for a generator: the demonstrations as turns, with their images, then the question."""
        turns = self.turns(question)
        messages = [part for turn in turns for part in (("user", turn.asked), ("assistant", turn.answered))]
        images = [turn.image for turn in turns]
        return Prompt(
            (*messages, ("user", self.prompt(question).offering(question.options))),
            images=(*(image for image in images if image is not None), question.image),
            shows=(*(int(image is not None) for image in images), 1),
            max_tokens=ANSWER_TOKENS,
        )

    def turns(self, question: ChoiceQuestion) -> list[Turn]:
        """Return the demonstrations shown before a question, as turns of a conversation."""
        prompt = self.prompt(question)
        return [self._demonstration_turn(prompt, shot) for shot in self.shots if shot.subset in ("", question.subset)]

    def answers(self, question: ChoiceQuestion) -> list[str]:
        """Return the possible answers: one label per option and, if the prompt offers the answer "none", the word for
        this answer.
        """
        prompt = self.prompt(question)
        return [label.rstrip(".") for label in prompt.labels[: len(question.options)]] + [prompt.none] * bool(
            prompt.none
        )

    def prompt(self, question: ChoiceQuestion) -> PromptText:
        prompt = self.prompts[question.asks]
        if len(question.options) > len(prompt.labels):
            raise UsageError(
                f"the prompt has {len(prompt.labels)} labels, but an item has {len(question.options)} options",
                where=prompt.id,
                hint="name a prompt with more labels: ?prompt=FILE",
            )
        return prompt

    def _demonstration_turn(self, prompt: PromptText, shot: Demonstration) -> Turn:
        answer = shot.answer
        if shot.fits:
            answer = next(k for k in range(len(shot.captions)) if (k in shot.fits) == (prompt.asks == "match"))
        label = prompt.none if answer < 0 else prompt.labels[answer].rstrip(".")
        if not label:
            raise UsageError(
                "a demonstration has answer = 0 (no caption fits), but the prompt does not offer this answer",
                where=prompt.id,
                hint="give the prompt a key `none` with the word for this answer",
            )
        scene = [shot.scene] if shot.scene else []
        return Turn("\n".join([*scene, prompt.offering(shot.captions)]), label, shot.image)

    @property
    def marks(self) -> dict[str, str]:
        """The entry in the fingerprint that says that demonstrations depend on the subset. Empty if they do not."""
        return {"demonstrations": "by subset"} if any(shot.subset for shot in self.shots) else {}

    def described(self) -> str:
        """Return the prompts and the demonstrations as text, for the fingerprint."""
        return "\n\n".join([*(p.described for p in self.prompts.values()), *map(str, self.shots)])


def read_form(prompt: str | None, shots: str | None, *, where: str) -> QuestionWording:
    """Return the wording that the options `prompt` and `shots` of a URI describe."""
    if prompt and (not in_folder(prompt) or "#" in prompt):
        chosen = find_prompt(prompt, "choice", where=where)
        prompts = {chosen.asks: chosen}
    else:
        prompts = {asks: find_prompt(prompt, "choice", default=name) for asks, name in DEFAULTS.items()}
    return QuestionWording(prompts, read_demonstrations(shots) if shots else ())


def read_demonstrations(path: str | Path) -> tuple[Demonstration, ...]:
    """Return the demonstrations of a TOML file.

    Each `[[demonstration]]` has `captions`, and either `answer` or `fits`. `answer` is the number of an option, from 1,
    or 0 for none. `fits` lists the numbers of the captions that fit. A demonstration may also have `image` (a file in
    the same folder) or `scene` (a description), and `subset`.
    """
    file = Path(path).expanduser()
    records = parse_toml(read_text(file), path).get("demonstration")
    if not isinstance(records, list) or not records:
        raise DataError(
            "has no [[demonstration]] table", where=path, hint="add at least one; docs/generative.md shows an example"
        )
    return tuple(
        _demonstration(record, file.parent, f"{path}: demonstration {n}") for n, record in enumerate(records, 1)
    )


def _demonstration(record: Mapping[str, Any], folder: Path, where: str) -> Demonstration:
    captions, fits = record.get("captions"), record.get("fits", [])
    answer = record.get("answer", 0 if fits else None)
    what = ""
    if not isinstance(captions, list) or not all(isinstance(c, str) for c in captions) or len(captions) < 2:
        what, hint = "`captions` is not a list of at least two texts", 'write captions = ["…", "…"]'
    elif not isinstance(answer, int) or not 0 <= answer <= len(captions):
        what, hint = f"answer={answer!r} is not a number from 0 to {len(captions)}", "0 means that no caption fits"
    elif not isinstance(fits, list) or not all(isinstance(k, int) and 1 <= k <= len(captions) for k in fits):
        what, hint = f"fits={fits!r} is not a list of numbers from 1 to {len(captions)}", "list the captions that fit"
    elif fits and len(set(fits)) not in (1, len(captions) - 1):
        what = "`fits` must list exactly one caption, or all captions except one"
        hint = "list the numbers of the captions that fit"
    if what:
        raise DataError(what, where=where, hint=hint)
    described = {name: str(record.get(name, "")) for name in ("scene", "subset")}
    picture = b""
    if name := str(record.get("image", "")):
        from creperie.bench import decode_image, open_store, picture_bytes

        try:
            picture = picture_bytes(open_store(folder), name)
            decode_image(picture)
        except DataError as e:
            raise DataError(f"the image cannot be read ({e})", where=where, hint="correct `image`") from None
    digest = sha256_of_text(picture) if picture else ""
    shown = tuple(k - 1 for k in fits)
    return Demonstration(tuple(captions or ()), answer - 1, shown, picture=picture, digest=digest, **described)


# -- orders ----------------------------------------------------------------------------------------------------------


def order_pattern(order: Sequence[int], match: Sequence[bool]) -> str:
    """Return a letter for each caption in the given order: P if the caption is true, N if it is false.

    >>> order_pattern((2, 0, 1), (True, True, False))
    'NPP'
    """
    return "".join("P" if match[i] else "N" for i in order)


def orders_of(spec: str, match: Sequence[bool]) -> list[tuple[int, ...]]:
    """Return the orders in which options are offered, as tuples of indices. `match` says which options are true.

    `spec` is "given", "all", "rotations", or a pattern of true (P) and false (N) options. With more than four options,
    "all" means only the rotations.

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
    pattern = spec.upper()
    if sorted(pattern) != sorted(order_pattern(range(count), match)):
        shown = order_pattern(range(count), match)
        raise UsageError(
            f"order={spec} does not fit an item with captions {shown}",
            hint="use all, given or rotations, or a pattern with a P for each true caption and an N for each false one",
        )
    true, false = iter(i for i in range(count) if match[i]), iter(i for i in range(count) if not match[i])
    return [tuple(next(true) if letter == "P" else next(false) for letter in pattern)]


def shares_of(parsed: Parsed, count: int) -> np.ndarray:
    """Return one number per option: 1 for the option named, 0 for the others. If none or several are named, all are 0;
    if the answer is unparsable, all are NaN.
    """
    import numpy as np

    if parsed.why:
        return np.full(count, np.nan, np.float32)
    shares = np.zeros(count, np.float32)
    if parsed.kind == CHOSE_OPTION and parsed.option is not None:
        shares[parsed.option] = 1
    return shares


class WordedChooser:
    """The base class of choosers. It holds the question wording, the orders of the options and the fingerprint."""

    fingerprint: Fingerprint
    form: QuestionWording
    order: str

    @property
    def asks(self) -> tuple[str, ...]:
        return self.form.asks
