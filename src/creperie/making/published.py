"""Replacements and swaps made as in CREPE and VL-CheckList, after which an article may no longer fit the next word.

Words are inserted in their dictionary form. A replacement comes from creperie's lists of contrasts. If the word is not
in these lists, its replacement is a co-hyponym or an antonym from WordNet that is about as frequent as the word. It is
never a synonym, hyponym or hypernym of the word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from creperie.lang import HYPERNYM, HYPONYM, Synset, WordNet, facts, open_wordnet, zipf
from creperie.making.atoms import actions, attributes, base_of, dependents, objects, phrase, prepositions, vague_nouns
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.data import read_data
from creperie.making.exchanging import exchange_spans
from creperie.making.options import MakerOptions
from creperie.making.source import SourceCaption
from creperie.making.swaps import adjective_pairs, noun_pairs
from creperie.making.wording import reworded

#: WordNet's lexicographer files of visible things: animals, artifacts, body, food, location, object, plant.
SEEN = frozenset((5, 6, 8, 13, 15, 17, 20))
RAREST = 3.2  #: minimum word frequency on the Zipf scale
NEAREST = 8  #: maximum number of replacements, those nearest in frequency
ENOUGH = 4  #: number of candidates from which on no further hypernym is searched
#: A token, and its replacement in dictionary form.
Replacement = tuple[Any, str]
Find = Callable[[Any], Iterator[Replacement]]


@dataclass(frozen=True)
class PublishedReplacer:
    """A proposer of replacements in a caption. It proposes up to `options.foils` of each kind."""

    maker: str
    kinds: tuple[str, ...]

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng = dice_for(options.seed, self.maker, source.id)
        finds = (_objects, _attributes, other_verbs if self.maker == "rules:vl-checklist" else _relations)
        pairs = zip(self.kinds, finds)
        return Proposal([c for kind, find in pairs for c in self._candidates(source, doc, kind, find, options, rng)])

    def _candidates(
        self, source: SourceCaption, doc: Any, kind: str, find: Find, options: MakerOptions, rng: Random
    ) -> Iterator[Candidate]:
        """Yield up to `options.foils` candidates, each with one random token replaced. No token is replaced a second
        time before all have been replaced once.
        """
        candidates = list(find(doc))
        rng.shuffle(candidates)
        used: list[int] = []
        while candidates and len(used) < options.foils:
            candidates.sort(key=lambda r: used.count(r[0].i))
            token, new = candidates.pop(0)
            used.append(token.i)
            text = reworded(doc, {token.i: new}, repair=False)
            group = "atom" if self.maker == "rules:replace" else ""
            yield Candidate(source.id, text, "negative", kind, self.maker, f"{token.text} → {new}", group)


def _objects(doc: Any) -> Iterator[Replacement]:
    present = {base_of(t) for t in doc if t.tag_.startswith("NN")}
    for noun in objects(doc):
        if dependents(noun, "compound"):
            continue
        for new in for_object(base_of(noun)):
            if new not in present:
                yield noun, new


def _attributes(doc: Any) -> Iterator[Replacement]:
    present = {t.lower_ for t in doc}
    for adjective in attributes(doc):
        for new in for_attribute(adjective.lower_):
            if new not in present:
                yield adjective, new


def _relations(doc: Any) -> Iterator[Replacement]:
    for preposition in prepositions(doc):
        if dependents(preposition, "pobj")[0].lower_ not in vague_nouns():  # "in front of", "on top of"
            for new in read_data("contrasts")["relations"].get(preposition.lower_, ()):
                yield preposition, new
    for verb in actions(doc):
        for new in for_action(base_of(verb)):
            yield verb, new


def other_verbs(doc: Any) -> Iterator[Replacement]:
    """Yield VL-CheckList's replacements of relations: for each verb with an object, all frequent verbs but itself."""
    for verb in actions(doc):
        if not dependents(verb, "dobj"):
            continue
        base = base_of(verb)
        yield from ((verb, new) for new in read_data("contrasts")["verbs"] if new.split()[0] != base)


def propose_swaps(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    """Return a proposal with up to `options.foils` swaps of each kind. Whether a swap changes the meaning is not
    checked.
    """
    rng = dice_for(options.seed, "rules:swap", source.id)
    candidates = []
    nouns = list(noun_pairs(objects(doc)))
    adjectives = list(adjective_pairs(attributes(doc)))
    phrases = [
        (a, b)
        for a, b in nouns
        if phrase(a)[1] <= phrase(b)[0] and max(end - start for start, end in map(phrase, (a, b))) > 2
    ]
    kinds = {"swap-object": (nouns, _alone), "swap-attribute": (adjectives, _alone), "swap-phrase": (phrases, phrase)}
    for kind, (pairs, span) in kinds.items():
        rng.shuffle(pairs)
        for left, right in pairs[: options.foils]:
            text = exchange_spans(doc, span(left), span(right), repair=False)
            edit = f"{left.text} ↔ {right.text}"
            candidates.append(Candidate(source.id, text, "negative", kind, "rules:swap", edit, "swap"))
    return Proposal(candidates)


def _alone(token: Any) -> tuple[int, int]:
    return token.i, token.i + 1


# -- words for words -------------------------------------------------------------------------------------------------


@cache
def for_object(noun: str) -> tuple[str, ...]:
    """Return replacements for a noun: those in creperie's lists of contrasts. If there are none, return co-hyponyms in
    WordNet of its first sense or, if this is not a visible thing, of its second. Return an empty tuple if neither sense
    is visible.
    """
    own = contrasts(read_data("contrasts")["objects"], noun)
    if own:
        return own
    net = open_wordnet()
    senses = net.senses(noun, "n")
    sense = next((s for s in senses[:2] if s.topic in SEEN), None)
    if sense is None:
        return ()
    banned = {w for s in senses for w in _close_words(net, s)}
    candidates: dict[str, None] = {}
    for above in net.above(sense):
        candidates.update(dict.fromkeys(w for w in _below(net, above, "n", 2) if w not in banned))
        if len(candidates) >= ENOUGH:
            break
    return _near(noun, candidates)


@cache
def for_attribute(adjective: str) -> tuple[str, ...]:
    """Return adjectives that exclude this one: those in creperie's lists of contrasts or, if there are none, its
    antonyms.
    """
    own = contrasts(facts()["opposites"], adjective)
    return own or _near(adjective, open_wordnet().antonyms(adjective, "a"))


@cache
def for_action(verb: str) -> tuple[str, ...]:
    """Return replacements for a verb: those in creperie's lists of contrasts, else its antonyms, else its
    co-hyponyms.
    """
    own = contrasts(read_data("contrasts")["actions"], verb)
    if own:
        return own
    net = open_wordnet()
    opposite = net.antonyms(verb, "v")
    if opposite:
        return _near(verb, opposite)
    senses = net.senses(verb, "v")
    banned = net.synonyms(verb, "v") | {w for s in senses for w in _close_words(net, s)}
    siblings = (w for s in senses[:1] for up in net.follow(s, HYPERNYM) for w in _below(net, up, "v"))
    return _near(verb, (w for w in siblings if w not in banned))


def contrasts(groups: list[list[str]], word: str) -> tuple[str, ...]:
    """Return the other words of the group that contains this word; empty if no group does. If several groups contain
    it, use the one that begins with it or, if none does, the first.
    """
    for group in sorted(groups, key=lambda g: g[0] != word):
        if word in group:
            return tuple(w for w in group if w != word)
    return ()


def _close_words(net: WordNet, synset: Synset) -> Iterable[str]:
    """Yield the words that are too close in meaning to replace a word of the synset: the words of the synset itself, of
    all its hypernyms and of its direct hyponyms.
    """
    for s in (synset, *net.above(synset), *net.follow(synset, HYPONYM)):
        yield from (w.lower() for w in s.words)


def _below(net: WordNet, synset: Synset, part: str, depth: int = 1) -> Iterable[str]:
    """Yield the words of a synset's hyponyms, down to `depth` levels. A word is included only if the hyponym is the
    first sense of this word. If `part` (the part of speech) is `n`, the hyponym must also be a visible thing.
    """
    for below in net.follow(synset, HYPONYM):
        if part != "n" or below.topic in SEEN:
            yield from (w for w in below.words if net.senses(w, part)[:1] == [below])
        if depth > 1:
            yield from _below(net, below, part, depth - 1)


def _near(word: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return those candidates that are single words, in lower case and not too rare. Those nearest to the word in
    frequency come first.
    """
    frequency = zipf(word)
    usable = {w for w in candidates if w.isalpha() and w.islower() and zipf(w) >= RAREST and w != word}
    return tuple(sorted(usable, key=lambda w: (abs(zipf(w) - frequency), w))[:NEAREST])
