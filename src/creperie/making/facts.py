"""Facts about annotated photographs as sentences: positions, sizes, counts, attributes, relations.

Annotations are read in the published formats: COCO instances, Visual Genome, VRD and GQA. Facts that say something
different about the same things (a cat left of a dog, a cat right of a dog) exclude each other. If one photograph shows
the first of two such facts and another shows the second, the two photographs are twins. Places and sizes are those in
the picture, and every sentence says so (never "left" from a person's point of view).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from creperie.bench import NO_IMAGES, Tag, open_store
from creperie.core import DataError, UsageError, read_json
from creperie.lang import CONTRADICTED, article_for, inflected, lemma, truth
from creperie.making.data import read_data
from creperie.making.source import Captions, SourceCaption
from creperie.making.twins_words import table_contrast

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class AnnotatedThing:
    """A thing in a photograph: its bounding box (left, top, width, height), and the area of its mask or box in
    pixels.
    """

    name: str
    box: Box
    area: float
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class AnnotatedImage:
    """A photograph with its things by id, and with relations as (id of the subject, predicate, id of the object)."""

    file: str
    width: float
    height: float
    things: Mapping[Any, AnnotatedThing]
    relations: tuple[tuple[Any, str, Any], ...] = ()
    crowded: frozenset[str] = frozenset()  #: names of things that also occur in a region annotated as a crowd
    complete: bool = False  #: every thing of the dataset's categories is annotated


def read_annotations(path: str | Path) -> Iterator[AnnotatedImage]:
    """Yield the photographs in an annotation file of any of the four formats.

    These are COCO's `instances_*.json`; Visual Genome's `scene_graphs.json`, `objects.json`, `attributes.json` or
    `relationships.json`, with `image_data.json` beside it for sizes; VRD's `annotations_*.json`, with `objects.json`
    and `predicates.json` beside it; and GQA's `*_sceneGraphs.json`.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(
            "there is no such annotation file", where=str(path), hint="name a file such as COCO's instances_*.json"
        )
    document = read_json(path)
    try:
        yield from _reader(document)(document, path.parent)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as e:
        what = f"unexpected annotation format ({type(e).__name__}: {e})"
        raise DataError(what, where=str(path), hint="see docs/twins.md for the four supported formats") from None


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
                if thing:  # relationships.json contains the things, scene_graphs.json only their ids
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
            outgoing = t.get("relations", ())  # a list in the files, a dictionary in their documentation
            for r in outgoing.values() if isinstance(outgoing, dict) else outgoing:
                relations.append((number, r["name"], r["object"]))
        yield AnnotatedImage(f"{key}.jpg", record["width"], record["height"], things, tuple(relations))


def _thing(record: Any) -> AnnotatedThing:
    """Return the thing that a record of Visual Genome or GQA describes."""
    box = _box(*(record[side] for side in "xywh"))
    name = record["names"][0] if record.get("names") else record["name"]
    attributes = frozenset(word.strip().lower() for word in record.get("attributes") or ())
    return AnnotatedThing(name.strip().lower(), box, box[2] * box[3], attributes)


def _box(left: float, top: float, width: float, height: float) -> Box:
    return float(left), float(top), float(width), float(height)


def _extent(things: Mapping[Any, AnnotatedThing]) -> tuple[float, float]:
    """Return the smallest (width, height) that contains all boxes, for formats that do not give the size of the
    photograph.
    """
    boxes = [thing.box for thing in things.values()]
    return max((b[0] + b[2] for b in boxes), default=0.0), max((b[1] + b[3] for b in boxes), default=0.0)


#: Minimum share of the picture for a thing to take part: smaller ones are overlooked, by annotators too.
SEEN = 0.0025
#: People name a thing unasked from this share of the picture on, if the border does not cut it off: facts about others
#: are likely, not certain.
CLEAR = 0.01
#: A thing is cut off if its box ends within this share of the width or height of the border.
MARGIN = 0.005
#: Minimum share of a thing's box within a picture or screen for the thing to be shown there, not to be there.
SHOWN = 0.9
#: One thing is left of another if neither reaches the other's middle, and their middles are at least this share of the
#: width apart (above: of the height).
APART = 0.1
#: Minimum share of its box that a mask must fill; otherwise it is in pieces or covers several things.
SOLID = 0.15
#: One thing is larger if its mask and its box each have at least this many times the other's pixels.
LARGER = 2.0
#: The largest count that people see at a glance, and the minimum share of the picture of things that are counted.
MOST_COUNTED, COUNTED = 4, 0.005
#: Maximum number of photographs for each state of a fact.
PER_STATE = 40
NUMBERS = ("no", "one", "two", "three", "four")


@dataclass(frozen=True)
class SceneFact:
    """A true sentence about a picture. `about` names the things, and `state` says what is true of them. A fact with the
    same `kind` and `about` but another `state` would be false of the picture.
    """

    kind: str
    names: tuple[str, ...]  #: names of the things, as in the annotations
    about: tuple[str, ...]  #: what is compared between pictures: the things, and a relation or colours if any
    state: str
    text: str


def annotated_captions(path: str | Path, images: str | Path | None = None) -> Captions:
    """Return the facts of all photographs as captions. At most 40 captions have the same kind, things and state.

    Each caption has four tags: `about` (the things), `state` (what is true of them), `least` (the share of the picture
    that the smallest of these things covers) and `evidence`. The evidence is `certain` if three conditions are met: the
    dataset annotates every thing of its categories; annotators use the names consistently; the things are large enough
    and not cut off by the border. Otherwise it is `likely`. A fact that there are more of one thing than of another is
    always `likely`.
    """
    loose = set(read_data("facts")["loose"])
    by_key: dict[tuple[str, ...], dict[str, list[SourceCaption]]] = {}
    for image in read_annotations(path):
        for fact in facts_of(image):
            about = ", ".join(fact.about)
            states = by_key.setdefault((fact.kind, *fact.about), {}).setdefault(fact.state, [])
            named = [t for t in image.things.values() if t.name in fact.names]
            least = min(t.area for t in named) / (image.width * image.height)
            plain = least >= CLEAR and not any(_is_cut_off(t, image) for t in named)
            sure = image.complete and not loose & set(fact.names) and fact.kind != "more" and plain
            tags: dict[str, Tag] = {"about": about, "state": fact.state, "evidence": "certain" if sure else "likely"}
            tags["least"] = least
            if len(states) < PER_STATE:
                key = f"{image.file}#{fact.kind}: {about}"
                states.append(SourceCaption(key, fact.text, (image.file,), subset=fact.kind, tags=tags))
    sources = tuple(s for states in by_key.values() for rows in states.values() for s in rows)
    return Captions(Path(path).stem, sources, open_store(images) if images else NO_IMAGES)


def check_annotated(name: str, captions: Captions) -> None:
    """Raise a UsageError if the captions are not facts of annotated photographs."""
    if not all("state" in s.tags for s in captions.sources):
        raise UsageError(f"{name} needs annotated photographs", hint="pass --captions annotations:FILE")


def facts_of(image: AnnotatedImage) -> Iterator[SceneFact]:
    """Yield the facts of a photograph. Things are left out if their name could also mean another thing in the
    photograph.
    """
    by_name: dict[str, list[AnnotatedThing]] = {}
    for thing in image.things.values():
        by_name.setdefault(thing.name, []).append(thing)
    present = by_name.keys() | image.crowded
    clear = {n: t for n, t in by_name.items() if n not in image.crowded and not _alike(n) & (present - {n})}
    smallest = SEEN * image.width * image.height
    data = read_data("facts")
    shown = [t for t in image.things.values() if t.name in data["showing"]]
    clear = {n: t for n, t in clear.items() if not any(_is_within(thing, other) for thing in t for other in shown)}
    seen = {n: t for n, t in sorted(clear.items()) if all(_is_seen(thing, smallest) for thing in t) and _is_one(n)}
    several = {*data["counted"], *data["rough"]}
    for names in combinations((n for n, t in seen.items() if len(t) == 1 or n in several), 2):
        yield from _placed(image, names, (seen[names[0]], seen[names[1]]))
    single = {n: t[0] for n, t in seen.items() if len(t) == 1}
    for names in combinations(single, 2):
        things = single[names[0]], single[names[1]]
        if not set(data["loose"]) & set(names):
            yield from _sized(names, things)
        yield from _coloured(names, things)
    if image.complete:
        for name in (n for n, t in seen.items() if _is_countable(image, n, t)):
            number = NUMBERS[len(seen[name])]
            text = _worded("count", (name,), _several(number, name))
            yield SceneFact("count", (name,), (name,), number, text)
        yield from _outnumbered({n: t for n, t in sorted(clear.items()) if n in several}, smallest)
    yield from _related(image, single)


Names = tuple[str, str]
Group = Sequence[AnnotatedThing]


def _placed(image: AnnotatedImage, names: Names, groups: tuple[Group, Group]) -> Iterator[SceneFact]:
    """Yield facts about the positions of two groups of things, such as all cats and all dogs: the first is to the left
    of the second, or above it. Neither group may reach beyond the middle of the other, and their middles must be far
    enough apart.
    """
    phrases = _the(names[0], len(groups[0])), _the(names[1], len(groups[1]))
    for kind, side, extent in (("left", 0, image.width), ("above", 1, image.height)):
        spans = [(min(t.box[side] for t in g), max(t.box[side] + t.box[side + 2] for t in g)) for g in groups]
        middles = [sum(span) / 2 for span in spans]
        first = int(middles[1] < middles[0])
        before, after = spans[first], spans[1 - first]
        each_ends = before[1] <= middles[1 - first] and middles[first] <= after[0]
        if each_ends and abs(middles[1] - middles[0]) >= APART * extent:
            yield _ordered(kind, names, phrases, first)


def _sized(names: Names, things: tuple[AnnotatedThing, AnnotatedThing]) -> Iterator[SceneFact]:
    one, other = ((t.area, t.box[2] * t.box[3]) for t in things)
    for first, (large, small) in enumerate(((one, other), (other, one))):
        if all(big >= LARGER * little for big, little in zip(large, small)):
            yield _ordered("size", names, (_the(names[0]), _the(names[1])), first)


def _coloured(names: Names, things: tuple[AnnotatedThing, AnnotatedThing]) -> Iterator[SceneFact]:
    one, other = (t.attributes for t in things)
    for x in sorted(one - other):
        for y in sorted(other - one):
            if table_contrast(x, y):
                a, b = (f"{article_for(word)} {word} {_word(name)}" for word, name in zip((x, y), names))
                about = (*names, *sorted((x, y)))
                yield SceneFact("swap_att", names, about, f"{x} {names[0]}", _worded("swap_att", about, a, b))


def _outnumbered(groups: Mapping[str, Group], smallest: float) -> Iterator[SceneFact]:
    """Yield a fact for each pair of names if there are far more things with the first name than with the second, or the
    reverse. If n things have the rarer name, more than `2n + 1` things with the other name must be large enough. The
    fact then stays true even if annotators overlooked a thing.
    """
    for names in combinations(groups, 2):
        for first, (one, other) in enumerate((names, names[::-1])):
            if sum(t.area >= smallest for t in groups[one]) > 2 * len(groups[other]) + 1:
                yield _ordered("more", names, (_several("", names[0]), _several("", names[1])), first)


def _related(image: AnnotatedImage, single: Mapping[str, AnnotatedThing]) -> Iterator[SceneFact]:
    """Yield facts about relations that exclude their converse, such as `on`, between things with unambiguous names."""
    names = {key: t.name for key, t in image.things.items() if t.name in single}
    stated = {(names[s], p, names[o]) for s, p, o in image.relations if s in names and o in names}
    for subject, predicate, thing in sorted(stated):
        a, b = _the(subject), _the(thing)
        turned = truth(f"{a} is {predicate} {b}.", f"{b} is {predicate} {a}.").word
        if subject != thing and (thing, predicate, subject) not in stated and turned == CONTRADICTED:
            about = (*sorted((subject, thing)), predicate)
            text = _worded("swap_obj", about, a, b, predicate)
            yield SceneFact("swap_obj", (subject, thing), about, subject, text)


def _ordered(kind: str, names: Names, phrases: Names, first: int) -> SceneFact:
    about = tuple(phrase.removeprefix("the ") for phrase in phrases)
    return SceneFact(kind, names, about, about[first], _worded(kind, about, phrases[first], phrases[1 - first]))


def _worded(kind: str, about: tuple[str, ...], a: str, b: str = "", relation: str = "") -> str:
    """Return the sentence for a fact. Its wording is determined by the kind of fact and the names of the things alone,
    so all facts of one kind about the same things are worded alike.
    """
    wordings = read_data("facts")["wordings"][kind]
    number = int.from_bytes(hashlib.sha256(", ".join((kind, *about)).encode()).digest()[:4], "big")
    wording, turned = wordings[number % len(wordings)]
    a, b = (b, a) if turned else (a, b)
    text: str = wording.format(a=a, b=b, be="are" if a.startswith("all ") else "is", relation=relation)
    return text[:1].upper() + text[1:]


@cache
def _alike(name: str) -> frozenset[str]:
    """Return the names that people may confuse with this name."""
    return frozenset(n for group in read_data("facts")["alike"] if name in group for n in group)


def _is_seen(thing: AnnotatedThing, smallest: float) -> bool:
    """Return True if a thing is large enough, and its mask fills a good part of its box: it is seen in one piece."""
    return thing.area >= max(smallest, SOLID * thing.box[2] * thing.box[3])


def _is_cut_off(thing: AnnotatedThing, image: AnnotatedImage) -> bool:
    """Return True if the border of the photograph cuts a thing off."""
    left, top, width, height = thing.box
    right, bottom = image.width - left - width, image.height - top - height
    return min(left, right) < MARGIN * image.width or min(top, bottom) < MARGIN * image.height


def _is_within(thing: AnnotatedThing, other: AnnotatedThing) -> bool:
    """Return True if a thing is shown inside another one, such as a person on a screen or a cat in a picture."""
    if thing is other:
        return False
    (a, b, w, h), (c, d, v, k) = thing.box, other.box
    inside = max(0.0, min(a + w, c + v) - max(a, c)) * max(0.0, min(b + h, d + k) - max(b, d))
    return inside >= SHOWN * w * h > 0


def _is_countable(image: AnnotatedImage, name: str, things: Group) -> bool:
    """Return True if people would agree on the number of these things. They would not agree, for example, on the number
    of bottles on a shelf or of parts of a couch.
    """
    smallest = min(t.area for t in things)
    plain = name in read_data("facts")["counted"] and smallest >= COUNTED * image.width * image.height
    return plain and len(things) <= MOST_COUNTED


@cache
def _is_one(name: str) -> bool:
    """Return True if the name is singular, as `tree` is but `trees` and `scissors` are not."""
    return name not in read_data("facts")["plain"] and lemma(name.split()[-1], "NNS") == name.split()[-1]


def _word(name: str) -> str:
    return str(read_data("facts")["names"].get(name, name))


def _the(name: str, count: int = 1) -> str:
    return f"the {_word(name)}" if count == 1 else _several("all the", name)


def _several(number: str, name: str) -> str:
    *before, noun = _word(name).split()
    return " ".join(filter(None, (number, *before, noun if number == "one" else inflected(noun, "NNS"))))
