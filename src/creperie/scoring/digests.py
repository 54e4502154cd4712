"""Content keys of images: SHA-256 of the encoded bytes and the crop box, cached per file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from creperie.bench import Box, ImageError, ImageStore, split_reference
from creperie.core import Progress, file_state, silent
from creperie.scoring.segments import KEY, SegmentFolder
from creperie.scoring.sheet import Fault
from creperie.scoring.store import text_keys

#: part of every image's key: increase it when decoding gives different pixels than before
DECODING = "1"
PREFIX = f"{DECODING}|".encode()
#: images that a thread reads per task
READ = 16


@dataclass(frozen=True)
class Digests:
    """The content keys of image references, one key per reference. If an image cannot be read, its key is all zeros,
    and `faults` contains the reason.
    """

    keys: np.ndarray
    faults: list[Fault]


def digest_images(
    store: ImageStore, references: Sequence[str], memo: SegmentFolder, progress: Progress = silent
) -> Digests:
    """Return the content keys of image references; `memo` caches them, so that a file is read again only after a
    change.
    """
    split = [split_reference(r) for r in references]
    files = list(dict.fromkeys(key for key, _ in split))
    digests, faults = _digest_files(store, files, memo, progress)
    number = {key: i for i, key in enumerate(files)}
    keys = np.zeros((len(references), KEY), np.uint8)
    broken = []
    for row, (key, box) in enumerate(split):
        file = number[key]
        if file in faults:
            broken.append(replace(faults[file], row=row))
        else:
            keys[row] = np.frombuffer(_cropped(digests[file].tobytes(), box), np.uint8)
    return Digests(keys, broken)


def content_key(data: bytes, box: Box | None = None) -> bytes:
    """Return the key of an image from its encoded bytes and its crop box."""
    return _cropped(hashlib.sha256(PREFIX + data).digest(), box)


def _cropped(digest: bytes, box: Box | None) -> bytes:
    if box is None:
        return digest
    return hashlib.sha256(digest + f"{DECODING}#xywh={','.join(map(repr, box))}".encode()).digest()


def _digest_files(
    store: ImageStore, files: Sequence[str], memo: SegmentFolder, progress: Progress
) -> tuple[np.ndarray, dict[int, Fault]]:
    """Return the digests of whole image files, in the order of `files`, and the faults of unreadable files, by their
    index in `files`.
    """
    digests = np.zeros((len(files), KEY), np.uint8)
    faults: dict[int, Fault] = {}
    folders: dict[Path, Path] = {}
    states = [_state(store, key, folders) for key in files]
    named = [i for i, state in enumerate(states) if state]
    state_keys = text_keys([states[i] for i in named])
    known = memo.find(state_keys)
    remembered = [named[row] for row in known.rows]
    if remembered:
        digests[remembered] = known.values
    missing = np.setdiff1d(np.arange(len(files)), remembered)

    def work(part: np.ndarray) -> None:
        for i in part:
            try:
                data = store.read(files[i])
            except ImageError as e:
                faults[int(i)] = Fault(int(i), e.code, str(e))
                continue
            digests[i] = np.frombuffer(content_key(data), np.uint8)

    workers = max(2, min(16, os.cpu_count() or 1))
    with progress("read images", len(missing), "images") as advance, ThreadPoolExecutor(workers) as pool:
        parts = np.split(missing, range(READ, len(missing), READ))
        for part, _ in zip(parts, pool.map(work, parts), strict=True):
            advance(len(part))
    others = np.setdiff1d(np.arange(len(named)), known.rows).tolist()
    fresh = [n for n in others if named[n] not in faults]
    if fresh:
        with memo.writer() as writer:
            writer.append(state_keys[fresh], digests[[named[n] for n in fresh]])
    return digests, faults


def _state(store: ImageStore, key: str, folders: dict[Path, Path]) -> str:
    """Return a string that changes whenever an image file does. It is empty if changes cannot be detected reliably, for
    example because the file was changed a moment ago.

    `key` names the image in the store. `folders` caches the real paths of folders; this function adds to it.
    """
    resolve = getattr(store, "resolve", None)
    try:
        name = resolve(key) if resolve else key
        place = Path(store.location)
        file = place / name
        inside = ""
        if not file.is_file():  # an archive: use its own state and the name inside it
            file, inside = place, name
        if not store.location or not file.is_file():
            return ""
        stat, folder = file.stat(), file.parent
        if folder not in folders:
            folders[folder] = folder.resolve()
        real = file.resolve() if file.is_symlink() else folders[folder] / file.name
    except (ImageError, OSError, ValueError):
        return ""
    state = file_state(real, stat)
    return f"{DECODING}|{inside}|{state}" if state else ""
