"""Thumbnails for a page, with limits on the size of each and on their total size. The rule for which images a page may
show is here as well.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from creperie.bench import (
    NO_IMAGES,
    Benchmark,
    ImageError,
    ImageStore,
    Parquet,
    open_image,
    open_store,
    picture_bytes,
    split_reference,
)
from creperie.core import Progress, silent

#: Longest edges in pixels, best first: the first at which all images fit is used.
EDGES = (256, 192, 144, 112, 80, 56)
BUDGET = 7 * 2**20  #: bytes of all images in the page, in base64: a report can be sent by mail
OUTSIDE = "the pictures are outside the benchmark's folder: pass `images=DIR` to show them"
_SAMPLED = 24
_QUALITY = 72


@dataclass(frozen=True)
class PictureRoots:
    """The folders from which a page may show images.

    A benchmark says where its images are, and a downloaded benchmark could name private files. An image is therefore
    shown only if it is in the benchmark's own folder, in a folder that the user opened, or in another folder that the
    user named.
    """

    named: tuple[Path, ...]  #: by the user
    folders: tuple[Path, ...]  #: opened by the user

    @staticmethod
    def of(named: Sequence[str | Path], folders: Sequence[Path]) -> PictureRoots:
        """Return the roots made of `folders` and of the places that the user named (`named`)."""
        return PictureRoots(tuple(Path(path).resolve() for path in named), tuple(path.resolve() for path in folders))

    def hidden(self, bench: Benchmark) -> str:
        """Return why the images of a benchmark are not shown. The text is empty if they are shown, or if the benchmark
        has no images.
        """
        if not bench.images.location or not isinstance(bench.source, Parquet):
            return ""
        own = [file.parent.parent.resolve() for file in bench.source.files[:1]]
        place = Path(bench.images.location).resolve()
        return "" if any(place.is_relative_to(root) for root in (*self.named, *self.folders, *own)) else OUTSIDE

    def applied(self, bench: Benchmark) -> Benchmark:
        """Return the benchmark. If its own image folder does not exist, its images are read from the first of the
        user's folders that has its first image. If no folder has it, the benchmark is unchanged.
        """
        if bench.images is not NO_IMAGES or not self.named:
            return bench
        references = bench.ragged("images")[1]
        first = split_reference(references[0].as_py())[0] if len(references) else ""
        stores = (open_store(place) for place in self.named if place.exists())
        return replace(bench, images=next((store for store in stores if first and first in store), bench.images))


@dataclass(frozen=True)
class Thumbnails:
    """WebP images in base64, by image reference."""

    pictures: dict[str, str] = field(default_factory=dict)
    edge: int = 0
    failed: dict[str, str] = field(default_factory=dict)  #: reference → why it cannot be shown
    left_out: int = 0  #: images that did not fit


def thumbnails(
    store: ImageStore, references: Sequence[str], *, budget: int = BUDGET, progress: Progress = silent
) -> Thumbnails:
    """Return thumbnails of these images, as large as possible so that all fit into `budget` bytes."""
    distinct = list(dict.fromkeys(references))
    if budget <= 0 or not distinct or not store.location:
        return Thumbnails(left_out=len(distinct) if store.location else 0)
    edge = _edge(store, distinct, budget)
    pictures: dict[str, str] = {}
    failed: dict[str, str] = {}
    used = left_out = 0
    with progress("thumbnails", len(distinct), "images") as advance, ThreadPoolExecutor(max_workers=4) as pool:
        for reference, made in zip(distinct, pool.map(lambda r: _thumbnail_or_error(store, r, edge), distinct)):
            advance(1)
            if isinstance(made, ImageError):
                failed[reference] = made.what
            elif used + len(made) > budget:
                left_out += 1
            else:
                pictures[reference] = made
                used += len(made)
    return Thumbnails(pictures, edge, failed, left_out)


def thumbnail(store: ImageStore, reference: str, edge: int) -> bytes:
    """Return one image as WebP, with at most `edge` pixels on its longer side. Raise an ImageError if it cannot be
    read. A link that leads out of the images folder is not followed.
    """
    picture = open_image(store, reference, data=picture_bytes(store, split_reference(reference)[0]))
    picture.thumbnail((edge, edge))
    written = io.BytesIO()
    picture.save(written, "WEBP", quality=_QUALITY, method=2)
    return written.getvalue()


def _thumbnail_or_error(store: ImageStore, reference: str, edge: int) -> str | ImageError:
    try:
        return base64.b64encode(thumbnail(store, reference, edge)).decode("ascii")
    except ImageError as e:
        return e


def _edge(store: ImageStore, references: Sequence[str], budget: int) -> int:
    """Return the largest thumbnail size, in pixels of the longer side, at which all wanted images probably fit into
    `budget` bytes. The size is estimated from a sample of the images.
    """
    sample = references[:: max(1, len(references) // _SAMPLED)][:_SAMPLED]
    for edge in EDGES:
        sizes = [len(made) for made in (_thumbnail_or_error(store, r, edge) for r in sample) if isinstance(made, str)]
        if not sizes or sum(sizes) / len(sizes) * len(references) <= budget:
            return edge
    return EDGES[-1]
