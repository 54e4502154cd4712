"""The processes that train together: one, or several that accelerate started, each with its device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from creperie.core import missing_extra
from creperie.training.settings import TrainingSettings

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Team:
    """One of the processes that train together. accelerate starts them, gives them their devices and averages their
    gradients; a step is done here directly, because wrappers slow a small model down."""

    accelerator: Any
    mixed: bool  #: bfloat16 where it is safe

    @property
    def device(self) -> torch.device:
        device: torch.device = self.accelerator.device
        return device

    @property
    def index(self) -> int:
        return int(self.accelerator.process_index)

    @property
    def count(self) -> int:
        return int(self.accelerator.num_processes)

    @property
    def leads(self) -> bool:
        """Is this the process that writes?"""
        return bool(self.accelerator.is_main_process)

    def wrap(self, network: torch.nn.Module) -> Any:
        """The network on the device, its gradients averaged over the processes."""
        if not any(weight.requires_grad for weight in network.parameters()):
            return network
        if self.count > 1:
            from creperie.training.gather import share_norms

            share_norms(network)
        return self.accelerator.prepare(network)

    def rough(self) -> AbstractContextManager[Any]:
        """The precision of a forward pass."""
        import torch

        return torch.autocast(self.device.type, dtype=torch.bfloat16) if self.mixed else nullcontext()

    def alone(self, network: Any) -> AbstractContextManager[Any]:
        """Gradients of a batch that is not the last of a step: nothing is averaged yet."""
        return self.accelerator.no_sync(network) if self.count > 1 else nullcontext()

    def first(self, act: Callable[[bool], T]) -> T:
        """The result of a function that the leading process calls before the others; it is told whether it leads."""
        found = act(True) if self.leads else None
        self.wait()
        return act(False) if found is None else found

    def wait(self) -> None:
        """Until all processes are here."""
        if self.count > 1:
            self.accelerator.wait_for_everyone()


def open_team(device: str, settings: TrainingSettings) -> Team:
    """accelerate's, fresh: it keeps its settings between trainings of one process otherwise."""
    try:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState, GradientState, PartialState
    except ModuleNotFoundError as e:
        raise missing_extra(e.name or "accelerate", "train") from e
    from creperie.models import find_place

    place = find_place(device)
    if not PartialState._shared_state or PartialState().num_processes == 1:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
    return Team(Accelerator(cpu=place.device == "cpu"), settings.precision == "bfloat16")
