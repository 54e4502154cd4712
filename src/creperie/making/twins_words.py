"""The words of captions for twin mining: which words exclude each other, and which kind of twins two captions are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.lang import HYPERNYM, HYPONYM, excludes, facts, in_one_group, kind_of, lemma, open_wordnet
from creperie.making.data import read_data

#: Words that do not change the meaning of a caption: articles, and forms of "be" before a participle.
SILENT = frozenset({"a", "an", "the", "is", "are", "was", "were", "being"})
_TOKEN = re.compile(r"[\w'-]*\w")
#: Number of senses of a word that are used; rare senses are misleading.
SENSES = 3
#: Kinds of things for which two nouns exclude each other, since a photograph usually shows one of them; not clothes.
ONE_THING = frozenset(("animal", "vehicle", "gear", "furniture", "handheld", "food"))


@dataclass(frozen=True, slots=True)
class CaptionWord:
    """A word of a caption: its lemma, and its position in the text."""

    base: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two words that exclude each other: a caption that is true with one of them is false with the other in the same
    position.
    """

    name: str  #: their class, such as "colour" or "disjoint nouns"
    kind: str  #: the kind of item; empty if the parse decides
    left: str
    right: str


@cache
def _table() -> dict[str, dict[str, tuple[str, list[frozenset[str]]]]]:
    """Return the exclusion classes of each word, as word → class → (kind, groups). Words in different groups of a class
    exclude each other. `groups` holds the groups of the class that contain the word. `kind` is the kind of item that
    results if two captions differ in words of this class.
    """
    table: dict[str, dict[str, tuple[str, list[frozenset[str]]]]] = {}
    for name, entry in read_data("twins")["classes"].items():
        for group in map(frozenset, entry["groups"]):
            for word in group:
                table.setdefault(word, {}).setdefault(name, (entry["kind"], []))[1].append(group)
    return table


@cache
def _joined() -> re.Pattern[str]:
    """Return the pattern that matches phrases that count as one word, such as "in front of"."""
    return re.compile("|".join(rf"\b{phrase.replace(' ', ' +')}\b" for phrase in read_data("twins")["joined"]))


@cache
def base(word: str) -> str:
    """Return the lemma under which a word is compared, whether it is a form of a noun or of a verb.

    >>> [base(w) for w in ("dogs", "running", "women", "grassy")]
    ['dog', 'run', 'woman', 'grassy']
    """
    known = _table()
    noun = lemma(word, "NN")
    for form in (word, noun, lemma(word, "VB")):
        if form in known:
            return form
    return noun if noun != word else lemma(word, "VB")


def words_of(text: str) -> tuple[CaptionWord, ...]:
    """Return the content words of a caption, in order.

    >>> [w.base for w in words_of("The dogs are running in front of a house.")]
    ['dog', 'run', 'in-front-of', 'house']
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    lowered = _joined().sub(lambda m: "-".join(m[0].split()).ljust(len(m[0])), lowered)
    return tuple(
        CaptionWord(base(m[0]), m[0], m.start(), m.end()) for m in _TOKEN.finditer(lowered) if m[0] not in SILENT
    )


def table_contrast(left: str, right: str) -> Contrast | None:
    """Return the contrast between two words that exclude each other because they are in different groups of an
    exclusion class; None if there is no such class.

    >>> table_contrast("black", "white").name, table_contrast("girl", "kid"), table_contrast("snow", "grass").kind
    ('colour', None, 'replace_obj')
    """
    for name, (kind, groups) in _table().get(left, {}).items():
        if name in _table().get(right, {}) and not any(right in group for group in groups):
            return Contrast(name, kind, left, right)
    return None


def are_compatible(left: str, right: str) -> bool:
    """Return True if an exclusion class lets both words be true of one thing, as with "field" and "grass"."""
    known = _table().get(left, {})
    shared = [name for name in known if name in _table().get(right, {})]
    return any(right in group for name in shared for group in known[name][1]) or in_one_group("same", left, right)


def in_class(name: str, word: str) -> bool:
    """Return True if the exclusion class `name` contains the word: `number` contains "two" and "several", `action`
    contains "run".
    """
    return name in _table().get(word, {})


def depends_on_viewpoint(relation: str) -> bool:
    """Return True for left and right, front and back: they depend on the point of view, so a relation and its opposite
    may both hold.

    >>> depends_on_viewpoint("is at the left side of"), depends_on_viewpoint("is above")
    (True, False)
    """
    return not set(read_data("twins")["viewpoint"]).isdisjoint(re.split(r"[ -]", relation))


@cache
def disjoint_nouns(left: str, right: str) -> bool:
    """Return True if two nouns name different things of the same kind, such as `dog` and `horse`. Return False if one
    thing can be both, as a man is a person, or if the kinds differ.

    >>> disjoint_nouns("dog", "horse"), disjoint_nouns("man", "person"), disjoint_nouns("dog", "idea")
    (True, False, False)
    """
    kinds = {kind_of(left), kind_of(right)}
    return kinds <= ONE_THING and len(kinds) == 1 and excludes(left, right) and not are_compatible(left, right)


@cache
def words_meaning(word: str, name: str) -> frozenset[str]:
    """Return the words that can mean the same as a word: those in its groups of the class `name` or, if the class does
    not contain the word, its synonyms, hyponyms and hypernyms in WordNet.
    """
    if in_class(name, word):
        return frozenset().union(*_table()[word][name][1])
    net, synonyms = open_wordnet(), {word}
    for sense in net.senses(word, "n")[:SENSES]:
        for near in (sense, *net.follow(sense, HYPONYM), *net.follow(sense, HYPERNYM)):
            synonyms.update(w.lower().replace("_", "-") for w in near.words)
    synonyms.update(*(group for group in facts()["same"] if word in group))
    return frozenset(synonyms)


Words = Sequence[CaptionWord]
#: Parts of speech that a parser may give to the words of each kind; small parsers tag colours as nouns, and -ing words
#: as nouns or verbs.
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
    """Return what remains of two captions when the words that they share at the beginning and at the end are
    removed.
    """
    start, end = 0, 0
    most = min(len(left), len(right))
    while start < most and left[start].base == right[start].base:
        start += 1
    while end < most - start and left[-1 - end].base == right[-1 - end].base:
        end += 1
    return Difference(tuple(left[start : len(left) - end]), tuple(right[start : len(right) - end]))


def contrast_of(differing: Difference) -> Contrast | str:
    """Return the contrast between the differing words of two captions, if the words exclude each other; else the reason
    why there is none.
    """
    if not differing.left or not differing.right:
        return "one caption says more than the other"
    one, two = differing.left[-1].base, differing.right[-1].base
    contrast = table_contrast(one, two)
    if contrast:
        return contrast
    if are_compatible(one, two):
        return "both may be true"
    if disjoint_nouns(one, two):
        return Contrast("disjoint nouns", "replace_obj", one, two)
    return "not known to exclude each other"


def replaced_kind(differing: Difference, contrast: Contrast, docs: tuple[Any, Any]) -> tuple[str, str]:
    """Return (kind of item, "") for twins that differ in one phrase, or ("", reason) if they are not such twins."""
    sides = [  # the last token of each word in the parse
        [doc.char_span(w.start, w.end, alignment_mode="expand")[-1] for w in side]
        for doc, side in zip(docs, (differing.left, differing.right), strict=True)
    ]
    if not all(_is_phrase(side, contrast.kind) for side in sides):
        return "", "more than one phrase differs"
    kind = _kind(contrast, [side[-1] for side in sides])
    return (kind, "") if kind else ("", "the phrases are of different types")


def _is_phrase(side: Sequence[Any], kind: str) -> bool:
    """Return True if the words form one phrase: nothing comes before the last word except its modifiers and, in items
    of the kinds `replace_obj` and `replace_att`, prepositions and adverbs.
    """
    *before, last = side
    for token in before:
        governs = token.pos_ in ("ADP", "SCONJ", "PART", "ADV") and kind in ("replace_obj", "replace_att")
        if in_class("action", base(last.lower_)) and kind == "replace_obj":
            return False  # "wearing a jacket rolls": the phrase ends in a verb
        describes = (
            token.dep_ in _MODIFIERS and token.head.i in (last.i, last.head.i) and not in_class("number", token.lower_)
        )
        if not governs and not describes:
            return False
    return True


def differ_in_number(docs: tuple[Any, Any]) -> bool:
    """Return True if a noun that occurs in both captions is singular in one and plural in the other."""
    one, two = ({base(t.lower_): t.tag_ for t in doc if t.tag_ in ("NN", "NNS")} for doc in docs)
    return any(one[noun] != two[noun] for noun in one.keys() & two.keys())


def _kind(contrast: Contrast, tokens: Sequence[Any]) -> str:
    for family in _FAMILIES[contrast.kind]:
        if all(t.pos_ in family for t in tokens):
            break
    else:
        return ""
    if contrast.kind == "replace_rel" and all(t.pos_ == "NOUN" and not t.lower_.endswith("ing") for t in tokens):
        return "replace_obj"  # "on a snowboard", "on a bicycle"
    # small parsers read "a dog runs" as one noun; the thing named there is the dog
    modifies = [t.dep_ in _MODIFIERS and t.head.i > t.i and not in_class("action", base(t.head.lower_)) for t in tokens]
    if contrast.kind == "replace_obj" and any(modifies):
        return "replace_att" if all(modifies) else ""
    return contrast.kind
