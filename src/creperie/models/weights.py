"""Find the files with a model's weights and hash them."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from creperie.core import ModelError, cache_home, sha256_of, write_text

if TYPE_CHECKING:
    import torch

#: in order of preference: the first suffix found is used, as in the libraries that load the folder
SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
#: other formats of the same weights, and training leftovers
OTHER = re.compile(r"(^|/)(onnx|openvino|coreml|checkpoint-\d+)/|optimizer|scheduler|training_args|rng_state")
LARGE = 2**24  #: files of at least this many bytes have their hash cached
RACY_SECONDS = 2.0  #: a file changed more recently than this could change again with the same timestamp
_BLOB = re.compile(r"[0-9a-f]{64}")


def weight_files(folder: Path) -> list[Path]:
    """Return the files in a model's folder (and its modules' folders) that hold its weights."""
    files: list[Path] = []
    for place in [folder, *sorted(p for p in folder.rglob("*") if p.is_dir())]:
        for suffix in SUFFIXES:
            here = [p for p in sorted(place.glob(f"*{suffix}")) if not OTHER.search(p.relative_to(folder).as_posix())]
            if here:
                files += here
                break
    if not files:
        raise ModelError("the folder holds no weights", where=folder, hint="it needs a *.safetensors file")
    return files


def hash_files(paths: Iterable[Path]) -> str:
    """Return one SHA-256 over the contents of files; their names do not count."""
    total = hashlib.sha256()
    for path in paths:
        total.update(_hash_file(path).encode())
    return total.hexdigest()


def _hash_file(path: Path) -> str:
    blob = path.resolve()
    if path.is_symlink() and blob.parent.name == "blobs" and _BLOB.fullmatch(blob.name):
        return blob.name  # the hub's cache names large files by their SHA-256
    return remembered_sha256(path)


def remembered_sha256(file: Path) -> str:
    """Return the SHA-256 of a file's content. For large files it is cached by path, inode, size and modification time,
    since hashing gigabytes takes longer than mapping them.
    """
    state = file.stat()
    if state.st_size < LARGE or time.time() - state.st_mtime < RACY_SECONDS:
        return sha256_of(file)
    name = f"{file.resolve()}|{state.st_ino}|{state.st_size}|{state.st_mtime_ns}"
    memo = cache_home() / "digests" / hashlib.sha256(name.encode()).hexdigest()
    if not memo.is_file():
        write_text(memo, sha256_of(file))
    return memo.read_text()


def hash_state(state: Mapping[str, torch.Tensor]) -> str:
    """Return one SHA-256 over named tensors, for models that are not a folder of files."""
    import torch

    total = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()
