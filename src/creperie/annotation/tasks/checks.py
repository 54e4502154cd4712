"""Tasks that confirm or correct items: foil check, positive check, triplet check."""

from __future__ import annotations

from typing import Any

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
    label_of,
    one_row,
    options_of,
    texts,
)
from creperie.bench import Item

FOIL, POSITIVE, TRIPLET = "foil-check", "positive-check", "triplet-check"
PICTURE = ("Picture",)


def _verdict(task: str) -> Dimension:
    values = [o.value for o in options_of(task)]
    return Dimension("verdict", lambda payload, value: float(values.index(value["verdict"])))


def _as_read(payload: Payload, order: Order, read: Value) -> Value:
    return dict(read)


def _say_foil(payload: Payload, value: Value) -> str:
    return label_of(options_of(FOIL), value["verdict"])


# -- foil check ------------------------------------------------------------------------------------------------------


def _draft_foils(material: Material) -> list[QuestionDraft]:
    """One question for every image and caption that should not match."""
    return [
        QuestionDraft(
            material.source,
            item.subset,
            item.id,
            {"images": [item.images[i]], "row": i, "column": j, "caption": caption, "true": _true_caption(item, i)},
        )
        for item in material.items
        for i in range(len(item.images))
        for j, caption in enumerate(item.captions)
        if not item.match[i][j]
    ]


def _true_caption(item: Item, row: int) -> str | None:
    """A caption that is true of this image; it makes attention checks and is never shown beside the foil."""
    return next((c for c, fits in zip(item.captions, item.match[row]) if fits), None)


def _show_foil(payload: Payload, order: Order) -> PageForm:
    field = Field("verdict", "choice", "Your verdict", options_of(FOIL))
    return PageForm(texts()[FOIL]["ask"], (field,), (("Caption", payload["caption"]),), PICTURE)


def _known_foil(own: Payload, other: Payload | None) -> list[tuple[dict[str, Any], Value]]:
    """A true caption with its own picture, and one with the picture of another item: the text tells nothing."""
    if own["true"] is None:
        return []
    known = [({**own, "caption": own["true"]}, {"verdict": "true"})]
    if other is not None and other["true"] is not None:
        known.append(({**own, "caption": other["true"]}, {"verdict": "false"}))
    return known


# -- positive check --------------------------------------------------------------------------------------------------


def _draft_positives(material: Material) -> list[QuestionDraft]:
    """One question for every further true caption of an item with at most one image."""
    drafts = []
    for item in material.items:
        row = one_row(item)
        true = [j for j, fits in enumerate(row) if fits] if row else []
        for j in true[1:]:
            captions = [item.captions[true[0]], item.captions[j]]
            foil = next((c for c, fits in zip(item.captions, row or ()) if not fits), None)
            payload = {"images": list(item.images), "column": j, "captions": captions, "foil": foil}
            drafts.append(QuestionDraft(material.source, item.subset, item.id, payload))
    return drafts


def _show_positive(payload: Payload, order: Order) -> PageForm:
    first, second = payload["captions"]
    edited = ("verdict", "edit")
    fields = (
        Field("verdict", "choice", "Your verdict", options_of(POSITIVE)),
        Field("text", "text", "The second caption, corrected", value=second, when=edited),
        Field("error", "choice", "What was wrong?", options_of(POSITIVE, "errors"), when=edited),
    )
    shown = (("First caption", first), ("Second caption", second))
    return PageForm(texts()[POSITIVE]["ask"], fields, shown, PICTURE if payload["images"] else ())


def _say_positive(payload: Payload, value: Value) -> str:
    label = label_of(options_of(POSITIVE), value["verdict"])
    if value["verdict"] != "edit" or "text" not in value:  # a known answer says only that it needs a correction
        return label
    return f"{label} ({label_of(options_of(POSITIVE, 'errors'), value['error'])}): {value['text']}"


def _known_positive(own: Payload, other: Payload | None) -> list[tuple[dict[str, Any], Value]]:
    """A pair that says the same, of its own picture and of another one; without pictures, a caption and its foil."""
    known = [(dict(own), {"verdict": "accept"})]
    if not own["images"] and own["foil"]:
        known.append(({**own, "captions": [own["captions"][0], own["foil"]]}, {"verdict": "edit"}))
    elif own["images"] and other is not None:
        known.append(({**own, "captions": list(other["captions"])}, {"verdict": "edit"}))
    return known


def _right_positive(given: Value, known: Value) -> bool:
    return (given["verdict"] == "accept") == (known["verdict"] == "accept")


# -- triplet check ---------------------------------------------------------------------------------------------------


def _draft_triplets(material: Material) -> list[QuestionDraft]:
    """One question for every item with at most one image, true captions and false ones."""
    drafts = []
    for item in material.items:
        row = one_row(item)
        if row and any(row) and not all(row):
            payload = {"images": list(item.images), "captions": list(item.captions), "match": list(row)}
            if sum(row) > 1:
                payload["column"] = max(j for j, fits in enumerate(row) if fits)  # the caption that may be corrected
            drafts.append(QuestionDraft(material.source, item.subset, item.id, payload))
    return drafts


def _show_triplet(payload: Payload, order: Order) -> PageForm:
    captions, foils = payload["captions"], _foils_of(payload)
    shown = [("Should be true", c) for c, fits in zip(captions, payload["match"]) if fits]
    shown += [("Should be false", captions[foils[place]]) for place in order]
    options = tuple(o for o in options_of(TRIPLET) if "column" in payload or o.value != "edit")
    fields = [Field("verdict", "choice", "Your verdict", options)]
    if "column" in payload:
        last = captions[payload["column"]]
        fields.append(Field("text", "text", "The second caption, corrected", value=last, when=("verdict", "edit")))
    if len(foils) > 1:
        chosen = captions_as_options(captions, [foils[place] for place in order])
        fields.insert(0, Field("foil", "choice", texts()[TRIPLET]["ask_foil"], chosen))
    return PageForm(texts()[TRIPLET]["ask"], tuple(fields), tuple(shown), PICTURE if payload["images"] else ())


def _foils_of(payload: Payload) -> list[int]:
    return [j for j, fits in enumerate(payload["match"]) if not fits]


def _mean_triplet(payload: Payload, order: Order, read: Value) -> Value:
    if "foil" not in read:
        return dict(read)
    return {**read, "foil": str(_foils_of(payload)[order[int(read["foil"])]])}


def _known_triplet(payload: Payload, verdict: str = "valid") -> Value:
    """An answer with the first false caption, where there is a choice."""
    foils = _foils_of(payload)
    return {"foil": str(foils[0]), "verdict": verdict} if len(foils) > 1 else {"verdict": verdict}


def _right_triplet(given: Value, known: Value) -> bool:
    return given["verdict"] == known["verdict"] or {given["verdict"], known["verdict"]} == {"valid", "edit"}


def _say_triplet(payload: Payload, value: Value) -> str:
    chosen = [payload["captions"][int(value["foil"])]] if "foil" in value else []
    label = label_of(options_of(TRIPLET), value["verdict"])
    return "; ".join([*chosen, f"{label}: {value['text']}" if "text" in value else label])


def _checks_triplet(own: Payload, other: Payload | None) -> list[tuple[dict[str, Any], Value]]:
    """A sound item with its own picture and with another one; without pictures, P2 and the foil change places."""
    known = [(dict(own), _known_triplet(own))]
    if own["images"] and other is not None:
        mixed = {**other, "images": own["images"]}
        known.append((mixed, _known_triplet(mixed, "invalid")))
    elif not own["images"] and "column" in own:
        captions, column, foil = list(own["captions"]), own["column"], _foils_of(own)[0]
        captions[column], captions[foil] = captions[foil], captions[column]
        known.append(({**own, "captions": captions}, _known_triplet(own, "invalid")))
    return known


CHECKS = (
    StudyTask(
        FOIL, _draft_foils, lambda payload: 0, _show_foil, _as_read, _say_foil, _known_foil, (_verdict(FOIL),), "check"
    ),
    StudyTask(
        POSITIVE,
        _draft_positives,
        lambda payload: 0,
        _show_positive,
        _as_read,
        _say_positive,
        _known_positive,
        (_verdict(POSITIVE),),
        "check",
        _right_positive,
    ),
    StudyTask(
        TRIPLET,
        _draft_triplets,
        lambda payload: len(_foils_of(payload)),
        _show_triplet,
        _mean_triplet,
        _say_triplet,
        _checks_triplet,
        (_verdict(TRIPLET),),
        "check",
        _right_triplet,
    ),
)
