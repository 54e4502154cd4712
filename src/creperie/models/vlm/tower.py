"""A vision tower that has looked at an image need not look again when only the prompt is another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: images that the tower looks at together
TOGETHER = 16
#: where the towers of the families are that read an image with several prompts
PLACES = ("model.vision_tower", "vision_model")


def look(model: Any, pixels: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What the tower makes of each image, (1, patches, width) each; images of one shape in common batches."""
    import torch

    holder, name = _place(model)
    tower = getattr(holder, name)
    found: list[torch.Tensor] = [torch.empty(0)] * len(pixels)
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, value in enumerate(pixels):
        alike.setdefault(tuple(value.shape), []).append(i)
    for group in alike.values():
        for at in range(0, len(group), TOGETHER):
            part = group[at : at + TOGETHER]
            states = tower(pixel_values=torch.cat([pixels[i] for i in part])).last_hidden_state
            for i, own in zip(part, states.split(1), strict=True):
                found[i] = own
    return found


@contextmanager
def having_seen(model: Any, states: torch.Tensor) -> Iterator[None]:
    """The model with these states in its tower's stead, whatever pixels it is given."""
    holder, name = _place(model)
    tower = getattr(holder, name)
    setattr(holder, name, _memory(states))
    try:
        yield
    finally:
        setattr(holder, name, tower)


def _memory(states: torch.Tensor) -> Any:
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    class Memory(torch.nn.Module):
        def forward(self, *pixels: Any, **settings: Any) -> Any:
            return BaseModelOutputWithPooling(last_hidden_state=states)

    return Memory()


def _place(model: Any) -> tuple[Any, str]:
    for place in PLACES:
        *path, name = place.split(".")
        holder = model
        for step in path:
            holder = getattr(holder, step, None)
        if hasattr(holder, name):
            return holder, name
    raise AttributeError(f"{type(model).__name__} has no vision tower at {' or '.join(PLACES)}")
