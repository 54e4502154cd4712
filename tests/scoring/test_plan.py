"""The plan: everything once, whatever it is called and however often it is used."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from foils import foil_items

from creperie.bench import PAIRED, Benchmark, Item, choice, from_items, open_store
from creperie.scoring import ResultStore, digests
from creperie.scoring.plan import plan


def test_images_and_captions_once_over_all_benchmarks(triples: Benchmark, paired: Benchmark) -> None:
    found = plan([triples, paired])
    captions = {c for bench in (triples, paired) for item in bench for c in item.captions}
    assert sorted(found.texts) == sorted(captions)
    assert len(found.images) == 8
    assert found.items == 47


def test_cells_name_their_images_and_captions(triples: Benchmark, paired: Benchmark) -> None:
    found = plan([triples, paired])
    for part, bench in zip(found.parts, (triples, paired), strict=True):
        images, captions = part.pairs
        expected = [(i, c) for item in bench for i in item.images for c in item.captions]
        assert [(found.images[i].reference, found.texts[c]) for i, c in zip(images, captions, strict=True)] == expected
        _, a, b = part.caption_pairs
        expected = [(c, d) for item in bench for c in item.captions for d in item.captions]
        assert [(found.texts[i], found.texts[j]) for i, j in zip(a, b, strict=True)] == expected


def test_items_of_all_shapes_together(pictures: Path) -> None:
    items = [
        Item("0", "a", (), ("x", "y", "z"), choice(2, 1)),
        Item("1", "a", ("0.png", "1.png"), ("x", "y"), PAIRED),
        Item("2", "a", ("0.png",), ("z",), choice(1, 0)),
    ]
    bench = from_items("mixed", items, images=open_store(str(pictures)))
    (part,) = plan([bench]).parts
    assert part.pairs[0].tolist() == [-1, -1, -1, 0, 0, 1, 1, 0]
    assert part.pairs[1].tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
    assert part.has_images.tolist() == [False, True, True]


def test_the_same_bytes_under_two_names_are_one_image_and_crops_are_apart(pictures: Path) -> None:
    shutil.copy(pictures / "0.png", pictures / "copy.png")
    references = ("0.png", "copy.png", "0.png#xywh=0,0,8,8", "0.png#xywh=8,0,8,8", "copy.png#xywh=0,0,8,8")
    items = [Item(str(i), "a", (r,), ("x", "y"), choice(1, 1)) for i, r in enumerate(references)]
    (part,) = (found := plan([from_items("b", items, images=open_store(str(pictures)))])).parts
    assert part.images.tolist() == [0, 0, 1, 2, 1]
    assert len(found.images) == 3


def test_missing_images_are_named_not_fatal(pictures: Path) -> None:
    items = [Item(str(i), "a", (f"{i}.png",), ("x", "y"), choice(1, 1)) for i in (0, 98, 1, 99)]
    found = plan([from_items("b", items, images=open_store(str(pictures)))])
    broken = [(f.code, found.images[f.row].reference) for f in found.broken]
    assert broken == [("missing-image", "98.png"), ("missing-image", "99.png")]


def test_without_images_none_is_read(triples: Benchmark) -> None:
    found = plan([triples], images=False)
    assert found.images == []
    assert (found.parts[0].pairs[0] == -1).all()


def test_files_are_read_once_until_they_change(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    store = open_store(str(pictures))
    whole = type(store).read
    monkeypatch.setattr(type(store), "read", lambda self, key: (reads.append(key), whole(self, key))[1])
    items = foil_items([("x", "y")] * 8, subset="a", images="{}.png")
    bench = from_items("b", items, images=store)
    monkeypatch.setattr("creperie.core.digests.RACY_SECONDS", 0)
    first = plan([bench])
    assert len(reads) == 8
    again = plan([bench])
    assert len(reads) == 8
    np.testing.assert_array_equal(first.image_keys, again.image_keys)
    before = (pictures / "3.png").stat()
    (pictures / "3.png").write_bytes((pictures / "4.png").read_bytes())
    os.utime(pictures / "3.png", ns=(before.st_mtime_ns, before.st_mtime_ns))  # the time of modification proves nothing
    changed = plan([bench])
    assert reads[8:] == ["3.png"]
    assert len(changed.images) == 7


def test_a_file_that_changed_just_now_is_not_remembered(pictures: Path) -> None:
    store = ResultStore()
    found = digests.digest_images(open_store(str(pictures)), ["0.png"], store.memo("image"))
    assert len(found.keys) == 1
    assert store.memo("image").census().records == 0


def test_archives_are_remembered_too(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("creperie.core.digests.RACY_SECONDS", 0)
    archive = shutil.make_archive(str(tmp_path / "pictures"), "zip", pictures)
    store = ResultStore()
    references = [f"{i}.png" for i in range(8)]
    zipped = digests.digest_images(open_store(archive), references, store.memo("image"))
    assert store.memo("image").census().records == 8
    plain = digests.digest_images(open_store(str(pictures)), references, store.memo("image"))
    np.testing.assert_array_equal(zipped.keys, plain.keys)


def test_a_plan_reads_columns_never_items(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 10_000
    rng = np.random.default_rng(0)
    starts = pa.array(np.arange(0, 3 * n + 1, 3), pa.int32())
    captions = pa.array([f"a caption of some words, number {i}" for i in rng.integers(0, n, 3 * n)])
    table = pa.table(
        {
            "id": pa.array([str(i) for i in range(n)]),
            "subset": pa.array(["a"] * n),
            "images": pa.ListArray.from_arrays(pa.array(np.zeros(n + 1), pa.int32()), pa.array([], pa.string())),
            "captions": pa.ListArray.from_arrays(starts, captions),
            "match": pa.ListArray.from_arrays(starts, pa.array(np.tile([True, True, False], n))),
        }
    )
    monkeypatch.setattr(Benchmark, "__iter__", None)
    found = plan([Benchmark("big", table)])
    assert len(found.texts) == len(set(captions.to_pylist()))
