"""Where a benchmark's images are, and how one is opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from PIL import Image

from creperie.errors import DataError


class ImageError(DataError):
    """An image that is missing or cannot be decoded. `code` names the finding."""

    def __init__(self, code: str, what: str, *, where: str = "", mend: str = "") -> None:
        self.code = code
        super().__init__(what, where=where, mend=mend)


@runtime_checkable
class ImageStore(Protocol):
    """Bytes by key. An image reference is a key, or a key and a crop box: `7.jpg#xywh=10,20,64,48`."""

    @property
    def location(self) -> str:
        """Where the images are, as a user would write it; empty when there are none."""
        ...

    def read(self, key: str) -> bytes:
        """The encoded bytes of one image (no crop); ImageError where there is none."""
        ...

    def __contains__(self, key: str) -> bool: ...

    def keys(self) -> Iterator[str]: ...


class NoImages:
    """The store of a benchmark whose images nobody has given."""

    location = ""

    def read(self, key: str) -> bytes:
        raise ImageError("missing-image", "no images were given for this benchmark", where=key, mend="pass --images DIR")

    def __contains__(self, key: str) -> bool:
        return False

    def keys(self) -> Iterator[str]:
        return iter(())


NO_IMAGES = NoImages()


def open_image(store: ImageStore, reference: str) -> Image.Image:
    """The image of a reference: decoded, upright, RGB, cropped."""
    raise NotImplementedError


def open_store(location: str) -> ImageStore:
    """The store at a place: a folder, a zip or tar file, or a Parquet file with an image column."""
    raise NotImplementedError
