"""Words to put in the place of others: contrasts of our own first, then relatives and opposites from WordNet.

A replacement must make a caption false, so it is never a synonym, a kind of the word, or what the word is a kind of.
It is about as frequent as the word it replaces, so that rarity does not tell foils from captions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from creperie.lang import HYPERNYM, HYPONYM, Synset, WordNet, open_wordnet, zipf
from creperie.making.data import read_data

#: WordNet's files of things that can be seen: animals, artifacts, body, food, location, object, plant.
SEEN = frozenset((5, 6, 8, 13, 15, 17, 20))
RAREST = 3.2  #: Zipf
NEAREST = 8  #: how many of the words that are nearest in frequency are drawn from
ENOUGH = 4


@cache
def for_object(noun: str) -> tuple[str, ...]:
    """Other things for a thing: contrasts, then co-hyponyms of its first sense that can be seen."""
    own = contrasts("objects", noun)
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
    return contrasts("attributes", adjective) or _near(adjective, open_wordnet().antonyms(adjective, "a"))


@cache
def for_action(verb: str) -> tuple[str, ...]:
    """Other actions: contrasts, then opposites, then other ways to do what this is a way to do."""
    own = contrasts("actions", verb)
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


def for_relation(preposition: str) -> tuple[str, ...]:
    """Other places: prepositions that cannot both be true."""
    return tuple(read_data("contrasts")["relations"].get(preposition, ()))


@cache
def all_verbs() -> tuple[str, ...]:
    """Frequent verbs, for replacements that need no relation to what they replace."""
    return tuple(read_data("contrasts")["verbs"])


@cache
def contrasts(kind: str, word: str) -> tuple[str, ...]:
    """The other words of the first group that begins with this word, or else holds it."""
    groups: list[list[str]] = read_data("contrasts")[kind]
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
