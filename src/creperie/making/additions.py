"""Something added that the caption does not say: an object with a place of its own, or an attribute.

What is added makes a caption longer, so that something else is left out for it: an adjective for an adjective, a phrase
that tells a place for one that brings an object. What remains was true; what is added is not entailed, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from creperie.lang import article_for, dimension_of, is_mass, kind_of, lemma, open_wordnet, things
from creperie.making.atoms import POSTURES, attributes, forms, is_compound_head, objects, vague_nouns
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit, frames, holder_of, scene_of
from creperie.making.verbs import may_be_verb
from creperie.making.wording import reworded

#: What people do with something beside them.
RESTING = (*POSTURES, "run", "wait", "kneel", "crouch")
#: A word shares captions with another so much more often than by chance that it is probably there too (log ratio).
IMPLIED = 1.0


def added_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """An adjective goes from one thing, another one comes to a thing that had none."""
    dropped = [a for a in attributes(doc) if a.dep_ == "amod" and _can_go(a)]
    told = {f.lower for f in forms(doc)} if dropped else set()
    for noun in objects(doc) if dropped else ():
        base = lemma(noun.text, noun.tag_)
        if is_compound_head(noun) or not _is_plain(noun) or is_mass(base):
            continue
        for new in attributes_of(base):
            against = not told.isdisjoint(things()["against"].get(new, ()))
            if (
                new in told
                or against
                or (kind_of(base) not in ("person", "clothing") and not corpus.allows(new, noun.lower_))
            ):
                continue
            for gone in (a for a in dropped if a.head != noun):
                changes = {gone.i: "", noun.i: f"{new} {noun.text}"}
                yield CaptionEdit(reworded(doc, changes), f"− {gone.text}, + {new}", noun.i)


@cache
def attributes_of(base: str) -> tuple[str, ...]:
    """Visible attributes that few things of this kind have."""
    listed = things()["scenery"] if base in things()["roads"] else things()["added"].get(kind_of(base), ())
    return tuple(a for a in listed if base in things()["only"].get(a, (base,)))


def added_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """A phrase that tells a place goes, and an object with its own place comes instead."""
    told = {lemma(f.lower, "NNS") for f in forms(doc)}
    for link in [t for t, form in zip(doc, forms(doc)) if form.dep == "prep" and form.lower in frames()["left"]]:
        span = _simple_phrase(link)
        holder = holder_of(link) if span is not None else None
        if span is None or holder is None or not _ends(span):
            continue
        scene = [w for w in scene_of(doc) if w not in {t.lower_ for t in span}] if corpus.knows_enough else []
        kind = kind_of(lemma(holder.text, holder.tag_))
        alone = link.head == holder or lemma(link.head.text, link.head.tag_) in RESTING
        for place, new in _companions(kind, alone and "with" not in told):
            head = new.split()[-1]
            if len(span) - len(place.split()) - 1 - len(new.split()) not in (-1, 0, 1) or not told.isdisjoint(
                new.split()
            ):
                continue
            if kind_of(head) in {kind_of(lemma(w, "NNS")) for w in told} - {"", "person", "place"}:
                continue  # one bicycle or another
            expected = corpus.mean_association(head, scene) > IMPLIED  # so often seen there that it probably is
            if expected or not corpus.allows(place.split()[-1], head):
                continue
            if not corpus.fits_scene(head, span[-1].lower_, scene):
                continue
            comes = f"{place} {article_for(new)} {new}"
            changes = {t.i: "" for t in span} | {span[0].i: comes}
            goes = " ".join(t.text for t in span)
            yield CaptionEdit(reworded(doc, changes), f"− {goes}, + {comes}", link.i)


@cache
def _companions(kind: str, carries: bool) -> tuple[tuple[str, str], ...]:
    """What may come, and how: people may have something with them, things have something beside them."""
    table = things()["companions"]
    said = [(place, by) for places, by in table.items() for place in places.split("|")]
    return tuple((place, w) for place, by in said if carries or place != "with" for w in by.get(kind, ()))


def _ends(span: list[Any]) -> bool:
    """Whether nothing follows that would be said of what is added: `with a cat sitting`."""
    before, after = span[0].nbor(-1) if span[0].i else None, span[-1].i + 1
    own = before is not None and before.tag_ in ("RB", "RP")  # `up in a tree`
    return not own and all(t.is_punct or t.is_space for t in span[0].doc[after : after + 1])


def _can_go(adjective: Any) -> bool:
    """Whether a noun phrase stands without its adjective: not in `teddy bear`, `hot dog`, `a red and white bus`."""
    noun = adjective.head
    if not _is_quality(adjective.lower_) or noun.lower_ in frames()["described"]:
        return False  # nobody says `on a day`, `a man in clothes` or `a cat with eyes`
    if any(True for _ in adjective.children) or is_compound_head(noun) or noun.tag_ not in ("NN", "NNS"):
        return False
    between = noun.doc[adjective.i + 1 : noun.i]
    loose = adjective.i >= noun.i or any(not dimension_of(t.lower_) for t in between)
    if loose or may_be_verb(lemma(noun.text, "VB")) or noun.doc[adjective.i - 1].is_punct:
        return False
    before = [c for c in noun.lefts if c.dep_ in ("det", "poss", "nummod")]
    return noun.tag_ == "NNS" or bool(before) or is_mass(noun.lower_)


@cache
def _is_quality(word: str) -> bool:
    """An adjective that says how a thing is; not `fellow`, `oven` or `haired`, without which it is another."""
    net = open_wordnet()
    known = not word.endswith("ed") and bool(net.senses(word, "a")) and not net.senses(word, "n")
    return bool(dimension_of(word)) or known


def _is_plain(noun: Any) -> bool:
    """A thing that stands alone after its article."""
    before = [c for c in noun.lefts if c.dep_ in ("amod", "compound", "nmod", "nummod")]
    first = noun.doc[noun.i - 1] if noun.i else None
    if before or first is None or first.lower_ == "no":
        return False
    return first.dep_ in ("det", "poss") or noun.tag_ == "NNS"


def _simple_phrase(link: Any) -> list[Any] | None:
    """A preposition, an article, perhaps an adjective, and a noun that names a place; None where more hangs on it."""
    inside = list(link.subtree)
    place, between = inside[-1], [t.dep_ for t in inside[1:-1]]
    if inside[0] != link or place.dep_ != "pobj" or between not in (["det"], ["det", "amod"], ["det", "compound"]):
        return None
    kind = kind_of(lemma(place.lower_, place.tag_))
    if place.lower_ in vague_nouns() or place.lower_ in frames()["no_place"] or kind in ("clothing", "food", "gear"):
        return None
    head = link.head
    if head.tag_[:2] not in ("VB", "NN"):
        return None
    base = lemma(head.text, head.tag_)
    fixed = (head.tag_ == "VBN" and base not in ("park", "seat")) or base in (
        "be",
        "have",
        "look",
        "point",
        "put",
        "lean",
        "fall",
        "hang",
    )
    return None if head.tag_[:2] == "VB" and fixed else inside
