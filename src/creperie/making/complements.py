"""Two complements of a verb in either order: ditransitive and dative, with and against.

give the girl a book              a b
give a book to the girl           b to a
hit the fence with the stick      a with b
hit the stick against the fence   b against a

Captions are read word by word: a verb, then two noun phrases with or without a preposition, and no more, but for what
stands behind `, but` and `, and`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from creperie.lang import lemma
from creperie.making.phrases import Phrase, glued
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

NO_RECIPIENT, NO_CONTACT = "no verb with a recipient", "no verb of contact"
NO_THING = "what it is done with, or to, is not a thing"


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
    doubt: str = ""  #: why it is not turned round, although its roles are clear
    is_plain: bool = True  #: read word by word, so that a second parse has nothing to add

    def exchanged(self) -> TwoComplements:
        """Return the same with its complements exchanged: a foil."""
        return replace(self, a=self.b, b=self.a)

    @property
    def roles(self) -> dict[str, str]:
        return {"first": self.a.head, "second": self.b.head, "verb": self.verb, "voice": self.voice}

    @property
    def swapped(self) -> str:
        return f"{self.b.head} ↔ {self.a.head}"


def said_first(event: TwoComplements, *, simple: bool = False) -> str:
    """Return the sentence in the first construction: `a b`, `a with b`."""
    return _said(event, event.a, event.links[0], event.b, simple)


def said_second(event: TwoComplements, *, simple: bool = False) -> str:
    """Return the sentence in the second construction: `b to a`, `b against a`."""
    return _said(event, event.b, event.links[1], event.a, simple)


def _said(event: TwoComplements, one: Phrase, link: str, other: Phrase, simple: bool) -> str:
    words = [*event.before, *one.said(simple, subject=False), link, *other.said(simple, subject=False), *event.rest]
    text = written(spaced(fit_articles([w for w in words if w]))) + event.end
    return first_letter_like(text, event.text) if event.text[:1].isalpha() else text


#: The construction, both complements, what links them, and where the last one ends.
Reading = tuple[str, Phrase, Phrase, tuple[str, str], int]
Read = Callable[[list[Any], int, str], Reading | str]


def find_giving(doc: Any) -> TwoComplements | str:
    """Return who is given what, in one of two ways, or why there is no such event."""
    return _found(doc, _read_gift, NO_RECIPIENT)


def find_contact(doc: Any) -> TwoComplements | str:
    """Return what is hit with what, in one of two ways, or why there is no such event."""
    return _found(doc, _read_contact, NO_CONTACT)


def _found(doc: Any, read: Read, reason: str) -> TwoComplements | str:
    tokens, end = words_of(doc)
    tail = next((i for i, t in enumerate(tokens[:-1]) if t.text == "," and tokens[i + 1].tag_ == "CC"), len(tokens))
    tokens, after = tokens[:tail], tokens[tail:]
    place = tokens[:1] and tokens[0].tag_ in ("RB", "IN")  # `Here, a man …`, `in the scene, a man …`
    first = next((i + 1 for i, t in enumerate(tokens[:4]) if place and t.text == ","), 0)
    if not is_read_whole(tokens[first:]) or any(t.tag_.startswith("PRP") for t in after):
        return reason
    for at in range(first + 1, len(tokens) - 1):
        verb = _verb(tokens, at)
        reading = read(tokens, at, verb)
        if isinstance(reading, str):
            reason = reading or reason
            continue
        voice, a, b, links, last = reading
        if a.head == b.head:
            return "both arguments are alike"
        if last < len(tokens):
            return "words that may belong to either argument"  # hand a boy some cake on a plate
        return TwoComplements(voice, glued(tokens[: at + 1]), a, b, links, verb, glued(after), end, tokens[0].text)
    return reason


def _verb(tokens: list[Any], at: int) -> str:
    """Return the dictionary form of a word as a verb, however it was tagged; empty after an article or in a passive."""
    word, before = tokens[at].text.lower(), tokens[at - 1]
    helped = before.text.lower() in ("is", "are", "was", "were", "being", "been")
    past = tokens[at].tag_ in ("VBD", "VBN")
    if before.tag_ in ("DT", "PRP$", "JJ", "CD") or (past and helped):
        return ""
    return lemma(word, "VBG" if word.endswith("ing") else "VBD" if past else "VBZ")


def _read_gift(tokens: list[Any], at: int, verb: str) -> Reading | str:
    """`hands a robot a mushroom`, `hands a mushroom to a robot`."""
    link = recipient_preposition(verb)
    if link is None or not takes_two_objects(verb):
        return ""
    person = noun_phrase(tokens, at + 1, animate=True)
    thing = noun_phrase(tokens, person[1]) if person else None
    if person and thing and tokens[person[1]].tag_ not in ("PRP", "PRP$"):
        return _gift("ditransitive", person, thing, link, thing[1])
    thing = noun_phrase(tokens, at + 1)
    if thing is None or thing[1] >= len(tokens) - 1 or tokens[thing[1]].text.lower() != link:
        return ""
    person = noun_phrase(tokens, thing[1] + 1, animate=True)
    return _gift("dative", person, thing, link, person[1]) if person and tokens[at + 1].tag_ != "PRP$" else ""


Placed = tuple[Phrase, int]


def _gift(voice: str, person: Placed, thing: Placed, link: str, last: int) -> Reading | str:
    a, b = person[0], thing[0]
    living = a.pronoun or is_animate(lemma(a.head, "NNS"))
    usable = living and not b.pronoun and not is_dative_idiom(b.head)
    return (voice, a, b, ("", link), last) if usable else ""


def _read_contact(tokens: list[Any], at: int, verb: str) -> Reading | str:
    """`hits the fence with a stick`, `hits a stick against the fence`."""
    one = noun_phrase(tokens, at + 1) if hits_against(verb) else None
    link = tokens[one[1]].text.lower() if one and one[1] < len(tokens) else ""
    other = noun_phrase(tokens, one[1] + 1) if one and link in ("with", "against") else None
    if one is None or other is None:
        return ""
    target, tool = (one[0], other[0]) if link == "with" else (other[0], one[0])
    things = [is_solid(lemma(p.head, "NNS")) for p in (tool, target)]
    living = target.pronoun or is_animate(lemma(target.head, "NNS"))
    return (link, target, tool, ("with", "against"), other[1]) if things[0] and (things[1] or living) else NO_THING
