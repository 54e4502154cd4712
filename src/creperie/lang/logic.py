"""The truth layer: is a candidate caption true whenever a given caption is?

`truth` compares two captions and returns *entailed*, *contradicted*, *compatible* or *unknown*, with a reason. Both are
assumed to speak of the same things. A candidate that differs in one place is judged by the words that differ: things
and kinds of things, attributes, counts, actions, places. A candidate in which two words are exchanged is judged by the
scene that it describes. The other captions of the image are taken to be true. Nothing is guessed: where no rule applies
the answer is *unknown*, and an entailment model may be used (`--nli`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import Any, Final, Literal

from creperie.core import CreperieError
from creperie.lang.inflection import lemma
from creperie.lang.lexicon import (
    age_of,
    dimension_of,
    excludes,
    facts,
    gender_of,
    in_one_group,
    is_above,
    kind_of,
    listed_for,
)
from creperie.lang.parser import parse
from creperie.lang.relations import Spatial, relations, spatial
from creperie.lang.scene import describes_same_scene, holds_both_ways
from creperie.lang.scope import OPENERS, scoped_tokens
from creperie.lang.tokenizing import words
from creperie.lang.wordnet import open_wordnet

ENTAILED: Final = "entailed"
CONTRADICTED: Final = "contradicted"
COMPATIBLE: Final = "compatible"
UNKNOWN: Final = "unknown"
Verdict = Literal["entailed", "contradicted", "compatible", "unknown"]
DECIDABLE, UNDECIDABLE = "decidable", "not decidable"
#: Longest replacement, in words, that is judged by its words.
MOST_REPLACED = 4
_NEGATIONS = frozenset(("no", "not", "without", "never", "nobody", "nothing"))
_ARTICLES = frozenset(("a", "the"))
_BE = frozenset(("is", "are", "was", "were", "be", "being", "been"))
#: Words before a count that make it a limit or an estimate: `at least two`, `more than two`.
_INEXACT = frozenset(("least", "most", "than", "about", "nearly", "almost"))
_COUNTS = {word: n for n, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"), 1)}
_MANY = frozenset(("several", "many", "some", "multiple"))


@dataclass(frozen=True)
class Truth:
    """The verdict on a candidate, and its reason."""

    word: Verdict
    reason: str


def truth(caption: str, candidate: str, others: Sequence[str] = (), doc: Any = None) -> Truth:
    """Return the verdict on whether the candidate is true whenever the caption is. `others` are true captions of the
    same image; `doc` is the caption's parse, if there is one.

    >>> truth("The cat is on the bed.", "The bed is below the cat.").word
    'entailed'
    >>> truth("The cat is on the bed.", "The cat is under the bed.").word
    'contradicted'
    >>> truth("A dog barks.", "An animal barks.").word, truth("Two dogs bark.", "Three dogs bark.").word
    ('entailed', 'contradicted')
    >>> truth("A man hugs a woman.", "A woman hugs a man.").reason
    'the scene is the same: what relates the two holds both ways'
    >>> truth("A man walks.", "A man with a dog walks.").word
    'compatible'
    """
    old, new = _bare(caption), _bare(candidate)
    if old == new:
        return Truth(ENTAILED, "the same words")
    if any(_bare(other) == new for other in others):
        return Truth(ENTAILED, "another caption of the image says it")
    if _adds_up(old) and not _adds_up(new):
        return Truth(CONTRADICTED, "its counts do not add up")
    one, two = spatial(caption), spatial(candidate)
    if one is not None and two is not None:
        return _spatial_truth(one, two)
    denied = [sum(w in _NEGATIONS for w in side) % 2 for side in (old, new)]
    if denied[0] != denied[1]:
        return Truth(CONTRADICTED, "one denies the other")
    places = _blocks(old, new)
    blocks = [(removed, added) for _, removed, added in places]
    scope = _scope(caption, old, doc)
    if any(not scope.isdisjoint(range(at, at + len(gone)) if gone else (at - 1,)) for at, gone, _ in places):
        if not any(removed for removed, _ in blocks):
            return Truth(ENTAILED, "it denies less, or says it of fewer things")
        return Truth(COMPATIBLE, "it changes what is denied, or said of all: both may hold")
    if sorted(old) == sorted(new):
        return _exchanged(caption, old, new, doc)
    if (voice := _other_voice(old, new)) is not None:
        return voice
    if not any(added for _, added in blocks):
        return Truth(ENTAILED, "it says less")
    mentioned = frozenset(form for other in others for w in words(other) for form in _forms(w))
    if len(blocks) == 1 and blocks[0][0] and max(map(len, blocks[0])) <= MOST_REPLACED:
        at, removed, _ = places[0]
        if removed[0] in _COUNTS and at and old[at - 1] in _INEXACT:
            return Truth(COMPATIBLE, "a limit or an estimate: both counts may hold")
        return _replaced(*blocks[0], mentioned, _tags(caption, doc))
    if all(not removed or not added for removed, added in blocks):
        more = {w for removed, added in blocks if not removed for w in added}
        if mentioned & {lemma(w, "NNS") for w in more if kind_of(lemma(w, "NNS")) or dimension_of(w)}:
            return Truth(UNKNOWN, "another caption of the image names what is added")
        return Truth(COMPATIBLE, "it says more: the caption does not rule it out")
    return Truth(UNKNOWN, "they differ in more than one place")


def _bare(text: str) -> list[str]:
    return ["a" if w == "an" else w for w in words(text)]


def _scope(caption: str, old: list[str], doc: Any) -> frozenset[int]:
    """Return the indices of the words that are denied or said of all; of all words if the parse is of other words."""
    if OPENERS.isdisjoint(old) and "n't" not in caption:
        return frozenset()
    try:
        tokens = [t for t in (doc if doc is not None else _parsed(caption)) if words(t.text)]
    except CreperieError:
        tokens = []
    if len(tokens) != len(old):
        return frozenset(range(len(old)))
    inside = scoped_tokens(tokens[0].doc)
    return frozenset(k for k, token in enumerate(tokens) if token.i in inside)


def _other_voice(old: list[str], new: list[str]) -> Truth | None:
    """Return the verdict if one caption is the other's passive, or says the same with exchanged roles; else None."""
    if ("by" in old) == ("by" in new):
        return None
    active, passive = (old, new) if "by" in new else (new, old)
    plain, turned = ([_base(w) for w in side if w not in _BE] for side in (active, passive))
    by = turned.index("by")
    verb = turned[by - 1]
    if sorted([*plain, "by"]) != sorted(turned) or verb not in plain:
        return None
    subject = plain[: plain.index(verb)]
    if turned[by + 1 :][: len(subject)] == subject or holds_both_ways(verb):
        return Truth(ENTAILED, "the same in the other voice")
    if turned[: len(subject)] == subject:
        return Truth(CONTRADICTED, "each has the other's part: one is the passive")
    return None


def _blocks(old: list[str], new: list[str]) -> list[tuple[int, list[str], list[str]]]:
    """Return the differences as (index in `old`, removed words, added words).

    Two differences that have only an article between them are merged.
    """
    blocks: list[tuple[int, list[str], list[str]]] = []
    between: list[str] = ["."]
    for op, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if op == "equal":
            between = old[a:b]
        elif blocks and _ARTICLES.issuperset(between):
            at, removed, added = blocks[-1]
            blocks[-1] = (at, [*removed, *between, *old[a:b]], [*added, *between, *new[c:d]])
        else:
            blocks.append((a, old[a:b], new[c:d]))
    return blocks


@lru_cache(maxsize=4096)
def _forms(word: str) -> tuple[str, ...]:
    return word, lemma(word, "NNS"), lemma(word, "VBG"), lemma(word, "VBZ")


@lru_cache(maxsize=8)
def _parsed(caption: str) -> Any:
    return next(iter(parse([caption])))


def _tags(caption: str, doc: Any) -> dict[str, str]:
    """Return lower-cased word → Penn tag; empty if no parser is installed."""
    try:
        return {t.lower_: t.tag_ for t in (doc if doc is not None else _parsed(caption))}
    except CreperieError:
        return {}


# -- one place differs -----------------------------------------------------------------------------------------------


def _replaced(old: list[str], new: list[str], mentioned: frozenset[str], tags: dict[str, str]) -> Truth:
    """Return the verdict on a replacement of words. `mentioned` are the words of the image's other captions and their
    lemmas, `tags` the Penn tags of the caption's words.
    """
    while len(old) > 1 and len(new) > 1 and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    edit = f"{' '.join(old)} → {' '.join(new)}"
    determined = len(old) > 1 and len(new) > 1 and {old[0], new[0]} <= {"a", "the", *_COUNTS}
    if determined and "a" in (old[0], new[0]) and lemma(old[-1], "NNS") == lemma(new[-1], "NNS"):
        return Truth(CONTRADICTED, f"another count: {edit}")
    if old[0] in _COUNTS or new[0] in _COUNTS:
        return _counted(old[0], new[0], edit)
    places = [" ".join(side) for side in (old, new)]
    if all(_is_place(p) for p in places):
        return _placed(places[0], places[1], edit)
    before, after = old[-1], new[-1]
    tag = tags.get(before, "")
    if tag.startswith("NN") and not (len(old) > 1 and len(new) > 1 and _is_place(old[0])):
        return _noun_replaced(lemma(before, "NNS"), " ".join([*new[:-1], lemma(after, "NNS")]), mentioned, edit)
    if tag.startswith("VB"):
        return _verb_replaced(lemma(old[0], tags.get(old[0], tag)), _base(new[0]), mentioned, edit)
    if len(old) == len(new) == 1:
        return _attribute_replaced(before, after, mentioned, edit)
    if lemma(after, "NNS") in mentioned:
        return Truth(UNKNOWN, f"another caption of the image names it: {edit}")
    return Truth(COMPATIBLE, f"something else is said: {edit}")


def _base(verb: str) -> str:
    return lemma(verb, "VBG" if verb.endswith("ing") else "VBZ" if verb.endswith("s") else "VBD")


def _counted(old: str, new: str, edit: str) -> Truth:
    counts = [_COUNTS.get(w) for w in (old, new)]
    if None not in counts:
        return Truth(CONTRADICTED, f"another count: {edit}")
    if {old, new} & _MANY:
        return Truth(COMPATIBLE, f"the counts may agree: {edit}")
    return Truth(UNKNOWN, f"a count for something else: {edit}")


def _adds_up(caption_words: Sequence[str]) -> bool:
    """Return whether the counts after the first sum to it (`three cups, two … and one …`), or are fewer than two."""
    counts = [_COUNTS[w] for w in caption_words if w in _COUNTS]
    return len(counts) < 3 or sum(counts[1:]) == counts[0]


def _noun_replaced(old: str, new: str, mentioned: frozenset[str], edit: str) -> Truth:
    """Return the verdict on one noun replaced by another."""
    last = new.split()[-1]
    if is_above(new, old) or is_above(last, old):
        return Truth(ENTAILED, f"one is a kind of the other: {edit}")
    if last in mentioned or may_be_called(old, last) or not excludes(old, last):
        return Truth(COMPATIBLE, f"both may be there, or be the same: {edit}")
    kinds = kind_of(old), kind_of(new) or kind_of(last)
    if kinds == ("person", "person") and new not in listed_for(old):
        apart = any(of(old) and of(new) and of(old) != of(new) for of in (gender_of, age_of))
        return Truth(CONTRADICTED if apart else COMPATIBLE, f"two names of people: {edit}")
    listed = new in listed_for(old) or old in listed_for(new)
    if not listed and ("place" in kinds or kinds == ("clothing", "clothing")):
        return Truth(COMPATIBLE, f"both may be seen: {edit}")
    if all(kinds):
        return Truth(CONTRADICTED, f"two things that exclude each other: {edit}")
    return Truth(UNKNOWN, f"nothing is known of the two: {edit}")


def may_be_called(noun: str, other: str) -> bool:
    """Return whether captions use two nouns for the same thing: `field` and `grass`, `child` and `boy`."""
    genders = gender_of(noun), gender_of(other)
    return in_one_group("same", noun, other) and not ("" not in genders and genders[0] != genders[1])


def _attribute_replaced(old: str, new: str, mentioned: frozenset[str], edit: str) -> Truth:
    """Return the verdict on one attribute replaced by another."""
    if new in mentioned:
        return Truth(COMPATIBLE, f"another caption of the image says it: {edit}")
    if in_one_group("same", old, new):
        return Truth(COMPATIBLE, f"both may be said of one thing: {edit}")
    if in_one_group("opposites", old, new):
        return Truth(CONTRADICTED, f"two attributes that exclude each other: {edit}")
    net = open_wordnet()
    if new in net.antonyms(old, "a"):
        return Truth(CONTRADICTED, f"opposites: {edit}")
    if new in net.synonyms(old, "a"):
        return Truth(ENTAILED, f"the same attribute: {edit}")
    if dimension_of(old) and dimension_of(new):
        return Truth(COMPATIBLE, f"both attributes may hold: {edit}")
    return Truth(UNKNOWN, f"nothing is known of the two: {edit}")


@cache
def _known_actions() -> frozenset[str]:
    return frozenset(verb for group in facts()["together"] for verb in group)


def _verb_replaced(old: str, new: str, mentioned: frozenset[str], edit: str) -> Truth:
    """Return the verdict on one action replaced by another, with the same subject."""
    net = open_wordnet()
    if new in mentioned or in_one_group("together", old, new):
        return Truth(COMPATIBLE, f"both can be done at the same time: {edit}")
    if new in net.antonyms(old, "v") or {old, new} <= _known_actions():
        return Truth(CONTRADICTED, f"two actions that exclude each other: {edit}")
    if new in net.synonyms(old, "v"):
        return Truth(ENTAILED, f"the same action: {edit}")
    return Truth(UNKNOWN, f"nothing is known of the two: {edit}")


@cache
def _is_place(text: str) -> bool:
    return f"is {text}" in relations() or any(text in side for pair in facts()["apart"] for side in pair)


@cache
def excludes_place(old: str, new: str) -> bool:
    """Return whether a thing that is at place `old` of another thing cannot also be at place `new` of it."""
    near, within = facts()["beyond"]  # someone near a bench is not on it; someone on it may be called near it
    if old in near and new in within:
        return True
    return any((old in a and new in b) or (old in b and new in a) for a, b in facts()["apart"])


def _placed(old: str, new: str, edit: str) -> Truth:
    """Return the verdict on one preposition replaced by another in the description of a picture.

    A description is read for what it leaves out, too: `a dog near a bench` is not on it. A bare statement
    (`_spatial_truth`) is not: `The dog is near the bench.` also holds if the dog is on it.
    """
    one, two = (Spatial("one", f"is {place}", "other") for place in (old, new))
    if one.excludes(two) or excludes_place(old, new):
        return Truth(CONTRADICTED, f"places that exclude each other: {edit}")
    if one.entails(two):
        return Truth(ENTAILED, f"the place implies it: {edit}")
    return Truth(COMPATIBLE, f"both places may be right: {edit}")


# -- the same words in another order ---------------------------------------------------------------------------------


def _exchanged(caption: str, old: list[str], new: list[str], doc: Any) -> Truth:
    """Return the verdict on a caption in which two phrases are exchanged."""
    spans = exchanged_spans(old, new)
    if spans is None:
        return Truth(UNKNOWN, "the words are in another order")
    doc = doc if doc is not None else _parsed(caption)
    tokens = [t for t in doc if words(t.text)]
    if len(tokens) != len(old):
        return Truth(UNKNOWN, "the words are in another order")
    (_, middle), (second, _) = spans
    if middle == second and any(tokens[start].tag_ == "IN" for start, _ in spans):
        return Truth(ENTAILED, "a phrase is moved to the front or to the end")
    left, right = (tokens[end - 1] for _, end in spans)
    sides = [[t for t in tokens[a:b] if t.tag_ not in ("DT", "PRP$")] for a, b in spans]
    whole = any(len(side) > 1 and side[0].tag_[:2] == "JJ" for side in sides)
    kind = "attributes" if left.tag_[:2] == right.tag_[:2] == "JJ" else "phrases" if whole else "names"
    return exchange_truth(doc, left, right, kind)


def exchange_truth(doc: Any, left: Any, right: Any, exchange: str) -> Truth:
    """Return the verdict on a caption with two words exchanged; `exchange` is "names", "phrases" or "attributes"."""
    if not scoped_tokens(doc).isdisjoint((left.i, right.i)):
        return Truth(COMPATIBLE, "it changes what is denied, or said of all: both may hold")
    if describes_same_scene(doc, left, right, exchange):
        return Truth(ENTAILED, "the scene is the same: what relates the two holds both ways")
    edit = f"{left.text} ↔ {right.text}"
    if exchange == "attributes":
        apart = in_one_group("opposites", left.lower_, right.lower_)
        of = dimension_of(left.lower_)
        near = of == "colour" and in_one_group("same", left.lower_, right.lower_)
        same = near or (not apart and of == dimension_of(right.lower_) == "size")
        word: Verdict = COMPATIBLE if same else CONTRADICTED if apart else UNKNOWN
        return Truth(word, f"each has the other's attribute: {edit}")
    first, second = (lemma(t.text, t.tag_) for t in (left, right))
    if is_above(first, second) or is_above(second, first):
        return Truth(COMPATIBLE, f"one may be called by the name of the other: {edit}")
    return Truth(CONTRADICTED, f"each has the other's part: {edit}")


def exchanged_spans(old: Sequence[str], new: Sequence[str]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the two shortest spans of words that are exchanged, as (start, end); None if more differs.

    >>> exchanged_spans("a dog chases a cat".split(), "a cat chases a dog".split())
    ((1, 2), (4, 5))
    """
    start = next(k for k, (a, b) in enumerate(zip(old, new)) if a != b)
    stop = len(old) - next(k for k, (a, b) in enumerate(zip(reversed(old), reversed(new))) if a != b)
    middle, turned = list(old[start:stop]), list(new[start:stop])
    for one in range(1, len(middle)):
        for other in range(1, len(middle) - one + 1):
            if [*middle[len(middle) - other :], *middle[one : len(middle) - other], *middle[:one]] == turned:
                return (start, start + one), (stop - other, stop)
    return None


# -- captions of the form `The cat is on the bed.` -------------------------------------------------------------------


def _spatial_truth(first: Spatial, second: Spatial) -> Truth:
    """Return the verdict on two statements of where a thing is, by logic alone."""
    if first.things != second.things:
        return Truth(COMPATIBLE, "they are about different things")
    edit = f"{first.relation} / {second.relation}"
    if first.entails(second):
        return Truth(ENTAILED, f"the relation implies it: {edit}")
    if first.excludes(second):
        return Truth(CONTRADICTED, f"the relations exclude each other: {edit}")
    if not all(relations().get(one.relation) for one in (first, second)):
        return Truth(UNKNOWN, f"the relation is not known well enough: {edit}")
    if first.subject != second.subject and first.framed and second.framed:
        return Truth(UNKNOWN, f"it depends on the point of view: {edit}")
    return Truth(COMPATIBLE, f"both can hold: {edit}")


def decidability(true: Sequence[str], false: Sequence[str]) -> tuple[str, str]:
    """Return whether text alone separates the true captions of an item from its false ones, and the reason if not.

    "decidable": the first true caption and each other one entail each other, in one direction at least, and every false
    caption is contradicted by a true one. "not decidable": some pair is known to be related otherwise. Else "unknown".

    >>> decidability(["The cat is on the bed.", "The bed is below the cat."], ["The cat is under the bed."])[0]
    'decidable'
    >>> decidability(["The cat is on the bed.", "The bed is below the cat."], ["The cat is near the bed."])
    ('not decidable', 'the relation implies it: is on / is near')
    """
    verdicts: list[tuple[Verdict, Truth]] = []
    for other in true[1:]:
        both = (truth(true[0], other), truth(other, true[0]))
        verdicts.append((ENTAILED, _first(both, ENTAILED)))
    for foil in false:
        verdicts.append((CONTRADICTED, _first([truth(caption, foil) for caption in true], CONTRADICTED)))
    amiss = [verdict for wanted, verdict in verdicts if verdict.word != wanted]
    decided = [verdict for verdict in amiss if verdict.word != UNKNOWN]
    if decided:
        return UNDECIDABLE, decided[0].reason
    return (UNKNOWN, amiss[0].reason) if amiss else (DECIDABLE, "")


def _first(verdicts: Iterable[Truth], wanted: Verdict) -> Truth:
    """Return the first verdict whose word is the wanted one, or else the first verdict."""
    every = list(verdicts)
    return next((one for one in every if one.word == wanted), every[0])
