"""Which captions makers take on. What they would only make nonsense of is skipped, with a reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

from creperie.lang import words
from creperie.making.data import read_data

MOST_WORDS = 100
_MARKUP = re.compile(r"</?[a-zA-Z!][^>]*>|\{\{|\}\}|\[\[|\]\]|https?://|&[a-z]{2,6};|&#\d+;|```")
_UNPRINTED = ("Cs", "Cc", "Co", "Cn")
_SYMBOLS = ("So", "Sk", "Me", "Cf")


def why_unfit(text: str) -> str | None:
    """Why makers skip a caption, or None.

    >>> why_unfit("A dog chases a cat."), why_unfit("  "), why_unfit("Ein Hund jagt eine Katze auf dem Sofa")
    (None, 'empty', 'not in English')
    """
    if not text.strip():
        return "empty"
    kinds = {unicodedata.category(c) for c in set(text).difference("\t\n\r")}
    if not kinds.isdisjoint(_UNPRINTED):
        return "control characters"
    if not any(c.isalpha() for c in text):
        return "no words"
    if _MARKUP.search(text):
        return "markup"
    if not kinds.isdisjoint(_SYMBOLS):
        return "emoji or symbols"
    found = words(text)
    if len(found) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    if text.count('"') % 2 or text.count("“") != text.count("”") or text.count("(") != text.count(")"):
        return "unbalanced quotes or brackets"
    return "not in English" if _is_foreign(text, found) else None


def _is_foreign(text: str, found: Sequence[str]) -> bool:
    if not text.isascii():
        letters = [c for c in text if c.isalpha()]
        if sum(c.isascii() for c in letters) < 0.8 * len(letters):
            return True
    english, foreign = _function_words()
    strange = sum(w in foreign for w in found)
    return strange > 0 and strange > sum(w in english for w in found)


@cache
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    """Words that tell a language; those of others that share the alphabet, without what is English too."""
    lists = read_data("function_words")
    return frozenset(lists["english"]), frozenset(lists["foreign"])
