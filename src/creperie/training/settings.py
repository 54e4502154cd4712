"""Training settings, and the part of a model that is trained: none, all, the text tower, or low-rank adapters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from creperie.core import UsageError, check_options, option

if TYPE_CHECKING:
    from creperie.training.architecture import Student

#: CLIP's loss; CLIP's loss with foils as further captions; both positives ranked before the foil
OBJECTIVES = ("clip", "negclip", "triple")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training run. The defaults are those of NegCLIP and SugarCrepe. If `steps` is given, training
    ends after this many steps, even within an epoch.
    """

    objective: str = option("negclip", "The loss; negclip: with foils, triple: of (P1, P2, N).", choices=OBJECTIVES)
    epochs: int = option(30, "Times that every example is seen.", minimum=1)
    steps: int | None = option(None, "Stop after this many optimiser steps.", minimum=1)
    batch: int = option(256, "Images per batch.", minimum=2)
    lr: float = option(1e-4, "Highest learning rate.")
    weight_decay: float = option(0.1, "Weight decay.", minimum=0)
    warmup: int = option(1000, "Steps of warm-up; a cosine follows.", minimum=0)
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = option(0.0, "Clip gradients at this norm; 0: never.", minimum=0)
    accumulate: int = option(1, "Batches per optimiser step; contrasts stay within a batch.", minimum=1)
    precision: str = option("float32", "Precision of the arithmetic.", choices=PRECISIONS)
    save_every: int = option(0, "Steps between checkpoints; 0: one epoch.", minimum=0)
    keep: int = 2  #: number of checkpoints to keep
    seed: int = option(0, "Seed of weights, order and dropout.", minimum=0)

    def __post_init__(self) -> None:
        check_options(self)
        if not self.lr > 0:
            raise UsageError(f"`lr={self.lr}` is not above 0", hint="write, for instance, 1e-4")

    def total(self, examples: int) -> int:
        """Return the total number of optimiser steps for a number of examples."""
        whole = self.epochs * self.epoch(examples)
        return min(whole, self.steps or whole)

    def epoch(self, examples: int) -> int:
        """Return the number of optimiser steps per epoch. An incomplete last batch is dropped, because it would have
        fewer negatives.
        """
        size = min(self.batch, examples)
        return max(1, examples // (size * self.accumulate))

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self)


def learning_rate(step: int, total: int, settings: TrainingSettings) -> float:
    """Return the learning rate at a step, counted from 0: linear warm-up, then cosine decay to zero.

    >>> s = TrainingSettings(lr=1.0, warmup=2)
    >>> [round(learning_rate(k, 4, s), 3) for k in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    import math

    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    share = (step - settings.warmup) / max(1, total - settings.warmup)
    return settings.lr * 0.5 * (1 + math.cos(math.pi * share))


#: nothing is trained; all weights; the text tower and its projection; low-rank adapters beside the attention weights
WAYS = ("frozen", "full", "text", "lora")
TARGETS = ("q_proj", "v_proj")


@dataclass(frozen=True)
class Tuning:
    """A tuning method and its LoRA parameters. The default rank is 2, as in the published LoRA results."""

    way: str = option("full", "What is trained.", choices=WAYS)
    rank: int = option(2, "Rank of the adapters.", minimum=1)
    alpha: int = 4
    targets: tuple[str, ...] = TARGETS

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self) if self.way == "lora" else {"way": self.way}


def prepare(student: Student, tuning: Tuning, seed: int = 0) -> int:
    """Freeze all weights except those to train, and add adapters if `tuning` asks for them. Return the number of
    trained weights.
    """
    if tuning.way == "lora":
        _add_adapters(student, tuning, seed)
    else:
        for name, weight in student.network.named_parameters():
            weight.requires_grad_(tuning.way == "full" or (tuning.way == "text" and student.is_text(name)))
    return sum(w.numel() for w in student.network.parameters() if w.requires_grad)


def _add_adapters(student: Student, tuning: Tuning, seed: int) -> None:
    import torch

    from creperie.training.adapters import add_adapters

    if student.kind == "towers":
        raise UsageError("joined towers cannot be tuned with LoRA", hint="use `tuning='full'`")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tuner = add_adapters(student.network.model, tuning.targets, tuning.rank, tuning.alpha)
    student.network.adapters = (tuner,)
