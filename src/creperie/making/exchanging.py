"""The things in a caption that can be moved, and exchanges of two of them, with number and articles adjusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from creperie.lang import (
    Reading,
    Stated,
    age_of,
    dimension_of,
    gender_of,
    in_case,
    in_number,
    in_other_gender,
    is_above,
    is_mass,
    is_subject,
    lemma,
    may_be_called,
    nouns_of,
    of_group,
    read,
    reagreed,
    recipient_preposition,
)
from creperie.making.atoms import base_of, dependents, has_of, look_of, name_words, named, objects, sort_of
from creperie.making.phrases import lacks_determiner, outer, span_of, verb_number
from creperie.making.plausible import ANIMATE, MADE, frames
from creperie.making.verbs import is_common, is_name, topics
from creperie.making.wording import is_role, plain, reworded, written

#: Sorts of nouns whose kind is not listed, by the file of WordNet that one of their first senses is in.
SORTS = {18: "person", 5: "animal", 6: "artefact", 13: "food", 15: "place", 17: "place", 20: "plant"}
PRONOUNS = frozenset(("he", "she", "they", "him", "her", "them", "we", "us", "i", "me"))
#: WordNet's files of what capitals also name: acts, words, groups, places, things of nature, times.
_NO_PERSON = frozenset((4, 10, 14, 15, 17, 27, 28))
_DOERS = ("er", "or", "ist", "man", "woman", "ian")
#: Marks after which a sentence or a label begins.
_STOPS = frozenset((".", "!", "?"))
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class ParsedScene:
    """A parsed caption with its reading: the things that may be moved, and what is said of each."""

    doc: Any

    @cached_property
    def reading(self) -> Reading:
        return read(self.doc)

    @cached_property
    def things(self) -> list[Any]:
        """The nouns, names and pronouns that can be moved, in order."""
        nouns = {t.i for t in objects(self.doc)}
        every = [self.doc[i] for i in sorted(self.reading.entities)]
        owners = {t.i for t in every if t.dep_ == "poss" and t.tag_ in ("NN", "NNS")}
        known = [t for t in every if t.i in nouns | owners or t.tag_ == "NNP" or t.lower_ in PRONOUNS]
        return [t for t in known if not is_tied(t)]

    def facts_of(self, thing: Any) -> list[tuple[Stated, str]]:
        return self._facts.get(thing.i, [])

    @cached_property
    def _facts(self) -> dict[int, list[tuple[Stated, str]]]:
        """The facts in which each thing takes part, with its roles, by the index of its noun."""
        every: dict[int, list[tuple[Stated, str]]] = {}
        for fact in self.reading.facts:
            for role, number in fact.roles:
                every.setdefault(number, []).append((fact, role))
        return every

    def between(self, one: Any, other: Any) -> list[tuple[Stated, str, str]]:
        """Return the facts in which both things take part with different roles, each as (fact, role of the first, role
        of the second).
        """
        own, theirs = self.facts_of(one), self.facts_of(other)
        return [
            (f, role, theirs_role) for f, role in own for g, theirs_role in theirs if f is g and role != theirs_role
        ]


def is_tied(noun: Any) -> bool:
    """Return True if the thing that a noun names cannot be moved by itself. It may be part of another thing, belong to
    another, or be described by a phrase that refers to another: `tea` in `a cup of tea`, `lawyer` in `whose lawyer`,
    `winner` in `the winner, Dalia Okonjo`.
    """
    whole = noun.head.head if noun.head.lower_ == "of" else None
    if (
        whole is not None
        and of_group(whole) != noun
        and whole.lower_ not in frames()["sides"]
        and not owns(noun, whole)
        and not is_taken(noun)
    ):
        return True  # a cup of tea; not the sleeve of a bridegroom
    if base_of(noun) in frames()["parts"] or noun.lower_ in (*frames()["around"], "sun", "moon"):
        return True
    if noun.tag_ == "NNS" and {c.lower_ for c in noun.lefts} & {"a", "an"}:
        return True
    if noun.i + 1 < len(noun.doc) and is_name(f"{noun.lower_} {noun.nbor(1).lower_}"):
        return True  # a booster shot
    around = (*noun.children, *outer(noun).children)
    owner = noun.dep_ == "poss" and owns(noun, noun.head) and bool(dependents(noun, "det"))
    names = [c for c in around if c.dep_ == "appos" and c.tag_ != "CD" and len(c) > 1]  # not `(4)`, `(R)`
    if noun.dep_ == "appos" or names or any(c.tag_ == "WP$" or (c.dep_ == "case" and not owner) for c in around):
        return True  # `the winner, Dalia Okonjo`, `whose lawyer`, `the chef's counter`
    return any(c.lower_ in frames()["unmoved"] for c in around) or (
        noun.tag_ == "NN" and lacks_determiner(noun) and not _may_be_bare(noun)
    )


def is_taken(noun: Any) -> bool:
    """Return True if a noun names somebody whose picture is being taken, as in `takes a photo of a man`, and not
    somebody whom an existing picture shows.
    """
    whole = noun.head.head
    return base_of(whole) in frames()["likenesses"] and base_of(whole.head) == "take"


def owns(noun: Any, thing: Any) -> bool:
    """Return True if a noun names the owner of a thing or body part: `the sleeve of a tailor`, `a passenger's bag`."""
    if not (noun.dep_ == "poss" or noun.head.lower_ == "of"):
        return False
    somebody = sort_here(noun) in (*ANIMATE, "name") and topics(base_of(noun))[:1] != (14,)
    base, sense = base_of(thing), topics(base_of(thing))[:1]
    body = base in frames()["parts"] or sense == (8,)
    solid = (sense in ((6,), (13,)) or sort_of(thing) in MADE) and not is_above("representation", base)
    return somebody and sort_here(thing) not in ANIMATE and (body or solid)


def _may_be_bare(noun: Any) -> bool:
    """Return True for a noun that can stand without an article: a mass noun, a name, a noun after an adjective, or a
    later noun in a list.
    """
    return is_mass(base_of(noun)) or noun.text[:1].isupper() or bool(dependents(noun, "amod")) or noun.dep_ == "conj"


def sort_here(noun: Any) -> str:
    """Return the kind of thing that a noun names in this caption, from the word lists, its first senses in WordNet and
    its role in the sentence; empty if it is unknown.
    """
    if noun.lower_ in PRONOUNS:
        return "person"
    sort, senses = sort_of(noun), topics(named(noun)) or topics(base_of(noun))
    given = "dative" in (noun.dep_, noun.head.dep_) or (
        noun.head.lower_ == "to" and recipient_preposition(base_of(noun.head.head)) is not None
    )
    if given and 18 in senses[:3] and sort != "animal":
        return "person"  # who gives something to a fan
    if noun.tag_ == "NNP" or (noun.text[:1].isupper() and not senses):
        titled = any(is_common(c.lower_) and 18 in topics(c.lower_)[:3] for c in name_words(noun))
        titled = titled and not (is_common(noun.lower_) and topics(noun.lower_)[:1] != (18,))  # `Haldane Castle`
        if not titled and sort in ("", "person") and _follows_the(noun):
            return ""
        return "person" if titled else sort or ("name" if _names_somebody(noun) else "")
    if sort and (sort != "person" or base_of(noun) in nouns_of("person") or not {5, 6} & set(senses[:3])):
        return sort
    acts = is_subject(noun) or noun.dep_ == "dative" or noun.head.dep_ in ("agent", "dative")
    speaks = noun.dep_ == "nsubj" and base_of(noun.head) not in frames()["resting_things"]
    if senses[:1] == (18,) and (speaks or not {5, 6} & set(senses[: 3 if dependents(noun, "compound") else 2])):
        return "" if 13 in senses[:2] else "person"  # a queen is an insect, too; no game controller, no hotdog
    unknown = acts and not senses and not topics(noun.lower_) and base_of(noun).endswith(_DOERS)
    if unknown or (acts and 18 in senses[:3] and not {5, 6, 13} & {*senses[:2]}):
        return "person"  # a midfielder
    if (
        senses[:1] == (14,)
        and not has_of(noun)
        and (noun.head.lower_ not in ("on", "in", "at") or noun.lower_ == "police")
    ):
        base = base_of(noun)  # the police, not a queue, a swarm or a board
        social = is_above("social group", base) and not is_above("animal group", base) and 6 not in topics(base)[:3]
        return "person" if social else ""
    return SORTS.get(senses[0], "") if senses and 18 not in senses[:2] else ""  # a trawler is a ship or a man


def _names_somebody(noun: Any) -> bool:
    """Return True if a noun is the last word of a person's name: no article and no word of place (such as `in`) stands
    before it, and its words are not known as common nouns.
    """
    doc, start = noun.doc, span_of(noun)[0]
    before = doc[start - 1].lower_ if start else ""
    if before == "of" and doc[start - 2].lower_ in ("ahead", "front"):
        before = ""
    whole = doc[_name_start(noun) : noun.i + 1].text.lower()
    acts = is_subject(noun) and _name_start(noun) < noun.i
    full = _name_start(noun) < noun.i and not any(is_common(t.lower_) for t in doc[_name_start(noun) : noun.i + 1])
    known = {t for name in (whole, noun.lower_)[: 2 - full] for t in topics(name)[:1]}  # Luis Vela; Casper is a place
    known -= _NO_PERSON if acts else set()  # `Jo Marsh argues`
    after = doc[noun.i + 1] if noun.i + 1 < len(doc) else None
    ends = acts or after is None or (after.tag_[:2] not in ("NN", "JJ", "PO") and after.text != "-")
    named = before not in frames()["place_names_after"] or (full and before in ("on", "over", "off"))
    named = named and not noun.is_upper and not dependents(noun, "det")
    return named and ends and not known & _NO_PERSON and not noun.is_lower


def _follows_the(noun: Any) -> bool:
    """Return True if a name follows `the`, as names of places often do: `the Col de Marsan`."""
    doc, start = noun.doc, noun.i
    while (
        start
        and doc[start - 1].lower_ != "the"
        and (doc[start - 1].lower_ in frames()["name_particles"] or doc[start - 1].is_title)
    ):
        start -= 1
    return 0 < start < noun.i and doc[start - 1].lower_ == "the"


def _name_start(noun: Any) -> int:
    """Return the index of the first word of the name that ends with `noun`: for `Marler` in `the player Joe Marler`,
    the index of `Joe`.
    """
    start: int = noun.i
    while start and noun.doc[start - 1].tag_ == "NNP":
        start -= 1
    return start


def exchanged_names(left: Any, right: Any) -> str:
    """Return the caption with two names exchanged, each in the grammatical number of its new place; empty if one does
    not fit there.
    """
    spans = [_name_span(t) for t in (left, right)]
    if any(t.tag_ not in ("NN", "NNS") for t in (left, right)) or not all(
        _fits_modifiers(*p) for p in _both(left, right)
    ):
        return ""
    if any(has_of(t) and sort_here(t) == "person" for t in (left, right)):
        return ""  # the winner of a race
    if any(t.text == "-" or (t.tag_ == "NN" and _may_be_action(t)) for s in spans for t in left.doc[slice(*s)]):
        return ""
    before = (t for start, end in spans for t in left.doc[start : end - 1] if t.tag_ == "NNS")
    if any(not is_name(f"{t.lower_} {base_of(t.nbor(1))}") for t in before):
        return ""  # `greets wife`, read as a name
    if any(_is_crossed(outer(t)) for t in (left, right)):
        return ""
    if left.tag_ == right.tag_ and is_definite(left) != is_definite(right) and not _is_introduced(left):
        return ""  # `the mayor` stays the one that is known
    if sort_of(left) == "clothing" and may_be_called(base_of(left), base_of(right)):
        return ""  # some people call a sweater a shirt
    changes: dict[int, str] = {}
    for (here, span), (there, _) in zip(zip((left, right), spans), zip((right, left), spans)):
        words = " ".join(plain(t) for t in left.doc[slice(*_name_span(there))])
        plural = here.tag_ == "NNS"
        changes |= dict.fromkeys(range(*span), "")
        changes[span[0]] = in_number(words, plural) if plural != (there.tag_ == "NNS") else words
    return reworded(left.doc, changes | _other_pronouns(left, right))


def _may_be_action(word: Any) -> bool:
    """Return True if a word that was read as part of a name may instead describe an action: `a kneeling woman`."""
    after = word.nbor(1) if word.i + 1 < len(word.doc) else word
    return word.lower_.endswith("ing") and after.tag_[:2] == "NN" and not is_name(f"{word.lower_} {base_of(after)}")


def is_definite(noun: Any) -> bool:
    return any(c.lower_ in ("the", "this", "that", "these", "those") for c in outer(noun).lefts)


def _is_introduced(noun: Any) -> bool:
    """Return True if a noun follows `there is`, after which `the` cannot stand."""
    return any(c.dep_ == "expl" for c in outer(noun).head.children)


def _both(left: Any, right: Any) -> tuple[Pair, Pair]:
    return (left, right), (right, left)


def _fits_modifiers(here: Any, there: Any) -> bool:
    """Return True if the modifiers before the noun `here` could also stand before the noun `there`."""
    alike = sort_here(here) == sort_here(there)
    name = range(*_name_span(here))
    for word in (c for c in here.lefts if c.dep_ in ("amod", "nmod", "compound") and c.i not in name):
        known = dimension_of(word.lower_)
        aged = known == "size" and age_of(base_of(here)) != age_of(base_of(there))
        if aged and word.lower_ in ("little", "small", "tiny"):
            return False  # a little woman
        general = (
            known in ("age", "size")
            or (word.lower_ in ("lone", "single") and not name_words(there))
            or (known == "colour" and sort_here(there) in (*MADE, "animal", "artefact"))
        )
        seen = word.tag_ in ("VBG", "VBN") and base_of(word) in frames()["static"]
        if not alike or word.lower_ in frames()["gendered"] or not (general or known not in ("", "material") or seen):
            return False
    return not any(c.dep_ == "poss" for c in here.lefts)


def _other_pronouns(left: Any, right: Any) -> dict[int, str]:
    """Return how pronouns change (token index → text) if a man and a woman change places: `he` becomes `she`, and the
    reverse.
    """
    genders = {gender_of(base_of(t)) for t in (left, right)}
    return {t.i: new for t in left.doc if (new := in_other_gender(t))} if genders == {"m", "f"} else {}


def owners(noun: Any) -> list[Any]:
    """Return the possessive pronouns before a noun, such as `her` in `her brother`."""
    return [c for c in noun.lefts if c.tag_ == "PRP$"]


def exchanged_phrases(left: Any, right: Any, *, always: bool = False) -> str:
    """Return the caption with two noun phrases exchanged. Verbs are made to agree, and pronouns take the case of their
    new place.

    The result is empty if one of the phrases does not fit into the place of the other. It is also empty if the phrases
    differ only in their nouns, since exchanging the nouns then gives the same caption. With `always`, the caption is
    written in these cases too.
    """
    doc, spans = left.doc, (span_of(left), span_of(right))
    if any(_is_torn(doc, *s) for s in spans):
        return ""
    if _is_introduced(left) and is_definite(right):
        return ""
    counted = [t.tag_ in ("NN", "NNP")[: 1 + (t.i == 0)] and not is_mass(base_of(t)) for t in (left, right)]
    counted = [own and sort_here(t) != "name" for own, t in zip(counted, (left, right))]
    named = left.tag_ == right.tag_ == "NNP"
    bare = [alone and lacks_determiner(t) and not named for alone, t in zip(counted, (left, right))]
    if bare[0] != bare[1]:
        return ""  # `a boy chases little girl`
    if any(base_of(c) in frames()["static"] for t in (left, right) for c in t.lefts):
        return ""  # `a standing man`, who may be sitting in the other place
    words = [
        [t.lower_ for t in doc[a:b] if t.i not in range(*_name_span(t0))] for (a, b), t0 in zip(spans, (left, right))
    ]
    same = [["a" if w == "an" else w for w in some] for some in words]
    whole = outer(left), outer(right)
    plural = [is_many(t) for t in whole]
    if plural[0] != plural[1] and (_tells_many(doc) or not all(map(_agrees, whole))):
        return ""
    names = all(t.tag_ in ("NN", "NNS") for t in (left, right)) and plural[0] == plural[1]
    if any(map(_is_crossed, whole)):
        return ""
    if same[0] == same[1] and names and not always:
        return ""
    changes: dict[int, str] = {}
    for here, number in zip(whole, reversed(plural)):
        alone = here.dep_ != "conj" and not dependents(here, "conj")
        if alone and number != plural[whole.index(here)]:
            changes |= reagreed(here, number)
    for here, there in _both(left, right):
        if here.lower_ in PRONOUNS:
            changes[here.i] = in_case(plain(here), is_subject(outer(there)))
        elif here.tag_ == "NNP" or sort_here(here) == "name":
            changes |= {
                t.i: plain(t) if is_role(t) else t.text
                for t in doc[slice(*span_of(here))]
                if t.tag_ == "NNP" or t == here
            }
    return exchange_spans(doc, *spans, repair=True, changes=changes | _other_pronouns(left, right))


def _is_torn(doc: Any, start: int, end: int) -> bool:
    """Return True if moving the words from `start` to `end` would separate them from a neighbouring word that may
    belong to the same phrase, even if the parse does not say so. If `Plum` is moved out of `shooting guard Plum`, the
    title stays behind.
    """
    before = doc[start - 1].tag_ if start else ""
    after = doc[end].tag_[:2] if end < len(doc) else ""
    titled = before[:2] == "VB" and doc[start - 1].tag_ != "VBG" and doc[start].tag_ == "NNP"
    if titled and topics(doc[start - 1].lower_)[:1] == (18,):
        return True  # `Bulls quarterback Cal Stone`, whatever the parse takes for a verb
    if after == "," and any(t.tag_ == "NNP" and "appos" in (t.dep_, t.head.dep_) for t in doc[end + 1 : end + 2]):
        return True  # `the speaker of the house, Anna Falk`
    return (
        before in ("NN", "NNS", "NNP", "JJ", "VBG", "CD", "DT", "POS") and doc[start].tag_ not in ("DT", "PRP", "PRP$")
    ) or after == "NN"


def is_many(noun: Any) -> bool:
    """Return True if a noun is in the plural or stands for several people. Nouns that are joined to it do not count."""
    several = ("they", "them", "we", "us", "police", "people", "faithful")
    return noun.lower_ in frames()["many"] or noun.tag_ in ("NNS", "NNPS") or noun.lower_ in several


def _is_crossed(noun: Any) -> bool:
    """Return True if a noun and its verb differ in number: `her team drink`, `a group of kids are waving`."""
    many = verb_number(noun.head) if noun.dep_ in ("nsubj", "nsubjpass") and not dependents(noun, "conj") else None
    return many is not None and many != is_many(noun)


def _tells_many(doc: Any) -> bool:
    """Return True if a caption describes something that takes several people or things, such as standing in a circle,
    queuing or sharing something.
    """
    return any(t.lower_ in frames()["of_many"] or lemma(t.text, "VBZ") in frames()["of_many"] for t in doc)


def _agrees(noun: Any) -> bool:
    """Return True if it is known which verb must agree with this noun, or that no verb has to."""
    if is_subject(noun):
        return bool(noun.head.tag_[:2] == "VB") or noun.dep_ == "conj"
    return noun.dep_ in ("dobj", "pobj", "dative", "conj", "attr", "poss") or (
        noun.i + 1 < len(noun.doc) and noun.doc[noun.i + 1].tag_ in ("IN", "VBG", "VBN", ",", "CC")
    )


def _name_span(noun: Any) -> tuple[int, int]:
    """Return the span [start, end) of a noun and the words before it that form one name with it."""
    start = noun.i
    looks = (dimension_of(c.lower_) or look_of(c) == "shape" for c in name_words(noun))  # `metal fence`
    own = {t.i for c, look in zip(name_words(noun), looks) if not look for t in c.subtree}
    while start - 1 in own:
        start -= 1
    return start, noun.i + 1


def exchange_spans(
    doc: Any, left: tuple[int, int], right: tuple[int, int], *, repair: bool, changes: dict[int, str] | None = None
) -> str:
    """Return the caption with two spans of words exchanged. The spaces between words stay where they are. With
    `repair`, articles and the first letter are adjusted. `changes` maps the indices of other tokens to new texts.
    """
    (a, b), (c, d) = left, right
    order = [*range(a), *range(c, d), *range(b, c), *range(a, b), *range(d, len(doc))]
    blanks = {d - 1: doc[b - 1].whitespace_, b - 1: doc[d - 1].whitespace_}
    new = changes or {}
    moved = {*range(a, b), *range(c, d)} if repair else set()
    pieces = [
        (new.get(i) or (plain(doc[i]) if i in moved else doc[i].text), blanks.get(i, doc[i].whitespace_)) for i in order
    ]
    if repair and doc[c - 1].text in _STOPS and doc[c].text[:1].isupper():
        first, blank = pieces[k := order.index(a)]
        pieces[k] = (first[:1].upper() + first[1:], blank)
    return written(pieces, like=doc.text if repair else "")
