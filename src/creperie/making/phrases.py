"""Noun phrases that can be moved: their words and number, in full or reduced to their heads.

They come from a parse or, in short captions, are read word by word: word order shows the verb where a parser tags
`hands` as a noun.

A man hands a woman a kite.        noun phrase, verb, noun phrase, noun phrase
A man hits a drum with a stick.    noun phrase, verb, noun phrase, preposition, noun phrase
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from creperie.lang import in_case, inflected, is_mass, knows_verb, lemma
from creperie.making.atoms import base_of, dependents, has_of, name_words
from creperie.making.data import read_data
from creperie.making.verbs import is_animate, is_name, listed
from creperie.making.wording import plain

NOUN_TAGS = frozenset(("NN", "NNS", "NNP", "NNPS"))
#: Pronouns that are moved; `I` and `you`, with verb forms of their own, and `it`, which follows its verb, are not.
PRONOUNS = frozenset(("he", "she", "they", "we", "him", "her", "them", "us"))
ADJECTIVES = frozenset(("JJ", "JJR", "JJS"))


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, in full and reduced; `plural` is True if a verb agrees with it in the plural."""

    words: tuple[str, ...]
    short: tuple[str, ...]  #: determiner and head
    head: str
    plural: bool

    def said(self, simple: bool, subject: bool = False) -> tuple[str, ...]:
        """Return the words of the phrase; with `simple` only its determiner and head. A pronoun has the case of a
        subject or of an object.
        """
        words = self.short if simple else self.words
        return (in_case(words[0], subject),) if len(words) == 1 and words[0] in PRONOUNS else words


@dataclass(frozen=True)
class GrammarEvent:
    """An event with two arguments that can be exchanged, and the words around them."""

    voice: str  #: the construction of the source
    first: Phrase
    second: Phrase
    verb: str
    rest: tuple[str, ...] = ()
    end: str = ""
    text: str = ""  #: the source, whose capitalisation is kept

    def exchanged(self) -> Self:
        """Return the event with its arguments exchanged, which is a foil."""
        return replace(self, first=self.second, second=self.first)

    @property
    def is_plain(self) -> bool:
        """True if the event was read word by word, so that a second parse adds nothing."""
        return True

    @property
    def roles(self) -> dict[str, str]:
        """The roles that are recorded, and that a second parse must confirm."""
        return {"first": self.first.head, "second": self.second.head, "verb": self.verb, "voice": self.voice}


def phrase_of(noun: Any, *, without: Sequence[Any] = ()) -> Phrase | str:
    """Return the phrase that a noun heads, or why it cannot be moved. Dependents in `without` are left out."""
    if noun.tag_ == "PRP" and noun.lower_ in PRONOUNS:
        return _pronoun(noun)
    if noun.tag_ not in NOUN_TAGS:
        return "an argument is not a noun"
    left_out = {t.i for w in without for t in w.subtree}
    tokens = [t for t in noun.subtree if t.i not in left_out]
    reason = _why_unmovable(noun, tokens)
    if reason:
        return reason
    return Phrase(glued(tokens), glued(_core(noun)), noun.lower_, is_plural(noun))


def _pronoun(token: Any) -> Phrase:
    word = in_case(token.lower_, True)
    return Phrase((word,), (word,), word, word in ("they", "we"))


def glued(tokens: Sequence[Any]) -> tuple[str, ...]:
    """Return the words of tokens; tokens without a blank between them (`middle-aged`, `dog's`) form one word."""
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
    """Return True for a participle before its noun (`the running dog`) or a verb of a relative clause."""
    return verb.dep_ in ("amod", "compound", "relcl") or bool(verb.head.dep_ == "relcl")


def _core(noun: Any) -> list[Any]:
    """Return the head with its determiner, number, possessor and compound; a measure keeps what it measures."""
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
    """Return True if a verb agrees with the noun in the plural."""
    several = noun.lower_ in read_data("frames")["many"] and has_of(noun)
    return several or noun.tag_ in ("NNS", "NNPS") or bool(dependents(noun, "conj"))


def lacks_determiner(noun: Any) -> bool:
    """Return True for a singular countable noun without an article, as in headlines: `man riding horse`."""
    if noun.tag_ not in ("NN", "NNP") or is_plural(noun) or (noun.tag_ == "NNP" and not is_animate(noun.lower_)):
        return False
    return not dependents(noun, "det", "poss", "nummod", "predet")


def has_possessor(noun: Any) -> bool:
    """Return True if the phrase contains a possessive (`his hat`), which cannot be moved before its owner."""
    return any(t.tag_ == "PRP$" for t in noun.subtree)


_DETERMINERS = frozenset(("DT", "PRP$", "CD"))
_MODIFIERS = frozenset(("JJ", "VBN", "VBG", "JJR", "JJS", "RB", *NOUN_TAGS))
_AFTER_VERB = frozenset(("IN", "TO", "RP", "NNS", "JJ", *_DETERMINERS))


def words_of(doc: Any) -> tuple[list[Any], str]:
    """Return the words of a caption without its final punctuation mark, and that mark."""
    tokens = [t for t in doc if not t.is_space]
    end = tokens[-1].text if tokens and tokens[-1].text in (".", "!") else ""
    return (tokens[:-1] if end else tokens), end


def noun_phrase(tokens: Sequence[Any], start: int, *, animate: bool = False) -> tuple[Phrase, int] | None:
    """Return the noun phrase that begins at a word, and the index after it. With `animate` it ends at the first animate
    noun, so that `a boy french fries` is two phrases, and may be a pronoun.
    """
    if animate and start < len(tokens) and tokens[start].tag_ == "PRP" and tokens[start].lower_ in PRONOUNS:
        return _pronoun(tokens[start]), start + 1
    at = start
    while at < len(tokens) and tokens[at].tag_ in _DETERMINERS:
        at += 1
    begin = at
    while at < len(tokens) and (tokens[at].tag_ in _MODIFIERS or (at > begin and _is_noun(tokens[at]))):
        at += 1
        further = at < len(tokens) and is_animate(lemma(tokens[at].text, "NNS"))  # `a white bear`
        if animate and not further and is_animate(lemma(tokens[at - 1].text, "NNS")):
            break
    refers = set(read_data("frames")["unmoved"]) - ({"another", "other"} if animate else set())
    if at == begin or not _is_noun(tokens[at - 1]) or tokens[start].lower_ in refers:
        return None
    head = tokens[at - 1]
    if head.tag_ == "NN" and begin == start and not animate and at - start < 2 and not is_mass(base_of(head)):
        return None  # a countable noun without its article
    if not animate and at + 1 < len(tokens) and tokens[at].lower_ == "of" and tokens[at + 1].tag_ in ("NN", "NNS"):
        inner = noun_phrase([*tokens[:at], *tokens[at + 1 :]], at) if tokens[at + 1].tag_ == "NNS" else None
        last = inner[1] + 1 if inner else at + 2  # `two cups of coffee`
        return Phrase(glued(tokens[start:last]), glued(tokens[start:last]), head.lower_, is_plural(head)), last
    named = at - begin > 1 and is_name(f"{tokens[at - 2].text} {base_of(head)}")  # one name of two words
    core = [*tokens[start:begin], *tokens[at - 1 - named : at]]
    return Phrase(glued(tokens[start:at]), glued(core), head.lower_, is_plural(head)), at


def _is_noun(token: Any) -> bool:
    """Return True for a noun, or an animate noun tagged as a verb, as in `a purple bear`."""
    return token.tag_ in NOUN_TAGS or (token.tag_ in ("VB", "VBP") and is_animate(token.lower_))


def verb_at(tokens: Sequence[Any], at: int) -> str:
    """Return the lemma of a verb in the third person after a singular noun, however it was tagged, or an empty text."""
    base = lemma(tokens[at].text, "VBZ")
    spelt = tokens[at].lower_ == inflected(base, "VBZ") and knows_verb(base)
    return base if spelt and tokens[at - 1].tag_ == "NN" and tokens[at + 1].tag_ in _AFTER_VERB else ""
