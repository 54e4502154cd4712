"""Tasks that compare texts without knowing where they come from: which foil is better, bias rating."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from random import Random
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
    label_of,
    one_row,
    options_of,
    texts,
)
from creperie.auditing import kind_of, pair_foils
from creperie.bench import Item
from creperie.core import UsageError

FOILS, BIAS = "better-foil", "bias-rating"
TIE = "tie"
STRONGEST = 5


# -- which foil is better --------------------------------------------------------------------------------------------


def _draft_foil_pairs(material: Material) -> list[QuestionDraft]:
    """Two foils of one true caption: from two benchmarks, or the first two of an item that differ."""
    pairs = _across(material) if material.others else _within(material.source, material.items)
    return list(pairs)


def _across(material: Material) -> Iterable[QuestionDraft]:
    """Foils of both benchmarks that have the same true caption and are of the same kind. Equal foils are not asked."""
    asked: set[tuple[str, str]] = set()
    trues = {(i.subset, i.id): i.positives[0] for i in material.items if i.positives}
    for pair in pair_foils(material.items, material.others):
        key = (pair.subset, pair.item)
        if key not in asked and pair.first.split() != pair.second.split():
            asked.add(key)
            true = trues[key]
            sources = [material.source, material.other_source]
            payload = {"images": [], "true": true, "foils": [pair.first, pair.second], "sources": sources}
            yield QuestionDraft(material.source, pair.subset, pair.item, payload)


def by_kind(drafts: list[QuestionDraft], most: int, seed: int) -> list[QuestionDraft]:
    """Draw equally many questions of every kind of foil; what one kind lacks, the others give."""
    piles: dict[str, list[int]] = {}
    for k, draft in enumerate(drafts):
        piles.setdefault(kind_of(draft.subset), []).append(k)
    dice = Random(seed)
    dealt = itertools.zip_longest(*(dice.sample(pile, len(pile)) for pile in piles.values()))
    return [drafts[k] for k in sorted([k for deal in dealt for k in deal if k is not None][:most])]


def _within(source: str, items: Iterable[Item]) -> Iterable[QuestionDraft]:
    for item in items:
        pair = _true_and_foils(item)
        foils = list(dict.fromkeys(pair[1])) if pair else []
        if pair and len(foils) >= 2:
            payload = {"images": [], "true": pair[0], "foils": foils[:2], "sources": ["foil 1", "foil 2"]}
            yield QuestionDraft(source, item.subset, item.id, payload)


def _true_and_foils(item: Item) -> tuple[str, list[str]] | None:
    row = one_row(item)
    if not row or not any(row) or all(row):
        return None
    return item.captions[row.index(True)], [c for c, fits in zip(item.captions, row) if not fits]


def _show_foil_pair(payload: Payload, order: Order) -> PageForm:
    words = texts()[FOILS]
    shown = [("Caption", payload["true"])]
    shown += [(label, payload["foils"][j]) for label, j in zip(("First variation", "Second variation"), order)]
    options = options_of(FOILS)
    fields = tuple(Field(name, "choice", label, options) for name, label in words["fields"].items())
    return PageForm(words["ask"], fields, tuple(shown))


def _say_foil_pair(payload: Payload, value: Value) -> str:
    labels = texts()[FOILS]["fields"]
    return "; ".join(
        f"{labels[name]}: {label_of(options_of(FOILS), v) if v == TIE else payload['foils'][int(v)]}"
        for name, v in value.items()
    )


def _known_foil_pair(own: Payload, other: Payload | None) -> list[tuple[dict[str, Any], Value]]:
    """A foil against itself with its words in disorder: sense and grammar of the first are better."""
    first = own["foils"][0]
    broken = in_disorder(first)
    return [({**own, "foils": [first, broken]}, {"sense": "0", "grammar": "0"})] if broken != first else []


def in_disorder(text: str) -> str:
    """A sentence with its words exchanged two by two.

    >>> in_disorder("a dog bites a man.")
    'dog a a bites man.'
    """
    words = text.split()
    for n in range(0, len(words) - 1, 2):
        words[n], words[n + 1] = words[n + 1], words[n]
    return " ".join(words)


def _code_preference(name: str) -> Dimension:
    values = [o.value for o in options_of(FOILS)]
    return Dimension(name, lambda payload, value: float(values.index(value[name])))


# -- bias rating -----------------------------------------------------------------------------------------------------


def _draft_bias(material: Material) -> list[QuestionDraft]:
    """The first true caption against the first foil; items of two benchmarks are mixed, sources hidden."""
    parts = [(material.source, material.items), (material.other_source, material.others)]
    drafts = []
    for source, items in parts:
        for item in items:
            pair = _true_and_foils(item) or _paired(item)
            if pair:
                payload = {"images": [], "captions": [pair[0], pair[1][0]]}
                drafts.append(QuestionDraft(source, item.subset, item.id, payload))
    if material.others and material.source == material.other_source:
        raise UsageError(f"both benchmarks are called {material.source!r}", hint="rename one of them")
    return drafts


def _paired(item: Item) -> tuple[str, list[str]] | None:
    """The two captions of an item with two images: neither is a foil, so the first stands for the true one."""
    return (item.captions[0], [item.captions[1]]) if len(item.captions) == 2 else None


def _show_bias(payload: Payload, order: Order) -> PageForm:
    left, right = (payload["captions"][j] for j in order)
    field = Field(
        "rating", "scale", "Your rating", low=-STRONGEST, high=STRONGEST, ends=("First sentence", "Second sentence")
    )
    return PageForm(texts()[BIAS]["ask"], (field,), (("First sentence", left), ("Second sentence", right)))


def _mean_bias(payload: Payload, order: Order, read: Value) -> Value:
    """Above zero: the true caption is the more reasonable text."""
    return {"rating": read["rating"] if order[0] == 1 else -read["rating"]}


def _known_bias(own: Payload, other: Payload | None) -> list[tuple[dict[str, Any], Value]]:
    """A caption against itself with its words in disorder."""
    caption = own["captions"][0]
    broken = in_disorder(caption)
    return [({**own, "captions": [caption, broken]}, {"rating": STRONGEST})] if broken != caption else []


PREFERENCES = (
    StudyTask(
        FOILS,
        _draft_foil_pairs,
        lambda payload: 2,
        _show_foil_pair,
        lambda payload, order, read: {k: TIE if at == TIE else str(order[int(at)]) for k, at in read.items()},
        _say_foil_pair,
        _known_foil_pair,
        (_code_preference("sense"), _code_preference("grammar")),
        "rate",
    ),
    StudyTask(
        BIAS,
        _draft_bias,
        lambda payload: 2,
        _show_bias,
        _mean_bias,
        lambda payload, value: f"{value['rating']:+d} for “{payload['captions'][0]}”",
        _known_bias,
        (Dimension("rating", lambda payload, value: float(value["rating"]), "interval"),),
        "rate",
        lambda given, known: given["rating"] * known["rating"] > 0,
    ),
)
