"""The places images are kept in behave the same."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from creperie.bench import NO_IMAGES, ImageError, ImageStore, open_image, open_store
from creperie.bench.stores import ParquetStore
from creperie.core import DataError

Files = dict[str, bytes]


def png(colour: tuple[int, int, int]) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 3), colour).save(out, "PNG")
    return out.getvalue()


def write_folder(where: Path, files: Files) -> Path:
    for name, data in files.items():
        path = where / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return where / "pictures"


def write_zip(where: Path, files: Files) -> Path:
    with zipfile.ZipFile(where / "pictures.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return where / "pictures.zip"


def image_table(files: Files, column: str = "image") -> pa.Table:
    cells = [{"bytes": data, "path": name} for name, data in files.items()]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({column: pa.array(cells, kind), "label": list(range(len(cells)))})


def write_parquet(where: Path, files: Files) -> Path:
    pq.write_table(image_table(files), where / "pictures.parquet", row_group_size=2)
    return where / "pictures.parquet"


WRITERS = [write_folder, write_zip, write_parquet]
Writer = Callable[[Path, Files], Path]


@pytest.fixture(params=WRITERS, ids=lambda w: w.__name__.removeprefix("write_"))
def writer(request: pytest.FixtureRequest) -> Writer:
    return request.param  # type: ignore[no-any-return]


FILES = {f"val2017/{i}.png": png((i, 0, 0)) for i in range(9)} | {
    "top.png": png((0, 9, 0)),
    "a#b ü.png": png((0, 0, 9)),
}


def test_keys_bytes_and_pictures(writer: Writer, tmp_path: Path) -> None:
    path = writer(tmp_path, FILES)
    store = open_store(path)
    assert isinstance(store, ImageStore)
    assert store.location == str(path)
    assert sorted(store.keys()) == sorted(FILES)
    assert {key: store.read(key) for key in FILES} == FILES
    assert open_image(store, "val2017/3.png#xywh=1,1,2,2").size == (2, 2)


def test_a_key_is_found_without_its_folders_or_in_the_one_folder_that_has_it(writer: Writer, tmp_path: Path) -> None:
    store = open_store(writer(tmp_path, FILES))
    assert store.read("coco/images/top.png") == FILES["top.png"]
    assert store.read("coco/val2017/3.png") == FILES["val2017/3.png"]
    assert store.read("3.png") == FILES["val2017/3.png"]
    assert "3.png" in store
    assert "10.png" not in store


def test_a_key_in_two_folders_is_not_guessed(writer: Writer, tmp_path: Path) -> None:
    store = open_store(writer(tmp_path, {"train/1.png": png((1, 1, 1)), "val/1.png": png((2, 2, 2))}))
    with pytest.raises(ImageError, match=r"several folders: train/1\.png, val/1\.png") as caught:
        store.read("1.png")
    assert caught.value.code == "missing-image"


@pytest.mark.parametrize(
    "key", ["no.png", "", "../pictures/top.png", "/etc/hostname", "x" * 5000, "a\0b", "val2017", "\ud800"]
)
def test_what_is_not_there_is_a_finding(writer: Writer, tmp_path: Path, key: str) -> None:
    store = open_store(writer(tmp_path, FILES | {"z.png": b""}))
    if key == "../pictures/top.png":  # its last part is a picture of the store; the path that leads out is not used
        assert store.read(key) == FILES["top.png"]
        return
    assert key not in store
    with pytest.raises(ImageError) as caught:
        store.read(key)
    assert caught.value.code == "missing-image"


def test_many_threads_read_what_one_reads(writer: Writer, tmp_path: Path) -> None:
    store = open_store(writer(tmp_path, FILES))
    wanted = list(FILES) * 60
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(store.read, wanted)) == [FILES[key] for key in wanted]


def test_a_store_can_be_sent_to_another_process(writer: Writer, tmp_path: Path) -> None:
    store = open_store(writer(tmp_path, FILES))
    store.read("top.png")
    assert pickle.loads(pickle.dumps(store)).read("top.png") == FILES["top.png"]
    assert pickle.loads(pickle.dumps(NO_IMAGES)) is NO_IMAGES


def test_image_errors_can_be_sent_too() -> None:
    error = pickle.loads(pickle.dumps(ImageError("bad-crop", "what", where="here", hint="do")))
    assert (error.code, str(error)) == ("bad-crop", "here: what; do")


def test_links_out_of_a_folder(tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    outside.write_bytes(png((1, 2, 3)))
    folder = write_folder(tmp_path, {"in.png": png((0, 0, 0))})
    (folder / "link.png").symlink_to(outside)
    (folder / "near.png").symlink_to("in.png")
    assert open_store(folder).read("link.png") == outside.read_bytes()
    careful = open_store(folder, follow_links=False)
    assert careful.read("near.png") == careful.read("in.png")
    for store in (careful, pickle.loads(pickle.dumps(careful))):
        with pytest.raises(ImageError) as caught:
            store.read("link.png")
        assert caught.value.code == "unsafe-image"


def test_pipes_and_folders_are_no_pictures(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"in.png": png((0, 0, 0))})
    os.mkfifo(folder / "pipe.png")
    (folder / "folder.png").mkdir()
    store = open_store(folder)
    assert list(store.keys()) == ["in.png"]
    for key in ("pipe.png", "folder.png"):
        with pytest.raises(ImageError):
            store.read(key)


def test_names_that_an_archive_holds_twice_are_known(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as z:
        z.writestr("a.png", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            z.writestr("a.png", b"2")
        z.writestr("__MACOSX/._a.png", b"junk")
    store = open_store(tmp_path / "x.zip")
    assert store.read("a.png") == b"2"
    assert list(store.keys()) == ["a.png"]
    assert store.repeated() == ["a.png"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["x.zip", "x.parquet"])
@pytest.mark.parametrize("data", [b"", b"no archive at all" * 100], ids=["empty", "text"])
def test_files_that_are_no_archives_say_so(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError) as caught:
        open_store(tmp_path / name).read("a.png")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("writer", [write_zip, write_parquet])
def test_archives_cut_short(writer: Writer, tmp_path: Path) -> None:
    path = writer(tmp_path, FILES)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError):
        [open_store(path).read(key) for key in FILES]


def test_a_damaged_zip_entry_is_a_finding(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as z:
        z.writestr("a.png", b"A" * 100)
        z.writestr("b.png", b"B" * 100)
    whole = (tmp_path / "x.zip").read_bytes()
    locked = bytearray(whole)
    for place in (6, whole.index(b"PK\x01\x02") + 8):  # the flags of the first entry, in front of it and in the list
        locked[place] |= 1
    for data, says in ((whole.replace(b"A" * 100, b"A" * 99 + b"X"), "damaged here"), (locked, "encrypted; unpack it")):
        (tmp_path / "x.zip").write_bytes(data)
        store = open_store(tmp_path / "x.zip")
        assert store.read("b.png") == b"B" * 100
        with pytest.raises(ImageError, match=says) as caught:
            store.read("a.png")
        assert caught.value.code == "undecodable-image"


@pytest.mark.parametrize(
    ("location", "message"), [("nowhere", "no such"), ("a.txt", "neither a folder nor an archive of images")]
)
def test_places_that_are_none(location: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataError, match=message):
        open_store(tmp_path / location)


# -- Parquet, as data sets are stored --------------------------------------------------------------------------------


def test_a_folder_of_parquet_shards_is_one_store(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for i in range(3):
        pq.write_table(image_table({f"{i}.png": png((i, i, i))}), tmp_path / "data" / f"test-0000{i}-of-00003.parquet")
    store = open_store(tmp_path)
    assert isinstance(store, ParquetStore)
    assert list(store.keys()) == ["0.png", "1.png", "2.png"]
    assert store.read("2.png") == png((2, 2, 2))


def test_pictures_without_a_path_are_named_by_column_and_row(tmp_path: Path) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": bytes([i]), "path": None} for i in range(5)]
    table = pa.table({"image_0": pa.array(rows, kind), "image_1": pa.array([None, *rows[1:]], kind)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    store = open_store(tmp_path / "x.parquet")
    assert store.read("image_0/4") == b"\x04"
    assert store.read("image_1/3") == b"\x03"
    with pytest.raises(ImageError, match="no bytes"):
        store.read("image_1/0")


def test_row_groups_leave_the_memory_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{i}.png": bytes([i]) * 1000 for i in range(40)}
    pq.write_table(image_table(files), tmp_path / "x.parquet", row_group_size=4)
    monkeypatch.setattr(ParquetStore, "_cache_bytes", 10_000)
    store = open_store(tmp_path / "x.parquet")
    assert isinstance(store, ParquetStore)
    assert {key: store.read(key) for key in files} == files
    assert len(store._groups) <= 2


def test_parquet_without_pictures(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="no image column"):
        open_store(tmp_path / "x.parquet").read("a")
