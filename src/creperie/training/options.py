"""The options of `creperie train`, in a module that does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from creperie.core import option
from creperie.models import DeviceOptions
from creperie.training.settings import TARGETS, WAYS

TOWERS = ("image", "text")
HEADS = ("linear", "mlp", "residual")  #: one linear map, one hidden layer, or both, added


@dataclass(frozen=True)
class TrainOptions(DeviceOptions):
    """Options of training: the foils to train with, and the part of the model to train."""

    negatives: tuple[str, ...] = option(
        ("own",), "Foils: own (the items' false captions), makers, benchmarks, or none; comma-separated."
    )
    refined: bool = option(False, "Refine the foils against plausibility and grammar; train with those that remain.")
    tuning: str = option("full", "What to train; text: the text tower alone.", choices=WAYS)
    rank: int = option(2, "Rank of the LoRA adapters.", minimum=1)
    targets: tuple[str, ...] = option(TARGETS, "Layers to adapt with LoRA, comma-separated.")
    truncate: bool = option(False, "Truncate captions that exceed the context.")
    force: bool = option(False, "Start over in a folder that contains a training run.")


@dataclass(frozen=True)
class TowerOptions:
    """Options that name two pretrained towers to join, instead of a model to train."""

    image_tower: str = option("", "Join two towers: a vision model (hf:).", metavar="URI")
    text_tower: str = option("", "Join two towers: a sentence encoder (st: or hf:).", metavar="URI")
    head: str = option("residual", "What joins the towers.", choices=HEADS)
    train_towers: tuple[str, ...] = option((), "Towers whose own weights are trained, comma-separated.", choices=TOWERS)


@dataclass(frozen=True)
class TuneOptions(DeviceOptions):
    """Options of a comparison of tuning methods: the methods, and the fraction of each subset to train on."""

    ways: tuple[str, ...] = option(("frozen", "full", "lora"), "Ways of tuning, comma-separated.", choices=WAYS)
    share: float = option(0.4, "Share of each subset to train on.")
    train_on: tuple[str, ...] = option((), "Train on these subsets only; the others show forgetting.", metavar="NAMES")
    rank: int = option(2, "Rank of the LoRA adapters.", minimum=1)
    pairs: int = option(500, "Held-out pairs for measuring recall.", minimum=1)
    lora_rate: float = option(10.0, "LoRA's learning rate as a multiple of --lr: adapters begin at zero.")


@dataclass(frozen=True)
class StudyOptions(DeviceOptions):
    """Options of a study of hard negatives, on the built-in world or on the user's data."""

    preset: str = option("small", "World: small (minutes on two cores), demo, large (a GPU).")
    seeds: int = option(2, "Number of seeds.", minimum=1)
    arms: tuple[str, ...] = option(
        ("none", "replace", "swap", "negate", "all", "refined"), "Arms, comma-separated; every: all nine."
    )
    steps: int | None = option(None, "World: steps of the base training, instead of the preset's.")
    arm_steps: int | None = option(None, "World: steps of every arm, instead of the preset's.")
    pairs: int | None = option(None, "World: images for the base training, instead of the preset's.")
    items: int | None = option(None, "World: test items per kind, instead of the preset's.")
    epochs: int = option(5, "Own data: epochs of every arm.", minimum=1)
    batch: int = option(256, "Own data: images per batch.", minimum=2)
    lr: float = option(1e-5, "Own data: learning rate.")
    warmup: int = option(50, "Own data: steps of warm-up.", minimum=0)
