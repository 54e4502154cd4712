"""Tasks that confirm or correct items: foil check, positive check, triplet check."""

from __future__ import annotations

from typing import Any

from creperie.annotation.tasks.form import AnswerOption, Field, PageForm
from creperie.annotation.tasks.task import (
    Dimension,
    Material,
    Order,
    Payload,
    QuestionDraft,
    StudyTask,
    Value,
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


def _trap_foil(payload: Payload, stranger: str) -> tuple[dict[str, Any], Value] | None:
    """The caption that is true of the image, in the foil's place."""
    if payload["true"] is None:
        return None
    return {**payload, "caption": payload["true"]}, {"verdict": "true"}


# -- positive check --------------------------------------------------------------------------------------------------


def _draft_positives(material: Material) -> list[QuestionDraft]:
    """One question for every further true caption of an item with at most one image."""
    drafts = []
    for item in material.items:
        row = one_row(item)
        true = [j for j, fits in enumerate(row) if fits] if row else []
        for j in true[1:]:
            captions = [item.captions[true[0]], item.captions[j]]
            payload = {"images": list(item.images), "column": j, "captions": captions}
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
    said = label_of(options_of(POSITIVE), value["verdict"])
    if value["verdict"] != "edit" or "text" not in value:  # a known answer says only that it needs a correction
        return said
    return f"{said} ({label_of(options_of(POSITIVE, 'errors'), value['error'])}): {value['text']}"


def _trap_positive(payload: Payload, stranger: str) -> tuple[dict[str, Any], Value] | None:
    """A caption of quite another item in P2's place: whatever is done, it is not accepted."""
    return {**payload, "captions": [payload["captions"][0], stranger]}, {"verdict": "edit"}


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
    pairs = sorted(zip(payload["match"], payload["captions"]), key=lambda p: not p[0])
    shown = tuple(("Should be true" if fits else "Should be false", caption) for fits, caption in pairs)
    options = tuple(o for o in options_of(TRIPLET) if "column" in payload or o.value != "edit")
    fields = [Field("verdict", "choice", "Your verdict", options)]
    if "column" in payload:
        last = payload["captions"][payload["column"]]
        fields.append(Field("text", "text", "The second caption, corrected", value=last, when=("verdict", "edit")))
    if len(foils := _foils_of(payload)) > 1:
        fields.insert(0, Field("foil", "choice", texts()[TRIPLET]["ask_foil"], foils))
    return PageForm(texts()[TRIPLET]["ask"], tuple(fields), shown, PICTURE if payload["images"] else ())


def _foils_of(payload: Payload) -> tuple[AnswerOption, ...]:
    pairs = enumerate(zip(payload["captions"], payload["match"]))
    return tuple(AnswerOption(str(j), caption, quote=True) for j, (caption, fits) in pairs if not fits)


def _known_triplet(payload: Payload, verdict: str = "valid") -> Value:
    """An answer with the first false caption, where there is a choice."""
    foils = _foils_of(payload)
    return {"foil": foils[0].value, "verdict": verdict} if len(foils) > 1 else {"verdict": verdict}


def _right_triplet(given: Value, known: Value) -> bool:
    return given["verdict"] == known["verdict"] or {given["verdict"], known["verdict"]} == {"valid", "edit"}


def _say_triplet(payload: Payload, value: Value) -> str:
    chosen = [payload["captions"][int(value["foil"])]] if "foil" in value else []
    said = label_of(options_of(TRIPLET), value["verdict"])
    return "; ".join([*chosen, f"{said}: {value['text']}" if "text" in value else said])


def _trap_triplet(payload: Payload, stranger: str) -> tuple[dict[str, Any], Value] | None:
    """The first true caption once more, in the place of the false ones."""
    true = payload["captions"][payload["match"].index(True)]
    captions = [c if fits else true for c, fits in zip(payload["captions"], payload["match"])]
    return {**payload, "captions": captions}, _known_triplet(payload, "invalid")


def _check(task: str, draft: Any, show: Any, say: Any, truth: Any, trap: Any, *right: Any) -> StudyTask:
    """A task whose first field is a verdict; nothing in it is shuffled."""
    verdict = (_verdict(task),)
    return StudyTask(task, draft, lambda payload: 0, show, _as_read, say, truth, trap, verdict, "check", *right)


_FALSE, _ACCEPTED = {"verdict": "false"}, {"verdict": "accept"}
CHECKS = (
    _check(FOIL, _draft_foils, _show_foil, _say_foil, lambda _: _FALSE, _trap_foil),
    _check(
        POSITIVE, _draft_positives, _show_positive, _say_positive, lambda _: _ACCEPTED, _trap_positive, _right_positive
    ),
    _check(TRIPLET, _draft_triplets, _show_triplet, _say_triplet, _known_triplet, _trap_triplet, _right_triplet),
)
