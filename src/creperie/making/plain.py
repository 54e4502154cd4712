"""Short captions read word by word: where a parser takes `hands` or `preaches` for a noun, their order still tells.

A man hands a woman a kite.      noun phrase, verb, noun phrase, noun phrase
A preacher preaches to a crowd.  noun phrase, verb, preposition, noun phrase
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from creperie.lang import inflected, knows_verb, lemma
from creperie.making.phrases import NOUN_TAGS, Phrase, dictionary_form, glued, is_plural
from creperie.making.verbs import is_animate, is_name

#: Words of the longest caption that is read so.
MOST_WORDS = 16
_DETERMINERS = frozenset(("DT", "PRP$", "CD"))
_MODIFIERS = frozenset(("JJ", "VBN", "VBG", "JJR", "JJS", "RB", *NOUN_TAGS))
_REFERRING = frozenset(("each", "another", "other", "no", "itself", "himself", "herself", "themselves"))
_VERB_TAGS = frozenset(("VBZ", "VBP", "VBD", "VBG", "VB", "NNS", "NN"))


def words_of(doc: Any) -> tuple[list[Any], str]:
    """The words of a caption without its final mark, and that mark."""
    found = [t for t in doc if not t.is_space]
    end = found[-1].text if found and found[-1].text in (".", "!") else ""
    return (found[:-1] if end else found), end


def noun_phrase(tokens: Sequence[Any], start: int, *, animate: bool = False) -> tuple[Phrase, int] | None:
    """The noun phrase that begins at a word, and where it ends. With `animate` it ends at the first living being,
    so that `a boy french fries` is two."""
    if start >= len(tokens):
        return None
    first = tokens[start]
    if first.tag_ == "PRP":
        word = first.text.lower()
        return Phrase((word,), (word,), word, word in ("we", "us", "they", "them", "you"), pronoun=True), start + 1
    at = start
    while at < len(tokens) and tokens[at].tag_ in _DETERMINERS:
        at += 1
    begin = at
    while at < len(tokens) and (tokens[at].tag_ in _MODIFIERS or (at > begin and _is_being(tokens[at]))):
        at += 1
        named = tokens[at - 1].tag_ in NOUN_TAGS or _is_being(tokens[at - 1])
        further = at < len(tokens) and is_animate(lemma(tokens[at].text, "NNS"))  # `a white bear`
        if animate and named and not further and is_animate(lemma(tokens[at - 1].text, "NNS")):
            break
    if (
        at == begin
        or not (tokens[at - 1].tag_ in NOUN_TAGS or _is_being(tokens[at - 1]))
        or first.text.lower() in _REFERRING
    ):
        return None
    head = tokens[at - 1]
    if head.tag_ == "NN" and begin == start and not animate and at - start < 2:
        return None  # a countable thing without its article
    core = [*tokens[start:begin], *_name(tokens[begin:at])]
    return Phrase(glued(tokens[start:at]), glued(core), head.text.lower(), bool(is_plural(head))), at


def _is_being(token: Any) -> bool:
    """`a purple bear`, tagged as a verb."""
    return bool(token.tag_ in ("VB", "VBP")) and is_animate(token.text.lower())


def _name(tokens: Sequence[Any]) -> Sequence[Any]:
    """The head with what makes one name with it."""
    if len(tokens) > 1 and is_name(f"{tokens[-2].text} {dictionary_form(tokens[-1])}"):
        return tokens[-2:]
    return tokens[-1:]


def verb_at(tokens: Sequence[Any], at: int) -> str:
    """The dictionary form of a word that can only be the verb, by its ending and its neighbours; empty if it is not.

    A verb in the third person right after a noun and before an article, a number, a pronoun or a preposition.
    """
    if not 0 < at < len(tokens) - 1:
        return ""
    word, before, after = tokens[at], tokens[at - 1], tokens[at + 1]
    if word.tag_ not in _VERB_TAGS or after.tag_ not in (*_DETERMINERS, "PRP", "IN", "TO", "RP", "NNS", "JJ"):
        return ""
    base = lemma(word.text, "VBZ")
    if word.text.lower() != inflected(base, "VBZ") or not knows_verb(base):
        return ""
    return base if before.tag_ == "NN" or before.text.lower() in ("he", "she", "it") else ""


def is_read_whole(tokens: Sequence[Any]) -> bool:
    """Whether a caption is short and plain enough to be read word by word."""
    return 0 < len(tokens) <= MOST_WORDS and not any(t.is_punct for t in tokens)
