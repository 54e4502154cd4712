"""Two complements of a verb in either order: ditransitive and dative, with and against.

give the girl a book              a b
give a book to the girl           b to a
hit the fence with the stick      a with b
hit the stick against the fence   b against a
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from creperie.lang import lemma
from creperie.making.phrases import Phrase, dictionary_form, glued, named, phrase_of
from creperie.making.plain import is_read_whole, noun_phrase, words_of
from creperie.making.verbs import (
    hits_against,
    is_animate,
    is_dative_idiom,
    is_solid,
    recipient_preposition,
    takes_two_objects,
)
from creperie.making.wording import first_letter_like, fit_articles, spaced, written

#: Words of a phrase that no parser gets wrong.
MOST_PLAIN = 5
NO_RECIPIENT = "no verb with a recipient"
SECOND_CLAUSE = ("more than one clause", "a second clause after the first")
_CLAUSES = frozenset(("xcomp", "ccomp", "acomp", "oprd", "advcl", "conj", "cc", "neg", "parataxis"))


@dataclass(frozen=True)
class TwoComplements:
    """A verb phrase with two complements. `voice` is the construction of the source."""

    voice: str
    before: tuple[str, ...]  #: everything up to the verb
    a: Phrase  #: recipient, or what is hit
    b: Phrase  #: what is given, or what it is hit with
    links: tuple[str, str]  #: what stands between them in the first and in the second construction
    verb: str
    rest: tuple[str, ...] = ()
    end: str = ""
    text: str = ""

    def exchanged(self) -> TwoComplements:
        """The same with its complements exchanged: a foil."""
        return replace(self, a=self.b, b=self.a)

    plain: bool = False  #: read word by word, so that a second parse has nothing to add

    @property
    def is_plain(self) -> bool:
        """Read word by word, or two short noun phrases after the verb: a second parse has nothing to add."""
        return self.plain or (not self.rest and all(len(p.words) <= MOST_PLAIN for p in (self.a, self.b)))

    @property
    def roles(self) -> dict[str, str]:
        return {"first": self.a.head, "second": self.b.head, "verb": self.verb, "voice": self.voice}

    @property
    def swapped(self) -> str:
        return f"{self.b.head} ↔ {self.a.head}"


def said_first(event: TwoComplements, *, simple: bool = False) -> str:
    """`a b`, `a with b`."""
    return _said(event, event.a, event.links[0], event.b, simple)


def said_second(event: TwoComplements, *, simple: bool = False) -> str:
    """`b to a`, `b against a`."""
    return _said(event, event.b, event.links[1], event.a, simple)


def _said(event: TwoComplements, one: Phrase, link: str, other: Phrase, simple: bool) -> str:
    words = [*event.before, *one.said(simple, subject=False), link, *other.said(simple, subject=False), *event.rest]
    text = written(spaced(fit_articles([w for w in words if w]))) + event.end
    return first_letter_like(text, event.text) if event.text[:1].isalpha() else text


# -- ditransitive and dative -----------------------------------------------------------------------------------------


def find_giving(doc: Any) -> TwoComplements | str:
    """Return who is given what, read word by word, or why there is no such event.

    A verb that takes a recipient, then either recipient and thing, or thing, `to` (or `for`) and recipient; more only
    behind `, but` and `, and`."""
    tokens, end = words_of(doc)
    tail = next((i for i, t in enumerate(tokens[:-1]) if t.text == "," and tokens[i + 1].tag_ == "CC"), len(tokens))
    tokens, told = tokens[:tail], tokens[tail:]
    place = tokens[:1] and tokens[0].tag_ in ("RB", "IN")  # `Here, a man …`, `in the scene, a man …`
    first = next((i + 1 for i, t in enumerate(tokens[:4]) if place and t.text == ","), 0)
    if not is_read_whole(tokens[first:]) or any(t.tag_.startswith("PRP") for t in told):
        return NO_RECIPIENT
    for at in range(first + 1, len(tokens) - 1):
        base = _giving_verb(tokens, at)
        link = recipient_preposition(base)
        if link is None or not takes_two_objects(base):
            continue
        found = _read_double(tokens, at) or _read_linked(tokens, at, link)
        if found is None:
            continue
        voice, a, b, last = found
        rest = tokens[last:]
        living = a.pronoun or is_animate(lemma(a.head, "NNS"))
        if a.head == b.head or is_dative_idiom(b.head) or b.pronoun or not living:
            continue
        if rest:
            return "words that may belong to either argument"  # hand a boy some cake on a plate
        before = glued(tokens[: at + 1])
        links = ("", link)
        return TwoComplements(voice, before, a, b, links, base, glued(told), end, tokens[0].text, plain=True)
    return NO_RECIPIENT


def _giving_verb(tokens: list[Any], at: int) -> str:
    """The dictionary form of a verb of giving at this place, however it was tagged; a passive is not one."""
    word = tokens[at].text.lower()
    if tokens[at - 1].tag_ in ("DT", "PRP$", "JJ", "CD"):
        return ""
    base = lemma(word, "VBG" if word.endswith("ing") else "VBD" if tokens[at].tag_ in ("VBD", "VBN") else "VBZ")
    helped = tokens[at - 1].text.lower()
    if tokens[at].tag_ in ("VBD", "VBN") and helped in ("is", "are", "was", "were", "being", "been"):
        return ""
    return base


Reading = tuple[str, Phrase, Phrase, int]


def _read_double(tokens: list[Any], at: int) -> Reading | None:
    """`hands a robot a mushroom`."""
    person = noun_phrase(tokens, at + 1, animate=True)
    thing = noun_phrase(tokens, person[1]) if person else None
    if person is None or thing is None or tokens[person[1]].tag_ in ("PRP", "PRP$"):
        return None
    return "ditransitive", person[0], thing[0], thing[1]


def _read_linked(tokens: list[Any], at: int, link: str) -> Reading | None:
    """`hands a mushroom to a robot`."""
    thing = noun_phrase(tokens, at + 1)
    if thing is None or thing[1] >= len(tokens) - 1 or tokens[thing[1]].text.lower() != link:
        return None
    if tokens[at + 1].tag_ == "PRP$":
        return None
    person = noun_phrase(tokens, thing[1] + 1, animate=True)
    return ("dative", person[0], thing[0], person[1]) if person else None


# -- with and against ------------------------------------------------------------------------------------------------


def find_contact(doc: Any) -> TwoComplements | str:
    """Something is hit with something, or something against something; or why that is not found."""
    reason = "no verb of contact"
    for verb in (t for t in doc if t.tag_.startswith("VB")):
        if not hits_against(dictionary_form(verb)) or _is_passive(verb):
            continue
        found = _contact(verb)
        if not isinstance(found, str):
            return found
        reason = found
    return reason


def _contact(verb: Any) -> TwoComplements | str:
    things = [c for c in verb.rights if c.dep_ == "dobj"]
    if len(things) != 1:
        return "no verb of contact"
    for construction in ("with", "against"):
        preposition, other = _linked(verb, things[0], construction)
        if other is None:
            continue
        target, tool = (things[0], other) if construction == "with" else (other, things[0])
        if not is_solid(named(tool)):
            return "what it is done with is not a thing"
        if target.tag_ != "PRP" and not (is_solid(named(target)) or is_animate(dictionary_form(target))):
            return "what it is done to is not a thing"
        return _built(verb, (target, tool), (preposition,), (construction, ("with", "against")))
    return "no verb of contact"


# -- both ------------------------------------------------------------------------------------------------------------


def _is_passive(verb: Any) -> bool:
    return verb.tag_ == "VBN" and (verb.dep_ in ("acl", "amod") or any(c.dep_ == "auxpass" for c in verb.lefts))


def _linked(verb: Any, thing: Any, link: str) -> tuple[Any, Any]:
    """The preposition after the object, on the verb or (as parsers will have it) on the object, and what it governs."""
    for preposition in (*verb.rights, *thing.rights):
        if preposition.text.lower() == link and preposition.dep_ in ("dative", "prep") and preposition.i > thing.i:
            governed = [c for c in preposition.children if c.dep_ == "pobj"]
            if governed:
                return preposition, governed[0]
    return None, None


def _built(
    verb: Any, nouns: tuple[Any, Any], prepositions: tuple[Any, ...], construction: tuple[str, tuple[str, str]]
) -> TwoComplements | str:
    """The verb phrase, if its complements stand right after the verb, one after the other, and nothing odd follows."""
    words = [t for t in verb.doc if not t.is_space]
    end = words[-1].text if words[-1].text in (".", "!") else ""
    body = words[:-1] if end else words
    if any(c.dep_ in _CLAUSES for c in verb.children) or sum(t.dep_ == "ROOT" for t in words) != 1:
        return SECOND_CLAUSE[0]
    last = max(nouns, key=lambda n: n.i)
    phrases = [phrase_of(n, without=() if n == last else prepositions) for n in nouns]
    for phrase in phrases:
        if isinstance(phrase, str):
            return phrase
    a, b = (p for p in phrases if isinstance(p, Phrase))
    taken = {t.i for top in (*nouns, *prepositions) for t in top.subtree}
    if sorted(taken) != list(range(verb.i + 1, verb.i + 1 + len(taken))):
        return "the complements are torn apart"
    moved = {t.i for n in nouns for t in n.subtree} - {t.i for p in prepositions for t in p.subtree}
    if taken != moved | {t.i for t in last.subtree} | {p.i for p in prepositions}:
        return "words that belong elsewhere"  # a phrase on the preposition itself would be lost
    rest = [t for t in body if t.i > max(taken)]
    if rest and not prepositions:
        return "words that may belong to either argument"  # hand a boy some cake on a plate
    if any(t.is_punct or t.tag_.startswith("VB") or t.tag_ in ("TO", "WDT", "WP", "PRP$", "CC") for t in rest):
        return SECOND_CLAUSE[1]
    if a.head == b.head:
        return "both arguments are alike"
    voice, links = construction
    before = glued([t for t in body if t.i <= verb.i])
    base = dictionary_form(verb)
    return TwoComplements(voice, before, a, b, links, base, glued(rest), end, words[0].text)
