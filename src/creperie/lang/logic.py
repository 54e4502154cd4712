"""Entailment between captions: is a candidate caption true whenever a given caption is?

`truth` compares what two captions say and returns *entailed*, *contradicted*, *compatible* or *unknown*, with a reason
that quotes the words. Both captions are assumed to describe one picture: the same noun in the same role is the same
thing, and a caption does not deny what it does not mention. The other captions of the image are taken to be true.
Nothing is guessed: where no rule applies the answer is *unknown*, and an entailment model may be used (`--nli`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final, Literal

from creperie.lang.comparison import ReadingComparison, best_comparison
from creperie.lang.likeness import forms
from creperie.lang.parser import mended, parse
from creperie.lang.reading import COUNTS, read
from creperie.lang.relations import spatial
from creperie.lang.scene import Reading
from creperie.lang.tokenizing import words

ENTAILED: Final = "entailed"
CONTRADICTED: Final = "contradicted"
COMPATIBLE: Final = "compatible"
UNKNOWN: Final = "unknown"
Verdict = Literal["entailed", "contradicted", "compatible", "unknown"]
#: How the reasons begin for which a verdict is unknown.
OPEN_REASONS = (
    "nothing is known of it",
    "they differ in more than one place",
    "they are about different things",
    "another caption of the image names what is added",
    "the same words in another order, not all read",
    "not read",
)
#: What is said of these may be denied of the others.
_PARTIAL = frozenset(("half", "of the"))
DECIDABLE, UNDECIDABLE = "decidable", "not decidable"


@dataclass(frozen=True)
class Truth:
    """The verdict on a candidate caption, and the reason for it."""

    word: Verdict
    reason: str


def truth(
    caption: str, candidate: str, others: Sequence[str] = (), doc: Any = None, candidate_doc: Any = None
) -> Truth:
    """Return whether the candidate is true whenever the caption is, as a verdict with a reason. `others` are true
    captions of the same image. `doc` and `candidate_doc` are parses or readings of the caption and the candidate, if
    they are already known.

    >>> truth("The cat is on the bed.", "The bed is below the cat.").word
    'entailed'
    >>> truth("A boy is pushed by a girl.", "A girl is pushed by a boy.").word
    'contradicted'
    >>> truth("A dog barks.", "An animal barks.").word, truth("Two dogs bark.", "Three dogs bark.").word
    ('entailed', 'contradicted')
    >>> truth("A man walks.", "A man with a dog walks.").word
    'compatible'
    """
    old, new = _bare(caption), _bare(candidate)
    if old == new:
        return Truth(ENTAILED, "the same words")
    if any(_bare(other) == new for other in others):
        return Truth(ENTAILED, "another caption of the image says it")
    if len(old) == len(new) and _adds_up(old) and not _adds_up(new):
        return Truth(CONTRADICTED, "its counts do not add up")
    mentioned = frozenset(form for other in others for w in words(other) for form in forms(w))
    own, other = _reading(caption, doc), _reading(candidate, candidate_doc)
    found = compare(own, other, mentioned)
    if found.word == ENTAILED and (own.unread or other.unread) and sorted(old) == sorted(new):
        return Truth(UNKNOWN, f"the same words in another order, not all read: {(own.unread or other.unread)[0]}")
    return found


def _reading(caption: str, doc: Any) -> Reading:
    return reading_of(caption) if doc is None else doc if isinstance(doc, Reading) else read(doc)


def exchange_truth(doc: Any, left: Any, right: Any, exchange: str) -> Truth:
    """Return whether a caption stays true if `left` and `right` are exchanged in it, as a verdict with a reason.
    `exchange` says what is exchanged: the "names" of two things, their whole "phrases", or two "attributes".
    """
    own = read(doc)
    things = (left.head.i, right.head.i) if exchange == "attributes" else (left.i, right.i)
    if not all(thing in own.entities for thing in things):
        return Truth(UNKNOWN, f"not read: {left.text}, {right.text}")
    return compare(own, own.exchanged(*things, exchange, (left.lower_, right.lower_)))


def compare(own: Reading, other: Reading, mentioned: frozenset[str] = frozenset()) -> Truth:
    """Return the verdict on the caption whose reading is `other`, given the caption whose reading is `own`. `mentioned`
    holds words from other captions of the image.
    """
    found = best_comparison(own, other)
    clash = found.contradiction()
    unsure = own.suspending ^ other.suspending
    if clash and clash.kind in ("denial", "attribute"):
        unsure |= own.suspending & _PARTIAL
    if unsure and (clash or not found.missing):
        return Truth(UNKNOWN, f"not read: {min(unsure)}")
    if not found.missing and not found.clashes:
        return Truth(
            ENTAILED,
            found.notes[0] if found.notes else f"it says less: {found.left}" if found.left else "it says the same",
        )
    if clash:
        if set(clash.new) & mentioned:
            return Truth(COMPATIBLE, f"another caption of the image says it: {clash.edit}")
        return Truth(CONTRADICTED, f"{clash.why}: {clash.edit}")
    return _open(found, mentioned)


def _open(found: ReadingComparison, mentioned: frozenset[str]) -> Truth:
    """Return the verdict on two captions that do not contradict each other: "compatible" if the rules cover every
    difference between them, else "unknown". `mentioned` are words of other captions of the image.
    """
    if found.clashes:
        return Truth(UNKNOWN, f"they differ in more than one place: {found.clashes[0].edit}")
    first = found.missing[0]
    if not found.shared:
        return Truth(UNKNOWN, "they are about different things")
    named = [w for one in found.missing for w in one.new if w in mentioned]
    if named:
        return Truth(UNKNOWN, f"another caption of the image names what is added: {named[0]}")
    if all(one.is_open for one in found.missing):
        return Truth(COMPATIBLE, f"{first.why}: {first.edit}")
    first = next(one for one in found.missing if not one.is_open)
    return Truth(UNKNOWN, f"nothing is known of it: {first.edit}")


def _bare(text: str) -> list[str]:
    return ["a" if w == "an" else w for w in words(text)]


def _adds_up(caption_words: Sequence[str]) -> bool:
    """Return whether the first number in a caption is the sum of the later ones, as in `three cups, two red and one
    blue`. With fewer than two later numbers, return True.
    """
    counts = [COUNTS[w] for w in caption_words if w in COUNTS]
    return len(counts) < 3 or sum(counts[1:]) == counts[0]


_READINGS: dict[str, Reading] = {}
_READING = RLock()  #: makers that wait for a server ask from several threads
_MOST_READINGS = 50_000


def reading_of(caption: str) -> Reading:
    """Return the reading of a caption: the things and facts that it states. Each caption is parsed only once."""
    with _READING:
        if caption not in _READINGS:
            read_together([caption])
        return _READINGS[caption]


def read_together(captions: Iterable[str]) -> None:
    """Parse captions in batches, which is three times as fast as one by one, and keep the results for `truth`."""
    with _READING:
        fresh = [caption for caption in dict.fromkeys(captions) if caption not in _READINGS]
        if len(_READINGS) + len(fresh) > _MOST_READINGS:
            _READINGS.clear()
        for caption, doc in zip(fresh, parse(fresh), strict=True):
            _READINGS[caption] = read(mended(doc))


def decidability(true: Sequence[str], false: Sequence[str]) -> tuple[str, str]:
    """Return whether text alone can separate the true captions of an item from its false ones ("decidable", "not
    decidable" or "unknown"), and the reason if it is not "decidable".

    An item is "decidable" if every true caption entails the first true caption or is entailed by it, and every false
    caption contradicts a true one. It is "not decidable" if a false caption follows from a true one. It is also "not
    decidable" if the table of relations shows that one of the conditions for "decidable" is not met. Otherwise it is
    "unknown".

    >>> decidability(["The cat is on the bed.", "The bed is below the cat."], ["The cat is under the bed."])[0]
    'decidable'
    >>> decidability(["The cat is on the bed.", "The bed is below the cat."], ["The cat is near the bed."])[0]
    'not decidable'
    """
    verdicts: list[tuple[Verdict, Truth]] = []
    for other in true[1:]:
        both = (truth(true[0], other), truth(other, true[0]))
        verdicts.append((ENTAILED, _first(both, ENTAILED)))
    for foil in false:
        verdicts.append((CONTRADICTED, _first([truth(caption, foil) for caption in true], CONTRADICTED)))
    amiss = [verdict for wanted, verdict in verdicts if verdict.word != wanted]
    bare = all(spatial(caption) for caption in (*true, *false))
    decided = [v for wanted, v in verdicts if v.word not in (wanted, UNKNOWN) and (bare or v.word == ENTAILED)]
    if decided:
        return UNDECIDABLE, decided[0].reason
    return (UNKNOWN, amiss[0].reason) if amiss else (DECIDABLE, "")


def _first(verdicts: Iterable[Truth], wanted: Verdict) -> Truth:
    """Return the first of the `verdicts` that is `wanted` or, if there is none, the first verdict."""
    every = list(verdicts)
    return next((one for one in every if one.word == wanted), every[0])
