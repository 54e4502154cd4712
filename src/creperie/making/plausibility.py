"""How likely a language model finds a foil beside its source: the gap, and the band that it must stay in."""

from __future__ import annotations

from collections.abc import Sequence

from creperie.making.checks import text_scorer


def gaps(source: str, foils: Sequence[str], lm: str) -> list[float]:
    """Return log P(foil) − log P(source) of each foil: below zero where the foil is less likely."""
    if not lm or not foils:
        return [0.0] * len(foils)
    scores = text_scorer(lm).score_texts([source, *foils]).tolist()
    return [float(s) - float(scores[0]) for s in scores[1:]]


def within_band(gap: float, lm: str, band: float) -> bool:
    """True if a foil is about as likely as its source, in either direction."""
    return not lm or abs(gap) <= band
