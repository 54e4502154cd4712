"""Shuffled word order: the four foils of ARO's Order sets, and the full shuffle.

The permutations are ARO's; the random numbers are a source's own, so that they do not depend on its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from dataclasses import replace as changed
from random import Random
from typing import Any, TypeVar

from creperie.bench import Item
from creperie.core import missing_extra
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.negate import propose_negations
from creperie.making.options import MakerOptions
from creperie.making.parsed import ParsedMaker, ProposeOne
from creperie.making.pipeline import with_source
from creperie.making.rules import replace as replace_maker
from creperie.making.rules import swap as swap_maker
from creperie.making.source import Captions, SourceCaption
from creperie.making.wording import first_letter_like, plain

NOUNS = frozenset(("NN", "NNS", "NNP", "NNPS"))
ADJECTIVES = frozenset(("JJ", "JJR", "JJS"))
TRIES = 8  #: how often a shuffle that came out as the caption was is tried again

_REMOVED = re.compile(r"([.!\"()*#:;~])")
_RUNS = re.compile(r"\s{2,}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")
MOST_WORDS = 30


def shuffle(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:shuffle`: five foils per caption, in one item."""
    build = _as_published_items if options.as_published else with_source
    return ParsedMaker(name, _propose, options, options.model_checks, build=build)


def _propose(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    rng = dice_for(options.seed, "rules:shuffle", source.id)
    candidates = []
    for kind in SHUFFLES:
        text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
        group = "order" if kind != "shuffle-all" else "shuffle-all"
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:shuffle", kind.replace("-", " "), group))
    return Proposal(tuple(candidates))


T = TypeVar("T")
Shuffle = Callable[[str, Any, Random], str]


def shuffled(kind: str, text: str, doc: Any, rng: Random, *, as_published: bool) -> str:
    """A shuffle. One that leaves the words in their order is tried again: moving the full stop shuffles nothing.

    The published way's tokens stand apart; else marks and blanks stay where they are, for a comma set apart would tell
    the foil by its length.
    """
    if as_published:
        tries = [SHUFFLES[kind](text, doc, rng)]
        while word_order(tries[-1]) == word_order(text) and len(tries) < TRIES:
            tries.append(SHUFFLES[kind](text, doc, rng))
        return tries[-1]
    slots = slots_of(doc)
    words = [s.word for s in slots]
    found = words
    for _ in range(TRIES):
        found = [words[k] for k in PERMUTATIONS[kind](slots, rng)]
        if found != words:
            break
    lead = len(slots[0].before) if slots else 0  # a quote, perhaps
    written = "".join(s.before + word + s.after for s, word in zip(slots, found))
    return written[:lead] + first_letter_like(written[lead:], text[lead:])


def word_order(text: str) -> str:
    """The letters and digits of a text, in order: the same for texts that differ in marks and blanks alone.

    >>> word_order("A dog runs .") == word_order(". a dog runs")
    True
    """
    return "".join(c for c in text.lower() if c.isalnum())


@dataclass(frozen=True)
class WordSlot:
    """A word as the caption writes it between blanks, the marks and blanks around it, and what kind of word it is."""

    before: str
    word: str
    after: str
    tag: str


def slots_of(doc: Any) -> list[WordSlot]:
    """The words of a caption. What holds no letter and no digit is a mark, and belongs to the word before it."""
    slots: list[WordSlot] = []
    pending: list[Any] = []
    before = ""
    for token in doc:
        pending.append(token)
        if not token.whitespace_ and token.i + 1 < len(doc):
            continue
        real = [k for k, t in enumerate(pending) if any(c.isalnum() for c in t.text)]
        text = "".join(t.text for t in pending)
        blank = pending[-1].whitespace_
        if real:
            lead = "".join(t.text for t in pending[: real[0]])
            word = plain(pending[real[0]]) + "".join(t.text for t in pending[real[0] + 1 : real[-1] + 1])
            tail = "".join(t.text for t in pending[real[-1] + 1 :])
            slots.append(WordSlot(before + lead, word, tail + blank, _tag([pending[k] for k in real])))
            before = ""
        elif slots:
            slots[-1] = replace(slots[-1], after=slots[-1].after + text + blank)
        else:
            before += text + blank
        pending = []
    return slots


def _tag(tokens: Sequence[Any]) -> str:
    """Of a word of several tokens (`dog's`, `middle-aged`), that of the first noun or else of the last one."""
    tags = [str(t.tag_) for t in tokens]
    return next((t for t in tags if t in NOUNS), tags[-1])


def _by_kind(slots: Sequence[WordSlot], rng: Random) -> list[int]:
    order = list(range(len(slots)))
    return _permuted(order, [[k for k in order if slots[k].tag in tags] for tags in (NOUNS, ADJECTIVES)], rng)


def _the_others(slots: Sequence[WordSlot], rng: Random) -> list[int]:
    order = list(range(len(slots)))
    return _permuted(order, [[k for k in order if slots[k].tag not in NOUNS | ADJECTIVES]], rng)


def _within_trigrams(slots: Sequence[WordSlot], rng: Random) -> list[int]:
    groups = trigrams(range(len(slots)))
    for group in groups:
        rng.shuffle(group)
    return [k for group in groups for k in group]


def _trigrams(slots: Sequence[WordSlot], rng: Random) -> list[int]:
    groups = trigrams(range(len(slots)))
    rng.shuffle(groups)
    return [k for group in groups for k in group]


def _all(slots: Sequence[WordSlot], rng: Random) -> list[int]:
    order = list(range(len(slots)))
    rng.shuffle(order)
    return order


PERMUTATIONS: dict[str, Callable[[Sequence[WordSlot], Random], list[int]]] = {
    "shuffle-nouns-adjectives": _by_kind,
    "shuffle-others": _the_others,
    "shuffle-within-trigrams": _within_trigrams,
    "shuffle-trigrams": _trigrams,
    "shuffle-all": _all,
}


# -- as published ----------------------------------------------------------------------------------------------------


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


def _permuted(words: list[T], slot_groups: Sequence[list[int]], rng: Random) -> list[T]:
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


def trigrams(words: Sequence[T]) -> list[list[T]]:
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


def _as_published_items(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """Items with ARO's clean-up; foils that it makes equal to the caption are left out."""
    items = []
    for item in with_source(source, accepted):
        cleaned = [aro_caption(c) for c in item.captions]
        kept = [cleaned[0], *(c for c in cleaned[1:] if c != cleaned[0])]
        if len(kept) > 1:
            match = ((True,) + (False,) * (len(kept) - 1),)
            items.append(Item(item.id, item.subset, item.images, tuple(kept), match, item.tags))
    return items


def rebuild(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """The maker `rules:rebuild`."""
    rules = (make(name, options, captions).propose_one for make in (replace_maker, swap_maker))
    return ParsedMaker(name, Rebuilder(*rules), options, options.rule_checks)


@dataclass(frozen=True)
class Rebuilder:
    """One foil of each type, drawn from what its rule proposes."""

    replace: ProposeOne
    swap: ProposeOne

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng = dice_for(options.seed, "rules:rebuild", source.id)
        candidates = []
        for type_, rule in {"replace": self.replace, "swap": self.swap, "negate": propose_negations}.items():
            found = rule(source, doc, options).candidates
            if found:
                candidates.append(changed(rng.choice(found), maker="rules:rebuild", group=type_))
        kind = rng.choice([k for k in SHUFFLES if k != "shuffle-all"])
        text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
        edit = kind.replace("-", " ")
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:rebuild", edit, "shuffle"))
        return Proposal(tuple(candidates))
