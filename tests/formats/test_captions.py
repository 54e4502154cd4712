"""Raw caption sources: every image with its true captions."""

from __future__ import annotations

import json
from collections.abc import Callable

from creperie.bench import Benchmark, Item, choice

Load = Callable[[str, str, str | bytes], Benchmark]


def test_coco_annotations(load: Load) -> None:
    document = {
        "info": {},
        "images": [
            {"id": 9, "file_name": "000009.jpg"},
            {"id": 7, "file_name": "000007.jpg"},
            {"id": 8, "file_name": "8.jpg"},
        ],
        "annotations": [
            {"image_id": 7, "id": 1, "caption": "A crab. "},
            {"image_id": 9, "id": 2, "caption": "A gull."},
            {"image_id": 7, "id": 3, "caption": "A red crab."},
        ],
    }
    bench = load("coco-captions", "captions_val2017.json", json.dumps(document))
    assert list(bench) == [
        Item("9", "captions_val2017", ("000009.jpg",), ("A gull.",), choice(1, 0)),
        Item("7", "captions_val2017", ("000007.jpg",), ("A crab. ", "A red crab."), choice(2, 0)),
    ]
    assert [(s.id, s.reason) for s in bench.skipped] == [("8", "an image without captions")]


def test_karpathys_own_file(load: Load) -> None:
    row = {
        "filepath": "val2014",
        "filename": "x.jpg",
        "split": "test",
        "imgid": 4,
        "cocoid": 12,
        "sentences": [{"raw": "A crab"}],
    }
    bench = load("karpathy", "dataset_coco.json", json.dumps({"images": [row], "dataset": "coco"}))
    assert list(bench) == [Item("4", "test", ("val2014/x.jpg",), ("A crab",), choice(1, 0), {"cocoid": "12"})]


def test_lists_for_retrieval(load: Load) -> None:
    rows = [{"image": "a.jpg", "caption": ["A", "B"]}, {"image": "b.jpg", "caption": "C"}]
    bench = load("karpathy", "coco_karpathy_test.json", json.dumps(rows))
    assert list(bench) == [
        Item("0", "coco_karpathy_test", ("a.jpg",), ("A", "B"), choice(2, 0)),
        Item("1", "coco_karpathy_test", ("b.jpg",), ("C",), choice(1, 0)),
    ]


def test_flickr_in_its_three_spellings(load: Load) -> None:
    token = "1.jpg#0\tA crab .\n2.jpg#0\tA gull .\n1.jpg#1\tTwo  claws .\n"
    bars = "image_name| comment_number| comment\n1.jpg| 0| A crab .\n1.jpg| 1| A | claw .\n2.jpg| 4   A gull .\n"
    commas = 'image,caption\n1.jpg,"A crab, red ."\n1.jpg,A "claw" .\n'
    read = {
        name: load("flickr-captions", name, text)
        for name, text in (("a.token", token), ("b.csv", bars), ("c.txt", commas))
    }
    assert [(i.id, i.captions) for i in read["a.token"]] == [
        ("1.jpg", ("A crab .", "Two  claws .")),
        ("2.jpg", ("A gull .",)),
    ]
    assert [i.captions for i in read["b.csv"]] == [("A crab .", "A | claw .")]
    assert [s.id for s in read["b.csv"].skipped] == ["line 4"]  # the published file has a line without its last bar
    assert [i.captions for i in read["c.txt"]] == [("A crab, red .", 'A "claw" .')]


def test_conceptual_captions(load: Load) -> None:
    bench = load(
        "conceptual-captions", "Train_GCC-training.tsv", "a crab on a rock\thttp://x/1.jpg\na gull \thttp://x/2?a=b#c\n"
    )
    assert [(i.id, i.images, i.captions) for i in bench] == [
        ("0", ("http://x/1.jpg",), ("a crab on a rock",)),
        ("1", ("http://x/2?a=b#c",), ("a gull ",)),
    ]
    assert bench.subsets == {"Train_GCC-training": 2}
