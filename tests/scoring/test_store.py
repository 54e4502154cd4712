"""The store: what was written is served, what was damaged is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creperie.core import UsageError, cache_home
from creperie.models import Fingerprint
from creperie.scoring import ResultStore, segments, text_keys
from creperie.scoring.segments import SegmentFolder
from creperie.scoring.store import pair_keys, parse_size

MODEL = Fingerprint(uri="test:model", architecture="Test", weights="0" * 64)


def vectors_of(texts: list[str], dim: int = 4) -> np.ndarray:
    """Vectors that can be recognised: a function of the text."""
    return text_keys(texts)[:, :dim].astype(np.float32) + 0.5


def fill(store: ResultStore, texts: list[str], batch: int = 3) -> None:
    shelf = store.shelf(MODEL, "text")
    for i in range(0, len(texts), batch):
        part = texts[i : i + batch]
        shelf.add(text_keys(part), vectors_of(part), np.arange(len(part), dtype=np.int32))
    shelf.close()


def find(store: ResultStore, texts: list[str]) -> Any:
    return store.shelf(MODEL, "text").find(text_keys(texts))


def files_of(store: ResultStore) -> list[Path]:
    return sorted(store.root.rglob("*.seg"))


def test_finds_what_was_added_and_nothing_else(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    fill(store, ["a", "b", "c", "d"])
    asked = ["x", "d", "a", "y", "a"]
    found = find(store, asked)
    assert found.rows.tolist() == [1, 2, 4]
    np.testing.assert_array_equal(found.vectors, vectors_of(["d", "a", "a"]))
    assert found.cut.tolist() == [0, 0, 0]
    assert find(store, ["c"]).cut.tolist() == [2]
    other = Fingerprint(uri="test:model", architecture="Test", weights="1" * 64)
    for shelf, keys in ((store.shelf(MODEL, "text"), []), (store.shelf(MODEL, "image"), ["a"])):
        assert not len(shelf.find(text_keys(keys)).rows)
    for empty in (store.shelf(other, "text"), SegmentFolder(tmp_path / "none")):
        assert not len(empty.find(text_keys(["a"])).rows)


@pytest.mark.parametrize("shape", [(), (5,), (3, 5)])
def test_scores_vectors_and_query_matrices_keep_their_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=(7, *shape)).astype(np.float32)
    keys = text_keys([str(i) for i in range(7)])
    shelf = ResultStore(tmp_path).shelf(MODEL, "image")
    shelf.add(keys, values)
    found = ResultStore(tmp_path).shelf(MODEL, "image").find(keys[::-1])
    np.testing.assert_array_equal(found.vectors, values[::-1])
    assert not found.cut.any()  # nothing was said to be cut off


def test_pair_keys_depend_on_both_parts() -> None:
    a, b = text_keys(["a"]), text_keys(["b"])
    assert len({pair_keys(x, y).tobytes() for x in (a, b) for y in (a, b)}) == 4


@given(data=st.data())
def test_a_file_cut_at_any_byte_serves_whole_batches_only(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = ResultStore(tmp_path_factory.mktemp("store"))
    texts = [f"caption {i}" for i in range(11)]
    fill(store, texts)
    (path,) = files_of(store)
    size = path.stat().st_size
    keep = data.draw(st.integers(0, size))
    os.truncate(path, keep)
    found = find(store, texts)
    np.testing.assert_array_equal(found.vectors.reshape(-1, 4), vectors_of(texts)[found.rows])
    whole = np.cumsum([_block_bytes(n, 4) for n in (3, 3, 3, 2)])
    assert len(found.rows) == sum(n for n, end in zip((3, 3, 3, 2), whole, strict=True) if end <= keep)


def _block_bytes(records: int, dim: int) -> int:
    """Header of 56 bytes, keys of 32, one word for the tokens cut, the vector."""
    return 56 + records * (32 + 4 + 4 * dim)


@given(data=st.data())
def test_a_flipped_bit_is_never_served(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = ResultStore(tmp_path_factory.mktemp("store"))
    texts = [f"caption {i}" for i in range(12)]
    fill(store, texts)
    (path,) = files_of(store)
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    found = find(store, texts)
    assert len(found.rows) == 9, "one batch of three is lost, the other three are served"
    np.testing.assert_array_equal(found.vectors, vectors_of(texts)[found.rows])
    census = store.entries(verify=True)[0].kinds["text"]
    assert census.damaged == 1 or census.torn > 0, "and the loss is seen"


def test_a_sound_copy_is_served_beside_a_damaged_one(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    fill(store, ["a", "b"])
    fill(store, ["a", "b"])
    last = files_of(store)[-1]
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)
    found = find(store, ["a", "b"])
    np.testing.assert_array_equal(found.vectors, vectors_of(["a", "b"]))


def test_many_files_are_merged_and_a_file_in_use_is_left_alone(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    busy = store.shelf(MODEL, "text")
    busy.add(text_keys(["busy"]), vectors_of(["busy"]))
    for i in range(16):
        fill(store, [f"t{i}", "shared"])
    assert len(files_of(store)) == 2, "sixteen finished files became one, beside the one being written"
    busy.add(text_keys(["still"]), vectors_of(["still"]))
    busy.close()
    asked = ["busy", "still", "shared", *(f"t{i}" for i in range(16))]
    found = find(store, asked)
    np.testing.assert_array_equal(found.vectors, vectors_of(asked))
    assert store.entries()[0].records == len(asked)


WRITER = """
import sys
from pathlib import Path
from creperie.models.protocols import Fingerprint
from creperie.scoring.store import ResultStore, text_keys
import numpy as np
model = Fingerprint(uri="test:model", architecture="Test", weights="0" * 64)
for round_ in range(20):
    texts = [f"{sys.argv[2]}/{round_}/{i}" for i in range(10)] + ["shared"]
    shelf = ResultStore(Path(sys.argv[1])).shelf(model, "text")
    shelf.add(text_keys(texts), text_keys(texts)[:, :4].astype(np.float32) + 0.5)
    shelf.close()
"""


def test_large_files_are_rewritten_only_by_a_merge_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ResultStore(tmp_path)
    for text in ("a", "b", "c"):
        fill(store, [text])
    files = files_of(store)
    (size,) = {f.stat().st_size for f in files}
    folder = SegmentFolder(files[0].parent)
    monkeypatch.setattr(segments, "ROTATE", 2 * size)  # half of it is the smallest file that counts as large
    assert not folder.merge(at_least=2)
    monkeypatch.setattr(segments, "ROTATE", 2 * size + 2)
    assert folder.merge(at_least=3)
    monkeypatch.setattr(segments, "ROTATE", 2)
    assert folder.merge(at_least=1)
    assert len(files_of(store)) == 1
    assert find(store, ["c", "a", "b"]).rows.tolist() == [0, 1, 2]


def test_the_time_of_last_use_is_written_once_an_hour(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    fill(store, ["a"])
    (file,) = files_of(store)
    for age, touched in ((3000, False), (4000, True)):
        before = time.time() - age
        os.utime(file, (before, before))
        find(store, ["a"])
        assert (file.stat().st_mtime > before + 1) is touched


def test_processes_write_and_merge_at_the_same_time(tmp_path: Path) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(who)]) for who in range(3)]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    asked = [f"{who}/{r}/{i}" for who in range(3) for r in range(20) for i in range(10)] + ["shared"]
    found = ResultStore(tmp_path).shelf(MODEL, "text").find(text_keys(asked))
    assert len(found.rows) == len(asked)
    np.testing.assert_array_equal(found.vectors, vectors_of(asked))


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    for name in ("old", "used", "new"):
        fill(store, [name])
    for age, path in zip((9000, 8000, 7000), files_of(store), strict=True):
        os.utime(path, (time.time() - age, time.time() - age))
    find(store, ["old"])
    size = files_of(store)[0].stat().st_size
    assert store.trim(limit=2 * size) == size
    left = find(store, ["old", "used", "new"])
    assert left.rows.tolist() == [0, 2]


def test_files_that_are_being_written_are_never_evicted(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    fill(store, ["kept before"])
    shelf = store.shelf(MODEL, "text")
    shelf.add(text_keys(["being written"]), vectors_of(["being written"]))
    assert store.trim(limit=0) > 0
    shelf.close()
    left = find(store, ["kept before", "being written"])
    assert left.rows.tolist() == [1]


def test_clear_one_model_by_uri_or_key(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    fill(store, ["a"])
    with pytest.raises(UsageError, match="did you mean 'test:model'"):
        store.clear("test:modell")
    assert store.clear("test:model") > 0
    assert store.entries() == []


def test_repair_drops_what_is_damaged(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    fill(store, ["a", "b", "c", "d"])
    (path,) = files_of(store)
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    assert store.entries(verify=True)[0].kinds["text"].damaged == 1
    store.repair()
    after = store.entries(verify=True)[0].kinds["text"]
    assert (after.damaged, after.torn, after.records) == (0, 0, 1)


def test_ten_thousand_keys_in_any_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 256, (10_000, 32), dtype=np.uint8)
    values = rng.normal(size=(10_000, 16)).astype(np.float32)
    shelf = ResultStore(tmp_path).shelf(MODEL, "text")
    for i in range(0, 10_000, 512):
        shelf.add(keys[i : i + 512], values[i : i + 512])
    shelf.close()
    order = rng.permutation(10_000)
    rows = ResultStore(tmp_path).shelf(MODEL, "text").find(keys[order])
    np.testing.assert_array_equal(rows.vectors, values[order])


def test_sizes_and_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "own"))
    assert cache_home() == tmp_path / "own"
    monkeypatch.delenv("CREPERIE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_home() == tmp_path / "xdg" / "creperie"
    with pytest.raises(UsageError, match="is not a size"):
        parse_size("lots")


def test_sizes_have_units_of_1024() -> None:
    assert [parse_size(f"1{unit}") for unit in ("", "K", "M", "G", "T")] == [1024**k for k in range(5)]


def test_clear_forgets_digests_of_files_too(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    with store.memo("images").writer() as writer:
        writer.append(text_keys(["a"]), np.zeros((1, 32), np.uint8))
    assert len(store.memo("images").find(text_keys(["a"])).rows) == 1
    assert store.clear() > 32
    assert len(store.memo("images").find(text_keys(["a"])).rows) == 0
