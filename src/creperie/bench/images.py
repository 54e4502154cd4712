"""Where a benchmark's images are, how one is named, and how one is opened.

A *key* names a picture in a store; a *reference* is what an item holds: a key, or a key and a crop box written as a
media fragment, `7.jpg#xywh=10,20,64,48`.

What `open_image` gives is always upright 8-bit RGB:

- EXIF orientation is applied, then the crop box (pixels of the upright picture, clamped to it).
- Transparency is dropped, not composited: this is Pillow's `convert("RGB")`, which reference evaluations use.
- 16-bit grey is scaled to 8 bits, not clipped; of an animation the first frame is taken.
- JPEG is decoded in full, since the faster draft mode changes pixels.

Pictures that leave this machine, or are shown to others, go through `picture_bytes` or `picture_file`: they are
pictures, not too large, and no links out of their folder.

Every failure is an `ImageError` whose `code` is a finding: missing-image, unsafe-image, empty-image, truncated-image,
undecodable-image, image-too-large, bad-crop.
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

#: Larger pictures are a finding; the bound is the one at which Pillow warns of decompression bombs.
MAX_PIXELS = 89_478_485
#: No encoded picture is larger than this; an archive entry that claims to be is not read.
MAX_BYTES = 512 * 2**20
#: Formats that are pictures and nothing else: Pillow would hand EPS to Ghostscript.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "MPO", "PPM", "JPEG2000", "AVIF", "ICO")

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_BOX = rf"#xywh=({_NUMBER}),({_NUMBER}),({_NUMBER}),({_NUMBER})"
_REFERENCE = re.compile(rf"(?s)(.*?)(?:{_BOX}|#)?\Z")
#: The same ending for RE2, which Arrow uses.
REFERENCE_ENDING = rf"(?:{_BOX}|#)\z"


class ImageError(DataError):
    """An image that is missing or cannot be decoded. `code` names the finding."""

    def __init__(self, code: str, what: str, *, where: str = "", hint: str = "") -> None:
        self.code = code
        super().__init__(what, where=where, hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        return _image_error, (self.code, self.what, self.where, self.hint)


def _image_error(code: str, what: str, where: str, hint: str) -> ImageError:
    return ImageError(code, what, where=where, hint=hint)


@runtime_checkable
class ImageStore(Protocol):
    """Bytes by key. Reading is safe from several threads."""

    @property
    def location(self) -> str:
        """Where the images are, as a user would write it; empty when there are none."""
        ...

    def read(self, key: str) -> bytes:
        """Return the encoded bytes of one image (no crop); ImageError where there is none."""
        ...

    def __contains__(self, key: str) -> bool: ...

    def keys(self) -> Iterator[str]: ...


class NoImages:
    """The store of a benchmark whose images nobody has given."""

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
        return "NO_IMAGES"  # stays the one and only in another process


NO_IMAGES = NoImages()


# -- references ------------------------------------------------------------------------------------------------------


def image_reference(key: str, box: Box | None = None) -> str:
    """Return how an item names an image, or a part of it: x, y, width, height in pixels.

    >>> image_reference("7.jpg", (10, 20.5, 64, 48))
    '7.jpg#xywh=10,20.5,64,48'

    A key that itself ends like a reference gets an empty fragment, so that it survives:

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
        raise DataError(f"a crop box holds {value}", hint="use pixels: x, y, width, height")
    import numpy as np

    return np.format_float_positional(float(value) + 0.0, trim="-")


def safe_path(folder: Path, key: str) -> Path:
    """Return where a key's file lies in a folder; a key that would lead out of the folder is an error.

    >>> safe_path(Path("images"), "val2017/7.jpg").as_posix()
    'images/val2017/7.jpg'
    """
    parts = [p for p in re.split(r"[/\\]" if "\\" in str(Path("a/b")) else "/", key) if p not in ("", ".")]
    if not parts or key.startswith("/") or ".." in parts or "\0" in key or re.match(r"[A-Za-z]:[/\\]", key):
        raise ImageError("unsafe-image", f"{key!r} is not a path inside the images folder", where=str(folder))
    return folder.joinpath(*parts)


# -- opening ---------------------------------------------------------------------------------------------------------


def open_image(store: ImageStore, reference: str, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Return the image of a reference: decoded, upright, RGB, cropped."""
    key, box = split_reference(reference)
    try:
        picture = decode_image(store.read(key), max_pixels=max_pixels)
        return picture if box is None else crop(picture, box)
    except ImageError as e:
        if e.where:
            raise
        raise ImageError(e.code, e.what, where=f"{store.location}/{key}", hint=e.hint) from None


def decode_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Encoded bytes as an upright RGB picture."""
    from PIL import ImageFile

    with _opened(data, max_pixels) as picture:
        if isinstance(picture, ImageFile.ImageFile):  # in one go: threads wait for each other between the parts
            picture.decodermaxblock = max(picture.decodermaxblock, len(data))
        picture.load()
        return _rgb(_upright(picture))


def picture_type(data: bytes, *, max_pixels: int = MAX_PIXELS) -> str:
    """Return the ending of a file with these bytes, such as `.jpg`; ImageError unless its head is that of a picture in
    a known format with not too many pixels. Nothing is decoded.
    """
    with _opened(data, max_pixels) as picture:
        return {"JPEG": ".jpg", "MPO": ".jpg", "TIFF": ".tiff", "JPEG2000": ".jp2"}.get(
            str(picture.format), f".{str(picture.format).lower()}"
        )


def picture_bytes(store: ImageStore, key: str) -> bytes:
    """Return the file of a picture, unchanged, for exports and for pages that others see.

    ImageError where it is missing, is not a picture, is too large, or is a link that leads out of its folder.
    """
    leads_out = getattr(store, "leads_out", None)
    try:
        if leads_out and leads_out(key):
            hint = "copy the picture into the folder"
            raise ImageError("unsafe-image", "is a link that leads out of the images folder", hint=hint)
        data = store.read(key)
        picture_type(data)
        return data
    except ImageError as e:
        raise e if e.where else ImageError(e.code, e.what, where=f"{store.location}/{key}", hint=e.hint) from None


def picture_file(store: ImageStore, reference: str) -> tuple[str, bytes]:
    """Return the picture of a reference as a file that any program shows alike: its ending and its bytes.

    A whole JPEG or PNG that needs no turning is left as it is; anything else, and a crop, is written as PNG.
    """
    key, box = split_reference(reference)
    data = picture_bytes(store, key)
    ending = picture_type(data)
    if box is None and (_plain_jpeg(data) or (ending == ".png" and b"eXIf" not in data)):
        return ending, data
    file = io.BytesIO()
    open_image(store, reference).save(file, "PNG")
    return ".png", file.getvalue()


@contextmanager
def _opened(data: bytes, max_pixels: int) -> Iterator[Image.Image]:
    """A picture whose head was read; whatever goes wrong in the block is an ImageError."""
    if not data:
        raise ImageError("empty-image", "the file is empty (0 bytes)")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=_readable_formats()) as picture:
            width, height = picture.size
            if width * height > max_pixels:
                raise ImageError("image-too-large", f"{width} × {height} pixels, more than {max_pixels:,}")
            yield picture
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError("image-too-large", f"more than {max_pixels:,} pixels") from None
    except Exception as e:
        # Pillow's decoders raise whatever they trip over; a bad file must be a finding, never the end of a run.
        raise _undecodable(e) from None


def _plain_jpeg(data: bytes) -> bool:
    """Is this a JPEG without EXIF data, which would turn it?"""
    return data[:2] == b"\xff\xd8" and b"Exif\0" not in data[:65536]


@functools.cache
def _readable_formats() -> tuple[str, ...]:
    """Return the formats that this Pillow was built with.

    Bad pictures are findings here, so Pillow's own warnings beside them are switched off, once.
    """
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
#: What Pillow calls that which turns a picture of EXIF's orientation 2, 3 … upright.
_TURNS = "FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90"


def _upright(picture: Image.Image) -> Image.Image:
    from PIL import Image

    try:
        turn = dict(enumerate(_TURNS, 2)).get(picture.getexif().get(_ORIENTATION, 1))
    except Exception:
        turn = None  # damaged EXIF says nothing about orientation; the picture itself is fine
    return picture if turn is None else picture.transpose(Image.Transpose[turn])


def _rgb(picture: Image.Image) -> Image.Image:
    """Eight bits per channel, three channels."""
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
    """16-bit grey over its whole range; floats are taken as 0…1 or 0…255, anything else has no known scale."""
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
        raise ImageError("undecodable-image", f"grey values from {low:g} to {high:g} have no known scale")
    return Image.fromarray(np.rint(scaled).astype(np.uint8))


def crop(picture: Image.Image, box: Box) -> Image.Image:
    """Return the part of a picture inside a box, which is rounded to pixels and clamped; ImageError where nothing is
    left."""
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
