"""Swaps between parts of a caption that are told alike: two people by name, two things in two places.

Helena Brandt hands the keys to Tomas Oyelaran.     the names change places, titles and roles stay
books on the bed and clothes on the desk            either the things or their places are exchanged
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from creperie.lang import is_reciprocal, lemma
from creperie.making.atoms import base_of, phrase
from creperie.making.edits import ANIMATE, CaptionEdit, frames
from creperie.making.exchanging import exchange_spans, sort_here
from creperie.making.verbs import is_common, topics

Span = tuple[int, int]
_PARTICLES = frozenset(("de", "van", "der", "von", "den", "la", "el", "bin", "da", "di", "du", "al"))
_PERSON, _PLACES = 18, {15, 17}


# -- names -----------------------------------------------------------------------------------------------------------


def swapped_names(doc: Any) -> Iterator[CaptionEdit]:
    """Yield edits that swap the names of two people; what they are and do stays in place."""
    if any(t.lower_ in frames()["gendered"] for t in doc):
        return  # a name may tell the gender
    for left, right in combinations(person_names(doc), 2):
        between = [t.lower_ for t in doc[left[1] : right[0]]]
        if all(w in (",", "and", "or", "&", "(") for w in between) or doc[slice(*left)].text == doc[slice(*right)].text:
            continue
        mutual = any(is_reciprocal(lemma(t.text, "VBZ"), p) for t in doc for p in ("", "with", "to"))
        if mutual and not any(_title(doc, span[0]) for span in (left, right)):
            continue
        change = f"{doc[slice(*left)].text} ↔ {doc[slice(*right)].text}"
        text = exchange_spans(
            doc, left, right, repair=True, changes={i: doc[i].text for s in (left, right) for i in range(*s)}
        )
        yield CaptionEdit(
            text, change, left[0], (doc[left[1] - 1], doc[right[1] - 1]), told="each has the other's name"
        )


def person_names(doc: Any) -> list[Span]:
    """Return the names of people, without titles, as [start, end)."""
    names, i = [], 0
    while i < len(doc):
        end = i
        while end < len(doc) and (_is_capital(doc[end]) or (end > i and doc[end].lower_ in _PARTICLES)):
            end += 1
        start = i
        while start < end and _is_title(doc[start], end - start):
            start += 1
        if start < end and doc[end - 1].text[:1].isupper() and _is_person(doc, start, end):
            names.append((start, end))
        i = max(end, i + 1)
    return names


def _is_capital(token: Any) -> bool:
    return bool(
        token.text[:1].isupper() and token.tag_[:2] in ("NN", "JJ") and token.text.isalpha() and not token.is_upper
    )


def _is_title(token: Any, words: int) -> bool:
    common = is_common(token.lower_) and _PERSON in topics(token.lower_)[:2]
    return words > 1 and (common or (not token.i and is_common(token.lower_) and words > 2))


def _title(doc: Any, start: int) -> bool:
    """Return True if words before a name say who it is: `striker Mia Lund`, `the witness, Leonard Biggs`."""
    near = [t for t in doc[max(0, start - 2) : start] if t.text != ","]
    return bool(near) and _PERSON in topics(base_of(near[-1]))[:2] and near[-1].tag_[:2] in ("NN", "JJ")


def _is_person(doc: Any, start: int, end: int) -> bool:
    whole = doc[start:end].text
    if _PLACES & set(topics(whole)) or (end < len(doc) and doc[end].text in ("'s", "’s", "-")):
        return False
    words = [t for t in doc[start:end] if t.lower_ not in _PARTICLES]
    if len(words) == 1 and (words[0].tag_ in ("NNS", "NNPS") or is_common(lemma(words[0].text, "NNS"))):
        return False  # Reporters
    if _title(doc, start):
        return True
    things = [t for t in words if is_common(t.lower_) and _PERSON not in topics(t.lower_)[:2]]
    before = doc[start - 1].lower_ if start else ""
    somewhere = before in (*frames()["places"], "of", "from", "to", "over", "above", "towards", "the", "this", "a")
    acts = doc[end - 1].dep_ in ("nsubj", "nsubjpass", "dobj") or before in ("by", "for", "with", "against", "past")
    known = any(_PLACES & set(topics(t.lower_)) for t in words)
    if len(words) > 1:
        return not known and not somewhere and (not things or (acts and len(things) < len(words)))
    return acts and not things and not known and not somewhere and topics(words[0].lower_)[:1] in ((), (_PERSON,))


# -- things in two places --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Placed:
    """A thing, the preposition after it, and the place: `books piled on the bed`."""

    thing: Any
    link: Any
    place: Any

    @property
    def spans(self) -> tuple[Span, Span]:
        return _span(self.thing), _span(self.place)


def swapped_places(doc: Any) -> Iterator[CaptionEdit]:
    """Yield edits that swap two things which are told alike with their places, or these places."""
    for one, other in combinations(_placed(doc), 2):
        gap = doc[one.spans[1][1] : other.spans[0][0]]
        if not gap or any(t.lower_ not in frames()["beside_told"] and not t.is_punct for t in gap):
            continue
        for left, right in ((one.thing, other.thing), (one.place, other.place)):
            if _may_be_elsewhere(left, right, one, other):
                change = f"{left.text} ↔ {right.text}"
                text = exchange_spans(doc, _span(left), _span(right), repair=True)
                yield CaptionEdit(text, change, left.i, (left, right), told="each is where the other was")


def swapped_ends(doc: Any) -> Iterator[CaptionEdit]:
    """Yield edits that swap where something comes from and where it goes: `from a boat onto a ship`."""
    for start in (t for t in doc if t.lower_ == "from"):
        left = (
            _noun_from(doc, start.i + 1)
            if start.i and doc[start.i - 1].lower_ not in frames()["ways_between"]
            else None
        )
        end = left.i + 1 if left is not None else len(doc)
        goal = next((t for t in doc[end : end + 2] if t.lower_ in ("to", "into", "onto")), None)
        right = _noun_from(doc, goal.i + 1) if goal is not None else None
        if left is None or right is None or base_of(left) == base_of(right) or sort_here(left) in ANIMATE:
            continue
        if any(t.tag_ == "NNP" and (t.is_upper or sort_here(t) != "place") for t in (left, right)):
            continue  # sizes S to XXL, a ball from somebody
        spans = _span(left), _span(right)
        if not any(_refers_or_acts(t) for s in spans for t in doc[slice(*s)]) and spans[0][0] > start.i:
            text = exchange_spans(doc, *spans, repair=True)
            yield CaptionEdit(text, f"{left.text} ↔ {right.text}", left.i, (left, right), told="the way back")


def _placed(doc: Any) -> list[_Placed]:
    found = []
    for link in (t for t in doc if t.tag_ in ("IN", "TO") and t.i and t.lower_ not in ("of", "as", "while", "that")):
        place = _noun_from(doc, link.i + 1)
        k = link.i - 1
        while k > 0 and (doc[k].tag_[:2] in ("VB", "RB", "RP")):
            k -= 1
        thing = doc[k]
        start = _span(thing)[0] if thing.tag_ in ("NN", "NNS") else 0
        if start and k < link.i - 1 and doc[start - 1].tag_ in ("IN", "TO"):
            continue  # `A man in a vest signals to`
        if place is not None and thing.tag_ in ("NN", "NNS") and _is_plain(thing) and _is_plain(place):
            found.append(_Placed(thing, link, place))
    return found


def _noun_from(doc: Any, i: int) -> Any | None:
    """Return the last noun of the phrase that begins at `i`."""
    noun = None
    for t in doc[i:]:
        if t.tag_ in ("NN", "NNS", "NNP"):
            noun = t
        elif noun is not None or t.tag_ not in ("DT", "JJ", "VBN", "VBG", "CD", "JJR", "PRP$"):
            break
    return noun


def _is_plain(noun: Any) -> bool:
    return base_of(noun) not in frames()["parts"] and noun.lower_ not in (
        *frames()["around"],
        *frames()["sides"],
        "one",
        "ones",
    )


def _span(noun: Any) -> Span:
    """Return a noun phrase with `of …` after it."""
    doc = noun.doc
    start, end = min(phrase(noun)[0], noun.i), noun.i + 1
    inner = _noun_from(doc, end + 1) if end < len(doc) and doc[end].lower_ == "of" else None
    return start, end if inner is None else inner.i + 1


def _may_be_elsewhere(left: Any, right: Any, one: _Placed, other: _Placed) -> bool:
    sorts = sort_here(left), sort_here(right)
    words = [t for n in (left, right) for t in left.doc[slice(*_span(n))]]
    if base_of(left) == base_of(right) or any(map(_refers_or_acts, words)):
        return False
    if (left.tag_ == "NNS") != (right.tag_ == "NNS") and (
        left is one.thing and left.dep_ not in ("dobj", "pobj", "conj")
    ):
        return False  # the verb agrees
    animate = [s in (*ANIMATE, "name") for s in sorts]
    same_link = one.link.lower_ == other.link.lower_
    apart = base_of(one.place) != base_of(other.place) or not same_link
    if left is one.place:
        said = [left.doc[slice(*_span(t))].text.lower() for t in (one.thing, other.thing)]
        return same_link and animate[0] == animate[1] and said[0] != said[1]
    return animate[0] == animate[1] and apart


def _refers_or_acts(token: Any) -> bool:
    """Return True for a word that must stay where it is: `one`, `her`, a verb."""
    verb = token.tag_[:2] == "VB" and token.dep_ != "amod"
    return bool(token.tag_[:3] == "PRP" or token.lower_ in ("one", "ones") or token.is_punct or verb)
