"""Pictures of every kind come out upright, RGB and 8-bit; bad ones are findings."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bombs import bomb
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from creperie.bench import ImageError, decode_image, open_image


class Memory:
    """A store of bytes."""

    location = "memory"

    def __init__(self, **files: bytes) -> None:
        self.files = files

    def read(self, key: str) -> bytes:
        return self.files[key]

    def __contains__(self, key: str) -> bool:
        return key in self.files

    def keys(self) -> Iterator[str]:
        return iter(self.files)


def encoded(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def gradient(width: int = 7, height: int = 5) -> Image.Image:
    """A picture of which no two pixels are equal, so that turning it shows."""
    rows, columns = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([rows * 20, columns * 20, rows * 7 + columns], axis=-1).astype(np.uint8))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "L", "1", "P"])
def test_what_pillow_converts_comes_out_as_pillow_converts_it(mode: str) -> None:
    data = encoded(gradient().convert(mode))
    expected = Image.open(io.BytesIO(data)).convert("RGB")
    assert decode_image(data).mode == "RGB"
    assert decode_image(data).tobytes() == expected.tobytes()


def test_transparency_is_dropped_not_composited() -> None:
    picture = Image.new("RGBA", (2, 1), (10, 20, 30, 0))
    assert decode_image(encoded(picture)).getpixel((0, 0)) == (10, 20, 30)


def test_a_palette_with_transparency_keeps_its_colours_without_a_warning() -> None:
    picture = gradient().quantize(8)
    data = encoded(picture, "PNG", transparency=b"\x00\x80\xff")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = decode_image(data)
    assert got.tobytes() == picture.convert("RGB").tobytes()


def test_cmyk_jpeg() -> None:
    data = encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG", quality=100)
    red, green, blue = decode_image(data).getpixel((4, 4))  # type: ignore[misc]
    assert red > 200
    assert green < 60
    assert blue < 60


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bit_grey_is_scaled_not_clipped(kind: str) -> None:
    values = np.array([[0, 257, 25_700, 65_535]], dtype=np.uint16)
    got = np.asarray(decode_image(encoded(Image.fromarray(values), kind)))
    assert got[0, :, 0].tolist() == [0, 1, 100, 255]
    assert (got[..., 0] == got[..., 2]).all()


def test_a_dark_sixteen_bit_picture_stays_dark() -> None:
    values = np.full((2, 2), 200, dtype=np.uint16)
    assert np.asarray(decode_image(encoded(Image.fromarray(values)))).max() == 1


@pytest.mark.parametrize(("values", "grey"), [([0.0, 0.5, 1.0], [0, 128, 255]), ([0.0, 100.4, 255.0], [0, 100, 255])])
def test_float_grey(values: list[float], grey: list[int]) -> None:
    picture = Image.fromarray(np.array([values], dtype=np.float32))
    assert np.asarray(decode_image(encoded(picture, "TIFF")))[0, :, 0].tolist() == grey


@pytest.mark.parametrize(
    "array",
    [np.array([[-1, 70_000]], dtype=np.int32), np.array([[-0.5, 3.0]], np.float32), np.array([[np.nan]], np.float32)],
)
def test_grey_without_a_known_scale_is_a_finding(array: np.ndarray) -> None:
    with pytest.raises(ImageError) as caught:
        decode_image(encoded(Image.fromarray(array), "TIFF"))
    assert caught.value.code == "undecodable-image"


def test_of_an_animation_the_first_frame() -> None:
    frames = [Image.new("P", (4, 4), i) for i in (0, 1)]
    for frame in frames:
        frame.putpalette([255, 0, 0, 0, 255, 0] + [0] * 762)
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode_image(data).getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(kind, {})
    data = encoded(gradient(), kind, exif=exif, **options)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    got = decode_image(data)
    assert got.size == ((5, 7) if orientation >= 5 else (7, 5))
    assert got.tobytes() == expected.tobytes()


def test_damaged_exif_does_not_cost_the_picture() -> None:
    data = encoded(gradient(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert decode_image(data).size == (7, 5)


def test_a_jpeg_is_decoded_in_full() -> None:
    picture = gradient(64, 48).resize((640, 480))
    data = encoded(picture, "JPEG")
    assert decode_image(data).tobytes() == Image.open(io.BytesIO(data)).convert("RGB").tobytes()


JPEG = encoded(gradient(200, 100), "JPEG")
PNG = encoded(gradient(200, 100), "PNG")
BAD = {
    "empty": (b"", "empty-image"),
    "half a JPEG": (JPEG[: len(JPEG) // 2], "truncated-image"),
    "half a PNG": (PNG[: len(PNG) // 2], "truncated-image"),
    "text": (b"<html>404 not found</html>", "undecodable-image"),
    "three bytes": (b"\xff\xd8\xff", "undecodable-image"),
    "a script": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n", "undecodable-image"),
    "a bomb at which Pillow warns": (bomb(10_000, 10_000), "image-too-large"),
    "a bomb at which Pillow stops": (bomb(60_000, 60_000), "image-too-large"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_findings_without_warnings(name: str) -> None:
    data, code = BAD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ImageError) as caught:
            decode_image(data)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)


def test_the_bound_on_pixels_can_be_chosen() -> None:
    with pytest.raises(ImageError, match="7 × 5 pixels"):
        decode_image(encoded(gradient()), max_pixels=34)
    assert decode_image(encoded(gradient()), max_pixels=35).size == (7, 5)


kinds = st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "ICO"])


@settings(max_examples=60, deadline=None)
@given(kinds, st.integers(0, 2**32), st.integers(0, 4), st.floats(0, 1))
def test_damaged_files_raise_only_image_errors(kind: str, seed: int, flips: int, keep: float) -> None:
    data = bytearray(encoded(gradient(20, 20), kind))
    rng = np.random.default_rng(seed)
    for place in rng.integers(0, len(data), flips):
        data[place] = int(rng.integers(0, 256))
    with contextlib.suppress(ImageError):
        assert decode_image(bytes(data[: int(len(data) * keep) + 1]), max_pixels=10**6).mode == "RGB"


@given(st.binary(max_size=300))
def test_noise_raises_only_image_errors(data: bytes) -> None:
    with pytest.raises(ImageError):
        decode_image(data)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ("1,2,3,2", (1, 2, 4, 4)),
        ("-2,-2,4,4", (0, 0, 2, 2)),  # clamped
        ("5,3,100,100", (5, 3, 7, 5)),
        ("0.6,0.4,2.9,2.2", (1, 0, 4, 3)),  # rounded as Pillow's crop rounds
        ("0,0,7,5", (0, 0, 7, 5)),
    ],
)
def test_crops(box: str, expected: tuple[int, int, int, int]) -> None:
    store = Memory(a=encoded(gradient()))
    assert open_image(store, f"a#xywh={box}").tobytes() == gradient().crop(expected).tobytes()


@pytest.mark.parametrize(
    "box", ["7,0,2,2", "0,5,1,1", "2,2,0,1", "3,3,-2,1", "-5,-5,3,3", "0,0,0.2,3", "9" * 400 + ",0,1,1"]
)
def test_boxes_outside_the_picture_are_findings(box: str) -> None:
    with pytest.raises(ImageError) as caught:
        open_image(Memory(a=encoded(gradient())), f"a#xywh={box}")
    assert caught.value.code == "bad-crop"
    assert "memory/a" in str(caught.value)


def test_the_crop_box_is_meant_in_the_upright_picture() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: 7 × 5 becomes 5 × 7
    store = Memory(a=encoded(gradient(), "PNG", exif=exif))
    assert open_image(store, "a#xywh=0,5,5,2").size == (5, 2)
