"""From a claim to a sentence.

A `SentencePlan` fixes everything about the wording that is not meaning: construction, article, synonyms, frame, finish.
Two claims written with one plan differ only where their meanings differ; one claim written with two plans is said twice
in other words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from creperie.world.truth import CONVERSE, SYMMETRIC, Desc, Fact, LogicalForm
from creperie.world.words import AT, ITS, VERBS, noun_phrase


@dataclass(frozen=True, slots=True)
class SentencePlan:
    """How to say it. Numbers choose among what the construction offers."""

    construction: str = "plain"
    article: str = "a"
    flavour: int = 0  #: synonyms, and simple or progressive form
    frame: int = 0  #: 0 none, then the frames of FRAMES
    finish: int = 0  #: 0 "Sentence.", 1 "sentence", 2 "Sentence"
    tail: int = 0  #: how further things and absences are joined


FRAMES = ("", "in this picture, ", "here, ", "in the scene, ")
FINISHES = 3
FLAVOURS = 12
TAILS = 6

#: Constructions that say first what the relation says first, and those that turn it round.
DIRECT = ("plain", "there", "fronted", "bare", "seen")
TURNED = ("turned", "turned there", "turned bare", "with", "has")
DATIVE = ("to", "to bare")
DOUBLE = ("double", "double bare")
GIVING_TURNED = ("theme passive", "taker passive")
#: No whole clause: no frame before them, and tails without a verb.
BARE = frozenset({"bare", "turned bare", "with", "to bare", "double bare"})
#: Only with "a": "there is the cat" would say something else.
INDEFINITE = frozenset({"there", "turned there"})


def family(relation: str) -> str:
    """Which constructions a relation takes: spatial, action or giving."""
    return "spatial" if relation in AT else "giving" if relation == "hands" else "action"


def constructions(relation: str, negated: bool = False) -> tuple[str, ...]:
    """All constructions that can say this relation.

    >>> constructions("on")
    ('plain', 'there', 'fronted', 'bare', 'seen', 'with', 'has')
    >>> constructions("pushes", negated=True)
    ('plain', 'turned')
    """
    kind = family(relation)
    if kind == "giving":
        return () if negated else DATIVE + DOUBLE + GIVING_TURNED
    if kind == "action":
        return ("plain", "turned") if negated else ("plain", "there", "bare", "seen", *TURNED[:3])
    converse = relation in CONVERSE or relation in SYMMETRIC
    if negated:
        return ("plain", "turned") if converse else ("plain",)
    return DIRECT + TURNED[: 3 if converse else 0] + TURNED[3 if relation in ITS else 5 :]


def write_sentence(form: LogicalForm, plan: SentencePlan) -> str:
    """A caption for a claim.

    >>> claim = LogicalForm((Desc("cat", "red"), Desc("box")), (Fact("left", (0, 1)),))
    >>> write_sentence(claim, SentencePlan())
    'A red cat is left of a box.'
    >>> write_sentence(claim, SentencePlan("turned", "the", 1, frame=1))
    'In this picture, the box is to the right of the red cat.'
    >>> write_sentence(LogicalForm(claim.things, (Fact("behind", (0, 1)),)), SentencePlan("with", finish=1))
    'a box with a red cat behind it'
    """
    if form.facts:
        fact = form.facts[0]
        text = _clause(form, fact, plan)
        said = fact.args
    else:
        text, said = _existence(form, plan), tuple(range(len(form.things)))
        if form.absent:
            return finish(text, plan)
    text += _tails(form, plan, said)
    return finish(text, plan)


def finish(text: str, plan: SentencePlan) -> str:
    """Frame, capital letter and full stop as the plan wants them."""
    if plan.frame and plan.construction not in BARE:
        text = FRAMES[plan.frame] + text
    if plan.finish == 1:
        return text
    text = text[0].upper() + text[1:]
    return text + "." if plan.finish == 0 else text


def _clause(form: LogicalForm, fact: Fact, plan: SentencePlan) -> str:
    names = [noun_phrase(form.things[k], plan.article, plan.flavour) for k in fact.args]
    kind = family(fact.relation)
    if fact.negated:
        return _negated(fact.relation, kind, names, plan)
    if kind == "spatial":
        return _spatial(fact.relation, names[0], names[1], plan)
    verbs = VERBS[fact.relation]
    verb = verbs[plan.flavour // 2 % len(verbs)]
    if kind == "giving":
        return _GIVING[plan.construction](names[0], names[1], names[2], verb, plan.flavour % 2 == 1)
    return _action(names[0], names[1], verb, plan)


def _spatial(relation: str, a: str, b: str, plan: SentencePlan) -> str:
    construction = plan.construction
    if construction in ("with", "has"):
        places = ITS[relation]
        return f"{b} {construction} {a} {places[plan.flavour % len(places)]}"
    if construction.startswith("turned"):
        relation, a, b = CONVERSE.get(relation, relation), b, a
    phrases = AT[relation]
    at = phrases[plan.flavour % len(phrases)]
    if construction in ("plain", "turned"):
        return f"{a} is {at} {b}"
    if construction.endswith("bare"):
        return f"{a} {at} {b}"
    if construction.endswith("there"):
        return f"there is {a} {at} {b}"
    return f"{at} {b} is {a}" if construction == "fronted" else f"{a} can be seen {at} {b}"


def _action(a: str, b: str, verb: tuple[str, str, str, str], plan: SentencePlan) -> str:
    simple, going, done, _ = verb
    now = plan.flavour % 2 == 1
    construction = plan.construction
    if construction == "plain":
        return f"{a} is {going} {b}" if now else f"{a} {simple} {b}"
    if construction == "bare":
        return f"{a} {going} {b}"
    if construction == "there":
        return f"there is {a} {going} {b}"
    if construction == "seen":
        return f"{a} can be seen {going} {b}"
    if construction == "turned":
        return f"{b} is being {done} by {a}" if now else f"{b} is {done} by {a}"
    return f"there is {b} being {done} by {a}" if construction == "turned there" else f"{b} {done} by {a}"


Giving = Callable[[str, str, str, tuple[str, str, str, str], bool], str]
_GIVING: dict[str, Giving] = {
    "to": lambda a, t, r, v, now: f"{a} is {v[1]} {t} to {r}" if now else f"{a} {v[0]} {t} to {r}",
    "to bare": lambda a, t, r, v, now: f"{a} {v[1]} {t} to {r}",
    "double": lambda a, t, r, v, now: f"{a} is {v[1]} {r} {t}" if now else f"{a} {v[0]} {r} {t}",
    "double bare": lambda a, t, r, v, now: f"{a} {v[1]} {r} {t}",
    "theme passive": lambda a, t, r, v, now: f"{t} is {'being ' * now}{v[2]} to {r} by {a}",
    "taker passive": lambda a, t, r, v, now: f"{r} is {'being ' * now}{v[2]} {t} by {a}",
}


def _negated(relation: str, kind: str, names: list[str], plan: SentencePlan) -> str:
    a, b = names
    turned = plan.construction == "turned"
    if kind == "spatial":
        if turned:
            relation, a, b = CONVERSE.get(relation, relation), b, a
        phrases = AT[relation]
        return f"{a} is not {phrases[plan.flavour % len(phrases)]} {b}"
    verbs = VERBS[relation]
    _, going, done, stem = verbs[plan.flavour // 2 % len(verbs)]
    now = plan.flavour % 2 == 1
    if turned:
        return f"{b} is not {'being ' * now}{done} by {a}"
    return f"{a} is not {going} {b}" if now else f"{a} does not {stem} {b}"


#: Presence and absence, said in several ways; {} is what is there, {} what is not.
PRESENCE = {
    "plain": ("there is {a} but no {n}", "there is {a} and no {n}"),
    "bare": ("{a} but no {n}", "{a} and no {n}"),
    "seen": ("{a} can be seen, but no {n}", "{a} can be seen, and no {n}"),
    "turned": ("there is no {n}, but there is {a}", "no {n} is there, but {a} is"),
    "turned bare": ("no {n} but {a}", "not {an} but {a}"),
}


def _existence(form: LogicalForm, plan: SentencePlan) -> str:
    """A claim without relations: what is there, and what is not."""
    names = [noun_phrase(desc, plan.article, plan.flavour) for desc in form.things]
    present = join_names(names)
    if not form.absent:
        return present if plan.construction in BARE else f"there is {present}"
    options = PRESENCE[plan.construction]
    missing = noun_phrase(form.absent[0], "no", plan.flavour)[3:]
    indefinite = noun_phrase(form.absent[0], "a", plan.flavour)
    return options[plan.flavour % len(options)].format(a=present, n=missing, an=indefinite)


def join_names(names: list[str]) -> str:
    """
    >>> join_names(["a cat", "a dog", "a cup"])
    'a cat, a dog and a cup'
    """
    if len(names) > 2:
        return ", ".join(names[:-1]) + " and " + names[-1]
    return " and ".join(names)


_MORE_CLAUSE = (", and there is also {}", ", and {} is there too", ", along with {}")
_MORE_PHRASE = (", and also {}", ", and {}", ", with {} in the picture")
_NONE_CLAUSE = (", and there is no {}", ", but there is no {}", ", and no {} is in sight")
_NONE_PHRASE = (", and no {}", ", but no {}", ", with no {} in sight")


def _tails(form: LogicalForm, plan: SentencePlan, said: tuple[int, ...]) -> str:
    """What the claim says beyond its first fact: another thing, where it is, what is absent."""
    text = ""
    bare = plan.construction in BARE
    for k, desc in enumerate(form.things):
        if k in said:
            continue
        where = next((fact for fact in form.facts[1:] if fact.args[0] == k), None)
        name = noun_phrase(desc, plan.article if where else "a", plan.flavour)
        if where is None:
            options = _MORE_PHRASE if bare else _MORE_CLAUSE
            text += options[plan.tail % len(options)].format(name)
        else:
            phrases = AT[where.relation]
            at = f"{phrases[plan.flavour % len(phrases)]} {back_reference(form, where.args[1])}"
            text += f", with {name} {at}" if bare or plan.tail % 2 else f", and {name} is {at}"
    for desc in form.absent:
        options = _NONE_PHRASE if bare else _NONE_CLAUSE
        text += options[plan.tail // 2 % len(options)].format(noun_phrase(desc, "no", plan.flavour)[3:])
    return text


def back_reference(form: LogicalForm, k: int) -> str:
    """A thing named before, as briefly as it can be told from the others."""
    desc = form.things[k]
    twins = [d for d in form.things if d.kind == desc.kind]
    return noun_phrase(Desc(desc.kind) if len(twins) == 1 else desc, "the", 0)
