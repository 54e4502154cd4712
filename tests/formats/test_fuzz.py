"""Whatever is in a file: a benchmark comes out, and its export says the same, or one of creperie's own errors."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creperie.bench import Benchmark, find_format, list_formats, read_format
from creperie.core import CreperieError

#: Ten examples of each format are hundreds of each reader, which formats share.
MANY = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
#: What a reader looks at first: the name of a file of each format.
NAMES = {
    "visla": "Spatial_VISLA.tsv",
    "visla-generic": "Generic_VISLA.tsv",
    "visla-spatial": "Spatial_VISLA.tsv",
    "negclip": "x.tsv",
    "crepe": "prod_x.csv",
    "crepe-productivity": "prod_x.csv",
    "crepe-systematicity": "syst_x.csv",
    "vsr": "x.jsonl",
    "winoground": "x.jsonl",
    "sade": "x.jsonl",
    "hit-or-be-hit": "x.csv",
    "cola": "multiobjects.json",
    "aro-vg-relation": "relation.json",
    "aro-vg-attribution": "attribution.json",
    "coco-captions": "captions.json",
    "flickr-captions": "x.token",
    "conceptual-captions": "x.tsv",
    "csv": "x.csv",
    "tsv": "x.tsv",
    "jsonl": "x.jsonl",
    "parquet": "x.parquet",
    "svo-probes": "x.csv",
    "bivlc": "x.parquet",
    "mmvp-vlm": "Questions.csv",
    "vismin": "object.csv",
    "coco-counterfactuals": "x.jsonl",
    "vitatecs": "x.jsonl",
}
FORMATS = sorted(f.name for f in list_formats() if f.name != "hard-positives")
SEEDS = {
    "coco-captions": '{"images": [{"id": 7, "file_name": "7.jpg"}], '
    '"annotations": [{"image_id": 7, "caption": "A crab"}]}',
    "karpathy": '{"images": [{"filename": "7.jpg", "split": "test", "sentences": [{"raw": "A crab"}], "imgid": 3}]}',
    "flickr-captions": "7.jpg#0\tA crab .\n7.jpg#1\tA red crab .\n",
    "conceptual-captions": "a crab\thttp://x/7.jpg\na gull\thttp://x/8.jpg\n",
    "csv": 'id,image,caption,foil,tag.n\n1,7.jpg,"A crab, red",A gull,3\n2,8.jpg,A rock,A "sea",4\n',
    "tsv": "id\timage\tcaption\tfoil\n1\t7.jpg\tA crab, red\tA gull\n",
    "jsonl": '{"id": "1", "subset": "s", "images": ["7.jpg"], "captions": ["a", "b"], '
    '"match": [[true, false]], "tags": {"n": 3}}\n',
    "parquet": "PAR1",
    "bla": '[{"image_id": "7", "caption_group": [{"True1": "a", "True2": "b", "False1": "c", "False2": "d"}]}]',
    "svo-probes": "sentence,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\na crab,1,2,True,False,False\n",
    "bivlc": "PAR1",
    "whatsup": '[{"image_path": "1.jpg", "caption_options": ["a", "b"]}]',
    "eqben": '[{"image0": "s/1.png", "caption0": "a", "image1": "s/2.png", "caption1": "b"}]',
    "naturalbench-retrieval": '[{"index": 0, "image_0": "1", "image_1": "2", "caption_0": "a", "caption_1": "b"}]',
    "mmvp-vlm": "id,type,statement\n1,O,a crab\n2,O,a gull\n",
    "spec": '[{"query": "1.jpg", "keys": ["a", "b"], "label": 1}]',
    "vismin": "image_path,caption,edited_image_path,edited_caption,edit_id\n1.jpg,a,2.jpg,b,7\n",
    "imagecode": '{"s": {"1": "a"}}',
    "coco-counterfactuals": '{"id": "7", "image_0": "1", "image_1": "2", "caption_0": "a", "caption_1": "b"}\n',
    "foil-it": '{"annotations": [{"id": 1, "foil_id": 1, "image_id": 7, "caption": "a", "foil": false}, '
    '{"id": 1, "foil_id": 2, "image_id": 7, "caption": "b", "foil": true}]}',
    "vitatecs": '{"src_dataset": "S", "video_name": "7.mp4", "caption": "a", "counterfactual": "b", "aspect": "T"}\n',
}


with io.BytesIO() as _file:
    with tarfile.open(fileobj=_file, mode="w", format=tarfile.USTAR_FORMAT) as _tar:
        _entry = tarfile.TarInfo("1.json")
        _entry.size = len(SEEDS["jsonl"])
        _tar.addfile(_entry, io.BytesIO(SEEDS["jsonl"].encode()))
    SEEDS["webdataset"] = _file.getvalue().decode()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def check(folder: Path, name: str, data: bytes) -> Benchmark | None:
    """Read bytes as a format. What can be read must come back."""
    path = folder / NAMES.get(name, "x.json")
    path.write_bytes(data)
    format = find_format(name)
    try:
        bench = read_format(format, str(path))
    except CreperieError:
        return None
    finally:
        path.unlink()
    assert len(bench) == len(list(bench))
    if format.write is not None and name not in SHAPED:
        (file, written), *more = format.write(bench).items()
        assert not more
        assert equal(rows(bench), rows(read_again(folder, name, file, written)))
    return bench


#: Written only for items of some shapes, so that what was damaged into another is refused.
SHAPED = ("csv", "tsv", "sade", "hit-or-be-hit", "visla", "visla-generic", "visla-spatial")


def rows(bench: Benchmark) -> list[Any]:
    """The items but for their subsets, which the new file's name says."""
    return [(item.id, item.images, item.captions, item.match, dict(item.tags)) for item in bench]


def read_again(folder: Path, name: str, file: str, data: bytes) -> Benchmark:
    path = folder / Path(file).name
    path.write_bytes(data)
    try:
        return read_format(find_format(name), str(path))
    finally:
        path.unlink()


def equal(first: list[Any], second: list[Any]) -> bool:
    return repr(first) == repr(second)  # also where a number is NaN


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """A right file with some bytes cut out, put in, or doubled."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 20)))
        marks = [
            b"",
            b"\n",
            b"\r\n",
            b'"',
            b"'",
            b",",
            b"\t",
            b"{",
            b"}",
            b"[",
            b"]",
            b"\\",
            b"\\ud800",
            b"NaN",
            b"1e999",
        ]
        marks += [b"\xef\xbb\xbf", b"\xff", b"null", b"9" * 30, b"-0.0", b"\x00", "é🦀".encode(), data[start:end] * 2]
        data = data[:start] + draw(st.sampled_from(marks)) + data[end:]
    return data


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(folder: Path, name: str, examples: Any) -> None:
    own = {e.format: next(iter(e.files.values())) for e in examples}
    own["visla-spatial"] = next(e for e in examples if e.format == "visla").files["Spatial_VISLA.tsv"]
    own["visla"], own["visla-generic"] = own["visla-spatial"], own["visla"]
    seed = SEEDS.get(name) or own.get(name) or own[{"crepe-productivity": "crepe"}.get(name, "aro-coco-order")]
    whole = check(folder, name, seed.encode())
    assert whole is not None or name in (
        "parquet",
        "datasets",
        "bivlc",
        "imagecode",
    )  # bytes, and pictures that are not there

    @MANY
    @given(damaged(seed.encode()) | st.binary(max_size=200))
    def run(data: bytes) -> None:
        check(folder, name, data)

    run()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = [
    "id",
    "filename",
    "image",
    "image_file",
    "image_path",
    "caption",
    "caption2",
    "negative_caption",
    "foil",
    "mturk",
    "label",
    "true_caption",
    "false_caption",
    "bbox_x",
    "bbox_y",
    "bbox_w",
    "bbox_h",
    "caption_options",
    "caption_0",
    "caption_1",
    "caption_2",
    "image_0",
    "image_1",
    "image_2",
    "references",
    "images",
    "branch",
    "positive",
    "annotations",
    "sentences",
    "captions",
    "match",
    "subset",
    "tags",
    "split",
    "foil_1",
    "foil_2",
]
GOOD = st.sampled_from(
    ["A crab .", "7.jpg", " ", "", "é\ud83e\udd80", "a/b", 1, 0, 2.5, ["a", "b"], [[True, False]], {"caption": 3}]
)


@pytest.mark.parametrize("name", [n for n in FORMATS if NAMES.get(n, "x.json").endswith(("json", "jsonl"))])
def test_right_json_of_the_wrong_shape(folder: Path, name: str) -> None:
    record = st.dictionaries(st.sampled_from(FIELDS), GOOD | JSON, max_size=12) | JSON
    some = st.lists(record, max_size=4)
    document = some | st.dictionaries(st.text(max_size=4), record, max_size=4) | JSON

    @MANY
    @given(document, st.sampled_from([None, 0, 1, 4]), st.booleans(), st.sampled_from(["", "\n", " \r\n"]))
    def run(value: Any, indent: int | None, ascii: bool, end: str) -> None:
        values = value if isinstance(value, list) and NAMES.get(name, "x.json").endswith("jsonl") else None
        texts = [json.dumps(v, ensure_ascii=ascii) for v in values] if values is not None else []
        text = "\n".join(texts) if values is not None else json.dumps(value, indent=indent, ensure_ascii=ascii)
        check(folder, name, (text + end).encode("utf-8", "surrogatepass"))

    run()


@pytest.mark.parametrize("name", ["sugarcrepe", "sugarcrepe++", "vl-checklist", "aro-vg-relation", "jsonl", "karpathy"])
@pytest.mark.parametrize("mark", ["[", '{"a":', '{"0": {"filename": [', "-" * 3])
def test_deep_nesting_is_no_crash(folder: Path, name: str, mark: str) -> None:
    assert check(folder, name, mark.encode() * 100_000) is None


@pytest.mark.parametrize(
    "literal", ["[" * 50_000, "-" * 50_000 + "1", "'a' * 10**9", "[__import__('os')]", "{'a': 'b'}"]
)
def test_python_literals_are_never_evaluated(folder: Path, literal: str) -> None:
    quoted = literal.replace('"', '""')
    text = f'image_id,caption,hard_negs,x,y,width,height\n7,crab,"{quoted}",1,2,3,4\n'
    assert check(folder, "crepe", text.encode()) is None


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.mark.parametrize("side", ["data", "swapped_data"])
def test_damaged_hard_positives(folder: Path, side: str, examples: Any) -> None:
    example = next(e for e in examples if e.format == "hard-positives")
    root = example.put(folder / side)
    format = find_format("hard-positives")

    @MANY
    @given(damaged(example.files[f"{side}/attributes.json"].encode()))
    def run(data: bytes) -> None:
        (root / side / "attributes.json").write_bytes(data)
        try:
            bench = read_format(format, str(root))
        except CreperieError:
            return
        column = 1 if side == "swapped_data" else 0
        assert [item.captions[column] for item in bench] == [record["true_caption"] for record in json.loads(data)]

    run()


@MANY
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=6), st.sampled_from([None, 1, 4]), st.booleans())
def test_any_captions_survive_sugarcrepe(rows: list[tuple[str, str, str]], indent: int | None, ascii: bool) -> None:
    document = {
        str(i): {"filename": a, "caption": b, "negative_caption": c, "more": [a, 1.0]}
        for i, (a, b, c) in enumerate(rows)
    }
    data = json.dumps(document, indent=indent, ensure_ascii=ascii).encode()
    with tempfile.TemporaryDirectory() as name:
        bench = check(Path(name), "sugarcrepe", data)
    assert bench is not None
    assert [item.captions for item in bench] == [(b, c) for _, b, c in rows]
