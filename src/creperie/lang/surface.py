"""Surface style: properties of a caption that do not depend on its meaning.

People and machines punctuate and capitalise differently, and so do different machines. Final full stops, capitals,
stray spaces and the traces of a tokeniser reveal who wrote a caption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

#: Spaces before punctuation, split clitics, Penn quotes and brackets: the traces of a tokeniser.
_TOKENISED = re.compile(r"\w [,.;:!?](?:\s|$)|\b\w+ (?:n't|'s|'re|'ve|'ll|'d|'m)\b|``|''|-[LR][RSC]B-", re.IGNORECASE)
_TRACE = re.compile(r" (?:[,.;:!?']|[nN]')|[`'-][`'LRlr]")  # part of every match of _TOKENISED, faster to find
_QUOTES = re.compile(r"[\"“”„«»]")
_ENDS = (".", "!", "?")

#: Untidy mark → a test whether a caption has it. `untidiness` counts them.
MARKS: Mapping[str, Callable[[str], bool]] = {
    "no final period": lambda text: not text.rstrip().endswith(_ENDS),
    "lower-case start": lambda text: text.lstrip()[:1].islower(),
    "trailing blank": lambda text: text != text.rstrip(),
    "leading blank": lambda text: text != text.lstrip(),
    "blank before punctuation": lambda text: bool(_TRACE.search(text) and _TOKENISED.search(text)),
}

#: Further marks of style: shown in the table of cues, and given to the learned attackers.
PLAIN: Mapping[str, Callable[[str], bool]] = {
    "double blank": lambda text: "  " in text.strip(),
    "word in capitals": lambda text: any(word.isupper() and len(word) > 3 for word in text.split()),
    "quotation mark": lambda text: bool(_QUOTES.search(text)),
    "digit": lambda text: any(map(str.isdigit, text)),
    "not ASCII": lambda text: not text.isascii(),
    "comma": lambda text: "," in text,
    "hyphen": lambda text: "-" in text,
    "two sentences": lambda text: bool(re.search(r"[.!?]\s+\S", text.strip())),
}


def marks(text: str) -> dict[str, bool]:
    """Return whether the caption has each feature of style, such as a lower-case start or a missing full stop.

    >>> [name for name, there in marks("a dog , running ").items() if there]
    ['no final period', 'lower-case start', 'trailing blank', 'blank before punctuation', 'comma']
    """
    return {name: test(text) for table in (MARKS, PLAIN) for name, test in table.items()}


def untidiness(text: str) -> int:
    """Count the signs of untidy style in a caption, such as no capital at the start, no full stop, or stray spaces.

    >>> untidiness("A dog runs."), untidiness("a dog runs ")
    (0, 3)
    """
    return sum(test(text) for test in MARKS.values())


_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|isnt|arent|doesnt|dont)\b"
    r"|n['’]t\b|\bn['’]t\b",
    re.IGNORECASE,
)


def negations(text: str) -> int:
    """Return the number of negating words in a caption.

    >>> negations("There is no dog and it isn't on a couch without legs.")
    3
    """
    return len(_NEGATION.findall(text))


_BEFORE_MARK = re.compile(r" ([,.;:!?%)\]])")
_AFTER_BRACKET = re.compile(r"([(\[]) ")
_CLITIC = re.compile(r"(\w) (n't|'(?:s|re|ve|ll|d|m))\b", re.IGNORECASE)
_WORD = re.compile(r"(\w+)")
_PLAIN = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})


def tidy(text: str) -> str:
    """Return a caption in one normalised style. A caption with nothing but spaces and punctuation is returned
    unchanged.

    >>> tidy("a dog , running  home "), tidy("It does n't bark!")
    ('A dog, running home.', "It doesn't bark.")
    """
    plain = text if text.isascii() else text.translate(_PLAIN)
    plain = " ".join(plain.replace("``", '"').replace("''", '"').split())
    if "'" in plain:
        plain = _CLITIC.sub(r"\1\2", plain)
    plain = _AFTER_BRACKET.sub(r"\1", _BEFORE_MARK.sub(r"\1", plain)).rstrip(" .!?…,;:")
    if not plain:
        return text
    return plain[0].upper() + plain[1:] + "."


def tidy_together(captions: Sequence[str]) -> list[str]:
    """Return all captions of an item in one style. A word that they capitalise differently gets the form with the
    fewest capitals.

    A capital at the beginning of a caption does not count, so "Queen" within another caption keeps its capital.

    >>> tidy_together(["a tv on a Table ", "A table on a TV."])
    ['A tv on a table.', 'A table on a tv.']
    >>> tidy_together(["A boy sees Queen Anne.", "Queen Anne sees a boy."])
    ['A boy sees Queen Anne.', 'Queen Anne sees a boy.']
    """
    plainest: dict[str, str] = {}
    split = [_WORD.split(caption) for caption in captions]  # words are at odd indices
    for word in (word for parts in split for word in parts[3::2]):
        known = plainest.setdefault(word.casefold(), word)
        if known != word:
            plainest[word.casefold()] = min(known, word, key=lambda w: (sum(map(str.isupper, w)), w))
    for parts in split:
        for word in parts[1:2]:
            plainest.setdefault(word.casefold(), word[:1].lower() + word[1:])
    for parts in split:
        parts[1::2] = [plainest.get(word.casefold(), word) for word in parts[1::2]]
    return [tidy("".join(parts)) for parts in split]
