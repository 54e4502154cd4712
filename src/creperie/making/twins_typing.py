"""What kind of twins two captions are, if they are any: where they differ, typed by the parse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from creperie.making.twins_words import (
    CaptionWord,
    Contrast,
    are_compatible,
    base,
    disjoint_nouns,
    is_action,
    is_asymmetric,
    is_number,
    is_symmetric,
    table_contrast,
)

KINDS = ("swap_obj", "swap_att", "replace_obj", "replace_att", "replace_rel", "number", "spatial")
Words = Sequence[CaptionWord]
#: Parts of speech that a parse may give to the words of a kind; small parsers call colours nouns, and -ing words both.
_FAMILIES = {
    "replace_obj": ({"NOUN", "PROPN", "PRON"},),
    "replace_att": ({"ADJ", "NOUN", "PROPN", "VERB"},),
    "replace_rel": ({"VERB", "NOUN", "AUX"}, {"ADP", "SCONJ"}),
    "number": ({"NUM", "NOUN", "ADJ", "DET"},),
    "spatial": ({"ADP", "ADV", "PART", "SCONJ"}, {"ADJ", "NOUN", "VERB", "ADV"}),
}
_MODIFIERS = ("compound", "amod", "nmod", "poss")


@dataclass(frozen=True, slots=True)
class Difference:
    """The one phrase in which two captions differ."""

    left: tuple[CaptionWord, ...]
    right: tuple[CaptionWord, ...]

    @property
    def edit(self) -> str:
        return " ↔ ".join(" ".join(w.text for w in side) for side in (self.left, self.right))


def difference(left: Words, right: Words) -> Difference:
    """What is left of two captions without the words that they begin and end with alike."""
    start, end = 0, 0
    most = min(len(left), len(right))
    while start < most and left[start].base == right[start].base:
        start += 1
    while end < most - start and left[-1 - end].base == right[-1 - end].base:
        end += 1
    return Difference(tuple(left[start : len(left) - end]), tuple(right[start : len(right) - end]))


def contrast_of(found: Difference) -> Contrast | str:
    """The two words that exclude each other, or why there are none."""
    if not found.left and not found.right:
        return "the same words"
    if not found.left or not found.right:
        return "one caption says more than the other"
    one, two = found.left[-1].base, found.right[-1].base
    contrast = table_contrast(one, two)
    if contrast:
        return contrast
    if are_compatible(one, two):
        return "both may be true"
    if disjoint_nouns(one, two):
        return Contrast("disjoint nouns", "replace_obj", one, two)
    return "not known to exclude each other"


def replaced_kind(found: Difference, contrast: Contrast, docs: tuple[Any, Any]) -> tuple[str, str]:
    """The kind of a twin by one phrase, or a reason in the second place."""
    sides = [[_token(doc, w) for w in side] for doc, side in zip(docs, (found.left, found.right), strict=True)]
    if any(t is None for side in sides for t in side):
        return "", "the phrases are of different types"
    if not all(_is_phrase(side, contrast.kind) for side in sides):
        return "", "more than one phrase differs"
    kind = _kind(contrast, [side[-1] for side in sides])
    return (kind, "") if kind else ("", "the phrases are of different types")


def _is_phrase(side: Sequence[Any], kind: str) -> bool:
    """A word, alone, after its preposition, or after a word that describes it or the same noun as it does."""
    *before, last = side
    for token in before:
        governs = token.pos_ in ("ADP", "SCONJ", "PART", "ADV") and kind in ("replace_obj", "replace_att")
        if is_action(base(last.lower_)) and kind == "replace_obj":
            return False  # "wearing a jacket rolls": the phrase ends in a verb
        describes = token.dep_ in _MODIFIERS and token.head.i in (last.i, last.head.i) and not is_number(token.lower_)
        if not governs and not describes:
            return False
    return True


def differ_in_number(left: Words, right: Words, docs: tuple[Any, Any]) -> bool:
    """True where a noun that both captions have is singular in one and plural in the other."""
    pairs = list(zip(left, right)) if len(left) == len(right) else _ends(left, right)
    for one, two in pairs:
        if one.base == two.base and one.text != two.text:
            tags = [t.tag_ if (t := _token(doc, w)) is not None else "" for doc, w in zip(docs, (one, two))]
            if {tag[-1:] for tag in tags} >= {"S"} and tags[0][:2] == tags[1][:2] == "NN" and tags[0] != tags[1]:
                return True
    return False


def _ends(left: Words, right: Words) -> list[tuple[CaptionWord, CaptionWord]]:
    """The words that two captions of different length begin and end with alike."""
    found = difference(left, right)
    start = next((k for k, w in enumerate(left) if w is found.left[0]), len(left)) if found.left else 0
    end = len(left) - start - len(found.left)
    return [*zip(left[:start], right[:start]), *(zip(left[-end:], right[-end:]) if end else ())]


def _kind(contrast: Contrast, tokens: Sequence[Any]) -> str:
    for family in _FAMILIES[contrast.kind]:
        if all(t.pos_ in family for t in tokens):
            break
    else:
        return ""
    if contrast.kind == "replace_rel" and all(t.pos_ == "NOUN" and not t.lower_.endswith("ing") for t in tokens):
        return "replace_obj"  # "on a snowboard", "on a bicycle"
    # small parsers read "a dog runs" as one noun; what is named there is the dog
    modifies = [t.dep_ in _MODIFIERS and t.head.i > t.i and not is_action(base(t.head.lower_)) for t in tokens]
    if contrast.kind == "replace_obj" and any(modifies):
        return "replace_att" if all(modifies) else ""
    return contrast.kind


def _token(doc: Any, word: CaptionWord) -> Any:
    """The last token of a word in its parse."""
    span = doc.char_span(word.start, word.end, alignment_mode="expand")
    return span[-1] if span is not None and len(span) else None


@dataclass(frozen=True, slots=True)
class RolePlayer:
    """A noun of a caption: what it does there, and what is said of it."""

    role: tuple[str, str]
    noun: str
    attributes: frozenset[str]


def role_players(doc: Any) -> list[RolePlayer]:
    """The nouns of a caption with their roles; an adjunct has the same role wherever it stands.

    A participle after a noun is its verb: "a dog chasing a cat" and "a dog chases a cat" have the same roles.
    """
    found: list[RolePlayer] = []
    for token in doc:
        if token.pos_ in ("NOUN", "PROPN") and token.dep_ not in _MODIFIERS:
            said = frozenset(base(t.lower_) for t in token.children if t.dep_ in ("amod", "compound", "nummod"))
            found.extend(RolePlayer(role, base(token.lower_), said) for role in _roles(token))
    return found


def _roles(noun: Any) -> Iterator[tuple[str, str]]:
    clauses = [t for t in noun.children if t.dep_ in ("acl", "relcl")]
    yield from (("subject", base(t.lower_)) for t in clauses)
    head = noun.head
    if noun.dep_ == "nsubj":
        yield "subject", base(head.lower_)
    elif noun.dep_ in ("dobj", "nsubjpass"):
        yield "object", base(head.lower_)
    elif noun.dep_ == "pobj":
        agent = head.dep_ == "agent"
        yield ("subject", base(head.head.lower_)) if agent else ("place", base(head.lower_))
    elif noun.dep_ == "conj":
        yield "and", ""
    elif not clauses:
        yield "alone", ""


def swapped_kind(docs: tuple[Any, Any]) -> tuple[str, Contrast | None, str]:
    """Kind and contrast of two captions with the same words in another order; or a reason in the third place."""
    left, right = (role_players(doc) for doc in docs)
    ours, theirs = ({p.role: p for p in players} for players in (left, right))
    shared = [role for role in ours if role in theirs]
    moved = [r for r in shared if ours[r].noun != theirs[r].noun]
    verbs = [word for _, word in moved]
    exchanged = len(moved) == 2 and all(ours[a].noun == theirs[b].noun for a, b in (moved, moved[::-1]))
    if exchanged:
        if any(is_symmetric(word) for word in verbs):
            return "", None, "a symmetric relation"
        one_relation = len({word for word in verbs if word}) == 1
        if not one_relation or not any(is_asymmetric(word) for word in verbs):
            return "", None, "both orders may be true"
        return "swap_obj", Contrast("exchanged roles", "swap_obj", ours[moved[0]].noun, ours[moved[1]].noun), ""
    for first, second in combinations(shared if not moved else (), 2):
        gone, come = (a[first].attributes - b[first].attributes for a, b in ((ours, theirs), (theirs, ours)))
        back = [a[second].attributes - b[second].attributes for a, b in ((theirs, ours), (ours, theirs))]
        if len(gone) == len(come) == 1 and [gone, come] == back and "and" not in (first[0], second[0]):
            return "swap_att", Contrast("exchanged attributes", "swap_att", min(gone), min(come)), ""
    return "", None, "the order changes, not who does what"
