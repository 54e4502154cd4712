"""One style for all captions of an item, so that style cannot tell them apart.

Words stay as they are. Blanks, the first capital, the final period, quotation marks, the traces of a tokeniser and
the case of words that captions share are made equal, whoever wrote the caption and whether it is true.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_BLANKS = re.compile(r"\s+")
_BEFORE_MARK = re.compile(r"\s+([,.;:!?%)\]])")
_AFTER_BRACKET = re.compile(r"([(\[])\s+")
_CLITIC = re.compile(r"(\w) (n['’]t|['’](?:s|re|ve|ll|d|m))\b", re.IGNORECASE)
_END = re.compile(r"[\s.!?…,;:]+$")
_WORD = re.compile(r"\w+")
_PLAIN = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})


def tidy(text: str) -> str:
    """A caption in the house style; one that holds nothing but blanks and marks stays as it is.

    >>> tidy("a dog , running  home "), tidy("It does n't bark!")
    ('A dog, running home.', "It doesn't bark.")
    """
    plain = text.translate(_PLAIN).replace("``", '"').replace("''", '"')
    plain = _CLITIC.sub(r"\1\2", _BLANKS.sub(" ", plain).strip())
    plain = _END.sub("", _AFTER_BRACKET.sub(r"\1", _BEFORE_MARK.sub(r"\1", plain)))
    if not plain:
        return text
    return plain[0].upper() + plain[1:] + "."


def tidy_together(captions: Sequence[str]) -> list[str]:
    """All captions of an item in one style: tidy, and a word that they write in different case in the plainest of it.

    >>> tidy_together(["a tv on a Table ", "A table on a TV."])
    ['A tv on a table.', 'A table on a tv.']
    """
    plainest: dict[str, str] = {}
    for caption in captions:
        for k, match in enumerate(_WORD.finditer(caption.strip())):
            word = match.group()
            if k == 0:  # its capital says where it stands, not how it is written
                word = word[:1].lower() + word[1:]
            key = word.casefold()
            known = plainest.get(key, word)
            plainest[key] = min(known, word, key=lambda w: (sum(c.isupper() for c in w), w))
    return [tidy(_WORD.sub(lambda m: plainest.get(m.group().casefold(), m.group()), caption)) for caption in captions]
