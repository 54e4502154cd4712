"""The class `Finding`, and checks that each image is present, can be decoded, and contains its crop box."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from creperie.bench.benchmark import Benchmark
from creperie.bench.images import NO_IMAGES, ImageError, ImageStore, crop, decode_image, split_reference
from creperie.bench.rows import owners
from creperie.core import Progress, sha256_of_text, silent

ERROR = "error"
INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a check has found. `subset` and `item` are empty if it concerns more than one item."""

    code: str
    severity: str
    subset: str
    item: str
    message: str


def check_images(bench: Benchmark, *, look: bool = True, progress: Progress = silent) -> Iterator[Finding]:
    """Yield findings about images. Every image is read and decoded once, in several threads.

    If `look` is False, no image is read, and the only finding is that images were not checked.
    """
    offsets, references = bench.ragged("images")
    if not len(references):
        return
    coded = references.dictionary_encode()
    uses: dict[str, list[str]] = {}
    for reference in coded.dictionary.to_pylist():
        uses.setdefault(split_reference(reference)[0], []).append(reference)
    if not look or bench.images is NO_IMAGES:
        why = "no images were given" if look else "not requested"
        yield Finding("images-not-checked", INFO, "", "", f"{len(uses):,} images were not checked: {why}")
        return
    bad, digests = _look(bench.images, uses, progress)
    yield from _bad_references(bench, offsets, coded, bad)
    first: dict[str, str] = {}
    for key, digest in digests.items():
        if first.setdefault(digest, key) != key:
            yield Finding("image-under-two-keys", INFO, "", "", f"{key} and {first[digest]} are the same picture")
    repeated = getattr(bench.images, "repeated", list)
    for name in (name for name in repeated() if name in uses):
        yield Finding("image-key-twice", ERROR, "", "", f"{bench.images.location} holds several images named {name}")


def _look(
    store: ImageStore, uses: dict[str, list[str]], progress: Progress
) -> tuple[dict[str, ImageError], dict[str, str]]:
    """Open every image. Return two dictionaries: the error of each reference that cannot be opened, and the digest of
    each readable image. `uses` maps the key of an image to the references to it.
    """
    bad: dict[str, ImageError] = {}
    digests: dict[str, str] = {}

    def look(key: str) -> tuple[str, str, dict[str, ImageError]]:
        references = uses[key]
        try:
            data = store.read(key)
        except ImageError as e:
            return key, "", dict.fromkeys(references, e)
        return key, sha256_of_text(data), _open_all(data, references)

    workers = min(8, (os.cpu_count() or 1) + 1)
    from concurrent.futures import ThreadPoolExecutor

    with progress("check images", len(uses), "images") as advance, ThreadPoolExecutor(workers) as pool:
        for key, digest, errors in pool.map(look, uses):
            bad.update(errors)
            if digest:
                digests[key] = digest
            advance(1)
    return bad, digests


def _open_all(data: bytes, references: list[str]) -> dict[str, ImageError]:
    try:
        picture = decode_image(data)
    except ImageError as e:
        return dict.fromkeys(references, e)
    errors = {}
    for reference in references:
        try:
            if (box := split_reference(reference)[1]) is not None:
                crop(picture, box)
        except ImageError as e:
            errors[reference] = e
    return errors


def _bad_references(
    bench: Benchmark, offsets: np.ndarray, coded: pa.DictionaryArray, bad: dict[str, ImageError]
) -> Iterator[Finding]:
    """Yield a finding for each use of an image that cannot be opened. `bad` maps the references to such images to their
    errors.
    """
    names = coded.dictionary.to_pylist()
    broken = np.array([name in bad for name in names], bool)
    codes = coded.indices.to_numpy(zero_copy_only=False)
    rows, keys = owners(offsets), bench.item_keys if bad else []
    for place in np.flatnonzero(broken[codes]):
        name = names[codes[place]]
        yield Finding(bad[name].code, ERROR, *keys[int(rows[place])], f"{name}: {bad[name].what}")
