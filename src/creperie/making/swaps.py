"""Two things, attributes or phrases of a caption that could change places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from creperie.lang import (
    age_of,
    be,
    dimension_of,
    gender_of,
    inflected,
    is_mass,
    kind_of,
    lemma,
    listed_for,
    may_be_called,
)
from creperie.making.atoms import compound, joined, objects, phrase
from creperie.making.corpus import WordCounts
from creperie.making.edits import ANIMATE, MADE, CaptionEdit, doer_of, frames, holder_of, may_be, qualities, rivals
from creperie.making.phrases import is_plural, lacks_determiner, named
from creperie.making.wording import Piece, plain, written

Pair = tuple[Any, Any]
#: Clothes and gear change owners, food and vehicles places; a place and a thing never change roles.
MOVABLE = frozenset((*ANIMATE, *MADE, "food"))
#: Prepositions that could be said the other way round of two things of one sort.
_TURNING = frozenset(
    ("behind", "above", "below", "over", "after", "past", "toward", "towards", "at", "near", "beside", "by")
)
_SHADES = frozenset(("light", "dark", "bright", "hot", "pale", "neon", "navy"))


def swapped_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Two nouns in each other's place; what is said of them stays."""
    for left, right in swappable(doc):
        stays = any(c.dep_ == "amod" and dimension_of(c.lower_) != "colour" for t in (left, right) for c in t.children)
        if left.tag_ == right.tag_ and not stays and compound(left)[1] <= compound(right)[0]:
            text = exchange_spans(doc, compound(left), compound(right), True)
            yield CaptionEdit(text, f"{left.text} ↔ {right.text}", left.i, (left, right))


def swapped_phrases(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Two noun phrases in each other's place, adjectives and all; verbs agree."""
    for left, right in swappable(doc):
        (_, end), (start, _) = phrase(left), phrase(right)
        known = {any(c.lower_ == "the" for c in t.lefts) for t in (left, right)}
        laden = any(c.dep_ in ("prep", "acl", "relcl") for c in (*left.rights, *right.rights))
        numbers = left.tag_ == right.tag_ or (not laden and {sort_of(left), sort_of(right)} <= ANIMATE)
        if end <= start and numbers and len(known) == 1 and any(phrase(t)[1] - phrase(t)[0] > 2 for t in (left, right)):
            text = exchange_spans(doc, phrase(left), phrase(right), True, agreement(left, right))
            yield CaptionEdit(text, f"{left.text} ↔ {right.text}", left.i, (left, right))


def swapped_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Two adjectives of different things in each other's place: of one dimension, and each thing could be so."""
    for left, right in adjective_pairs(doc):
        one, other = left.head, right.head
        alike = dimension_of(left.lower_) == dimension_of(right.lower_) != ""
        alike = alike and all(map(stands_alone, (left, right)))
        if alike and may_be(left.lower_, other, corpus) and may_be(right.lower_, one, corpus):
            text = exchange_spans(doc, (left.i, left.i + 1), (right.i, right.i + 1), True)
            yield CaptionEdit(text, f"{left.text} ↔ {right.text}", left.i, (left, right))


def swappable(doc: Any) -> Iterator[Pair]:
    """Two things of one sort in different roles that could change places."""
    told = {t.lower_ for t in doc}
    bound = not told.isdisjoint(frames()["pronouns"]) or not told.isdisjoint(frames()["gendered"])
    for left, right in noun_pairs(objects(doc)):
        first, second = (lemma(t.text, t.tag_) for t in (left, right))
        kinds = sort_of(left), sort_of(right)
        between = {t.lower_ for t in doc[left.i + 1 : phrase(right)[0]]}
        if between <= {"and", "or", ","} or not {first, second}.isdisjoint(frames()["passive"]):
            continue
        if len({*kinds} - ANIMATE) + bool({*kinds} & ANIMATE) > 1 or not MOVABLE.issuperset(kinds):
            continue
        if ("food" in kinds and is_mass(first) != is_mass(second)) or (bound and gender_of(first) != gender_of(second)):
            continue
        if "baby" in (age_of(first), age_of(second)) or any(map(_is_tied, (left, right))):
            continue
        if any(map(lacks_determiner, (left, right))):
            continue
        alike = (
            {*kinds} <= ANIMATE | {"clothing", "food"}
            or second in rivals(first, False)
            or first in rivals(second, False)
        )
        if alike and _turns(left, right, kinds[0] != kinds[1]):
            yield left, right


def sort_of(noun: Any) -> str:
    """The kind of thing that a noun names with what makes one name with it: a `roller coaster` is no person."""
    base = lemma(noun.text, noun.tag_)
    whole = named(noun)
    return kind_of(base) if whole == base else kind_of(whole) or (kind_of(base) if listed_for(base) else "")


def _turns(left: Any, right: Any, crossed: bool) -> bool:
    """Whether what joins two things could be said the other way round, or each has a place of its own."""
    parts = [c for c in (*left.rights, *right.rights) if c.dep_ in ("acl", "relcl") or c.lower_ in ("in", "with")]
    if crossed and parts:
        return False  # no horse in a jacket
    link = right.head
    if right.dep_ == "dobj" and doer_of(link) == left:
        return turns(_base(link), *(lemma(t.text, t.tag_) for t in (left, right)))
    if link.dep_ == "agent" and doer_of(link.head) == left:
        return turns(_base(link.head), *(lemma(t.text, t.tag_) for t in (left, right)))
    if right.dep_ == "pobj" and holder_of(link) == left:
        verb = link.head
        front = link.lower_ == "of" and verb.lower_ == "front"
        beside = link.lower_ == "to" and verb.lower_ in ("next", "close")
        said = f"{_base(verb)} {link.lower_}" if verb.tag_.startswith("VB") else ""
        worn = kind_of(lemma(right.text, right.tag_)) in ("clothing", "food")
        return not worn and (front or beside or link.lower_ in _TURNING or said in frames()["turned"])
    if crossed or any(c.dep_ in ("conj", "cc") for t in (left, right) for a in t.lefts for c in a.children):
        return False  # `blue and white uniforms`
    bases = [lemma(t.text, t.tag_) for t in (left, right)]
    if kind_of(bases[0]) == "clothing" and may_be_called(*bases):
        return False  # a sweater is a shirt to some
    holders = [_holder(t) for t in (left, right)]
    return None not in holders and holders[0] != holders[1] and not set(holders) & {left, right}


def _base(verb: Any) -> str:
    return lemma(verb.text, verb.tag_ if verb.tag_.startswith("VB") else "VBZ")


def turns(verb: str, first: str, second: str) -> bool:
    """Whether either of two beings could do it to the other; nobody is carried by a child.

    >>> turns("chase", "goat", "girl"), turns("feed", "man", "dog"), turns("hit", "player", "ball")
    (True, False, False)
    """
    kinds, ages = {kind_of(first), kind_of(second)}, {age_of(first), age_of(second)}
    if not kinds <= ANIMATE:
        return False
    if len(kinds) == 2:
        return verb in frames()["crossed"]
    return verb in frames()["both_ways"] and (verb not in frames()["grown"] or (len(ages) == 1 and "" not in ages))


def _holder(noun: Any) -> Any | None:
    """What a noun belongs to: the verb that it is the subject of, who wears or holds it, or the one who is there."""
    if noun.dep_ == "nsubj":
        return noun.head if noun.head.tag_.startswith("VB") else None
    if noun.dep_ == "pobj" and noun.head.dep_ == "prep":
        owner = holder_of(noun.head)
        while owner is not None and owner.dep_ == "pobj" and kind_of(lemma(owner.text, owner.tag_)) == "clothing":
            owner = holder_of(owner.head)  # `a man in a shirt with a scarf`
        alone = noun.head.lower_ in ("in", "with", "on", "under", "behind", "near", "beside", "past")
        return (
            (noun.head if kind_of(lemma(noun.text, noun.tag_)) in ("furniture", "vehicle") else owner)
            if alone
            else None
        )
    return doer_of(noun.head) if noun.dep_ == "dobj" and noun.head.tag_.startswith("VB") else None


def _is_tied(noun: Any) -> bool:
    """Whether a noun is a part, a measure, a possession, one of several, or refers to another."""
    if noun.dep_ == "conj" or any(c.dep_ == "prep" and c.lower_ == "of" for c in noun.rights):
        return True
    if noun.dep_ == "pobj" and noun.head.lower_ == "of" and noun.head.head.lower_ != "front":
        return True
    return any(c.dep_ in ("poss", "conj") or c.lower_ in ("another", "other", "each") for c in noun.children)


def noun_pairs(nouns: Iterable[Any]) -> Iterator[Pair]:
    """Two things that are not joined by `and`, each with a word of its own."""
    for left, right in combinations(nouns, 2):
        if not joined(left, right) and lemma(left.text, left.tag_) != lemma(right.text, right.tag_):
            yield left, right


def adjective_pairs(doc: Any) -> Iterator[Pair]:
    """Two adjectives of different things, not joined by `and`."""
    for left, right in combinations(qualities(doc), 2):
        nouns = left.head.tag_[:2] == right.head.tag_[:2] == "NN"
        if left.head == right.head or joined(left, right) or left.lower_ == right.lower_ or not nouns:
            continue
        if "acomp" not in (left.dep_, right.dep_) and not joined(left.head, right.head):
            yield left, right


def stands_alone(adjective: Any) -> bool:
    """Whether its noun has no second adjective of the dimension: not in `a white and black box`, `a dark red car`."""
    start, end = phrase(adjective.head)
    said = [t.lower_ for t in adjective.doc[start:end]]
    own = dimension_of(adjective.lower_)
    return sum(dimension_of(w) == own for w in said) < 2 and _SHADES.isdisjoint(said)


def exchange_spans(
    doc: Any, left: tuple[int, int], right: tuple[int, int], repair: bool, changes: Mapping[int, str] | None = None
) -> str:
    """The caption with two stretches of words in each other's place; blanks stay where they were. `changes` are words
    that follow, as a verb's ending does."""
    (a, b), (c, d) = left, right
    follow = changes or {}
    order = [range(a), range(c, d), range(b, c), range(a, b), range(d, len(doc))]
    blanks = {d - 1: doc[b - 1].whitespace_, b - 1: doc[d - 1].whitespace_}
    pieces: list[Piece] = [
        (follow.get(i) or (plain(doc[i]) if repair else doc[i].text), blanks.get(i, doc[i].whitespace_))
        for part in order
        for i in part
    ]
    return written(pieces, like=doc.text if repair else "")


def agreement(left: Any, right: Any) -> dict[int, str]:
    """The verbs whose ending follows what changes places: `a man is holding`, `two men are holding`."""
    changes: dict[int, str] = {}
    for old, new in ((left, right), (right, left)):
        if old.dep_ not in ("nsubj", "nsubjpass") or is_plural(old) == is_plural(new):
            continue
        verb = old.head
        for token in (t for t in (*verb.lefts, verb) if t == verb or t.dep_ in ("aux", "auxpass")):
            base = lemma(token.text, "VB")
            if base == "be" and token.tag_ in ("VBZ", "VBP", "VBD"):
                tense = "past" if token.lower_ in ("was", "were") else "present"
                changes[token.i] = be(tense, plural=bool(is_plural(new)))
            elif token.tag_ in ("VBZ", "VBP"):
                changes[token.i] = inflected(base, "VBP" if is_plural(new) else "VBZ")
    return changes
