"""Blind twins: copies of a benchmark in which every image is replaced. The replacement has no content or belongs to
another item.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from PIL import Image

from creperie.bench import Benchmark, ImageStore, ProvenanceStep, decode_image, image_keys, split_reference
from creperie.core import DataError, UsageError, unknown
from creperie.models import blind_image, mean_image
from creperie.scoring.plan import brings_images
from creperie.scoring.run import KINDS

#: how many images the mean image is computed from
SAMPLE = 256


@dataclass(frozen=True, eq=False)
class BlindImages:
    """An image store that replaces every image: by noise, by the mean image, or by the image of another item. The
    replacement depends only on the original image and the seed.

    A replacement has the size of the original, so that crop boxes still fit. If no image is cropped (`boxes` is False),
    the images of other items keep their own size.
    """

    store: ImageStore
    kind: str
    seed: int
    used: list[str]  #: the keys of the images that the benchmark refers to
    boxes: bool

    @cached_property
    def _others(self) -> Mapping[str, str]:
        """A different key for every key: a random cycle through all of them."""
        order = [self.used[int(i)] for i in np.random.default_rng(self.seed).permutation(len(self.used))]
        return dict(zip(order, [*order[1:], *order[:1]], strict=True))

    @property
    def location(self) -> str:
        return f"{self.kind} images (seed {self.seed}) in place of {self.store.location}"

    def read(self, key: str) -> bytes:
        if self.kind == "shuffled":
            other = self.store.read(self._others.get(key, key))
            return _png(decode_image(other).resize(self._size(key), Image.Resampling.BICUBIC)) if self.boxes else other
        size = self._size(key)
        if self.kind == "mean":
            return _png(self._mean.resize(size, Image.Resampling.BICUBIC))
        return _png(blind_image(self.kind, size, self.seed, key))

    def __contains__(self, key: str) -> bool:
        return key in self.store

    def keys(self) -> Iterator[str]:
        return self.store.keys()

    def _size(self, key: str) -> tuple[int, int]:
        return decode_image(self.store.read(key)).size

    @cached_property
    def _mean(self) -> Image.Image:
        """The mean of the benchmark's images (of a sample, if there are many). Unreadable images are left out."""
        rng = np.random.default_rng(self.seed)
        pictures = []
        for i in rng.permutation(len(self.used))[:SAMPLE]:
            try:
                pictures.append(decode_image(self.store.read(self.used[int(i)])))
            except DataError:
                continue
        if not pictures:
            what = "none of the images can be read, so they have no mean"
            raise UsageError(what, where=self.store.location, hint="check them with `creperie data check`")
        return mean_image(pictures)


def blind_twin(bench: Benchmark, kind: str, seed: int = 0) -> Benchmark:
    """Return a copy of the benchmark with other images. `kind` is "noise" (every pixel value equally likely),
    "gaussian" (Gaussian noise), "mean" (the mean of all images), or "shuffled" (each image is replaced by another one
    of the benchmark).
    """
    if kind not in KINDS:
        raise unknown("kind of blind images", kind, KINDS)
    if not brings_images(bench):
        raise UsageError("has no images to replace", where=bench.name, hint="give them with `images=`")
    keys = image_keys(bench)
    if kind == "shuffled" and len(keys) < 2:
        raise UsageError(
            "has only one image, which cannot be shuffled", where=bench.name, hint="choose noise or another kind"
        )
    boxes = any(split_reference(str(r))[1] is not None for r in bench.ragged("images")[1].to_pylist())
    store = BlindImages(bench.images, kind, seed, keys, boxes=boxes)
    step = ProvenanceStep("blind images", {"kind": kind, "seed": seed}, (bench.hash,))
    name = f"{bench.name}~{kind}" + (f"-{seed}" if seed else "")
    return replace(bench, name=name, images=store, provenance=(*bench.provenance, step))


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()
