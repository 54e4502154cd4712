"""Shuffled word order: the four foils of ARO's Order sets, and the full shuffle.

The permutations are ARO's. Each source has its own random generator, so results do not depend on other sources.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

from creperie.bench import Item, choice
from creperie.core import installed
from creperie.lang import ENTAILED, truth
from creperie.making.candidate import Candidate, Proposal, dice_for
from creperie.making.negate import propose_negations
from creperie.making.options import MakerOptions
from creperie.making.phrases import ADJECTIVES, NOUN_TAGS
from creperie.making.pipeline import ParsedMaker, ProposeOne, with_source
from creperie.making.rules import rule_maker
from creperie.making.source import Captions, SourceCaption
from creperie.making.wording import first_letter_like, plain

TRIES = 8  #: maximum number of shuffles, until one changes the order of the words

_REMOVED = re.compile(r"([.!\"()*#:;~])")
_RUNS = re.compile(r"\s{2,}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")
MOST_WORDS = 30


def shuffle(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """Return the maker `rules:shuffle`: four foils per caption in one item, and the full shuffle in another."""
    build = _as_published_items if options.as_published else with_source
    return ParsedMaker(name, options, _propose, build=build)


def _propose(source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
    rng = dice_for(options.seed, "rules:shuffle", source.id)
    candidates = []
    for kind in SHUFFLES:
        text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
        group = "order" if kind != "shuffle-all" else "shuffle-all"
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:shuffle", kind.replace("-", " "), group))
    return Proposal(candidates)


def shuffled(kind: str, text: str, doc: Any, rng: Random, *, as_published: bool) -> str:
    """Return a shuffled caption. If the order of the words is still the same, they are shuffled again, up to seven
    times. Unless `as_published`, they are also shuffled again if the result follows from the caption, as
    `At the airport a man hugs a woman` follows from `A man hugs a woman at the airport`.

    With `as_published`, tokens are joined by spaces. Otherwise punctuation and spaces stay where they are. A space
    before a comma would make the foil longer than its caption, and so give it away.
    """
    slots = _published_slots(kind, text, doc) if as_published else slots_of(doc)
    words = [s.word for s in slots]
    lead = len(slots[0].before) if slots else 0  # the length of an opening quote, if any
    for _ in range(TRIES):
        order = [words[k] for k in _permutation(kind, slots, rng)]
        new = " ".join(order)
        if not as_published:
            new = "".join(s.before + word + s.after for s, word in zip(slots, order))
            new = new[:lead] + first_letter_like(new[lead:], text[lead:])
        changed = word_order("".join(order)) != word_order("".join(words))
        if changed and (as_published or truth(text, new, doc=doc).word != ENTAILED):
            break
    return new


def published_shuffle(kind: str, text: str, doc: Any, rng: Random) -> str:
    """Return a caption shuffled by ARO's method for this kind. The result may equal the caption."""
    slots = _published_slots(kind, text, doc)
    return " ".join(slots[k].word for k in _permutation(kind, slots, rng))


SHUFFLES = (
    "shuffle-nouns-adjectives", "shuffle-others", "shuffle-within-trigrams", "shuffle-trigrams", "shuffle-all"
)  # fmt: skip


class WordSlot(NamedTuple):
    """A word of a caption with its tag, and with the punctuation and blanks before and after it."""

    word: str
    tag: str = ""
    before: str = ""
    after: str = ""


def _published_slots(kind: str, text: str, doc: Any) -> list[WordSlot]:
    """Return the units that ARO shuffles: spaCy tokens, Penn Treebank tokens (for trigrams), or words split at
    blanks.
    """
    if kind in ("shuffle-nouns-adjectives", "shuffle-others"):
        return [WordSlot(t.text, t.tag_) for t in doc]
    return [WordSlot(unit) for unit in (text.split(" ") if kind == "shuffle-all" else word_tokens(text))]


def slots_of(doc: Any) -> list[WordSlot]:
    """Return the words of a caption, each with the punctuation and blanks after it. `middle-aged` is one word."""
    slots: list[WordSlot] = []
    lead = ""
    for token in doc:
        named = any(c.isalnum() for c in token.text)
        last = slots[-1] if slots else WordSlot("", after=" ")
        if named and not any(map(str.isspace, last.after)):  # `dog's` has the tag of the noun, `middle-aged` of `aged`
            tag = last.tag if last.tag in NOUN_TAGS else token.tag_
            slots[-1] = WordSlot(last.word + last.after + token.text, tag, last.before, token.whitespace_)
        elif named:
            slots.append(WordSlot(plain(token), token.tag_, "" if slots else lead, token.whitespace_))
        elif slots:
            slots[-1] = last._replace(after=last.after + token.text_with_ws)
        else:
            lead += token.text_with_ws
    return slots


def _permutation(kind: str, slots: Sequence[WordSlot], rng: Random) -> list[int]:
    """Return a new order of the words, as their indices. `kind` says which words are shuffled."""
    order = list(range(len(slots)))
    groups = [order[i : i + 3] for i in order[::3]]
    if kind == "shuffle-all":
        rng.shuffle(order)
    elif kind == "shuffle-trigrams":
        rng.shuffle(groups)
    elif kind == "shuffle-within-trigrams":
        for group in groups:
            rng.shuffle(group)
    if kind.endswith("trigrams"):
        return [k for group in groups for k in group]
    nouns, adjectives = ([k for k, slot in enumerate(slots) if slot.tag in tags] for tags in (NOUN_TAGS, ADJECTIVES))
    others = [k for k in order if k not in {*nouns, *adjectives}]
    moved = {"shuffle-nouns-adjectives": (nouns, adjectives), "shuffle-others": (others,)}
    for places in moved.get(kind, ()):
        drawn = list(places)
        rng.shuffle(drawn)
        for place, k in zip(places, drawn):
            order[place] = k
    return order


def word_order(text: str) -> str:
    """Return the letters and digits of a text in lower case. Texts with the same words in the same order have the same
    result.

    >>> word_order("A dog runs .") == word_order(". a dog runs")
    True
    """
    return "".join(c for c in text.lower() if c.isalnum())


def word_tokens(text: str) -> list[str]:
    """Return the Penn Treebank tokens of a text, sentence by sentence, as nltk's `word_tokenize` does, but without its
    data files.

    >>> word_tokens("A dog doesn't bark. It runs, fast.")
    ['A', 'dog', 'does', "n't", 'bark', '.', 'It', 'runs', ',', 'fast', '.']
    """
    tokenizer = installed("nltk.tokenize.destructive").NLTKWordTokenizer()
    return [token for sentence in _SENTENCE_END.split(text) for token in tokenizer.tokenize(sentence)]


def aro_caption(text: str) -> str:
    """Return a caption cleaned as ARO cleans all captions of its items.

    >>> aro_caption('A dog (big): it "runs".  Yes! ')
    'a dog big it runs yes'
    """
    plain = _RUNS.sub(" ", _REMOVED.sub(" ", text.lower())).rstrip("\n").strip(" ")
    return " ".join(plain.split(" ")[:MOST_WORDS])


def _as_published_items(source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
    """Return items whose captions are cleaned by ARO's rules. A foil that equals its caption after cleaning is left
    out.
    """
    items = []
    for item in with_source(source, accepted):
        cleaned = [aro_caption(c) for c in item.captions]
        kept = [cleaned[0], *(c for c in cleaned[1:] if c != cleaned[0])]
        if len(kept) > 1:
            items.append(replace(item, captions=tuple(kept), match=choice(1, len(kept) - 1)))
    return items


def rebuild(name: str, options: MakerOptions, captions: Captions) -> ParsedMaker:
    """Return the maker `rules:rebuild`, which imitates the foils of ARO and CREPE."""
    rules = (rule_maker(rule, options, captions).propose_one for rule in ("rules:replace", "rules:swap"))
    return ParsedMaker(name, options, Rebuilder(*rules))


@dataclass(frozen=True)
class Rebuilder:
    """A proposer of at most four foils per caption, one of each type (replace, swap, negate, shuffle). Each is drawn
    from those that the rules for its type propose.
    """

    replace: ProposeOne
    swap: ProposeOne

    def __call__(self, source: SourceCaption, doc: Any, options: MakerOptions) -> Proposal:
        rng = dice_for(options.seed, "rules:rebuild", source.id)
        candidates = []
        for type_, rule in {"replace": self.replace, "swap": self.swap, "negate": propose_negations}.items():
            proposed = rule(source, doc, options).candidates
            if proposed:
                candidates.append(replace(rng.choice(proposed), maker="rules:rebuild", group=type_))
        kind = rng.choice([k for k in SHUFFLES if k != "shuffle-all"])
        text = shuffled(kind, source.text, doc, rng, as_published=options.as_published)
        edit = kind.replace("-", " ")
        candidates.append(Candidate(source.id, text, "negative", kind, "rules:rebuild", edit, "shuffle"))
        return Proposal(candidates)
