"""What annotations say of a photograph for certain, in words: positions, sizes, counts, attributes, relations.

Two facts about the same things with different states exclude each other, so two photographs that have them are twins.
Places and sizes are those in the picture, and every wording says so: nobody's own left is meant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from creperie.bench import NO_IMAGES, Tag, open_store
from creperie.lang import CONTRADICTED, article_for, inflected, lemma, truth
from creperie.making.annotations import AnnotatedImage, AnnotatedThing, read_annotations
from creperie.making.data import read_data
from creperie.making.source import Captions, SourceCaption
from creperie.making.twins_words import table_contrast

#: Things smaller than this share of the picture are overlooked, by people who annotate too.
SEEN = 0.0025
#: Of smaller ones than this people may not see what they are: such facts are likely, not certain.
CLEAR = 0.005
#: One is left of another where each ends before the other's middle and their middles are this share of the width apart.
APART = 0.1
#: A mask that fills less of its box than this is in pieces, or of several things.
SOLID = 0.15
#: One thing looks larger where its mask and its box have this many times the other's pixels.
LARGER = 2.0
#: People count up to here at a glance, and only things that are at least this share of the picture.
MOST_COUNTED, COUNTED = 4, 0.005
#: Photographs that are kept for each state of a fact.
PER_STATE = 40
NUMBERS = ("no", "one", "two", "three", "four")


@dataclass(frozen=True, slots=True)
class SceneFact:
    """One true sentence. Facts of the same kind about the same things with other states are false of this picture."""

    kind: str
    names: tuple[str, ...]  #: of the things, as the annotations have them
    about: tuple[str, ...]
    state: str
    text: str


def annotated_captions(path: str | Path, images: str | Path | None = None) -> Captions:
    """Return the facts of all photographs as captions.

    Their tags say the fact (`about`, `state`) and the evidence: `certain` where all things are annotated, under names
    that annotators use strictly.
    """
    loose = set(read_data("facts")["loose"])
    by_key: dict[tuple[str, ...], dict[str, list[SourceCaption]]] = {}
    for image in read_annotations(path):
        for fact in facts_of(image):
            about = ", ".join(fact.about)
            states = by_key.setdefault((fact.kind, *fact.about), {}).setdefault(fact.state, [])
            least = min(t.area for t in image.things.values() if t.name in fact.names) / (image.width * image.height)
            sure = image.complete and not loose & set(fact.names) and fact.kind != "more" and least >= CLEAR
            tags: dict[str, Tag] = {"about": about, "state": fact.state, "evidence": "certain" if sure else "likely"}
            tags["least"] = least
            if len(states) < PER_STATE:
                key = f"{image.file}#{fact.kind}: {about}"
                states.append(SourceCaption(key, fact.text, (image.file,), subset=fact.kind, tags=tags))
    sources = tuple(s for states in by_key.values() for rows in states.values() for s in rows)
    return Captions(Path(path).stem, sources, open_store(images) if images else NO_IMAGES)


def facts_of(image: AnnotatedImage) -> Iterator[SceneFact]:
    """Yield the facts of a photograph. A name that might also fit another thing in it takes no part."""
    by_name: dict[str, list[AnnotatedThing]] = {}
    for thing in image.things.values():
        by_name.setdefault(thing.name, []).append(thing)
    present = by_name.keys() | image.crowded
    clear = {n: t for n, t in by_name.items() if n not in image.crowded and not _alike(n) & (present - {n})}
    smallest = SEEN * image.width * image.height
    seen = {n: t for n, t in sorted(clear.items()) if all(_is_seen(thing, smallest) for thing in t) and _is_one(n)}
    data = read_data("facts")
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
        yield from _counted({n: len(t) for n, t in seen.items() if _is_countable(image, n, t)})
        yield from _outnumbered({n: t for n, t in sorted(clear.items()) if n in several}, smallest)
    yield from _related(image, single)


Names = tuple[str, str]
Group = Sequence[AnnotatedThing]


def _placed(image: AnnotatedImage, names: Names, groups: tuple[Group, Group]) -> Iterator[SceneFact]:
    """Yield where all things of one name are in respect to all of another."""
    phrases = _the(names[0], len(groups[0])), _the(names[1], len(groups[1]))
    for kind, side, extent in (("left", 0, image.width), ("above", 1, image.height)):
        spans = [(min(t.box[side] for t in g), max(t.box[side] + t.box[side + 2] for t in g)) for g in groups]
        middles = [sum(span) / 2 for span in spans]
        first = int(middles[1] < middles[0])
        before, after = spans[first], spans[1 - first]
        each_ends = before[1] <= sum(after) / 2 and sum(before) / 2 <= after[0]
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


def _counted(counts: Mapping[str, int]) -> Iterator[SceneFact]:
    for name, n in counts.items():
        text = _worded("count", (name,), _several(NUMBERS[n], name))
        yield SceneFact("count", (name,), (name,), NUMBERS[n], text)


def _outnumbered(groups: Mapping[str, Group], smallest: float) -> Iterator[SceneFact]:
    """Yield which things are more than the others, by so many that one that was overlooked does not matter."""
    for names in combinations(groups, 2):
        for first, (one, other) in enumerate((names, names[::-1])):
            if sum(t.area >= smallest for t in groups[one]) > 2 * len(groups[other]) + 1:
                yield _ordered("more", names, (_several("", names[0]), _several("", names[1])), first)


def _related(image: AnnotatedImage, single: Mapping[str, AnnotatedThing]) -> Iterator[SceneFact]:
    """Yield relations that exclude their own converse, such as `on`, between things whose names are clear."""
    names = {key: t.name for key, t in image.things.items() if t.name in single}
    stated = {(names[s], p, names[o]) for s, p, o in image.relations if s in names and o in names}
    for subject, predicate, thing in sorted(stated):
        a, b = _the(subject), _the(thing)
        turned = truth(f"{a} is {predicate} {b}.", f"{b} is {predicate} {a}.").word
        if subject != thing and (thing, predicate, subject) not in stated and turned == CONTRADICTED:
            about = (*sorted((subject, thing)), predicate)
            text = _worded("swap_obj", about, a, b).replace("{relation}", predicate)
            yield SceneFact("swap_obj", (subject, thing), about, subject, text)


def _ordered(kind: str, names: Names, phrases: Names, first: int) -> SceneFact:
    about = tuple(phrase.removeprefix("the ") for phrase in phrases)
    return SceneFact(kind, names, about, about[first], _worded(kind, about, phrases[first], phrases[1 - first]))


def _worded(kind: str, about: tuple[str, ...], a: str, b: str = "") -> str:
    """The sentence: all facts about the same things have the same wording, other things may have another one."""
    wordings = read_data("facts")["wordings"][kind]
    number = int.from_bytes(hashlib.sha256(", ".join((kind, *about)).encode()).digest()[:4], "big")
    wording, turned = wordings[number % len(wordings)]
    a, b = (b, a) if turned else (a, b)
    text: str = wording.format(a=a, b=b, be="are" if a.startswith("all ") else "is", relation="{relation}")
    return text[:1].upper() + text[1:]


@cache
def _alike(name: str) -> frozenset[str]:
    """The names that people may take for this one."""
    return frozenset(n for group in read_data("facts")["alike"] if name in group for n in group)


def _is_seen(thing: AnnotatedThing, smallest: float) -> bool:
    """True where it is large enough, and one piece: its mask fills a good part of its box."""
    return thing.area >= max(smallest, SOLID * thing.box[2] * thing.box[3])


def _is_countable(image: AnnotatedImage, name: str, things: Group) -> bool:
    """True where people agree on how many: not of bottles on a shelf, or parts of a couch."""
    smallest = min(t.area for t in things)
    plain = name in read_data("facts")["counted"] and smallest >= COUNTED * image.width * image.height
    return plain and len(things) <= MOST_COUNTED


@cache
def _is_one(name: str) -> bool:
    """True where the name is of one thing: `tree`, not `trees` or `scissors`."""
    return name not in read_data("facts")["plain"] and lemma(name.split()[-1], "NNS") == name.split()[-1]


def _word(name: str) -> str:
    return str(read_data("facts")["names"].get(name, name))


def _the(name: str, count: int = 1) -> str:
    return f"the {_word(name)}" if count == 1 else _several("all the", name)


def _several(number: str, name: str) -> str:
    *before, noun = _word(name).split()
    return " ".join(filter(None, (number, *before, noun if number == "one" else inflected(noun, "NNS"))))
