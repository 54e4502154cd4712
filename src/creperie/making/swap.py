"""Two atoms of one kind exchanged: nouns, adjectives, whole noun phrases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random
from typing import Any

from creperie.lang import lemma
from creperie.making.atoms import attributes, compound, holds_both_ways, is_plural, joined, objects, phrase
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import vocabulary_kept
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.source import Captions, SourceCaption
from creperie.making.wording import Piece, plain, written

Pair = tuple[Any, Any]


def swap(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:swap`."""
    return ParsedMaker(name, propose_swaps, options, (vocabulary_kept, *options.model_checks))


def propose_swaps(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """Up to `foils` candidates of each kind."""
    rng = dice_for(options.seed, "rules:swap", source.id)
    candidates = []
    for kind, (pairs, exchange) in KINDS.items():
        found = list(pairs(doc, options.as_published))
        rng.shuffle(found)
        for left, right in found[: options.foils]:
            text = exchange(doc, left, right, not options.as_published)
            edit = f"{left.text} ↔ {right.text}"
            group = "swap" if options.as_published else ""
            candidates.append(Candidate(source.id, text, "negative", kind, "rules:swap", edit, group))
    return Proposal(tuple(candidates))


def _noun_pairs(doc: Any, any_number: bool) -> Iterator[Pair]:
    """Two things that are not joined by `and`, of one number, each with a word of its own."""
    for left, right in combinations(objects(doc), 2):
        if joined(left, right) or lemma(left.text, left.tag_) == lemma(right.text, right.tag_):
            continue
        apart = compound(left)[1] <= compound(right)[0]
        true_too = holds_both_ways(left, right) and not (_is_described(left) or _is_described(right))
        if any_number or (apart and left.tag_ == right.tag_ and not true_too):
            yield left, right


def _phrase_pairs(doc: Any, any_number: bool) -> Iterator[Pair]:
    for left, right in _noun_pairs(doc, True):
        same = is_plural(left) == is_plural(right) or not (_agrees(left) or _agrees(right))
        apart = phrase(left)[1] <= phrase(right)[0]
        more_than_nouns = phrase(left)[1] - phrase(left)[0] > 2 or phrase(right)[1] - phrase(right)[0] > 2
        if apart and more_than_nouns and (any_number or (same and not holds_both_ways(left, right))):
            yield left, right


def _is_described(noun: Any) -> bool:
    """Whether words stay behind when it goes: `a red cup near a blue table` is not `a red table near a blue cup`."""
    return any(c.dep_ in ("amod", "nummod", "nmod", "poss") for c in noun.children)


def _agrees(noun: Any) -> bool:
    """Whether a verb's ending depends on this noun."""
    return noun.dep_ in ("nsubj", "nsubjpass", "attr")


def _adjective_pairs(doc: Any, any_number: bool) -> Iterator[Pair]:
    """Two adjectives of different things."""
    for left, right in combinations(attributes(doc), 2):
        if left.head == right.head or joined(left, right) or left.text.lower() == right.text.lower():
            continue
        if left.dep_ == right.dep_ == "amod" and left.head.tag_ in ("NN", "NNS") and right.head.tag_ in ("NN", "NNS"):
            yield left, right


def _exchange_nouns(doc: Any, left: Any, right: Any, repair: bool) -> str:
    """Nouns with the compounds that they head; published swaps tear those apart."""
    if not repair:
        return _exchange_spans(doc, (left.i, left.i + 1), (right.i, right.i + 1), repair)
    return _exchange_spans(doc, compound(left), compound(right), repair)


def _exchange_adjectives(doc: Any, left: Any, right: Any, repair: bool) -> str:
    return _exchange_spans(doc, (left.i, left.i + 1), (right.i, right.i + 1), repair)


def _exchange_phrases(doc: Any, left: Any, right: Any, repair: bool) -> str:
    return _exchange_spans(doc, phrase(left), phrase(right), repair)


def _exchange_spans(doc: Any, left: tuple[int, int], right: tuple[int, int], repair: bool) -> str:
    """The caption with two stretches of words in each other's place; blanks stay where they were."""
    (a, b), (c, d) = left, right
    order = [range(a), range(c, d), range(b, c), range(a, b), range(d, len(doc))]
    blanks = {d - 1: doc[b - 1].whitespace_, b - 1: doc[d - 1].whitespace_}
    pieces: list[Piece] = [
        (plain(doc[i]) if repair else doc[i].text, blanks.get(i, doc[i].whitespace_)) for part in order for i in part
    ]
    return written(pieces, like=doc.text if repair else "")


Pairs = Callable[[Any, bool], Iterator[Pair]]
Exchange = Callable[[Any, Any, Any, bool], str]
KINDS: dict[str, tuple[Pairs, Exchange]] = {
    "swap-object": (_noun_pairs, _exchange_nouns),
    "swap-attribute": (_adjective_pairs, _exchange_adjectives),
    "swap-phrase": (_phrase_pairs, _exchange_phrases),
}


def one_swap(doc: Any, rng: Random, as_published: bool) -> tuple[str, str] | None:
    """Some swap of a caption, with its edit; None where there is none."""
    found = [(exchange, pair) for pairs, exchange in KINDS.values() for pair in pairs(doc, as_published)]
    if not found:
        return None
    exchange, (left, right) = rng.choice(found)
    return exchange(doc, left, right, not as_published), f"{left.text} ↔ {right.text}"
