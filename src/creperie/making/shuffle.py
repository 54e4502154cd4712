"""Shuffled word order: the four foils of ARO's Order sets, and the full shuffle.

The permutations are ARO's; the random numbers are a source's own, so that they do not depend on its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    """Return a shuffled caption. A shuffle that leaves the words in their order is tried again.

    The published way's tokens stand apart; else marks and blanks stay where they are, for a comma set apart would tell
    the foil by its length.
    """
    slots = _published_slots(kind, text, doc) if as_published else slots_of(doc)
    words = [s.word for s in slots]
    for _ in range(TRIES):
        order = [words[k] for k in PERMUTATIONS[kind](slots, rng)]
        if word_order("".join(order)) != word_order("".join(words)):
            break
    if as_published:
        return " ".join(order)
    lead = len(slots[0].before) if slots else 0  # a quote, perhaps
    written = "".join(s.before + word + s.after for s, word in zip(slots, order))
    return written[:lead] + first_letter_like(written[lead:], text[lead:])


def published_shuffle(kind: str, text: str, doc: Any, rng: Random) -> str:
    """Return what ARO's shuffle of this kind makes of a caption, which may be the caption itself."""
    slots = _published_slots(kind, text, doc)
    return " ".join(slots[k].word for k in PERMUTATIONS[kind](slots, rng))


def _published_slots(kind: str, text: str, doc: Any) -> list[WordSlot]:
    """Return the units that ARO shuffles: spaCy's tokens, Penn Treebank tokens in threes, or words between blanks."""
    if kind in ("shuffle-nouns-adjectives", "shuffle-others"):
        return [WordSlot("", t.text, "", t.tag_) for t in doc]
    units = text.split(" ") if kind == "shuffle-all" else word_tokens(text)
    return [WordSlot("", unit, "", "") for unit in units]


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


SHUFFLES: dict[str, Shuffle] = {kind: partial(published_shuffle, kind) for kind in PERMUTATIONS}


def _permuted(words: list[T], slot_groups: Sequence[list[int]], rng: Random) -> list[T]:
    """Return the words with those of each group of places exchanged among themselves.

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
    return ParsedMaker(name, Rebuilder(*rules), options, options.model_checks)


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
                candidates.append(replace(rng.choice(found), maker="rules:rebuild", group=type_))
        kind = rng.choice([k for k in SHUFFLES if k != "shuffle-all"])
        text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
        edit = kind.replace("-", " ")
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:rebuild", edit, "shuffle"))
        return Proposal(tuple(candidates))
