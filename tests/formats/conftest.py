"""A small set of files in every published format, written for these tests."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from creperie.bench import Benchmark, find_format, read_format


def content(name: str, data: bytes) -> Any:
    """What a file says, whatever its style: a JSON value, the values on its lines, or the cells of its rows."""
    text = data.decode("utf-8-sig")
    if name.endswith(".json"):
        return json.loads(text)
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    rules: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if "VISLA" in name else {}
    rows = csv.reader(io.StringIO(text, newline=""), delimiter="," if name.endswith(".csv") else "\t", **rules)
    return [row for row in rows if row]


@pytest.fixture(name="content")
def content_fixture() -> Callable[[str, bytes], Any]:
    return content


@dataclass(frozen=True)
class Example:
    """Files of a format, the items that must come out of them, and the tags of the first."""

    format: str
    files: dict[str, str]
    items: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[tuple[bool, ...], ...]], ...]
    tags: dict[str, str | float | bool] | None = None
    skipped: int = 0

    def __str__(self) -> str:
        return self.format

    def put(self, folder: Path) -> Path:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        return folder


T, F = True, False
PAIR = ((T, F),)
TWO_ONE = ((T, T, F),)
CROSS = ((T, F), (F, T))

SUGARCREPE = """{
    "0": {
        "filename": "1.jpg",
        "caption": "A crab waves at a gull. ",
        "negative_caption": "A gull waves at a crab."
    },
    "17": {
        "filename": "2.jpg",
        "caption": "A sign says \\"caf\\u00e9\\"\\nin red",
        "negative_caption": "A sign says \\"bar\\" in red"
    },
    "accuracy": 0.5
}
"""
SUGARCREPE_PP = """[
 {
  "id":3,
  "filename":"1.jpg",
  "caption":"A crab waves at a gull.",
  "caption2":"A gull is waved at by a crab.",
  "negative_caption":"A gull waves at a crab."
 },
 {
  "id":7,
  "filename":"2.jpg",
  "caption":"Tea and\\/or milk",
  "caption2":"Milk and\\/or tea",
  "negative_caption":"Neither tea nor milk"
 }
]"""
VALSE = """{
    "existence_a_1": {
        "dataset": "a",
        "dataset_idx": "1",
        "image_file": "1.jpg",
        "caption": "There is a crab.",
        "classes_foil": [
            2,
            1.50
        ],
        "mturk": {
            "foil": 0,
            "caption": 2,
            "other": 1
        },
        "foil": "There is no crab."
    },
    "existence_a_2": {
        "dataset": "a",
        "image_file": "2.jpg",
        "caption": "There is a gull.",
        "mturk": {
            "foil": 2,
            "caption": 1,
            "other": 0
        },
        "foil": "There is no gull."
    }
}"""
CREPE = (
    "image_id,caption,n,n_objects,n_relations,n_attributes,n_connected_components,hard_negs,x,y,width,height\n"
    '7,crab on rock,4,2,2,0,1,"[\'gull on rock\', ""crab\'s on sand""]",1.0,2.5,30.0,40.0\n'
    "8,\"crab, gull\",4,2,2,0,1,\"{'No gull, crab.', 'Crab, no gull.'}\",0.0,0.0,30.0,40.0\n"
)
VISLA_SPATIAL = (
    "image\tsent1\tsent2\tBest reference (Semantically close)\tReference-2 (Completely irrelevant)\r\n"
    "1.jpg\tThe crab is in the box.\tThe box holds the crab.\tThe crab is outside the box.\tThe gull is on the car.\r\n"
    "2.jpg\tThe crab is on it.\tIt is under the crab.\t\t\r\n"
    '3.jpg\tThe "crab" is up.\tUp is the crab.\tThe crab is down.\t'
)
VISLA_GENERIC = (
    "filename\tcaption\tsecond positive\tnegative_caption\r\n"
    "1.jpg\tA crab waves at a gull. \tA gull is waved at.\tA gull waves at a crab.\r\n"
)
NEGCLIP = (
    "\ttitle\tfilepath\tneg_caption\tneg_image\n"
    "0\tA crab holding a flag.\tcoco/1.jpg\t['A flag holding a crab .']\t[3, 4]\n"
    '1\tA crab\'s flag.\tcoco/2.jpg\t"[""A flag\'s crab ."", \'A crab .\']"\t[]\n'
)
VSR = (
    '{"image": "1.jpg", "image_link": "http://x/1.jpg", "caption": "The crab is left of the gull.", "label": 0, '
    '"relation": "left of", "votes": "[1, 2]", "reference_frame": null}\n'
    '{"image": "2.jpg", "image_link": "http://x/2.jpg", "caption": "The crab is on the gull.", "label": 1, '
    '"relation": "on", "votes": "[]", "reference_frame": 1.0}\n'
)
COLA = """[
  [
    "https://x.org/i/1.jpg",
    "tall crab left of small gull",
    "https://x.org/i/2.jpg",
    "small crab left of tall gull"
  ]
]"""
HARD = '[{"image_id": "7", "true_caption": "%s", "false_caption": "sleeping crab", "image_path": "data/VG/7.jpg"}]'
CHECKLIST = (
    '[["VG/1.jpg", {"POS": ["red crab"], "NEG": ["blue crab"]}], '
    '["VG/2.jpg", {"POS": ["an \\"old\\" crab", "b"], "NEG": [" crab", "d"]}]]'
)
ARO = (
    '[{"image_id": "7", "image_path": "7.jpg", "bbox_x": 1, "bbox_y": 2, "bbox_w": 30, "bbox_h": 40.5, '
    '"true_caption": "the crab is on the rock", "false_caption": "the rock is on the crab", "relation_name": "on"}]'
)
ARO_ATTRIBUTE = (
    '[{"image_path": "7.jpg", "bbox_x": 1, "bbox_y": 2, "bbox_w": 30, "bbox_h": 40, '
    '"true_caption": "the red crab and the grey rock", "false_caption": "the grey crab and the red rock", '
    '"attributes": ["red", "grey"]}]'
)
ORDER = (
    '[{"image": "val/1.jpg", "caption_options": '
    '["a red crab", "crab red a", "red a crab", "a crab red", "crab a red"]}]'
)
WINOGROUND = (
    '{"id": 0, "caption_0": "a crab with a gull", "caption_1": "a gull with a crab", "image_0": "ex_0_img_0", '
    '"image_1": "ex_0_img_1", "tag": "Noun", "secondary_tag": "", "num_main_preds": 1, "collapsed_tag": "Object"}\n'
)
COLORSWAP = json.dumps(
    [
        {
            "id": 4,
            "caption_1": "a red crab and a blue gull",
            "caption_2": "a blue crab and a red gull",
            "image_1": "images/img_4_1.png",
            "image_2": "images/img_4_2.png",
            "image_source": "midjourney",
            "caption_source": "human",
        }
    ],
    indent=4,
)
SYSTEMATICITY = (
    "image_id,caption,valid_hard_negs_atom,valid_hard_negs_comp,valid_hard_negs_combined,x,y,width,height\n"
    "7,crab on rock,\"['gull on rock']\",\"['rock on crab']\",\"['gull on rock', 'rock on crab']\",1.0,2.0,3.0,4.0\n"
)

CREPE_ITEMS = (
    ("atom_4", "0", ("7.jpg#xywh=1,2.5,30,40",), ("crab on rock", "gull on rock", "crab's on sand"), ((T, F, F),)),
    ("atom_4", "1", ("8.jpg#xywh=0,0,30,40",), ("crab, gull", "Crab, no gull.", "No gull, crab."), ((T, F, F),)),
)

EXAMPLES = (
    Example(
        "sugarcrepe",
        {"swap_obj.json": SUGARCREPE},
        (
            ("swap_obj", "0", ("1.jpg",), ("A crab waves at a gull. ", "A gull waves at a crab."), PAIR),
            ("swap_obj", "17", ("2.jpg",), ('A sign says "café"\nin red', 'A sign says "bar" in red'), PAIR),
        ),
        skipped=1,
    ),
    Example(
        "sugarcrepe++",
        {"swap_obj.json": SUGARCREPE_PP},
        (
            (
                "swap_obj",
                "3",
                ("1.jpg",),
                ("A crab waves at a gull.", "A gull is waved at by a crab.", "A gull waves at a crab."),
                TWO_ONE,
            ),
            ("swap_obj", "7", ("2.jpg",), ("Tea and/or milk", "Milk and/or tea", "Neither tea nor milk"), TWO_ONE),
        ),
    ),
    Example(
        "visla",
        {"Generic_VISLA.tsv": VISLA_GENERIC, "Spatial_VISLA.tsv": VISLA_SPATIAL},
        (
            (
                "generic",
                "0",
                ("1.jpg",),
                ("A crab waves at a gull. ", "A gull is waved at.", "A gull waves at a crab."),
                TWO_ONE,
            ),
            (
                "spatial",
                "0",
                ("1.jpg",),
                ("The crab is in the box.", "The box holds the crab.", "The crab is outside the box."),
                TWO_ONE,
            ),
            ("spatial", "2", ("3.jpg",), ('The "crab" is up.', "Up is the crab.", "The crab is down."), TWO_ONE),
        ),
        skipped=1,
    ),
    Example(
        "valse",
        {"existence.json": VALSE},
        (("existence", "existence_a_1", ("1.jpg",), ("There is a crab.", "There is no crab."), PAIR),),
        tags={"dataset": "a", "dataset_idx": "1", "mturk_caption": 2.0, "mturk_foil": 0.0, "mturk_other": 1.0},
        skipped=1,
    ),
    Example(
        "vl-checklist",
        {"Attribute/vg/color.json": CHECKLIST, "corpus.json": "{}"},
        (
            ("Attribute/vg/color", "0", ("VG/1.jpg",), ("red crab", "blue crab"), PAIR),
            ("Attribute/vg/color", "1", ("VG/2.jpg",), ('an "old" crab', " crab"), PAIR),
        ),
        tags={"kind": "attribute"},
    ),
    Example(
        "crepe",
        {"atom/prod_vg_hard_negs_atom_complexity_4.csv": CREPE},
        CREPE_ITEMS,
        tags={"n": 4.0, "n_objects": 2.0, "n_relations": 2.0, "n_attributes": 0.0, "n_connected_components": 1.0},
    ),
    Example(
        "crepe-systematicity",
        {"syst_vg_hard_negs_unseen_compounds_in_cc12m.csv": SYSTEMATICITY},
        (
            (
                "cc12m_unseen",
                "0",
                ("7.jpg#xywh=1,2,3,4",),
                ("crab on rock", "gull on rock", "rock on crab"),
                ((T, F, F),),
            ),
        ),
    ),
    Example(
        "vsr",
        {"random/dev.jsonl": VSR},
        (
            ("random/dev", "0", ("1.jpg",), ("The crab is left of the gull.",), ((F,),)),
            ("random/dev", "1", ("2.jpg",), ("The crab is on the gull.",), ((T,),)),
        ),
        tags={"relation": "left of", "image_link": "http://x/1.jpg"},
    ),
    Example(
        "negclip",
        {"valid.tsv": NEGCLIP},
        (
            ("valid", "0", ("coco/1.jpg",), ("A crab holding a flag.", "A flag holding a crab ."), PAIR),
            ("valid", "1", ("coco/2.jpg",), ("A crab's flag.", "A flag's crab .", "A crab ."), ((T, F, F),)),
        ),
    ),
    Example(
        "cola",
        {"COLA_multiobjects_matching_benchmark.json": COLA},
        (
            (
                "multi_objects",
                "0",
                ("1.jpg", "2.jpg"),
                ("tall crab left of small gull", "small crab left of tall gull"),
                CROSS,
            ),
        ),
        tags={"image_link_1": "https://x.org/i/1.jpg", "image_link_2": "https://x.org/i/2.jpg"},
    ),
    Example(
        "winoground",
        {"data/examples.jsonl": WINOGROUND},
        (
            (
                "examples",
                "0",
                ("ex_0_img_0.png", "ex_0_img_1.png"),
                ("a crab with a gull", "a gull with a crab"),
                CROSS,
            ),
        ),
        tags={"tag": "Noun", "secondary_tag": "", "num_main_preds": 1.0, "collapsed_tag": "Object"},
    ),
    Example(
        "colorswap",
        {"test.json": COLORSWAP},
        (
            (
                "test",
                "4",
                ("images/img_4_1.png", "images/img_4_2.png"),
                ("a red crab and a blue gull", "a blue crab and a red gull"),
                CROSS,
            ),
        ),
        tags={"image_source": "midjourney", "caption_source": "human"},
    ),
    Example(
        "hard-positives",
        {"data/attributes.json": HARD % "walking crab", "swapped_data/attributes.json": HARD % "strolling crab"},
        (("attributes", "0", ("data/VG/7.jpg",), ("walking crab", "strolling crab", "sleeping crab"), TWO_ONE),),
        tags={"image_id": "7"},
    ),
    Example(
        "aro-vg-relation",
        {"visual_genome_relation.json": ARO},
        (
            (
                "visual_genome_relation",
                "0",
                ("7.jpg#xywh=1,2,30,40.5",),
                ("the crab is on the rock", "the rock is on the crab"),
                PAIR,
            ),
        ),
        tags={"image_id": "7", "relation_name": "on"},
    ),
    Example(
        "aro-vg-attribution",
        {"visual_genome_attribution.json": ARO_ATTRIBUTE},
        (
            (
                "visual_genome_attribution",
                "0",
                ("7.jpg#xywh=1,2,30,40",),
                ("the red crab and the grey rock", "the grey crab and the red rock"),
                PAIR,
            ),
        ),
        tags={"attributes": "red_grey"},
    ),
    Example(
        "aro-coco-order",
        {"order.json": ORDER},
        (
            (
                "order",
                "0",
                ("val/1.jpg",),
                ("a red crab", "crab red a", "red a crab", "a crab red", "crab a red"),
                ((T, F, F, F, F),),
            ),
        ),
    ),
    Example(
        "sade",
        {
            "content.jsonl": '{"branch": "content-coco", "image": "1.jpg", "positive": 1, '
            '"references": ["A bus.", "crab , rock"]}\n'
            '{"id": "w", "branch": "comprehensive", "images": ["a.png", "b.png"], "references": ["x y", "y x"]}\n'
        },
        (
            ("content-coco", "0", ("1.jpg",), ("crab , rock", "A bus."), PAIR),
            ("comprehensive", "w", ("a.png", "b.png"), ("x y", "y x"), CROSS),
        ),
    ),
    Example(
        "hit-or-be-hit",
        {
            "all.csv": "id,image,caption_1,caption_2,foil_1,foil_2,construction,simplified,source\n"
            "5,1.jpg,A crab hits a gull.,A gull is hit by a crab.,A gull hits a crab.,A crab is hit by a gull.,"
            "active-passive,true,swig\n"
        },
        (
            (
                "active-passive-simplified",
                "5",
                ("1.jpg",),
                ("A crab hits a gull.", "A gull is hit by a crab.", "A gull hits a crab.", "A crab is hit by a gull."),
                ((T, T, F, F),),
            ),
        ),
        tags={"construction": "active-passive", "simplified": True, "source": "swig"},
    ),
)


@pytest.fixture(params=EXAMPLES, ids=str)
def example(request: pytest.FixtureRequest) -> Example:
    chosen: Example = request.param
    return chosen


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str, str, str], Benchmark]:
    """Read one file, given by its name and text, in a format."""

    def read_file(format: str, name: str, text: str | bytes) -> Benchmark:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
        return read_format(find_format(format), str(path))

    return read_file


@pytest.fixture(scope="session")
def examples() -> tuple[Example, ...]:
    return EXAMPLES
