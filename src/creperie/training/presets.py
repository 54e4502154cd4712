"""How large a study of the built-in world is: by name, or with some numbers changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from creperie.core import UsageError, unknown
from creperie.training.architecture import SmallConfig
from creperie.training.settings import TrainingSettings


@dataclass(frozen=True)
class TrainingPreset:
    """How large a study is: the model, the base training, the continuations, the exam."""

    model: SmallConfig
    base: TrainingSettings
    arm: TrainingSettings
    pairs: int  #: examples of the base training
    scenes: int  #: examples of the continuations
    items: int  #: of every kind in the exam
    name: str = "own"
    certified: bool = False  #: train the base with the clean kinds' certified foils as well
    scratch: bool = False  #: arms begin with fresh weights and take the base's settings


def _settings(steps: int, batch: int, lr: float, warmup: int) -> TrainingSettings:
    return TrainingSettings(
        objective="clip", epochs=10_000, steps=steps, batch=batch, lr=lr, warmup=warmup, save_every=10_000, keep=1
    )


PRESETS: dict[str, TrainingPreset] = {
    "small": TrainingPreset(
        SmallConfig(channels=(32, 64, 128)),
        base=_settings(450, 64, 2e-3, 50),
        arm=_settings(60, 64, 1e-3, 10),
        pairs=12_000,
        scenes=3840,
        items=300,
        name="small",
    ),
    "large": TrainingPreset(
        SmallConfig(channels=(128, 256), vision_layers=4, text_width=256, text_layers=4, heads=8, joint=256),
        base=replace(_settings(2000, 512, 1e-3, 200), precision="bfloat16", clip_norm=1.0),
        arm=replace(_settings(150, 512, 2e-4, 15), precision="bfloat16", clip_norm=1.0),
        pairs=32 * 4096,
        scenes=16_384,
        items=400,
        name="large",
    ),
    "demo": TrainingPreset(
        SmallConfig(channels=(32, 64, 96), text_width=96, joint=96),
        base=_settings(120, 64, 2e-3, 20),
        arm=_settings(30, 64, 1e-3, 5),
        pairs=4000,
        scenes=1920,
        items=80,
        name="demo",
    ),
    "scratch": TrainingPreset(
        SmallConfig(channels=(32, 64, 96), residual=True, vision_layers=0, text_width=96, joint=96),
        base=_settings(120, 64, 2e-3, 20),
        arm=_settings(120, 64, 2e-3, 20),
        pairs=64,
        scenes=4000,
        items=80,
        name="scratch",
        scratch=True,
    ),
    "tiny": TrainingPreset(
        SmallConfig(channels=(16, 16, 32), text_width=32, joint=32, heads=2),
        base=_settings(4, 16, 1e-3, 1),
        arm=_settings(2, 16, 5e-4, 1),
        pairs=64,
        scenes=64,
        items=4,
        name="tiny",
    ),
}


def find_preset(name: str) -> TrainingPreset:
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


def changed_preset(
    preset: TrainingPreset,
    steps: int | None = None,
    arm_steps: int | None = None,
    pairs: int | None = None,
    items: int | None = None,
) -> TrainingPreset:
    """A preset with other numbers; its name says which. A warm-up that would not end is shortened to a tenth.

    >>> short = changed_preset(PRESETS["small"], steps=100, items=50)
    >>> short.name, short.base.steps, short.base.warmup, short.items
    ('small, steps 100, items 50', 100, 10, 50)
    """
    wanted = {"steps": steps, "arm steps": arm_steps, "pairs": pairs, "items": items}
    given = {what: n for what, n in wanted.items() if n is not None}
    for what, n in given.items():
        if n < 2:
            raise UsageError(f"{what} must be at least 2, not {n}")
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
