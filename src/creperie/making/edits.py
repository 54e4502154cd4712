"""Replacement edits of a caption, proposed generously from its parse and the word lists. Whether the edited caption is
false and plausible is judged later, in the same way for all kinds of edits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from creperie.lang import (
    SUBJECTS,
    age_of,
    basic_colour,
    dimension_of,
    facts,
    gender_of,
    in_one_group,
    in_other_gender,
    is_above,
    is_mass,
    is_worn,
    kind_of,
    listed_for,
    nouns_of,
    numbered,
    open_wordnet,
    things,
)
from creperie.making.atoms import (
    attributes,
    base_of,
    dependents,
    has_of,
    is_compound_head,
    look_of,
    name_words,
    named,
    objects,
    sort_of,
    vague_nouns,
)
from creperie.making.classes import class_mates
from creperie.making.corpus import WordCounts
from creperie.making.phrases import lacks_determiner
from creperie.making.plausible import (
    ANIMATE,
    MADE,
    fits_only_old,
    frames,
    is_explained,
    is_furnished,
    may_both_hold,
    named_noun,
    other_states,
)
from creperie.making.verbs import listed, topics
from creperie.making.wording import reworded

#: WordNet's lexicographer files of what is seen: animals, artefacts, bodies, food, objects, people, plants, places.
_SEEN = frozenset((5, 6, 8, 13, 17, 18, 20, 15))
_SINGULAR = frozenset(("a", "an", "one", "each", "every"))


@dataclass(frozen=True)
class CaptionEdit:
    """A caption with one change."""

    text: str
    change: str  #: the edit in words: "dog → cat"
    place: int  #: the token that was changed
    pair: tuple[Any, Any] | None = None  #: the two tokens that were swapped
    refused: str = ""  #: why it is not made, although the words for it are there
    word: str = ""  #: the word at `place`, if it is the only one that changed
    told: str = ""  #: why a swap is false, if the words around it tell
    old: Any = None  #: the word that was replaced; with it, plausibility is judged by `plausible`


def replaced(doc: Any, span: Sequence[Any], new: str) -> CaptionEdit:
    """Return the edit that replaces the words of a span by `new`."""
    first = span[0]
    begins = first.text[:1].isupper() and not (first.i and first.text.isupper())  # not after `a TV`
    fitted = new[:1].upper() + new[1:] if begins else new
    changes = {t.i: "" for t in span} | {first.i: fitted}
    word = fitted if len(span) == 1 and " " not in new else ""
    change = f"{' '.join(t.text for t in span)} → {new}"
    return CaptionEdit(reworded(doc, changes), change, first.i, word=word, old=span[-1])


def scene_of(doc: Any, without: int = -1) -> list[str]:
    """Return the nouns and verbs of a caption, leaving out the token with the index `without`."""
    content = (t for t in doc if t.tag_[:2] in ("NN", "VB") and t.dep_ not in ("aux", "auxpass") and t.i != without)
    return [t.lower_ for t in content if t.text.isalpha()]


# -- things ----------------------------------------------------------------------------------------------------------


def other_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that replace an object by another thing of the same class."""
    bases = [base_of(t) for t in doc]
    tied = {
        kind  # a pronoun or a beard reveals the gender; few animals fly, bark or catch
        for kind, revealing in (("person", "gendered"), ("animal", "one_sided"))
        if any(t.lower_ in frames()[revealing] for t in doc)
    }  # for a class, its links tell what its members do
    for noun in objects(doc):
        there = any(c.dep_ == "expl" for c in noun.head.lefts)
        if (noun.dep_ == "attr" and not there) or any(_refers(t, noun) or _refers(noun, t) for t in doc if t != noun):
            continue
        if _is_bound_noun(noun):
            continue
        base, span = bases[noun.i], [noun]
        others = rivals(base) if kind_of(base) not in tied else ()
        if _is_joint(noun):
            base, span, others = named(noun), [*name_words(noun), noun], ()
            if not _is_plain_name(span):
                continue
        revealed = any(t.lower_ in frames()["one_sided"] for t in doc if t != noun.head and t.head != noun)
        mates = class_mates(base) if kind_of(base) != "animal" or not revealed else ()
        if noun.lower_ in frames()["paired"]:
            mates = ()
        if "person" in tied:
            mates = tuple(w for w in mates if not gender_of(w))
        for new in _fitting(noun, base, dict.fromkeys([*others, *mates]), bases):
            apart = new in mates and (len(span) > 1 or not in_one_group("same", base, new))
            told = "another thing of its class" if apart else ""
            one = any(c.lower_ in ("1", "single", *_SINGULAR) for c in noun.lefts)  # one sheep
            yield replace(replaced(doc, span, new if one else numbered(new, noun.tag_)), told=told)


def _fitting(noun: Any, base: str, others: Iterable[str], bases: list[str]) -> Iterator[str]:
    """Yield those of the nouns `others` that can replace `noun`, given its article and the other nouns of its caption.
    `base` is the dictionary form of `noun`, and `bases` holds the dictionary forms of all words in the caption.
    """
    doc = noun.doc
    things_said = {base for t, base in zip(doc, bases) if t.tag_ in ("NN", "NNS")}
    beside = [c.lower_ for c in dependents(noun, "amod", "det", "nummod", "poss")]
    paired = set() if _SINGULAR.isdisjoint(beside) else set(frames()["paired"])  # excludes `a green glasses`
    if "kitchen" in (base, *class_mates(base)) and is_furnished(doc):
        return  # with a toilet
    aged = any(w in ("little", "small", "tiny") or dimension_of(w) == "age" for w in beside)
    bare = noun.tag_ == "NN" and noun.dep_ in ("dobj", "pobj") and lacks_determiner(noun)
    bare = bare and any(t.dep_ == "det" for t in doc)  # porridge and a glass of milk
    for new in others:
        if may_both_hold(noun, new) or fits_only_old(noun, new):
            continue
        if new in bases or new in ("child", "kid", *paired):
            continue
        if any(is_above(t, new) for t in things_said):
            continue  # knives, where there is cutlery
        if bare and not is_mass(new):
            continue
        if is_mass(new) != is_mass(base) and (is_mass(new) or not _SINGULAR.intersection(beside)):
            continue
        if age_of(new) != age_of(base) and aged:
            continue  # old girls
        rest = things_said - {bases[noun.i]}
        if any((new in rivals(t) and kind_of(t) not in ANIMATE) or t[:5] == new[:5] for t in rest):
            continue  # a stove beside an oven, policemen and police
        yield new


def _is_plain_name(span: Sequence[Any]) -> bool:
    """Return True if the words of a name, such as `garbage truck`, are common nouns that stand side by side."""
    first, last = span[0], span[-1]
    common = all(t.tag_ in ("NN", "NNS") and (t.is_lower or not t.i) for t in span)
    before = first.nbor(-1) if first.i else None
    after = last.nbor(1) if last.i + 1 < len(last.doc) else None
    alone = before is None or (before.tag_[:2] != "NN" and before.text != "-")
    return 1 < len(span) == last.i - first.i + 1 and common and alone and (after is None or after.tag_[:2] != "NN")


@cache
def rivals(noun: str) -> tuple[str, ...]:
    """Return the nouns that can replace a noun: its replacements in the word lists, and nouns of the same kind that it
    can replace.
    """
    kind = kind_of(noun)
    back = [w for w in (nouns_of(kind) if kind else ()) if noun in listed_for(w)]
    return tuple(dict.fromkeys([*listed_for(noun), *back]))


def _refers(token: Any, noun: Any) -> bool:
    """Return True if the token refers back to the noun, such as `another (dog)` after `a dog`, `other children` after
    `a girl`, and `the shirt` after `a shirt`.
    """
    alone = token.lower_ in ("another", "others") and not _SEEN & set(topics(base_of(token.head))[:1])
    if alone and kind_of(base_of(noun)) in ANIMATE:
        return True
    before, base = {c.lower_ for c in token.lefts}, base_of(noun)
    same = base_of(token) == base
    if before & {"another", "other"}:
        return same or kind_of(base_of(token)) == kind_of(base) != ""
    return same and token.i > noun.i and bool(before & {"the", "his", "her", "its"})


def _is_bound_noun(noun: Any) -> bool:
    """Return True if a noun cannot be replaced without changing other words. This is so for a measure, a noun joined to
    another by `of`, a noun after its usual colour (`green grass`), a noun to which a later word refers, and the name of
    something that is not there (`room for a lamp`).
    """
    doc, animate = noun.doc, kind_of(base_of(noun)) in ANIMATE
    of = has_of(noun) or (
        noun.head.lower_ == "of"
        and (noun.head.head.lower_ not in vague_nouns() or noun.head.head.lower_ in frames()["parts"])
    )  # `the scoop of a bulldozer`
    inborn = things()["inborn"].get(base_of(noun))
    described = any(t.i < noun.i and base_of(t) == base_of(noun) for t in doc) and any(
        c.lower_ == "one" for c in noun.lefts
    )  # young children play and one child falls
    described = described or any(c.lower_ in frames()["referring"] or c.lower_ == inborn for c in noun.lefts)
    single = noun.tag_ == "NN" and noun.dep_ == "dobj" and lacks_determiner(noun) and not is_mass(base_of(noun))
    if of or described or (single and animate) or listed("measures", noun.lower_):  # soldiers stand guard
        return True
    person = kind_of(base_of(noun)) == "person"
    if any(c.tag_ == "WP$" or (c.tag_ == "PRP$" and person and c.lower_ not in ("my", "our")) for c in noun.children):
        return True
    after = [t.tag_ for t in doc[noun.i + 1 : noun.i + 3]]
    if after[:1] == ["CD"] or (after == [",", "NNP"] and person):
        return True  # Visitors 2; the new sheriff, Delia Moreno
    if not animate and any(t.lower_ in ("its", "itself", "whose") for t in doc[noun.i + 1 :]):
        return True
    open_to_more = any(base_of(t) in frames()["open"] for t in noun.ancestors)  # room for a lamp, views of the sea
    likened = any(t.lower_ in frames()["unseen"] for t in noun.ancestors if t.tag_ in ("IN", "RB"))
    return open_to_more or likened or noun.head.lower_ in ("after", "before", "during", "until", "since")


def _is_joint(noun: Any) -> bool:
    """Return True if a noun forms one name with a word beside it, as in `garbage truck`. The parser may have taken a
    noun for a verb, as in `a truck stop`.
    """
    doc, near = noun.doc, noun.nbor(-1) if noun.i else None
    stuff = near is not None and look_of(near) in ("material", "fabric") and noun.dep_ != "compound"
    if not stuff and (
        is_compound_head(noun) or (near is not None and (near.tag_[:3] in ("NN", "NNP") or near.text == "-"))
    ):
        return True
    bare = near is None or near.tag_ not in ("DT", "PRP$", "JJ", "CD")
    subject = noun.tag_ == "NNS" and noun.dep_ == "nsubj" and noun.head.i == noun.i + 1  # Firefighters drag a hose
    after = noun.nbor(1).tag_ if noun.i + 1 < len(doc) else ""
    joined = near is not None and near.tag_ in ("JJ", "VBN", "VBD") and not dependents(noun, "det", "poss", "nummod")
    return (bare and not subject and after in ("NN", "NNS", "VBP", "VB")) or (joined and after in ("NN", "NNS"))


# -- attributes ------------------------------------------------------------------------------------------------------


def other_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that replace an attribute by its opposite, or by another attribute of the same dimension."""
    yield from other_genders(doc)
    said = {t.lower_ for t in doc}  # not its neighbour's: `two brown dogs and two brown dogs`
    worn = (t for t in doc if t.dep_ == "pobj" and t.head.lower_ == "in" and look_of(t) == "colour")
    for adjective in (*qualities(doc), *worn):
        noun = named_noun(adjective) or (adjective.head if adjective.dep_ in ("amod", "compound") else None)
        look, span = look_of(adjective), _shaded(adjective)
        shade = frames()["colours"].get(adjective.lower_, "")
        old = adjective.lower_ if look != "colour" else shade or basic_colour(adjective.lower_)
        groups = [g for g in facts()["opposites"] if old in g]
        made = noun is not None and (kind_of(base_of(noun)) in MADE or topics(base_of(noun))[:1] == (6,))
        if not groups and look in ("material", "fabric") and made:
            groups = [other_materials(old, look)]
        if adjective.tag_[:2] == "NN" and not (dimension_of(adjective.lower_) or is_stuff(adjective.lower_, look)):
            continue  # a wine rack, straw bags, a towel rail
        if not (stands_alone(adjective) or len(span) > 1) or dependents(adjective, "npadvmod"):
            continue  # two storeys tall
        states = other_states(adjective.lower_, noun) if noun is not None else []
        named_alike = [t for t in doc if noun is not None and t != noun and base_of(t) in (base_of(noun), "one")]
        rival = [c for t in named_alike for c in t.lefts if dimension_of(c.lower_) == dimension_of(old) != ""]
        if noun is not None and is_explained(adjective.lower_, noun):
            continue
        for new in dict.fromkeys([*states, *(w for group in groups for w in group if w != old)]):
            if new in said or rival:
                continue
            if new in states or noun is None or look == "fabric" or may_be(new, noun, corpus):
                told = "another material" if look in ("material", "fabric") and dimension_of(old) != look else ""
                told = "another state" if new in states else told
                if shade and not in_one_group("same", old, new):
                    told = "another colour"
                yield replace(replaced(doc, span, new), told=told)


def other_genders(doc: Any) -> Iterator[CaptionEdit]:
    """Yield the edit that changes the gender of all pronouns (`his` → `her`). Yield nothing unless the caption names
    exactly one person, with a noun such as `person` that does not show the gender.
    """
    people = [t for t in doc if t.tag_ in ("NN", "NNP", "NNS", "NNPS") and sort_of(t) == "person"]
    names = any(t.tag_ in ("NNP", "NNPS") and t.i for t in doc if t.dep_ in (*SUBJECTS, "dobj", "pobj", "dative"))
    told = any(gender_of(base_of(t)) or t.lower_ in frames()["gendered"][:1] + ["beard", "dress", "skirt"] for t in doc)
    pronouns = {t.i: new for t in doc if (new := in_other_gender(t))}
    both = any(t.lower_ == new for t in doc for new in pronouns.values())  # his or her
    if (
        both
        or names
        or told
        or len(people) != 1
        or people[0].tag_ != "NN"
        or not pronouns
        or people[0].i > min(pronouns)
    ):
        return
    first = doc[min(pronouns)]
    yield CaptionEdit(
        reworded(doc, pronouns), f"{first.text} → {pronouns[first.i]}", first.i, told="of the other sex", old=first
    )


def _shaded(adjective: Any) -> list[Any]:
    """Return the tokens of an adjective: the adjective itself, preceded by the word that says which shade of a colour
    it is, if there is one (`dark blue`, `matt black`).
    """
    before = adjective.nbor(-1) if adjective.i else adjective
    own = [c for c in adjective.children if c.dep_ in ("amod", "advmod", "compound", "conj")]
    shade = own == [before] or (not own and before.lower_ in frames()["shades"])
    hyphen = any(t.text == "-" for t in adjective.doc[max(0, adjective.i - 2) : adjective.i + 2])
    return [before, adjective] if look_of(adjective) == "colour" and shade and not hyphen else [adjective]


@cache
def is_stuff(word: str, look: str) -> bool:
    """Return True if a noun, in its first sense, names a colour or a material: `brass` does, `towel` does not. If
    `look` is "colour", only colours count.
    """
    net = open_wordnet()
    first = {w for s in net.senses(word, "n")[:1] for up in net.above(s)[:2] for w in up.words}
    stuff = topics(word)[:1] == (27,) or not first.isdisjoint(("fabric", "cloth", "material", "stuff"))
    return topics(word)[:1] == (7,) or (look != "colour" and stuff)


@cache
def other_materials(material: str, look: str) -> tuple[str, ...]:
    """Return the materials that can replace `material` in a thing. More general terms are left out: `wood` does not
    replace `oak`, and `metal` does not replace `brass`. If `look` is `fabric`, only fabrics are returned.
    """
    net = open_wordnet()
    above = {w for s in net.senses(material, "n")[:3] for up in (s, *net.above(s)) for w in up.words}
    if look == "fabric":
        return tuple(w for w in frames()["fabrics"] if w not in above)
    return tuple(w for w, own in frames()["materials"].items() if above.isdisjoint(own))


def qualities(doc: Any) -> list[Any]:
    """Return the descriptive adjectives, and the modifiers that parsers tag as nouns, as in `a plaid blanket` and `a
    brick wall`.
    """
    kinds, known = ("colour", "pattern", "material", "fabric", "shape"), attributes(doc)
    words = (t for t in doc if t.tag_[:2] in ("JJ", "NN") or dimension_of(t.lower_) == "pattern")
    looks = (t for t in words if look_of(t) in kinds and named_noun(t) is not None)
    states = {w for pair, _ in frames()["states"] for w in pair}
    stated = (t for t in doc if t.lower_ in states and t.dep_ in ("amod", "acomp"))
    return sorted(
        {t for t in (*known, *looks, *stated) if t.is_lower or not t.i}, key=lambda t: t.i
    )  # not `Snow White`


def stands_alone(adjective: Any) -> bool:
    """Return False if an adjective is part of a phrase such as `black and white`, `dark red` or `hot dog`,
    else True.
    """
    if dependents(adjective, "conj", "advmod", "amod") or adjective.dep_ == "conj":
        return False
    noun, own = adjective.head, dimension_of(adjective.lower_)
    beside = [c.lower_ for c in noun.lefts if c != adjective]
    doubled = not set(frames()["shades"]).isdisjoint(beside) or any(dimension_of(word) == own != "" for word in beside)
    named = not look_of(adjective) and adjective.i == noun.i - 1 and is_compound_head(noun)
    hyphen = any(t.text == "-" for t in adjective.doc[max(0, adjective.i - 1) : adjective.i + 2])  # `rice-paper`
    return not (doubled or named or hyphen)


def may_be(new: str, noun: Any, corpus: WordCounts) -> bool:
    """Return False if the word lists rule out the adjective `new` before a noun, as they rule out `pink` before `sky`;
    else True. A pair of words that occurs in the corpus is allowed.
    """
    base, dimension = base_of(noun), dimension_of(new)
    kind = kind_of(base)
    if (has_of(noun) and base in vague_nouns()) or new in frames()["half_opposites"]:
        return False
    if new in ("deserted", "empty") and any(sort_of(t) in ("person", "animal", "vehicle") for t in objects(noun.doc)):
        return False
    if dimension == "colour" and (kind == "person" or base in things()["inborn"]):
        return False
    if corpus.follows(new, noun.lower_):
        return True
    if kind == "animal" and dimension == "colour":
        return new in things()["coats"]
    if dimension == "material":
        fit = frames()["built" if kind in ("", "place") else "made"] if not is_worn(base) else ()
        return new in fit and bool(kind)  # no glass sofa, concrete tray, metal jacket
    measured = (t for n in noun.doc[:-1] if n.tag_ == "CD" for t in noun.doc[n.i + 1 : n.i + 3] if t.tag_[:2] == "NN")
    if dimension == "size" and any(is_above("unit of measurement", base_of(t), 1) for t in measured):
        return False  # a studio of 19 square metres
    if dimension == "size" and kind == "person":
        return new in ("tall", "short", "thin")
    if dimension == "age" and (age_of(base) in ("child", "baby") or new in ("young", "elderly")):
        return (kind in ANIMATE or topics(base)[:1] == (14,)) and age_of(base) not in ("child", "baby")
    seen = _SEEN | {27} if dimension in ("colour", "state", "age") else _SEEN
    return bool(kind) or not topics(base)[:2] or not seen.isdisjoint(topics(base)[:1])  # no long nap, light rain
