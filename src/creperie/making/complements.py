"""Verbs with two complements in either order: ditransitive and dative, with and against.

give the girl a book              a b
give a book to the girl           b to a
hit the fence with the stick      a with b
hit the stick against the fence   b against a

Captions are read word by word: a verb, then two noun phrases with or without a preposition, and nothing else except
words after `, but` and `, and`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from creperie.lang import lemma
from creperie.making.phrases import PRONOUNS, GrammarEvent, Phrase, glued, noun_phrase, words_of
from creperie.making.verbs import is_animate, is_solid, listed, recipient_preposition
from creperie.making.wording import sentence

#: Maximum number of words of a caption that is read this way.
MOST_READ = 16
NO_RECIPIENT, NO_CONTACT = "no verb with a recipient", "no verb of contact"
NO_THING = "the target or the instrument is not a solid thing"


@dataclass(frozen=True)
class TwoComplements(GrammarEvent):
    """A verb with two complements: the first is the recipient or what is hit, the second the gift or the instrument."""

    before: tuple[str, ...] = ()  #: everything up to the verb
    links: tuple[str, str] = ("", "")  #: the word between the complements in the first and the second construction


def said_first(event: TwoComplements, simple: bool) -> str:
    """Return the sentence in the first construction: `a b`, `a with b`."""
    return _write(event, event.first, event.links[0], event.second, simple)


def said_second(event: TwoComplements, simple: bool) -> str:
    """Return the sentence in the second construction: `b to a`, `b against a`."""
    return _write(event, event.second, event.links[1], event.first, simple)


def _write(event: TwoComplements, one: Phrase, link: str, other: Phrase, simple: bool) -> str:
    words = [*event.before, *one.said(simple), link, *other.said(simple), *event.rest]
    return sentence(words, event.end, event.text)


#: The construction, both complements, the words between them, and the end of the last one.
Reading = tuple[str, Phrase, Phrase, tuple[str, str], int]
Read = Callable[[list[Any], int, str], Reading | str]


def find_giving(doc: Any) -> TwoComplements | str:
    """Return the giving event of a caption (who is given what), or why there is none."""
    return _find(doc, _read_gift, NO_RECIPIENT)


def find_contact(doc: Any) -> TwoComplements | str:
    """Return the contact event of a caption (what is hit with what), or why there is none."""
    return _find(doc, _read_contact, NO_CONTACT)


def _find(doc: Any, read: Read, reason: str) -> TwoComplements | str:
    tokens, end = words_of(doc)
    tail = next((i for i, t in enumerate(tokens[:-1]) if t.text == "," and tokens[i + 1].tag_ == "CC"), len(tokens))
    tokens, after = tokens[:tail], tokens[tail:]
    place = tokens[:1] and tokens[0].tag_ in ("RB", "IN")  # `Here, a man …`, `in the scene, a man …`
    first = next((i + 1 for i, t in enumerate(tokens[:4]) if place and t.text == ","), 0)
    long = len(tokens) - first > MOST_READ or any(t.is_punct for t in tokens[first:])
    if long or any(t.tag_.startswith("PRP") for t in after):
        return reason
    for at in range(first + 1, len(tokens) - 1):
        verb = _verb(tokens, at)
        reading = read(tokens, at, verb)
        if isinstance(reading, str):
            reason = reading or reason
            continue
        voice, a, b, links, last = reading
        if last < len(tokens):
            return "words that may belong to either argument"  # hand a boy some cake on a plate
        return TwoComplements(voice, a, b, verb, glued(after), end, tokens[0].text, glued(tokens[: at + 1]), links)
    return reason


def _verb(tokens: list[Any], at: int) -> str:
    """Return the lemma of a word as a verb, whatever its tag; empty after a determiner or adjective or in a passive."""
    word, before = tokens[at].lower_, tokens[at - 1]
    helped = before.lower_ in ("is", "are", "was", "were", "being", "been")
    past = tokens[at].tag_ in ("VBD", "VBN")
    if before.tag_ in ("DT", "PRP$", "JJ", "CD") or (past and helped):
        return ""
    return lemma(word, "VBG" if word.endswith("ing") else "VBD" if past else "VBZ")


def _read_gift(tokens: list[Any], at: int, verb: str) -> Reading | str:
    """Return the reading of `hands a robot a mushroom` or `hands a mushroom to a robot`; empty if it is neither."""
    link = recipient_preposition(verb)
    if link is None:
        return ""
    person = noun_phrase(tokens, at + 1, animate=True)
    thing = noun_phrase(tokens, person[1]) if person else None
    if person and thing and tokens[person[1]].tag_ not in ("PRP", "PRP$"):
        voice, last = "ditransitive", thing[1]
    else:
        thing = noun_phrase(tokens, at + 1) if tokens[at + 1].tag_ != "PRP$" else None
        linked = thing and thing[1] < len(tokens) - 1 and tokens[thing[1]].lower_ == link
        person = noun_phrase(tokens, thing[1] + 1, animate=True) if thing and linked else None
        voice, last = "dative", person[1] if person else 0
    if not person or not thing or not (person[0].head in PRONOUNS or is_animate(lemma(person[0].head, "NNS"))):
        return ""
    return "" if listed("dative_idioms", thing[0].head) else (voice, person[0], thing[0], ("", link), last)


def _read_contact(tokens: list[Any], at: int, verb: str) -> Reading | str:
    """Return the reading of `hits the fence with a stick` or `hits a stick against the fence`; an empty text if it is
    neither, NO_THING if the things are not solid.
    """
    one = noun_phrase(tokens, at + 1) if listed("against", verb) else None
    link = tokens[one[1]].lower_ if one and one[1] < len(tokens) else ""
    other = noun_phrase(tokens, one[1] + 1) if one and link in ("with", "against") else None
    if one is None or other is None:
        return ""
    target, tool = (one[0], other[0]) if link == "with" else (other[0], one[0])
    used, hit = (lemma(p.head, "NNS") for p in (tool, target))
    solid = is_solid(used) and (is_solid(hit) or is_animate(hit))
    return (link, target, tool, ("with", "against"), other[1]) if solid else NO_THING
