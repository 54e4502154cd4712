"""Word forms: lemmas, participles and plurals (by `lemminflect`), articles, pronouns, forms of `be`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from creperie.core import missing_extra, packaged_toml

_WORD_CLASSES = {"N": "NOUN", "V": "VERB", "J": "ADJ", "R": "ADV"}
#: Forms, by tag and word, where lemminflect prefers a rare one or knows none.
_KNOWN: dict[str, dict[str, dict[str, str]]] = packaged_toml("creperie.lang", "inflection.toml")
_FORMS, _LEMMAS = _KNOWN["forms"], _KNOWN["lemmas"]


#: Words that begin with a vowel letter but not a vowel sound, and the reverse.
_CONSONANT_SOUND = re.compile(
    r"(?:uni(?!n[^u]|m)|u[bcfhjkqrst][aeiou]|eu|ewe|ouija|once\b|one(?:\b|-|s|self))", re.IGNORECASE
)
_VOWEL_SOUND = re.compile(r"(?:hour|honest|honou?r|heir|8|11\b|18\b|(?:[FHLMNRSX]|MP|SUV)(?![a-z]))")


@cache
def lemma(word: str, tag: str) -> str:
    """Return the dictionary form of a word with a Penn tag.

    >>> lemma("rode", "VBD"), lemma("women", "NNS"), lemma("lying", "VBG")
    ('ride', 'woman', 'lie')
    """
    lowered = word.lower()
    known = _LEMMAS.get(tag[:1], {}).get(lowered)
    if known:
        return known
    lemmas = _lemminflect().getLemma(lowered, upos=_WORD_CLASSES.get(tag[:1], "NOUN"))
    return str(lemmas[0]) if lemmas else lowered


@cache
def inflected(base: str, tag: str) -> str:
    """Return the dictionary form of a word, inflected for a Penn tag.

    >>> [inflected(*pair) for pair in (("ride", "VBN"), ("carry", "VBZ"), ("sit", "VBG"), ("person", "NNS"))]
    ['ridden', 'carries', 'sitting', 'people']
    """
    known = _FORMS.get(tag, {}).get(base)
    if known:
        return known
    forms = _lemminflect().getInflection(base, tag=tag)
    return str(forms[0]) if forms else base


def knows_verb(base: str) -> bool:
    """Return whether the word lists contain this verb. A word tagged as a verb but not listed is often a noun."""
    return bool(_lemminflect().getInflection(base, tag="VBN", inflect_oov=False))


def article_for(word: str) -> str:
    """Return the article, `a` or `an`, that goes before a word by its sound.

    >>> [article_for(w) for w in ("dog", "owl", "hour", "unicycle", "umbrella", "one-way", "SUV", "uninvited", "USB")]
    ['a', 'an', 'an', 'a', 'an', 'a', 'an', 'an', 'a']
    """
    if _VOWEL_SOUND.match(word):
        return "an"
    if re.match(r"U[A-Z]", word):  # spelt out: "you"
        return "a"
    return "an" if word[:1].lower() in "aeiou" and not _CONSONANT_SOUND.match(word) else "a"


def be(tense: str, *, plural: bool) -> str:
    """Return the form of `be` for a tense ("present" or "past") in the singular or plural.

    >>> be("present", plural=True), be("past", plural=False), be("present", plural=False)
    ('are', 'was', 'is')
    """
    if tense == "past":
        return "were" if plural else "was"
    return "are" if plural else "is"


@cache
def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError:
        raise missing_extra("lemminflect", "lang") from None
    return lemminflect
