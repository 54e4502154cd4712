"""Words that change when others do: nouns in the singular or plural, verbs that agree, and pronouns by case
and gender.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from creperie.lang.clauses import SUBJECTS
from creperie.lang.inflection import be, inflected, lemma
from creperie.lang.lexicon import numbered

#: Personal pronouns: as a subject → elsewhere.
CASES = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
_SUBJECT_CASES = {other: subject for subject, other in CASES.items()}
_OTHER_GENDER = {"he": "she", "him": "her", "his": "her", "himself": "herself"}
_SAME_FOR_BOTH = frozenset(("may", "can", "will", "must", "could", "would", "should", "might", "had", "did"))


def in_number(name: str, plural: bool) -> str:
    """Return a name in the singular or plural; only its last word changes.

    >>> in_number("police officer", True), in_number("wolves", False)
    ('police officers', 'wolf')
    """
    before, _, last = name.rpartition(" ")
    base = lemma(last, "NNS")
    whole = f"{before} {base}".strip()
    return numbered(whole, "NNS") if plural else whole


def in_case(pronoun: str, subject: bool) -> str:
    """Return a personal pronoun in its form as a subject or as an object. Other words are returned unchanged.

    >>> in_case("she", False), in_case("him", True), in_case("dog", True)
    ('her', 'he', 'dog')
    """
    lowered = pronoun.lower()
    if subject:
        return _SUBJECT_CASES.get(lowered, pronoun)
    return CASES.get(lowered, pronoun)


def in_other_gender(pronoun: Any) -> str:
    """Return the pronoun `he`, `him`, `his`, `she` or `her` in the other gender; empty for other words."""
    word = pronoun.lower_
    if word == "her":
        return "his" if pronoun.tag_ == "PRP$" else "him"
    return {**_OTHER_GENDER, "she": "he", "hers": "his", "herself": "himself"}.get(word, "")


def is_subject(noun: Any) -> bool:
    """Return whether a noun is a subject, so that a pronoun in its place would be `he` or `they`, not `him` or
    `them`.
    """
    return noun.dep_ in SUBJECTS or (noun.dep_ == "conj" and is_subject(noun.head))


def agreeing(noun: Any) -> Iterator[Any]:
    """Yield the finite verbs that agree with a noun in number, as in `The dog that *barks* *is* brown and
    *has* spots.`
    """
    there = noun.dep_ == "attr" and any(c.dep_ == "expl" for c in noun.head.lefts)
    heads = [noun.head] if noun.dep_ in ("nsubj", "nsubjpass") or there else []
    who = [c for c in noun.rights if c.dep_ == "relcl" and any(w.tag_ in ("WDT", "WP") for w in _subjects(c))]
    todo = [*heads, *who]
    while todo:
        verb = todo.pop()
        finite = next((c for c in verb.lefts if c.dep_ in ("aux", "auxpass")), verb)
        bare = finite is verb and verb.tag_ == "VB"  # `Firefighters rescue`, as some parsers tag it
        if finite.tag_ in ("VBZ", "VBP") or bare or finite.lower_ in ("was", "were"):
            yield finite
        todo += [c for c in verb.rights if c.dep_ == "conj" and c.tag_[:2] == "VB" and not _subjects(c)]


def _subjects(verb: Any) -> list[Any]:
    return [c for c in verb.lefts if c.dep_ in SUBJECTS]


def agreed(verb: Any, plural: bool) -> str:
    """Return a finite verb in the form that agrees with a plural or singular subject."""
    base = lemma(verb.text, "VBZ" if verb.tag_[:2] != "VB" else verb.tag_)
    if base in _SAME_FOR_BOTH:
        return str(verb.text)
    if base == "be":
        return be("past" if verb.lower_ in ("was", "were") else "present", plural=plural)
    return inflected(base, "VBP" if plural else "VBZ")


def reagreed(noun: Any, plural: bool) -> Mapping[int, str]:
    """Return new forms of the verbs that agree with a noun, by token index: plural forms if `plural`, otherwise
    singular ones.
    """
    return {verb.i: agreed(verb, plural) for verb in agreeing(noun)}


def verb_group(
    base: str,
    *,
    plural: bool,
    tense: str = "present",
    modal: str = "",
    perfect: bool = False,
    progressive: bool = False,
    passive: bool = False,
) -> list[str]:
    """Return the words of a finite verb in the given tense, voice and number.

    >>> verb_group("ride", plural=False, passive=True, progressive=True)
    ['is', 'being', 'ridden']
    >>> verb_group("give", plural=True, modal="could", perfect=True, passive=True)
    ['could', 'have', 'been', 'given']
    """
    parts = [("have", "VBN")] * perfect + [("be", "VBG")] * progressive + [("be", "VBN")] * passive + [(base, "")]
    words, tag = ([modal], "VB") if modal else ([], "VBD" if tense == "past" else "VBP" if plural else "VBZ")
    for word, after in parts:
        finite = word == "be" and tag in ("VBD", "VBP", "VBZ")
        words.append(be(tense, plural=plural) if finite else word if tag == "VB" else inflected(word, tag))
        tag = after
    return words
