"""Active and passive: clauses found in a parse, and said again in either voice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from creperie.lang import be, inflected, kind_of, knows_verb, lemma
from creperie.making.phrases import Phrase, dictionary_form, glued, has_possessor, lacks_determiner, phrase_of
from creperie.making.plain import is_read_whole, noun_phrase, verb_at, words_of
from creperie.making.verbs import (
    has_passive,
    is_animate,
    is_solid,
    recipient_preposition,
    says_place_with_by,
    takes_particle,
    takes_preposition,
    takes_tool,
    tells_way,
)
from creperie.making.wording import first_letter_like, fit_articles, spaced, written

#: How the verb is said: `rides`, `is riding`, `has ridden`, `will ride`; and without a finite verb `riding` or `being
#: ridden`, or, where the source itself says no more than `ridden`, that: a `being` in the foil alone would tell it.
Aspect = Literal["simple", "progressive", "perfect", "modal", "reduced", "bare"]
_CLAUSES = frozenset(("xcomp", "ccomp", "acomp", "oprd", "advcl", "conj", "cc", "neg", "dative", "parataxis", "csubj"))
_FINITE = ("VBZ", "VBP", "VBD")
#: Words of a phrase that no parser gets wrong.
MOST_PLAIN = 4


@dataclass(frozen=True)
class ActionClause:
    """Who does what to whom, and how it is said."""

    voice: str  #: "active" or "passive": how the source says it
    agent: Phrase
    patient: Phrase
    verb: str
    aspect: Aspect
    tense: str  #: "present", "past", or the modal verb
    adverbs: tuple[str, ...] = ()
    particle: str = ""
    prepositional: bool = False  #: the particle is a preposition, which pronouns follow too
    rest: tuple[str, ...] = ()
    end: str = ""
    text: str = ""  #: the source, whose first letter is followed
    doubt: str = ""  #: why it is not turned round, although its roles are clear

    def exchanged(self) -> ActionClause:
        """The same event with its roles exchanged: a foil."""
        return replace(self, agent=self.patient, patient=self.agent)

    @property
    def is_plain(self) -> bool:
        """Two short noun phrases and a verb, so that a second parse has nothing to add."""
        short = all(len(p.words) <= MOST_PLAIN for p in (self.agent, self.patient))
        return short and not self.rest and not self.adverbs

    @property
    def roles(self) -> dict[str, str]:
        """What a second parse must find, and what is recorded."""
        return {"first": self.agent.head, "second": self.patient.head, "verb": self.verb, "voice": self.voice}

    @property
    def swapped(self) -> str:
        return f"{self.patient.head} ↔ {self.agent.head}"


def said_actively(event: ActionClause, *, simple: bool = False) -> str:
    """Agent, verb, patient."""
    verb = _active_verb(event)
    words = [*event.agent.said(simple, subject=True), *verb, *event.patient.said(simple, subject=False)]
    if event.particle:
        at = (
            len(words)
            if event.patient.pronoun and not event.prepositional
            else len(words) - len(event.patient.said(simple, subject=False))
        )
        words.insert(at, event.particle)
    return _sentence([*words, *event.rest], event)


def said_passively(event: ActionClause, *, simple: bool = False) -> str:
    """Patient, passive verb, `by` agent."""
    words = [*event.patient.said(simple, subject=True), *_passive_verb(event)]
    words += [event.particle] if event.particle else []
    return _sentence([*words, "by", *event.agent.said(simple, subject=False), *event.rest], event)


def _sentence(words: list[str], event: ActionClause) -> str:
    text = written(spaced(fit_articles(words))) + event.end
    return first_letter_like(text, event.text) if event.text[:1].isalpha() else text


def _active_verb(event: ActionClause) -> list[str]:
    """Return the words of the verb for the agent: `rides`, `is riding`, `has ridden`, `will ride`, `riding`."""
    form = {"progressive": "VBG", "perfect": "VBN", "modal": "VB", "reduced": "VBG", "bare": "VBG"}
    many = event.agent.plural or event.agent.first_person
    simple = "VBD" if event.tense == "past" else "VBP" if many else "VBZ"
    tag = form.get(event.aspect, simple)
    verb = event.verb if tag in ("VB", "VBP") else inflected(event.verb, tag)
    return [*_auxiliaries(event, event.agent, passive=False), *event.adverbs, verb]


def _passive_verb(event: ActionClause) -> list[str]:
    """Return the words of the verb for the patient: `is ridden`, `is being ridden`, `being ridden`."""
    return [*_auxiliaries(event, event.patient, passive=True), *event.adverbs, inflected(event.verb, "VBN")]


def _auxiliaries(event: ActionClause, subject: Phrase, *, passive: bool) -> list[str]:
    form = be(event.tense, plural=bool(subject.plural), first_person=subject.first_person)
    have = "had" if event.tense == "past" else "have" if subject.plural or subject.first_person else "has"
    first = {"progressive": form, "perfect": have, "modal": event.tense}.get(event.aspect, "")
    second = {"progressive": "being", "perfect": "been", "modal": "be", "reduced": "being", "simple": form}
    return [word for word in (first, second.get(event.aspect, "") if passive else "") if word]


# -- finding events --------------------------------------------------------------------------------------------------


def find_event(doc: Any) -> ActionClause | str:
    """The event that a caption tells in one clause, or why it cannot be turned round."""
    words = [t for t in doc if not t.is_space]
    roots = [t for t in words if t.dep_ == "ROOT"]
    if len(roots) != 1:
        return "not one sentence"
    end = words[-1].text if words[-1].text in (".", "!") else ""
    body = words[:-1] if end else words
    verb = _main_verb(roots[0])
    if verb is None:
        return plain_event(doc) or "no transitive clause"
    if any((t.is_punct and t.text not in ("-", "'")) or t.text.endswith(".") for t in body):
        return "punctuation inside"
    found = (
        _passive_event(verb, body) if verb.tag_ == "VBN" and _agent_of(verb) is not None else _active_event(verb, body)
    )
    if isinstance(found, str):
        return (plain_event(doc) if found == "no transitive clause" else None) or found
    return replace(found, end=end, text=words[0].text)


def plain_event(doc: Any) -> ActionClause | None:
    """A short caption read word by word: noun phrase, verb, perhaps a preposition, noun phrase, and no more."""
    tokens, end = words_of(doc)
    if not is_read_whole(tokens):
        return None
    for at in range(1, len(tokens) - 1):
        verb = verb_at(tokens, at)
        agent = noun_phrase(tokens[:at], 0) if verb else None
        if agent is None or agent[1] != at:
            continue
        link = tokens[at + 1].text.lower() if tokens[at + 1].tag_ in ("IN", "TO", "RP") else ""
        if (link and not takes_preposition(verb, link)) or not has_passive(verb, tokens[-1].text.lower()):
            return None
        patient = noun_phrase(tokens, at + 1 + bool(link))
        if patient is None or patient[1] != len(tokens) or tokens[at + 1 + bool(link)].tag_ == "PRP$":
            return None
        who, whom = agent[0], patient[0]
        if who.head == whom.head or (not who.plural and tokens[0].tag_[0] in "JN"):
            return None  # small dog chews on
        clause = ActionClause("active", who, whom, verb, "simple", "present", particle=link, prepositional=bool(link))
        return replace(clause, end=end, text=tokens[0].text)
    return None


def _main_verb(root: Any) -> Any | None:
    """The root verb, or the only participle that hangs on a root noun (`a man riding a horse`)."""
    if root.tag_.startswith("VB"):
        return root
    hanging = [c for c in root.rights if c.dep_ == "acl" and c.tag_ in ("VBG", "VBN")]
    return hanging[0] if root.tag_.startswith("NN") and len(hanging) == 1 else None


def _agent_of(verb: Any) -> Any | None:
    for child in verb.rights:
        if child.dep_ == "agent" and child.text.lower() == "by":
            return next((g for g in child.children if g.dep_ == "pobj"), None)
    return None


def _active_event(verb: Any, body: list[Any]) -> ActionClause | str:
    objects = [c for c in verb.rights if c.dep_ == "dobj"]
    subject = verb.head if verb.dep_ == "acl" else next((c for c in verb.lefts if c.dep_ == "nsubj"), None)
    link = None
    if subject is not None and not objects:
        link = prepositional_object(verb)
        objects = [next(c for c in link.children if c.dep_ == "pobj")] if link is not None else []
    if subject is None or len(objects) != 1:
        return "no transitive clause"
    form = _form(verb, passive=False)
    if isinstance(form, str):
        return form
    thing = objects[0]
    base = dictionary_form(verb)
    if not has_passive(base, thing.text.lower()) or not knows_verb(base):
        return "a verb without a passive"
    if link is not None and kind_of(dictionary_form(thing)) == "place":
        return "a place is not acted upon"  # laugh at a park
    if has_possessor(thing) or lacks_determiner(subject):
        return "an argument belongs to the other, or lacks its article"
    counted = kind_of(dictionary_form(thing)) in ("person", "animal", "vehicle", "furniture", "handheld", "clothing")
    if lacks_determiner(thing) and base != "play" and counted:
        return "an argument lacks its article"  # holding pink camera
    if form == ("simple", "past") and (lacks_determiner(thing) or link is not None):
        return "an argument lacks its article"  # a rain covered terrain; a clock mounted to a wall
    if thing.text.lower() in ("top", "inside", "front", "back", "side", "edge") or _is_misread(thing):
        return "an argument is not a noun"
    if verb.tag_ == "VBZ" and any(c.dep_ == "conj" for c in subject.children):
        return "an argument joined with something else"  # a man in a coat and a hat sees
    if form[0] == "reduced" and thing.tag_ == "PRP":
        return "a pronoun that cannot be moved"
    double = recipient_preposition(base) or base == "help"
    if double and any(is_animate(dictionary_form(c)) for c in thing.lefts if c.dep_ == "compound"):
        return "two objects"  # feeding a boy french fries
    event = _event(verb, subject, thing, form, body, link)
    if isinstance(event, str):
        return event
    return replace(event, agent=_numbered(event.agent, verb))


def _is_misread(thing: Any) -> bool:
    """`wearing red clings to a rock`, `playing open mouthed`: a verb or participle that was taken for the object."""
    if any(c.dep_ in ("det", "poss", "nummod") for c in thing.children):
        return False
    worn = dictionary_form(thing.head) == "wear" and kind_of(dictionary_form(thing)) != "clothing"
    return thing.text.endswith("ed") or (worn and thing.tag_ == "NNS" and knows_verb(lemma(thing.text, "VBZ")))


def prepositional_object(verb: Any) -> Any | None:
    """A preposition right after the verb that goes with it into the passive: `a dog barks at a cat`."""
    after = [c for c in verb.rights if c.i == verb.i + 1 and c.dep_ == "prep"]
    if not after or not takes_preposition(dictionary_form(verb), after[0].text.lower()):
        return None
    return after[0] if any(c.dep_ == "pobj" for c in after[0].children) else None


def _passive_event(verb: Any, body: list[Any]) -> ActionClause | str:
    agent = _agent_of(verb)
    subject = verb.head if verb.dep_ == "acl" else next((c for c in verb.lefts if c.dep_ == "nsubjpass"), None)
    if subject is None or agent is None:
        return "no transitive clause"
    form = _form(verb, passive=True)
    if isinstance(form, str):
        return form
    base = dictionary_form(verb)
    if says_place_with_by(base) or not knows_verb(base):
        return "`by` may tell a place"
    if has_possessor(agent) or lacks_determiner(subject):
        return "an argument belongs to the other, or lacks its article"
    after = [c for c in verb.rights if c.i > agent.i and c.dep_ == "prep" and c.text.lower() in ("in", "with")]
    event = _event(verb, agent, subject, form, body)
    if isinstance(event, str):
        return event
    unclear = after or (agent.tag_ != "PRP" and any(t.tag_ == "PRP" for t in agent.subtree))  # by a man in a hat
    return replace(event, voice="passive", doubt="words that may belong to the agent" if unclear else "")


Form = tuple[Aspect, str]


def _form(verb: Any, *, passive: bool) -> Form | str:
    """Return aspect and tense of a verb, or why it is not one that can be turned round."""
    helpers = [c for c in verb.lefts if c.dep_ in ("aux", "auxpass")]
    names = [dictionary_form(h) if h.text.lower() not in ("being", "been") else h.text.lower() for h in helpers]
    if any(h.text.startswith(("'", "’")) for h in helpers):
        return "a contracted auxiliary"
    if verb.dep_ == "acl" or names == ["being"]:
        shapes: dict[tuple[str, ...], Aspect] = {(): "bare", ("being",): "reduced"} if passive else {(): "reduced"}
        fits = verb.tag_ == ("VBN" if passive else "VBG") and tuple(names) in shapes
        return (shapes[tuple(names)], "present") if fits else "not a plain participle"
    tense = "past" if (helpers or [verb])[0].tag_ == "VBD" else "present"
    if helpers and helpers[0].tag_ == "MD":
        rest = [*names[1:], verb.tag_]
        return ("modal", helpers[0].text.lower()) if rest in (["be", "VBN"], ["VB"]) else NOT_UNDERSTOOD
    if not names and not passive:
        misread = verb.tag_ == "VBD" and verb.text.lower() != inflected(dictionary_form(verb), "VBD")
        return ("simple", "present" if misread else tense) if verb.tag_ in _FINITE else "no finite verb"
    shapes = {("be", "being"): "progressive", ("have", "been"): "perfect", ("be",): "simple"}
    if not passive:
        shapes = {("be",): "progressive" if verb.tag_ == "VBG" else "", ("have",): "perfect"}  # type: ignore[dict-item]
    aspect = shapes.get(tuple(names))
    return (aspect, tense) if aspect and helpers[0].tag_ in _FINITE else NOT_UNDERSTOOD


NOT_UNDERSTOOD = "an auxiliary that is not understood"


def _event(
    verb: Any, agent: Any, patient: Any, form: Form, body: list[Any], link: Any | None = None
) -> ActionClause | str:
    """The event, if every word of the caption has its place in it."""
    if any(c.dep_ in _CLAUSES for c in verb.children):
        return "more than one clause"
    hung = {patient.i: [c for c in patient.rights if c.dep_ == "prep" and _is_of_the_event(c, patient)]}
    if verb.dep_ == "acl":  # it hangs on one of its own arguments, as does the final period
        marks = [c for c in verb.head.rights if c.is_punct and c.i > body[-1].i]
        hung[verb.head.i] = [*hung.get(verb.head.i, ()), verb, *marks]
    who, whom = (phrase_of(noun, without=hung.get(noun.i, ())) for noun in (agent, patient))
    if isinstance(who, str) or isinstance(whom, str):
        return who if isinstance(who, str) else str(whom)
    if whom.plural is None or who.plural is None:
        return "the number of an argument is not known"
    if who.head == whom.head:
        return "both arguments are alike"
    if link is None and any(c.dep_ == "acl" and c != verb for c in patient.rights) and not is_animate(whom.head):
        return "words that may belong to the agent"  # plays tennis dressed in white
    particles = [c for c in verb.rights if c.dep_ == "prt"]
    adverbs = [c for c in verb.lefts if c.dep_ == "advmod" and c.text.endswith("ly")]
    by = [c for c in verb.rights if c.dep_ == "agent"]
    helpers = [c for c in verb.lefts if c.dep_ in ("aux", "auxpass")]
    covered = {verb.i, *(t.i for t in (*particles, *adverbs, *by, *helpers, *((link,) if link else ())))}
    for noun in (agent, patient):
        covered |= {t.i for t in noun.subtree} - {t.i for h in hung.get(noun.i, ()) for t in h.subtree}
    rest = [t for t in body if t.i not in covered]
    reason = _why_rest_is_odd(rest, verb, patient) or _why_with_is_odd(verb, patient, rest)
    if reason:
        return reason
    if len(particles) > 1 or any(not takes_particle(dictionary_form(verb), p.text.lower()) for p in particles):
        return "a particle that may be a preposition"
    said = link.text.lower() if link else particles[0].text if particles else ""
    manner = tuple(a.text for a in adverbs)
    return ActionClause("active", who, whom, dictionary_form(verb), *form, manner, said, link is not None, glued(rest))


def _is_of_the_event(link: Any, patient: Any) -> bool:
    """`reads a book on a bench`, `rides a board over a wave`: where it happens, whatever a parser hangs it on."""
    place = next((dictionary_form(c) for c in link.children if c.dep_ == "pobj"), "")
    somewhere = kind_of(place) in ("place", "furniture") or place in ("water", "snow", "sand", "grass")
    scene = link.text.lower() in ("in", "on") and somewhere and not is_animate(dictionary_form(patient))
    on_body = any(
        t.text.lower() in ("head", "cheek", "forehead", "nose", "hand") for t in link.subtree
    )  # kisses her on
    return scene or on_body or tells_way(link.text.lower())


def _why_rest_is_odd(rest: list[Any], verb: Any, patient: Any) -> str:
    """What is left must follow the verb and tell where, when or how; no second event hides in it."""
    if any(t.i < verb.i for t in rest):
        return "words before the clause"
    if any(t.tag_.startswith("VB") or t.tag_ in ("WDT", "WP", "WRB", "TO", "PRP$") for t in rest):
        return "a second clause after the first"
    tops = [t for t in rest if t.head not in rest]
    if any(t.i == patient.i + 1 and t.tag_ in ("NN", "JJ") for t in rest) or (
        rest and (rest[-1].tag_ == "IN" or rest[0].text.lower() == "around")
    ):
        return "words that belong elsewhere"  # a fire hydrant torn apart; `follows a dog behind`
    if any(t.dep_ not in ("prep", "advmod", "npadvmod") or t.head not in (verb, patient) for t in tops):
        return "words that belong elsewhere"
    if any(t.dep_ == "prep" and t.text.lower() in ("like", "as", "of", "than", "about") for t in tops):
        return "words that belong elsewhere"
    if any(t.text.lower() == "along" and any(c.text.lower() == "with" for c in t.children) for t in tops):
        return "words that belong elsewhere"
    return ""


def _why_with_is_odd(verb: Any, patient: Any, rest: list[Any]) -> str:
    """Whose is what `with` brings? The verb's where it takes a tool; else it must be the patient's and move with it."""
    tool = takes_tool(dictionary_form(verb))
    loose = [t for t in rest if t.text.lower() == "with" and t.head == verb]
    solid = all(is_solid(dictionary_form(c)) for t in loose for c in t.children if c.dep_ == "pobj")
    held = [c for c in patient.children if c.text.lower() == "with"]
    around = [c for t in rest if t.text.lower() == "in" and t.head == verb for c in t.children if c.dep_ == "pobj"]
    if is_animate(dictionary_form(patient)) and any(kind_of(dictionary_form(c)) not in ("place", "") for c in around):
        return "`in` may belong to either argument"  # pushes a man in a wheelchair
    return "`with` may belong to either argument" if (loose and not (tool and solid)) or (held and tool) else ""


def _numbered(phrase: Phrase, verb: Any) -> Phrase:
    """The number that the verb itself tells: `a group of people are riding`."""
    finite = next((c for c in verb.lefts if c.dep_ == "aux"), verb)
    if phrase.first_person or phrase.pronoun:
        return phrase
    if finite.tag_ == "VBZ" or finite.text.lower() == "was":
        return replace(phrase, plural=False)
    if finite.tag_ == "VBP" or finite.text.lower() == "were":
        return replace(phrase, plural=True)
    return phrase
