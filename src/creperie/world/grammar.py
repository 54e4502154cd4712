"""Writing sentences from claims.

A `SentencePlan` determines everything about the wording that does not change the meaning: the construction, the
article, synonyms, capitals and punctuation. Two claims written with the same plan differ only where their meanings
differ; the same claim written with two plans gives two paraphrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from creperie.world.sample import COMPARING, HEAVY, SIDES
from creperie.world.scene import GIVING
from creperie.world.sprites import TABLES, WORDS
from creperie.world.truth import CONVERSE, Desc, Fact, LogicalForm
from creperie.world.words import AT, ITS, NUMBERS, PLACES, PLURALS, POSTURES, VERBS, noun_phrase, stated


@dataclass(frozen=True, slots=True)
class SentencePlan:
    """How a sentence is worded: everything about it that does not change its meaning."""

    construction: str = "plain"
    article: str = "a"
    flavour: int = 0  #: synonyms, and simple or progressive form
    posture: str = ""  #: how things are in their places, such as "stands"; "" for "is"
    finish: int = 0  #: 0 "Sentence.", 1 "sentence", 2 "Sentence"; other than 0 in biased kinds only


T = TypeVar("T")
CLAUSES: dict[str, dict[str, tuple[str, ...]]] = TABLES["clauses"]
FLAVOURS = 12
#: Kinds of claims whose things are known to the reader: "the".
_KNOWN = frozenset({"compare", "state", "states", "colours", "signs", "depth"})
#: Kinds of claims that can be turned round by exchanging their things, and the relation for its converse.
_TURNING = frozenset({"spatial", "compare", "between", "list", "count", "colours", "signs"})
_RESTING = ("left", "right", "front", "behind", "near", "on", "inside", "under")  #: where things sit, stand and lie


def family(form: LogicalForm) -> str:
    """Return the kind of a claim, such as "spatial" or "count". The kind determines in which constructions it can be
    written.

    >>> cat, box = Desc("cat"), Desc("box")
    >>> family(LogicalForm((cat, box), (Fact("on", (0, 1)),))), family(LogicalForm((cat, box)))
    ('spatial', 'list')
    """
    if form.facts:
        relation = form.facts[0].relation
        kind = (
            relation if relation in ("depth", "between")
            else "compare" if relation in COMPARING
            else "spatial" if relation in AT
            else "giving" if relation in GIVING
            else "action"
        )  # fmt: skip
        return f"other {kind}" if len(form.facts) > 1 else kind
    if form.counts or len(form.things) == 4:
        return "count" if form.counts else "colours"
    if any(desc.pattern in WORDS for desc in form.things):
        return "signs"
    return ("state", "states")[len(form.things) - 1] if all(desc.state for desc in form.things) else "list"


def needs_the(form: LogicalForm) -> bool:
    """Return whether a claim makes sense only if its things are already known to the reader; their article must then be
    "the".
    """
    kind = family(form)
    return kind in _KNOWN or " " in kind or any(fact.relation == "far" for fact in form.facts)


def takes_place(form: LogicalForm, setting: str) -> bool:
    """Return whether a sentence that expresses the claim can also name the location, such as "on the table" or "in the
    room". `setting` is the location.
    """
    kind = family(form)
    if kind in ("list", "count"):
        return setting in PLACES
    beside = kind in ("between", "state") or (kind == "spatial" and form.facts[0].relation in _RESTING[:5])
    return setting == "table" and beside


def sayable(form: LogicalForm) -> tuple[str, ...]:
    """Return the names of the constructions that can express a claim.

    >>> sayable(LogicalForm((Desc("cat"), Desc("box")), (Fact("on", (0, 1)),)))
    ('plain', 'there', 'with')
    """
    kind = family(form)
    negated = bool(form.facts) and form.facts[0].negated
    names = [c.removeprefix("not ") for c in CLAUSES[kind] if c.startswith("not ") == negated]
    relation = form.facts[0].relation if form.facts else ""
    if kind in ("list", "count") and not form.setting:
        names.remove("plain")
    if kind == "spatial" and relation not in ITS:
        names = [c for c in names if c != "with"]
    if kind == "other spatial" and relation in ("touching", "leaning"):  # said once
        names.remove("plain")
    if relation == "far" or (kind == "state" and not form.setting):  # "there is a closed box" alone says little
        names = [c for c in names if c != "there"]
    if relation in ("faces", "holds"):  # "a box is being faced by a cat" is not what people say
        names = [c for c in names if c != "turned"]
    if kind not in _TURNING or (kind == "spatial" and not _reversible(form)):
        return tuple(names)
    return (*names, *("turned" if c == "plain" else f"turned {c}" for c in names if c != "with"))


def _reversible(form: LogicalForm) -> bool:
    one, two = (form.things[k].kind in HEAVY for k in form.facts[0].args)
    return form.facts[0].relation in SIDES and one == two


def postures(form: LogicalForm) -> list[str]:
    """Return the verbs of posture ("stands", "lies", "hangs" …) that suit every thing whose place a claim states."""
    kind = family(form)
    relation = form.facts[0].relation if form.facts else ""
    if kind in ("list", "count"):
        descs = [*form.things, *(desc for desc, _ in form.counts)]
    elif kind == "between" or relation in _RESTING:
        descs = [form.things[k] for k in form.facts[0].args[: 2 if relation in SIDES else 1]]
    else:
        descs = [form.things[0]] if relation == "above" else []
    return [
        verb
        for verb, (_, _, kinds) in POSTURES.items()
        if descs and (verb == "hangs" or relation != "above") and all(desc.kind in kinds for desc in descs)
    ]


def write_sentence(form: LogicalForm, plan: SentencePlan) -> str:
    """Return a caption that expresses a claim.

    >>> claim = LogicalForm((Desc("cat", "red"), Desc("box")), (Fact("left", (0, 1)),))
    >>> write_sentence(claim, SentencePlan())
    'A red cat is to the left of a box.'
    >>> write_sentence(claim, SentencePlan("turned", "the"))
    'The box is to the right of the red cat.'
    >>> write_sentence(LogicalForm(claim.things, (Fact("behind", (0, 1)),)), SentencePlan("with", finish=1))
    'there is a box with a red cat behind it'
    """
    kind = family(form)
    text = _clause(form, kind, plan)
    if form.setting and (kind, plan.construction) != ("state", "plain"):
        place = PLACES[form.setting]
        there = plan.construction.endswith("there")
        first = plan.construction == "with" or (there and plan.flavour % 4 == 0)
        text = f"{place}, {text}" if first else f"{text} {place}"
    if form.facts and len(form.facts) == 1:
        more = form.things[len(form.facts[0].args) :]
        text += "".join(f", and there is {noun_phrase(desc, 'a', plan.flavour)}" for desc in more)
    if plan.finish == 1:
        return text
    return text[0].upper() + text[1:] + ("." if plan.finish == 0 else "")


def _clause(form: LogicalForm, kind: str, plan: SentencePlan) -> str:
    """Return the main clause of a claim in the plan's construction, using the templates of tables.toml."""
    construction, flavour = plan.construction, plan.flavour
    fact = form.facts[0] if form.facts else Fact("", tuple(range(len(form.things))))
    relation, args, counts = fact.relation, (*fact.args, *(f.args[1] for f in form.facts[1:])), form.counts
    if kind in _TURNING and construction.startswith("turned"):
        construction = construction.removeprefix("turned").strip() or "plain"
        relation, counts = CONVERSE.get(relation, relation), counts[::-1]
        args = (args[0], *args[:0:-1]) if kind == "between" else args[::-1]
    if fact.negated:
        construction = f"not {construction}"
    things = [form.things[k] for k in args]
    indefinite = construction.endswith(("there", "with")) or (kind == "list")
    article = "a" if indefinite else "the" if needs_the(form) else plan.article
    template = _chosen(CLAUSES[kind][construction], flavour)
    words = _names(things, kind, article, flavour, template)
    short = 0 if len(form.facts) > 1 else flavour
    words |= {key: _chosen(table.get(relation, ("",)), short) for key, table in (("at", AT), ("its", ITS))}
    if relation in VERBS:
        words |= zip(("simple", "going", "done", "stem"), _chosen(VERBS[relation], flavour // 2))
    words |= _posture_words(plan)
    words["all"] = join_names(
        [noun_phrase(desc, "a", flavour) for desc in things]
        + [noun_phrase(desc, NUMBERS[n - 2], flavour) for desc, n in counts]
    )
    if kind == "colours":
        words |= zip("uvwx", (str(desc.colour) for desc in things))
        words |= {"kinds": PLURALS[things[0].kind], "others": PLURALS[things[2].kind]}
    if kind == "signs":
        words |= zip("uv", (str(desc.pattern) for desc in things))
    if kind in ("state", "states"):
        before, _, after = stated(things[0].kind, str(things[0].state))
        words["state"] = before if before and kind == "state" and flavour % 2 and things[0].state == "unlit" else after
        words["stated"] = noun_phrase(things[0], "a", flavour)
        if form.setting and "a" in words:
            words["a"] += f" {PLACES[form.setting]}"
    return template.format(**words)


def _names(things: Sequence[Desc], kind: str, article: str, flavour: int, template: str) -> dict[str, str]:
    """Return a noun phrase for each thing, keyed by the letter that stands for the thing in the template. A second
    thing of the same kind is called "one", except after "there is", which introduces both as new.
    """
    again = kind == "signs" or not template.startswith("there")
    if kind in ("state", "states"):
        things = [replace(desc, state=None) for desc in things]
    if kind == "signs":
        things = [replace(desc, pattern=None) for desc in things]
    names, seen = {}, set[str]()
    named = [(at, x, desc) for x, desc in zip("abcd", things) if (at := template.find(f"{{{x}}}")) >= 0]
    for _, letter, desc in sorted(named, key=lambda row: row[0]):
        names[letter] = noun_phrase(desc, article, flavour, again and desc.kind in seen)
        seen.add(desc.kind)
    return names


def _posture_words(plan: SentencePlan) -> dict[str, str]:
    if not plan.posture:
        return {"be": "is", "bes": "are", "ing": ""}
    plural, going, _ = POSTURES[plan.posture]
    progressive = going and plan.flavour % 3 == 1
    be, bes = (f"is {going}", f"are {going}") if progressive else (plan.posture, plural)
    return {"be": be, "bes": bes, "ing": going and f"{going} "}


def _chosen(options: Sequence[T], number: int) -> T:
    return options[number % len(options)]


def join_names(names: list[str]) -> str:
    """Return the names as an English list, with commas and "and".

    >>> join_names(["a cat", "a dog", "a cup"])
    'a cat, a dog and a cup'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
