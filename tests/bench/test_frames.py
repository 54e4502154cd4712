"""Benchmarks from what is in hand: frames, lists, data sets, pictures in memory; and what is exported comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import creperie as cr
from creperie.bench import (
    PAIRED,
    Benchmark,
    Item,
    as_benchmark,
    check,
    choice,
    export_image_parquet,
    from_items,
    load,
    open_store,
    save,
)
from creperie.core import CreperieError

COLUMNS = {
    "file": ["a.png", "b.png"],
    "good": ["a red crab ", "a blue gull"],
    "bad": ["a red gull", None],
    "worse": ["a red rock", "a blue rock"],
    "kind": ["swap", "add"],
    "id": [10, 12],
}
WANTED = [
    Item("10", "swap", ("a.png",), ("a red crab ", "a red gull", "a red rock"), choice(1, 2)),
    Item("12", "add", ("b.png",), ("a blue gull", "a blue rock"), choice(1, 1)),
]
ROLES: dict[str, Any] = {"image": "file", "positive": "good", "negative": ["bad", "worse"], "subset": "kind"}


pytestmark = pytest.mark.usefixtures("own_cache")


def frames() -> list[Any]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]
    return [pandas.DataFrame(COLUMNS), polars.DataFrame(COLUMNS), pa.table(COLUMNS), COLUMNS, rows]


@pytest.mark.parametrize("kind", range(5), ids=["pandas", "polars", "arrow", "columns", "rows"])
def test_every_kind_of_frame_gives_the_same_items(kind: int) -> None:
    assert list(cr.from_pandas(frames()[kind], **ROLES)) == WANTED


def test_a_table_file_with_named_columns(tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("id,file,caption,foil\n7,a.png,x,y\n9,b.png,z,w\n")
    bench = cr.load(tmp_path / "my.csv", positive="caption", negative="foil", image="file")
    assert [(i.id, i.images, i.captions) for i in bench] == [
        ("7", ("a.png",), ("x", "y")),
        ("9", ("b.png",), ("z", "w")),
    ]
    assert list(cr.load(tmp_path / "my.csv")) == list(bench)  # these names say what they are
    save(bench, tmp_path / "saved")
    with pytest.raises(CreperieError, match="column names were given, but this is not a table"):
        cr.load(tmp_path / "saved", positive="caption")
    for missing in ("nope.csv", str(tmp_path / "nope"), "out/nope.parquet"):
        with pytest.raises(CreperieError, match=f"^{missing}: there is no such file or folder; check the path$"):
            cr.load(missing, positive="caption" if missing.endswith("csv") else ())
    with pytest.raises(CreperieError, match="unknown column 'captoin'; did you mean 'caption'"):
        cr.load(tmp_path / "my.csv", positive="captoin")


def pictures() -> list[Image.Image]:
    return [Image.new("RGB", (4, 3), colour) for colour in ("red", "blue", "red")]


def test_pictures_in_memory_are_kept_by_their_content(tmp_path: Path) -> None:
    rows = [{"image": p, "caption": f"c{i}", "foil": f"f{i}"} for i, p in enumerate(pictures())]
    bench = as_benchmark(rows)
    assert bench[0].images == bench[2].images != bench[1].images
    assert [bench.open(item)[0].getpixel((0, 0)) for item in bench] == [(255, 0, 0), (0, 0, 255), (255, 0, 0)]
    again = as_benchmark(rows)
    assert again.hash == bench.hash
    kept = save(bench, tmp_path / "saved")  # the cache may be emptied
    assert Path(kept.images.location).is_relative_to(tmp_path / "saved")
    assert kept.open(kept[1])[0].getpixel((0, 0)) == (0, 0, 255)


def test_pictures_in_frames_and_files(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for number, picture in enumerate(pictures()):
        (tmp_path / "photos" / str(number)).mkdir(parents=True)
        picture.save(tmp_path / "photos" / str(number) / "x.png")
    texts = {"caption": ["a", "b", "c"], "foil": ["d", "e", "f"]}
    in_memory = cr.from_pandas(pandas.DataFrame({"image": pictures(), **texts}))
    paths = [tmp_path / "photos" / str(n) / "x.png" for n in range(3)]
    by_path = cr.from_pandas(pandas.DataFrame({"image": paths, **texts}))
    polars = pytest.importorskip("polars")
    by_object = cr.from_pandas(polars.DataFrame({"image": pictures(), **texts}))
    by_bytes = cr.from_pandas(pandas.DataFrame({"image": [p.read_bytes() for p in paths], **texts}))
    by_key = cr.from_pandas({"image": ["0/x.png", "1/x.png", "2/x.png"], **texts}, images=tmp_path / "photos")
    assert by_path[1].images == by_key[1].images == ("1/x.png",)
    for bench in (in_memory, by_path, by_bytes, by_key, by_object):
        assert [bench.open(item)[0].getpixel((0, 0))[0] for item in bench] == [255, 0, 255]


@pytest.mark.parametrize(
    ("objects", "line"),
    [
        (7, "int is not a benchmark; pass a name"),
        ([3], r"frame\[0\]: is int, expected a dictionary"),
        ({"caption": ["a"], "foil": ["b", "c"]}, "columns of different lengths: 1, 2"),
        ({"image": [3], "caption": ["a"], "foil": ["b"]}, "is of type int, which is not an image"),
        ({"image": [b"GIF8 not a picture"], "caption": ["a"], "foil": ["b"]}, "not a picture in a known format"),
        (
            pytest.importorskip("polars").LazyFrame({"caption": ["a"]}),
            r"is a lazy data frame; pass `frame\.collect\(\)`",
        ),
        ({"x": ["a"]}, "no column name says which column has the true captions; pass `positive='COLUMN'`, one of: x"),
    ],
)
def test_what_is_not_a_benchmark_is_an_error_in_one_line(objects: Any, line: str) -> None:
    with pytest.raises(CreperieError, match=line):
        as_benchmark(objects)


def test_frames_are_taken_wherever_a_benchmark_is_meant() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"caption": ["A dog.", "A cat.", "A cow."], "foil": ["A hen."] * 3, "id": list("abc")})
    assert "3 items" in repr(cr.audit(frame, attackers=["length-words"]))
    assert cr.score(frame, "blind:length-words", tasks="blind").evaluate()[-1].n == 3
    assert cr.refine(frame, attackers=["length-words"], method="grid", audit=False).bench.name == "frame"
    assert len(cr.make("rules:shuffle", frame).sources) == 3


def test_pairs_and_lists_of_items() -> None:
    item = Item.pair(image="7.jpg", positive="a crab", negative="a gull", subset="s", n=2.0)
    assert (item.images, item.captions, item.match, item.tags) == (
        ("7.jpg",),
        ("a crab", "a gull"),
        ((True, False),),
        {"n": 2.0},
    )
    other = Item.pair(positive=["a", "b"], negative=["c"])
    assert (other.images, other.match) == ((), ((True, True, False),))
    assert item.id != other.id == Item.pair(positive=["a", "b"], negative=["c"]).id
    assert Item.pair(positive="a", negative=["b", "c"]).id != Item.pair(positive=["a", "b"], negative="c").id
    assert list(as_benchmark([item, other])) == [item, other]


def test_items_with_paths_and_pictures_are_a_benchmark(tmp_path: Path) -> None:
    red, blue, _ = pictures()
    blue.save(tmp_path / "b.png")
    in_memory = Item.pair(image=red, positive="a", negative="b")
    items = [in_memory, Item.pair(image=tmp_path / "b.png", positive="c", negative="d")]
    for make in (cr.from_pandas, cr.load, as_benchmark):
        bench = make(items)
        assert bench.open(0) == bench.open(items[0].id) == bench.open(bench[0])
        assert [bench.open(item)[0].getpixel((0, 0)) for item in bench] == [(255, 0, 0), (0, 0, 255)]
    by_path = cr.load(items[1:])
    assert by_path[0].images == ("b.png",)
    assert cr.load(bench) is bench
    with pytest.raises(
        CreperieError, match=r"m: a benchmark is made from an Arrow table, not from list; write `creper"
    ):
        Benchmark("m", items)  # type: ignore[arg-type]


def test_rows_without_a_picture_stay_and_are_counted() -> None:
    pandas = pytest.importorskip("pandas")
    red, blue, _ = pictures()
    texts = {"caption": ["a", "b", "c", "d"], "foil": ["e", "f", "g", "h"]}
    missing: list[Any] = [None, float("nan"), pandas.NA]
    for empty in missing:
        frame = pandas.DataFrame({"image": [red, empty, blue, empty], **texts})
        with pytest.warns(UserWarning, match="2 of 4 items have no image"):
            bench = cr.from_pandas(frame)
        assert [len(item.images) for item in bench] == [1, 0, 1, 0]
        assert bench.open(bench[2])[0].getpixel((0, 0)) == (0, 0, 255)
    both = lambda images, captions: [len(c) for c in captions]  # noqa: E731
    with pytest.warns(UserWarning, match=r"2 of 4 items have no score \(no image\)"):
        run = cr.score(bench, both, tasks="itt")
    assert "2 of 4 items" in repr(run)
    with pytest.warns(UserWarning, match=r"2 rows left out: 1 × no true caption in caption \(row 1 first\); 1 × no f"):
        cr.from_pandas({"caption": ["a", None, "a"], "foil": ["b", "c", None]})


def test_a_wrong_path_costs_one_item_its_picture(tmp_path: Path) -> None:
    """And it finds no other picture of the same name."""
    for name in ("0.png", "1.png"):
        pictures()[0].save(tmp_path / name)
    paths = [str(tmp_path / "0.png"), str(tmp_path / "typo" / "1.png"), str(tmp_path / "1.png")]
    with pytest.warns(UserWarning, match=r"1 of 3 images are missing: .*typo/1.png$"):
        bench = cr.from_pandas({"image": paths, "caption": ["a", "b", "c"], "foil": ["d", "e", "f"]})
    assert [item.images for item in bench] == [("0.png",), (), ("1.png",)]
    assert [len(bench.open(item)) for item in bench] == [1, 0, 1]


def test_usual_names_of_columns() -> None:
    one = cr.load([{"caption": "a", "negatives": ["b", "c"]}])
    assert (one[0].captions, one[0].match) == (("a", "b", "c"), ((True, False, False),))
    red, blue, _ = pictures()
    two = cr.load([{"image_0": red, "image_1": np.asarray(blue), "caption_0": "a", "caption_1": "b"}])
    assert two[0].match == PAIRED
    assert [p.getpixel((0, 0)) for p in two.open(0)] == [(255, 0, 0), (0, 0, 255)]


def test_items_by_id_and_by_slice() -> None:
    bench = from_items("b", [*WANTED, Item("10", "other", (), ("x", "y"), choice(1, 1))])
    assert bench["12"] == WANTED[1]
    assert list(bench[:2]) == WANTED == list(bench.filter(lambda item: item.subset != "other"))
    for id_, line in (
        ("7", "no items have the id '7'"),
        ("10", r"2 items have the id '10'; name the subset too: `bench\.item"),
    ):
        with pytest.raises(CreperieError, match=line):
            bench[id_]


def test_pictures_that_are_drawn_are_saved(tmp_path: Path) -> None:
    bench = cr.make_world(cr.World(items=2))
    again = save(bench, tmp_path / "world")
    assert again.open(again[0])[0].tobytes() == bench.open(bench[0])[0].tobytes()


def test_frames_come_back() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    bench = from_items(
        "b", [*WANTED, Item("2", "add", ("a", "b"), ("x", "y"), ((True, False), (False, True)), {"n": 3.0})]
    )
    for frame in (bench.to_pandas(), bench.to_polars(), bench.table):
        assert list(cr.from_pandas(frame)) == list(bench)


@pytest.fixture
def with_pictures(tmp_path: Path) -> Benchmark:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (8, 6), colour).save(folder / name)
    items = [
        *WANTED,
        Item("2", "add", ("a.png", "b.png"), ("x", "y"), PAIRED, {"n": 3.0, "w": "é"}),
        Item("3", "add", ("b.png#xywh=1,1,3,2",), ("x", "y"), choice(1, 1)),
    ]
    return from_items("mine", items, images=open_store(folder))


def test_what_is_exported_for_datasets_comes_back(with_pictures: Benchmark, tmp_path: Path) -> None:
    export_image_parquet(with_pictures, tmp_path / "out")
    for spec in (tmp_path / "out", f"datasets:{tmp_path / 'out'}"):
        again = load(spec)
        assert again.name == "mine"
        assert [(i.id, i.subset, i.captions, i.match, i.tags) for i in again] == [
            (i.id, i.subset, i.captions, i.match, i.tags) for i in with_pictures
        ]
        assert [i.images for i in again][:3] == [i.images for i in with_pictures][:3]
        for old, new in zip(with_pictures, again, strict=True):
            assert [p.tobytes() for p in again.open(new)] == [p.tobytes() for p in with_pictures.open(old)]
        assert not [f for f in check(again) if f.severity == "error"]


def test_a_data_set_with_pictures_is_a_benchmark(with_pictures: Benchmark, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    export_image_parquet(with_pictures, tmp_path / "out")
    read = datasets.load_dataset(str(tmp_path / "out"), split="test", cache_dir=str(tmp_path / "hf"))
    own = as_benchmark(read)
    assert [i.captions for i in own] == [i.captions for i in with_pictures]
    assert own.open(own[2])[1].getpixel((0, 0)) == (0, 0, 255)
    with pytest.raises(CreperieError, match="has several splits: test; choose one"):
        cr.load(datasets.DatasetDict(test=read))
    texts = {"caption": ["x", "y"], "foil": ["z", "w"]}
    made = datasets.Dataset.from_dict({"image": pictures()[:2], **texts})
    made = made.cast_column("image", datasets.Image()).select([1, 0])
    chosen = as_benchmark(made)
    assert [(i.captions, chosen.open(i)[0].getpixel((0, 0))) for i in chosen] == [
        (("y", "w"), (0, 0, 255)),
        (("x", "z"), (255, 0, 0)),
    ]


def test_one_picture_is_stored_once(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    noise = Image.effect_noise((300, 300), 90).convert("RGB")
    noise.save(tmp_path / "photos" / "a.png")
    items = [Item(str(i), "s", ("a.png",), (f"c{i}", "f"), choice(1, 1)) for i in range(50)]
    export_image_parquet(from_items("b", items, images=open_store(tmp_path / "photos")), tmp_path / "out")
    size = sum(f.stat().st_size for f in (tmp_path / "out").rglob("*.parquet"))
    assert size < 3 * (tmp_path / "photos" / "a.png").stat().st_size


def test_a_missing_package_is_named() -> None:
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from creperie.bench import Item, from_items
from creperie.core import CreperieError
bench = from_items("b", [Item.pair(positive="a", negative="b")])
for name in ("pandas", "polars"):
    try:
        getattr(bench, f"to_{name}")()
    except CreperieError as e:
        print(e)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line, name in zip(done.stdout.splitlines(), ("pandas", "polars"), strict=True):
        assert f"this needs the Python package {name!r}, which is not installed; pip install {name}" in line
