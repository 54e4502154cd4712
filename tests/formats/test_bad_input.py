"""A malformed file ends with one line: where, what was expected, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from creperie.bench import Benchmark, find_format, read_format
from creperie.core import CreperieError

Load = Callable[[str, str, str | bytes], Benchmark]

#: (format, file, content, what the line must say)
BAD = [
    ("sugarcrepe", "s.json", "", r"s\.json:1:1: is empty"),
    ("sugarcrepe", "s.json", "{}", "holds no records"),
    ("sugarcrepe", "s.json", "[]", "is a list, expected an object of records; if the file has another format"),
    ("sugarcrepe", "s.json", '{"0":\n{"filename": "a",}}', r"s\.json:2:\d+: is not JSON"),
    ("sugarcrepe", "s.json", '{"0": {}}', r"s\.json \(record '0'\): has no field 'caption'; its fields are: none"),
    ("sugarcrepe", "s.json", '{"0": {"caption": 7}}', "'caption' is a number, expected text"),
    ("sugarcrepe", "s.json", '{"0": {"caption": NaN}}', r"s\.json: contains NaN, which is not a JSON value"),
    ("sugarcrepe", "s.json", '{"0": {"a": 1e999}}', "contains the number 1e999, which is too large"),
    ("sugarcrepe", "s.json", '{"0": {"a": 1, "a": 2}}', "contains the key 'a' twice"),
    ("sugarcrepe", "s.json", '{"a": 1}', "these files contain no items"),
    ("sugarcrepe", "s.json", '{"0": {"a": ' + "9" * 5000 + "}}", "too many digits"),
    ("sugarcrepe", "s.json", b'{"0": "\xff"}', r"s\.json:1: is not UTF-8 text \(byte 0xff\); save the file as UTF-8"),
    ("sugarcrepe", "s.json", '{"0": {"caption": "\\ud800"}}', "unpaired surrogate"),
    ("sugarcrepe++", "s.json", "{}", "is an object, expected a list of records"),
    ("sugarcrepe++", "s.json", '[{"id": null}]', "'id' is null, expected text"),
    (
        "sugarcrepe++",
        "s.json",
        "["
        + ",\n".join(['{"id": 1, "filename": "", "caption": "", "caption2": "", "negative_caption": ""}'] * 2)
        + "]",
        r"s\.json \(record '1'\): the id '1' is used twice",
    ),
    (
        "visla",
        "x_VISLA.tsv",
        "a\tb\n",
        r"its columns, 'a, b', are those of neither VISLA file; expected either \(filename, caption",
    ),
    (
        "visla",
        "x_VISLA.tsv",
        "filename\tcaption\tsecond positive\tnegative_caption\n1\t2\t3\n",
        r"x_VISLA\.tsv:2: has 3 cells, expected 4 as in the header",
    ),
    (
        "visla-spatial",
        "x_VISLA.tsv",
        "filename\tcaption\tsecond positive\tnegative_caption\n1\t2\t3\t4\n",
        "not the spatial",
    ),
    ("valse", "v.json", '{"k": {"caption": "a", "foil": "b"}}', r"\(record 'k'\): has no votes; expected mturk"),
    ("valse", "v.json", '{"k": 3}', "is a number, expected an object with caption, foil"),
    (
        "vl-checklist",
        "c.json",
        '[["a.jpg", {"POS": ["x"], "NEG": []}]]',
        "'NEG' is a list, expected a list with a text",
    ),
    ("vl-checklist", "c.json", '[["a.jpg"]]', r'expected \[image, {"POS": \[text\], "NEG": \[text\]}\]'),
    ("crepe", "prod_x.csv", "", "is empty; the first line must name the columns"),
    ("crepe", "prod_x.csv", "a,a\n1,2\n", "names the column 'a' twice"),
    ("crepe", "prod_x.csv", "a,b\n1,2\n", "has no field 'hard_negs'; its fields are: a, b"),
    ("crepe", "prod_x.csv", 'a,b\n1,"2\n', "is not a table that can be read .unexpected end of data"),
    (
        "crepe",
        "prod_x.csv",
        "hard_negs\nfoo()\n",
        "'hard_negs' is 'foo\\(\\)', expected a Python list or set of strings",
    ),
    ("crepe", "prod_x.csv", "hard_negs\n['a' 'b']\n", "expected strings in quotes with commas between them"),
    ("crepe", "prod_x.csv", "hard_negs\n[1]\n", "holds '1', expected strings"),
    (
        "crepe",
        "prod_x.csv",
        "caption,image_id,hard_negs,x,y,width,height\na,1,['b'],1,2,3,wide\n",
        "'height' is 'wide'",
    ),
    ("crepe", "prod_x.csv", "caption,image_id,hard_negs,x\na,1,['b'],1\n", "'y' is missing, expected a number"),
    ("vsr", "v.jsonl", '{"label": 2}', "has no label; expected label: 0 or 1"),
    ("cola", "c.json", "[[1]]", r"is a list, expected \[image 1, caption 1, image 2, caption 2\]"),
    ("aro-vg-relation", "r.json", '[{"bbox_x": null}]', "'bbox_x' is null, expected a number"),
    (
        "aro-coco-order",
        "o.json",
        '[{"image": "a", "caption": ["b"]}]',
        r"without their four shuffles.*creperie make rules:shuffle --as-published --captions karpathy:PATH",
    ),
    ("aro-coco-order", "o.json", '[{"image": "a", "caption_options": ["b"]}]', "holds 1 texts, expected at least 5"),
    ("winoground", "w.txt", "x", "is not a table that can be read; expected one of .json"),
    ("hard-positives", "h.json", "[]", "the file with the hard positives does not exist; write hard-positives:FILE"),
    ("sade", "s.jsonl", '{"references": ["a", "b"], "image": "c", "positive": 2}', "expected 0 to 1"),
    ("sade", "s.jsonl", '{"references": ["a", "b"], "images": ["c"]}', "has 1 images and 2 references"),
    (
        "hit-or-be-hit",
        "h.jsonl",
        '{"image": "i", "caption_1": "a", "caption_2": "b", "foil_1": "c", "foil_2": "d", "simplified": "maybe"}',
        "'simplified' is 'maybe', expected true or false",
    ),
    ("coco-captions", "c.json", "[]", "the document is a list, expected an object"),
    ("coco-captions", "c.json", '{"images": [], "annotations": [{"image_id": 3}]}', "there is no image with the id 3"),
    (
        "coco-captions",
        "c.json",
        '{"images": [{"id": "x"}], "annotations": []}',
        r"images\[0\]\): 'id' is text, expected a whole",
    ),
    ("karpathy", "k.json", '[{"image": "a", "caption": 3}]', "'caption' is a number, expected text"),
    ("karpathy", "k.json", '{"images": 3}', "'images' is a number, expected a list"),
    ("conceptual-captions", "c.tsv", "a\tb\nc\n", r"c\.tsv:2: has 1 cells, expected a caption and a link"),
    ("flickr-captions", "f.token", "nothing\n", "these files contain no items"),
    (
        "csv",
        "t.csv",
        "a,b\n1,2\n",
        "no column name says which column has the true captions; pass `positive='COLUMN'`, one of: a, b",
    ),
    ("csv", "t.csv", "caption,caption\n1,2\n", "names the column 'caption' twice"),
    ("csv", "t.csv", "caption,image\nx\n", r"t\.csv:2: has 1 cells, expected 2.*in quotes"),
    ("csv", "t.csv", 'caption\n"x" y\n', r"t\.csv:2: is not a table that can be read .*`no_quotes=True`"),
    ("csv", "t.csv", b"caption\n\xff\n", "is not UTF-8"),
    ("csv", "t.csv", "caption\n", "contains no row with a caption"),
    ("jsonl", "t.jsonl", '{"caption": "a"}\n3\n', r"t\.jsonl:2: is a number, expected an object"),
    ("jsonl", "t.jsonl", '{"caption": "a"}\n{"caption": 3}\n', r"t\.jsonl:2: 'caption' is a number, expected text"),
    ("jsonl", "t.jsonl", '{"caption": ["a", {}]}\n', r"t\.jsonl:1: 'caption' is an object, expected text"),
    ("jsonl", "t.jsonl", '{"caption": "a", "caption": "b"}\n', r"t\.jsonl:1: contains the key 'caption' twice"),
    ("jsonl", "t.jsonl", '{"caption": "\\ud800"}\n', "unpaired surrogate"),
    ("jsonl", "t.json", '{\n  "0": {}\n}', "is one object over several lines, expected a list.*`format='NAME'`"),
    ("jsonl", "t.jsonl", '[{"caption": "a"}, 3]', r"\(record 1\): is a number, expected an object"),
    ("jsonl", "t.jsonl", '{"caption": "a", "id": 1}\n{"caption": "b", "id": 1}', "item id '1' appears 2 times"),
    ("jsonl", "t.jsonl", '{"caption": "a", "id": null}', "'id' is null, expected an id"),
    (
        "jsonl",
        "t.jsonl",
        '{"id": "a", "subset": "s", "images": ["i", "j"], "captions": ["a"], "match": [[true]]}',
        "'match' is not a matrix of 2 × 1",
    ),
    (
        "jsonl",
        "t.jsonl",
        '{"id": "a", "subset": "s", "images": ["i"], "captions": ["a", "b"], "match": [[1, 2]]}',
        "true and false, or 1 and 0",
    ),
    ("parquet", "t.parquet", "nothing", "cannot be read as Parquet"),
]


@pytest.mark.parametrize(("format", "name", "content", "line"), BAD, ids=[f"{i}-{b[0]}" for i, b in enumerate(BAD)])
def test_one_line_says_what_is_wrong(load: Load, format: str, name: str, content: str | bytes, line: str) -> None:
    with pytest.raises(CreperieError, match=line) as caught:
        load(format, name, content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["sugarcrepe", "vl-checklist", "crepe", "csv", "conceptual-captions", "winoground"])
def test_a_path_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(CreperieError, match="there is no such file"):
        read_format(find_format(name), str(tmp_path / "nowhere"))
    with pytest.raises(CreperieError):
        read_format(find_format(name), "a\0b")


@pytest.mark.parametrize("name", ["sugarcrepe", "vl-checklist", "crepe", "conceptual-captions", "winoground", "visla"])
def test_a_folder_without_such_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "LICENSE").write_text("MIT")
    with pytest.raises(CreperieError, match=f"^{re.escape(str(tmp_path))}: this folder contains no "):
        read_format(find_format(name), str(tmp_path))


def test_files_that_are_no_data_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "swap.json").write_text('{"0": {"filename": "a", "caption": "b", "negative_caption": "c"}}')
    for name in ("croissant_metadata.json", "dataset_infos.json", "README.md", ".hidden.json", "unrefined/swap.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("no data")
    assert read_format(find_format("sugarcrepe"), str(tmp_path)).subsets == {"swap": 1}


def test_crepe_keeps_its_two_sets_apart(tmp_path: Path) -> None:
    for name in ("prod_x.csv", "syst_vg_hard_negs_seen_compounds_in_yfcc.csv"):
        (tmp_path / name).write_text("caption,image_id,hard_negs,valid_hard_negs_comp\na,1,['b'],['c']\n")
    with pytest.raises(CreperieError, match="holds both sets"):
        read_format(find_format("crepe"), str(tmp_path))
    assert read_format(find_format("crepe-productivity"), str(tmp_path)).subsets == {"x": 1}
    chosen = read_format(find_format("crepe-systematicity"), f"{tmp_path}?negatives=comp")
    assert chosen.subsets == {"yfcc_seen": 1}
    assert chosen[0].captions == ("a", "c")
    one = read_format(
        find_format("crepe"), f"{tmp_path / 'syst_vg_hard_negs_seen_compounds_in_yfcc.csv'}?column=hard_negs"
    )
    assert one[0].captions == ("a", "b")


def test_hard_positives_must_be_aligned(tmp_path: Path) -> None:
    row = '{"true_caption": "a", "false_caption": "b", "image_path": "%s"}'
    for folder, text in (("data", f"[{row % 'x'}]"), ("swapped_data", f"[{row % 'y'}]")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.json").write_text(text)
    format = find_format("hard-positives")
    with pytest.raises(CreperieError, match="does not name the same image"):
        read_format(format, str(tmp_path))
    (tmp_path / "swapped_data" / "a.json").write_text(f"[{row % 'x'}, {row % 'x'}]")
    with pytest.raises(CreperieError, match=r"has 2 records, but the file of the same name in .* has 1"):
        read_format(format, str(tmp_path))
    (tmp_path / "swapped_data" / "a.json").write_text(f"[{row % 'x'}]")
    for path in (tmp_path, tmp_path / "data", tmp_path / "data" / "a.json"):
        assert len(read_format(format, str(path))) == 1


def test_a_match_may_be_written_in_ones_and_zeros(load: Load) -> None:
    item = '{"id": "a", "subset": "s", "images": ["i"], "captions": ["a", "b"], "match": [[MATCH]]}'
    numbers, words = (load("jsonl", "t.jsonl", item.replace("MATCH", match)) for match in ("1, 0", "true, false"))
    assert numbers.hash == words.hash
