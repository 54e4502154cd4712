"""Image stores, references to images, and opening images.

A *key* names an image in a store. A *reference*, as stored in an item, is a key or a key with a crop box, written as a
media fragment: `7.jpg#xywh=10,20,64,48`.

`open_image` always returns an upright 8-bit RGB image:

- EXIF orientation is applied, then the crop box (pixels of the upright picture, clamped to it).
- Transparency is dropped, not composited: this is Pillow's `convert("RGB")`, which reference evaluations use.
- 16-bit grey is scaled to 8 bits, not clipped.
- Only the first frame of an animation is used.
- JPEG is decoded in full, since the faster draft mode changes pixels.

`picture_bytes` and `picture_file` read images that are exported or shown to others. They check that a file is an image,
is not too large and is not a link out of its folder.

Every failure is an `ImageError`. Its `code` names the finding: missing-image, unsafe-image, empty-image,
truncated-image, undecodable-image, image-too-large or bad-crop.
"""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from creperie.core import DataError

if TYPE_CHECKING:
    from PIL import Image

Box = tuple[float, float, float, float]

#: Larger images are a finding; the limit is the one at which Pillow warns of decompression bombs.
MAX_PIXELS = 89_478_485
#: Maximum size of an encoded image; larger archive entries are not read.
MAX_BYTES = 512 * 2**20
#: Accepted formats: images only (Pillow would pass EPS to Ghostscript).
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "MPO", "PPM", "JPEG2000", "AVIF", "ICO")

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_BOX = rf"#xywh=({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})"
_REFERENCE = re.compile(rf"(?s)(.*?)(?:{_BOX}|#)?\Z")
#: The same ending as a pattern for RE2, which Arrow uses.
REFERENCE_ENDING = rf"(?:{_BOX}|#)\z"


class ImageError(DataError):
    """Raised for an image that is missing or cannot be decoded; `code` is the code of the finding to report."""

    def __init__(self, code: str, what: str, *, where: object = "", hint: str = "") -> None:
        self.code = code
        super().__init__(what, where=where, hint=hint or "replace it, or leave its items out")

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(ImageError, where=self.where, hint=self.hint), (self.code, self.what)


@runtime_checkable
class ImageStore(Protocol):
    """A collection of encoded images, each with a key. Several threads may read from it at once."""

    @property
    def location(self) -> str:
        """The path of the images, as a user would write it; empty for a store that has no path."""
        ...

    def read(self, key: str) -> bytes:
        """Return the encoded bytes of an image, without cropping; raise an ImageError if there is no such image."""
        ...

    def __contains__(self, key: str) -> bool: ...

    def keys(self) -> Iterator[str]: ...


class NoImages:
    """The image store of a benchmark without images."""

    location = ""

    def read(self, key: str) -> bytes:
        raise ImageError(
            "missing-image", "no images were given for this benchmark", where=key, hint="pass `images='DIR'`"
        )

    def __contains__(self, key: str) -> bool:
        return False

    def keys(self) -> Iterator[str]:
        return iter(())

    def __reduce__(self) -> str:
        return "NO_IMAGES"  # unpickles to the same object in another process


NO_IMAGES = NoImages()


# -- references ------------------------------------------------------------------------------------------------------


def image_reference(key: str, box: Box | None = None) -> str:
    """Return the reference to an image, or to the region of it in `box`: x, y, width, height in pixels.

    >>> image_reference("7.jpg", (10, 20.5, 64, 48))
    '7.jpg#xywh=10,20.5,64,48'

    If the end of the key could be taken for a fragment, an empty fragment is added, so that the key stays whole:

    >>> image_reference("a#")
    'a##'
    """
    if box is not None:
        return f"{key}#xywh={','.join(_number(v) for v in box)}"
    return key if split_reference(key) == (key, None) else f"{key}#"


def split_reference(ref: str) -> tuple[str, Box | None]:
    """Return the key and the crop box of a reference.

    >>> split_reference("7.jpg#xywh=10,20.5,64,48")
    ('7.jpg', (10.0, 20.5, 64.0, 48.0))
    >>> split_reference("what#is this.png")
    ('what#is this.png', None)
    """
    parts = _REFERENCE.match(ref)
    assert parts is not None  # the pattern matches every string
    key, *numbers = parts.groups()
    if numbers[0] is None:
        return key, None
    x, y, w, h = (float(n) for n in numbers)
    return key, (x, y, w, h)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise DataError(f"a crop box contains {value}", hint="give x, y, width and height in pixels, as numbers")
    import numpy as np

    return np.format_float_positional(float(value) + 0.0, trim="-")


def safe_path(folder: Path, key: str) -> Path:
    """Return the path of the file with this key in a folder; raise an ImageError if it would be outside of the folder.

    >>> safe_path(Path("images"), "val2017/7.jpg").as_posix()
    'images/val2017/7.jpg'
    """
    parts = [p for p in re.split(r"[/\\]" if "\\" in str(Path("a/b")) else "/", key) if p not in ("", ".")]
    if not parts or key.startswith("/") or ".." in parts or "\0" in key or re.match(r"[A-Za-z]:[/\\]", key):
        raise ImageError("unsafe-image", f"{key!r} is not a path inside the images folder", where=folder)
    return folder.joinpath(*parts)


# -- opening ---------------------------------------------------------------------------------------------------------


def open_image(
    store: ImageStore, reference: str, *, max_pixels: int = MAX_PIXELS, data: bytes | None = None
) -> Image.Image:
    """Return the image that a reference names: decoded, upright, in RGB and cropped. `data` are its encoded bytes, if
    they were read already.
    """
    key, box = split_reference(reference)
    try:
        picture = decode_image(store.read(key) if data is None else data, max_pixels=max_pixels)
        return picture if box is None else crop(picture, box)
    except ImageError as e:
        if e.where:
            raise
        raise ImageError(e.code, e.what, where=f"{store.location}/{key}", hint=e.hint) from None


def decode_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Return the image in these encoded bytes, upright and in RGB."""
    from PIL import ImageFile

    with _opened(data, max_pixels) as picture:
        if isinstance(picture, ImageFile.ImageFile):  # decode in one block: between blocks, threads wait for each other
            picture.decodermaxblock = max(picture.decodermaxblock, len(data))
        picture.load()
        return _rgb(_upright(picture))


def picture_type(data: bytes) -> str:
    """Return the file suffix for an encoded image, such as `.jpg`. Only the image's header is read.

    Raise an ImageError if the format is not known, or if the image has too many pixels.
    """
    with _opened(data, MAX_PIXELS) as picture:
        return {"JPEG": ".jpg", "MPO": ".jpg", "TIFF": ".tiff", "JPEG2000": ".jp2"}.get(
            str(picture.format), f".{str(picture.format).lower()}"
        )


def picture_bytes(store: ImageStore, key: str) -> bytes:
    """Return the bytes of an image file, unchanged, for exports and for web pages.

    Raise an ImageError if the image is missing, not an image, too large, or a link that leads out of its folder.
    """
    leads_out = getattr(store, "leads_out", None)
    try:
        if leads_out and leads_out(key):
            raise ImageError(
                "unsafe-image", "is a link that leads out of the images folder", hint="copy the picture into the folder"
            )
        data = store.read(key)
        picture_type(data)
        return data
    except ImageError as e:
        raise e if e.where else ImageError(e.code, e.what, where=f"{store.location}/{key}", hint=e.hint) from None


def picture_file(store: ImageStore, reference: str) -> tuple[str, bytes]:
    """Return the suffix and the bytes of an image file that all programs display in the same way.

    A JPEG or PNG without orientation data is returned as it is; other images, and crops, are converted to PNG.
    """
    key, box = split_reference(reference)
    data = picture_bytes(store, key)
    ending = picture_type(data)
    # a JPEG without EXIF data cannot ask viewers to rotate it
    plain_jpeg = data[:2] == b"\xff\xd8" and b"Exif\0" not in data[:65536]
    if box is None and (plain_jpeg or (ending == ".png" and b"eXIf" not in data)):
        return ending, data
    file = io.BytesIO()
    open_image(store, reference).save(file, "PNG")
    return ".png", file.getvalue()


@contextmanager
def _opened(data: bytes, max_pixels: int) -> Iterator[Image.Image]:
    """Yield an image after reading only its header. Any exception in the caller's `with` block becomes an
    ImageError.
    """
    if not data:
        raise ImageError("empty-image", "the file is empty (0 bytes)")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=_readable_formats()) as picture:
            width, height = picture.size
            if width * height > max_pixels:
                raise ImageError(
                    "image-too-large", f"the picture has {width} × {height} pixels, more than {max_pixels:,}"
                )
            yield picture
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError("image-too-large", f"the picture has more than {max_pixels:,} pixels") from None
    except Exception as e:
        # Pillow's decoders raise all kinds of exceptions; a bad file must become a finding and not end a run.
        raise _undecodable(e) from None


@functools.cache
def _readable_formats() -> tuple[str, ...]:
    """Return the accepted formats that this build of Pillow supports."""
    # The first call also switches off Pillow's warnings about bad images, since these images are reported as findings.
    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.TiffImagePlugin")
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _undecodable(error: Exception) -> ImageError:
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return ImageError("undecodable-image", "this is not a picture in a known format")
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, EOFError) or "truncated" in text.lower():
        return ImageError("truncated-image", f"the file ends too early ({text})", hint="get the file again")
    return ImageError("undecodable-image", f"cannot be decoded ({text})")


_ORIENTATION = 0x0112
#: Pillow's names of the operations that turn images with EXIF orientation 2, 3 … upright.
_TURNS = "FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90"


def _upright(picture: Image.Image) -> Image.Image:
    from PIL import Image

    try:
        turn = dict(enumerate(_TURNS, 2)).get(picture.getexif().get(_ORIENTATION, 1))
    except Exception:
        turn = None  # damaged EXIF data: the image itself is usable
    return picture if turn is None else picture.transpose(Image.Transpose[turn])


def _rgb(picture: Image.Image) -> Image.Image:
    """Return the image with three channels of eight bits."""
    mode = picture.mode
    if mode == "RGB":
        return picture
    if mode in ("I", "F") or mode.startswith("I;16"):
        return _grey(picture, mode).convert("RGB")
    if mode in ("P", "PA", "RGBa"):
        return picture.convert("RGBA").convert("RGB")
    if mode == "La":
        return picture.convert("LA").convert("RGB")
    return picture.convert("RGB")


def _grey(picture: Image.Image, mode: str) -> Image.Image:
    """Return a grey image with 8 bits. 16-bit values are scaled; floats must be from 0 to 1 or from 0 to 255. Raise an
    ImageError for any other range.
    """
    import numpy as np
    from PIL import Image

    values = np.asarray(picture)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if mode == "F" and low >= 0 and high <= 1:
        scaled = values * 255.0
    elif mode == "F" and low >= 0 and high <= 255:
        scaled = values
    elif mode != "F" and low >= 0 and high <= 65535:
        scaled = values / 257.0
    else:
        what = f"its grey values go from {low:g} to {high:g}, so it is not known which value is white"
        raise ImageError("undecodable-image", what, hint="save the image with 8 or 16 bits per pixel")
    return Image.fromarray(np.rint(scaled).astype(np.uint8))


def crop(picture: Image.Image, box: Box) -> Image.Image:
    """Return the part of an image inside a box, after rounding the box to whole pixels and clipping it to the image.

    Raise an ImageError if the region is empty.
    """
    x, y, w, h = box
    edges = (x, y, x + w, y + h)
    size = (picture.width, picture.height) * 2
    if all(math.isfinite(e) for e in edges):
        left, top, right, bottom = (round(min(max(e, 0), limit)) for e, limit in zip(edges, size))
        if left < right and top < bottom:
            return picture.crop((left, top, right, bottom))
    shown = ",".join(f"{v:g}" for v in box)
    raise ImageError(
        "bad-crop", f"the box {shown} lies outside the picture of {picture.width} × {picture.height} pixels"
    )
