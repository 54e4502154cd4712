"""Tables of captions: which column is what, and that nothing in a cell changes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creperie.bench import (
    PAIRED,
    Benchmark,
    Item,
    Roles,
    choice,
    find_format,
    from_items,
    kind_of_file,
    read_format,
    read_table,
    write_format,
)
from creperie.bench import columns as columns_module
from creperie.core import CreperieError

MANY = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
ROWS = [
    {"file": "7.jpg", "caption": "A crab, red ", "foil": "A gull", "foil2": "A rock", "kind": "swap", "n": 3},
    {"file": "8.jpg", "caption": 'A "big" crab', "foil": "A\nsea", "foil2": None, "kind": "add", "n": 4.5},
    {"file": "9.jpg", "caption": None, "foil": "x", "foil2": None, "kind": "add", "n": None},
]
ROLES = Roles(("file",), ("caption",), ("foil", "foil2"), ("kind",), (), ("n",))
WANTED = [
    Item("0", "swap", ("7.jpg",), ("A crab, red ", "A gull", "A rock"), choice(1, 2), {"n": 3.0}),
    Item("1", "add", ("8.jpg",), ('A "big" crab', "A\nsea"), choice(1, 1), {"n": 4.5}),
]


def put(folder: Path, kind: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    path = folder / f"mine.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), delimiter="," if kind == "csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
        path.write_bytes(text.getvalue().encode())
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_of_table_gives_the_same_items(tmp_path: Path, kind: str) -> None:
    bench = read_table(put(tmp_path, kind), kind, ROLES)
    assert list(bench) == WANTED
    assert [(s.subset, s.id, s.reason) for s in bench.skipped] == [("add", "2", "no true caption in caption")]
    assert bench.provenance[0].args["columns"]["negative"] == ["foil", "foil2"]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_columns_can_be_named_in_the_path(tmp_path: Path, kind: str) -> None:
    path = f"{put(tmp_path, kind)}?image=file&positive=caption&negative=foil,foil2&subset=kind&tag=n"
    assert list(read_format(find_format(kind), path)) == WANTED


def test_plain_names_need_not_be_given(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ID,Image,caption,caption2,foil,Category,tag.n,else\na,7.jpg,b,c,d,s,1,x\n")
    bench = read_table(tmp_path / "t.csv", "csv")
    assert list(bench) == [Item("a", "s", ("7.jpg",), ("b", "c", "d"), choice(2, 1), {"n": 1.0})]


def test_images_and_ids_are_found_even_where_captions_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,image,good,bad\n10,7.jpg,b,c\n12,8.jpg,d,e\n")
    for positive in (("good",), ("good,bad",)):
        bench = read_table(tmp_path / "t.csv", "csv", Roles(positive=positive))
        assert [(i.id, i.images) for i in bench] == [("10", ("7.jpg",)), ("12", ("8.jpg",))]
    (tmp_path / "t.csv").write_text("id,image,good,bad\n1,7.jpg,b,c\n1,8.jpg,d,e\n")
    with pytest.raises(CreperieError, match="item id '1' appears 2 times"):
        read_table(tmp_path / "t.csv", "csv", Roles(positive=("good",), negative=("bad",)))


def test_two_images_have_a_caption_each(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("i,j,a,b\n1.jpg,2.jpg,x y,y x\n3.jpg,4.jpg,x,\n")
    bench = read_table(tmp_path / "t.csv", "csv", Roles(("i", "j"), ("a,b",)))
    assert list(bench) == [Item("0", "t", ("1.jpg", "2.jpg"), ("x y", "y x"), PAIRED)]
    assert len(bench.skipped) == 1


def test_lists_of_captions(tmp_path: Path) -> None:
    rows = [
        {"image": "7.jpg", "caption": ["a", "b", None], "foil": ["c"]},
        {"image": "8.jpg", "caption": "d", "foil": []},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    bench = read_table(path, "jsonl")
    assert list(bench) == [Item("0", "t", ("7.jpg",), ("a", "b", "c"), choice(2, 1))]
    assert bench.skipped[0].reason == "no false caption in foil"


def test_text_only_and_crop_boxes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("caption\na\n")
    assert list(read_table(tmp_path / "t.csv", "csv")) == [Item("0", "t", (), ("a",), ((True,),))]
    (tmp_path / "u.csv").write_text('image,caption\n"7.jpg#xywh=1,2,3,4",a\n')
    assert read_table(tmp_path / "u.csv", "csv")[0].images == ("7.jpg#xywh=1,2,3,4",)


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["1", "2.5", "-3e2", ""], [1.0, 2.5, -300.0, None]),
        (["007", "2", "3", "4"], ["007", "2", "3", "4"]),
        (["True", "false", "", "true"], [True, False, None, True]),
        (["nan", "1", "inf", "2"], ["nan", "1", "inf", "2"]),
        (["a", "", "1", "b"], ["a", None, "1", "b"]),
        (["9" * 400, "1", "2", "3"], ["9" * 400, "1", "2", "3"]),
    ],
)
def test_tags_of_text_tables_get_types(tmp_path: Path, cells: list[str], wanted: list[Any]) -> None:
    (tmp_path / "t.csv").write_text("caption,x\n" + "".join(f"c,{cell}\n" for cell in cells))
    bench = read_table(tmp_path / "t.csv", "csv", Roles(positive=("caption",), tag=("*",)))
    assert [item.tags.get("x") for item in bench] == wanted


def test_wrong_names_are_met_with_the_nearest_right_one(tmp_path: Path) -> None:
    path = put(tmp_path, "csv")
    with pytest.raises(CreperieError, match=r"mine\.csv: unknown column 'captoin'; did you mean 'caption'"):
        read_table(path, "csv", Roles(positive=("captoin",)))
    with pytest.raises(CreperieError, match="`subset=` takes one column"):
        read_table(path, "csv", Roles(positive=("caption",), subset=("kind,n",)))
    with pytest.raises(CreperieError, match="3 image columns"):
        read_table(path, "csv", Roles(("file", "kind", "n"), ("caption",)))
    with pytest.raises(CreperieError, match="unknown option of the format 'csv' 'posit'; did you mean 'positive'"):
        read_format(find_format("csv"), f"{path}?posit=caption")


def test_separators_and_quotes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("image;caption\n7.jpg;a, b\n")
    assert read_table(tmp_path / "t.csv", "csv", delimiter=";")[0].captions == ("a, b",)
    (tmp_path / "t.tsv").write_text('image\tcaption\n7.jpg\t"big" crab\n')
    with pytest.raises(CreperieError, match="`no_quotes=True`"):
        read_table(tmp_path / "t.tsv", "tsv")
    assert read_table(tmp_path / "t.tsv", "tsv", quotes=False)[0].captions == ('"big" crab',)
    for wrong in ("ab", '"', "\n"):
        with pytest.raises(CreperieError, match="cannot separate"):
            read_table(tmp_path / "t.csv", "csv", delimiter=wrong)


def test_excel_writes_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("\ufeffimage,caption\r\n7.jpg,Käse\r\n\r\n".encode())
    assert list(read_table(tmp_path / "t.csv", "csv")) == [Item("0", "t", ("7.jpg",), ("Käse",), ((True,),))]
    (tmp_path / "t.jsonl").write_text('{"caption": "a"}\n\n{"caption": "b"}\n')  # an empty line ends nothing
    assert [item.captions for item in read_table(tmp_path / "t.jsonl", "jsonl")] == [("a",), ("b",)]


def test_the_kind_of_a_file() -> None:
    assert [kind_of_file(Path(p)) for p in ("a.CSV", "a.tsv", "a.json", "a.parquet")] == [
        "csv",
        "tsv",
        "jsonl",
        "parquet",
    ]
    with pytest.raises(CreperieError, match="`format=`: csv"):
        kind_of_file(Path("a.xlsx"))


def test_chunks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"caption": f"c{i}", "foil": f"f{i}" if i % 3 else None, "n": i if i > 5 else None} for i in range(20)]
    kinds = ("csv", "jsonl", "parquet")
    whole = {kind: read_table(put(tmp_path, kind, rows), kind, Roles(tag=("n",))) for kind in kinds}
    monkeypatch.setattr(columns_module, "CHUNK", 3)
    for kind, bench in whole.items():
        small = read_table(tmp_path / f"mine.{kind}", kind, Roles(tag=("n",)))
        assert small.table.equals(bench.table)
        assert small.skipped == bench.skipped
        assert [i.id for i in small] == [str(i) for i in range(20) if i % 3]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
ITEMS = st.lists(
    st.builds(
        lambda subset, image, true, false, tags: (subset, image, true, false, tags),
        TEXT,
        st.lists(TEXT, max_size=1),
        st.lists(TEXT, min_size=1, max_size=3),
        st.lists(TEXT, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b c"]), st.floats(allow_nan=False, allow_infinity=False) | st.just(2.0)),
    ),
    min_size=1,
    max_size=5,
)


def benchmark(rows: list[Any]) -> Benchmark:
    items = [
        Item(f"i{n}", s, tuple(i), (*t, *f), choice(len(t), len(f)), tags) for n, (s, i, t, f, tags) in enumerate(rows)
    ]
    return from_items("any", items)


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "tsv"])
def test_jsonl_and_parquet_hold_every_item_and_csv_those_of_one_image(tmp_path: Path, kind: str) -> None:
    @MANY
    @given(ITEMS, st.booleans())
    def run(rows: list[Any], images: bool) -> None:
        # In one table all rows have an image or none, and all have a negative or none.
        alike = [(s, ["i.jpg"] if images else [], t, f or ["n"], {}) for s, _, t, f, _ in rows]
        bench = benchmark(alike if kind in ("csv", "tsv") else rows)
        written = write_format(find_format(kind), bench, tmp_path / f"x.{kind}", force=True)
        assert list(read_format(find_format(kind), str(written[0]))) == list(bench)

    run()


def test_items_of_two_images_fit_into_jsonl_and_not_into_csv(tmp_path: Path) -> None:
    bench = from_items("pair", [Item("0", "s", ("a", "b"), ("c", "d"), PAIRED, {"x": True})])
    with pytest.raises(CreperieError, match="has 2 images, but a row of this table holds only one; export as jsonl"):
        write_format(find_format("csv"), bench, tmp_path / "x.csv")
    empty = from_items("empty", [Item("0", "s", (), ("", "d"), choice(1, 1))])
    with pytest.raises(CreperieError, match="has an empty text"):
        write_format(find_format("tsv"), empty, tmp_path / "x.tsv")
    for bench_ in (bench, empty):
        path = write_format(find_format("jsonl"), bench_, tmp_path / bench_.name)[0]
        assert list(read_format(find_format("jsonl"), str(path))) == list(bench_)


def change_schema(table: pa.Table, name: str, values: list[Any], type_: pa.DataType) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, name, pa.array(values, type_))


@pytest.mark.parametrize(
    ("column", "values", "type_", "line"),
    [
        ("match", [[True]], pa.list_(pa.bool_()), "item s/0 has 1 match cells, expected 1 × 2"),
        ("match", [[True, None]], pa.list_(pa.bool_()), "the column .match. has empty cells"),
        ("id", [None], pa.string(), "'id' is string, expected string without nulls"),
        ("captions", [[1, 2]], pa.list_(pa.int64()), "'captions' is list<.*: int64>"),
        ("tag.x", [[1]], pa.list_(pa.int64()), "which is not a type for tags"),
    ],
)
def test_a_parquet_file_that_creperie_did_not_write_so(
    tmp_path: Path, column: str, values: list[Any], type_: pa.DataType, line: str
) -> None:
    bench = from_items("b", [Item("0", "s", ("a",), ("b", "c"), choice(1, 1), {"x": "y"})])
    pq.write_table(change_schema(bench.table, column, values, type_), tmp_path / "b.parquet")
    with pytest.raises(CreperieError, match=line):
        read_format(find_format("parquet"), str(tmp_path / "b.parquet"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.array([b"\xff", None]),
        lambda: pa.array([{"a": 1}, None]),
        lambda: pa.array([[["a"]], None]),
        lambda: pa.array([1, 2]),
        lambda: pa.array([None, None]),
    ],
)
def test_parquet_columns_of_other_types_are_errors(tmp_path: Path, make: Callable[[], pa.Array]) -> None:
    pq.write_table(pa.table({"caption": make()}), tmp_path / "t.parquet")
    with pytest.raises(CreperieError):
        read_table(tmp_path / "t.parquet", "parquet")


def test_parquet_text_in_other_clothes(tmp_path: Path) -> None:
    table = pa.table(
        {
            "caption": pa.array(["a", "b"]).dictionary_encode(),
            "foil": pa.array(["c", "d"], pa.large_string()),
            "id": pa.array([3, 4]),
            "subset": pa.array(["s", None]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    bench = read_table(tmp_path / "t.parquet", "parquet")
    assert list(bench) == [Item("3", "s", (), ("a", "c"), choice(1, 1))]
    assert bench.skipped[0].reason == "no subset in subset"
