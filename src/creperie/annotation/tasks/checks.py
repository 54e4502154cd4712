"""Tasks that confirm or correct items: foil check, positive check and triplet check."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress

from creperie.annotation.tasks.form import Field, PageForm
from creperie.annotation.tasks.task import (
    KnownAnswers,
    Order,
    Payload,
    StudyTask,
    Value,
    ask_of,
    captions_as_options,
    choice_of,
    label_of,
    options_of,
    texts,
)
from creperie.bench import Item
from creperie.core import Json

FOIL, POSITIVE, TRIPLET = "foil-check", "positive-check", "triplet-check"
PICTURE = ("Picture",)
EDIT = ("verdict", "edit")


def _verdict(task: str) -> Field:
    return Field("verdict", "choice", "Your verdict", options_of(task))


# -- foil check ------------------------------------------------------------------------------------------------------


def _ask_foils(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question for every pair of an image and a false caption.

    The field `true` of a question is a caption that is true of the image, or None. It is used for attention checks, and
    never shown beside the foil.
    """
    for image, row in zip(item.images, item.match):
        true = next(compress(item.captions, row), None)
        for column, caption in enumerate(item.captions):
            if not row[column]:
                yield {"images": [image], "column": column, "caption": caption, "true": true}


def _known_foil(own: Payload, other: Payload | None) -> KnownAnswers:
    """Return up to two questions with known answers. The first shows a true caption of `own` with its own picture
    (answer: true), the second a true caption of `other` with the picture of `own` (answer: false).
    """
    # Both captions are true captions of some item, so the text alone does not reveal the answer.
    if own["true"] is None:
        return []
    known = [({**own, "caption": own["true"]}, {"verdict": "true"})]
    if other is not None and other["true"] is not None:
        known.append(({**own, "caption": other["true"]}, {"verdict": "false"}))
    return known


# -- positive check --------------------------------------------------------------------------------------------------


def _ask_positives(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question for every true caption after the first, if the item has at most one image."""
    true = [j for j, fits in enumerate(item.match[0]) if fits]
    for j in true[1:] if len(item.match) == 1 else ():
        captions = [item.captions[true[0]], item.captions[j]]
        yield {"images": list(item.images), "column": j, "captions": captions, "foil": next(iter(item.negatives), None)}


def _show_positive(payload: Payload, order: Order) -> PageForm:
    first, second = payload["captions"]
    fields = (
        _verdict(POSITIVE),
        Field("text", "text", "The second caption, corrected", value=second, when=EDIT),
        Field("error", "choice", "What was wrong?", options_of(POSITIVE, "errors"), when=EDIT),
    )
    shown = (("First caption", first), ("Second caption", second))
    return PageForm(ask_of(POSITIVE, payload), fields, shown, PICTURE if payload["images"] else ())


def _say_positive(payload: Payload, value: Value) -> str:
    label = label_of(value["verdict"], POSITIVE)
    if "text" not in value:  # also if it is only known that a correction is needed
        return label
    return f"{label} ({label_of(value['error'], POSITIVE, 'errors')}): {value['text']}"


def _known_positive(own: Payload, other: Payload | None) -> KnownAnswers:
    """Return up to two questions with known answers: one about the item `own`, which is correct, and one about a wrong
    item. With pictures, the wrong item is the picture of `own` with the captions of `other`. Without pictures, it is
    `own` with a foil as its second caption.
    """
    known = [(dict(own), {"verdict": "accept"})]
    if not own["images"] and own["foil"]:
        known.append(({**own, "captions": [own["captions"][0], own["foil"]]}, {"verdict": "edit"}))
    elif own["images"] and other is not None:
        known.append(({**own, "captions": list(other["captions"])}, {"verdict": "edit"}))
    return known


# -- triplet check ---------------------------------------------------------------------------------------------------


def _ask_triplet(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question if the item has at most one image and both true and false captions."""
    row = item.match[0]
    if len(item.match) == 1 and any(row) and not all(row):
        payload = {"images": list(item.images), "captions": list(item.captions), "match": list(row)}
        if sum(row) > 1:
            payload["column"] = max(j for j, fits in enumerate(row) if fits)  # the caption that may be corrected
        yield payload


def _foils_of(payload: Payload) -> list[int]:
    return [j for j, fits in enumerate(payload["match"]) if not fits]


def _show_triplet(payload: Payload, order: Order) -> PageForm:
    captions, foils = payload["captions"], [_foils_of(payload)[place] for place in order]
    shown = [("Should be true", c) for c in compress(captions, payload["match"])]
    shown += [("Should be false", captions[j]) for j in foils]
    fields = []
    if len(foils) > 1:
        chosen = captions_as_options(captions, foils)
        fields.append(Field("foil", "choice", texts()[TRIPLET]["ask_foil"], chosen))
    options = tuple(o for o in options_of(TRIPLET) if "column" in payload or o.value != "edit")
    fields.append(Field("verdict", "choice", "Your verdict", options))
    if "column" in payload:
        last = captions[payload["column"]]
        fields.append(Field("text", "text", "The second caption, corrected", value=last, when=EDIT))
    return PageForm(ask_of(TRIPLET, payload), tuple(fields), tuple(shown), PICTURE if payload["images"] else ())


def _mean_triplet(payload: Payload, order: Order, read: Value) -> Value:
    return {k: str(_foils_of(payload)[order[int(v)]]) if k == "foil" else v for k, v in read.items()}


def _say_triplet(payload: Payload, value: Value) -> str:
    chosen = [payload["captions"][int(value["foil"])]] if "foil" in value else []
    label = label_of(value["verdict"], TRIPLET)
    return "; ".join([*chosen, f"{label}: {value['text']}" if "text" in value else label])


def _known_triplet(own: Payload, other: Payload | None) -> KnownAnswers:
    """Return up to two questions with known answers: one about the item `own`, which is valid, and one about an invalid
    item. With pictures, the invalid item is the picture of `own` with the captions of `other`. Without pictures, it is
    a copy of `own` in which the second true caption and a foil have changed places.
    """
    known = [_first_foil(own, "valid")]
    if own["images"] and other is not None:
        known.append(_first_foil({**other, "images": own["images"]}, "invalid"))
    elif not own["images"] and "column" in own:
        captions, column, foil = list(own["captions"]), own["column"], _foils_of(own)[0]
        captions[column], captions[foil] = captions[foil], captions[column]
        known.append(_first_foil({**own, "captions": captions}, "invalid"))
    return known


def _first_foil(payload: Payload, verdict: str) -> tuple[Value, Value]:
    """Return the question `payload` and its known answer, which is `verdict`. If the question offers several foils to
    choose from, the answer also names the first foil.
    """
    foils = _foils_of(payload)
    return dict(payload), {"verdict": verdict} | ({"foil": str(foils[0])} if len(foils) > 1 else {})


def _right_triplet(given: Value, known: Value) -> bool:
    return given["verdict"] == known["verdict"] or {given["verdict"], known["verdict"]} == {"valid", "edit"}


CHECKS = (
    StudyTask(
        FOIL,
        "check",
        _ask_foils,
        lambda payload, order: PageForm(
            texts()[FOIL]["ask"], (_verdict(FOIL),), (("Caption", payload["caption"]),), PICTURE
        ),
        lambda payload, value: label_of(value["verdict"], FOIL),
        _known_foil,
        (choice_of("verdict", FOIL),),
    ),
    StudyTask(
        POSITIVE,
        "check",
        _ask_positives,
        _show_positive,
        _say_positive,
        _known_positive,
        (choice_of("verdict", POSITIVE),),
        right=lambda given, known: (given["verdict"] == "accept") == (known["verdict"] == "accept"),
    ),
    StudyTask(
        TRIPLET,
        "check",
        _ask_triplet,
        _show_triplet,
        _say_triplet,
        _known_triplet,
        (choice_of("verdict", TRIPLET),),
        lambda payload: len(_foils_of(payload)),
        _mean_triplet,
        _right_triplet,
    ),
)
