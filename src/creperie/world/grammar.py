"""Sentences from claims.

A `SentencePlan` fixes everything about the wording that is not meaning: construction, article, synonyms, frame, finish.
Two claims written with one plan differ only where their meanings differ; one claim written with two plans gives two
paraphrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from creperie.world.scene import GIVING
from creperie.world.sprites import TABLES
from creperie.world.truth import CONVERSE, SYMMETRIC, Desc, Fact, LogicalForm
from creperie.world.words import AT, ITS, NUMBERS, VERBS, noun_phrase


@dataclass(frozen=True, slots=True)
class SentencePlan:
    """The wording of a sentence. Numbers are indices into the options of the construction."""

    construction: str = "plain"
    article: str = "a"
    flavour: int = 0  #: synonyms, and simple or progressive form
    frame: int = 0  #: 0 none, then the frames of FRAMES
    finish: int = 0  #: 0 "Sentence.", 1 "sentence", 2 "Sentence"; other than 0 in biased kinds only
    tail: int = 0  #: how further things and absences are joined


T = TypeVar("T")
FRAMES = ("", "in this picture, ", "in the picture, ")
CLAUSES: dict[str, dict[str, tuple[str, ...]]] = TABLES["clauses"]
PRESENCE: dict[str, tuple[str, ...]] = TABLES["presence"]
TAILS_BY: dict[str, tuple[str, ...]] = TABLES["tails"]
FLAVOURS = 12
TAILS = 6

#: Constructions that begin with the relation's first argument, and those that begin with its second.
DIRECT = ("plain", "there", "fronted", "shows", "seen")
TURNED = ("turned", "turned there", "turned shows", "with", "has")
DATIVE = ("to", "to shows")
DOUBLE = ("double", "double shows")
GIVING_TURNED = ("theme passive", "taker passive")
#: Constructions of lists of things; the turned ones reverse the list.
LISTING = ("plain", "shows", "turned", "turned shows")
#: Constructions only with "a": "there is the cat" would mean something else.
INDEFINITE = frozenset({"there", "turned there", "with"})
COMPARING = frozenset({"taller", "shorter", "bigger", "smaller", "nearer", "farther"})


def family(relation: str) -> str:
    """Return the family of a relation, which determines its constructions: spatial, action, giving, depth, between."""
    if relation in ("depth", "between"):
        return relation
    return "spatial" if relation in AT else "giving" if relation in GIVING else "action"


def constructions(relation: str, negated: bool = False) -> tuple[str, ...]:
    """Return all constructions that can express this relation.

    >>> constructions("on")
    ('plain', 'there', 'fronted', 'shows', 'seen', 'with', 'has')
    >>> constructions("pushes", negated=True)
    ('plain', 'turned')
    """
    kind = family(relation)
    if kind != "spatial":
        passive = relation == "faces"  # "a box is faced by a cat" is not what people say
        names = (c.removeprefix("not ") for c in CLAUSES[kind] if c.startswith("not ") == negated)
        return tuple(c for c in names if not (passive and c.startswith("turned")))
    converse = relation in CONVERSE or relation in SYMMETRIC
    if negated or relation in COMPARING:
        return ("plain", "turned") if converse else ("plain",)
    direct = tuple(c for c in DIRECT if c != "fronted" or relation != "far")
    return direct + TURNED[: 3 if converse else 0] + TURNED[3 if relation in ITS else 5 :]


def write_sentence(form: LogicalForm, plan: SentencePlan) -> str:
    """Return a caption that expresses a claim.

    >>> claim = LogicalForm((Desc("cat", "red"), Desc("box")), (Fact("left", (0, 1)),))
    >>> write_sentence(claim, SentencePlan())
    'A red cat is to the left of a box.'
    >>> write_sentence(claim, SentencePlan("turned", "the", 1, frame=1))
    'In this picture, the box is to the right of the red cat.'
    >>> write_sentence(LogicalForm(claim.things, (Fact("behind", (0, 1)),)), SentencePlan("with", finish=1))
    'there is a box with a red cat behind it'
    """
    if form.facts:
        fact = form.facts[0]
        text = _clause(form, fact, plan)
        mentioned = fact.args
    else:
        text, mentioned = _existence(form, plan), tuple(range(len(form.things)))
    return finish(text + _tails(form, plan, mentioned), plan)


#: How sentences begin that take no frame before them.
_UNFRAMED = ("the picture ", "from ", "between ", *(phrase for phrases in AT.values() for phrase in phrases))


def finish(text: str, plan: SentencePlan) -> str:
    """Return the text with the frame, capital letter and full stop of the plan."""
    if plan.frame and not text.startswith(_UNFRAMED):
        text = FRAMES[plan.frame] + text
    if plan.finish == 1:
        return text
    text = text[0].upper() + text[1:]
    return text + "." if plan.finish == 0 else text


def _clause(form: LogicalForm, fact: Fact, plan: SentencePlan) -> str:
    """Return the first fact of a claim in the construction of the plan, by the templates of tables.toml."""
    names = [noun_phrase(form.things[k], plan.article, plan.flavour) for k in fact.args]
    kind, relation, construction = family(fact.relation), fact.relation, plan.construction
    if kind == "spatial" and construction.startswith("turned"):
        relation, names = CONVERSE.get(relation, relation), names[::-1]
        construction = construction.removeprefix("turned").strip() or "plain"
    if fact.negated:
        construction = f"not {construction}"
    templates = CLAUSES[kind][construction]
    words = dict(zip("abc", names))
    if kind == "spatial":
        words |= {key: _chosen(table.get(relation, ("",)), plan.flavour) for key, table in (("at", AT), ("its", ITS))}
    elif kind in ("action", "giving"):
        words |= zip(("simple", "going", "done", "stem"), _chosen(VERBS[relation], plan.flavour // 2))
    return _chosen(templates, plan.flavour).format(**words)


def _chosen(options: Sequence[T], number: int) -> T:
    return options[number % len(options)]


def _existence(form: LogicalForm, plan: SentencePlan) -> str:
    """Return the text of a claim without relations: what is there, how many, and what is not."""
    names = [noun_phrase(desc, "a", plan.flavour) for desc in form.things]
    names += [noun_phrase(desc, NUMBERS[n - 2], plan.flavour) for desc, n in form.counts]
    if len(names) > 1 or not form.absent:
        present = join_names(names[::-1] if plan.construction.startswith("turned") else names)
        if form.counts:
            present = f"exactly {present}"
        if plan.construction.endswith("shows"):
            return f"the picture shows {present}"
        be = "are" if form.counts else "is"
        return f"{present} can be seen" if plan.flavour % 3 == 1 else f"there {be} {present}"
    missing = noun_phrase(form.absent[0], "no", plan.flavour)[3:]
    indefinite = noun_phrase(form.absent[0], "a", plan.flavour)
    return _chosen(PRESENCE[plan.construction], plan.flavour).format(a=names[0], n=missing, an=indefinite)


def join_names(names: list[str]) -> str:
    """Return the names as a list in English.

    >>> join_names(["a cat", "a dog", "a cup"])
    'a cat, a dog and a cup'
    """
    if len(names) > 2:
        return ", ".join(names[:-1]) + " and " + names[-1]
    return " and ".join(names)


def _tails(form: LogicalForm, plan: SentencePlan, mentioned: tuple[int, ...]) -> str:
    """Return what the claim says beyond its first fact: another thing, where it is, what is absent."""
    text = ""
    for k, desc in enumerate(form.things):
        if k in mentioned:
            continue
        where = next((fact for fact in form.facts[1:] if fact.args[0] == k), None)
        name = noun_phrase(desc, plan.article if where else "a", plan.flavour)
        if where is None:
            text += _chosen(TAILS_BY["more"], plan.tail).format(name)
        else:
            at = f"{_chosen(AT[where.relation], plan.flavour)} {back_reference(form, where.args[1])}"
            text += f", with {name} {at}" if plan.tail % 2 else f", and {name} is {at}"
    for desc in form.absent if form.facts or len(form.things + form.counts) > 1 else ():
        text += _chosen(TAILS_BY["none"], plan.tail // 2).format(noun_phrase(desc, "no", plan.flavour)[3:])
    return text


def back_reference(form: LogicalForm, k: int) -> str:
    """Return the shortest noun phrase that refers unambiguously to a thing named before."""
    desc = form.things[k]
    twins = [d for d in form.things if d.kind == desc.kind]
    return noun_phrase(Desc(desc.kind) if len(twins) == 1 else desc, "the", 0)
