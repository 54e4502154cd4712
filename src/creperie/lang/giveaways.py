"""Words that give a foil away: negation, and what makers write when they have nothing better to say."""

from __future__ import annotations

import re

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|isnt|arent|doesnt|dont)\b"
    r"|n['’]t\b|\bn['’]t\b",
    re.IGNORECASE,
)


def negations(text: str) -> int:
    """How many negating words a caption holds.

    >>> negations("There is no dog and it isn't on a couch without legs.")
    3
    """
    return len(_NEGATION.findall(text))
