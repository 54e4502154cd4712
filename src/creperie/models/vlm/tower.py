"""A vision tower that has looked at an image need not look again when only the prompt is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: images that the tower looks at together
TOGETHER = 16
#: where the towers of the families are
PLACES = ("model.vision_tower", "model.vision_model", "model.visual", "vision_model")


def look(model: Any, pixels: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What the tower makes of each image, (1, patches, width) each; images of one shape in common batches."""
    import torch

    place = _place(model)
    assert place is not None, f"{type(model).__name__} has no vision tower at {PLACES}"
    tower = getattr(*place)
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
    """The model with these states in place of its tower's output, whatever pixels it is given."""
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    class Memory(torch.nn.Module):
        def forward(self, *pixels: Any, **settings: Any) -> Any:
            return BaseModelOutputWithPooling(last_hidden_state=states)

    with _instead(model, lambda _: Memory()):
        yield


@contextmanager
def looking_once(model: Any) -> Iterator[None]:
    """The model with a tower that looks when it is first shown something, and repeats that from then on: for one
    image that is asked about several times."""
    import torch

    class Once(torch.nn.Module):
        def __init__(self, tower: torch.nn.Module) -> None:
            super().__init__()
            self.tower = tower
            self.said: Any = None

        def forward(self, *pixels: Any, **settings: Any) -> Any:
            if self.said is None:
                self.said = self.tower(*pixels, **settings)
            # a copy: some models write into what their tower says
            return type(self.said)(**self.said) if isinstance(self.said, Mapping) else self.said

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("tower"), name)

    with _instead(model, Once):
        yield


@contextmanager
def _instead(model: Any, make: Callable[[Any], Any]) -> Iterator[None]:
    """The model with something made of its tower in the tower's place. A family that is not known looks again."""
    place = _place(model)
    if place is None:
        yield
        return
    tower = getattr(*place)
    setattr(*place, make(tower))
    try:
        yield
    finally:
        setattr(*place, tower)


def _place(model: Any) -> tuple[Any, str] | None:
    """The module that holds the tower, and the tower's name in it."""
    for place in PLACES:
        path, _, name = place.rpartition(".")
        holder = getattr(model, path, None) if path else model
        if hasattr(holder, name):
            return holder, name
    return None
