"""Which files hold a model's weights, and their hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.errors import ModelError

if TYPE_CHECKING:
    import torch

#: in order of preference: the first suffix that is there wins, as in the libraries that load the folder
SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
#: other people's formats beside the weights, and training leftovers
OTHER = re.compile(r"(^|/)(onnx|openvino|coreml|checkpoint-\d+)/|optimizer|scheduler|training_args|rng_state")
_BLOB = re.compile(r"[0-9a-f]{64}")


def weight_files(folder: Path) -> list[Path]:
    """The files in a model's folder (and its modules' folders) that hold its weights."""
    found: list[Path] = []
    for place in [folder, *sorted(p for p in folder.rglob("*") if p.is_dir())]:
        for suffix in SUFFIXES:
            here = [p for p in sorted(place.glob(f"*{suffix}")) if not OTHER.search(p.relative_to(folder).as_posix())]
            if here:
                found += here
                break
    if not found:
        raise ModelError("the folder holds no weights", where=str(folder), mend="it needs a *.safetensors file")
    return found


def hash_files(paths: Iterable[Path]) -> str:
    """One sha256 over the contents of files, whatever they are called."""
    total = hashlib.sha256()
    for path in paths:
        total.update(_hash_file(path).encode())
    return total.hexdigest()


def _hash_file(path: Path) -> str:
    blob = path.resolve()
    if path.is_symlink() and blob.parent.name == "blobs" and _BLOB.fullmatch(blob.name):
        return blob.name  # the hub's cache names large files by their sha256
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_state(state: Mapping[str, torch.Tensor]) -> str:
    """One sha256 over named tensors, for models that are not a folder of files."""
    import torch

    total = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
