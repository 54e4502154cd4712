"""How to train, and what of a model: nothing, all of it, the text tower, or low-rank adapters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from creperie.core import UsageError, unknown
from creperie.training.student import Student

OBJECTIVES = {
    "clip": "pictures and captions find each other",
    "negclip": "the same, with foils as further captions",
    "triple": "(P1, P2, N): both positives before the foil, and near each other",
}
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainingSettings:
    """The defaults are those published with NegCLIP and SugarCrepe. `steps`, where set, ends a training earlier."""

    objective: str = "negclip"
    epochs: int = 30
    steps: int | None = None
    batch: int = 256
    lr: float = 1e-4
    weight_decay: float = 0.1
    warmup: int = 1000
    betas: tuple[float, float] = (0.9, 0.98)
    clip_norm: float = 0.0  #: gradients are cut at this norm; 0: not
    pull: float = 0.0  #: weight of the paraphrase pull, added to any objective
    seed: int = 0
    accumulate: int = 1  #: batches per optimiser step; contrasts stay within a batch
    precision: str = "float32"
    recompute: bool = False  #: gradient checkpointing: less memory, more time
    save_every: int = 0  #: steps between checkpoints; 0: once per epoch
    keep: int = 2  #: checkpoints that stay
    check_every: int = 0  #: steps between looks at held-out data; 0: once per epoch
    patience: int = 0  #: looks without a better loss before training stops; 0: never

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        for name in ("epochs", "steps", "batch", "accumulate", "keep"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"`{name}=` must be at least 1, not {value}")
        if self.batch < 2:
            raise UsageError("a batch of one has nothing to contrast", hint="use a batch of at least 2")
        for name in ("lr",):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("warmup", "weight_decay", "pull", "save_every", "check_every", "patience", "clip_norm", "seed"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be below 0")

    def total(self, examples: int) -> int:
        """The total number of steps for this number of examples."""
        whole = self.epochs * self.epoch(examples)
        return whole if self.steps is None else min(whole, self.steps)

    def epoch(self, examples: int) -> int:
        """Steps per epoch; a last batch that is not full is left out, because it has fewer contrasts."""
        size = min(self.batch, examples)
        return max(1, examples // (size * self.accumulate))

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self) | {"betas": list(self.betas)}


def learning_rate(step: int, total: int, settings: TrainingSettings) -> float:
    """Linear warm-up, then a half cosine down to nothing; `step` counts from 0.

    >>> s = TrainingSettings(lr=1.0, warmup=2)
    >>> [round(learning_rate(k, 4, s), 3) for k in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    import math

    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    share = (step - settings.warmup) / max(1, total - settings.warmup)
    return settings.lr * 0.5 * (1 + math.cos(math.pi * share))


WAYS = {
    "frozen": "nothing is trained: the model as it is",
    "full": "all weights",
    "text": "the text tower and its projection",
    "lora": "low-rank adapters beside the attention weights",
}
TARGETS = ("q_proj", "v_proj")


@dataclass(frozen=True)
class Tuning:
    """A way of tuning. Rank 2 is that of the published LoRA results."""

    way: str = "full"
    rank: int = 2
    alpha: int = 4
    targets: tuple[str, ...] = TARGETS

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise unknown("way of tuning", self.way, WAYS)
        if self.rank < 1:
            raise UsageError(f"`rank={self.rank}` is out of range", hint="use at least 1")

    @property
    def document(self) -> dict[str, Any]:
        return asdict(self) | {"targets": list(self.targets)} if self.way == "lora" else {"way": self.way}


def prepare(student: Student, tuning: Tuning, seed: int = 0) -> int:
    """Freeze what is not trained, add adapters where asked for; the number of trained weights."""
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
        raise UsageError("joined towers take no adapters", hint="tune them in full")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not add_adapters(student.network.model, tuning.targets, tuning.rank, tuning.alpha):
            raise UsageError(f"no layer is called {' or '.join(tuning.targets)}", hint="name other targets")
