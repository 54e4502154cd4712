"""Noun phrases that can be moved: their words, number and pronoun forms, long or reduced to their heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from creperie.lang import lemma, object_form, subject_form
from creperie.making.data import read_data
from creperie.making.verbs import is_animate, is_name, may_be_verb
from creperie.making.wording import plain

NOUN_TAGS = frozenset(("NN", "NNS", "NNP", "NNPS"))
_PLURAL_PRONOUNS = frozenset(("we", "us", "they", "them", "you"))
_SAME_IN_BOTH = frozenset(("sheep", "fish", "deer", "aircraft", "series", "species", "bison", "moose"))
_MANY = frozenset(("couple", "lot", "number", "majority", "handful", "dozen", "pair"))


@dataclass(frozen=True)
class Phrase:
    """A noun phrase. `plural` is None where its number cannot be told."""

    words: tuple[str, ...]
    short: tuple[str, ...]  #: determiner and head
    head: str
    plural: bool | None
    pronoun: bool = False

    def said(self, simple: bool, *, subject: bool) -> list[str]:
        """Its words, as a subject or as an object."""
        if self.pronoun:
            word = self.words[0]
            form = subject_form(word) if subject else object_form(word)
            return [form or word]
        return list(self.short if simple else self.words)

    @property
    def first_person(self) -> bool:
        return self.pronoun and self.words[0].lower() in ("i", "me")


def phrase_of(noun: Any, *, without: Sequence[Any] = ()) -> Phrase | str:
    """The phrase that a noun or pronoun heads, or why it cannot be moved. `without` are dependents that stay behind."""
    if noun.tag_ == "PRP":
        return _pronoun(noun)
    if noun.tag_ not in NOUN_TAGS or not noun.text[:1].isalpha():
        return "an argument is not a noun"
    left_out = {t.i for w in without for t in w.subtree}
    tokens = [t for t in noun.subtree if t.i not in left_out]
    reason = _why_unmovable(noun, tokens)
    if reason:
        return reason
    return Phrase(glued(tokens), glued(_core(noun)), noun.text.lower(), is_plural(noun))


def glued(tokens: Sequence[Any]) -> tuple[str, ...]:
    """The words of tokens; what the caption writes without a blank (`middle-aged`, `dog's`) stays one."""
    words: list[str] = []
    last: Any = None
    for token in (t for t in tokens if not t.is_space):
        if last is not None and last.i == token.i - 1 and not last.whitespace_:
            words[-1] += plain(token)
        else:
            words.append(plain(token))
        last = token
    return tuple(words)


def _pronoun(token: Any) -> Phrase | str:
    word = token.text.lower()
    if not (object_form(word) or subject_form(word)) or any(True for _ in token.children):
        return "a pronoun that cannot be moved"
    kept = "I" if word == "i" else word
    return Phrase((kept,), (kept,), word, word in _PLURAL_PRONOUNS, pronoun=True)


def _why_unmovable(noun: Any, tokens: list[Any]) -> str:
    if tokens[-1].i - tokens[0].i + 1 != len(tokens):
        return "an argument is torn apart"
    for t in tokens:
        if t.is_punct and t.text not in ("-", "'"):
            return "punctuation within an argument"
        if t.text.lower() in read_data("frames")["around"]:
            return "an argument with the scene around it"
        if t.text.lower() in read_data("frames")["unmoved"] or (t.tag_ in ("WP", "WDT") and t.dep_ != "nsubj"):
            return "an argument refers to another"
        if t.tag_ in ("VBG", "VBZ", "VBP", "VBD", "VB", "MD") and not _inside_noun_phrase(t, noun):
            return "a clause within an argument"
    if any(c.dep_ in ("appos", "nsubj", "cop", "prt", "dobj") for c in noun.children):
        return "an argument with another beside it"
    links = [c.i for c in noun.rights if c.dep_ == "prep" and c.text.lower() != "of"]
    joined = [t for t in tokens if t.dep_ == "conj" and t.head.tag_ in NOUN_TAGS]
    if any(t.tag_ not in NOUN_TAGS or (t.head == noun and any(i < t.i for i in links)) for t in joined):
        # `a girl in a hat and apron`
        return "an argument joined with something else"
    heads = [t for t in tokens if (t == noun or t.dep_ == "conj") and may_be_verb(lemma(t.text, "VB"))]
    if any(t.text.lower().endswith(("ing", "s")) or (t != noun and lacks_determiner(t)) for t in heads):
        return "an argument that may be a verb"
    return ""


def _inside_noun_phrase(verb: Any, noun: Any) -> bool:
    """A participle before its noun (`the running dog`), or a relative clause with its own subject right after."""
    if verb.dep_ in ("amod", "compound") and verb.i < verb.head.i:
        return True
    clause = verb if verb.dep_ == "relcl" else verb.head
    return clause.dep_ == "relcl" and any(c.text.lower() in ("that", "who", "which") for c in clause.lefts)


def _core(noun: Any) -> list[Any]:
    """Determiner, number, possessor and compound of a head; what is measured stays with its measure."""
    kept = [noun, *([noun.left_edge] if noun.left_edge.tag_ == "DT" else ())]  # `a half eaten pie`
    whole = any(c.dep_ == "nummod" for c in noun.lefts) and noun.left_edge.text.lower() in ("a", "an")
    whole = whole or any(t.text == "-" for t in noun.subtree)  # `a 3 wheeled scooter`, `a roller coaster-like ride`
    joined = whole or any(c.dep_ == "conj" for c in noun.rights)  # `a red team and a white team`
    for child in noun.lefts:
        named_so = child.dep_ == "amod" and child.i == noun.i - 1 and is_name(f"{child.text} {dictionary_form(noun)}")
        named_so = named_so or child.text.lower() in ("stuffed", "toy", "fake", "plastic", "few")
        if joined or named_so or child.dep_ in ("det", "nummod", "compound", "predet", "poss", "quantmod"):
            kept += list(child.subtree)
    for child in noun.rights:  # `tug of war`, `the cheek of a man`; and the verb agrees with both of two
        if child.text.lower() == "of" or child.dep_ in ("cc", "conj"):
            kept += list(child.subtree)
    return sorted(set(kept), key=lambda t: t.i)


def is_plural(noun: Any) -> bool | None:
    """Whether a verb agrees with it as with many; None where that cannot be told."""
    word = noun.text.lower()
    if any(c.dep_ == "conj" for c in noun.children):
        return True
    numbers = [c.text.lower() for c in noun.children if c.dep_ == "nummod"]
    one = any(c.text.lower() in ("a", "an") for c in noun.children)  # `a 3 wheeled scooter`
    if one and noun.tag_ == "NNS" and word not in _MANY:
        return None  # `a greyhound dog races`
    if numbers and not one:
        return numbers[0] not in ("one", "1")
    determiners = {c.text.lower() for c in noun.children if c.dep_ in ("det", "amod")}
    if word in _SAME_IN_BOTH:
        return False if determiners & {"a", "an", "one"} else True if determiners & {"several", "many"} else None
    if word in _MANY and any(c.text.lower() == "of" for c in noun.children):
        return True
    if word in ("people", "police", "cattle"):
        return True
    return noun.tag_ in ("NNS", "NNPS")


def lacks_determiner(noun: Any) -> bool:
    """A single countable thing without an article, as headlines have it: `man riding horse`."""
    if noun.tag_ not in ("NN", "NNP") or is_plural(noun) or (noun.tag_ == "NNP" and not is_animate(noun.text.lower())):
        return False
    return not any(c.dep_ in ("det", "poss", "nummod", "predet") for c in noun.children)


def has_possessor(noun: Any) -> bool:
    """`his hat`: moved before the one it belongs to, it would point nowhere."""
    return any(t.tag_ == "PRP$" for t in noun.subtree)


def dictionary_form(token: Any) -> str:
    return lemma(token.text, token.tag_)


def named(noun: Any) -> str:
    """A noun with the compound before it, as dictionaries have it: `tennis racket`."""
    parts = [c.text.lower() for c in noun.lefts if c.dep_ == "compound"]
    return " ".join([*parts, dictionary_form(noun)])
