"""Edits that add something that the caption does not say: an object with its location, or an attribute.

An addition makes a caption longer, so something else is removed. An added attribute replaces another adjective. An
added object replaces clothing, two adjectives, or a second phrase that says where a thing is. The remaining words are
still true of the picture. The added words do not follow from the caption; whether they are true of the picture is not
known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from creperie.lang import article_for, dimension_of, is_mass, is_worn, kind_of, lemma, open_wordnet, things
from creperie.making.atoms import attributes, base_of, dependents, is_compound_head, objects, sort_of
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit
from creperie.making.plausible import ANIMATE, frames, holder_of
from creperie.making.verbs import listed
from creperie.making.wording import reworded


def added_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that remove an adjective from one noun and add another one to a noun without adjectives."""
    dropped = [a for a in attributes(doc) if _is_removable(a)]
    present = {t.lower_ for t in doc}
    for noun in objects(doc) if dropped else ():
        base = base_of(noun)
        if is_compound_head(noun) or not _is_plain(noun):
            continue
        for new in attributes_of(base):
            if not present.isdisjoint((new, *things()["against"].get(new, ()))):
                continue
            for gone in dropped:
                changes = {gone.i: "", noun.i: f"{new} {noun.text}"}
                yield CaptionEdit(reworded(doc, changes), f"− {gone.text}, + {new}", noun.i)


@cache
def attributes_of(base: str) -> tuple[str, ...]:
    """Return the attributes that may be added to the noun `base`, from the table in things.json. Each is easy to see,
    and few of the things that the noun names have it.
    """
    return tuple(attribute for attribute, bases in things()["added"].items() if base in bases)


def added_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that add an object with its location and, to keep the length, remove part of a noun's description.
    The removed part is clothing, a pair of adjectives, or the second of two phrases that say where a thing is.
    """
    present = {lemma(t.lower_, "NNS") for t in doc}
    kinds = {kind_of(w) for w in present} - {"", "person", "place"}
    described = [(noun, noun, _description(noun)) for noun in objects(doc)]
    places = [t for t in doc if t.dep_ == "prep" and t.lower_ in frames()["left"]]
    described += [(doc[t.i - 1], holder_of(t), _second_place(t)) for t in places if t.i]
    for after, noun, gone in described:
        if noun is None or not gone or noun.dep_ == "conj" or dependents(noun, "conj"):
            continue
        free = "with" not in present and (after == noun or base_of(gone[0].head) in frames()["resting"])
        for place, new in _companions(sort_of(noun), free or any(t.lower_ == "with" for t in gone)):
            head = new.split()[-1]
            if not present.isdisjoint(new.split()) or kind_of(head) in kinds:
                continue  # such a thing is already there, such as another bicycle
            added = f"{place} {article_for(new)} {new}"
            changes = {t.i: "" for t in gone} | {after.i: f"{after.text} {added}"}
            removed = " ".join(t.text for t in gone)
            yield CaptionEdit(reworded(doc, changes), f"− {removed}, + {added}", after.i)


def _description(noun: Any) -> list[Any]:
    """Return the words after a noun that say what somebody wears (`in a red coat`). If there are none, return the
    noun's adjectives if it has exactly two and both can be removed, else an empty list.
    """
    for child in noun.rights:
        inside = list(child.subtree)
        worn = child.lower_ in ("in", "with") or child.lower_ == "wearing"
        ends = worn and len(inside) > 2 and inside[0].i == noun.i + 1
        plain = ends and all(t.dep_ in ("pobj", "dobj", "det", "amod", "compound", "nmod") for t in inside[1:])
        if plain and len(inside) < 6 and is_worn(base_of(inside[-1])):
            return inside
    removable = [a for a in dependents(noun, "amod") if _is_removable(a)]
    return removable if len(removable) == 2 and not list(noun.rights) else []


def _second_place(link: Any) -> list[Any]:
    """Return the words of a phrase such as `near a (wooden) house` if it can be removed, else an empty list. Three
    conditions must be met: it is the second phrase that says where a thing is; the clause ends with it; it does not
    belong to the word before it.
    """
    doc, inside = link.doc, list(link.subtree)
    other = [c for c in link.head.rights if c.dep_ == "prep" and c.lower_ in frames()["left"] and c.i < link.i]
    inner = link.head.dep_ == "pobj" and link.head.head.lower_ in frames()["left"]
    if not (other or inner) or [t.dep_ for t in inside[1:-1]] not in (["det"], ["det", "amod"], ["det", "compound"]):
        return []
    own = doc[link.i - 1].tag_ in ("RB", "RP") or base_of(doc[link.i - 1]) in frames()["parts"]
    ends = all(t.is_punct for t in doc[inside[-1].i + 1 : inside[-1].i + 2])
    return inside if ends and not own and sort_of(inside[-1]) in ("vehicle", "furniture", *ANIMATE) else []


@cache
def _companions(kind: str, carries: bool) -> tuple[tuple[str, str], ...]:
    """Return the (preposition, noun) pairs that can be added after a noun, such as `beside` and `tent`. `kind` is the
    kind of thing that the noun names. `carries` says whether this thing can carry something; only then are pairs with
    the preposition `with` included.
    """
    table = things()["companions"]
    by_link = [(place, by) for places, by in table.items() for place in places.split("|")]
    return tuple((place, w) for place, by in by_link if carries or place != "with" for w in by.get(kind, ()))


def _is_removable(adjective: Any) -> bool:
    """Return True if a noun phrase is complete without this adjective. `hot` in `hot dog` and `red` in `a red and white
    bus` cannot be removed.
    """
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
    """Return True if a word is an adjective that only describes (`small`), and False if it is part of what the noun
    means (`fellow`, `oven`, `haired`).
    """
    net = open_wordnet()
    known = not word.endswith("ed") and bool(net.senses(word, "a")) and not net.senses(word, "n")
    return bool(dimension_of(word)) or known


def _is_plain(noun: Any) -> bool:
    """Return True if an adjective can be added directly before a noun: nothing else stands between it and its article.
    A plural needs no article.
    """
    first = noun.doc[noun.i - 1] if noun.i else None
    if dependents(noun, "amod", "compound", "nmod", "nummod") or first is None:
        return False
    if first.lower_ == "no" or noun.head.lower_ == "without":
        return False
    return first.dep_ in ("det", "poss") or noun.tag_ == "NNS"
