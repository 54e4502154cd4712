"""What a caption denies or says of all things of a kind: another word there does not contradict the caption."""

from __future__ import annotations

from typing import Any

#: They deny what the noun or clause they stand in says.
_DENYING = frozenset(("no", "nobody", "none", "nothing", "neither"))
_UNIVERSAL = frozenset(("all", "every", "each"))
#: Words that open such a scope.
OPENERS = _DENYING | _UNIVERSAL | {"not", "n't", "never", "without"}
_SUBJECTS = ("nsubj", "nsubjpass", "csubj")


def scoped_tokens(doc: Any) -> frozenset[int]:
    """Return the indices of the tokens that are denied, or that say which things a statement about all of them means.

    `No one [sits on the bench]`, `A man is not [wearing a hat]`, `a man without [a hat]`, `All [the dogs] bark`.
    """
    inside: set[int] = set()
    for token in doc:
        word = token.lower_
        if word in ("not", "n't", "never"):
            subjects = [child for child in token.head.children if child.dep_ in _SUBJECTS]
            inside |= {t.i for t in token.head.subtree} - {t.i for s in subjects for t in s.subtree}
        elif word in OPENERS:
            noun = token.head if token.dep_ in ("det", "predet", "advmod") else token
            whole = word in _DENYING and noun.dep_ in (*_SUBJECTS, "attr")
            inside |= {t.i for t in (noun.head if whole else noun).subtree}
    return frozenset(inside)
