"""Pictures as annotators get them: decoded, cropped and encoded anew, so neither names nor metadata say anything."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from dataclasses import dataclass

from PIL import Image

from creperie.bench import NO_IMAGES, ImageStore, open_image, open_store

#: Longer sides are scaled down to this.
LONGEST_SIDE = 1600
#: Up to this many pixels a picture is sent without loss.
LOSSLESS = 512 * 512
KEPT_BYTES = 64 * 2**20


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

    def get(self, location: str, reference: str) -> Picture:
        """The picture of a reference; ImageError where there is none."""
        key = (location, reference)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            store = self._store(location)
        made = encode(open_image(store, reference))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._bytes += len(made.data)
            while self._bytes > KEPT_BYTES:
                self._bytes -= len(self._kept.popitem(last=False)[1].data)
        return made

    def _store(self, location: str) -> ImageStore:
        if location not in self._stores:
            self._stores[location] = open_store(location) if location else NO_IMAGES
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
