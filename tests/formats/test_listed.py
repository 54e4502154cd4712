"""Benchmarks read by templates: small files of our own in the shape that their authors' loaders expect."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from creperie.bench import catalog_entries, find_entry, find_format, load, open_image, write_format
from creperie.bench.formats.listed import FORMATS
from creperie.core import CreperieError

T, F = True, False
CROSS = ((T, F), (F, T))
PAIR = ((T, F),)

BLA = [{"image_id": "7", "caption_group": [{"True1": "a", "True2": "b", "False1": "c", "False2": "d"}]}]
SVO = (
    "sentence,pos_triplet,neg_triplet,pos_url,neg_url,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\n"
    'a crab waves,"crab,wave,","crab,sleep,",http://x/1,http://x/2,1,2,False,True,False\n'
    'a crab waves,"crab,wave,","gull,sleep,",http://x/1,http://x/3,1,3,True,True,False\n'
)
PAIRS = [{"image0": "eqbenag/1.png", "caption0": "a crab", "image1": "eqbenag/2.png", "caption1": "a gull"}]
NATURAL = [{"index": 0, "image_0": "1.jpg", "image_1": "2.jpg", "caption_0": "a crab", "caption_1": "a gull"}]
MMVP = "id,type,statement\n1,Orientation,a crab to the left\n2,Orientation,a crab to the right\n"
I2T = [{"query": "images/1.jpg", "keys": ["a big crab", "a small crab"], "label": 1}]
T2I = [{"query": "a big crab", "keys": ["images/1.jpg", "images/2.jpg", "images/3.jpg"], "label": 2}]
VISMIN = "image_path,caption,edited_image_path,edited_caption,edit_id\n/1.jpg,a crab,/7/0.png,two crabs,7-0\n"
CODE = {"shore_1": {"1": "the crab waves", "0": "the crab sleeps"}}
COUNTER = (
    '{"id": "7_0", "image_0": "7_0_img_0", "image_1": "7_0_img_1", "caption_0": "a crab", "caption_1": "a gull"}\n'
)
VIDEO = (
    '{"src_dataset": "SHORE", "video_name": "crab7.mp4", "caption": "a crab opens", '
    '"counterfactual": "a crab shuts", "aspect": "Direction"}\n'
)
FOIL = {
    "annotations": [
        {"id": 5, "foil_id": 9, "image_id": 42, "caption": "a crab waves", "foil": False, "target_word": "ORIG"},
        {"id": 5, "foil_id": 10, "image_id": 42, "caption": "a gull waves", "foil": True, "target_word": "crab"},
    ]
}
#: format → files, and the items that come out of them
EXAMPLES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "bla": (
        {"annotations/coordination_captions.json": BLA},
        [("coordination", "0", ("7.jpg",), ("a", "b", "c", "d"), ((T, T, F, F),))],
    ),
    "svo-probes": ({"svo_probes.csv": SVO}, [("verb", "0", ("1.jpg", "2.jpg"), ("a crab waves",), ((T,), (F,)))]),
    "whatsup": (
        {
            "controlled_images_dataset.json": [{"image_path": "data/1.jpeg", "caption_options": ["a", "b", "c", "d"]}],
            "coco_qa_one_obj.json": [[42, "crab on the left", "crab on the right"]],
            "vg_qa_two_obj.json": [[42, "a crab above a rock", "a crab below a rock"]],
        },
        [
            ("coco_qa_one_obj", "0", ("val2017/000000000042.jpg",), ("crab on the left", "crab on the right"), PAIR),
            ("controlled_images", "0", ("data/1.jpeg",), ("a", "b", "c", "d"), ((T, F, F, F),)),
            ("vg_qa_two_obj", "0", ("vg_images/42.jpg",), ("a crab above a rock", "a crab below a rock"), PAIR),
        ],
    ),
    "eqben": (
        {"all_select.json": PAIRS},
        [("eqbenag", "0", ("eqbenag/1.png", "eqbenag/2.png"), ("a crab", "a gull"), CROSS)],
    ),
    "naturalbench-retrieval": (
        {"metadata.json": NATURAL},
        [("naturalbench-retrieval", "0", ("images/1.jpg", "images/2.jpg"), ("a crab", "a gull"), CROSS)],
    ),
    "mmvp-vlm": (
        {"Questions.csv": MMVP},
        [
            (
                "Orientation",
                "1",
                ("Orientation/1.jpg", "Orientation/2.jpg"),
                ("a crab to the left", "a crab to the right"),
                CROSS,
            )
        ],
    ),
    "spec": (
        {"data/size/image2text.json": I2T, "data/size/text2image.json": T2I},
        [
            ("size-image2text", "0", ("size/images/1.jpg",), ("a big crab", "a small crab"), ((F, T),)),
            (
                "size-text2image",
                "0",
                ("size/images/1.jpg", "size/images/2.jpg", "size/images/3.jpg"),
                ("a big crab",),
                ((F,), (F,), (T,)),
            ),
        ],
    ),
    "vismin": (
        {"counting.csv": VISMIN},
        [("counting", "7-0", ("original_images/1.jpg", "edited_images/7/0.png"), ("a crab", "two crabs"), CROSS)],
    ),
    "imagecode": (
        {"valid_data.json": CODE, **{f"image-sets/shore_1/img{n}.jpg": "" for n in (3, 12)}},
        [
            ("valid", "shore_1/1", ("shore_1/img3.jpg", "shore_1/img12.jpg"), ("the crab waves",), ((F,), (T,))),
            ("valid", "shore_1/0", ("shore_1/img3.jpg", "shore_1/img12.jpg"), ("the crab sleeps",), ((T,), (F,))),
        ],
    ),
    "coco-counterfactuals": (
        {"data/examples.jsonl": COUNTER},
        [("coco-counterfactuals", "7_0", ("7_0_img_0.jpg", "7_0_img_1.jpg"), ("a crab", "a gull"), CROSS)],
    ),
    "foil-it": (
        {"foilv1.0_test_2017.json": FOIL},
        [("test", "10", ("COCO_val2014_000000000042.jpg",), ("a crab waves", "a gull waves"), PAIR)],
    ),
    "vitatecs": (
        {"Direction.jsonl": VIDEO},
        [("Direction", "0", ("SHORE/crab7.mp4",), ("a crab opens", "a crab shuts"), PAIR)],
    ),
}


def put(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_files_become_items(name: str, tmp_path: Path) -> None:
    files, wanted = EXAMPLES[name]
    bench = load(f"{name}:{put(tmp_path, files)}")
    assert [(i.subset, i.id, i.images, i.captions, i.match) for i in bench] == wanted
    assert len(bench.skipped) == (1 if name == "svo-probes" else 0)
    with pytest.raises(CreperieError, match="read-only"):
        write_format(find_format(name), bench, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "picture"),
    [
        ("mmvp-vlm", "MLLM_VLM Images/Orientation/1.jpg"),
        ("whatsup", "val2017/000000000042.jpg"),
        ("spec", "data/size/images/1.jpg"),
        ("naturalbench-retrieval", "images/1.jpg"),
        ("vismin", "original_images/1.jpg"),
        ("imagecode", "image-sets/shore_1/img3.jpg"),
    ],
)
def test_pictures_where_the_authors_put_them_are_found(name: str, picture: str, tmp_path: Path) -> None:
    put(tmp_path, EXAMPLES[name][0])
    (tmp_path / picture).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), "red").save(tmp_path / picture)
    bench = load(f"{name}:{tmp_path}")
    assert open_image(bench.images, bench[0].images[0]).getpixel((0, 0))[0] > 200


def test_bivlc_as_parquet_brings_its_images(tmp_path: Path) -> None:
    def picture(colour: str) -> dict[str, Any]:
        sink = io.BytesIO()
        Image.new("RGB", (4, 4), colour).save(sink, "PNG")
        return {"bytes": sink.getvalue(), "path": None}

    row = {
        "image": picture("red"),
        "caption": "a crab",
        "negative_caption": "a gull",
        "negative_image": picture("blue"),
    }
    pq.write_table(pa.Table.from_pylist([{**row, "type": "replace", "subtype": "obj"}]), tmp_path / "test.parquet")
    bench = load(f"bivlc:{tmp_path}")
    (item,) = bench
    assert (item.subset, item.captions, item.match) == ("replace_obj", ("a crab", "a gull"), CROSS)
    assert [open_image(bench.images, i).getpixel((0, 0)) for i in item.images] == [(255, 0, 0), (0, 0, 255)]


@pytest.mark.parametrize(
    ("name", "file", "content", "says"),
    [
        ("bla", "coordination_captions.json", [{"image_id": "7", "caption_group": []}], "has no value for"),
        ("bla", "coordination_captions.json", [{"image_id": None, "caption_group": []}], "is null, expected text"),
        ("whatsup", "controlled_clevr_dataset.json", [{"image_path": "1", "caption_options": "a"}], "a list of texts"),
        ("whatsup", "controlled_clevr_dataset.json", [{"image_path": "1", "caption_options": []}], "no captions"),
        ("spec", "size/image2text.json", [{"query": "1", "keys": ["a"], "label": 3}], "not the number of a candidate"),
        ("mmvp-vlm", "Questions.csv", "id,type,statement\n1,O,a crab\n", "2 rows make one record"),
        (
            "svo-probes",
            "svo_probes.csv",
            "sentence,pos_image_id,neg_image_id\na,1,2\n",
            "is missing, or is neither",
        ),
        ("imagecode", "valid_data.json", CODE, "unpack image-sets.zip"),
        ("foil-it", "foilv1.0_test_2017.json", {"images": []}, "no list of annotations"),
        ("foil-it", "foilv1.0_test_2017.json", {"annotations": [FOIL["annotations"][1]]}, "is null, expected text"),
    ],
)
def test_wrong_files_name_the_place(name: str, file: str, content: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(CreperieError, match=says) as e:
        load(f"{name}:{put(tmp_path, {file: content})}")
    assert file in str(e.value)


def test_every_reader_has_an_example_and_a_catalog_entry() -> None:
    names = {f.name for f in FORMATS}
    assert names == {*EXAMPLES, "bivlc"}
    assert names <= {e.format for e in catalog_entries()}


@pytest.mark.parametrize(
    "name", ["bla", "foil-it", "svo-probes", "bivlc", "whatsup", "eqben", "naturalbench", "mmvp-vlm"]
)
def test_what_was_looked_at_is_said(name: str) -> None:
    """No annotation file of these was seen, only the code that reads it: the entry must say so."""
    assert any("not seen" in note for note in find_entry(name).notes)
