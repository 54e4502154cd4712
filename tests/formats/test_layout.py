"""Files in styles that nobody published are read; what is written stays inside its folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import Benchmark, Item, choice, find_format, from_items, read_format, write_format
from creperie.core import CreperieError

Load = Callable[[str, str, str | bytes], Benchmark]
RECORDS: dict[str, dict[str, Any]] = {
    "4": {"filename": "é.jpg", "caption": "a/b 🦀", "negative_caption": 'x "y"', "extra": {"z": [1.0, None, True]}},
    "x": {"caption": "", "filename": "b.jpg", "negative_caption": "\u2028 \t"},
}
NAMES = ("filename", "caption", "negative_caption")
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
    fields = {key: {name: record[name] for name in NAMES} for key, record in RECORDS.items()}
    assert json.loads(written("sugarcrepe", bench)["s.json"]) == fields


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r\n\r\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_line_ends_of_csv_can_be_read(load: Load, newline: str, end: str) -> None:
    rows = ["image_id,caption,hard_negs,x,y,width,height", "7,\"a\nb\",['c'],1,2.50,3,4", '"8",d,"[""e\'s""]",1,2,3,4']
    bench = load("crepe", "prod_x.csv", newline.join(rows) + end)
    assert [item.captions for item in bench] == [("a\nb", "c"), ("d", "e's")]


def written(format: str, bench: Benchmark) -> dict[str, bytes]:
    writer = find_format(format).write
    assert writer is not None
    return writer(bench)


def test_a_subset_that_is_gone_has_no_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"0": {"filename": "a", "caption": "b", "negative_caption": "c"}}')
    format = find_format("sugarcrepe")
    bench = read_format(format, str(tmp_path))
    assert write_format(format, bench.only(["b"]), tmp_path / "out") == [tmp_path / "out" / "b.json"]


@pytest.mark.parametrize(
    ("name", "subset", "captions", "says"),
    [
        *(("sugarcrepe", s, ("b", "c"), "can be called") for s in ("../up", "/abs", "a/../../b", "nul\0", "")),
        ("visla", "generic", ("b\tc", "d", "e"), "holds a tab"),  # a table without quotes
        ("valse", "s", ("b", "c"), "read-only; export as jsonl"),
    ],
)
def test_what_cannot_be_written_is_said(
    tmp_path: Path, name: str, subset: str, captions: tuple[str, ...], says: str
) -> None:
    bench = from_items("b", [Item("0", subset, ("a",), captions, choice(len(captions) - 1, 1))])
    with pytest.raises(CreperieError, match=says):
        write_format(find_format(name), bench, tmp_path / "out")


def test_two_subsets_in_one_file_are_an_error() -> None:
    items = [Item("0", s, ("a",), ("b", "c", "d"), choice(2, 1)) for s in ("generic", "Generic")]
    writer = find_format("visla").write
    assert writer is not None
    with pytest.raises(CreperieError, match="two subsets"):
        writer(from_items("b", items))
