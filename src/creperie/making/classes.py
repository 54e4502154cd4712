"""Classes of things that people use, keep or meet in the same way, such as drinks or seats: one may replace another.

A class has members, which may replace each other. It also covers the hyponyms of some nouns in WordNet; a member may
replace these, too. A replacement is plausible if everything that the caption says of the thing could also be said of
the new one. For this, the class lists the verbs and prepositions that fit all its members. In addition, WordNet must
not define the old noun by another word of the caption, or that word by the old noun.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from creperie.lang import age_of, common_senses, excludes, gender_of, is_above, kind_of, lemma, open_wordnet, words
from creperie.making.atoms import base_of, look_of, name_words, named
from creperie.making.data import read_data
from creperie.making.verbs import is_name, topics

#: WordNet's files of what a class may hold: animals, artefacts, communication (books), food, places, people, plants.
_SEEN = frozenset((5, 6, 10, 13, 15, 17, 18, 20, 27))
_ARTEFACT, _LIVING, _FOOD = 6, (5, 18), 13
_ALIVE = frozenset(("person", "animal"))


@dataclass(frozen=True)
class ThingClass:
    """A class of things that may replace each other (see the module's text)."""

    members: tuple[str, ...]
    above: frozenset[str]  #: nouns of WordNet; what is below one of them is in the class
    links: frozenset[str]  #: verbs and prepositions that fit all members; `*` stands for any
    without: frozenset[str] = frozenset()  #: nouns of WordNet; what is below one of them is not in the class

    def covers(self, noun: str) -> bool:
        own, other = topics(self.members[0])[:1], topics(noun)[:1]
        alike = own == other or {*own, *other}.isdisjoint(_LIVING)  # a snowboarder is no slipper
        return alike and not self.above.isdisjoint(_above(noun)) and self.without.isdisjoint(_above(noun))

    def fits(self, links: set[str]) -> bool:
        return "*" in self.links or not self.links.isdisjoint(links)


@cache
def classes() -> tuple[ThingClass, ...]:
    """Return the classes of classes.json, with named lists of verbs and prepositions replaced by their words."""
    table = read_data("classes")
    return tuple(
        ThingClass(
            tuple(row["to"].split("|")),
            frozenset(row["of"].replace(" ", "_").split("|")),
            frozenset(w for name in row["by"].split("|") for w in table["links"].get(name, [name])),
            frozenset(row.get("not", "").replace(" ", "_").split("|")),
        )
        for row in table["classes"]
    )


@cache
def _above(noun: str) -> frozenset[str]:
    """Return the words of a noun's first sense in WordNet and of all its hypernyms, if this sense is something to see.
    The set is also empty for a noun such as `coaster` or `grinder`, whose first sense is a living thing or food but
    which also names a thing.
    """
    net = open_wordnet()
    senses = common_senses(noun)[:3]
    unsure = bool(senses) and senses[0].topic in (*_LIVING, _FOOD)
    first = senses[:1] if not unsure or _ARTEFACT not in [s.topic for s in senses] else ()
    return frozenset(w for sense in first if sense.topic in _SEEN for s in (sense, *net.above(sense)) for w in s.words)


@cache
def classes_of(noun: str) -> tuple[ThingClass, ...]:
    """Return the classes that list a noun as a member or, if none does, those that cover its hypernyms in WordNet. A
    noun that is a hypernym of a member, such as `building`, belongs to no class.
    """
    listed = tuple(c for c in classes() if noun in c.members)
    if " " in noun and not is_name(noun):
        return classes_of(noun.split()[-1])
    if listed or age_of(noun) or gender_of(noun):
        return listed
    return tuple(c for c in classes() if c.covers(noun) and not any(is_above(noun, w, 9) for w in c.members))


@cache
def class_mates(noun: str) -> tuple[str, ...]:
    """Return the nouns of the same class that may replace a noun, without those that may name the same thing.

    >>> class_mates("violin")[:2], "sofa" in class_mates("couch")
    (('guitar', 'trumpet'), False)
    """
    mates = dict.fromkeys(w for c in classes_of(noun) for w in c.members)
    return tuple(w for w in mates if excludes(noun, w))


def is_class_mate(old: Any, new: str) -> bool:
    """Return True if the noun `new` can replace the token `old`: both are of one class, and everything that the caption
    says of the old thing could also be said of the new one.
    """
    base, links = named(old), links_of(old)
    if not links.isdisjoint(read_data("frames")["unseen_acts"]):
        return False  # officials said
    fit = [c for c in classes_of(base) if new in c.members and c.fits(links)]
    if not any(all(_is_free(t, new, c) for t in old.children) for c in fit):
        return False
    own = {old, *name_words(old)}
    others = [base_of(t) for t in old.doc if t not in own and t.tag_[:2] in ("NN", "VB")]
    return not any(needs(word, name) or needs(name, word) for word in others for name in {base, base_of(old)})


def _is_free(word: Any, new: str, own: ThingClass) -> bool:
    """Return True if a word that describes a thing, such as a colour or a size, could also describe the thing `new` of
    the same class.
    """
    if word.dep_ in ("acl", "relcl"):
        return own.fits({base_of(word)})
    if word.dep_ == "appos" or (word.lower_ in ("with", "without") and not _ALIVE & {kind_of(new)}):
        return False  # a toilet with a seat
    return word.dep_ != "amod" or "soldier" in own.members or not _is_peculiar(word, new)


def _is_peculiar(modifier: Any, new: str) -> bool:
    """Return True if a modifier may not fit the thing `new`. For example, `armoured` in `an armoured truck` does not
    fit most vehicles.
    """
    look = look_of(modifier)
    if look in ("material", "fabric", "shape"):
        return new not in read_data("frames")["stuffs"].get(modifier.lower_, "").split("|")
    return not look or (look == "state" and modifier.lower_ not in ("wet", "dry", "clean", "dirty", "broken"))


def links_of(noun: Any) -> set[str]:
    """Return the words that link a noun to the rest of its caption: the verb, or the preposition and, in some cases,
    the word on which it depends. A noun that is joined to another by `and` has the links of that noun. A noun that
    nothing links to other words has the link `shown`.
    """
    first = noun
    while first.dep_ == "conj" and first.head.tag_[:2] == "NN":
        first = first.head
    if first.dep_ != "pobj":
        return {base_of(first.head) if first.dep_ != "ROOT" else "shown"}
    link = first.head
    beyond = {base_of(link.head)} if link.dep_ == "agent" or link.lower_ in ("at", "for", "of", "to") else set()
    return beyond if link.dep_ == "agent" else {link.lower_} | beyond


@cache
def needs(word: str, other: str) -> bool:
    """Return True if WordNet defines a noun or verb by another word, such as `saddle` by `horse`.

    >>> needs("stable", "horse"), needs("table", "horse"), needs("surgeon", "surgery")
    (True, False, True)
    """
    return other in _defining(word) and other not in read_data("classes")["plain"]


@cache
def _defining(word: str) -> frozenset[str]:
    """Return the words in the definitions of a word's first two senses as a noun and as a verb, in dictionary form."""
    net = open_wordnet()
    glosses = (s.gloss.partition('"')[0] for tag in "nv" for s in net.senses(word, tag)[:2])
    found = {w for gloss in glosses for w in words(gloss)}
    return frozenset(lemma(w, tag) for w in found for tag in ("NNS", "VBZ", "VBG"))
