"""Word forms: lemmas, participles, plurals (the door to `lemminflect`), articles, pronouns, forms of `be`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from creperie.core import missing_extra, packaged_toml

_WORD_CLASSES = {"N": "NOUN", "V": "VERB", "J": "ADJ", "R": "ADV"}
#: Where lemminflect prefers a rare form, or knows none: by tag and word.
_KNOWN: dict[str, dict[str, dict[str, str]]] = packaged_toml("creperie.lang", "inflection.toml")
_FORMS, _LEMMAS = _KNOWN["forms"], _KNOWN["lemmas"]

_SUBJECT_TO_OBJECT = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them", "it": "it", "you": "you"}
_OBJECT_TO_SUBJECT = {v: k for k, v in _SUBJECT_TO_OBJECT.items()}

#: A vowel letter without a vowel's sound, and the reverse.
_CONSONANT_SOUND = re.compile(
    r"(?:uni(?!n[^u]|m)|u[bcfhjkqrst][aeiou]|eu|ewe|ouija|once\b|one(?:\b|-|s|self))", re.IGNORECASE
)
_VOWEL_SOUND = re.compile(r"(?:hour|honest|honou?r|heir|8|11\b|18\b|(?:[FHLMNRSX]|MP|SUV)(?![a-z]))")


@cache
def lemma(word: str, tag: str) -> str:
    """The dictionary form of a word with a Penn tag.

    >>> lemma("rode", "VBD"), lemma("women", "NNS"), lemma("lying", "VBG")
    ('ride', 'woman', 'lie')
    """
    lowered = word.lower()
    known = _LEMMAS.get(tag[:1], {}).get(lowered)
    if known:
        return known
    found = _lemminflect().getLemma(lowered, upos=_WORD_CLASSES.get(tag[:1], "NOUN"))
    return str(found[0]) if found else lowered


@cache
def inflected(base: str, tag: str) -> str:
    """A dictionary form with the ending that a Penn tag asks for.

    >>> [inflected(*pair) for pair in (("ride", "VBN"), ("carry", "VBZ"), ("sit", "VBG"), ("person", "NNS"))]
    ['ridden', 'carries', 'sitting', 'people']
    """
    known = _FORMS.get(tag, {}).get(base)
    if known:
        return known
    found = _lemminflect().getInflection(base, tag=tag)
    return str(found[0]) if found else base


def knows_verb(base: str) -> bool:
    """Whether the lists know this verb; a wrong tag often shows as a verb that nobody knows."""
    return bool(_lemminflect().getInflection(base, tag="VBN", inflect_oov=False))


def article_for(word: str) -> str:
    """`a` or `an`, by the sound of the word that follows.

    >>> [article_for(w) for w in ("dog", "owl", "hour", "unicycle", "umbrella", "one-way", "SUV", "uninvited", "USB")]
    ['a', 'an', 'an', 'a', 'an', 'a', 'an', 'an', 'a']
    """
    if _VOWEL_SOUND.match(word):
        return "an"
    if re.match(r"U[A-Z]", word):  # spelt out: "you"
        return "a"
    return "an" if word[:1].lower() in "aeiou" and not _CONSONANT_SOUND.match(word) else "a"


def object_form(pronoun: str) -> str | None:
    """`him` for `he`; None where it is not a subject pronoun."""
    return _SUBJECT_TO_OBJECT.get(pronoun.lower())


def subject_form(pronoun: str) -> str | None:
    """`he` for `him`; None where it is not an object pronoun."""
    return _OBJECT_TO_SUBJECT.get(pronoun.lower())


def be(tense: str, *, plural: bool, first_person: bool = False) -> str:
    """The form of `be`: `tense` is "present" or "past".

    >>> be("present", plural=True), be("past", plural=False), be("present", plural=False, first_person=True)
    ('are', 'was', 'am')
    """
    if tense == "past":
        return "were" if plural else "was"
    return "are" if plural else "am" if first_person else "is"


@cache
def _lemminflect() -> Any:
    try:
        import lemminflect
    except ImportError:
        raise missing_extra("lemminflect", "lang") from None
    return lemminflect
