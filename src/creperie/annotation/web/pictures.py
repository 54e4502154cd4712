"""Pictures as annotators get them: decoded, cropped and re-encoded, so neither names nor metadata say anything."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from PIL import Image

from creperie.bench import NO_IMAGES, ImageStore, open_image, open_store

#: Longer sides are scaled down to this.
LONGEST_SIDE = 1600
#: Up to this many pixels a picture is sent without loss.
LOSSLESS = 512 * 512
KEPT_BYTES = 64 * 2**20
#: Larger pictures are not decoded on a server (an RGB picture of this size takes 300 MB).
MAX_PIXELS = 100_000_000


@dataclass(frozen=True)
class Picture:
    data: bytes
    media_type: str


class StudyPictures:
    """Encoded pictures of several image stores; the last ones are kept in memory."""

    def __init__(self) -> None:
        self._stores: dict[str, ImageStore] = {}
        self._kept: OrderedDict[tuple[str, str], Picture] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        # One at a time, in one thread: six large pictures decoded at once would need gigabytes, and what one thread
        # has freed is not there for the next one.
        self._decoder = ThreadPoolExecutor(1, "creperie-pictures")

    def get(self, location: str, reference: str) -> Picture:
        """The picture of a reference; ImageError where there is none. Links never lead out of the folder."""
        key = (location, reference)
        if (found := self._find(key)) is not None:
            return found
        return self._decoder.submit(self._make, key).result()

    def _make(self, key: tuple[str, str]) -> Picture:
        if (found := self._find(key)) is not None:  # somebody else waited for the same one
            return found
        made = encode(open_image(self._store(key[0]), key[1], max_pixels=MAX_PIXELS))
        with self._lock:
            self._kept[key] = made
            self._bytes += len(made.data)
            while self._bytes > KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1].data)
        return made

    def _find(self, key: tuple[str, str]) -> Picture | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _store(self, location: str) -> ImageStore:
        if location not in self._stores:
            self._stores[location] = open_store(location, follow_links=False) if location else NO_IMAGES
        return self._stores[location]


def encode(picture: Image.Image) -> Picture:
    """A picture as a browser likes it, with nothing but its pixels."""
    if max(picture.size) > LONGEST_SIDE:
        picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    picture.info = {}  # comments and profiles of the file would travel along
    kind = "PNG" if picture.width * picture.height <= LOSSLESS else "JPEG"
    buffer = io.BytesIO()
    picture.save(buffer, kind, quality=90)
    return Picture(buffer.getvalue(), f"image/{kind.lower()}")
