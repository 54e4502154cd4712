"""Noun phrases that can be moved: their words, in full or reduced to determiner and head, and their number (singular
or plural).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from creperie.lang import in_case, is_animate, is_mass, knows_verb, lemma, of_group
from creperie.making.atoms import base_of, dependents, has_of, name_words, phrase
from creperie.making.data import read_data
from creperie.making.verbs import listed
from creperie.making.wording import plain

NOUN_TAGS = frozenset(("NN", "NNS", "NNP", "NNPS"))
#: Pronouns that are moved; `I` and `you`, with verb forms of their own, and `it`, which follows its verb, are not.
PRONOUNS = frozenset(("he", "she", "they", "we", "him", "her", "them", "us"))
ADJECTIVES = frozenset(("JJ", "JJR", "JJS"))


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, in full and reduced to its head. `plural` is True if its verb is in the plural."""

    words: tuple[str, ...]
    short: tuple[str, ...]  #: determiner and head
    head: str
    plural: bool

    @classmethod
    def of_span(cls, noun: Any) -> Self:
        """Return the phrase from a noun's determiner to the noun, including `of …` after it."""
        if noun.tag_ == "PRP":
            word = in_case(noun.lower_, True)
            return cls((word,), (word,), word, word in ("they", "we"))
        words = noun.doc[slice(*span_of(noun))]
        core = {t.i for t in _core(noun)}
        return cls(glued(words), glued([t for t in words if t.i in core]), noun.lower_, is_plural(noun))

    def said(self, simple: bool, subject: bool = False) -> tuple[str, ...]:
        """Return the words of the phrase or, if `simple`, only its determiner and head. A pronoun is put into its
        subject form if `subject` is True, else into its object form.
        """
        words = self.short if simple else self.words
        return (in_case(words[0], subject),) if len(words) == 1 and words[0] in PRONOUNS else words


@dataclass(frozen=True)
class GrammarEvent:
    """An event with two arguments that can change places, and the words around them."""

    voice: str  #: the construction of the source
    first: Phrase
    second: Phrase
    verb: str
    rest: tuple[str, ...] = ()
    end: str = ""
    text: str = ""  #: the source, whose capitalisation is kept

    def exchanged(self) -> Self:
        """Return the event with its arguments exchanged; the sentence about it is a foil."""
        return replace(self, first=self.second, second=self.first)

    @property
    def is_plain(self) -> bool:
        """True if every word of the caption belongs to the event. A sentence written from such an event need not be
        parsed again to confirm its roles.
        """
        return True

    @property
    def roles(self) -> dict[str, str]:
        """The roles of the event (role → word). They are stored with the candidate, and a second parse must find the
        same ones.
        """
        return {"first": self.first.head, "second": self.second.head, "verb": self.verb, "voice": self.voice}


def phrase_of(noun: Any, *, without: Sequence[Any] = ()) -> Phrase | str:
    """Return the phrase that a noun heads, or the reason why it cannot be moved. Dependents in `without` are
    left out.
    """
    if noun.tag_ == "PRP" and noun.lower_ in PRONOUNS:
        return Phrase.of_span(noun)
    if noun.tag_ not in (*NOUN_TAGS, "JJ"):
        return "an argument is not a noun"
    left_out = {t.i for w in without for t in w.subtree}
    tokens = [t for t in noun.subtree if t.i not in left_out]
    reason = _why_unmovable(noun, tokens)
    if reason:
        return reason
    return Phrase(glued(tokens), glued(_core(noun)), noun.lower_, is_plural(noun))


def glued(tokens: Sequence[Any]) -> tuple[str, ...]:
    """Return the words of these tokens. Tokens without a blank between them (`middle-aged`, `dog's`) form one word."""
    words: list[str] = []
    last: Any = None
    for token in (t for t in tokens if not t.is_space):
        if last is not None and last.i == token.i - 1 and not last.whitespace_:
            words[-1] += plain(token)
        else:
            words.append(plain(token))
        last = token
    return tuple(words)


def _why_unmovable(noun: Any, tokens: list[Any]) -> str:
    if tokens[-1].i - tokens[0].i + 1 != len(tokens):
        return "an argument is not contiguous"
    for t in tokens:
        if t.is_punct and t.text not in ("-", "'"):
            return "punctuation within an argument"
        if t.lower_ in read_data("frames")["around"]:
            return "an argument describes the surroundings"
        if t.lower_ in read_data("frames")["unmoved"]:
            return "an argument refers to another"
        if t.tag_ in ("VBG", "VBZ", "VBP", "VBD", "VB", "MD") and not _inside_noun_phrase(t):
            return "a clause within an argument"
    links = [c.i for c in dependents(noun, "prep") if c.lower_ != "of"]
    joined = [t for t in tokens if t.dep_ == "conj" and t.head.tag_ in NOUN_TAGS]
    if any(t.tag_ not in NOUN_TAGS or (t.head == noun and any(i < t.i for i in links)) for t in joined):
        # `a girl in a hat and apron`
        return "an argument joined with something else"
    heads = [t for t in tokens if (t == noun or t.dep_ == "conj") and listed("mistaken_for_nouns", lemma(t.text, "VB"))]
    crossed = noun.tag_ == "NNS" and any(t.lower_ in ("a", "an") for t in dependents(noun, "det"))
    bare = noun.tag_ == "NN" and noun.i == noun.head.i + 1 and not is_mass(base_of(noun)) and not has_of(noun)
    bare = bare and knows_verb(noun.lower_.removesuffix("ing"))
    if crossed or bare or any(t.lower_.endswith(("ing", "s")) for t in heads):
        # `a man wearing a shirt crouches`; `children play fight`; `a man fly fishing`
        return "an argument that may be a verb"
    return ""


def _inside_noun_phrase(verb: Any) -> bool:
    """Return True for a participle before its noun (`the running dog`), or a verb in a relative clause."""
    return verb.dep_ in ("amod", "compound", "relcl") or bool(verb.head.dep_ == "relcl")


def _core(noun: Any) -> list[Any]:
    """Return the tokens that remain when a phrase is reduced: the noun, its determiner, number, possessor and compound
    words, and a phrase with `of` or `and` that follows the noun.
    """
    kept = [noun, *([noun.left_edge] if noun.left_edge.tag_ == "DT" else ())]  # `a half eaten pie`
    whole = dependents(noun, "nummod") and noun.left_edge.lower_ in ("a", "an")
    whole = whole or any(t.text == "-" for t in noun.subtree)  # `a 3 wheeled scooter`, `a roller coaster-like ride`
    joined = whole or dependents(noun, "conj")  # `a red team and a white team`
    for child in noun.lefts:
        if joined or child in name_words(noun) or child.dep_ in ("det", "nummod", "predet", "poss", "quantmod"):
            kept += list(child.subtree)
    for child in noun.rights:  # `tug of war`, `the cheek of a man`; joined nouns, which decide the number of the verb
        if child.lower_ == "of" or child.dep_ in ("cc", "conj"):
            kept += list(child.subtree)
    return sorted(set(kept), key=lambda t: t.i)


def is_plural(noun: Any) -> bool:
    """Return True if a verb that agrees with the noun is in the plural."""
    several = noun.lower_ in read_data("frames")["many"] and has_of(noun)
    return several or noun.tag_ in ("NNS", "NNPS") or bool(dependents(noun, "conj"))


def verb_number(verb: Any) -> bool | None:
    """Return True if the form of a verb is plural, False if it is singular, and None if it may be either."""
    finite = next((c for c in verb.children if c.dep_ in ("aux", "auxpass")), verb)
    return {"VBZ": False, "VBP": True}.get(finite.tag_, {"was": False, "were": True}.get(finite.lower_))


def lacks_determiner(noun: Any) -> bool:
    """Return True for a singular countable noun without an article, as in headlines (`man riding horse`)."""
    if noun.tag_ not in ("NN", "NNP") or is_plural(noun) or (noun.tag_ == "NNP" and not is_animate(noun.lower_)):
        return False
    return not dependents(noun, "det", "poss", "nummod", "predet")


def has_possessor(noun: Any) -> bool:
    """Return True if the phrase contains a possessive pronoun (`his hat`). Such a phrase cannot be moved before the
    noun to which the pronoun refers.
    """
    return any(t.tag_ == "PRP$" for t in noun.subtree)


def outer(noun: Any) -> Any:
    """Return the noun that takes the place of this one in the sentence: `group` for `men` in `a group of men`. Return
    the noun itself if there is no such noun.
    """
    above = noun.head.head if noun.head.lower_ == "of" else noun
    return above if above is not noun and of_group(above) == noun else noun


def span_of(noun: Any) -> tuple[int, int]:
    """Return the span [start, end) of a noun phrase, without the words after its head, except `of …`."""
    start, end = phrase(outer(noun))[0], noun.i + 1
    ofs = [c for c in noun.rights if c.lower_ == "of" and c.i == end]
    words = noun.doc[end : ofs[0].right_edge.i + 1] if ofs else ()
    ends = ("acl", "relcl", "prep")
    beyond = (t.i for t in words if t.text == "," or (t.dep_ in ends and t.lower_ != "of"))
    end = next(beyond, end + len(words))  # not `Oslo` in `the speaker of the house, Oslo`
    marks = [t.text for t in noun.doc[end : end + 3]]
    labelled = len(marks) == 3 and noun.doc[end + 1].tag_ == "CD" and marks[::2] in (["(", ")"], [",", ","])
    return start, end + 3 * (labelled and noun.tag_ == "NNP")  # `Isaac Bello (10)`, `Bruno Haas, 81,`
