"""Files in styles that nobody published, and changed benchmarks: what they say is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import Benchmark, Item, choice, from_items
from creperie.bench.formats import find_format, read_format, write_format
from creperie.core.errors import CreperieError

Load = Callable[[str, str, str | bytes], Benchmark]
RECORDS = {
    "4": {"filename": "é.jpg", "caption": "a/b 🦀", "negative_caption": 'x "y"', "extra": {"z": [1.0, None, True]}},
    "x": {"caption": "", "filename": "b.jpg", "negative_caption": "\u2028 \t"},
}
STYLES = {
    "compact": json.dumps(RECORDS, separators=(",", ":")),
    "plain": json.dumps(RECORDS),
    "unescaped": json.dumps(RECORDS, ensure_ascii=False, indent=2),
    "tabs": json.dumps(RECORDS, indent="\t"),
    "windows": json.dumps(RECORDS, indent=4).replace("\n", "\r\n") + "\r\n",
    "byte order mark": "\ufeff" + json.dumps(RECORDS, indent=4),
    "escaped slashes": json.dumps(RECORDS, indent=1).replace("/", "\\/"),
    "capital escapes": json.dumps(RECORDS).replace("\\u00e9", "\\u00E9"),
    "odd spaces": json.dumps(RECORDS).replace(": ", "  :\n ").replace("}, ", "}\n\n,"),
    "numbers": json.dumps(RECORDS).replace("1.0", "1.00e+0"),
}


@pytest.mark.parametrize("style", STYLES)
def test_any_style_of_json_keeps_its_content(load: Load, style: str) -> None:
    bench = load("sugarcrepe", "s.json", STYLES[style])
    assert [item.captions for item in bench] == [("a/b 🦀", 'x "y"'), ("", "\u2028 \t")]
    assert json.loads(written("sugarcrepe", bench)["s.json"]) == RECORDS


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r\n\r\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_line_ends_of_csv_can_be_read(load: Load, newline: str, end: str, content: Any) -> None:
    rows = ["image_id,caption,hard_negs,x,y,width,height", "7,\"a\nb\",['c'],1,2.50,3,4", '"8",d,"[""e\'s""]",1,2,3,4']
    text = newline.join(rows) + end
    bench = load("crepe", "prod_x.csv", text)
    assert [item.captions for item in bench] == [("a\nb", "c"), ("d", "e's")]
    assert content("prod_x.csv", written("crepe", bench)["prod_x.csv"]) == content("prod_x.csv", text.encode())


def written(format: str, bench: Benchmark) -> dict[str, bytes]:
    writer = find_format(format).write
    assert writer is not None
    return writer(bench)


def changed(bench: Benchmark, change: Callable[[Item], Item]) -> Benchmark:
    return replace(from_items(bench.name, [change(item) for item in bench]), layout=bench.layout)


def test_changed_captions_are_written_with_the_other_fields(load: Load) -> None:
    text = json.dumps(RECORDS, indent=4, ensure_ascii=False)
    bench = load("sugarcrepe", "s.json", text)
    new = changed(bench, lambda i: replace(i, captions=("ä new one", i.captions[1])))
    records = json.loads(written("sugarcrepe", new)["s.json"])
    assert [r["caption"] for r in records.values()] == ["ä new one"] * 2
    assert records["4"]["extra"] == RECORDS["4"]["extra"]  # what is not a part of an item stays


def test_a_published_cell_is_dropped_when_the_item_says_something_else(load: Load) -> None:
    text = "image_id,caption,hard_negs,x,y,width,height\n7,crab,\"{'b', 'a'}\",1.50,2,3,4\n"
    bench = load("crepe", "prod_x.csv", text)
    assert written("crepe", bench)["prod_x.csv"].decode().splitlines() == text.splitlines()
    new = changed(bench, lambda i: replace(i, captions=(*i.captions[:2], "c")))
    assert "\"['a', 'c']\"" in written("crepe", new)["prod_x.csv"].decode()
    moved = changed(bench, lambda i: replace(i, images=("7.jpg#xywh=9,2,3,4",)))
    assert "9.0,2.0,3.0,4.0" in written("crepe", moved)["prod_x.csv"].decode()
    assert "1.50" not in written("crepe", moved)["prod_x.csv"].decode()


def test_new_items_join_the_file_of_their_subset(load: Load) -> None:
    bench = load(
        "sugarcrepe++",
        "s.json",
        '[{"id": 1, "filename": "a", "caption": "b", "caption2": "c", "negative_caption": "d"}]',
    )
    more = from_items("more", [*bench, Item("2", "s", ("e",), ("f", "g", "h"), choice(2, 1))])
    records = json.loads(written("sugarcrepe++", replace(more, layout=bench.layout))["s.json"])
    assert [r["id"] for r in records] == [1, 2]
    assert records[1] == {"id": 2, "filename": "e", "caption": "f", "caption2": "g", "negative_caption": "h"}


def test_records_that_are_no_items_return_only_with_all_the_others(load: Load) -> None:
    text = json.dumps(
        {
            "0": {"filename": "a", "caption": "b", "negative_caption": "c"},
            "accuracy": 0.5,
            "1": {"filename": "d", "caption": "e", "negative_caption": "f"},
        }
    )
    bench = load("sugarcrepe", "s.json", text)
    whole = json.loads(written("sugarcrepe", bench)["s.json"])
    assert list(whole.items()) == list(json.loads(text).items())  # in the same order
    assert list(json.loads(written("sugarcrepe", bench.filter([False, True]))["s.json"])) == ["1"]


def test_a_subset_that_is_gone_has_no_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"0": {"filename": "a", "caption": "b", "negative_caption": "c"}}')
    format = find_format("sugarcrepe")
    bench = read_format(format, str(tmp_path))
    assert write_format(format, bench.only(["b"]), tmp_path / "out") == [tmp_path / "out" / "b.json"]


def damage(layout: Any) -> list[Any]:
    file = layout["files"][0]
    return [
        {**layout, "files": [{**file, "skipped": 3}]},
        {**layout, "files": [{**file, "skipped": {"x": ["a", 1]}}]},
        {**layout, "files": [{**file, "skipped": {"1": []}}]},
        {**layout, "files": [{**file, "records": 7}]},
        {**layout, "files": [{**file, "records": {"0": [1]}}]},
        {**layout, "files": ["x"]},
        {**layout, "files": 3},
        {**layout, "files": [{**file, "path": "../../escape.json"}]},
        {**layout, "files": [{k: v for k, v in file.items() if k != "subset"}]},
    ]


def test_a_layout_that_somebody_edited_is_an_error_in_one_line(load: Load, tmp_path: Path) -> None:
    bench = load("sugarcrepe", "s.json", '{"0": {"filename": "a", "caption": "b", "negative_caption": "c"}}')
    for layout in damage(dict(bench.layout)):
        with pytest.raises(CreperieError):
            write_format(find_format("sugarcrepe"), replace(bench, layout=layout), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path.parent / "escape.json").exists()


def test_the_layout_of_an_earlier_version_is_not_used(load: Load) -> None:
    bench = load("sugarcrepe", "s.json", '{"0": {"filename": "a", "caption": "b", "negative_caption": "c"}}')
    old = {"format": "sugarcrepe", "files": [{"path": "old.json", "subset": "s", "ids": ["0"], "forms": [[[]]]}]}
    assert list(written("sugarcrepe", replace(bench, layout=old))) == ["s.json"]


@pytest.mark.parametrize("subset", ["../up", "/abs", "a/../../b", "nul\0", ""])
def test_a_subset_cannot_lead_out_of_the_folder(tmp_path: Path, subset: str) -> None:
    bench = from_items("b", [Item("0", subset, ("a",), ("b", "c"), choice(1, 1))])
    with pytest.raises(CreperieError, match="not a file name"):
        write_format(find_format("sugarcrepe"), bench, tmp_path / "out")


def test_a_tab_cannot_be_written_to_a_table_without_quotes(tmp_path: Path) -> None:
    bench = from_items("b", [Item("0", "generic", ("a",), ("b\tc", "d", "e"), choice(2, 1))])
    with pytest.raises(CreperieError, match="holds a tab"):
        write_format(find_format("visla"), bench, tmp_path / "out")


def test_votes_are_not_invented(tmp_path: Path) -> None:
    bench = from_items("b", [Item("0", "s", ("a",), ("b", "c"), choice(1, 1))])
    with pytest.raises(CreperieError, match="no votes"):
        write_format(find_format("valse"), bench, tmp_path / "out")


def test_two_subsets_in_one_file_are_an_error() -> None:
    items = [Item("0", s, ("a",), ("b", "c", "d"), choice(2, 1)) for s in ("generic", "Generic")]
    writer = find_format("visla").write
    assert writer is not None
    with pytest.raises(CreperieError, match="two subsets"):
        writer(from_items("b", items))
