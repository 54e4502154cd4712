"""WebDataset shards are read back as they were written, and by the real package where it is installed."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from creperie.bench import (
    PAIRED,
    Benchmark,
    Item,
    export_webdataset,
    from_items,
    load,
    open_store,
    picture_file,
    save,
)
from creperie.core import DataError


@pytest.fixture
def written(tmp_path: Path) -> Benchmark:
    """Items of one and of two images, one shared, one cut out of another, with tags; in shards of two items."""
    for number, name in enumerate(("a.png", "b.png", "c.png")):
        (tmp_path / "images" / "deep").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 90, 9)).save(tmp_path / "images" / "deep" / name)
    one = ((True, False),)
    items = [
        Item("1", "s", ("deep/a.png",), (" a dog ", "a cat"), one, {"kind": "x", "n": 2.0}),
        Item("1", "t", ("deep/a.png", "deep/b.png"), ("x", "y"), PAIRED, {}),
        Item("3", "s", ("deep/c.png#xywh=1,1,4,4",), ("ü", "z"), one, {"kind": "y", "n": 1.0}),
    ]
    return replace(from_items("My set", items), images=open_store(tmp_path / "images"))


def test_items_and_pictures_come_back(written: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.bench.formats.with_images.TOGETHER", 2)
    files = export_webdataset(written, tmp_path / "out")
    assert len(files) == 2
    back = load(f"webdataset:{tmp_path / 'out'}")
    assert back.name == "My set"
    about = [[(i.id, i.subset, i.captions, i.match, dict(i.tags)) for i in bench] for bench in (back, written)]
    assert about[0] == about[1]
    for ours, theirs in zip(back, written, strict=True):
        for k, image in enumerate(ours.images):
            assert picture_file(back.images, image)[1] == picture_file(written.images, theirs.images[k])[1]
    assert back[0].images == written[0].images
    save(back, tmp_path / "saved")
    saved = load(tmp_path / "saved")
    assert all(picture_file(saved.images, image)[1] for item in saved for image in item.images)
    assert load(f"webdataset:{files[1]}")[0].id == "3"


def test_the_real_package_reads_them(written: Benchmark, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    (file,) = export_webdataset(written, tmp_path / "out")
    samples = list(webdataset.WebDataset(str(file), shardshuffle=False))
    assert [json.loads(sample["json"])["id"] for sample in samples] == ["1", "1", "3"]
    assert [sample["txt"].decode() for sample in samples] == [" a dog ", "x", "ü"]
    assert {"png", "1.png"} <= samples[1].keys()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"1.txt": b"a dog", "1.jpg": b"x"}, "it needs a .json file with the fields id, subset, images"),
        ({"1.json": b'{"id": "1"}'}, "is not a valid sample"),
        ({"1.json": b"{"}, "JSON"),
        ({"1.json": b'{"id":"1","subset":"s","images":7,"captions":["a"],"match":[[true]],"tags":{}}'}, "images"),
    ],
)
def test_other_tar_files_are_refused(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    with pytest.raises(DataError, match=says):
        load(f"webdataset:{tmp_path / 'x.tar'}")
    (tmp_path / "y.tar").write_bytes(b"no tar" * 300)
    with pytest.raises(DataError, match="not a tar file"):
        load(f"webdataset:{tmp_path / 'y.tar'}")
