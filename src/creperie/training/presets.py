"""Named presets for the size of studies on the built-in world. Their numbers can be changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from creperie.core import Json, UsageError, check_name, packaged_toml
from creperie.training.architecture import SmallConfig
from creperie.training.settings import TrainingSettings


@dataclass(frozen=True)
class TrainingPreset:
    """The size of a study: the model, the settings for training base models and for further training with foils, and
    the number of test items.
    """

    model: SmallConfig
    base: TrainingSettings
    arm: TrainingSettings
    pairs: int  #: number of examples for the base
    scenes: int  #: number of examples for the arms
    items: int  #: test items of each kind
    name: str = "own"
    certified: bool = False  #: train the base with the certified foils of the clean kinds as well
    scratch: bool = False  #: arms start from fresh weights and use the settings of the base


def _preset(name: str, model: Json, base: Json, arm: Json, **more: Any) -> TrainingPreset:
    shape = SmallConfig(**model | {"channels": tuple(model["channels"])})
    common = TrainingSettings(objective="clip", epochs=10_000, save_every=10_000, keep=1)
    return TrainingPreset(shape, replace(common, **base), replace(common, **arm), name=name, **more)


PRESETS = {name: _preset(name, **sizes) for name, sizes in packaged_toml("creperie.training", "presets.toml").items()}


def find_preset(name: str) -> TrainingPreset:
    check_name("preset", name, PRESETS)
    return PRESETS[name]


def changed_preset(
    preset: TrainingPreset,
    steps: int | None = None,
    arm_steps: int | None = None,
    pairs: int | None = None,
    items: int | None = None,
) -> TrainingPreset:
    """Return a preset with the given numbers replaced, and these numbers appended to its name.

    If the warm-up is too long for the new number of steps, it is shortened to a tenth of them.

    >>> short = changed_preset(PRESETS["small"], steps=100, items=50)
    >>> short.name, short.base.steps, short.base.warmup, short.items
    ('small, steps 100, items 50', 100, 10, 50)
    """
    changes = {"steps": steps, "arm steps": arm_steps, "pairs": pairs, "items": items}
    given = {what: n for what, n in changes.items() if n is not None}
    for what, n in given.items():
        if n < 2:
            raise UsageError(f"{what} must be at least 2, not {n}", hint="give a larger number")
    name = ", ".join([preset.name, *[f"{what} {n}" for what, n in given.items()]])
    return replace(
        preset,
        base=_shortened(preset.base, steps),
        arm=_shortened(preset.arm, arm_steps),
        pairs=pairs or preset.pairs,
        items=items or preset.items,
        name=name,
    )


def _shortened(settings: TrainingSettings, steps: int | None) -> TrainingSettings:
    if steps is None:
        return settings
    return replace(settings, steps=steps, warmup=min(settings.warmup, steps // 10))
