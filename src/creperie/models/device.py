"""The device and the precision that a model runs in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from creperie.core import UsageError, option, unknown

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "bfloat16", "float16")
SHORT = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "half": "float16"}
DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class DeviceOptions:
    """The device that a model runs on."""

    device: str = option("auto", "auto, cpu, cuda, cuda:N or mps.", metavar="DEVICE")


@dataclass(frozen=True)
class PrecisionOptions(DeviceOptions):
    """The device and the precision that a model runs in."""

    dtype: str = option("float32", "The precision of its weights: float32, bfloat16 or float16.")


@dataclass(frozen=True)
class Place:
    """A device and a precision for a model. Scores are float32, whatever the precision."""

    wanted: str = "cpu"
    dtype: str = "float32"

    @cached_property
    def device(self) -> str:
        """The device. `auto` is resolved on first use."""
        # Models without torch therefore never look for a device.
        if self.wanted != "auto":
            return self.wanted
        try:
            import torch
        except ImportError:  # models without torch (word counts, remote servers) need no device
            return "cpu"
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    @property
    def torch_device(self) -> torch.device:
        import torch

        return torch.device(self.device)

    @property
    def torch_dtype(self) -> torch.dtype:
        import torch

        dtype = getattr(torch, self.dtype)
        assert isinstance(dtype, torch.dtype)
        return dtype


def find_place(device: str = "auto", dtype: str = "float32") -> Place:
    """Return the place with this device and precision. Raise an error for unknown names and missing devices.

    >>> find_place("cpu", "bf16")
    Place(wanted='cpu', dtype='bfloat16')
    """
    dtype = "float32" if dtype == "auto" else SHORT.get(dtype, dtype)
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, [*DTYPES, *SHORT])
    if device.split(":")[0] not in DEVICES:
        raise unknown("device", device, DEVICES)
    if device not in ("auto", "cpu"):
        import torch

        there = torch.backends.mps.is_available()
        if device.startswith("cuda"):
            there = torch.cuda.is_available() and int(device.partition(":")[2] or 0) < torch.cuda.device_count()
        if not there:
            hint = "use `device='auto'` or `device='cpu'`"
            raise UsageError(f"there is no device {device!r} on this machine", hint=hint)
    return Place(device, dtype)


@contextmanager
def exact_float32() -> Iterator[None]:
    """Run inference in full float32 precision, without gradients, during the block."""
    # By default, CUDA's convolutions round their inputs to 19 bits, which changes a vector by about 1e-5 and makes it
    # depend on its batch. Since `no_grad` is used and not inference mode, training can use the tensors afterwards.
    import torch

    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
