"""Photographs as they come from cameras and scanners, through everything that shows or encodes them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from creperie.bench import ImageError, open_image, open_store

SIZE = (60, 40)


def scene() -> Image.Image:
    """Wider than high; red, green and blue fields whose places tell every turn and flip."""
    image = Image.new("RGB", SIZE, (200, 30, 30))
    image.paste((30, 200, 30), (30, 0, 60, 20))
    image.paste((30, 30, 200), (0, 20, 30, 40))
    return image


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def turned() -> bytes:
    """A camera held upright: stored lying, with a note that says so."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(scene().transpose(Image.Transpose.ROTATE_90), "JPEG", quality=95, exif=exif)


def palette() -> bytes:
    image = scene().quantize(8)
    image.info["transparency"] = 0
    return saved(image, "PNG", transparency=0)


def grey16() -> bytes:
    return saved(Image.fromarray(np.asarray(scene().convert("L")).astype(np.uint16) * 257), "PNG")


def animated() -> bytes:
    return saved(scene(), "WEBP", save_all=True, append_images=[Image.new("RGB", SIZE)], lossless=True)


def alpha() -> bytes:
    image = scene().convert("RGBA")
    image.putalpha(128)
    return saved(image, "PNG")


ODD: dict[str, Callable[[], bytes]] = {
    "turned.jpg": turned,
    "cmyk.jpg": lambda: saved(scene().convert("CMYK"), "JPEG", quality=95),
    "palette.png": palette,
    "grey16.png": grey16,
    "animated.webp": animated,
    "alpha.png": alpha,
}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    for name, make in ODD.items():
        (folder / name).write_bytes(make())
    (folder / "plain.png").write_bytes(saved(scene(), "PNG"))
    (folder / "line.png").write_bytes(saved(Image.new("RGB", (3000, 1), "red"), "PNG"))
    whole = (folder / "turned.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) * 2 // 3])
    return folder


def near(found: Image.Image, name: str) -> bool:
    """The scene as it was painted, but for what JPEG, grey and CMYK lose."""
    wanted = scene().convert("L" if name.startswith("grey16") else "RGB").convert("RGB")
    apart = np.abs(np.asarray(found.convert("RGB").resize(SIZE), float) - np.asarray(wanted, float))
    return float(np.median(apart)) <= 12


@pytest.mark.parametrize("name", ODD)
def test_every_reader_sees_the_upright_scene(photographs: Path, name: str) -> None:
    from creperie.annotation.web.pictures import encode
    from creperie.reporting.thumbnails import thumbnail
    from creperie.training.vision import ViewRule

    store = open_store(str(photographs))
    opened = open_image(store, name)
    assert (opened.mode, opened.size) == ("RGB", SIZE)
    assert near(opened, name)
    views = ViewRule(("whole", "mirrored"), 56)(opened)
    assert near(Image.fromarray(views[0]), name)
    np.testing.assert_array_equal(views[0], views[1][:, ::-1])
    for data in (thumbnail(store, name, 60), encode(opened).data):
        with Image.open(io.BytesIO(data)) as shown:
            assert not shown.getexif()
            assert getattr(shown, "n_frames", 1) == 1
            assert shown.size == SIZE
            assert near(shown, name)


def test_the_same_scene_has_the_same_hash(photographs: Path) -> None:
    from creperie.making.twins_match import NEAR_BITS, difference_hash

    store = open_store(str(photographs))
    plain = difference_hash(store, "plain.png")
    for name in ("turned.jpg", "cmyk.jpg", "palette.png", "animated.webp", "alpha.png", "grey16.png"):
        own = difference_hash(store, name)
        assert own is not None
        assert plain is not None
        assert int((own != plain).sum()) <= NEAR_BITS, name


def test_a_single_row_of_pixels(photographs: Path) -> None:
    from creperie.annotation.web.pictures import encode
    from creperie.reporting.thumbnails import thumbnail
    from creperie.training.vision import VIEWS, ViewRule

    store = open_store(str(photographs))
    line = open_image(store, "line.png")
    assert ViewRule(VIEWS, 28)(line).shape == (3, 28, 28, 3)
    assert thumbnail(store, "line.png", 60)
    assert encode(line).data


def test_a_file_that_ends_too_early_is_named(photographs: Path) -> None:
    from creperie.making.twins_match import difference_hash
    from creperie.reporting.thumbnails import thumbnails

    store = open_store(str(photographs))
    with pytest.raises(ImageError, match="ends too early") as caught:
        open_image(store, "cut.jpg")
    assert "cut.jpg" in str(caught.value)
    assert difference_hash(store, "cut.jpg") is None
    assert "ends too early" in thumbnails(store, ["cut.jpg", "plain.png"]).failed["cut.jpg"]
