"""The generated world in three shapes: a benchmark, an endless stream of training pairs, and an image store that
renders on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import islice

import numpy as np
from PIL import Image

from creperie.bench import ERROR, Benchmark, Finding, ImageError, Info, Item, ProvenanceStep, from_items
from creperie.core import DataError, Progress, UsageError, check_options, option, silent, unknown
from creperie.world.biased import BIASED, biased_items
from creperie.world.clean_items import MadeItem, clean_items
from creperie.world.dice import Dice, key_of
from creperie.world.foils import CHOICE, CLEAN, EVERY, FORMS, ROOM_KINDS, ROOM_ONLY
from creperie.world.parse import parse
from creperie.world.picture import LARGEST, SMALLEST, render
from creperie.world.scene import Scene, decode
from creperie.world.solid.scene import PREFIX, Room, read_room
from creperie.world.solid.space import RoomGraph
from creperie.world.solid.studio import RenderOptions
from creperie.world.splits import SPLITS
from creperie.world.truth import Graph, evaluate
from creperie.world.twins import find_twins
from creperie.world.wording import say, two_wordings


def image_key(scene: Scene | Room) -> str:
    """Return the file name of a scene's image; the name encodes the scene."""
    return f"{scene.code}.png"


def scene_of(key: str) -> Scene:
    """Return the drawn scene that an image's file name encodes; raise a DataError if it encodes none."""
    return decode(key.rsplit("/", 1)[-1].partition(".")[0])


def scene_or_room(key: str) -> Scene | Room:
    """Return the drawn scene or the room that an image's file name encodes; raise a DataError if it encodes none."""
    code = key.rsplit("/", 1)[-1].partition(".")[0]
    return read_room(code) if code.startswith(PREFIX) else decode(code)


def graph_of(scene: Scene | Room) -> Graph | RoomGraph:
    """Return the scene graph of a drawn scene or a room: all relations between its things."""
    return RoomGraph(scene) if isinstance(scene, Room) else Graph(scene)


class SceneImages:
    """An image store that renders scenes on demand. The PNG files of drawn scenes are the same on every machine, pixel
    by pixel.

    >>> from creperie.world.scene import Thing
    >>> cat, dog = (Thing(kind, "red", "plain", "small", x, 220) for kind, x in (("cat", 60), ("dog", 170)))
    >>> scene = Scene((cat, dog))
    >>> store = SceneImages(64, [image_key(scene)])
    >>> store.read(image_key(scene))[:4]
    b'\\x89PNG'
    """

    location = ""

    def __init__(self, size: int, keys: Sequence[str] = (), studio: RenderOptions | None = None) -> None:
        self.size = size
        self.studio = studio or RenderOptions()
        self._keys = dict.fromkeys(keys)

    def read(self, key: str) -> bytes:
        try:
            scene = scene_or_room(key)
        except DataError as e:
            raise ImageError("missing-image", e.what, where=key) from None
        if isinstance(scene, Room):
            return self.studio.photograph(scene, self.size)
        out = BytesIO()
        Image.fromarray(render(scene, self.size)).save(out, "PNG", compress_level=3)
        return out.getvalue()

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterator[str]:
        """Yield the image names that the store was created with."""
        return iter(self._keys)


ALL_KINDS = (*CLEAN, *BIASED)
#: Names of groups of kinds.
GROUPS: dict[str, tuple[str, ...]] = {
    "all": ALL_KINDS,
    "clean": tuple(CLEAN),
    "biased": tuple(BIASED),
    **{
        family: tuple(k for k in CLEAN if CLEAN[k].family == family)
        for family in dict.fromkeys(kind.family for kind in CLEAN.values())
    },
}


@dataclass(frozen=True, slots=True)
class World:
    """The settings of a generated world: items per kind and form, split, seed, and size of the images."""

    items: int = option(200, "Items of each kind and form.", minimum=1)
    kinds: tuple[str, ...] = option(("all",), "Kinds or groups, by comma: see `creperie world kinds`.")
    forms: tuple[str, ...] = option((CHOICE,), "Forms, by comma.", flags="--form", choices=(*FORMS, "all"))
    split: str = option("test", "The split of the world to draw from.", choices=SPLITS)
    seed: int = option(0, "Seed of the world.", minimum=0)
    size: int = option(224, "Width and height of the pictures in pixels.")
    render: str = option("2d", "Drawings (2d), or rendered rooms and tables (3d).", choices=("2d", "3d"))

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "kinds", self._kinds())
        object.__setattr__(self, "forms", FORMS if "all" in self.forms else self.forms)
        if not SMALLEST <= self.size <= LARGEST:
            raise UsageError(f"`size={self.size}` is out of range", hint=f"choose {SMALLEST} to {LARGEST} pixels")
        if not self.subsets():
            forms = ", ".join(self.forms)
            hint = "choose other kinds or forms; `creperie world kinds` lists the forms of each kind"
            raise UsageError(f"none of these kinds can have the form {forms}", hint=hint)

    def _kinds(self) -> tuple[str, ...]:
        """Return the kinds of foil selected by the option `kinds`; the name of a group stands for all of its kinds that
        exist for the drawings or rooms of this world.
        """
        if self.render == "2d":
            return kinds_named(self.kinds)
        named = [kind for name in self.kinds for kind in ((name,) if name in ROOM_KINDS else kinds_named((name,)))]
        named += ROOM_ONLY if {"all", "clean"} & {*self.kinds} else ()
        if absent := [name for name in self.kinds if name not in GROUPS and name not in ROOM_KINDS]:
            raise unknown("kind of item in three dimensions", absent[0], ROOM_KINDS)
        return tuple(kind for kind in dict.fromkeys(named) if kind in ROOM_KINDS)

    def subsets(self) -> list[tuple[str, str, str]]:
        """Return (subset, kind, form) for each subset. A subset is named after its kind, followed by its form unless
        that is "choice".
        """
        return [
            (kind if form == CHOICE else f"{kind}_{form}", kind, form)
            for kind in self.kinds
            for form in FORMS
            if form in self.forms and form in forms_of(kind)
        ]


def forms_of(kind: str) -> tuple[str, ...]:
    """Return the forms of item that exist for a kind."""
    return EVERY[kind].forms if kind in EVERY else (CHOICE,)


def kinds_named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds with the given names, each once. A name may also stand for a group of kinds.

    >>> kinds_named(["hit-or-be-hit", "swap_obj"])
    ('active_passive', 'dative', 'swap_obj')
    """
    chosen: list[str] = []
    for name in names:
        if name not in GROUPS and name not in ALL_KINDS:
            raise unknown("kind", name, (*GROUPS, *ALL_KINDS))
        chosen += GROUPS.get(name, (name,))
    return tuple(dict.fromkeys(chosen))


def make_world(
    world: World | None = None, progress: Progress = silent, studio: RenderOptions | None = None
) -> Benchmark:
    """Return a benchmark of the generated world. Its images are rendered when they are read or when the benchmark is
    saved.

    For rooms (`render="3d"`), `studio` holds the options of rendering; `studio.photograph_all` renders all images in
    advance, in several processes.

    >>> bench = make_world(World(items=2, kinds=("swap_obj", "dative"), forms=("choice", "winoground")))
    >>> bench.subsets
    {'swap_obj': 2, 'swap_obj_winoground': 2, 'dative': 2, 'dative_winoground': 2}
    """
    world = world or World()
    subsets = world.subsets()
    items: list[Item] = []
    with progress("make the world", world.items * len(subsets), "items") as advance:
        for subset, kind, form in subsets:
            stream = stream_items(kind, form, world.split, world.seed, rooms=world.render == "3d")
            for number, made in enumerate(islice(stream, world.items)):
                items.append(_item(f"{number:05d}", subset, made, world))
                advance(1)
    keys = [key for item in items for key in item.images]
    args = {**asdict(world), "kinds": list(world.kinds), "forms": list(world.forms)}
    return from_items(
        f"world-{world.split}" if world.render == "2d" else f"world-3d-{world.split}",
        items,
        images=SceneImages(world.size, keys, studio),
        info=INFO,
        provenance=(ProvenanceStep("world", args),),
    )


def stream_items(kind: str, form: str, split: str, seed: int, *, rooms: bool = False) -> Iterator[MadeItem]:
    """Yield items of one kind in one form; the iterator never ends. The same arguments always give the same items."""
    if rooms or kind in CLEAN:
        return clean_items(kind, form, split, seed, rooms=rooms)
    return biased_items(kind, split, seed)


def _item(number: str, subset: str, made: MadeItem, world: World) -> Item:
    keys = tuple(image_key(scene) for scene in made.scenes)
    return Item(number, subset, keys, made.captions, made.match, {**made.tags, "split": world.split})


INFO = Info(
    title="The rendered world of creperie",
    description=(
        "Drawn or rendered scenes of two to eight things with captions and foils that the scene's geometry proves. "
        "The text of a clean foil does not reveal it; the biased kinds have the give-aways of older benchmarks."
    ),
    licence="CC0-1.0",
    source="pictures drawn and described by creperie's built-in world",
)


def check_world(bench: Benchmark, progress: Progress = silent) -> list[Finding]:
    """Check every caption against every image of its item. Return a finding for each caption whose truth differs from
    the match matrix, and for each image or caption that cannot be read.
    """
    findings: list[Finding] = []
    with progress("check the world", len(bench), "items") as advance:
        for item in bench:
            findings += [Finding(code, ERROR, item.subset, item.id, message) for code, message in _check_item(item)]
            advance(1)
    return findings


def _check_item(item: Item) -> Iterator[tuple[str, str]]:
    clean = item.tags.get("clean") is True
    claims = [parse(caption) for caption in item.captions]
    for key, row in zip(item.images, item.match, strict=True):
        try:
            graph = graph_of(scene_or_room(key))
        except DataError as e:
            yield "unknown-scene", e.what
            continue
        for caption, claim, expected in zip(item.captions, claims, row, strict=True):
            if claim is None:
                if clean or expected:
                    yield "unreadable-caption", f"{caption!r} is not a sentence of the world"
            elif (verdict := evaluate(claim, graph)) is not expected:
                yield "wrong-match", f"{caption!r} is {_word(verdict)}, the item says {_word(expected)}"


def _word(verdict: bool | None) -> str:
    return "undecided" if verdict is None else str(verdict).lower()


@dataclass(frozen=True, slots=True)
class WorldExample:
    """A training image with two true captions in different words, and with a foil that is certain to be false."""

    image: np.ndarray  #: (size, size, 3) uint8
    caption: str
    paraphrase: str
    foil: str
    kind: str
    scene: Scene


def training_pairs(
    n: int, seed: int = 0, split: str = "train", *, size: int = 64, kinds: Sequence[str] = tuple(CLEAN)
) -> Iterator[WorldExample]:
    """Yield `n` training examples; the same arguments always give the same ones. Twins (the caption of one is the foil
    of the other) follow each other, so that most batches contain both.

    >>> first, second = training_pairs(2, seed=1)
    >>> first.image.shape, first.caption == second.foil
    ((64, 64, 3), True)
    """
    if n < 0:
        raise UsageError(f"`n={n}` is negative", hint="give 0 or more")
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    for kind in kinds:
        if kind not in CLEAN:
            raise unknown("clean kind", kind, CLEAN)
    return _examples(n, Dice(seed, key_of(f"pairs {split}")), split, size, tuple(kinds))


def _examples(n: int, dice: Dice, split: str, size: int, kinds: tuple[str, ...]) -> Iterator[WorldExample]:
    made = 0
    while made < n:
        kind = dice.pick(kinds)
        twins = find_twins(kind, dice, split)
        first, second = two_wordings(kind, twins, dice)
        if any(say(twins, side, first) == say(twins, side, second) for side in (0, 1)):
            continue
        for side in dice.shuffled((0, 1)):
            if made == n:
                return
            image = render(twins.scenes[side], size)
            caption, other = say(twins, side, first), say(twins, side, second)
            yield WorldExample(image, caption, other, say(twins, 1 - side, first), kind, twins.scenes[side])
            made += 1
