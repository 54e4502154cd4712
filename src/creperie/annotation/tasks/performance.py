"""Tasks that measure how well people do: they find the one false caption, or choose the true one. People are scored
like models.
"""

from __future__ import annotations

from collections.abc import Iterator

from creperie.annotation.tasks.form import Field, PageForm
from creperie.annotation.tasks.task import (
    Dimension,
    Order,
    Payload,
    StudyTask,
    Value,
    ask_of,
    caption_code,
    captions_as_options,
    texts,
)
from creperie.bench import Item
from creperie.core import Json

FIND, CHOOSE = "find-negative", "choose-caption"


# -- find the negative -----------------------------------------------------------------------------------------------


def _ask_odd(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question if the item has one false caption and several true ones."""
    row = item.match[0]
    if len(item.match) == 1 and sum(row) >= 2 and row.count(False) == 1 and (item.images or not with_image):
        images = list(item.images) if with_image else []
        yield {"images": images, "captions": list(item.captions), "odd": row.index(False)}


def _show_odd(payload: Payload, order: Order) -> PageForm:
    field = Field("caption", "choice", "The odd caption", captions_as_options(payload["captions"], order))
    return PageForm(ask_of(FIND, payload), (field,), pictures=("Picture",) if payload["images"] else ())


# -- choose the caption ----------------------------------------------------------------------------------------------


def _ask_choice(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question if the item has images and at least two captions, and each image has exactly one true
    caption.
    """
    if item.images and len(item.captions) >= 2 and all(sum(row) == 1 for row in item.match):
        truth = [row.index(True) for row in item.match]
        yield {"images": list(item.images), "captions": list(item.captions), "truth": truth}


def _places(payload: Payload, order: Order) -> tuple[list[int], list[int]]:
    """Return the order of the pictures and the order of the captions. Both follow from the one permutation `order`."""
    width = len(payload["captions"])
    captions = list(dict.fromkeys(place % width for place in order))
    images = list(dict.fromkeys(place // width for place in order))
    return images, captions


def _show_choice(payload: Payload, order: Order) -> PageForm:
    images, captions = _places(payload, order)
    letters = [""] if len(images) == 1 else [f" {chr(65 + n)}" for n in range(len(images))]
    labels = [f"Caption of picture{letter}" if letter else "The caption" for letter in letters]
    options = captions_as_options(payload["captions"], captions)
    fields = tuple(Field(f"image{n}", "choice", label, options) for n, label in enumerate(labels))
    ask = texts()[CHOOSE]["ask" if len(images) == 1 else "ask_pair"]
    return PageForm(ask, fields, pictures=tuple(f"Picture{letter}" for letter in letters))


def picture_order(payload: Payload, order: Order) -> list[int]:
    """Return the index of the image that is shown at each place on the page."""
    return _places(payload, order)[0] if "truth" in payload else list(range(len(payload["images"])))


def _mean_choice(payload: Payload, order: Order, read: Value) -> Value:
    images, captions = _places(payload, order)
    chosen = [0] * len(images)
    for place, image in enumerate(images):
        chosen[image] = captions[int(read[f"image{place}"])]
    return {"captions": chosen}


PERFORMANCES = (
    StudyTask(
        FIND,
        "run",
        _ask_odd,
        _show_odd,
        lambda payload, value: payload["captions"][value["caption"]],
        lambda own, other: [(dict(own), {"caption": own["odd"]})],
        (Dimension("caption", lambda payload, value: caption_code(payload, [value["caption"]])),),
        lambda payload: len(payload["captions"]),
        lambda payload, order, read: {"caption": order[int(read["caption"])]},
    ),
    StudyTask(
        CHOOSE,
        "run",
        _ask_choice,
        _show_choice,
        lambda payload, value: " / ".join(payload["captions"][j] for j in value["captions"]),
        lambda own, other: [(dict(own), {"captions": list(own["truth"])})],
        (Dimension("captions", lambda payload, value: caption_code(payload, value["captions"])),),
        lambda payload: len(payload["captions"]) * len(payload["images"]),  # pictures are shuffled, too
        _mean_choice,
    ),
)
