"""Shuffled word order: the four foils of ARO's Order sets, and the full shuffle.

The permutations are ARO's; the random numbers are a source's own, so that they do not depend on its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from creperie.bench.item import Item
from creperie.errors import missing_extra
from creperie.make.candidate import Candidate, Proposal, dice
from creperie.make.items import with_source
from creperie.make.options import Options
from creperie.make.parsed import ParsedMaker
from creperie.make.source import Captions, Source

NOUNS = frozenset(("NN", "NNS", "NNP", "NNPS"))
ADJECTIVES = frozenset(("JJ", "JJR", "JJS"))
TRIES = 8  #: how often a shuffle that came out as the caption was is tried again

_REMOVED = re.compile(r"([.!\"()*#:;~])")
_RUNS = re.compile(r"\s{2,}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")
MOST_WORDS = 30


def shuffle(name: str, options: Options, captions: Captions) -> ParsedMaker:
    """The maker `rules:shuffle`: five foils a caption, in one item."""
    build = _as_published_items if options.as_published else with_source
    return ParsedMaker(name, _propose, options, options.model_checks, build=build)


def _propose(source: Source, doc: Any, options: Options) -> Proposal:
    rng = dice(options.seed, "rules:shuffle", source.id)
    candidates = []
    for kind, function in SHUFFLES.items():
        text = _shuffled(function, source.text, doc, rng, once=options.as_published)
        group = "order" if kind != "shuffle-all" else "shuffle-all"
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:shuffle", kind.replace("-", " "), group))
    return Proposal(tuple(candidates))


Shuffle = Callable[[str, Any, Random], str]


def _shuffled(function: Shuffle, text: str, doc: Any, rng: Random, *, once: bool) -> str:
    """A shuffle; one that changes nothing is tried again, but for the published way, which takes what comes."""
    found = function(text, doc, rng)
    for _ in range(0 if once else TRIES):
        if found.split() != text.split() and found.split() != [t.text for t in doc]:
            break
        found = function(text, doc, rng)
    return found


def shuffle_nouns_and_adjectives(text: str, doc: Any, rng: Random) -> str:
    """Nouns change places with nouns, adjectives with adjectives."""
    return " ".join(_permuted([t.text for t in doc], [_slots(doc, NOUNS), _slots(doc, ADJECTIVES)], rng))


def shuffle_other_words(text: str, doc: Any, rng: Random) -> str:
    """All words but nouns and adjectives change places."""
    kept = {*_slots(doc, NOUNS), *_slots(doc, ADJECTIVES)}
    return " ".join(_permuted([t.text for t in doc], [[t.i for t in doc if t.i not in kept]], rng))


def shuffle_within_trigrams(text: str, doc: Any, rng: Random) -> str:
    """Words change places within each group of three."""
    groups = trigrams(word_tokens(text))
    for group in groups:
        rng.shuffle(group)
    return " ".join(word for group in groups for word in group)


def shuffle_trigrams(text: str, doc: Any, rng: Random) -> str:
    """Groups of three words change places."""
    groups = trigrams(word_tokens(text))
    rng.shuffle(groups)
    return " ".join(word for group in groups for word in group)


def shuffle_all_words(text: str, doc: Any, rng: Random) -> str:
    """All words, as they stand between blanks, change places."""
    parts = text.split(" ")
    rng.shuffle(parts)
    return " ".join(parts)


SHUFFLES: dict[str, Shuffle] = {
    "shuffle-nouns-adjectives": shuffle_nouns_and_adjectives,
    "shuffle-others": shuffle_other_words,
    "shuffle-within-trigrams": shuffle_within_trigrams,
    "shuffle-trigrams": shuffle_trigrams,
    "shuffle-all": shuffle_all_words,
}


def _slots(doc: Any, tags: frozenset[str]) -> list[int]:
    return [t.i for t in doc if t.tag_ in tags]


def _permuted(words: list[str], slot_groups: Sequence[list[int]], rng: Random) -> list[str]:
    """
    >>> _permuted(["a", "b", "c"], [[0, 2]], Random(1))
    ['c', 'b', 'a']
    """
    permuted = list(words)
    for slots in slot_groups:
        order = list(slots)
        rng.shuffle(order)
        for slot, taken in zip(slots, order):
            permuted[slot] = words[taken]
    return permuted


def trigrams(words: Sequence[str]) -> list[list[str]]:
    """Words in groups of three; the last may be shorter.

    >>> trigrams("a b c d".split())
    [['a', 'b', 'c'], ['d']]
    """
    return [list(words[i : i + 3]) for i in range(0, len(words), 3)]


def word_tokens(text: str) -> list[str]:
    """Penn Treebank tokens, sentence by sentence: what nltk's `word_tokenize` gives, without its data.

    >>> word_tokens("A dog doesn't bark. It runs, fast.")
    ['A', 'dog', 'does', "n't", 'bark', '.', 'It', 'runs', ',', 'fast', '.']
    """
    try:
        from nltk.tokenize.destructive import NLTKWordTokenizer
    except ImportError:
        raise missing_extra("nltk", "lang") from None
    tokenizer = NLTKWordTokenizer()
    return [token for sentence in _SENTENCE_END.split(text) for token in tokenizer.tokenize(sentence)]


def aro_caption(text: str) -> str:
    """ARO's clean-up, which all five captions of its items go through.

    >>> aro_caption('A dog (big): it "runs".  Yes! ')
    'a dog big it runs yes'
    """
    plain = _RUNS.sub(" ", _REMOVED.sub(" ", text.lower())).rstrip("\n").strip(" ")
    return " ".join(plain.split(" ")[:MOST_WORDS])


def _as_published_items(source: Source, accepted: Sequence[Candidate]) -> list[Item]:
    """Items with ARO's clean-up; foils that it makes equal to the caption are left out."""
    items = []
    for item in with_source(source, accepted):
        cleaned = [aro_caption(c) for c in item.captions]
        kept = [cleaned[0], *(c for c in cleaned[1:] if c != cleaned[0])]
        if len(kept) > 1:
            match = ((True,) + (False,) * (len(kept) - 1),)
            items.append(Item(item.id, item.subset, item.images, tuple(kept), match, item.tags))
    return items
