"""Find the files with a model's weights and hash them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.core import ModelError, remembered_sha256

if TYPE_CHECKING:
    import torch

#: in order of preference: the first suffix found is used, as in the libraries that load the folder
SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
#: other formats of the same weights, and training leftovers
OTHER = re.compile(r"(^|/)(onnx|openvino|coreml|checkpoint-\d+)/|optimizer|scheduler|training_args|rng_state")


def weight_files(folder: Path) -> list[Path]:
    """Return the files that contain a model's weights, in its folder and in the folders of its modules."""
    files: list[Path] = []
    for place in [folder, *sorted(p for p in folder.rglob("*") if p.is_dir())]:
        for suffix in SUFFIXES:
            here = [p for p in sorted(place.glob(f"*{suffix}")) if not OTHER.search(p.relative_to(folder).as_posix())]
            if here:
                files += here
                break
    if not files:
        raise ModelError("the folder contains no weights", where=folder, hint="name one with a *.safetensors file")
    return files


def hash_files(paths: Iterable[Path]) -> str:
    """Return one SHA-256 over the contents of files. Their names do not affect it."""
    total = hashlib.sha256()
    for path in paths:
        total.update(remembered_sha256(path).encode())
    return total.hexdigest()


def hash_state(state: Mapping[str, torch.Tensor]) -> str:
    """Return one SHA-256 over named tensors. It is for models that are not a folder of files."""
    import torch

    total = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
