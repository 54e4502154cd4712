"""Active and passive: clauses found in a parse, and written in either voice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from creperie.lang import inflected, kind_of, knows_verb, scoped_tokens, verb_group
from creperie.making.atoms import base_of, dependent, dependents, sort_of
from creperie.making.phrases import (
    GrammarEvent,
    Phrase,
    glued,
    has_possessor,
    lacks_determiner,
    noun_phrase,
    phrase_of,
    verb_at,
    words_of,
)
from creperie.making.verbs import (
    has_passive,
    is_animate,
    is_solid,
    listed,
    takes_particle,
    takes_preposition,
)
from creperie.making.wording import sentence

#: The form of the verb: simple (`rides`), progressive (`is riding`), reduced (`riding`, `being ridden`), or bare
#: (`ridden`, if the source has it: a `being` that only the foil has would give it away).
Aspect = Literal["simple", "progressive", "reduced", "bare"]
NO_CLAUSE, NOT_UNDERSTOOD = "no transitive clause", "an auxiliary that is not understood"
_FINITE = ("VBZ", "VBP", "VBD")
#: Maximum number of words of a phrase that parsers reliably get right.
MOST_PLAIN = 4
#: Kinds of things that somebody is in or on.
CARRIERS = frozenset(("vehicle", "furniture", "gear", "clothing"))


@dataclass(frozen=True)
class ActionClause(GrammarEvent):
    """An action with its agent (first), patient (second) and verb, and the form in which it is written."""

    aspect: Aspect = "simple"
    tense: str = "present"  #: or "past"
    adverbs: tuple[str, ...] = ()
    particle: str = ""  #: or a preposition that the passive keeps
    modal: str = ""  #: `could`, `will`
    perfect: bool = False
    early: int = 0  #: how many words of the rest the passive has before `by`: `thrown to a cat by a man`

    @property
    def is_plain(self) -> bool:
        """True for two short noun phrases and a verb, for which a second parse adds nothing."""
        short = all(len(p.words) <= MOST_PLAIN for p in (self.first, self.second))
        return short and not self.rest and not self.adverbs

    def finite(self, passive: bool) -> list[str]:
        """Return the verb in this voice; adverbs stand before its last word."""
        if self.aspect in ("reduced", "bare"):
            being = ["being"] if passive and self.aspect == "reduced" else []
            group = [*being, inflected(self.verb, "VBN" if passive else "VBG")]
        else:
            plural = (self.second if passive else self.first).plural
            form: dict[str, Any] = {"tense": self.tense, "modal": self.modal, "perfect": self.perfect}
            group = verb_group(
                self.verb, plural=plural, progressive=self.aspect == "progressive", passive=passive, **form
            )
        return [*group[:-1], *self.adverbs, group[-1]]


def said_actively(event: ActionClause, simple: bool) -> str:
    """Return the sentence in the active voice: agent, verb (`rides`, `has ridden`, `riding`), patient."""
    words = [*event.first.said(simple, True), *event.finite(False), event.particle, *event.second.said(simple)]
    return sentence([*words, *event.rest], event.end, event.text)


def said_passively(event: ActionClause, simple: bool) -> str:
    """Return the sentence in the passive voice: patient, verb (`is ridden`, `ridden`), `by` agent."""
    early, late = event.rest[: event.early], event.rest[event.early :]
    words = [*event.second.said(simple, True), *event.finite(True), event.particle]
    return sentence([*words, *early, "by", *event.first.said(simple), *late], event.end, event.text)


# -- finding events --------------------------------------------------------------------------------------------------


def find_event(doc: Any) -> ActionClause | str:
    """Return the event of a caption with one transitive clause, or why it cannot be written in the other voice."""
    body, end = words_of(doc)
    roots = [t for t in doc if t.dep_ == "ROOT"]
    if len(roots) != 1:
        return "not one sentence"
    verb = _main_verb(roots[0])
    event: ActionClause | str = NO_CLAUSE
    if verb is not None:
        passive = verb.tag_ == "VBN" and _agent_of(verb) is not None
        event = (_passive_event if passive else _active_event)(verb, body)
    event = plain_event(doc) if event == NO_CLAUSE else event
    return event if isinstance(event, str) else replace(event, end=end, text=body[0].text)


def plain_event(doc: Any) -> ActionClause | str:
    """Return the event of a short caption read word by word: noun phrase, verb, optional preposition, noun phrase,
    nothing else; or NO_CLAUSE.
    """
    tokens, _ = words_of(doc)
    for at in range(1, len(tokens) - 1):
        verb = verb_at(tokens, at)
        agent = noun_phrase(tokens[:at], 0) if verb else None
        if agent is None or agent[1] != at:
            continue
        link = tokens[at + 1].lower_ if tokens[at + 1].tag_ in ("IN", "TO", "RP") else ""
        if (link and not takes_preposition(verb, link)) or not has_passive(verb, tokens[-1].lower_):
            break
        patient = noun_phrase(tokens, at + 1 + bool(link))
        if patient is None or patient[1] != len(tokens):
            break
        return ActionClause("active", agent[0], patient[0], verb, particle=link)
    return NO_CLAUSE


def _main_verb(root: Any) -> Any | None:
    """Return the root verb, or the only participle that modifies a root noun (`a man riding a horse`)."""
    if root.tag_.startswith("VB"):
        return root
    hanging = [c for c in dependents(root, "acl") if c.tag_ in ("VBG", "VBN")]
    return hanging[0] if len(hanging) == 1 else None


def _agent_of(verb: Any) -> Any | None:
    by = dependent(verb, "agent")
    return by and dependent(by, "pobj")


def _active_event(verb: Any, body: list[Any]) -> ActionClause | str:
    objects = dependents(verb, "dobj")
    subject = verb.head if verb.dep_ == "acl" else dependent(verb, "nsubj")
    link = None
    if not objects:
        link = prepositional_object(verb)
        objects = dependents(link, "pobj")[:1] if link is not None else []
    if subject is None or len(objects) != 1:
        return NO_CLAUSE
    form = _form(verb, passive=False)
    if isinstance(form, str):
        return form
    thing = objects[0]
    base = base_of(verb)
    if not has_passive(base, thing.lower_) or not knows_verb(base):
        return "a verb without a passive"
    if has_possessor(thing) or lacks_determiner(subject):
        return "an argument belongs to the other, or lacks its article"
    if link is not None and (form[:2] == ("simple", "past") or sort_of(thing) == "place"):
        return "not acted upon"  # a clock mounted to a wall; laugh at a park
    event = _event(verb, subject, thing, form, body, link)
    return event if isinstance(event, str) else replace(event, first=_numbered(event.first, verb))


def prepositional_object(verb: Any) -> Any | None:
    """Return the preposition directly after a verb that the passive keeps, as in `a dog barks at a cat`; or None."""
    after = [c for c in dependents(verb, "prep") if c.i == verb.i + 1]
    return after[0] if after and takes_preposition(base_of(verb), after[0].lower_) else None


def _passive_event(verb: Any, body: list[Any]) -> ActionClause | str:
    agent = _agent_of(verb)
    subject = verb.head if verb.dep_ == "acl" else dependent(verb, "nsubjpass")
    if subject is None or agent is None:
        return NO_CLAUSE
    form = _form(verb, passive=True)
    if isinstance(form, str):
        return form
    base = base_of(verb)
    if listed("place_by", base) or not knows_verb(base):
        return "`by` may introduce a place"
    event = _event(verb, agent, subject, form, body)
    return event if isinstance(event, str) else replace(event, voice="passive")


#: Aspect and tense, a modal verb, and whether it is perfect.
Form = tuple[Aspect, str, str, bool]


def _form(verb: Any, *, passive: bool) -> Form | str:
    """Return the form of a verb, or why it cannot be written in the other voice."""
    helpers = dependents(verb, "aux", "auxpass")
    names = [base_of(h) if h.lower_ not in ("being", "been") else h.lower_ for h in helpers]
    if verb.dep_ == "acl" or names == ["being"]:
        shapes: dict[tuple[str, ...], Aspect] = {(): "bare", ("being",): "reduced"} if passive else {(): "reduced"}
        fits = verb.tag_ == ("VBN" if passive else "VBG") and tuple(names) in shapes
        return (shapes[tuple(names)], "present", "", False) if fits else "not a plain participle"
    tense = "past" if (helpers or [verb])[0].tag_ == "VBD" else "present"
    if not names and not passive:
        misread = verb.tag_ == "VBD" and verb.lower_ != inflected(base_of(verb), "VBD")
        return ("simple", "present" if misread else tense, "", False) if verb.tag_ in _FINITE else "no finite verb"
    modal = helpers[0].lower_ if helpers and helpers[0].tag_ == "MD" and helpers[0].text.isalpha() else ""
    names = names[bool(modal) :]
    perfect = names[:1] == ["have"]
    names = names[perfect:]
    if passive:
        shapes = {("be",): "simple", ("been",): "simple", ("be", "being"): "progressive"}
    else:
        shapes = {(): "simple"} if modal or perfect else {("be",): "progressive"}
    known = tuple(names) in shapes and not (len(names) == 2 and (modal or perfect))
    return (shapes[tuple(names)], tense, modal, perfect) if known else NOT_UNDERSTOOD


def _event(
    verb: Any, agent: Any, patient: Any, form: Form, body: list[Any], link: Any | None = None
) -> ActionClause | str:
    """Return the event if every word of the caption has a place in it, else the reason."""
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
    inside = dependents(verb, "prt", "agent", "aux", "auxpass")
    covered = {verb.i, *(t.i for t in (*adverbs, *inside, *((link,) if link else ())))}
    for noun in (agent, patient):
        covered |= {t.i for t in noun.subtree} - {t.i for h in hung.get(noun.i, ()) for t in h.subtree}
    rest = [t for t in body if t.i not in covered]
    if reason := _why_rest_is_odd(rest, verb, patient):
        return reason
    if not all(takes_particle(base_of(verb), p.lower_) for p in particles):
        return "a particle that may be a preposition"
    tied = link.lower_ if link else particles[0].text if particles else ""
    manner = tuple(a.text for a in adverbs)
    by = dependent(verb, "agent")
    early = len(glued([t for t in rest if by is not None and t.i < by.i]))
    how: dict[str, Any] = dict(zip(("aspect", "tense", "modal", "perfect"), form))
    how |= {"adverbs": manner, "particle": tied, "early": early}
    return ActionClause("active", who, whom, base_of(verb), glued(rest), **how)


def _is_of_the_event(link: Any, patient: Any) -> bool:
    """Return True if a prepositional phrase belongs to the event, wherever a parser attaches it: `reads a book on a
    bench`, `rides a board over a wave`.
    """
    place = next(map(base_of, dependents(link, "pobj")), "")
    somewhere = kind_of(place) in ("place", "furniture") or place in ("water", "snow", "sand", "grass")
    scene = link.lower_ in ("in", "on") and somewhere and not is_animate(base_of(patient))
    return scene or listed("ways", link.lower_)


def _why_rest_is_odd(rest: list[Any], verb: Any, patient: Any) -> str:
    """Return why the remaining words are unsuitable, or an empty text if they follow the verb as adverbials. `with`
    belongs to a verb that takes an instrument; otherwise it must belong to the patient and move with it.
    """
    if any(t.i < verb.i for t in rest):
        return "words before the clause"
    if any(t.tag_.startswith("VB") or t.tag_ in ("WDT", "WP", "WRB", "TO", "PRP$") for t in rest):
        return "a second clause after the first"
    tops = [t for t in rest if t.head not in rest]
    if any(t.dep_ not in ("prep", "advmod", "npadvmod") or t.head not in (verb, patient) for t in tops):
        return "words that belong elsewhere"
    held = [kind_of(base_of(c)) for t in tops if t.lower_ in ("in", "on") for c in dependents(t, "pobj")]
    aboard = is_animate(base_of(patient)) and not CARRIERS.isdisjoint(held)
    if aboard or (tops and any(c.lower_ == "with" for c in patient.children)):
        return "a phrase that may belong to either argument"  # pushes a man in a wheelchair
    tool = listed("with_tool", base_of(verb))
    loose = [t for t in rest if t.lower_ == "with" and t.head == verb]
    solid = all(is_solid(base_of(c)) for t in loose for c in dependents(t, "pobj"))
    carried = [c for c in patient.children if c.lower_ == "with"]
    return "`with` may belong to either argument" if (loose and not (tool and solid)) or (carried and tool) else ""


def _numbered(phrase: Phrase, verb: Any) -> Phrase:
    """Return the phrase with the number that the verb shows: `a group of people are riding`."""
    finite = dependent(verb, "aux") or verb
    many = {"VBZ": False, "VBP": True}.get(finite.tag_, {"was": False, "were": True}.get(finite.lower_))
    return phrase if many is None else replace(phrase, plural=many)
