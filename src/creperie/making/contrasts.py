"""Swaps of the attributes of two things: looks, size, side or nationality.

Two attributes can change places if they are of the same sort (two colours, two opposites) and describe things that a
reader can tell apart: by name, by number, or by something else that the caption says about only one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

from creperie.lang import (
    dimension_of,
    in_one_group,
    is_above,
    is_reciprocal,
    is_worn,
    kind_of,
    knows_verb,
    lemma,
    open_wordnet,
    things,
)
from creperie.making.atoms import base_of, joined, look_of, look_of_word
from creperie.making.corpus import WordCounts
from creperie.making.edits import CaptionEdit, may_be, other_materials, qualities
from creperie.making.exchanging import ParsedScene, exchange_spans, sort_here
from creperie.making.plausible import ANIMATE, MADE, frames
from creperie.making.verbs import is_name, is_nation, topics

_ONE = ("one", "ones")
#: Shades that are said without a colour.
_DEPTHS = frozenset(("pale", "dark"))
#: Nouns of what a look is, not of a thing that has it: `a silk tie with a paisley pattern`.
_LOOKS = frozenset(
    ("pattern", "print", "design", "finish", "colour", "color", "tone", "shade", "setting", "light", "trim")
)


# -- attributes ------------------------------------------------------------------------------------------------------


def swapped_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the attributes of two things, if each attribute could be said of the other thing."""
    scene = ParsedScene(doc)
    for left, right in combinations(_attributes(doc), 2):
        if not are_opposed(left, right):
            continue
        spans = attribute_span(left), attribute_span(right)
        said = [{t.lower_ for t in doc[slice(*s)]} for s in spans]
        if spans[0][1] > spans[1][0] or said[0] & said[1] or (said[0] | said[1]) & set(frames()["gendered"]):
            continue
        change = f"{doc[slice(*spans[0])].text} ↔ {doc[slice(*spans[1])].text}"
        why = "" if _are_sides(left, right) else _why_unfit(scene, left, right, spans, corpus)
        if why:
            yield CaptionEdit(
                doc.text,
                change,
                left.i,
                (left, right),
                f"*{left.text}* and *{right.text}* could change places, but {why}",
            )
            continue
        text = exchange_spans(doc, *spans, repair=True)
        yield CaptionEdit(text, change, left.i, (left, right), told="each may have the look of the other")


def _attributes(doc: Any) -> list[Any]:
    """Return the words that describe how a thing looks, its nationality (`French`) or its side (`left`)."""
    before = [t for t in doc[:-1] if (t.tag_ == "NN" or not t.i) and t.nbor(1).tag_ == "NN"]
    stuffs = [t for t in before if look_of_word(t.lower_, "NN") in ("material", "fabric")]
    worn = [t for t in doc if t.dep_ == "pobj" and t.head.lower_ in ("in", "of") and look_of(t)]
    graded = [t for t in doc if t.tag_ in ("JJR", "JJS") and t.text.isalpha()]
    sides = [t for t in doc if _is_side(t)]
    after = [doc[t.i + 1].tag_ if t.i + 1 < len(doc) else "" for t in doc]
    nations = [t for t in doc if is_nation(t.text) and (after[t.i] in ("NN", "NNS") or _is_somebody(t))]
    loose = [t for t in doc if t.tag_[:2] in ("NN", "JJ", "VB") and t.is_lower and _is_colour(t.lower_)]
    every = sorted({*qualities(doc), *worn, *graded, *sides, *nations, *loose, *stuffs}, key=lambda t: t.i)
    every = [t for t in every if t.dep_ != "pobj" or base_of(t) not in frames()["named_by_colour"]]  # a glass of wine
    said = [t for t in every if _is_side(t) or (described(t) is not None and not _is_of_name(t))]
    return [t for t in said if not any(t.i == other.i - 1 and _is_shade(t, other) for other in said)]


def _is_of_name(word: Any) -> bool:
    """Return True if a noun forms a name with the noun after it, as in `wine glass`."""
    after = word.nbor(1) if word.i + 1 < len(word.doc) else word
    flavour = 13 in topics(word.lower_)[:2] and topics(base_of(after))[:1] == (13,)  # plum jam
    named = flavour or word.lower_ in ("wine", "tea", "wash") or is_name(f"{word.lower_} {base_of(after)}")
    return word.tag_[:2] == "NN" and after.tag_[:2] == "NN" and named


def _is_somebody(nation: Any) -> bool:
    """Return True if a nationality names a person: `the Italian`."""
    doc, i = nation.doc, nation.i
    goes_on = i + 1 < len(doc) and doc[i + 1].tag_[:2] in ("NN", "JJ", "HY", "CD", "VB") and doc[i + 1].tag_ != "VBZ"
    return i > 0 and doc[i - 1].lower_ in ("a", "an", "the", "another") and not goes_on and is_nation(nation.text)


def _is_shade(word: Any, colour: Any) -> bool:
    """Return True if a word says which shade of a colour is meant, as in `olive green` or `pale pink`."""
    shades = word.lower_ in frames()["shades"] or _names_colour(word.lower_)
    return dimension_of(colour.lower_) == "colour" and shades


def _is_side(token: Any) -> bool:
    """Return True for a word such as `left` or `upstairs` that says on which side or floor something is."""
    after = token.nbor(1).lower_ if token.i + 1 < len(token.doc) else ""
    fixed = (token.lower_ == "front" and after == "of") or after == "-" or token.tag_[:2] == "VB"
    strengthens = token.lower_ == "right" and token.tag_ == "RB" and after in frames()["places"]
    return any(token.lower_ in pair for pair in frames()["opposite_sides"]) and not fixed and not strengthens


def _are_sides(left: Any, right: Any) -> bool:
    return any({left.lower_, right.lower_} == {*pair} for pair in frames()["opposite_sides"])


def _is_colour(word: str) -> bool:
    return dimension_of(word) == "colour" or _names_colour(word)


@cache
def _names_colour(word: str) -> bool:
    """Return True if a noun also names a colour, as `teal` and `peach` do but `table` does not."""
    net = open_wordnet()
    if kind_of(word) or topics(word)[:1] == (17,):
        return False  # a lake
    return any("color" in up.words for s in net.senses(word, "n")[:4] for up in net.above(s))


def are_opposed(left: Any, right: Any) -> bool:
    """Return True if two different words describe the same quality, such as two colours, `tall` and `low`, or `upper`
    and `lower`.
    """
    if left.lower_ == right.lower_:
        return False
    if _is_side(left) or _is_side(right):
        return _are_sides(left, right) and (left.tag_[:2] == right.tag_[:2] or left.tag_[:1] in "JNR")
    if (left.tag_ in ("JJR", "JJS") or right.tag_ in ("JJR", "JJS")) and left.tag_ != right.tag_:
        return False
    if is_nation(left.text) or is_nation(right.text):
        return is_nation(left.text) and is_nation(right.text)
    one, other = (lemma(t.text, t.tag_) if t.tag_ in ("JJR", "JJS") else t.lower_ for t in (left, right))
    looks = [look_of_word(one, left.tag_), look_of_word(other, right.tag_)]
    if "colour" in looks or {one, other} <= _DEPTHS:
        shown = described(left), described(right)
        alike = None not in shown and base_of(shown[0]) == base_of(shown[1])
        words = zip(looks, (one, other))
        return all(k == "colour" or w in _DEPTHS or ((not k or alike) and _names_colour(w)) for k, w in words)
    if looks == ["size", "size"]:
        return any(
            (one in more) != (other in more) and {one, other} <= {*more, *less} for more, less in frames()["sizes"]
        )
    alike = (looks[0] == looks[1] not in ("", "state")) or set(looks) == {"material", "fabric"}
    return alike or in_one_group("opposites", one, other) or other in open_wordnet().antonyms(one, "a")


def _why_unfit(
    scene: ParsedScene, left: Any, right: Any, spans: tuple[tuple[int, int], tuple[int, int]], corpus: WordCounts
) -> str:
    """Return why two attributes cannot change places; empty if they can. They can if they describe two things that can
    be told apart, and if each attribute could describe the other thing.
    """
    one, other = described(left), described(right)
    if one is None or other is None or one == other or any(_is_doubled(t, s) for t, s in zip((left, right), spans)):
        return "it is not clear of what they are said"
    if any(base_of(t) in _LOOKS for t in (one, other)):
        return "one of them is a look, not a thing"
    ends = [scene.doc[min(s[1], len(scene.doc) - 1)] for s in spans]
    if ends[0].lower_ == ends[1].lower_ and ends[0].tag_[:2] == "NN":
        one, other = ends  # whatever follows: `a white dog run`
    alike = base_of(one) == base_of(other) or other.lower_ in _ONE or one.lower_ in _ONE
    if alike and not are_told_apart(scene, one, other):
        return "nothing else tells the two apart"
    hairy = {left.lower_, right.lower_} & {"blond", "blonde", "ginger", "auburn"}
    if hairy and not all(base_of(t) in frames()["hairs"] or sort_here(t) == "person" for t in (one, other)):
        return "one of them is said of hair only"
    within = ("is in", "is inside", "into", "is under", "is beneath", "is underneath", "is below", "is through")
    inside = any(f.name in within for f, *_ in scene.between(one, other))
    if look_of(left) == "size" and inside:
        return "the larger one does not fit into or under the smaller"
    if other.lower_ in _ONE or is_nation(left.text) or all(_is_worn(t) for t in (left, right)):
        return ""
    stuff = [(look_of(t), other_materials(t.lower_, "material")) for t in (left, right)]
    unlike = stuff[0] != stuff[1] and [look for look, _ in stuff] != ["pattern"] * 2  # copper and iron are both metals
    hides = ("leather", "suede")
    looks = {"fabric" if t.lower_ in hides else look for t, (look, _) in zip((left, right), stuff)}
    made_of = looks & {"material", "fabric", "pattern"}
    heads = {base_of(one), base_of(other)}
    fit = {look for look, rows in (("material", "rigid"), ("fabric", "soft")) if heads <= {*frames()[rows]}}
    mixed = made_of and unlike and not alike and not made_of <= fit  # brass satchels
    shaded = [s[1] - s[0] > 1 and look_of(scene.doc[s[0]]) in ("material", "fabric") for s in spans]
    mixed = mixed or any(shaded)  # pink velvet
    dark = _DEPTHS & {left.lower_, right.lower_} and not all(topics(base_of(t))[:1] in ((6,), ()) for t in (one, other))
    grown = look_of(left) in ("size", "age") and len({sort_here(t) in ANIMATE for t in (one, other)}) > 1
    shown = [n for t, n in ((left, one), (right, other)) if not _is_worn(t)]  # clothes have any colour
    fits = all(_may_look(a, n, corpus) for a in (left, right) for n in shown)
    return "" if fits and not (mixed or dark or grown) else "they are not said of both things"


def _is_worn(colour: Any) -> bool:
    """Return True for a colour that somebody wears, as in `a woman in red` or `who wears white`."""
    return colour.dep_ == "pobj" or base_of(colour.head) == "wear"


def are_told_apart(scene: ParsedScene, one: Any, other: Any) -> bool:
    """Return True if the caption tells two things of the same name apart without their attributes. They may differ in
    number or in the words after them, or one may do something to the other that is not mutual, such as chase it.
    """
    if (one.tag_ == "NNS") != (other.tag_ == "NNS" or other.lower_ == "ones"):
        return True
    doc = one.doc
    contents = [[w.lower_ for c in t.rights if c.lower_ == "of" for w in c.subtree] for t in (one, other)]
    if all(contents) and contents[0] != contents[1]:
        return True  # a bottle of oil, a bottle of vinegar
    if joined(one, other) or all(
        t.tag_ in ("CC", ",", ":", "DT", "JJ", "JJR", "NN", "CD") for t in doc[one.i + 1 : other.i]
    ):
        ends = [_told_after(t) for t in (one, other)]
        return bool(ends[0] and ends[1]) and ends[0] != ends[1]
    links = [f.name for f, *_ in scene.between(one, other)]
    if links:
        return not all(is_symmetric(name) for name in links)
    between = [t for t in doc[one.i + 1 : other.i] if t.tag_[:2] in ("VB", "IN") and t.dep_[:3] != "aux"]
    holders = [_holder(scene, t) for t in (one, other)]
    if holders[0] is not None and holders[1] is not None and holders[0] != holders[1]:
        same = base_of(holders[0]) == base_of(holders[1])
        return not same or are_told_apart(scene, *holders)
    return any(not is_symmetric(lemma(t.text, t.tag_)) and t.lower_ not in ("in", "with", "of") for t in between)


def _told_after(noun: Any) -> tuple[str, ...]:
    """Return the words after a noun that may describe it, up to the next punctuation mark or conjunction."""
    words = []
    for t in noun.doc[noun.i + 1 :]:
        if t.is_punct or t.tag_ == "CC":
            break
        words.append(t.lower_)
    return tuple(words)


def is_symmetric(name: str) -> bool:
    """Return True if a verb or relation is symmetric: if `A meets B` is true, `B meets A` is true as well."""
    word = name.removeprefix("is ")
    alike = any(is_reciprocal(word, p) for p in ("", "with", "to"))
    even = (
        "with",
        "is with",
        "and",
        "against",
        *frames()["mutual"],
        *frames()["near"],
        "look",
        "stand",
        "sit",
        "run",
        "walk",
    )
    return alike or word in even or name in even or word in ("alongside", "close to", "next", "talk", "play")


def _holder(scene: ParsedScene, thing: Any) -> Any | None:
    """Return the thing that wears or has `thing`, or is with it; None if there is none."""
    for fact, role in scene.facts_of(thing):
        if role == "ground" and fact.name in ("wear", "have", "own", "is in", "in", "with", "is with"):
            return next((scene.doc[i] for i in sorted(fact.fillers("figure"))), None)
    return None


def _is_doubled(adjective: Any, span: tuple[int, int]) -> bool:
    """Return True if the noun of an adjective has a second attribute of the same dimension, as in `a gray,
    white dog`.
    """
    own, before = look_of(adjective), adjective.doc[max(0, span[0] - 2) : span[0]]
    beside = [c for c in adjective.head.lefts if c.i not in range(*span) and adjective.i < adjective.head.i]
    joint = before if any(t.lower_ in ("and", ",") for t in before) and before[0].tag_[:2] != "NN" else ()
    return own != "" and any(look_of(c) == own for c in (*beside, *joint))


def _may_look(attribute: Any, noun: Any, corpus: WordCounts) -> bool:
    """Return True if a noun could have an attribute that the caption gives to another noun. Man-made things can have
    any colour and material; for people and animals, `may_be` decides.
    """
    base, look = base_of(noun), look_of(attribute)
    senses = topics(base)
    made = sort_here(noun) in MADE or 6 in senses[:3] or is_worn(base)
    made = made or base in (*frames()["rigid"], *frames()["fittings"])
    if sort_here(noun) in ANIMATE:
        return may_be(attribute.lower_, noun, corpus)
    if base in things()["inborn"] or (not made and is_name(f"{attribute.lower_} {base}")):  # `red onion`
        return False
    if base in frames()["hairs"]:
        return attribute.lower_ in frames()["hair_colours"]
    if look in ("material", "fabric", "pattern"):
        return made or (look == "pattern" and senses[:1] == (27,)) or sort_here(noun) == "place"
    if look == "colour" and base in ("background", "backdrop"):
        return True
    if look == "colour" and (senses[:1] in ((15,), (17,)) or is_above("produce", base)):
        return False  # a black landscape, white apples
    if look == "colour" and not made and senses[:1] not in ((13,), (20,), ()):
        return False  # a blue field
    return look in ("colour", "shape", "") or attribute.tag_ in ("JJR", "JJS") or may_be(attribute.lower_, noun, corpus)


def described(adjective: Any) -> Any | None:
    """Return the noun that an adjective describes, whether it stands before the noun, after `is`, or after `in`; None
    if there is no such noun.
    """
    doc, i = adjective.doc, adjective.i
    if adjective.dep_ == "pobj" and adjective.head.lower_ in ("in", "of"):  # `a cyclist in red`
        before = doc[max(0, adjective.head.i - 1)]  # whatever the parse attaches it to
        return before if before.tag_[:2] == "NN" or before.lower_ in _ONE else None
    if i + 1 < len(doc) and doc[i + 1].lower_ in _ONE:
        return doc[i + 1]
    if (noun := _noun_after(adjective)) is not None:
        return noun
    subjects = [c for c in adjective.head.lefts if c.dep_ == "nsubj"] if adjective.dep_ == "acomp" else []
    if subjects:
        return subjects[0] if len(subjects) == 1 else None
    first = attribute_span(adjective)[0]
    if first > 1 and doc[first - 1].text == "," and doc[first - 2].tag_[:2] == "NN":  # boots, olive green with
        return doc[first - 2]
    nominal = i > 0 and doc[i - 1].lower_ == "the" and adjective.tag_ in ("JJR", "JJS")  # the older of the two
    return adjective if nominal or _is_somebody(adjective) else None


def _noun_after(modifier: Any) -> Any | None:
    """Return the last of the nouns directly after a modifier, found without the parse; None if no noun follows."""
    noun = None
    for t in modifier.doc[modifier.i + 1 :]:
        frisbee = t.tag_ == "NNP" and kind_of(t.lower_) and not t.nbor(-1).text[:1].isupper()
        unread = t.tag_[:2] == "VB" and noun is not None and not knows_verb(lemma(t.text, t.tag_))  # floorboards
        if t.tag_ in ("NN", "NNS") or unread or (t.tag_ == "NNP" and t.is_lower and noun is None) or frisbee:
            noun = t
        elif (
            noun is not None
            or t.tag_ not in ("JJ", "VBN", "VBG", "CD", "HYPH", "CC", "NNP", ",")
            or (t.tag_ in ("CC", ",") and t.nbor(1).tag_ not in ("JJ", "VBN"))
        ):
            break
    return noun


def attribute_span(adjective: Any) -> tuple[int, int]:
    """Return the span [start, end) of an adjective and the words that refine it, as in `dark blue` and `black and
    white`.
    """
    doc, start, end = adjective.doc, adjective.i, adjective.i + 1
    own = {
        c.i for c in adjective.subtree if c.dep_ in ("conj", "cc", "advmod", "amod", "npadvmod") or c.text in ("-", ",")
    }
    shades = set(frames()["shades"])
    if _is_side(adjective) or adjective.tag_ in ("JJR", "JJS"):
        return start, end
    while start and (
        start - 1 in own
        or doc[start - 1].lower_ in shades
        or (doc[start - 1].text == "-" and start > 1)
        or (look_of(adjective) == "colour" and _names_colour(doc[start - 1].lower_))
    ):
        start -= 1 + (doc[start - 1].text == "-")  # `wine-red`
    while end in own or (end < len(doc) and end == adjective.i + 1 and dimension_of(doc[end].lower_) == "colour"):
        end += 1
    return start, end - (doc[end - 1].text in (",", "-"))
