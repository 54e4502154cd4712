"""Pictures that are drawn when they are asked for: the key is the scene, so nothing needs to be kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO

from PIL import Image

from creperie.bench import ImageError
from creperie.core import DataError, unknown
from creperie.world.picture import render
from creperie.world.scene import Scene, decode

#: file name ending → what Pillow calls it
SUFFIXES = {"png": "PNG", "jpg": "JPEG"}
IMAGE_FORMATS = {"png": "png", "jpeg": "jpg"}


def image_key(scene: Scene, image_format: str = "png") -> str:
    """The name of a scene's picture."""
    if image_format not in IMAGE_FORMATS:
        raise unknown("image format", image_format, IMAGE_FORMATS)
    return f"{scene.code}.{IMAGE_FORMATS[image_format]}"


def scene_of(key: str) -> Scene:
    """The scene that a picture shows, read from its name; DataError where the name spells none."""
    return decode(key.rsplit("/", 1)[-1].partition(".")[0])


class SceneImages:
    """An image store that draws. PNG files hold the same pixels on every machine; JPEG depends on the library.

    >>> from creperie.world.scene import Thing
    >>> cat, dog = (Thing(kind, "red", "plain", "small", x, 220) for kind, x in (("cat", 60), ("dog", 170)))
    >>> scene = Scene((cat, dog))
    >>> store = SceneImages(64, [image_key(scene)])
    >>> store.read(image_key(scene))[:4]
    b'\\x89PNG'
    """

    location = ""

    def __init__(self, size: int, keys: Sequence[str] = ()) -> None:
        self.size = size
        self._keys = tuple(dict.fromkeys(keys))

    def read(self, key: str) -> bytes:
        suffix = key.rsplit(".", 1)[-1]
        try:
            scene = scene_of(key)
        except DataError as e:
            raise ImageError("missing-image", e.what, where=key) from None
        if suffix not in SUFFIXES:
            raise ImageError("missing-image", f"the world draws {' and '.join(SUFFIXES)}, not {suffix!r}", where=key)
        out = BytesIO()
        Image.fromarray(render(scene, self.size)).save(out, SUFFIXES[suffix], quality=92, compress_level=3)
        return out.getvalue()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str) or key.rsplit(".", 1)[-1] not in SUFFIXES:
            return False
        try:
            scene_of(key)
        except DataError:
            return False
        return True

    def keys(self) -> Iterator[str]:
        """The pictures of the benchmark that the store was made for."""
        return iter(self._keys)
