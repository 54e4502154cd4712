"""Edits that add something the caption does not say: an object with its location, or an attribute.

An addition makes a caption longer, so something is removed in exchange: an adjective for an adjective, a phrase that
describes a place for one that adds an object. What remains is still true; what is added is only known not to be
entailed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from creperie.lang import article_for, dimension_of, is_mass, kind_of, lemma, open_wordnet, things
from creperie.making.atoms import attributes, base_of, dependents, is_compound_head, objects, sort_of, vague_nouns
from creperie.making.corpus import SURELY, WordCounts
from creperie.making.edits import CaptionEdit, frames, holder_of, scene_of
from creperie.making.verbs import listed
from creperie.making.wording import reworded

#: Mean log ratio of shared captions above which a thing is so typical of a scene that it is probably in the picture.
IMPLIED = 1.0


def added_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that remove an adjective from one noun and add another adjective to a noun that has none."""
    dropped = [a for a in attributes(doc) if _is_removable(a)]
    present = {t.lower_ for t in doc}
    for noun in objects(doc) if dropped else ():
        base = base_of(noun)
        if is_compound_head(noun) or not _is_plain(noun):
            continue
        for new in attributes_of(base):
            worn = kind_of(base) in ("person", "clothing")
            if not present.isdisjoint((new, *things()["against"].get(new, ()))):
                continue
            for gone in dropped if worn or corpus.allows(new, noun.lower_) else ():
                changes = {gone.i: "", noun.i: f"{new} {noun.text}"}
                yield CaptionEdit(reworded(doc, changes), f"− {gone.text}, + {new}", noun.i)


@cache
def attributes_of(base: str) -> tuple[str, ...]:
    """Return the attributes listed for a noun: few such things have them, and they are easy to see in a picture."""
    return tuple(attribute for attribute, bases in things()["added"].items() if base in bases)


def added_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that replace a phrase describing a place by an object with its location."""
    present = {lemma(t.lower_, "NNS") for t in doc}
    for link in [t for t in doc if t.dep_ == "prep" and t.lower_ in frames()["left"]]:
        span = _simple_phrase(link)
        holder = holder_of(link) if span is not None else None
        if span is None or holder is None or not _is_replaceable(span):
            continue
        scene = scene_of(doc) if corpus.knows_enough else []  # includes the removed place: the new object must fit it
        kind = sort_of(holder)
        alone = link.head == holder or base_of(link.head) in frames()["resting"]
        for place, new in _companions(kind, alone and "with" not in present):
            head = new.split()[-1]
            if not present.isdisjoint(new.split()):
                continue
            if kind_of(head) in {kind_of(lemma(w, "NNS")) for w in present} - {"", "person", "place"}:
                continue  # such a thing is already there, such as another bicycle
            expected = corpus.mean_association(head, scene) > IMPLIED  # so common there that it is likely
            if expected or not corpus.allows(place.split()[-1], head):
                continue
            if not corpus.fits_scene(head, scene, SURELY):
                continue
            added = f"{place} {article_for(new)} {new}"
            changes = {t.i: "" for t in span} | {span[0].i: added}
            removed = " ".join(t.text for t in span)
            yield CaptionEdit(reworded(doc, changes), f"− {removed}, + {added}", link.i)


@cache
def _companions(kind: str, carries: bool) -> tuple[tuple[str, str], ...]:
    """Return the (preposition, noun) pairs that can be added to a thing of this kind; those with `with` only if the
    thing can carry something.
    """
    table = things()["companions"]
    by_link = [(place, by) for places, by in table.items() for place in places.split("|")]
    return tuple((place, w) for place, by in by_link if carries or place != "with" for w in by.get(kind, ()))


def _is_replaceable(span: list[Any]) -> bool:
    """Return True if a phrase can be replaced: it is followed by punctuation or nothing (not `with a cat sitting`), and
    does not belong to the word before it (`up in a tree`, `his arm around her`).
    """
    doc, after = span[0].doc, span[-1].i + 1
    before = doc[max(0, span[0].i - 1) : span[0].i]
    own = any(t.tag_ in ("RB", "RP") or base_of(t) in frames()["parts"] for t in before)
    return not own and all(t.is_punct for t in doc[after : after + 1])


def _is_removable(adjective: Any) -> bool:
    """Return True if a noun phrase is complete without the adjective; not `hot dog` or `a red and white bus`."""
    noun = adjective.head
    if not _is_quality(adjective.lower_) or noun.lower_ in frames()["described"]:
        return False  # nobody says `on a day`, `a man in clothes` or `a cat with eyes`
    if list(adjective.children) or is_compound_head(noun) or noun.tag_ not in ("NN", "NNS"):
        return False
    between = noun.doc[adjective.i + 1 : noun.i]
    loose = any(not dimension_of(t.lower_) for t in between)
    if loose or listed("mistaken_for_nouns", lemma(noun.text, "VB")) or noun.doc[adjective.i - 1].is_punct:
        return False
    return noun.tag_ == "NNS" or bool(dependents(noun, "det", "poss", "nummod")) or is_mass(noun.lower_)


@cache
def _is_quality(word: str) -> bool:
    """Return True if a word is a descriptive adjective; not `fellow`, `oven` or `haired`, which change the noun."""
    net = open_wordnet()
    known = not word.endswith("ed") and bool(net.senses(word, "a")) and not net.senses(word, "n")
    return bool(dimension_of(word)) or known


def _is_plain(noun: Any) -> bool:
    """Return True if a noun has no modifier after its article."""
    first = noun.doc[noun.i - 1] if noun.i else None
    if dependents(noun, "amod", "compound", "nmod", "nummod") or first is None:
        return False
    if first.lower_ == "no" or noun.head.lower_ == "without":
        return False
    return first.dep_ in ("det", "poss") or noun.tag_ == "NNS"


def _simple_phrase(link: Any) -> list[Any] | None:
    """Return the words of a phrase such as `in a (green) park`; None if it has other words, names no place, or belongs
    to its verb.
    """
    inside = list(link.subtree)
    place, between = inside[-1], [t.dep_ for t in inside[1:-1]]
    if between not in (["det"], ["det", "amod"], ["det", "compound"]):
        return None
    kind = sort_of(place)
    if place.lower_ in vague_nouns() or place.lower_ in frames()["no_place"] or kind in ("clothing", "food", "gear"):
        return None
    head = link.head
    fixed = head.tag_ == "VBN" or base_of(head) in frames()["fixed"]
    return None if fixed or head.tag_[:2] not in ("VB", "NN") else inside
