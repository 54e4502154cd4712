"""Swaps of the attributes of two things: looks, size, side or nationality.

Neighbouring words that describe the same aspect of a thing, such as `dark green velvet` or `long, thin`, form one
attribute and change places together. Two attributes can change places if both are looks (colour, material, pattern), or
if they are opposites. A reader must also be able to tell the two things apart without them: by name, by number, or by
what the caption says about only one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

from creperie.lang import (
    dimension_of,
    doers,
    is_above,
    is_worn,
    kind_of,
    knows_verb,
    lemma,
    open_wordnet,
    things,
)
from creperie.making.atoms import base_of, look_of, look_of_word
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit, may_be, qualities
from creperie.making.exchanging import ParsedScene, exchange_spans, sort_here
from creperie.making.plausible import ANIMATE, MADE, frames, may_be_of
from creperie.making.telling import are_told_apart
from creperie.making.verbs import is_name, is_nation, topics

_ONE = ("one", "ones", "another", "others")
#: Shades that are said without a colour.
_DEPTHS = frozenset(("pale", "dark"))
_STUFF = ("material", "fabric", "pattern")
_SURFACE = ("colour", *_STUFF)


@dataclass(frozen=True)
class Attribute:
    """Neighbouring words that describe the same aspect of a thing, from `start` to `end` (exclusive)."""

    doc: Any
    start: int
    end: int
    noun: Any  #: what they describe
    family: str  #: "surface", "size", "side", "nation", or empty

    @property
    def words(self) -> Any:
        return self.doc[self.start : self.end]

    @property
    def last(self) -> Any:
        return self.doc[self.end - 1]

    @property
    def worn(self) -> bool:
        """True for an attribute after `in`, such as `red` in `a woman in red`. It then describes clothes or a cover."""
        before = self.doc[max(0, self.start - 1)]
        return self.noun.i < self.start and before.lower_ == "in"

    def colour(self) -> Attribute | None:
        """Return the one colour among the words; None if there is none or more than one."""
        own = [t for t in self.words if _is_colour(t.lower_) and look_of(t) not in _STUFF]
        if self.family != "surface" or not own or own[-1].i - own[0].i + 1 != len(own):
            return None
        start = own[0].i
        while start > self.start and self.doc[start - 1].text in ("-", *frames()["shades"]):
            start -= 1
        return Attribute(self.doc, start, own[-1].i + 1, self.noun, self.family)


# -- swaps -----------------------------------------------------------------------------------------------------------


def swapped_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the attributes of two things, if each attribute could be said of the other thing."""
    scene, every = ParsedScene(doc), _attributes(doc)
    looks = Counter(a.noun.i for a in every if a.family == "surface")
    for pair in combinations(every, 2):
        if not are_opposed(*pair):
            continue
        left, right = _same_dimension(*pair)
        said = [{t.lower_ for t in one.words if t.is_alpha} for one in (left, right)]
        joint = left.family == "side" and doc[left.end : right.start].text == "and"  # front and back
        if joint or left.end > right.start or said[0] & said[1]:
            continue
        change, tokens = f"{left.words.text} ↔ {right.words.text}", (left.last, right.last)
        why = "" if left.family == "side" else _why_unfit(scene, left, right, corpus)
        coloured = left.family != "surface" or all(a.colour() for a in pair)
        if not coloured and any(looks[a.noun.i] > 1 or a.noun.i - a.end > 1 for a in pair):
            why = why or "one of them has another look, too"
        if why:
            told = f"*{left.words.text}* and *{right.words.text}* could change places, but {why}"
            yield CaptionEdit(doc.text, change, left.start, tokens, told)
        else:
            text = exchange_spans(doc, (left.start, left.end), (right.start, right.end), repair=True)
            yield CaptionEdit(text, change, left.start, tokens, told="each may have the look of the other")


def _same_dimension(left: Attribute, right: Attribute) -> tuple[Attribute, Attribute]:
    """Return only the colours of two attributes. If either has no single colour, return both attributes unchanged."""
    colours = left.colour(), right.colour()
    return (colours[0], colours[1]) if colours[0] and colours[1] else (left, right)


# -- the attributes of a caption -------------------------------------------------------------------------------------


def _attributes(doc: Any) -> list[Attribute]:
    """Return the attributes that a caption gives to things, in order."""
    known, found, end = {t.i for t in qualities(doc)}, [], 0
    for token in doc:
        if token.i < end or not (family := _family(token, known)):
            continue
        start, end = _span(token, family, known)
        noun = token if family == "side" else _described(doc, start, end)
        last = end - 1 if noun is not None and noun.i == end - 1 > start else end  # `the pale wood`
        if noun is not None:
            found.append(Attribute(doc, start, last, noun, family if family != "other" else ""))
    return found


def _family(token: Any, known: set[int]) -> str:
    """Return the aspect of a thing that a word may describe, such as its surface or its size; empty if there is none.
    `known` holds the indices of descriptive adjectives.
    """
    after = token.nbor(1) if token.i + 1 < len(token.doc) else token
    if _is_half(token):
        return ""
    if _is_side(token):
        return "side"
    if is_nation(token.text) and after.tag_ in ("NN", "NNS"):
        return "nation"
    if token.tag_ in ("JJR", "JJS"):
        return "other"
    plain = token.tag_[:2] in ("NN", "JJ", "VB") and (token.is_lower or not token.i) and token.text.isalpha()
    capital = token.tag_[:3] == "NNP" and not token.is_lower and look_of(token) not in ("material", "fabric")
    if not plain or (token.dep_ == "pobj" and base_of(token) in frames()["named_by_colour"]):
        return ""  # a glass of wine
    looks = look_of(token) in _SURFACE and not capital
    looks = looks and not token.lower_.endswith("ing")  # cement flooring
    if _is_colour(token.lower_) or looks or token.lower_ in frames()["more_materials"]:
        return "" if _is_of_name(token) else "surface"
    if look_of(token) == "size":
        return "size"
    return "other" if token.i in known else ""


def _is_half(token: Any) -> bool:
    """Return True for the first word of a two-word description of looks, such as `dark` in `dark haired`."""
    after = [t.lower_ for t in token.doc[token.i + 1 : token.i + 3] if t.text != "-"]
    return after[:1] != [] and after[0] in frames()["halved"]


def _span(token: Any, family: str, known: set[int]) -> tuple[int, int]:
    """Return the span [start, end) of an attribute that begins with `token`: neighbouring words that describe the same
    aspect, together with words for a shade, such as `dark`.
    """
    doc, start, end = token.doc, token.i, token.i + 1
    if family not in ("surface", "size"):
        return start, end
    while start and family == "surface" and (doc[start - 1].lower_ in frames()["shades"] or _is_hyphen(doc, start - 1)):
        start -= 1 + (doc[start - 1].text == "-")  # `wine-red`
    while end < len(doc):
        step = 2 if doc[end].lower_ in (",", "and") or _is_hyphen(doc, end) else 1
        step += step == 2 and end + 1 < len(doc) and doc[end + 1].lower_ == "and"
        after = doc[end + step - 1] if end + step <= len(doc) else token
        if step == 2 and _is_hyphen(doc, end) and after.lower_ in frames()["hyphened"]:
            end += 2
            continue
        alike = after.lower_ in frames()["shades"] if family == "surface" else False
        colours = doc[end + step - 2].lower_ == "and" and all(_is_colour(t.lower_) for t in (doc[end - 1], after))
        listed = step == 1 or colours or (after.tag_[:2] != "NN" and doc[end - 1].tag_[:2] != "NN")
        if not listed or not (alike or _family(after, known) == family):
            break
        end += step
    return start, end


def _is_hyphen(doc: Any, i: int) -> bool:
    return i > 0 and doc[i].text == "-"


def _is_of_name(word: Any) -> bool:
    """Return True if a noun forms a name with the noun after it, as in `wine glass`, or before it: `blood orange`."""
    if word.i and word.nbor(-1).tag_[:2] == "NN" and is_name(f"{word.nbor(-1).lower_} {base_of(word)}"):
        return True
    after = word.nbor(1) if word.i + 1 < len(word.doc) else word
    flavour = 13 in topics(word.lower_)[:2] and topics(base_of(after))[:1] == (13,)  # plum jam
    named = flavour or word.lower_ in ("wine", "tea", "wash") or is_name(f"{word.lower_} {base_of(after)}")
    return word.tag_[:2] == "NN" and after.tag_[:2] == "NN" and named


def _is_side(token: Any) -> bool:
    """Return True for a word such as `left` or `upstairs` that says on which side or floor something is."""
    after = token.nbor(1).lower_ if token.i + 1 < len(token.doc) else ""
    fixed = (token.lower_ == "front" and after == "of") or after == "-" or token.tag_[:2] == "VB"
    fixed = fixed or (token.tag_ == "NN" and any(c.dep_ in ("amod", "compound") for c in token.lefts))  # a black top
    return any(token.lower_ in pair for pair in frames()["opposite_sides"]) and not fixed


def _is_colour(word: str) -> bool:
    return dimension_of(word) == "colour" or word in _DEPTHS or _names_colour(word)


@cache
def _names_colour(word: str) -> bool:
    """Return True if a noun also names a colour, as `teal` and `peach` do but `table` does not."""
    net = open_wordnet()
    if kind_of(word) or topics(word)[:1] == (17,):
        return False  # a lake
    above = {w for s in net.senses(word, "n")[:4] for up in net.above(s) for w in up.words}
    return not above.isdisjoint(("chromatic_color", "achromatic_color"))


def _described(doc: Any, start: int, end: int) -> Any | None:
    """Return the word that the words from `start` to `end` describe: the noun after them, the subject of `is`, the noun
    before `in`, or the participle in `lined with felt`. Return None if there is none.
    """
    last, before = doc[end - 1], start - 1
    while before > 0 and doc[before].tag_ in ("JJ", "VBN") and doc[before].head.i in range(start, end):
        before -= 1  # in worn red leather
    link = doc[max(0, before)]
    if end < len(doc) and doc[end].lower_ in _ONE:
        return doc[end]
    listed = last.tag_[:2] == "NN" and end < len(doc) and doc[end].tag_ in ("CC", ",")  # striped wallpaper, floral …
    if not listed and (noun := _noun_after(doc, end)) is not None:
        return noun
    if link.i and link.lower_ in ("in", "of", "with", "from"):
        before = link.nbor(-1)  # whatever the parse attaches it to
        before = before.nbor(-1) if before.text == "," and before.i else before  # the queen, in green
        covers = before.tag_ == "VBN"
        if covers or link.lower_ == "in" or (link.lower_ == "of" and look_of(last) in _STUFF):  # not a piece of orange
            return before if covers or before.tag_[:2] == "NN" or before.lower_ in _ONE else None
    if last.dep_ == "attr" and look_of(last) in _STUFF:
        return None  # two are bare wood
    painted = link.tag_ in ("VBN", "VBD") and base_of(link) in ("paint", "dye")
    if painted and link.i and link.nbor(-1).tag_ in ("NN", "NNS"):
        return link.nbor(-1)  # a station painted white
    subjects = doers(link if painted else last.head) if painted or last.dep_ in ("acomp", "oprd", "attr") else []
    if subjects:
        return subjects[0] if len(subjects) == 1 else None
    if start > 1 and doc[start - 1].text == "," and doc[start - 2].tag_[:2] == "NN":  # boots, olive green with
        return doc[start - 2]
    if last.tag_ in ("NN", "NNS") and start < last.i:
        return last
    nominal = start > 0 and doc[start - 1].lower_ == "the" and last.tag_ in ("JJR", "JJS")  # the older of the two
    return last if nominal else None


def _noun_after(doc: Any, end: int) -> Any | None:
    """Return the last of the nouns after a modifier that ends at `end`; None if no noun follows. Words are judged by
    their tags, not by the parse.
    """
    noun = None
    for t in doc[end:]:
        frisbee = t.tag_ == "NNP" and kind_of(t.lower_) and not t.nbor(-1).text[:1].isupper()
        unread = t.tag_[:2] == "VB" and noun is not None and not knows_verb(lemma(t.text, t.tag_))  # floorboards
        icing = t.tag_ == "VBG" and noun is None and t.i + 1 < len(doc) and doc[t.i + 1].tag_ in ("CC", "IN", ".", ",")
        unread = unread or (icing and bool(topics(t.lower_)))
        if noun is not None and base_of(noun) in frames()["hairs"]:
            break  # a woman with grey hair laughs
        if t.tag_ in ("NN", "NNS") or unread or (t.tag_ == "NNP" and t.is_lower and noun is None) or frisbee:
            noun = t
        elif (
            noun is not None
            or t.tag_ not in ("JJ", "VBN", "VBG", "HYPH", "CC", "NNP", ",", "CD")
            or (t.tag_ == "CD" and doc[end - 1].tag_ != "JJ")
            or (t.tag_ in ("CC", ",") and t.nbor(1).tag_ not in ("JJ", "VBN"))
        ):
            break
    return noun


# -- which attributes may change places ------------------------------------------------------------------------------


def are_opposed(left: Attribute, right: Attribute) -> bool:
    """Return True if two attributes describe the same aspect, but differently. Examples are two looks, two
    nationalities, `tall` and `low`, and `upper` and `lower`.
    """
    if left.family != right.family or left.words.text.lower() == right.words.text.lower():
        return False
    if left.family in ("nation", "surface"):
        return True
    one, other = left.last, right.last
    if left.family == "side":
        sides = any({one.lower_, other.lower_} == {*pair} for pair in frames()["opposite_sides"])
        return sides and (one.tag_[:2] == other.tag_[:2] or one.tag_[:1] in "JNR")
    graded = [t.tag_ in ("JJR", "JJS") for t in (one, other)]
    if any(graded) and one.tag_ != other.tag_:
        return False
    if left.family == "size":
        pairs = product(*([lemma(t.text, t.tag_) for t in a.words if t.is_alpha] for a in (left, right)))
        sizes = frames()["sizes"]
        return any((a in more) != (b in more) and {a, b} <= {*more, *less} for a, b in pairs for more, less in sizes)
    first, second = (lemma(t.text, t.tag_) if any(graded) else t.lower_ for t in (one, other))
    looks = [look_of_word(w, "JJ") for w in (first, second)]
    alike = looks[0] == looks[1] not in ("", "state") or any({first, second} == {*p} for p, _ in frames()["states"])
    return alike


def _why_unfit(scene: ParsedScene, left: Attribute, right: Attribute, corpus: WordCounts) -> str:
    """Return why two attributes cannot change places; empty if they can. It must be possible to tell the two things
    apart, and each attribute must suit the other thing.
    """
    one, other = left.noun, right.noun
    if one == other:
        return "they are said of one and the same"
    if any(base_of(t) in frames()["looks"] for t in (one, other)):
        return "one of them is itself a look"
    alike = base_of(one) == base_of(other) or any(t.lower_ in _ONE for t in (one, other))
    if alike and not are_told_apart(scene, one, other, {*range(left.start, left.end), *range(right.start, right.end)}):
        return "nothing else tells the two apart"
    within = ("is in", "is inside", "into", "is under", "is beneath", "is underneath", "is below", "is through")
    if left.family == "size" and any(f.name in within for f, *_ in scene.between(one, other)):
        return "the larger one does not fit into or under the smaller"
    between = {t.lower_ for t in scene.doc[min(one.i, other.i) : max(one.i, other.i)]}
    if (
        left.family == "size"
        and between & {*frames()["heights"]}
        and {left.last.lower_, right.last.lower_} & {*frames()["tall"]}
    ):
        return "one is told to be higher than the other"
    if _would_have_two_colours(scene.doc, left, right):
        return "one of them has another colour, too"
    if left.family == "nation" or alike:
        return ""
    soft = [_is_soft(a) for a in (left, right)]
    lined = any(t.tag_[:2] == "VB" for t in (one, other))
    hard = [any(look_of(t) == "material" for t in a.words) for a in (left, right)]
    if soft[0] != soft[1] and not lined and all(s or h for s, h in zip(soft, hard)):
        return "one is soft and the other hard"  # brass satchels, velvet lamps
    kinds = {sort_here(t) in ANIMATE for t in (one, other) if t.tag_[:2] == "NN"}
    mixed = left.family != "surface" and len(kinds) > 1
    fits = all(_may_look(a, at, corpus) for a in (left, right) for at in (left, right))
    return "" if fits and not mixed else "they are not said of both"


def _would_have_two_colours(doc: Any, left: Attribute, right: Attribute) -> bool:
    """Return True if a material and a colour would change places, and a pronoun later refers to one of the things and
    gives it a colour of its own: `The lid of the enamel pot is cream, while its body is dark blue.`
    """
    stuff = [
        any(look_of(t) in _STUFF or t.lower_ in frames()["more_materials"] for t in a.words) for a in (left, right)
    ]
    if stuff[0] == stuff[1]:
        return False
    later = doc[right.end :]
    return any(t.lower_ in ("its", "it") for t in later) and any(_is_colour(t.lower_) for t in later)


def _is_soft(attribute: Attribute) -> bool:
    return any(look_of(t) == "fabric" or t.lower_ in ("leather", "suede", "felt") for t in attribute.words)


def _may_look(attribute: Attribute, at: Attribute, corpus: WordCounts) -> bool:
    """Return True if the thing that `at` describes could have `attribute` instead. Man-made things and clothes can have
    any colour, material and pattern. For people and animals, `may_be` decides.
    """
    noun, words = at.noun, [t for t in attribute.words if t.is_alpha and t.lower_ not in ("and", *frames()["shades"])]
    base, looks = base_of(noun), {look_of(t) for t in attribute.words}
    named_after = at.end < len(at.doc) and look_of(at.doc[at.end]) in _STUFF  # a seat of dark green velvet
    if (
        noun.i < at.start
        and at.doc[at.start - 1].lower_ == "of"
        and not named_after
        and not looks & {"material", "fabric"}
    ):
        return False  # a piece of black
    if at.worn or noun.tag_[:2] == "VB":
        return not any(t.lower_.endswith(("en", "ic")) for t in words if look_of(t) == "material")  # in wooden
    # a thing of this material is made
    stuff = any(look_of(t) in ("material", "fabric") or t.lower_ in frames()["more_materials"] for t in at.words)
    sort, senses = "" if stuff else sort_here(noun), () if stuff else topics(base)
    if base in frames()["hairs"] or any(t.lower_ in ("blond", "blonde", "ginger", "auburn") for t in words):
        return base in frames()["hairs"] and all(t.lower_ in frames()["hair_colours"] for t in words)
    if sort in ANIMATE or attribute.family == "":
        plain = attribute.family == "" or all(dimension_of(t.lower_) for t in words)  # no straw kid
        return plain and not looks & {*_STUFF} and all(may_be(t.lower_, noun, corpus) for t in words)
    if attribute.family == "size":
        return senses[:1] not in ((7,), (9,), (10,), (11,), (28,))
    made = sort in MADE or not senses or 6 in senses[:4] or is_worn(base) or base in frames()["fittings"]
    if any(t.lower_ in frames()["of_buildings"] for t in words) and sort in MADE:
        return False  # tile bags
    if any(t.lower_ in frames()["burnable"] for t in words) and is_above("cooking utensil", base):
        return False  # wooden kettles
    if looks & {*_STUFF} and is_above("coloring material", base):
        return False  # glass paint
    if look_of_word(base, "NN") in _STUFF and looks & {*_STUFF}:
        return False  # rice-paper wood
    hard = "material" in looks and not _is_soft(attribute)
    if hard and not stuff and not any(may_be_of(noun, t.lower_) for t in words):
        return False  # a ceramic background, a wooden microwave
    if base in things()["inborn"] or base in ("piece", "slice", "bit", "wedge"):
        return False
    return made or (not looks & {"material", "fabric"} and _may_be_coloured(base, senses))


def _may_be_coloured(base: str, senses: tuple[int, ...]) -> bool:
    """Return True if a thing that is not man-made can have various colours. Flowers, letters and icing can; fruit and
    land cannot.
    """
    sweet = any(is_above(word, base) for word in ("flower", "herb", "topping", "cake", "confectionery"))
    return sweet or senses[:1] in ((10,), (25,), (27,))
