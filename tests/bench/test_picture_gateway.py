"""Pictures that are published or shown go through one gateway: type, size, pixels, links out of the folder."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from PIL import Image

import creperie
from creperie.bench import (
    Item,
    choice,
    export_image_parquet,
    find_format,
    from_items,
    open_store,
    picture_bytes,
    picture_file,
    read_format,
    save,
)
from creperie.bench import images as images_module
from creperie.core import CreperieError
from creperie.scoring import export_lmms

EXPORTS = [export_image_parquet, export_lmms]


def jpeg(turned: bool = False) -> bytes:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 4), "red").save(file, "JPEG", exif=exif if turned else b"")
    return file.getvalue()


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("secret", [b"root:x:0:0", jpeg()], ids=["text", "picture"])
def test_no_export_publishes_what_lies_behind_a_link(export: object, secret: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(secret)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.jpg").symlink_to(tmp_path / "secret")
    item = Item("0", "s", ("1.jpg",), ("a", "b"), choice(1, 1))
    bench = from_items("b", [item], images=open_store(tmp_path / "photos"))
    with pytest.raises(CreperieError, match=r"1\.jpg: is a link that leads out of the images folder"):
        export(bench, tmp_path / "out")  # type: ignore[operator]
    assert not (tmp_path / "out").exists()
    copied = save(bench, tmp_path / "saved", copy_images=True)
    assert "1.jpg" not in copied.images


@pytest.mark.parametrize("export", EXPORTS)
def test_no_export_publishes_what_is_not_a_picture(export: object, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "1.jpg").write_bytes(b"root:x:0:0")
    item = Item("0", "s", ("1.jpg",), ("a", "b"), choice(1, 1))
    with pytest.raises(CreperieError, match=r"1\.jpg: this is not a picture in a known format"):
        export(from_items("b", [item], images=open_store(tmp_path / "photos")), tmp_path / "out")  # type: ignore[operator]


def test_links_inside_the_folder_are_fine(tmp_path: Path) -> None:
    (tmp_path / "photos" / "deep").mkdir(parents=True)
    (tmp_path / "photos" / "deep" / "2.jpg").write_bytes(jpeg())
    (tmp_path / "photos" / "1.jpg").symlink_to(tmp_path / "photos" / "deep" / "2.jpg")
    assert picture_bytes(open_store(tmp_path / "photos"), "1.jpg") == jpeg()
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    assert picture_bytes(open_store(tmp_path / "link"), "1.jpg") == jpeg()


def test_pictures_beside_a_published_file_must_lie_there(tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(jpeg())
    (tmp_path / "data" / "images").mkdir(parents=True)
    (tmp_path / "data" / "images" / "1.jpg").symlink_to(tmp_path / "secret.jpg")
    (tmp_path / "data" / "s.json").write_text('{"0": {"filename": "1.jpg", "caption": "a", "negative_caption": "b"}}')
    bench = read_format(find_format("sugarcrepe"), str(tmp_path / "data"))
    with pytest.raises(CreperieError, match="leads out"):
        bench.open(bench[0])


def test_too_many_pixels_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1.jpg").write_bytes(jpeg())
    monkeypatch.setattr(images_module, "MAX_PIXELS", 8 * 4 - 1)
    with pytest.raises(CreperieError, match="8 × 4 pixels, more than 31"):
        picture_bytes(open_store(tmp_path), "1.jpg")


def test_files_that_every_program_shows_alike_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "plain.jpg").write_bytes(jpeg())
    (tmp_path / "turned.jpg").write_bytes(jpeg(turned=True))
    Image.new("RGB", (8, 4)).save(tmp_path / "a.webp")
    store = open_store(tmp_path)
    assert picture_file(store, "plain.jpg") == (".jpg", jpeg())
    for reference, size in (("turned.jpg", (4, 8)), ("a.webp", (8, 4)), ("plain.jpg#xywh=1,1,3,2", (3, 2))):
        ending, data = picture_file(store, reference)
        assert (ending, Image.open(io.BytesIO(data)).size) == (".png", size)


def test_pictures_are_opened_in_one_place() -> None:
    root = Path(creperie.__file__).parent
    calls = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] != "testing" and "Image" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Image.open"
    ]
    assert [call.split(":")[0] for call in calls] == ["bench/images.py"]
