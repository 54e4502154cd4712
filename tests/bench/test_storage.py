"""Saving and loading: nothing is lost, nothing half-written stays, damage is said in one line."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from older import without_checksums
from PIL import Image

from creperie.bench import (
    NO_IMAGES,
    Benchmark,
    ImageError,
    Info,
    Item,
    Parquet,
    ProvenanceStep,
    SkippedRecord,
    choice,
    from_items,
    load_folder,
    new_folder,
    open_store,
    save,
    table_of,
)
from creperie.bench.hashing import content_hash, hash_pieces
from creperie.core import CreperieError, DataError, UsageError


def bench(n: int = 5, **parts: Any) -> Benchmark:
    rows = [Item(str(i), "swap", (f"{i}.png",), (f"p{i} ", f"n{i}"), choice(1, 1), {"n": i}) for i in range(n)]
    return from_items("mine", rows, **parts)


# -- round trips -----------------------------------------------------------------------------------------------------


def test_any_items_come_back(
    any_items: st.SearchStrategy[list[Item]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(any_items)
    def holds(items: list[Item]) -> None:
        folder = tmp_path_factory.mktemp("any") / "b"
        made = from_items("any", items)
        loaded = save(made, folder)
        assert list(loaded) == items
        assert loaded.hash == made.hash == content_hash(loaded.table)
        assert (load_folder(folder).checked_hash, loaded.columns) == (made.hash, made.columns)

    holds()


def test_everything_beside_the_items_comes_back(tmp_path: Path) -> None:
    whole = bench(
        info=Info("Title", "What it is", "MIT", "https://example.org/x", "Me (2024)"),
        provenance=(
            ProvenanceStep("read", {"format": "x", "files": ["a"], "n": np.int64(3), "path": Path("p")}, ("ab",)),
        ),
        skipped=(SkippedRecord("swap", "9", "why ü"),),
    )
    loaded = save(whole, tmp_path / "b")
    assert (loaded.name, loaded.info, loaded.skipped) == ("mine", whole.info, whole.skipped)
    assert loaded.provenance == (ProvenanceStep("read", {"format": "x", "files": ["a"], "n": 3, "path": "p"}, ("ab",)),)


def test_loading_is_lazy(tmp_path: Path) -> None:
    save(bench(), tmp_path / "b")
    loaded = load_folder(tmp_path / "b")
    assert isinstance(loaded.source, Parquet)
    assert len(loaded) == 5
    assert loaded.subsets == {"swap": 5}
    assert len(loaded.filter(pc.field("tag.n") > 2)) == 2
    assert "table" not in loaded.__dict__
    assert loaded.table.num_rows == 5


def test_a_wrong_condition_on_disk_is_no_damaged_file(tmp_path: Path) -> None:
    loaded = save(bench(), tmp_path / "b")
    with pytest.raises(UsageError, match="cannot be applied"):
        loaded.filter(pc.field("nope") == 1)


# -- what cannot be stored -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"captions": ("ok", "half \ud800 pair")},
            "item swap/1: captions: 'half .ud800 pair' holds an unpaired surrogate",
        ),
        ({"images": ("\udfff",)}, "images"),
        ({"id": "\ud800"}, "id"),
        ({"tags": {"kind": "\ud800"}}, "tag kind"),
        ({"tags": {"\ud800": "x"}}, "tag name"),
        ({"tags": {"n": 10**400}}, "too large"),
        ({"captions": ("ok", None)}, "captions: None is not a str"),
        ({"captions": ("ok", 3)}, "captions: 3 is not a str"),
        ({"match": ((True, 2),)}, "match: 2 is not a bool"),
    ],
)
def test_what_is_no_text_is_refused_with_its_item(change: dict[str, Any], message: str) -> None:
    parts: dict[str, Any] = {
        "id": "1",
        "subset": "swap",
        "images": ("a",),
        "captions": ("a", "b"),
        "match": choice(1, 1),
    }
    with pytest.raises(DataError, match=message) as caught:
        table_of([Item("0", "swap", ("a",), ("a", "b"), choice(1, 1)), Item(**(parts | change))])
    str(caught.value).encode()  # can be printed


# -- the hash --------------------------------------------------------------------------------------------------------


def test_the_hash_does_not_depend_on_chunks(any_items: st.SearchStrategy[list[Item]]) -> None:
    @given(any_items, st.integers(1, 5))
    def holds(items: list[Item], size: int) -> None:
        table = table_of(items)
        pieces = [table.slice(i, size) for i in range(0, len(table), size)] or [table]
        assert content_hash(pa.concat_tables(pieces)) == content_hash(table)
        assert content_hash(table.select(list(reversed(table.column_names)))) == content_hash(table)

    holds()


def test_the_hash_does_not_depend_on_chunks_of_many_items() -> None:
    table = bench(1000).table
    many = pa.concat_tables([table.slice(7)] * 70)
    assert content_hash(many) == content_hash(many.combine_chunks())
    read = (many.slice(start, 66_000) for start in (0, 66_000))  # as from two files
    assert hash_pieces(sorted(many.column_names), read) == content_hash(many)


def test_any_change_changes_the_hash(any_items: st.SearchStrategy[list[Item]]) -> None:
    @given(any_items, any_items)
    def holds(one: list[Item], two: list[Item]) -> None:
        assume(one != two)
        # -0.0 equals 0.0 for Python, but is other content
        assert content_hash(table_of(one)) != content_hash(table_of(two)) or repr(one) == repr(two)

    holds()


ITEM = Item("1", "s", ("a.png",), ("p", "n"), choice(1, 1), {"n": 1.0})
CHANGES: dict[str, dict[str, Any]] = {
    "id": {"id": "2"},
    "subset": {"subset": "t"},
    "image": {"images": ("b.png",)},
    "blank": {"captions": ("p ", "n")},
    "border": {"captions": ("pn", "")},
    "match": {"match": choice(2, 0)},
    "tag value": {"tags": {"n": 2.0}},
    "tag kind": {"tags": {"n": "1.0"}},
    "tag name": {"tags": {"m": 1.0}},
    "no tag": {"tags": {}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_small_changes_change_the_hash(name: str) -> None:
    assert content_hash(table_of([replace(ITEM, **CHANGES[name])])) != content_hash(table_of([ITEM]))


def test_order_is_content_and_empty_tag_columns_are_not() -> None:
    one, two = replace(ITEM, id="2"), ITEM
    assert content_hash(table_of([one, two])) != content_hash(table_of([two, one]))
    table = table_of([one])
    assert content_hash(table.append_column("tag.none", pa.nulls(1, pa.string()))) == content_hash(table)


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(bench(50), tmp_path / "b")
    return tmp_path / "b"


def data_file(folder: Path) -> Path:
    return next((folder / "data").glob("*.parquet"))


def assert_one_line(error: CreperieError, folder: Path) -> None:
    assert str(folder) in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("keep", [0, 10, 500, -1, -8])
def test_truncated_and_missing_parquet(folder: Path, keep: int) -> None:
    file = data_file(folder)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError) as caught:
        load_folder(folder)
    assert_one_line(caught.value, folder)
    file.unlink()
    with pytest.raises(DataError, match=r"no items \(data/\*\.parquet\)"):
        load_folder(folder)


def test_parquet_damaged_inside(folder: Path) -> None:
    file = data_file(folder)
    data = bytearray(file.read_bytes())
    data[4:600] = b"\xff" * 596
    file.write_bytes(data)
    with pytest.raises(DataError, match="does not match its checksum") as caught:
        list(load_folder(folder))
    assert_one_line(caught.value, folder)
    with pytest.raises(DataError, match="cannot be read") as caught:
        list(load_folder(without_checksums(folder)))
    assert_one_line(caught.value, folder)


def change_manifest(folder: Path, **changes: Any) -> None:
    path = without_checksums(folder) / "creperie.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '{"creperie": 1}', "\x00", "[" * 100_000, '{"creperie": 1, "creperie": 1}'],
)
def test_manifests_that_are_none(folder: Path, text: str) -> None:
    (folder / "creperie.json").write_text(text)
    with pytest.raises(DataError) as caught:
        load_folder(folder)
    assert_one_line(caught.value, folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"creperie": 99}, "version 99"),
        ({"items": 49}, "has 50 items, but its manifest states 49"),
        ({"items": "many"}, "not a complete manifest"),
        ({"info": {"colour": "red"}}, "not a complete manifest"),
        ({"provenance": [3]}, "not a complete manifest"),
        ({"skipped": [{"id": "1"}]}, "not a complete manifest"),
    ],
)
def test_manifests_with_wrong_parts(folder: Path, change: dict[str, Any], message: str) -> None:
    change_manifest(folder, **change)
    with pytest.raises(DataError, match=message) as caught:
        load_folder(folder)
    assert_one_line(caught.value, folder)


def test_a_folder_that_is_no_benchmark(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"creperie\.json"):
        load_folder(tmp_path)


def rewrite(folder: Path, change: Any) -> None:
    pq.write_table(change(pq.read_table(data_file(folder))), data_file(without_checksums(folder)))


def test_changed_items_are_found_when_asked(folder: Path) -> None:
    rewrite(folder, lambda t: t.set_column(0, "id", pa.array([f"x{i}" for i in range(50)])))
    assert load_folder(folder)[0].id == "x0"
    with pytest.raises(DataError, match="do not match the hash"):
        _ = load_folder(folder).checked_hash


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("captions", [["a", None]] * 50, "'captions' has empty cells"),
        ("match", [[True]] * 50, "item swap/0 has 1 match cells, expected 1 × 2"),
        ("match", [None] * 50, "'match' has empty cells"),
    ],
)
def test_tables_edited_by_hand(folder: Path, column: str, values: list[Any], message: str) -> None:
    def change(table: pa.Table) -> pa.Table:
        field = table.schema.field(column)
        return table.set_column(table.column_names.index(column), column, pa.array(values, field.type))

    rewrite(folder, change)
    with pytest.raises(DataError, match=message) as caught:
        list(load_folder(folder))
    assert_one_line(caught.value, folder)


def test_text_that_is_none(folder: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        raw = pa.array([b"\xff\xfe"] * 50, pa.binary())
        return table.set_column(0, "id", pa.Array.from_buffers(pa.string(), 50, raw.buffers()))

    rewrite(folder, change)
    with pytest.raises(DataError, match="not text") as caught:
        list(load_folder(folder))
    assert_one_line(caught.value, folder)


def test_a_column_is_missing(folder: Path) -> None:
    rewrite(folder, lambda t: t.drop_columns(["match"]))
    with pytest.raises(DataError, match="lacks the column 'match'"):
        load_folder(folder)


def test_lists_whose_elements_have_another_name_are_read(folder: Path) -> None:
    """Other writers call the elements of a list `element`; the content is the same."""

    def change(table: pa.Table) -> pa.Table:
        named = pa.list_(pa.field("element", pa.string()))
        return table.set_column(3, "captions", table.column("captions").cast(named)).replace_schema_metadata(None)

    rewrite(folder, change)
    assert list(load_folder(folder)) == list(bench(50))
    assert load_folder(folder).checked_hash == bench(50).hash


# -- folders that appear completely or not at all --------------------------------------------------------------------


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        with new_folder(path) as draft:
            (draft / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_replacement_leaves_the_old(folder: Path) -> None:
    def fail() -> None:
        with new_folder(folder, replace_old=True):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert len(load_folder(folder)) == 50
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("force", [False, True])
def test_of_two_writers_the_second_replaces_the_first_only_if_asked(tmp_path: Path, force: bool) -> None:
    def write() -> None:
        with new_folder(tmp_path / "out", replace_old=force) as draft:
            save(bench(3), draft)
            save(bench(2), tmp_path / "out")  # another process is faster

    if force:
        write()
    else:
        with pytest.raises(UsageError, match="this folder is not empty"):
            write()
    assert len(load_folder(tmp_path / "out")) == (3 if force else 2)
    assert [p.name for p in tmp_path.iterdir()] == ["out"], "no draft is left behind"


def test_what_is_there_is_not_overwritten(folder: Path) -> None:
    with pytest.raises(UsageError, match="`force=True`"):
        save(bench(), folder)
    assert len(save(bench(3), folder, force=True)) == 3
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_force_spares_what_creperie_did_not_write(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="did not write"):
        save(bench(), tmp_path / "home", force=True)
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years of work"


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(UsageError, match="found a file"):
        save(bench(), tmp_path / "out", force=True)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert len(save(bench(), tmp_path / "out")) == 5


# -- images ----------------------------------------------------------------------------------------------------------


def pictures(folder: Path, n: int = 5) -> Path:
    folder.mkdir()
    for i in range(n):
        out = io.BytesIO()
        Image.new("RGB", (3, 2), (i, i, i)).save(out, "PNG")
        (folder / f"{i}.png").write_bytes(out.getvalue())
    return folder


def test_images_are_found_again_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = pictures(tmp_path / "pictures")
    save(bench(images=open_store(place)), tmp_path / "out" / "b")
    assert json.loads((tmp_path / "out" / "b" / "creperie.json").read_text())["images"] == "../../pictures"
    monkeypatch.chdir("/")
    assert load_folder(tmp_path / "out" / "b").images.read("2.png") == (place / "2.png").read_bytes()


def test_copied_images_travel_with_the_folder(tmp_path: Path) -> None:
    place = pictures(tmp_path / "pictures", 4)  # the fifth is missing
    save(bench(images=open_store(place)), tmp_path / "b", copy_images=True)
    os.rename(tmp_path / "b", tmp_path / "moved")  # noqa: PTH104
    store = load_folder(tmp_path / "moved").images
    assert sorted(store.keys()) == [f"{i}.png" for i in range(4)]
    assert store.read("2.png") == (place / "2.png").read_bytes()


def test_replacing_a_folder_keeps_its_own_images(tmp_path: Path) -> None:
    save(bench(images=open_store(pictures(tmp_path / "pictures"))), tmp_path / "b", copy_images=True)
    loaded = load_folder(tmp_path / "b")
    kept = save(loaded.filter(pc.field("tag.n") > 2), tmp_path / "b", force=True)
    assert sorted(kept.images.keys()) == ["3.png", "4.png"]


def test_images_that_are_gone(tmp_path: Path) -> None:
    place = pictures(tmp_path / "pictures")
    save(bench(images=open_store(place)), tmp_path / "b")
    place.rename(tmp_path / "elsewhere")
    assert load_folder(tmp_path / "b").images is NO_IMAGES


def test_links_in_a_benchmark_do_not_lead_out(tmp_path: Path) -> None:
    save(bench(images=open_store(pictures(tmp_path / "pictures"))), tmp_path / "b", copy_images=True)
    (tmp_path / "b" / "images" / "0.png").unlink()
    (tmp_path / "b" / "images" / "0.png").symlink_to("/etc/hostname")
    with pytest.raises(ImageError, match="leads out"):
        load_folder(tmp_path / "b").images.read("0.png")


def test_keys_that_lead_out_are_not_written(tmp_path: Path) -> None:
    pictures(tmp_path / "pictures", 1)
    evil = from_items(
        "evil", [Item("0", "s", ("../../0.png",), ("a",), choice(1, 0))], images=open_store(tmp_path / "pictures")
    )
    save(evil, tmp_path / "out" / "b", copy_images=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "pictures"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["b"]
