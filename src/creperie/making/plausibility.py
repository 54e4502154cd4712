"""How likely a language model finds a foil beside its source: the gap, and the band that it must stay in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from creperie.lang import words
from creperie.making.checks import text_scorer
from creperie.making.options import TRIGRAM

#: Words on either side of an edit that a trigram model looks at.
_REACH = 2
_cut = lru_cache(maxsize=64)(words)


def gaps(source: str, foils: Sequence[str], lm: str) -> list[float]:
    """log P(foil) − log P(source) of each foil: below zero where the foil is less likely."""
    if not lm or not foils:
        return [0.0] * len(foils)
    if lm == TRIGRAM:
        return [_trigram_gap(source, foil) for foil in foils]
    scores = text_scorer(lm).score_texts([source, *foils]).tolist()
    return [float(s) - float(scores[0]) for s in scores[1:]]


def _trigram_gap(source: str, foil: str) -> float:
    """Only what an edit changes is looked up: beyond two words on either side a trigram model sees no difference."""
    before, after = _cut(source), _cut(foil)
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    first, last = max(0, start - _REACH), max(0, end - _REACH)
    at_start, at_end = first == 0, last == 0
    old, new = (" ".join(w[first : len(w) - last]) for w in (before, after))
    return _likelihood(new, at_start, at_end) - _likelihood(old, at_start, at_end)


@lru_cache(maxsize=1 << 16)
def _likelihood(text: str, at_start: bool, at_end: bool) -> float:
    return float(_trigram().score_texts([text])[0])


@cache
def _trigram():  # type: ignore[no-untyped-def]
    return text_scorer(TRIGRAM)


def within_band(gap: float, lm: str, band: float) -> bool:
    """Whether a foil is about as likely as its source, in either direction."""
    return not lm or abs(gap) <= band
