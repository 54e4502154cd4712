"""Tasks that compare texts without showing their source: which foil is better, and which caption is more reasonable."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from random import Random

from creperie.annotation.tasks.form import Field, PageForm
from creperie.annotation.tasks.task import (
    Dimension,
    KnownAnswers,
    Order,
    Payload,
    QuestionDraft,
    StudyTask,
    Value,
    choice_of,
    label_of,
    options_of,
    texts,
)
from creperie.auditing import kind_of, pair_foils
from creperie.bench import Item
from creperie.core import Json

FOILS, BIAS = "better-foil", "bias-rating"
TIE = "tie"
STRONGEST = 5


# -- which foil is better --------------------------------------------------------------------------------------------


def _ask_foils(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question about the first two different foils of an item; yield nothing if it has fewer than two."""
    foils = list(dict.fromkeys(item.negatives))
    if len(item.match) == 1 and item.positives and len(foils) >= 2:
        yield _pair(item.positives[0], foils[:2], ["foil 1", "foil 2"])


def _pair(true: str, foils: list[str], sources: list[str]) -> Value:
    return {"images": [], "true": true, "foils": foils, "sources": sources}


def foil_pairs(
    source: str, items: Sequence[Item], other_source: str, others: Sequence[Item]
) -> Iterator[QuestionDraft]:
    """Yield questions that each compare a foil of one benchmark with a foil of another. The two foils are of the same
    kind and belong to the same true caption. Pairs of equal foils are left out.
    """
    trues = {(i.subset, i.id): i.positives[0] for i in items if i.positives}
    for pair in pair_foils(items, others):
        foils = [pair.first, pair.second]
        if (
            pair.first.split() != pair.second.split()
            and (true := trues.pop((pair.subset, pair.item), None)) is not None
        ):
            yield QuestionDraft(source, pair.subset, pair.item, _pair(true, foils, [source, other_source]))


def by_kind(drafts: list[QuestionDraft], most: int, seed: int) -> list[QuestionDraft]:
    """Return at most `most` questions, with equally many about each kind of foil. If a kind has too few questions,
    there are more about the other kinds.
    """
    piles: dict[str, list[int]] = {}
    for k, draft in enumerate(drafts):
        piles.setdefault(kind_of(draft.subset), []).append(k)
    dice = Random(seed)
    dealt = itertools.zip_longest(*(dice.sample(pile, len(pile)) for pile in piles.values()))
    return [drafts[k] for k in sorted([k for deal in dealt for k in deal if k is not None][:most])]


def _show_foils(payload: Payload, order: Order) -> PageForm:
    words = texts()[FOILS]
    shown = [("Caption", payload["true"])]
    shown += [(label, payload["foils"][j]) for label, j in zip(("First variation", "Second variation"), order)]
    fields = tuple(Field(name, "choice", label, options_of(FOILS)) for name, label in words["fields"].items())
    return PageForm(words["ask"], fields, tuple(shown))


def _say_foils(payload: Payload, value: Value) -> str:
    labels = texts()[FOILS]["fields"]
    chosen = {k: label_of(v, FOILS) if v == TIE else payload["foils"][int(v)] for k, v in value.items()}
    return "; ".join(f"{labels[name]}: {text}" for name, text in chosen.items())


def _known_foils(own: Payload, other: Payload | None) -> KnownAnswers:
    """Return a question that compares a foil with a copy of it in which neighbouring words are swapped. The known
    answer is the foil, which is better than the copy.
    """
    return [({**own, "foils": pair}, {"sense": "0", "grammar": "0"}) for pair in _with_disordered_copy(own["foils"][0])]


def _with_disordered_copy(text: str) -> list[list[str]]:
    """Return a list with one pair: a sentence, and a copy with neighbouring words swapped. The list is empty if the two
    are equal.

    >>> _with_disordered_copy("a dog bites a man.")
    [['a dog bites a man.', 'dog a a bites man.']]
    """
    words = text.split()
    for n in range(0, len(words) - 1, 2):
        words[n], words[n + 1] = words[n + 1], words[n]
    broken = " ".join(words)
    return [[text, broken]] if broken != text else []


# -- bias rating -----------------------------------------------------------------------------------------------------


def _ask_bias(item: Item, with_image: bool) -> Iterator[Json]:
    """Yield one question about an item's first true caption and its first foil.

    If the item has two images, each caption is true of one of them. The question is then about its first and its second
    caption.
    """
    if len(item.match) == 1 and item.positives and item.negatives:
        yield {"images": [], "captions": [item.positives[0], item.negatives[0]]}
    elif len(item.captions) == 2:
        yield {"images": [], "captions": list(item.captions)}


def _show_bias(payload: Payload, order: Order) -> PageForm:
    ends = ("First sentence", "Second sentence")
    field = Field("rating", "scale", "Your rating", low=-STRONGEST, high=STRONGEST, ends=ends)
    shown = tuple((label, payload["captions"][j]) for label, j in zip(ends, order))
    return PageForm(texts()[BIAS]["ask"], (field,), shown)


def _mean_bias(payload: Payload, order: Order, read: Value) -> Value:
    """Return the rating with a sign that says which text was rated as more reasonable: positive for the true caption,
    negative for the foil.
    """
    # The sign is adjusted for the order in which the captions were shown.
    return {"rating": read["rating"] if order[0] == 1 else -read["rating"]}


def _known_bias(own: Payload, other: Payload | None) -> KnownAnswers:
    """Return a question that compares a caption with a copy of it in which neighbouring words are swapped. The known
    answer is the caption, which is better than the copy.
    """
    return [({**own, "captions": pair}, {"rating": STRONGEST}) for pair in _with_disordered_copy(own["captions"][0])]


PREFERENCES = (
    StudyTask(
        FOILS,
        "rate",
        _ask_foils,
        _show_foils,
        _say_foils,
        _known_foils,
        (choice_of("sense", FOILS), choice_of("grammar", FOILS)),
        lambda payload: 2,
        lambda payload, order, read: {k: TIE if at == TIE else str(order[int(at)]) for k, at in read.items()},
    ),
    StudyTask(
        BIAS,
        "rate",
        _ask_bias,
        _show_bias,
        lambda payload, value: f"{value['rating']:+d} for “{payload['captions'][0]}”",
        _known_bias,
        (Dimension("rating", lambda payload, value: float(value["rating"]), "interval"),),
        lambda payload: 2,
        _mean_bias,
        lambda given, known: given["rating"] * known["rating"] > 0,
    ),
)
