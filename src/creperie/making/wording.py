"""Rewording of a parsed caption: words are replaced, removed or moved, then articles and case are repaired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from creperie.lang import article_for, lemma, open_wordnet
from creperie.making.data import read_data
from creperie.making.verbs import is_common, is_nation, topics

#: A word and the blank after it.
Piece = tuple[str, str]
_NO_BLANK_BEFORE = frozenset(".,;:!?%)]}'’") | {"", "n't", "n’t", "'s", "’s", "'re", "'ll", "'ve", "'d", "'m"}
_NO_BLANK_AFTER = frozenset("([{$#")


def reworded(doc: Any, changes: Mapping[int, str], *, repair: bool = True) -> str:
    """Return the caption with some tokens replaced (an empty text removes a token). Spaces stay where they are.

    With `repair`, `a` and `an` are adjusted to the new words, and the first letter keeps its case.
    """
    pieces: list[Piece] = []
    for token in doc:
        text = changes.get(token.i, token.text)
        if text:
            pieces.append((text, token.whitespace_))
        elif pieces and not token.whitespace_:
            pieces[-1] = (pieces[-1][0], "")
    return written(pieces, like=doc.text if repair else "")


def written(pieces: Sequence[Piece], *, like: str = "") -> str:
    """Return the text of the pieces, which are words with the blank after each. With `like`, `a` and `an` are adjusted,
    and the first letter gets the case of the first letter of `like`.
    """
    words = [w for w, _ in pieces]
    fitted = fit_articles(words, like) if like else words
    text = "".join(w + blank for w, (_, blank) in zip(fitted, pieces))
    return first_letter_like(text, like) if like else text


def spaced(words: Iterable[str]) -> list[Piece]:
    """Return words with blanks between them as in written English.

    >>> written(spaced(["a", "dog", "'s", "toy", ",", "here", "."]))
    "a dog's toy, here."
    """
    pairs = pairwise([*words, ""])
    return [(word, "" if after in _NO_BLANK_BEFORE or word in _NO_BLANK_AFTER else " ") for word, after in pairs]


def sentence(words: Iterable[str], end: str, like: str) -> str:
    """Return words as a sentence that ends with `end`. Its first letter has the case of the first letter of `like`."""
    text = written(spaced(fit_articles([w for w in words if w], like))) + end
    return first_letter_like(text, like) if like[:1].isalpha() else text


def fit_articles(words: Sequence[str], source: str = "") -> list[str]:
    """Return the words with `a` and `an` adjusted to the next word, except articles that stand before the same word in
    `source`.

    >>> fit_articles(["A", "owl", "and", "an", "dog", ",", "an", "mp3"], "An hour with an mp3.")
    ['An', 'owl', 'and', 'a', 'dog', ',', 'an', 'mp3']
    """
    fitted = list(words)
    for k, word in enumerate(words[:-1]):
        after = words[k + 1].split(" ")[0] if word.lower() in ("a", "an") else ""
        as_before = f"{word} {after}".lower() in source.lower()
        if not as_before and after[:1].isalnum() and after.lower() not in ("a", "an", "the"):
            right = article_for(after)
            fitted[k] = right.capitalize() if word[0].isupper() else right
    return fitted


def first_letter_like(text: str, like: str) -> str:
    """Return the text with its first letter in the case of the first letter of `like`.

    >>> first_letter_like("the dog", "A cat"), first_letter_like("The dog", "a cat")
    ('The dog', 'the dog')
    """
    lead = len(text) - len(text.lstrip())
    model = like.lstrip()[:1]
    first, rest = text[lead : lead + 1], text[lead + 1 :]
    if model.isupper():
        first = first.upper()
    elif model.islower() and not rest[:1].isupper():
        first = first.lower()
    return text[:lead] + first + rest


def plain(token: Any) -> str:
    """Return a token as it would be written inside a sentence, without a capital that it has only because of its
    position.
    """
    text: str = token.text
    before = token.doc[: token.i]
    if any(not (t.is_space or t.is_punct) for t in before) and not before[-1].is_sent_end:
        return text
    after = token.nbor(1) if token.i + 1 < len(token.doc) else token
    described = token.dep_ == "compound" and token.head.tag_ in ("NN", "NNS")
    described = described or (after.is_lower and after.tag_[:2] in ("NN", "JJ"))  # `Union leader`, `Crimson lampshade`
    described = described and is_common(text.lower())
    first = after is not token and after.tag_ == "NNP" and after.text[:1].isupper()  # `Anders Holt`
    plural = _names_many(text) and not first
    names = (token.tag_ == "NNP" and not plural and not described) or text[1:2].isupper()
    names = names or (first and token.tag_[:2] == "NN" and (token.tag_ == "NNPS" or not topics(text.lower())))
    if is_role(token):
        return text.lower()  # `Substitute Carla Fuentes`
    names = names or is_nation(text)
    return text if names else text[:1].lower() + text[1:]


def is_role(token: Any) -> bool:
    """Return True for a noun that stands before two names and says what somebody does, as `Batter` does in `Batter
    Sunil Das`. Return False for a title such as `Senator`, which is capitalised within a sentence as well.
    """
    word, after = token.lower_, token.doc[token.i + 1 : token.i + 3]
    named = len(after) == 2 and all(t.tag_ == "NNP" and t.text[:1].isupper() for t in after)
    return named and is_common(word) and 18 in topics(word)[:3] and word not in read_data("frames")["titles"]


def _names_many(text: str) -> bool:
    """Return True if a capitalised word is the plural of a common noun, such as `Utensils`, and False if it is a name,
    such as `James`.
    """
    return text.endswith("s") and bool(open_wordnet().senses(lemma(text.lower(), "NNS"), "n"))
