"""Reuse the output of a vision tower, so that each image is processed only once and not again for every prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: images per batch of the tower
TOGETHER = 16
#: the attribute paths of the vision towers, over all families
PLACES = ("model.vision_tower", "model.vision_model", "model.visual", "vision_model")


def look(model: Any, pixels: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the vision tower's output (1, patches, width) for each image. Images of the same shape are processed in
    batches.
    """
    import torch

    place = _tower_location(model)
    assert place is not None, f"{type(model).__name__} has no vision tower at {PLACES}"
    tower = getattr(*place)
    states_of: list[torch.Tensor] = [torch.empty(0)] * len(pixels)
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, value in enumerate(pixels):
        alike.setdefault(tuple(value.shape), []).append(i)
    for group in alike.values():
        for at in range(0, len(group), TOGETHER):
            part = group[at : at + TOGETHER]
            states = tower(pixel_values=torch.cat([pixels[i] for i in part])).last_hidden_state
            for i, own in zip(part, states.split(1), strict=True):
                states_of[i] = own
    return states_of


@contextmanager
def having_seen(model: Any, states: torch.Tensor) -> Iterator[None]:
    """During the block, let the model's vision tower return `states`, whatever pixels it is given."""
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    class Memory(torch.nn.Module):
        def forward(self, *pixels: Any, **settings: Any) -> Any:
            return BaseModelOutputWithPooling(last_hidden_state=states)

    place = _tower_location(model)
    assert place is not None
    tower = getattr(*place)
    setattr(*place, Memory())
    try:
        yield
    finally:
        setattr(*place, tower)


@contextmanager
def looking_once(model: Any, images: Sequence[int]) -> Iterator[None]:
    """During the block, run the vision tower once for each distinct image of a batch.

    `images` is the image number of each row; all rows must have the same shape. If no tower is found in the model,
    every row is processed as usual.
    """
    place, rows = _tower_location(model), len(images)
    first = sorted(set(images))
    if place is None or len(first) == rows:
        yield
        return
    again = [first.index(image) for image in images]
    hooks = [
        getattr(*place).register_forward_pre_hook(
            lambda _, given, settings: (
                _selected(given, rows, [images.index(i) for i in first]),
                _selected(settings, rows, [images.index(i) for i in first]),
            ),
            with_kwargs=True,
        ),
        getattr(*place).register_forward_hook(lambda _, given, output: _selected(output, len(first), again)),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _selected(value: Any, rows: int, chosen: Sequence[int]) -> Any:
    """Return the rows `chosen` of a batch's tensor, or of every tensor in a nested structure. The batch has `rows`
    rows. If a tensor has k times as many entries, k successive entries belong to each row.
    """
    import torch

    if isinstance(value, torch.Tensor) and value.ndim and len(value) % rows == 0:
        return value.unflatten(0, (rows, -1))[list(chosen)].flatten(0, 1)
    if isinstance(value, Mapping):
        return type(value)(**{name: _selected(part, rows, chosen) for name, part in value.items()})
    if isinstance(value, (tuple, list)):
        return type(value)(_selected(part, rows, chosen) for part in value)
    return value


def _tower_location(model: Any) -> tuple[Any, str] | None:
    """Return the module that contains the vision tower, and the tower's attribute name. Return None if there is no
    tower.
    """
    for place in PLACES:
        path, _, name = place.rpartition(".")
        holder = getattr(model, path, None) if path else model
        if hasattr(holder, name):
            return holder, name
    return None
