"""Replacements and swaps as published, broken articles and all: CREPE's atoms and swaps, VL-CheckList's words.

Words are put in as the dictionary has them. A replacement is a contrast of our own lists, or a relative or opposite in
WordNet: never a synonym, a kind of the word, or what the word is a kind of, and about as frequent as the word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

from creperie.lang import HYPERNYM, HYPONYM, Synset, WordNet, facts, inflected, lemma, open_wordnet, zipf
from creperie.making.atoms import actions, attributes, joined, objects, phrase, prepositions, vague_nouns
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.data import read_data
from creperie.making.edits import like
from creperie.making.options import MakerOptions
from creperie.making.source import SourceCaption
from creperie.making.swaps import exchange_spans, noun_pairs
from creperie.making.wording import reworded

#: WordNet's files of things that can be seen: animals, artifacts, body, food, location, object, plant.
SEEN = frozenset((5, 6, 8, 13, 15, 17, 20))
RAREST = 3.2  #: Zipf
NEAREST = 8  #: how many of the words that are nearest in frequency are drawn from
ENOUGH = 4
#: A token, its replacement in dictionary form, and the replacement as it fits the token.
Replacement = tuple[Any, str, str]
Find = Callable[[Any], Iterator[Replacement]]


@dataclass(frozen=True)
class PublishedReplacer:
    """Proposes up to `foils` replacements of each kind for a caption."""

    maker: str

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng = dice_for(options.seed, self.maker, source.id)
        chosen = [c for kind, find in self.kinds.items() for c in self._drawn(source, doc, kind, find, options, rng)]
        return Proposal(tuple(chosen))

    @property
    def kinds(self) -> Mapping[str, Find]:
        if self.maker == "rules:vl-checklist":
            return {"object": _objects, "attribute": _attributes, "relation": other_verbs}
        return {"replace-object": _objects, "replace-attribute": _attributes, "replace-relation": _relations}

    def _drawn(
        self, source: SourceCaption, doc: Any, kind: str, find: Find, options: MakerOptions, rng: Random
    ) -> Iterator[Candidate]:
        """Replacements of different tokens as long as there are such."""
        found = list(find(doc))
        rng.shuffle(found)
        used: list[int] = []
        while found and len(used) < options.foils:
            found.sort(key=lambda r: used.count(r[0].i))
            token, bare, fitted = found.pop(0)
            used.append(token.i)
            new = bare if options.as_published else fitted
            text = reworded(doc, {token.i: new}, repair=not options.as_published)
            group = "atom" if options.as_published and self.maker == "rules:replace" else ""
            yield Candidate(source.id, text, "negative", kind, self.maker, f"{token.text} → {new}", group)


def _objects(doc: Any) -> Iterator[Replacement]:
    present = {lemma(t.text, t.tag_) for t in doc if t.tag_.startswith("NN")}
    for noun in objects(doc):
        if any(c.dep_ == "compound" for c in noun.children):
            continue
        for new in for_object(lemma(noun.text, noun.tag_)):
            if new not in present:
                yield noun, new, like(noun, inflected(new, "NNS") if noun.tag_ == "NNS" else new)


def _attributes(doc: Any) -> Iterator[Replacement]:
    present = {t.text.lower() for t in doc}
    for adjective in attributes(doc):
        for new in for_attribute(adjective.text.lower()):
            if new not in present:
                yield adjective, new, like(adjective, new)


def _relations(doc: Any) -> Iterator[Replacement]:
    for preposition in prepositions(doc):
        (place, *_) = [c for c in preposition.children if c.dep_ == "pobj"]
        if place.text.lower() not in vague_nouns():  # "in front of", "on top of"
            for new in read_data("contrasts")["relations"].get(preposition.text.lower(), ()):
                yield preposition, new, like(preposition, new)
    for verb in actions(doc):
        for new in for_action(lemma(verb.text, verb.tag_)):
            yield verb, new, like(verb, inflected(new, verb.tag_))


def other_verbs(doc: Any) -> Iterator[Replacement]:
    """VL-CheckList's relations: any frequent verb for any other that has an object."""
    for verb in actions(doc):
        if not any(c.dep_ == "dobj" for c in verb.children):
            continue
        base = lemma(verb.text, verb.tag_)
        for new in read_data("contrasts")["verbs"]:
            head, _, rest = new.partition(" ")
            if head != base:
                yield verb, new, like(verb, " ".join(w for w in (inflected(head, verb.tag_), rest) if w))


def propose_swaps(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """Up to `foils` swaps of each kind, whatever they mean."""
    rng = dice_for(options.seed, "rules:swap", source.id)
    candidates = []
    nouns = list(noun_pairs(objects(doc)))
    adjectives = [p for p in combinations(attributes(doc), 2) if _are_apart(*p)]
    phrases = [(a, b) for a, b in nouns if phrase(a)[1] <= phrase(b)[0] and max(map(_length, (a, b))) > 2]
    kinds = {"swap-object": (nouns, _alone), "swap-attribute": (adjectives, _alone), "swap-phrase": (phrases, phrase)}
    for kind, (pairs, span) in kinds.items():
        rng.shuffle(pairs)
        for left, right in pairs[: options.foils]:
            text = exchange_spans(doc, span(left), span(right), False)
            edit = f"{left.text} ↔ {right.text}"
            candidates.append(Candidate(source.id, text, "negative", kind, "rules:swap", edit, "swap"))
    return Proposal(tuple(candidates))


def _alone(token: Any) -> tuple[int, int]:
    return token.i, token.i + 1


def _length(noun: Any) -> int:
    start, end = phrase(noun)
    return end - start


def _are_apart(left: Any, right: Any) -> bool:
    if left.head == right.head or joined(left, right) or left.lower_ == right.lower_:
        return False
    return left.dep_ == right.dep_ == "amod" and left.head.tag_ in ("NN", "NNS") and right.head.tag_ in ("NN", "NNS")


# -- words for words -------------------------------------------------------------------------------------------------


@cache
def for_object(noun: str) -> tuple[str, ...]:
    """Other things for a thing: contrasts, then co-hyponyms of its first sense that can be seen."""
    own = contrasts(read_data("contrasts")["objects"], noun)
    if own:
        return own
    net = open_wordnet()
    senses = net.senses(noun, "n")[:2]
    sense = next((s for s in senses if s.topic in SEEN), None)
    if sense is None:
        return ()
    banned = {w.lower() for s in net.senses(noun, "n") for w in _line(net, s)}
    found: dict[str, None] = {}
    for above in net.above(sense):
        found.update(dict.fromkeys(w for w in _things_below(net, above, 2) if w not in banned))
        if len(found) >= ENOUGH:
            break
    return _near(noun, found)


@cache
def for_attribute(adjective: str) -> tuple[str, ...]:
    """Other qualities that exclude this one: contrasts, then opposites."""
    own = contrasts(facts()["opposites"], adjective)
    return own or _near(adjective, open_wordnet().antonyms(adjective, "a"))


@cache
def for_action(verb: str) -> tuple[str, ...]:
    """Other actions: contrasts, then opposites, then other ways to do what this is a way to do."""
    own = contrasts(read_data("contrasts")["actions"], verb)
    if own:
        return own
    net = open_wordnet()
    opposite = net.antonyms(verb, "v")
    if opposite:
        return _near(verb, opposite)
    banned = net.synonyms(verb, "v") | {w for s in net.senses(verb, "v") for w in _line(net, s)}
    senses = net.senses(verb, "v")[:1]
    siblings = (w for s in senses for up in net.follow(s, HYPERNYM) for w in _first_senses_below(net, up))
    return _near(verb, (w for w in siblings if w not in banned))


def contrasts(groups: list[list[str]], word: str) -> tuple[str, ...]:
    """The other words of the first group that begins with this word, or else has it."""
    for group in sorted(groups, key=lambda g: g[0] != word):
        if word in group:
            return tuple(w for w in group if w != word)
    return ()


def _line(net: WordNet, synset: Synset) -> Iterable[str]:
    """Words of a synset, of all above it and of those right below it."""
    for s in (synset, *net.above(synset), *net.follow(synset, HYPONYM)):
        yield from (w.lower() for w in s.words)


def _things_below(net: WordNet, synset: Synset, depth: int) -> Iterable[str]:
    for below in net.follow(synset, HYPONYM):
        for word in below.words:
            first = net.senses(word, "n")[:1]
            if first == [below] and below.topic in SEEN:  # only in its first sense is a word understood
                yield word
        if depth > 1:
            yield from _things_below(net, below, depth - 1)


def _first_senses_below(net: WordNet, synset: Synset) -> Iterable[str]:
    for below in net.follow(synset, HYPONYM):
        yield from (w for w in below.words if net.senses(w, "v")[:1] == [below])


def _near(word: str, found: Iterable[str]) -> tuple[str, ...]:
    """Single, plain, not too rare words, the nearest in frequency first."""
    frequency = zipf(word)
    usable = {w for w in found if w.isalpha() and w.islower() and zipf(w) >= RAREST and w != word}
    return tuple(sorted(usable, key=lambda w: (abs(zipf(w) - frequency), w))[:NEAREST])
