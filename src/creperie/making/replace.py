"""One atom replaced: CREPE's atomic foils, and VL-CheckList's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from creperie.lang import inflected, lemma, open_wordnet
from creperie.making.atoms import actions, attributes, objects, prepositions, vague_nouns
from creperie.making.balance import MOST, drawn_evenly, effect
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import EditSize, LengthMatched
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.replacements import all_verbs, for_action, for_attribute, for_object, for_relation
from creperie.making.source import Captions, SourceCaption
from creperie.making.wording import reworded

#: A token, its replacement in dictionary form, and the replacement as it fits the token.
Replacement = tuple[Any, str, str]
Find = Callable[[Any, Random], Iterator[Replacement]]


def replace(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:replace`: an object, an attribute or a relation replaced by a related one."""
    open_wordnet()  # says now that it is missing, not after an hour
    return ParsedMaker(name, propose_replacements, options, (EditSize(1, 4), LengthMatched(2), *options.model_checks))


def vl_checklist(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:vl-checklist`: the verb replaced by any other, an attribute or object by one of its kind."""
    open_wordnet()
    return ParsedMaker(name, _propose_checklist, options, (EditSize(1, 4), LengthMatched(2), *options.model_checks))


def propose_replacements(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """Up to `foils` candidates of each kind."""
    kinds = {"replace-object": _objects, "replace-attribute": _attributes, "replace-relation": _relations}
    return _proposed(source, doc, options, "rules:replace", kinds)


def _propose_checklist(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    kinds = {"object": _objects, "attribute": _attributes, "relation": _other_verbs}
    return _proposed(source, doc, options, "rules:vl-checklist", kinds)


def _proposed(
    source: SourceCaption, doc: Any, options: MakerOptions, maker: str, kinds: Mapping[str, Find]
) -> Proposal:
    rng = dice_for(options.seed, maker, source.id)
    made: list[Candidate] = []
    unmatched = 0
    for kind, find in kinds.items():
        found = list(find(doc, rng))
        rng.shuffle(found)
        if options.as_published or not options.matched:
            chosen = [candidate_of(source, doc, r, kind, maker, options) for r in _different(found, options.foils)]
        else:
            chosen = _balanced(source, doc, found[:MOST], kind, maker, options, rng)
        made += chosen
        unmatched += bool(found) and not chosen
    return Proposal(tuple(made), "" if made or not unmatched else "no replacement with an opposite")


def _balanced(
    source: SourceCaption, doc: Any, found: list[Replacement], kind: str, maker: str, options: MakerOptions, rng: Random
) -> list[Candidate]:
    """Candidates that are neither longer nor rarer than the caption by rule."""
    left = [(r[0].i, candidate_of(source, doc, r, kind, maker, options)) for r in found]
    drawn: list[tuple[int, Candidate]] = []
    while left and len(drawn) < options.foils:
        used = [i for i, _ in drawn]
        fresh = [one for one in left if one[0] not in used] or left
        one = drawn_evenly(fresh, [effect(source.text, c.text) for _, c in fresh], rng)
        if one is None:
            break
        drawn.append(one)
        left.remove(one)
    return [c for _, c in drawn]


def _different(found: list[Replacement], number: int) -> list[Replacement]:
    """The first of the replacements, of different tokens as long as there are such."""
    drawn: list[Replacement] = []
    while found and len(drawn) < number:
        used = [t.i for t, _, _ in drawn]
        found.sort(key=lambda r: used.count(r[0].i))
        drawn.append(found.pop(0))
    return drawn


def candidate_of(
    source: SourceCaption, doc: Any, found: Replacement, kind: str, maker: str, options: MakerOptions
) -> Candidate:
    """The caption with the replacement in its place; published ones are put in as they stand in the dictionary."""
    token, bare, fitted = found
    new = bare if options.as_published else fitted
    text = reworded(doc, {token.i: new}, repair=not options.as_published)
    group = "atom" if options.as_published and maker == "rules:replace" else ""
    return Candidate(source.id, text, "negative", kind, maker, f"{token.text} → {new}", group)


def _objects(doc: Any, rng: Random) -> Iterator[Replacement]:
    present = {lemma(t.text, t.tag_) for t in doc if t.tag_.startswith("NN")}
    for noun in objects(doc):
        if any(c.dep_ == "compound" for c in noun.children):
            continue
        base = lemma(noun.text, noun.tag_)
        for new in for_object(base):
            if new not in present:
                yield noun, new, _like(noun, inflected(new, "NNS") if noun.tag_ == "NNS" else new)


def _attributes(doc: Any, rng: Random) -> Iterator[Replacement]:
    present = {t.text.lower() for t in doc}
    for adjective in attributes(doc):
        for new in for_attribute(adjective.text.lower()):
            if new not in present:
                yield adjective, new, _like(adjective, new)


def _relations(doc: Any, rng: Random) -> Iterator[Replacement]:
    for preposition in prepositions(doc):
        (place, *_) = [c for c in preposition.children if c.dep_ == "pobj"]
        if place.text.lower() not in vague_nouns():  # "in front of", "on top of"
            for new in for_relation(preposition.text.lower()):
                yield preposition, new, _like(preposition, new)
    for verb in actions(doc):
        for new in for_action(lemma(verb.text, verb.tag_)):
            yield verb, new, _like(verb, inflected(new, verb.tag_))


def _other_verbs(doc: Any, rng: Random) -> Iterator[Replacement]:
    for verb in actions(doc):
        if not any(c.dep_ == "dobj" for c in verb.children):
            continue
        base = lemma(verb.text, verb.tag_)
        for new in all_verbs():
            head, _, rest = new.partition(" ")
            if head != base:
                yield verb, new, _like(verb, " ".join(w for w in (inflected(head, verb.tag_), rest) if w))


def _like(token: Any, word: str) -> str:
    """A word with the capital of the token that it replaces."""
    return word[:1].upper() + word[1:] if token.text[:1].isupper() else word
