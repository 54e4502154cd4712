"""Pictures for annotators. They are decoded, cropped and re-encoded, so that neither names nor metadata reveal
anything.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image

from creperie.bench import NO_IMAGES, ImageStore, open_image, open_store

#: Longer sides are scaled down to this.
LONGEST_SIDE = 1600
#: Up to this many pixels a picture is sent without loss.
LOSSLESS = 512 * 512
#: Encoded pictures in memory, of at most about a megabyte each.
KEPT = 64
#: Larger pictures are not decoded on a server (an RGB picture of this size takes 300 MB).
MAX_PIXELS = 100_000_000


@dataclass(frozen=True)
class Picture:
    data: bytes
    media_type: str


class StudyPictures:
    """A cache of encoded pictures from several image stores. It keeps the most recent ones in memory."""

    def __init__(self) -> None:
        self._cached = lru_cache(KEPT)(_read)
        # One at a time, in one thread: six large pictures decoded at once would need gigabytes, and what one thread
        # frees is not available to the others.
        self._decoder = ThreadPoolExecutor(1, "creperie-pictures")

    def get(self, location: str, reference: str) -> Picture:
        """Return the picture with this reference; raise an ImageError if there is none."""
        return self._decoder.submit(self._cached, location, reference).result()


def _read(location: str, reference: str) -> Picture:
    return encode(open_image(store_at(location), reference, max_pixels=MAX_PIXELS))


def store_at(location: str) -> ImageStore:
    """Return the image store at a location. Symbolic links that lead out of its folder are never followed."""
    return open_store(location, follow_links=False) if location else NO_IMAGES


def encode(picture: Image.Image) -> Picture:
    """Return a picture in a format for browsers, without metadata."""
    if max(picture.size) > LONGEST_SIDE:
        picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    picture.info = {}  # drop comments and profiles of the file
    kind = "PNG" if picture.width * picture.height <= LOSSLESS else "JPEG"
    buffer = io.BytesIO()
    picture.save(buffer, kind, quality=90)
    return Picture(buffer.getvalue(), f"image/{kind.lower()}")
