"""What of a model is trained: nothing, all of it, the text tower, or low-rank adapters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from creperie.core import UsageError, unknown
from creperie.training.student import Student

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
            raise UsageError(f"a rank of {self.rank}", hint="use at least 1")

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
