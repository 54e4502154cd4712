"""Finding a format, reading with it, writing completely or not at all."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from creperie.bench import (
    NO_IMAGES,
    Format,
    Item,
    choice,
    find_format,
    from_items,
    list_formats,
    load,
    open_image,
    read_format,
    write_format,
)
from creperie.core import CreperieError, UnknownNameError, packaged_toml

ONE = '{"0": {"filename": "a.png", "caption": "b", "negative_caption": "c"}}'


def test_names_and_aliases() -> None:
    formats = list_formats()
    names = [name for f in formats for name in (f.name, *f.aliases)]
    assert len(names) == len(set(names))
    listed = packaged_toml("creperie.bench", "formats", "formats.toml")  # what `creperie data list` shows
    assert {f.name: f.title for f in formats} == {name: about["title"] for name, about in listed.items()}
    assert [f.name for f in formats] == list(listed)
    for format in formats:
        assert find_format(format.name) == format
        assert all(find_format(alias.upper()) == format for alias in format.aliases)
        assert format.title
        assert format.about
        assert "\n" not in format.about
    for name in ["sugarcrepe_pp", "sugarcrepe-pp", "scpp", "coco", "karpathy", "vl-checklist"]:
        find_format(name)


def test_a_wrong_name_and_wrong_options() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'winoground'"):
        find_format("winogrond")
    with pytest.raises(CreperieError, match="unknown value of option 'valid' 'al'; did you mean 'all'"):
        read_format(find_format("valse"), "x?valid=al")
    with pytest.raises(CreperieError, match="has no options"):
        read_format(find_format("cola"), "x?a=b")
    with pytest.raises(CreperieError, match="is given twice"):
        read_format(find_format("valse"), "x?valid=all&valid=only")


def test_a_path_with_a_question_mark(tmp_path: Path) -> None:
    (tmp_path / "what?.json").write_text(ONE)
    assert len(read_format(find_format("sugarcrepe"), str(tmp_path / "what?.json"))) == 1


def test_plug_ins_are_looked_up_on_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    mine = Format("mine", "Mine", "x", lambda source: from_items("m", [Item("0", "s", (), ("a",), choice(1, 0))]))
    points = [SimpleNamespace(name="mine", load=lambda: mine), SimpleNamespace(name="broken", load=lambda: 3)]

    def entry_points(group: str) -> list[SimpleNamespace]:
        asked.append(group)
        return points

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    find_format("sugarcrepe")
    find_format("scpp")
    assert asked == []
    assert find_format("Mine") is mine
    assert asked == ["creperie.formats"]
    with pytest.raises(CreperieError, match="'broken' cannot be called"):
        find_format("broken")


def test_reading_one_format_imports_no_other() -> None:
    code = (
        "import sys; from creperie.bench import find_format; find_format('cola');"
        "print([m for m in sys.modules if m.startswith('creperie.bench.formats') and m.endswith(('foils', 'tables'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def picture(colour: str) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(sink, "PNG")
    return sink.getvalue()


def test_images_beside_the_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(ONE)
    assert load(f"sugarcrepe:{tmp_path}").images is NO_IMAGES
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(picture("red"))
    for path in (tmp_path, tmp_path / "s.json"):
        bench = load(f"sugarcrepe:{path}")
        assert open_image(bench.images, bench[0].images[0]).getpixel((0, 0)) == (255, 0, 0)


@pytest.mark.parametrize("paths", [("a.png", "b.png"), (None, None), ("same.png", "same.png")])
def test_winoground_as_parquet_brings_its_images(tmp_path: Path, paths: tuple[str | None, str | None]) -> None:
    rows = [
        {
            "id": n,
            "caption_0": "a crab eats a gull",
            "caption_1": "a gull eats a crab",
            "image_0": {"bytes": picture("red"), "path": paths[0] and f"{n}{paths[0]}"},
            "image_1": {"bytes": picture("blue"), "path": paths[1] and f"{n}{paths[1]}"},
            "tag": "Noun",
        }
        for n in range(2)
    ]
    (tmp_path / "data").mkdir()
    for n, row in enumerate(rows):
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / "data" / f"test-0000{n}-of-00002.parquet")
    bench = load(f"winoground:{tmp_path}")
    assert bench.subsets == {"test": 2}
    for item in bench:
        colours = [open_image(bench.images, image).getpixel((0, 0)) for image in item.images]
        assert colours == [(255, 0, 0), (0, 0, 255)]
    write_format(find_format("winoground"), bench, tmp_path / "out")
    again = load(f"winoground:{tmp_path / 'out'}")
    assert [i.captions for i in again] == [i.captions for i in bench]


def test_writing_is_whole_or_not_at_all(tmp_path: Path) -> None:
    bench = from_items("b", [Item("0", s, ("a",), ("b", "c"), choice(1, 1)) for s in ("x", "y")])
    format = find_format("sugarcrepe")
    out = tmp_path / "deep" / "out"
    assert sorted(p.name for p in write_format(format, bench, out)) == ["x.json", "y.json"]
    with pytest.raises(CreperieError, match="not empty"):
        write_format(format, bench, out)
    (out / "notes.txt").write_text("mine")
    write_format(format, bench, out, force=True)
    assert sorted(p.name for p in out.iterdir()) == ["notes.txt", "x.json", "y.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(CreperieError):
        write_format(format, bench, tmp_path / "file")
    with pytest.raises(CreperieError, match="there is no item"):
        write_format(format, bench.filter([False, False]), tmp_path / "none")
    with pytest.raises(CreperieError, match="'karpathy' is read-only"):
        write_format(find_format("karpathy"), bench, tmp_path / "none")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "file"]


def test_one_file_can_be_written_as_a_file(tmp_path: Path) -> None:
    bench = from_items("b", [Item("0", "x", ("a",), ("b", "c"), choice(1, 1))])
    format = find_format("sugarcrepe")
    path = tmp_path / "one.json"
    assert write_format(format, bench, path) == [path]
    with pytest.raises(CreperieError, match="this file already exists"):
        write_format(format, bench, path)
    assert write_format(format, bench, path, force=True) == [path]
    assert next(iter(read_format(format, str(path)))).captions == ("b", "c")
    assert [p.name for p in tmp_path.iterdir()] == ["one.json"]
