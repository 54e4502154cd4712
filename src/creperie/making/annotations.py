"""Photographs with annotated things, as their authors publish them: COCO instances, Visual Genome, VRD and GQA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from creperie.core import DataError, UsageError, read_json

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class AnnotatedThing:
    """A thing in a photograph: left, top, width and height of its box, and the pixels of its mask or box."""

    name: str
    box: Box
    area: float
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AnnotatedImage:
    """A photograph with its things by their ids, and relations as (id of the subject, predicate, id of the object)."""

    file: str
    width: float
    height: float
    things: Mapping[Any, AnnotatedThing]
    relations: tuple[tuple[Any, str, Any], ...] = ()
    crowded: frozenset[str] = frozenset()  #: names of things that also stand in a region that nobody counted
    complete: bool = False  #: every thing of the dataset's categories is annotated


def read_annotations(path: str | Path) -> Iterator[AnnotatedImage]:
    """Yield the photographs of an annotation file in any of the four layouts.

    COCO's `instances_*.json`; Visual Genome's `scene_graphs.json`, `objects.json`, `attributes.json` or
    `relationships.json`, with `image_data.json` beside it for sizes; VRD's `annotations_*.json`, with `objects.json`
    and `predicates.json` beside it; GQA's `*_sceneGraphs.json`.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError("there is no such annotation file", where=str(path), hint="name COCO's instances_*.json")
    document = read_json(path)
    try:
        yield from _reader(document)(document, path.parent)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as e:
        what = f"an annotation is not as its authors publish it: {type(e).__name__} {e}"
        raise DataError(what, where=str(path), hint="see docs/twins.md for the four layouts") from None


def _reader(document: Any) -> Callable[[Any, Path], Iterator[AnnotatedImage]]:
    if isinstance(document, list):
        return _visual_genome
    if "categories" in document:
        return _coco
    return _vrd if all(isinstance(record, list) for record in document.values()) else _gqa


def _coco(document: Any, folder: Path) -> Iterator[AnnotatedImage]:
    names = {category["id"]: category["name"] for category in document["categories"]}
    by_image: dict[Any, list[Any]] = {}
    for record in document["annotations"]:
        by_image.setdefault(record["image_id"], []).append(record)
    for image in document["images"]:
        records = by_image.get(image["id"], [])
        things = {
            r["id"]: AnnotatedThing(names[r["category_id"]], _box(*r["bbox"]), float(r["area"]))
            for r in records
            if not r.get("iscrowd")
        }
        crowded = frozenset(names[r["category_id"]] for r in records if r.get("iscrowd"))
        yield AnnotatedImage(image["file_name"], image["width"], image["height"], things, (), crowded, True)


def _visual_genome(document: Any, folder: Path) -> Iterator[AnnotatedImage]:
    beside = folder / "image_data.json"
    sizes = {r["image_id"]: (r["width"], r["height"]) for r in read_json(beside)} if beside.is_file() else {}
    for record in document:
        things = {t["object_id"]: _thing(t) for t in record.get("objects") or record.get("attributes") or ()}
        relations = []
        for r in record.get("relationships", ()):
            ends = []
            for end in ("subject", "object"):
                thing = r.get(end)
                if thing:  # relationships.json holds the things themselves, scene_graphs.json their ids
                    things.setdefault(thing["object_id"], _thing(thing))
                ends.append(thing["object_id"] if thing else r[f"{end}_id"])
            relations.append((ends[0], r["predicate"].lower(), ends[1]))
        width, height = sizes.get(record["image_id"]) or _extent(things)
        yield AnnotatedImage(f"{record['image_id']}.jpg", width, height, things, tuple(relations))


def _vrd(document: Any, folder: Path) -> Iterator[AnnotatedImage]:
    names, predicates = (read_json(folder / f"{name}.json") for name in ("objects", "predicates"))
    for file, records in document.items():
        things, relations = {}, []
        for r in records:
            ends = []
            for end in (r["subject"], r["object"]):
                top, bottom, left, right = end["bbox"]
                box = _box(left, top, right - left, bottom - top)
                ends.append((end["category"], box))
                things[ends[-1]] = AnnotatedThing(names[end["category"]], box, box[2] * box[3])
            relations.append((ends[0], predicates[r["predicate"]], ends[1]))
        yield AnnotatedImage(file, *_extent(things), things, tuple(relations))


def _gqa(document: Any, folder: Path) -> Iterator[AnnotatedImage]:
    for key, record in document.items():
        things = {number: _thing(t) for number, t in record["objects"].items()}
        relations = []
        for number, t in record["objects"].items():
            outgoing = t.get("relations", ())  # the files have a list, their description a dictionary
            for r in outgoing.values() if isinstance(outgoing, dict) else outgoing:
                relations.append((number, r["name"], r["object"]))
        yield AnnotatedImage(f"{key}.jpg", record["width"], record["height"], things, tuple(relations))


def _thing(record: Any) -> AnnotatedThing:
    """A thing of Visual Genome or GQA."""
    box = _box(*(record[side] for side in "xywh"))
    name = record["names"][0] if record.get("names") else record["name"]
    attributes = frozenset(word.strip().lower() for word in record.get("attributes") or ())
    return AnnotatedThing(name.strip().lower(), box, box[2] * box[3], attributes)


def _box(left: float, top: float, width: float, height: float) -> Box:
    return float(left), float(top), float(width), float(height)


def _extent(things: Mapping[Any, AnnotatedThing]) -> tuple[float, float]:
    """The smallest size that holds all boxes, where a layout does not give the photograph's own."""
    boxes = [thing.box for thing in things.values()]
    return max((b[0] + b[2] for b in boxes), default=0.0), max((b[1] + b[3] for b in boxes), default=0.0)
