"""What can be replaced in a caption, and by what: proposed widely from parse and word lists; truth is judged later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.lang import (
    age_of,
    dimension_of,
    excludes_place,
    facts,
    inflected,
    is_mass,
    kind_of,
    lemma,
    listed_for,
    nouns_of,
    numbered,
    things,
)
from creperie.making.atoms import Form, attributes, forms, is_compound_head, objects, phrase, vague_nouns
from creperie.making.corpus import WordCounts
from creperie.making.data import read_data
from creperie.making.verbs import is_measure
from creperie.making.wording import reworded

#: Things that are made, so that they come in all colours, sizes and patterns.
MADE = frozenset(("vehicle", "gear", "furniture", "handheld", "clothing"))
ANIMATE = frozenset(("person", "animal"))
_SPANS = (["in", "front", "of"], ["on", "top", "of"], ["next", "to"], ["close", "to"], ["inside", "of"])
_SINGULAR = frozenset(("a", "an", "one", "each", "every"))
_REFERRING = frozenset(("another", "other", "each", "no", "own"))


@dataclass(frozen=True)
class CaptionEdit:
    """A caption with one change."""

    text: str
    change: str  #: for people: "dog → cat"
    place: int  #: the token that was changed
    pair: tuple[Any, Any] | None = None  #: the tokens that changed places


def frames() -> Any:
    return read_data("frames")


def like(token: Any, word: str) -> str:
    """A word with the capital of the token that it replaces."""
    return word[:1].upper() + word[1:] if token.text[:1].isupper() else word


def _edit(doc: Any, span: Sequence[Any], new: str) -> CaptionEdit:
    first = span[0]
    changes = {t.i: "" for t in span} | {first.i: like(first, new)}
    return CaptionEdit(reworded(doc, changes), f"{' '.join(t.text for t in span)} → {new}", first.i)


def scene_of(doc: Any, without: int = -1) -> list[str]:
    """The words that tell the scene: nouns and verbs; people are seen with anything."""
    told = (f for k, f in enumerate(forms(doc)) if f.tells and k != without)
    return [f.lower for f in told if kind_of(f.base) != "person" or not age_of(f.base)]


# -- things ----------------------------------------------------------------------------------------------------------


def other_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Things replaced by others of their class that people say in such a place."""
    said = forms(doc)
    present = {f.base for f in said}
    bound = any(f.lower in frames()["gendered"] for f in said)  # a pronoun or a beard says who it is
    for noun in objects(doc):
        form, start = said[noun.i], phrase(noun)[0]
        again = any(f.base == form.base and _refers(doc[k], noun) for k, f in enumerate(said))
        if form.dep == "attr" or again or _stands_for_more(noun):
            continue
        beside = [c.lower_ for c in noun.lefts if c.dep_ in ("amod", "det", "nummod", "poss")]
        scene = scene_of(doc, noun.i) if corpus.knows_enough else []
        for new in rivals(form.base, corpus.knows_enough):
            fitted = numbered(new, form.tag)
            head = fitted.split()[-1]
            if bound and kind_of(form.base) == "person":
                break
            if new in present or age_of(new) == "baby":
                continue
            if is_mass(new) != is_mass(form.base) and (is_mass(new) or not _SINGULAR.intersection(beside)):
                continue
            if age_of(new) == "adult" and {"little", "small", "tiny", "young"}.intersection(beside):
                continue
            before = said[start - 1].lower if start else "<s>"
            adjective = said[noun.i - 1].lower if noun.i > start and said[noun.i - 1].tag.startswith("JJ") else ""
            free = dimension_of(adjective) in ("colour", "size") and kind_of(new) in MADE
            if (adjective and not free and not corpus.allows(adjective, head)) or not corpus.allows(before, head):
                continue
            if corpus.fits_scene(head, form.lower, scene, surely=new not in rivals(form.base, False)):
                yield _edit(doc, [noun], fitted)


@cache
def rivals(noun: str, wide: bool) -> tuple[str, ...]:
    """Nouns for a noun: those listed with it, and, where a corpus tells what fits, all of its kind."""
    kind = kind_of(noun)
    back = [w for w in (nouns_of(kind) if kind else ()) if noun in listed_for(w)]
    near = [*listed_for(noun), *back]
    further = nouns_of(kind) if wide and kind not in ("", "person") else ()
    return tuple(w for w in dict.fromkeys([*near, *further]) if w != noun)


def _refers(token: Any, noun: Any) -> bool:
    """`another dog`, or a second `the shirt`: what was said of one thing is not said of another."""
    before = {c.lower_ for c in token.lefts}
    return bool(before & {"another", "other"}) or (token.i > noun.i and bool(before & {"the", "his", "her", "its"}))


def _stands_for_more(noun: Any) -> bool:
    """Whether a noun cannot change alone: part of a name, a measure, a part of something."""
    of = any(c.dep_ == "prep" and c.lower_ == "of" for c in noun.rights)
    inborn = things()["inborn"].get(lemma(noun.text, noun.tag_))
    told = any(c.lower_ in _REFERRING or c.lower_ == inborn for c in noun.lefts)
    return of or told or is_compound_head(noun) or is_measure(noun.lower_)


# -- attributes ------------------------------------------------------------------------------------------------------


def other_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Attributes replaced by their opposites, numbers by others."""
    for adjective in qualities(doc):
        noun = adjective.head if adjective.dep_ in ("amod", "compound") else None
        groups = [g for g in facts()["opposites"] if adjective.lower_ in g] if _stands_alone(adjective) else []
        for new in dict.fromkeys(w for group in groups for w in group if w != adjective.lower_):
            if noun is None or may_be(new, noun, corpus):
                yield _edit(doc, [adjective], new)
    counted = any(t.lower_ in ("other", "third", "second", "both") for t in doc)  # `two boys, one … the other …`
    numbers = [] if counted else things()["dimensions"]["number"]
    for number in (t for t in doc if t.dep_ == "nummod" and t.lower_ in numbers and t.head.tag_ == "NNS"):
        yield from (_edit(doc, [number], new) for new in numbers if new != number.lower_)


def qualities(doc: Any) -> list[Any]:
    """Adjectives that say how a thing is, and words that parsers take for nouns: `a plaid blanket`, `a brick wall`."""
    known = {t.i: t for t in attributes(doc)}
    for token in doc:
        if token.dep_ in ("compound", "amod", "nmod") and dimension_of(token.lower_) in (
            "colour",
            "pattern",
            "material",
        ):
            known[token.i] = token
    return [known[i] for i in sorted(known)]


def _stands_alone(adjective: Any) -> bool:
    """Whether an adjective is not half of `black and white`, `dark red` or `hot dog`."""
    if any(c.dep_ in ("conj", "advmod", "amod") for c in adjective.children) or adjective.dep_ == "conj":
        return False
    noun, own = adjective.head, dimension_of(adjective.lower_)
    doubled = any(dimension_of(c.lower_) == own != "" for c in noun.lefts if c != adjective)
    named = not own and adjective.i == noun.i - 1 and is_compound_head(noun)
    return not doubled and not (adjective.dep_ == "amod" and named)


def may_be(new: str, noun: Any, corpus: WordCounts) -> bool:
    """Whether a thing is called so: people said it, or it is made and comes in all colours, sizes and patterns."""
    base, dimension = lemma(noun.text, noun.tag_), dimension_of(new)
    kind = kind_of(base)
    of = any(c.lower_ == "of" for c in noun.rights)
    if (of and base in vague_nouns()) or (dimension == "colour" and (kind == "person" or base in things()["inborn"])):
        return False
    if dimension == "age" and (new in ("young", "elderly")) != (kind in ANIMATE) and new != "old":
        return False
    if kind in ANIMATE and new in ("long", "new", "wide", "narrow", "thick", "thin"):
        return False
    if kind == "animal" and dimension == "colour":
        return new in things()["coats"]
    if corpus.knows_enough and corpus.follows(new, noun.lower_) > 0:
        return True
    if kind in MADE and dimension in ("colour", "size", "pattern", "age"):
        return new not in ("young", "elderly", "blonde")
    if corpus.knows_enough and corpus.seen[noun.lower_] >= 5:
        return False
    if dimension == "colour":
        return kind in ("", "handheld", "furniture")
    return dimension in ("size", "age", "state") or kind not in ANIMATE


# -- relations -------------------------------------------------------------------------------------------------------


def other_relations(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Prepositions replaced by others that exclude them, verbs by others that take the same arguments."""
    for preposition in (t for t in doc if t.tag_ in ("IN", "RP", "TO") and t.dep_ == "prep"):
        span, place = prepositional_span(preposition)
        if place is not None and not _is_fixed(preposition, span):
            for new in other_places(" ".join(t.lower_ for t in span), lemma(place.text, place.tag_)):
                if _goes_there(span, place, new, corpus):
                    yield _edit(doc, span, new)
    for verb, form in ((doc[i], form) for i, form in enumerate(forms(doc)) if form.is_action):
        if not is_bound(verb):
            after = next((t.lower_ for t in doc[verb.i + 1 :] if t.dep_ not in ("det", "amod", "poss", "nummod")), "")
            scene = scene_of(doc, verb.i) if corpus.knows_enough else []
            for new in other_actions(verb, form):
                fitted = inflected(new, form.tag)
                if corpus.allows(fitted, after) and corpus.fits_scene(fitted, form.lower, scene):
                    yield _edit(doc, [verb], fitted)


@cache
def other_places(said: str, noun: str) -> tuple[str, ...]:
    """Prepositions that exclude this one and go with this noun.

    >>> other_places("behind", "car"), "under" in other_places("on", "table")
    (('in front of',), True)
    """
    rows, kind = frames()["prepositions"].get(said, {}), kind_of(noun)
    named = (found for names, found in rows.items() if noun in str(frames().get(names, names)).split("|"))
    listed = next(named, None)
    if listed is None and kind in ("clothing", "food"):
        return ()
    known = listed if listed is not None else rows.get(kind) or rows.get("*") or ()
    return tuple(w for w in known if excludes_place(said, w))


def prepositional_span(preposition: Any) -> tuple[list[Any], Any | None]:
    """The words of a preposition (`in front of` is one) and the noun that it governs, if that is a thing."""
    doc, i = preposition.doc, preposition.i
    said = [form.lower for form in forms(doc)]
    first = i - 1 if i and said[i - 1] in ("next", "close") else i
    for parts in _SPANS:
        end = first + len(parts)
        if said[first:end] == parts:
            inner = (g for t in doc[first:end] for g in t.children if g.dep_ == "pobj" and g.i >= end)
            return list(doc[first:end]), _thing(next(inner, None))
    governed = next((c for c in preposition.children if c.dep_ == "pobj"), None)
    if i and said[i - 1] in ("front", "top", "out", "away", "off", "up", "down"):
        return [preposition], None
    return [preposition], _thing(governed)


def _thing(noun: Any) -> Any | None:
    """The noun, if it names a thing that another can be beside; not `the middle of`, `one hand`, `the air`."""
    if noun is None or noun.tag_ not in ("NN", "NNS") or noun.lower_ in vague_nouns():
        return None
    joined = any(c.dep_ == "conj" for c in noun.rights) and noun.head.lower_ != "between"
    of = joined or any(c.dep_ == "prep" and c.lower_ == "of" for c in noun.rights)
    return None if of or noun.lower_ in frames()["no_place"] else noun


def _is_fixed(preposition: Any, span: Sequence[Any]) -> bool:
    """Whether a preposition belongs to its verb (`looks at`, `is covered in`) or follows an adverb (`up in a tree`)."""
    head = span[0].head if span[0].head not in span else preposition.head
    before = span[0].nbor(-1) if span[0].i else None
    if before is not None and before.tag_ in ("RB", "RP"):
        return True
    fixed = head.tag_ == "VBN" and lemma(head.text, head.tag_) not in ("park", "seat", "perch", "stack", "place")
    return fixed or (head.tag_.startswith("VB") and lemma(head.text, head.tag_) in frames()["unturned"]["*"])


def holder_of(link: Any) -> Any:
    """The noun whose place a preposition tells: its head, or the subject of the verb that it hangs on."""
    head = link.head
    if head.lower_ in ("front", "top", "next", "close") and head.head != head:
        return holder_of(head.head if head.head.dep_ == "prep" else head)
    if head.tag_.startswith("VB"):
        return doer_of(head)
    return head


def doer_of(verb: Any) -> Any | None:
    """The subject of a verb, or the noun that it describes."""
    if verb.dep_ in ("acl", "relcl"):
        return verb.head
    own = next((c for c in verb.lefts if c.dep_ in ("nsubj", "nsubjpass")), None)
    if own is None and verb.dep_ in ("conj", "advcl") and verb.head.tag_.startswith("VB") and verb.head != verb:
        return doer_of(verb.head)
    return own


def _goes_there(span: Sequence[Any], place: Any, new: str, corpus: WordCounts) -> bool:
    """Whether people say so of this verb and this noun, and the one who is there could be."""
    holder = holder_of(span[0])
    kind = kind_of(lemma(holder.text, holder.tag_)) if holder is not None else ""
    within = new in ("on", "in", "inside", "on top of")
    if within and (kind not in (*ANIMATE, "food", "handheld") or kind_of(lemma(place.text, place.tag_)) in ANIMATE):
        return False
    if new == "under" and kind == "person" and lemma(place.text, place.tag_) not in frames()["roofs"]:
        return False
    if kind in ("food", "handheld") and new in ("behind", "by", "near", "in front of"):
        return False
    verb = span[0].head
    turned = frames()["unturned"].get(new, ())
    if verb.tag_.startswith("VB") and (lemma(verb.text, verb.tag_) in turned or (new == "by" and verb.tag_ == "VBN")):
        return False
    last = new.split()[len(new.split()) // 2]
    before = span[0].nbor(-1) if span[0].i else span[0]
    after_verb = before.tag_.startswith("VB")
    return corpus.allows(last, place.lower_) and (not after_verb or corpus.allows(before.lower_, new.split()[0]))


def other_actions(verb: Any, form: Form) -> list[str]:
    """Verbs that take the same kind of object (or none) and go with what follows."""
    doer, thing = doer_of(verb), next((c for c in verb.children if c.dep_ == "dobj"), None)
    if doer is None:
        return []
    acted: Any = thing if thing is not None else doer
    if is_compound_head(acted):
        return []
    kind, table = (
        kind_of(lemma(acted.text, acted.tag_)),
        frames()["transitive" if thing is not None else "intransitive"],
    )
    animal = kind_of(lemma(doer.text, doer.tag_)) == "animal"
    if thing is not None and animal:
        table = frames()["animals"]
    own = frames()["own"]
    fit = [v for v in table.get(kind, ()) if v not in own or lemma(acted.text, acted.tag_) in own[v]]
    if form.base not in (*table.get(kind, ()), *(frames()["transitive"].get(kind, ()) if thing is not None else ())):
        return []
    static, said = frames()["static"], {t.lower_ for t in verb.subtree}
    links = [c for c in verb.rights if c.dep_ in ("prep", "prt", "advmod")]
    rests = form.base in static and any(c.lower_ in ("on", "in", "at", "under", "beside") for c in links)
    moves = not said.isdisjoint(frames()["paths"]) or not said.isdisjoint(frames()["moving"])
    wet = not said.isdisjoint(frames()["waters"].split("|"))
    hoofed = lemma(doer.text, doer.tag_) in frames()["hoofed"]
    return [
        v
        for v in fit
        if v != form.base
        and not (thing is None and rests and v not in static)
        and not (moves and v in static)
        and not ((v == "swim") != wet and "swim" in (v, form.base))
        and not (wet and v in static)
        and not (hoofed and v in ("sit", "kneel"))
    ]


def is_bound(verb: Any) -> bool:
    """Whether something hangs on a verb that another verb would not take: a particle, a complement, a manner."""
    bound = ("prt", "xcomp", "ccomp", "dative", "acomp", "oprd", "agent", "conj", "neg")
    if any(c.dep_ in bound for c in verb.children) or verb.dep_ == "conj":
        return True
    if any(c.dep_ == "advmod" and c.lower_.endswith("ly") for c in verb.children):
        return True
    if any(c.dep_ == "advcl" and any(g.tag_ == "TO" for g in c.children) for c in verb.children):
        return True  # `jumps to make a hoop`
    parts = any(t.lower_ in frames()["parts"] for t in verb.subtree if t.i > verb.i)
    after = verb.doc[verb.i + 1].lower_ if verb.i + 1 < len(verb.doc) else ""
    return parts or after in ("out", "up", "off", "away", "over", "back", "down")
