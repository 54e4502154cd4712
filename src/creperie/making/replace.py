"""One atom replaced: an object, an attribute or a relation; CREPE's atomic foils and VL-CheckList's as published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from creperie.lang import inflected, lemma, open_wordnet
from creperie.making.atoms import actions, attributes, objects, prepositions, vague_nouns
from creperie.making.balance import KEPT, MOST, RETURNED, SOFTENED, TILTS, drawn_evenly, effect, sign
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.checks import EditSize, LengthMatched
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker
from creperie.making.plausibility import even_chance, gaps, with_gap, within_band
from creperie.making.replacements import all_verbs, for_action, for_attribute, for_object, for_relation
from creperie.making.slots import Slots, corpus_slots
from creperie.making.source import Captions, SourceCaption
from creperie.making.substitution import Replacement, Substitutes, like
from creperie.making.wording import reworded

Find = Callable[[SourceCaption, Any], Iterator[Replacement]]


def replace(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:replace`: an object, an attribute or a relation replaced by a related one."""
    open_wordnet()  # says now that it is missing, not after an hour
    found = Replacer(name, corpus_slots(options, captions))
    return ParsedMaker(name, found, options, (EditSize(1, 4), LengthMatched(2), *options.rule_checks))


def vl_checklist(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:vl-checklist`: the verb replaced by any other, an attribute or object by one of its kind."""
    open_wordnet()
    found = Replacer(name, corpus_slots(options, captions), any_verb=True)
    return ParsedMaker(name, found, options, (EditSize(1, 4), LengthMatched(2), *options.rule_checks))


@dataclass(frozen=True)
class Replacer:
    """Proposes up to `foils` replacements of each kind for a caption."""

    maker: str
    slots: Slots
    any_verb: bool = False  #: VL-CheckList's relations: any verb for any other

    @cached_property
    def _kinds(self) -> Mapping[str, Find]:
        found = Substitutes(self.slots)
        if self.any_verb:
            return {"object": found.objects, "attribute": found.attributes, "relation": _other_verbs}
        kinds = (found.objects, found.attributes, found.relations)
        return dict(zip(("replace-object", "replace-attribute", "replace-relation"), kinds))

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng: Random | None = None
        made: list[Candidate] = []
        lost = ""
        for kind, find in (_published(self.any_verb) if options.as_published else self._kinds).items():
            found = list(find(source, doc))
            if not found:
                continue
            rng = rng or dice_for(options.seed, self.maker, source.id)
            rng.shuffle(found)
            if options.as_published:
                chosen = [candidate_of(source, doc, r, kind, self.maker, options) for r in _different(found, options)]
            else:
                placed = [(_place(r), candidate_of(source, doc, r, kind, self.maker, options)) for r in found[:MOST]]
                chosen, why = draw_plausible(source, placed, options, rng)
                if kind == "replace-relation" and options.matched and chosen:
                    chosen = [c for c in chosen if self._comes_back(c.edit, rng)]
                    why = "" if chosen else "replacements said less often than the caption's words"
                lost = lost or why
            made += chosen
        return Proposal(tuple(made), "" if made else lost)

    def _comes_back(self, edit: str, rng: Random) -> bool:
        """Metropolis' rule for what is said seldom: `on` goes for `under` more often than `under` can go for `on`."""
        goes, comes = (self.slots.times_said(side.lower()) for side in edit.split(" → "))
        return not self.slots.knows_enough or rng.random() < (comes / goes) ** RETURNED


def draw_plausible(
    source: SourceCaption, made: Sequence[tuple[int, Candidate]], options: MakerOptions, rng: Random
) -> tuple[list[Candidate], str]:
    """Candidates within the band, drawn so that foils are neither longer, rarer nor less likely by rule, or why none.

    `made` are candidates with the place of what they change. Of those with the same effect, the one with the smallest
    gap is taken. The foils of a caption change different words as long as there are such.
    """
    left = []
    for (place, c), gap in zip(made, gaps(source.text, [c.text for _, c in made], options.lm)):
        if within_band(gap, options):
            left.append((place, c, gap))
    why = "no replacement within the band" if made and not left else ""
    drawn: list[Candidate] = []
    used: list[int] = []
    while left and len(drawn) < options.foils:
        fresh = [one for one in left if one[0] not in used] or left
        one = _drawn(source, fresh, options, rng)
        if one is None:
            return drawn, "" if drawn else "replacements less likely than the caption"
        drawn.append(with_gap(source, one[1], one[2]))
        used.append(one[0])
        left.remove(one)
    return drawn, why


def _drawn(
    source: SourceCaption, left: Sequence[tuple[int, Candidate, float]], options: MakerOptions, rng: Random
) -> tuple[int, Candidate, float] | None:
    if not options.matched:
        return min(left, key=lambda one: abs(one[2]))
    effects = [(*effect(source.text, c.text), sign(gap)) for _, c, gap in left]
    kind = left[0][1].kind.removeprefix("replace-")
    one = drawn_evenly(left, effects, rng, tilt=TILTS[kind], cost=lambda one: abs(one[2]))
    if one is None:
        return None
    _, letters, frequency, *_ = effect(source.text, one[1].text)
    longer, rarer = KEPT.get(kind, (1.0, 1.0))
    if (letters > 0 and rng.random() > longer) or (frequency < 0 and rng.random() > rarer):
        return None
    return one if even_chance(one[2], rng, SOFTENED.get(kind, 6.0)) else None


def _place(found: Replacement) -> int:
    token = found[0]
    return int(token[0].i if isinstance(token, list) else token.i)


def _different(found: list[Replacement], options: MakerOptions) -> list[Replacement]:
    """The first of the replacements, of different tokens as long as there are such."""
    drawn: list[Replacement] = []
    while found and len(drawn) < options.foils:
        used = [_place(r) for r in drawn]
        found.sort(key=lambda r: used.count(_place(r)))
        drawn.append(found.pop(0))
    return drawn


def candidate_of(
    source: SourceCaption, doc: Any, found: Replacement, kind: str, maker: str, options: MakerOptions
) -> Candidate:
    """The caption with the replacement in its place; published ones are put in as they stand in the dictionary."""
    token, bare, fitted = found
    new = bare if options.as_published else fitted
    span = token if isinstance(token, list) else [token]
    changes = {t.i: "" for t in span} | {span[0].i: new}
    text = reworded(doc, changes, repair=not options.as_published)
    group = "atom" if options.as_published and maker == "rules:replace" else ""
    old = " ".join(t.text for t in span)
    return Candidate(source.id, text, "negative", kind, maker, f"{old} → {new}", group)


# -- as published ----------------------------------------------------------------------------------------------------


def _published(any_verb: bool) -> Mapping[str, Find]:
    if any_verb:
        return {"object": _objects, "attribute": _attributes, "relation": _other_verbs}
    return {"replace-object": _objects, "replace-attribute": _attributes, "replace-relation": _relations}


def _objects(source: SourceCaption, doc: Any) -> Iterator[Replacement]:
    present = {lemma(t.text, t.tag_) for t in doc if t.tag_.startswith("NN")}
    for noun in objects(doc):
        if any(c.dep_ == "compound" for c in noun.children):
            continue
        base = lemma(noun.text, noun.tag_)
        for new in for_object(base):
            if new not in present:
                yield noun, new, like(noun, inflected(new, "NNS") if noun.tag_ == "NNS" else new)


def _attributes(source: SourceCaption, doc: Any) -> Iterator[Replacement]:
    present = {t.text.lower() for t in doc}
    for adjective in attributes(doc):
        for new in for_attribute(adjective.text.lower()):
            if new not in present:
                yield adjective, new, like(adjective, new)


def _relations(source: SourceCaption, doc: Any) -> Iterator[Replacement]:
    for preposition in prepositions(doc):
        (place, *_) = [c for c in preposition.children if c.dep_ == "pobj"]
        if place.text.lower() not in vague_nouns():  # "in front of", "on top of"
            for new in for_relation(preposition.text.lower()):
                yield preposition, new, like(preposition, new)
    for verb in actions(doc):
        for new in for_action(lemma(verb.text, verb.tag_)):
            yield verb, new, like(verb, inflected(new, verb.tag_))


def _other_verbs(source: SourceCaption, doc: Any) -> Iterator[Replacement]:
    for verb in actions(doc):
        if not any(c.dep_ == "dobj" for c in verb.children):
            continue
        base = lemma(verb.text, verb.tag_)
        for new in all_verbs():
            head, _, rest = new.partition(" ")
            if head != base:
                yield verb, new, like(verb, " ".join(w for w in (inflected(head, verb.tag_), rest) if w))
