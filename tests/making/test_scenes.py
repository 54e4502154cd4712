"""Twins from annotations: the four layouts, what is a fact, and which pairs are kept."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from creperie.auditing import audit
from creperie.bench import PAIRED, load
from creperie.core import CreperieError
from creperie.making import make
from creperie.making.facts import AnnotatedImage, AnnotatedThing, facts_of, read_annotations

pytest.importorskip("lemminflect")

CATEGORIES = ["person", "dog", "cat", "cup", "zebra", "fork"]


def coco(tmp_path, *photographs):
    """A file in COCO's layout; a photograph is a list of (category, box) or (category, box, {"iscrowd": 1})."""
    document = {
        "images": [{"id": n, "file_name": f"{n}.jpg", "width": 640, "height": 480} for n in range(len(photographs))],
        "categories": [{"id": n, "name": name, "supercategory": "x"} for n, name in enumerate(CATEGORIES)],
        "annotations": [],
    }
    for image, things in enumerate(photographs):
        for name, box, *more in things:
            number = len(document["annotations"])
            record = {"id": number, "image_id": image, "category_id": CATEGORIES.index(name), "bbox": box}
            record |= {"area": box[2] * box[3], "iscrowd": 0, **(more[0] if more else {})}
            document["annotations"].append(record)
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(document))
    return f"annotations:{path}"


def facts(*things, **image):
    known = {n: AnnotatedThing(name, box, box[2] * box[3], frozenset(a)) for n, (name, box, *a) in enumerate(things)}
    photograph = AnnotatedImage("1.jpg", 640, 480, known, complete=True, **image)
    return Counter((f.kind, f.state) for f in facts_of(photograph))


LEFT, RIGHT = (10.0, 100.0, 200.0, 200.0), (400.0, 100.0, 200.0, 200.0)


def test_exchanged_positions_are_twins_in_the_picture(tmp_path):
    spec = coco(tmp_path, [("dog", LEFT), ("cat", RIGHT)], [("dog", RIGHT), ("cat", LEFT)])
    (item,) = make("mine:scenes", spec).items
    assert item.match == PAIRED
    assert item.subset == "left"
    assert set(item.images) == {"0.jpg", "1.jpg"}
    assert item.tags["edit"] == "cat ↔ dog"
    assert item.tags["evidence"] == "certain"
    one, two = item.captions
    assert sorted(one.lower().strip(".").split()) == sorted(two.lower().strip(".").split())
    assert all("picture" in caption for caption in item.captions)
    dog_first = dict(zip(item.images, item.captions))["0.jpg"]
    words = dog_first.lower()
    turned = "right of" in words or "further right" in words
    assert (words.index("dog") < words.index("cat")) != turned


@pytest.mark.parametrize(
    ("things", "image", "expected"),
    [
        ([("dog", LEFT), ("cat", (180.0, 100.0, 200.0, 200.0))], {}, {("left", "dog")}),  # each ends before the middle
        ([("dog", LEFT), ("cat", (40.0, 100.0, 200.0, 200.0))], {}, set()),  # side by side, but not clearly
        ([("dog", LEFT), ("cat", (400.0, 100.0, 20.0, 20.0))], {}, set()),  # too small to be noticed
        ([("dog", LEFT), ("tv", RIGHT), ("cat", (450.0, 150.0, 99.0, 99.0))], {}, {("left", "dog")}),  # on the screen
        ([("dog", LEFT), ("cat", RIGHT)], {"crowded": frozenset({"cat"})}, set()),  # more cats that nobody counted
        ([("cup", LEFT), ("wine glass", RIGHT)], {}, set()),  # people may take one for the other
        ([("dog", LEFT), ("dog", (10.0, 300.0, 200.0, 150.0)), ("cat", RIGHT)], {}, {("left", "all the dogs")}),
        ([("dog", LEFT), ("cat", (300.0, 5.0, 90.0, 90.0))], {}, {("left", "dog"), ("above", "cat"), ("size", "dog")}),
    ],
)
def test_what_is_a_fact(things, image, expected):
    assert {f for f in facts(*things, **image) if f[0] in ("left", "above", "size")} == expected


def test_counts_only_where_people_agree_on_them():
    zebras = [("zebra", (100.0 * n, 100.0, 90.0, 90.0)) for n in range(3)]
    assert ("count", "three") in facts(*zebras)
    assert not any(kind == "count" for kind, _ in facts(*zebras, crowded=frozenset({"zebra"})))
    assert not any(kind == "count" for kind, _ in facts(("fork", LEFT), ("fork", RIGHT)))


def test_more_needs_a_margin():
    people = [("person", (100.0 * n, 10.0, 90.0, 90.0)) for n in range(4)]
    assert ("more", "people") in facts(*people, ("dog", LEFT))
    assert not any(kind == "more" for kind, _ in facts(*people[:3], ("dog", LEFT)))


def test_attributes_change_things_and_exclude_each_other():
    assert facts(("car", LEFT, "red"), ("boat", RIGHT, "blue"))["swap_att", "blue boat"]
    assert not facts(("car", LEFT, "red"), ("boat", RIGHT, "red"))["swap_att", "red boat"]
    assert not facts(("car", LEFT, "red"), ("boat", RIGHT, "wooden"))["swap_att", "wooden boat"]


def test_counts_and_sizes_are_capped_and_exchanges_stay(tmp_path):
    one = [("zebra", LEFT)]
    two = [("zebra", LEFT), ("zebra", RIGHT)]
    made = make("mine:scenes", coco(tmp_path, *[one, two] * 8))
    assert made.report["subsets"] == {"count": 2}
    assert made.report["reasons"] == {"its words or photographs are in enough items already": 6}
    assert made.report["composition"]["most_frequent"] == {"one ↔ two zebra": 1.0}


def test_blind_attackers_know_nothing(tmp_path):
    photographs = [[("dog", LEFT), ("cat", RIGHT)], [("dog", RIGHT), ("cat", LEFT)]]
    photographs += [[("zebra", LEFT), ("person", RIGHT)], [("zebra", RIGHT), ("person", LEFT)]]
    make("mine:scenes", coco(tmp_path, *photographs), tmp_path / "out")
    found = audit(load(tmp_path / "out"), attackers=("length-words", "surface"))
    assert {row.measure.accuracy for row in found.rows} == {0.5}


SCENE = {"object_id": 1, "names": ["Cat"], "x": 10, "y": 20, "w": 30, "h": 40, "attributes": ["Black "]}
OTHER = {"object_id": 2, "names": ["mat"], "x": 0, "y": 50, "w": 90, "h": 40}


@pytest.mark.parametrize(
    ("name", "document", "beside"),
    [
        (
            "scene_graphs.json",
            [
                {
                    "image_id": 7,
                    "objects": [SCENE, OTHER],
                    "relationships": [{"predicate": "ON", "subject_id": 1, "object_id": 2}],
                }
            ],
            {"image_data.json": [{"image_id": 7, "width": 100, "height": 100}]},
        ),
        (
            "relationships.json",
            [{"image_id": 7, "relationships": [{"predicate": "on", "subject": SCENE, "object": OTHER}]}],
            {"image_data.json": [{"image_id": 7, "width": 100, "height": 100}]},
        ),
        (
            "annotations_train.json",
            {
                "7.jpg": [
                    {
                        "predicate": 1,
                        "subject": {"category": 0, "bbox": [20, 60, 10, 40]},
                        "object": {"category": 1, "bbox": [50, 90, 0, 90]},
                    }
                ]
            },
            {"objects.json": ["cat", "mat"], "predicates.json": ["under", "on"]},
        ),
        (
            "train_sceneGraphs.json",
            {
                "7": {
                    "width": 100,
                    "height": 100,
                    "objects": {
                        "1": {
                            "name": "cat",
                            **{k: SCENE[k] for k in "xywh"},
                            "attributes": ["black"],
                            "relations": [{"name": "on", "object": "2"}],
                        },
                        "2": {"name": "mat", **{k: OTHER[k] for k in "xywh"}, "attributes": [], "relations": []},
                    },
                }
            },
            {},
        ),
    ],
)
def test_scene_graphs_in_their_published_layouts(tmp_path, name, document, beside):
    for file, content in {name: document, **beside}.items():
        (tmp_path / file).write_text(json.dumps(content))
    (image,) = read_annotations(tmp_path / name)
    assert image.file == "7.jpg"
    assert not image.complete
    cat, mat = image.things.values()
    assert (cat.name, cat.box) == ("cat", (10.0, 20.0, 30.0, 40.0))
    assert (mat.name, mat.box) == ("mat", (0.0, 50.0, 90.0, 40.0))
    ((subject, predicate, thing),) = image.relations
    assert (image.things[subject], predicate, image.things[thing]) == (cat, "on", mat)
    assert cat.attributes == (frozenset() if name.startswith("annotations") else {"black"})
    assert ("swap_obj", "cat") in {(f.kind, f.state) for f in facts_of(image)}


def test_half_truths_turn_one_detail_of_a_longer_caption(tmp_path):
    photographs = [[("dog", LEFT), ("cat", RIGHT)], [("dog", RIGHT), ("cat", LEFT)], [("zebra", LEFT)]]
    items = make("mine:half-truths", coco(tmp_path, *photographs)).items
    assert {item.images for item in items} == {("0.jpg",), ("1.jpg",)}
    for item in items:
        short, full, half = item.captions
        assert item.match == ((True, True, False),)
        assert full.startswith(short[:-1])
        assert half.startswith(short[:-1])
        dog_is_left = item.images == ("0.jpg",)
        dog_first = full.index("dog") < full.index("cat")
        assert ("further left" in full) == (dog_is_left == dog_first)
        assert half == full.replace("left", "x").replace("right", "left").replace("x", "right")
    many = [[("dog", LEFT), ("cat", RIGHT)]] * 9
    assert make("mine:half-truths", coco(tmp_path, *many)).report["subsets"] == {"half_left": 2}  # the cap
    with pytest.raises(CreperieError, match="annotated photographs"):
        make("mine:half-truths", ["A dog barks."])


def test_half_truths_leave_out_things_that_are_hard_to_see(tmp_path):
    """A fact is certain only of things that a person would name: large enough, and not cut off by the border."""
    tiny, clear, cut = (400.0, 100.0, 40.0, 40.0), (400.0, 100.0, 60.0, 60.0), (580.0, 100.0, 60.0, 60.0)
    assert make("mine:half-truths", coco(tmp_path, [("dog", LEFT), ("cat", tiny)])).items == ()
    for box, evidence in ((tiny, "likely"), (clear, "certain"), (cut, "likely")):
        spec = coco(tmp_path, [("dog", LEFT), ("cat", box)], [("dog", box), ("cat", LEFT)])
        assert {i.tags["evidence"] for i in make("mine:scenes", spec).items} == {evidence}


def test_confusions_share_the_same_colours_out_otherwise(tmp_path):
    objects = {
        "1": {"name": "car", "x": 10, "y": 10, "w": 30, "h": 30, "attributes": ["red"], "relations": []},
        "2": {"name": "boat", "x": 60, "y": 10, "w": 30, "h": 30, "attributes": ["blue"], "relations": []},
    }
    path = tmp_path / "train_sceneGraphs.json"
    path.write_text(json.dumps({"7": {"width": 100, "height": 100, "objects": objects}}))
    (item,) = make("mine:confusion", f"annotations:{path}").items
    assert item.match == ((True, False, False, False),)
    assert item.captions[0] == "The picture shows a blue boat and a red car."
    assert set(item.captions[1:]) == {
        "The picture shows a red boat and a blue car.",
        "The picture shows a blue boat and a blue car.",
        "The picture shows a red boat and a red car.",
    }


def test_wrong_files_are_told_in_one_line(tmp_path):
    with pytest.raises(CreperieError, match="no such annotation file"):
        make("mine:scenes", f"annotations:{tmp_path / 'none.json'}")
    (tmp_path / "bad.json").write_text('[{"image_id": 1, "objects": [{"names": ["cat"]}]}]')
    with pytest.raises(CreperieError, match="unexpected annotation format"):
        make("mine:scenes", f"annotations:{tmp_path / 'bad.json'}")
    with pytest.raises(CreperieError, match="annotated photographs"):
        make("mine:scenes", ["A dog barks."])


def test_the_annotated_photographs_at_hand(shared_data):
    """No photograph is in more than two items; no contrast has more than 2 % of the items, or two."""
    made = make("mine:scenes", f"annotations:{shared_data / 'coco_boxes' / 'instances.json'}")
    assert made.report["subsets"]["left"] + made.report["subsets"]["above"] >= 20
    assert max(Counter(image for item in made.items for image in item.images).values()) <= 2
    edits = Counter(item.tags["edit"] for item in made.items)
    assert max(edits.values()) <= max(2, 0.02 * len(made.items))
