"""The event that a caption describes, and the same event written in another construction.

A player hits a ball.             A ball is hit by a player.
give the girl a book              give a book to the girl
hit the fence with the stick      hit the stick against the fence
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from creperie.lang import (
    Reading,
    inflected,
    is_animate,
    is_worn,
    knows_verb,
    read,
    recipient_preposition,
    scoped_tokens,
    verb_group,
)
from creperie.making.atoms import base_of, dependent, dependents, sort_of
from creperie.making.phrases import (
    PRONOUNS,
    GrammarEvent,
    Phrase,
    glued,
    has_possessor,
    lacks_determiner,
    outer,
    phrase_of,
    span_of,
    verb_number,
)
from creperie.making.verbs import has_passive, is_solid, listed, takes_particle, takes_preposition, topics
from creperie.making.wording import sentence

NO_CLAUSE, NOT_UNDERSTOOD = "no transitive clause", "an auxiliary that is not understood"
NO_RECIPIENT, NO_CONTACT = "no verb with a recipient", "no verb of contact"
NO_THING = "the target or the instrument is not a solid thing"
EITHER = "a phrase that may belong to either argument"
_FINITE = ("VBZ", "VBP", "VBD")
#: Maximum number of words of a phrase that parsers reliably get right.
MOST_PLAIN = 4
#: Kinds of things that somebody is in or on.
CARRIERS = frozenset(("vehicle", "furniture", "gear", "clothing"))
_BODY = 8  #: WordNet's file of parts of bodies


@dataclass(frozen=True)
class ActionClause(GrammarEvent):
    """An action: its agent (`first`), its patient (`second`), and its verb with the verb's form."""

    #: the arguments of `verb_group`; none for a participle: `riding`, `being ridden`, or with `bare` `ridden`, if the
    #: source has it: a `being` that only the foil has would give it away
    form: dict[str, Any] = field(default_factory=dict)
    bare: bool = False
    adverbs: tuple[str, ...] = ()
    particle: str = ""  #: or a preposition that the passive keeps
    early: int = 0  #: how many words of the rest the passive has before `by`: `thrown to a cat by a man`

    @property
    def is_plain(self) -> bool:
        """True for a clause that consists of two short noun phrases and a verb. The parse of such a clause need not be
        checked by parsing it again.
        """
        short = all(len(p.words) <= MOST_PLAIN for p in (self.first, self.second))
        return short and not self.rest and not self.adverbs

    def finite(self, passive: bool) -> list[str]:
        """Return the words of the verb in the active or passive voice. Adverbs stand before its last word."""
        if self.form:
            plural = (self.second if passive else self.first).plural
            group = verb_group(self.verb, plural=plural, passive=passive, **self.form)
        else:
            being = ["being"] if passive and not self.bare else []
            group = [*being, inflected(self.verb, "VBN" if passive else "VBG")]
        return [*group[:-1], *self.adverbs, group[-1]]


def said_actively(event: ActionClause, simple: bool) -> str:
    """Return the sentence in the active voice: the agent, the verb (`rides`, `has ridden`, `riding`), the patient. If
    `simple`, phrases are reduced to their heads.
    """
    words = [*event.first.said(simple, True), *event.finite(False), event.particle, *event.second.said(simple)]
    return sentence([*words, *event.rest], event.end, event.text)


def said_passively(event: ActionClause, simple: bool) -> str:
    """Return the sentence in the passive voice: the patient, the verb (`is ridden`, `ridden`), `by` and the agent. If
    `simple`, phrases are reduced to their heads.
    """
    early, late = event.rest[: event.early], event.rest[event.early :]
    words = [*event.second.said(simple, True), *event.finite(True), event.particle]
    return sentence([*words, *early, "by", *event.first.said(simple), *late], event.end, event.text)


@dataclass(frozen=True)
class TwoComplements(GrammarEvent):
    """An event whose verb has two complements. With a verb of giving, `first` is the recipient and `second` the gift.
    With a verb of hitting, `first` is the thing that is hit and `second` the instrument.
    """

    before: tuple[str, ...] = ()  #: everything up to the verb
    links: tuple[str, str] = ("", "")  #: the word between the complements in the first and the second construction


def said_first(event: TwoComplements, simple: bool) -> str:
    """Return the sentence in the first construction: `give the girl a book`, `hit the fence with the stick`."""
    words = [*event.first.said(simple), event.links[0], *event.second.said(simple)]
    return sentence([*event.before, *words, *event.rest], event.end, event.text)


def said_second(event: TwoComplements, simple: bool) -> str:
    """Return the sentence in the second construction: `give a book to the girl`, `hit the stick against the fence`."""
    words = [*event.second.said(simple), event.links[1], *event.first.said(simple)]
    return sentence([*event.before, *words, *event.rest], event.end, event.text)


def _body(doc: Any) -> tuple[list[Any], str]:
    """Return the words of a caption without its final full stop or exclamation mark, and this mark as text (empty if
    there is none).
    """
    tokens = [t for t in doc if not t.is_space]
    end = tokens[-1].text if tokens and tokens[-1].text in (".", "!") else ""
    return (tokens[:-1] if end else tokens), end


# -- two complements -------------------------------------------------------------------------------------------------


def find_giving(doc: Any) -> TwoComplements | str:
    """Return the event of giving in a caption (who is given what), or the reason why there is none."""
    reason = NO_RECIPIENT
    for fact in read(doc).facts:
        given, who = (
            sorted(fact.fillers(a) | fact.fillers(b)) for a, b in (("patient", "patient"), ("recipient", "for"))
        )
        link = recipient_preposition(fact.name)
        if link is None or fact.passive or len(given) != 1 or len(who) != 1:
            continue
        thing, person = doc[given[0]], doc[who[0]]
        if not _is_somebody(person) or thing.tag_[:3] == "PRP" or listed("dative_idioms", thing.lower_):
            continue
        owned = [c.lower_ for t in (thing, person) for c in t.lefts if c.tag_ == "PRP$" and t.i > fact.token + 2]
        if not (owned and thing.i > person.i):  # `gives a child her book`
            event = _complements(doc, fact.token, person, thing, ("", link))
            reason = event if isinstance(event, str) else reason
            if not isinstance(event, str):
                return replace(event, voice="ditransitive" if person.i < thing.i else "dative")
    return reason


def find_contact(doc: Any) -> TwoComplements | str:
    """Return the event of hitting in a caption (what is hit with what), or the reason why there is none."""
    reason = NO_CONTACT
    for fact in (f for f in read(doc).facts if listed("against", f.name) and not f.passive):
        one = next((doc[i] for i in sorted(fact.fillers("patient"))), None)
        after = span_of(one)[1] if one is not None else len(doc)
        link = doc[after] if after < len(doc) and doc[after].lower_ in ("with", "against") else None
        other = dependent(link, "pobj") if link is not None else None
        if one is None or link is None or other is None:
            continue
        target, tool = (one, other) if link.lower_ == "with" else (other, one)
        if not is_solid(base_of(tool)) or not (is_solid(base_of(target)) or is_animate(base_of(target))):
            reason = NO_THING if not lacks_determiner(other) else reason
            continue
        event = _complements(doc, fact.token, target, tool, ("with", "against"))
        return event if isinstance(event, str) else replace(event, voice=link.lower_)
    return reason


def _complements(doc: Any, verb: int, a: Any, b: Any, links: tuple[str, str]) -> TwoComplements | str:
    """Return the event in which `a` and `b` are the complements of a verb, or the reason why it cannot be rewritten.
    After the verb, only these complements may follow, with at most one of the words `links` between them. A further
    clause such as `, and …` may end the caption.
    """
    body, end = _body(doc)
    tail = next((t.i for t in body[:-1] if t.text == "," and t.i > verb and doc[t.i + 1].tag_ == "CC"), body[-1].i + 1)
    after = [t for t in body if t.i >= tail]
    spans = sorted((span_of(a), span_of(b)))
    between = [t.lower_ for t in doc[spans[0][1] : spans[1][0]]]
    if spans[0][0] != verb + 1 or len(between) > 1 or between not in ([], [links[0]], [links[1]]):
        return "words between the verb and its complements"
    if spans[1][1] != tail or any(t.tag_.startswith("PRP") for t in after):
        return "words that may belong to either argument"  # hand a boy some cake on a plate
    first, second = (Phrase.of_span(t) for t in (a, b))
    before = [t for t in body if t.i <= verb]
    return TwoComplements("", first, second, base_of(doc[verb]), glued(after), end, body[0].text, glued(before), links)


# -- active and passive ----------------------------------------------------------------------------------------------


def find_event(doc: Any) -> ActionClause | str:
    """Return the event of a caption with one transitive clause, or the reason why it cannot be written in the other
    voice.
    """
    body, end = _body(doc)
    roots = [t for t in doc if t.dep_ == "ROOT"]
    if len(roots) != 1:
        return "not one sentence"
    verb = _main_verb(roots[0])
    found = _arguments(doc, read(doc), verb) if verb is not None else None
    if found is None:
        return NO_CLAUSE
    agent, patient, passive, link = found
    form = _form(verb, passive)
    if isinstance(form, str):
        return form
    why = _why_fixed(verb, agent, patient, passive, link)
    event = why or _event(verb, agent, patient, form, body, passive, link)
    return event if isinstance(event, str) else replace(event, end=end, text=body[0].text)


def _main_verb(root: Any) -> Any | None:
    """Return the verb at the root of the parse, or the only participle of the noun at the root (`a man riding a
    horse`); None if there is neither.
    """
    if root.tag_.startswith("VB"):
        return root
    hanging = [c for c in dependents(root, "acl") if c.tag_ in ("VBG", "VBN")]
    return hanging[0] if len(hanging) == 1 else None


def _arguments(doc: Any, reading: Reading, verb: Any) -> tuple[Any, Any, bool, Any | None] | None:
    """Return the agent of a verb, its patient, whether the verb is passive, and the preposition between verb and
    patient, if any. Return None if the caption does not name both an agent and a patient.
    """
    for fact in reading.facts:
        passive = fact.passive or fact.name.endswith(" by")
        sides = [fact.fillers(a) | fact.fillers(b) for a, b in (("agent", "figure"), ("patient", "ground"))]
        own = fact.token == verb.i
        link = doc[fact.token] if fact.event == verb.i and fact.token == verb.i + 1 else None
        kept = link is not None and takes_preposition(base_of(verb), link.lower_) and not dependents(verb, "dobj")
        given = any(doc[i].head == verb for i in fact.fillers("recipient"))  # gives a girl a book
        if not (own or kept) or not all(sides) or given:
            continue
        agent, patient = (outer(doc[min(side)]) for side in (sides[::-1] if fact.is_relation and passive else sides))
        return agent, patient, passive, link if kept else None
    return None


def _why_fixed(verb: Any, agent: Any, patient: Any, passive: bool, link: Any | None) -> str:
    """Return why a clause cannot be written in the other voice; empty if it can."""
    base = base_of(verb)
    if passive:
        return "`by` may introduce a place" if listed("place_by", base) or not knows_verb(base) else ""
    if not has_passive(base, patient.lower_) or not knows_verb(base):
        return "a verb without a passive"
    if has_possessor(patient) or lacks_determiner(agent):
        return "an argument belongs to the other, or lacks its article"
    past = verb.tag_ == "VBD"
    place = sort_of(patient) == "place" and topics(base_of(patient))[:1] != (20,)  # not a flower
    if link is not None and (past or (place and link.lower_ != "for") or not is_animate(base_of(agent))):
        return "not acted upon"  # a clock mounted to a wall; laugh at a park
    return ""


#: The arguments of `verb_group` (none for a participle), and whether a participle is bare.
Form = tuple[dict[str, Any], bool]


def _form(verb: Any, passive: bool) -> Form | str:
    """Return the form of a verb, or the reason why it cannot be written in the other voice."""
    helpers = dependents(verb, "aux", "auxpass")
    names = [base_of(h) if h.lower_ not in ("being", "been") else h.lower_ for h in helpers]
    if verb.dep_ == "acl" or names == ["being"]:
        fits = verb.tag_ == ("VBN" if passive else "VBG") and names in ([["being"], []] if passive else [[]])
        return ({}, passive and not names) if fits else "not a plain participle"
    tense = "past" if (helpers or [verb])[0].tag_ == "VBD" else "present"
    if not names and not passive:
        misread = verb.tag_ == "VBD" and verb.lower_ != inflected(base_of(verb), "VBD")
        return ({"tense": "present" if misread else tense}, False) if verb.tag_ in _FINITE else "no finite verb"
    modal = helpers[0].lower_ if helpers and helpers[0].tag_ == "MD" and helpers[0].text.isalpha() else ""
    names = names[bool(modal) :]
    perfect = names[:1] == ["have"]
    names = names[perfect:]
    known = [["be"], ["been"], ["be", "being"]] if passive else [[]] if modal or perfect else [["be"]]
    if names not in known or (len(names) == 2 and (modal or perfect)):
        return NOT_UNDERSTOOD
    progressive = names == (["be", "being"] if passive else ["be"])
    return {"tense": tense, "modal": modal, "perfect": perfect, "progressive": progressive}, False


def _event(
    verb: Any, agent: Any, patient: Any, form: Form, body: list[Any], passive: bool, link: Any | None
) -> ActionClause | str:
    """Return the event, or the reason why it cannot be written in the other voice. Every word of the caption must
    belong to a part of the event, such as the verb, the agent or the patient.
    """
    hung = {patient.i: [c for c in dependents(patient, "prep") if _is_of_the_event(c, patient)]}
    if verb.dep_ == "acl":  # the verb modifies one of its own arguments, as does the final period
        marks = [c for c in verb.head.rights if c.is_punct and c.i > body[-1].i]
        hung[verb.head.i] = [*hung.get(verb.head.i, ()), verb, *marks]
    who, whom = (phrase_of(noun, without=hung.get(noun.i, ())) for noun in (agent, patient))
    if isinstance(who, str) or isinstance(whom, str):
        return who if isinstance(who, str) else str(whom)
    if who.head == whom.head:
        return "both arguments are alike"
    if not scoped_tokens(verb.doc).isdisjoint((agent.i, patient.i)):
        return "something is denied, or said of all"
    particles = dependents(verb, "prt")
    adverbs = [c for c in verb.lefts if c.text.endswith("ly")]
    inside = [
        *dependents(verb, "prt", "agent", "aux", "auxpass"),
        *(c for c in verb.rights if passive and c.lower_ == "by"),
    ]
    covered = {verb.i, *(t.i for t in (*adverbs, *inside, *((link,) if link else ())))}
    for noun in (agent, patient):
        covered |= {t.i for t in noun.subtree} - {t.i for h in hung.get(noun.i, ()) for t in h.subtree}
    rest = [t for t in body if t.i not in covered]
    if reason := _why_rest_is_odd(rest, verb, agent, patient, link):
        return reason
    if not all(takes_particle(base_of(verb), p.lower_) for p in particles):
        return "a particle that may be a preposition"
    tied = link.lower_ if link else particles[0].text if particles else ""
    by = next((c for c in verb.rights if passive and c.lower_ == "by"), None)
    if passive and by is None:
        return NO_CLAUSE
    last = by.i if by is not None else len(verb.doc) if len(who.words) > MOST_PLAIN else 0
    early = len(glued([t for t in rest if t.i < last]))
    voice = "passive" if by is not None else "active"
    who = who if by is not None else _numbered(who, verb)
    manner = tuple(a.text for a in adverbs)
    return ActionClause(voice, who, whom, base_of(verb), glued(rest), "", "", *form, manner, tied, early)


def _is_of_the_event(link: Any, patient: Any) -> bool:
    """Return True if a prepositional phrase belongs to the event, wherever a parser attaches it, as in `reads a book on
    a bench` and `rides a board over a wave`.
    """
    place = dependent(link, "pobj")
    somewhere = place is not None and (
        sort_of(place) in ("place", "furniture") or place.lower_ in ("water", "snow", "sand", "grass")
    )
    scene = link.lower_ in ("in", "on") and somewhere and not is_animate(base_of(patient))
    touched = place is not None and topics(base_of(place))[:1] == (_BODY,)  # kisses a man on the cheek
    return scene or touched or listed("ways", link.lower_)


def _why_rest_is_odd(rest: list[Any], verb: Any, agent: Any, patient: Any, link: Any | None) -> str:
    """Return why the words after the clause cannot stay when its voice changes; empty if they can stay, as adverbials
    of the verb.

    A phrase with `with` may belong to a verb that takes an instrument. Otherwise it must belong to the patient, and it
    is then moved together with the patient.
    """
    if any(t.i < verb.i for t in rest):
        return "words before the clause"
    if any(t.tag_.startswith("VB") or t.tag_ in ("WDT", "WP", "WRB", "TO", "PRP$") for t in rest):
        return "a second clause after the first"
    tops = [t for t in rest if t.head not in rest]
    if any(t.dep_ not in ("prep", "advmod", "npadvmod") or t.head not in (verb, patient) for t in tops):
        return "words that belong elsewhere"
    held = [sort_of(c) for t in tops if t.lower_ in ("in", "on") for c in dependents(t, "pobj")]
    dressed = any(is_worn(base_of(c)) for t in tops if t.lower_ == "in" for c in dependents(t, "pobj"))
    aboard = is_animate(base_of(patient)) and (dressed or not CARRIERS.isdisjoint(held))
    phrases = [c for c in dependents(patient, "prep") if c not in tops]
    loose = [c for c in phrases if c.lower_ in ("from", "in", "to", "on")]
    served = [c for c in phrases if c.lower_ == "for" and any(map(_is_somebody, dependents(c, "pobj")))]
    carried = [c for c in patient.children if c.lower_ == "with"]
    place = sort_of(patient) == "place"
    if (
        aboard
        or served
        or (loose and not is_animate(base_of(patient)))
        or (tops and (link is not None or place or carried))
        or (place and carried)
    ):
        # pushes a man in a wheelchair, opens the door for a woman, removes a swarm from a lamp, points at a map on a
        # wall, crosses a bridge over a river
        return EITHER
    tool = listed("with_tool", base_of(verb))
    used = [t for t in rest if t.lower_ == "with" and t.head == verb]
    tools = [c for t in used for c in dependents(t, "pobj")]
    worn = any(topics(base_of(c))[:1] == (_BODY,) or sort_of(c) == "clothing" for c in tools)  # with a long beard
    solid = not worn and all(is_solid(base_of(c)) for c in tools)
    return "`with` may belong to either argument" if (used and not (tool and solid)) or (carried and tool) else ""


def _is_somebody(noun: Any) -> bool:
    return noun.lower_ in PRONOUNS or is_animate(base_of(noun))


def _numbered(phrase: Phrase, verb: Any) -> Phrase:
    """Return the phrase as singular or plural, as its verb shows: in `a group of people are riding`, the verb makes `a
    group of people` plural.
    """
    many = verb_number(verb)
    return phrase if many is None else replace(phrase, plural=many)
