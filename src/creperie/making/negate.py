"""Negated captions, in the four forms of CREPE.

negate-relation   A dog does not chase a cat.      (as published: A dog not chases a cat.)
negate-exists     There is no dog chasing a cat.   (as published: There is no a dog chases a cat.)
negate-append     A dog chases a cat. There is no cat.
negate-something  A dog chases something. There is no cat.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from creperie.lang import inflected, kind_of, lemma, mended, negations, open_wordnet
from creperie.making.atoms import (
    actions,
    base_of,
    dependent,
    dependents,
    objects,
    phrase,
    prepositions,
    vague_nouns,
)
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.options import MakerOptions
from creperie.making.pipeline import ParsedMaker
from creperie.making.source import Captions, SourceCaption
from creperie.making.wording import plain, reworded, spaced, written

FINITE = ("VBZ", "VBP", "VBD")
_DO = {"VBZ": "does", "VBP": "do", "VBD": "did"}
_END = " .!?,;:"
#: WordNet's lexicographer files of things that can be seen (artifacts, food, objects, plants), and of parts of bodies.
_THINGS, _BODY = (6, 13, 17, 20), 8
#: The negated caption, and the change in words.
Negated = tuple[str, str]


def negate(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """Return the maker `rules:negate`."""
    return ParsedMaker(name, options, propose_negations)


def propose_negations(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """Return a proposal with one candidate for each form of negation that the caption allows."""
    if negations(source.text) and not options.as_published:
        return Proposal(skipped="it denies something already")
    if not options.as_published:
        doc = mended(doc, options.parser)
    rng = dice_for(options.seed, "rules:negate", source.id)
    group = "negate" if options.as_published else ""
    candidates = []
    for kind, form in FORMS.items():
        if negated := form(doc, rng, options.as_published):
            text, edit = negated
            candidates.append(Candidate(source.id, text, "negative", kind, "rules:negate", edit, group))
    return Proposal(candidates)


# -- not before the verb or relation ---------------------------------------------------------------------------------


def negate_relation(doc: Any, rng: Random, as_published: bool) -> Negated | None:
    """Return the caption with `not` before a verb or a preposition; None if it has neither, or is already negated.

    Unless `as_published`, the main verb (or the participle in `a dog running`) is negated, with an auxiliary as English
    requires: `does not splash in the water`.
    """
    if any(t.dep_ == "neg" for t in doc):
        return None
    if not as_published:
        verb = _main_verb(doc)
        return _negated_verb(doc, verb) if verb is not None else _negated_place(doc)
    copulas = [t for t in doc if t.dep_ == "ROOT" and base_of(t) == "be"]
    verbs = [t for t in actions(doc) if t.dep_ != "conj"] + copulas
    places = [p for p in prepositions(doc) if p.head.tag_.startswith("NN")] if not verbs else []
    if not verbs and not places:
        return None
    token = rng.choice(verbs or places)
    return reworded(doc, {token.i: f"not {token.text}"}, repair=False), f"not {token.text}"


def _main_verb(doc: Any) -> Any:
    """Return the verb whose negation negates the whole caption: the verb of its only main clause or, if the caption
    is a noun phrase, the only participle after the noun (`a dog running`). Return None if there is no such verb.
    """
    roots = [t for t in doc if t.dep_ == "ROOT"]
    if len(roots) != 1 or dependents(roots[0], "expl"):
        return None
    root = roots[0]
    if root.tag_[:2] == "VB":
        helped = dependents(root, "aux", "auxpass")
        misread = any(c.tag_ == "TO" for c in helped) or (
            root.tag_ == "VBN" and not helped and dependents(root, "nsubj")
        )
        main = dependents(root, "nsubj", "nsubjpass") or root.tag_ in ("VBG", "VBN")
        return root if main and not misread and not dependents(root, "conj") else None
    clauses = [c for c in root.rights if c.dep_ == "acl" and c.tag_ in ("VBG", "VBN")] if root.tag_[:2] == "NN" else []
    return clauses[0] if len(clauses) == 1 and not dependents(clauses[0], "conj") else None


def _negated_place(doc: Any) -> Negated | None:
    """Return a caption without a verb, with `not` before the place, as in `a lamp not on a table`; None if that is
    impossible.
    """
    root = next(t for t in doc if t.dep_ == "ROOT")
    if root.tag_[:2] != "NN" or any(t.tag_[:2] == "VB" for t in doc):
        return None
    for place in (p for p in prepositions(doc) if p.head == root and p.lower_ not in ("of", "with", "without", "for")):
        if not any(kind_of(lemma(n.text, n.tag_)) == "clothing" for n in dependents(place, "pobj")):
            return reworded(doc, {place.i: f"not {place.text}"}), f"not {place.text}"
    return None


def _negated_verb(doc: Any, verb: Any) -> Negated:
    helpers = [c for c in dependents(verb, "aux", "auxpass") if c.tag_ != "TO"]
    base = base_of(verb)
    token, new = verb, f"not {verb.text}"
    if helpers or base == "be":
        token = (helpers or [verb])[0]
        new = f"{token.text} not"
    elif verb.tag_ in FINITE:
        new = f"{_DO[verb.tag_]} not {base}"
    elif verb.tag_ == "VB":  # a plural verb that the parser took for an infinitive
        new = f"do not {base}"
    return reworded(doc, {token.i: new}), f"{token.text} → {new}"


# -- there is no -----------------------------------------------------------------------------------------------------


def negate_existence(doc: Any, rng: Random, as_published: bool) -> Negated | None:
    """Return `There is no X …`, where X is the thing with which the caption begins; None if it does not begin with a
    thing.
    """
    root = next((t for t in doc if t.dep_ == "ROOT"), None)
    if root is None or len(list(doc.sents)) != 1:
        return None
    noun = root if root.tag_ in ("NN", "NNS") else dependent(root, "nsubj", "nsubjpass")
    if noun is None or noun.tag_ not in ("NN", "NNS") or dependents(noun, "conj"):
        return None
    start, end = phrase(noun)
    if any(not t.is_space for t in doc[:start]):
        return None
    opening = _there_is_no(noun)
    if as_published:
        first = plain(doc[start])
        return f"{opening} {first}{doc.text.lstrip()[len(first) :]}", opening
    before = [t for t in doc[start:end] if t.head == noun and t.dep_ in ("det", "nummod", "predet", "poss")]
    dropped = [t.i for word in before for t in word.subtree]  # `exactly five`
    changes = dict.fromkeys(dropped, "")
    if root != noun:
        changes |= _without_finite(root)
        verbs = [root, *dependents(root, "aux", "auxpass")]
        if any(v.tag_ in (*FINITE, "MD") and v.i not in changes for v in verbs):
            return None  # a girl can swim
    kept = next(i for i in range(start, end) if i not in dropped)
    changes[kept] = f"{opening} {plain(doc[kept])}"
    return reworded(doc, changes), opening


def _without_finite(verb: Any) -> dict[int, str]:
    """Return the changes of words that turn a clause's verb into a participle: `is riding` and `rides` become
    `riding`.
    """
    helpers = dependents(verb, "aux", "auxpass")
    if dependents(verb, "neg") or any(c.tag_ in ("MD", "TO") for c in helpers):
        return {}
    base = base_of(verb)
    if base == "be":
        return {verb.i: ""}
    changes = {c.i: "" for c in helpers if base_of(c) == "be" and c.tag_ != "VBG"}
    if verb.tag_ in FINITE and not helpers:
        changes[verb.i] = inflected(base, "VBG")
    return changes


def _there_is_no(noun: Any) -> str:
    return "There are no" if noun.tag_ in ("NNS", "NNPS") else "There is no"


# -- a sentence appended ---------------------------------------------------------------------------------------------


def append_absence(doc: Any, rng: Random, as_published: bool) -> Negated | None:
    """Return the caption followed by a sentence that denies one of its things (`There is no cat.`); None if it names no
    thing.
    """
    nouns = objects(doc)
    return _with_absence(doc.text, rng.choice(nouns)) if nouns else None


def replace_by_something(doc: Any, rng: Random, as_published: bool) -> Negated | None:
    """Return the caption with a thing replaced by `something`, and then a sentence that denies this thing (`There is no
    cat.`). Return None if no thing can be replaced.
    """
    nouns = [n for n in objects(doc) if n.dep_ in ("dobj", "pobj")]
    nouns = [n for n in nouns if n.head.dep_ != "prep" or n.head.head.lower_ not in vague_nouns()]  # a group of people
    nouns = nouns if as_published else [n for n in nouns if _may_be_something(n)]
    if not nouns:
        return None
    noun = rng.choice(nouns)
    start, end = phrase(noun)
    text = reworded(doc, dict.fromkeys(range(start, end), "") | {end - 1: "something"})
    return _with_absence(text, noun)


def _may_be_something(noun: Any) -> bool:
    """Return whether `something` can replace a noun. The noun must name a visible thing and occur only once. It must
    not name a person, a place, clothing that is worn or a body part, nor begin a phrase such as `a collection of`.
    """
    base = lemma(noun.text, noun.tag_)
    kind, named = kind_of(base), Counter(lemma(t.text, t.tag_) for t in noun.doc if t.tag_[:2] == "NN")
    within = noun.head.lower_ if noun.dep_ == "pobj" else ""
    joined = noun.dep_ == "conj" or dependents(noun, "conj", "acl", "relcl", "appos", "poss")
    if (
        joined
        or named[base] > 1
        or any(c.lower_ == "of" for c in noun.rights)
        or within in ("of", "by", "during", "for")
    ):
        return False
    compounds = " ".join(plain(c) for c in dependents(noun, "compound"))
    senses = open_wordnet().senses(f"{compounds} {base}".strip(), "n")[:1] or open_wordnet().senses(base, "n")[:1]
    seen = bool(kind) or any(sense.topic in _THINGS for sense in senses)
    out_of_place = kind == "person" or (kind in ("place", "clothing") and within in ("in", "at", "with"))
    return seen and not out_of_place and not any(sense.topic == _BODY for sense in senses)


def _with_absence(text: str, noun: Any) -> Negated:
    start, end = phrase(noun)
    kept = [t for t in noun.doc[start:end] if t == noun or t.dep_ == "compound"]
    named = written(spaced(plain(t) for t in kept))
    added = f"{_there_is_no(noun)} {named}."
    return f"{text.rstrip(_END)}. {added}", added


FORMS = {
    "negate-relation": negate_relation,
    "negate-exists": negate_existence,
    "negate-append": append_absence,
    "negate-something": replace_by_something,
}
