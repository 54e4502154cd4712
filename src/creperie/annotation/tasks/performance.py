"""Tasks that measure how well people do: find the negative, choose the caption. Scored like models."""

from __future__ import annotations

from creperie.annotation.tasks.form import Field, PageForm
from creperie.annotation.tasks.task import (
    Dimension,
    Material,
    Order,
    Payload,
    QuestionDraft,
    StudyTask,
    Value,
    captions_as_options,
    one_row,
    texts,
)

FIND, CHOOSE = "find-negative", "choose-caption"


# -- find the negative -----------------------------------------------------------------------------------------------


def _draft_odd(material: Material) -> list[QuestionDraft]:
    """One question for every item with one false caption among several true ones."""
    drafts = []
    for item in material.items:
        row = one_row(item)
        if row and sum(row) >= 2 and len(row) - sum(row) == 1 and (item.images or not material.with_image):
            images = list(item.images) if material.with_image else []
            payload = {"images": images, "captions": list(item.captions), "odd": row.index(False)}
            drafts.append(QuestionDraft(material.source, item.subset, item.id, payload))
    return drafts


def _captions(payload: Payload) -> int:
    return len(payload["captions"])


def _show_odd(payload: Payload, order: Order) -> PageForm:
    field = Field("caption", "choice", "The odd caption", captions_as_options(payload["captions"], order))
    ask = "ask" if payload["images"] else "ask_blind"
    return PageForm(texts()[FIND][ask], (field,), pictures=("Picture",) if payload["images"] else ())


# -- choose the caption ----------------------------------------------------------------------------------------------


def _draft_choice(material: Material) -> list[QuestionDraft]:
    """One question for every item with one true caption per image, and false ones."""
    drafts = []
    for item in material.items:
        if item.images and len(item.captions) >= 2 and all(sum(row) == 1 for row in item.match):
            truth = [row.index(True) for row in item.match]
            payload = {"images": list(item.images), "captions": list(item.captions), "truth": truth}
            drafts.append(QuestionDraft(material.source, item.subset, item.id, payload))
    return drafts


def _images_and_captions(payload: Payload) -> int:
    """Pictures change places too; with one picture only the captions do."""
    return len(payload["captions"]) * len(payload["images"])


def _places(payload: Payload, order: Order) -> tuple[list[int], list[int]]:
    """The order of the pictures and of the captions, from one permutation of both."""
    width = len(payload["captions"])
    captions = list(dict.fromkeys(place % width for place in order))
    images = list(dict.fromkeys(place // width for place in order))
    return images, captions


def _show_choice(payload: Payload, order: Order) -> PageForm:
    images, captions = _places(payload, order)
    options = captions_as_options(payload["captions"], captions)
    if len(images) == 1:
        return PageForm(
            texts()[CHOOSE]["ask"], (Field("image0", "choice", "The caption", options),), pictures=("Picture",)
        )
    labels = tuple(f"Picture {chr(65 + n)}" for n in range(len(images)))
    fields = tuple(
        Field(f"image{n}", "choice", f"Caption of picture {chr(65 + n)}", options) for n in range(len(labels))
    )
    return PageForm(texts()[CHOOSE]["ask_pair"], fields, pictures=labels)


def picture_order(payload: Payload, order: Order) -> list[int]:
    """Which image of the item stands at each place of the page."""
    if "truth" in payload:
        return _places(payload, order)[0]
    return list(range(len(payload["images"])))


def _mean_choice(payload: Payload, order: Order, read: Value) -> Value:
    images, captions = _places(payload, order)
    chosen = [0] * len(images)
    for place, image in enumerate(images):
        chosen[image] = captions[int(read[f"image{place}"])]
    return {"captions": chosen}


def _code_choice(payload: Payload, value: Value) -> float:
    width = len(payload["captions"])
    return float(sum(j * width**n for n, j in enumerate(value["captions"])))


PERFORMANCES = (
    StudyTask(
        FIND,
        _draft_odd,
        _captions,
        _show_odd,
        lambda payload, order, read: {"caption": order[int(read["caption"])]},
        lambda payload, value: payload["captions"][value["caption"]],
        lambda own, other: [(dict(own), {"caption": own["odd"]})],
        (Dimension("caption", lambda payload, value: float(value["caption"])),),
        "run",
    ),
    StudyTask(
        CHOOSE,
        _draft_choice,
        _images_and_captions,
        _show_choice,
        _mean_choice,
        lambda payload, value: " / ".join(payload["captions"][j] for j in value["captions"]),
        lambda own, other: [(dict(own), {"captions": list(own["truth"])})],
        (Dimension("captions", _code_choice),),
        "run",
    ),
)
