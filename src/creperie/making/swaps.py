"""Swaps from the reading of a caption: names, phrases, attributes and counts of two things change places.

Two things can change places if they have different roles in the reading: who does something and to whom, who is given
it, what is where, or each in a fact of its own. A swap is plausible if both are of one sort and either could be in the
other's role; any other is absurd, and made only if the options ask for it. The truth layer decides later what is false.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from creperie.lang import (
    COUNTS,
    Reading,
    Stated,
    age_of,
    dimension_of,
    facts,
    gender_of,
    in_number,
    is_mass,
    is_reciprocal,
    is_subject,
    is_worn,
    kind_of,
    of_group,
    read,
    reagreed,
    things,
)
from creperie.making.atoms import base_of, dependents, joined, look_of, named, objects
from creperie.making.corpus import WordCounts
from creperie.making.edits import ANIMATE, MADE, CaptionEdit, frames, is_divided, may_be, named_noun, qualities
from creperie.making.exchanging import (
    PRONOUNS,
    Pair,
    exchange_spans,
    exchanged_names,
    exchanged_phrases,
    owners,
    sort_here,
)
from creperie.making.phrases import is_plural, lacks_determiner, outer
from creperie.making.verbs import is_name, topics
from creperie.making.wording import plain, reworded


@dataclass(frozen=True)
class ParsedScene:
    """A parsed caption with its reading: the things that may be moved, and what is said of each."""

    doc: Any

    @cached_property
    def reading(self) -> Reading:
        return read(self.doc)

    @cached_property
    def things(self) -> list[Any]:
        """The nouns, names and pronouns that can be moved, in order."""
        nouns = {t.i for t in objects(self.doc)}
        every = [self.doc[i] for i in sorted(self.reading.entities)]
        known = [t for t in every if t.i in nouns or t.tag_ == "NNP" or t.lower_ in PRONOUNS]
        return [t for t in known if not is_tied(t)]

    def facts_of(self, thing: Any) -> list[tuple[Stated, str]]:
        return [(fact, role) for fact in self.reading.facts for role, number in fact.roles if number == thing.i]

    def between(self, one: Any, other: Any) -> list[tuple[Stated, str, str]]:
        """Return the facts in which two things have different roles, with these roles."""
        own, theirs = self.facts_of(one), self.facts_of(other)
        return [
            (f, role, theirs_role) for f, role in own for g, theirs_role in theirs if f is g and role != theirs_role
        ]


# -- things ----------------------------------------------------------------------------------------------------------


def swapped_objects(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the names of two things; number and attributes stay in place."""
    return _swaps(doc, names=True)


def swapped_phrases(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two noun phrases with their numbers and attributes."""
    return _swaps(doc, names=False)


def absurd_swaps(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap two things of different sorts: `A table is on a cup.`"""
    return _swaps(doc, names=False, absurd=True)


def _swaps(doc: Any, *, names: bool, absurd: bool = False) -> Iterator[CaptionEdit]:
    scene = ParsedScene(doc)
    for left, right, why in exchangeable(scene):
        if why and not absurd:
            yield CaptionEdit(doc.text, f"{left.text} ↔ {right.text}", left.i, (left, right), why)
        elif bool(why) == absurd:
            written_out = exchanged_names(left, right) if names else exchanged_phrases(left, right, always=absurd)
            if written_out:
                yield CaptionEdit(written_out, f"{left.text} ↔ {right.text}", left.i, (left, right))


def exchangeable(scene: ParsedScene) -> Iterator[tuple[Any, Any, str]]:
    """Yield pairs of things that can change places, with the reason if that would be absurd."""
    bases = Counter(base_of(t) for t in scene.doc)
    for left, right in combinations(scene.things, 2):
        first, second = base_of(left), base_of(right)
        if first == second or bases[first] + bases[second] > 2 or not _are_apart(left, right):
            continue
        own, theirs = scene.facts_of(left), scene.facts_of(right)
        if not own or not theirs or {(id(f), role) for f, role in own} == {(id(f), role) for f, role in theirs}:
            continue
        links = scene.between(left, right)
        if joined(left, right) and not (_has_own(scene, left, right) and _has_own(scene, right, left)):
            continue  # `two adults and five children` in either order
        named_or_meant = any(t.lower_ in PRONOUNS or sort_here(t) == "name" for t in (left, right))
        mixed = sorted(map(sort_here, (left, right))) == ["name", "person"]  # a horse may have a name
        if mixed or (named_or_meant and not any(not f.is_relation for f, *_ in links)):
            continue  # `A man … in front of him`, `a question from CBS`
        if _leaves_pronoun(left, right) or any(_is_mutual(f, a, b) or f.denied >= 0 for f, a, b in links):
            continue
        if any(f.name in frames()["unseen"] for t in (left, right) for f, _ in scene.facts_of(t)):
            continue  # `shaped like a whale`
        if _only_look(scene, left, right, links):
            continue
        reason = why_absurd(scene, left, right, links)
        if reason != NO_SWAP:
            yield left, right, reason


def _leaves_pronoun(left: Any, right: Any) -> bool:
    """Return True if a pronoun would mean somebody else, or nobody, after the exchange."""
    own = owners(right)
    genders = {gender_of(base_of(t)) for t in (left, right)}
    beside = [t for t in left.doc if t.tag_ in ("PRP", "PRP$") and t not in (left, right, *own)]
    if any(t.lower_.endswith(("self", "selves")) for t in beside):
        return True
    if own or any(t.lower_ in PRONOUNS for t in (left, right)):
        if any(dependents(t, "relcl") for t in (left, right)) or (own and topics(base_of(right))[:1] != (18,)):
            return True
        third = not any(t.lower_ in PRONOUNS for t in left.doc if t in (left, right)) and is_subject(left)
        return bool(beside) or (bool(own) and not (third and sort_here(right) == "person"))
    several = any(t.lower_ in ("they", "them", "their", "it", "its") for t in beside)
    if several and is_plural(left) != is_plural(right):
        return True
    said = {"m" if t.lower_ in ("he", "him", "his") else "f" if t.lower_ in ("she", "her") else "n" for t in beside}
    return bool(said) and genders != {"m", "f"} and not (said | genders) <= {"", *list(said)[:1]}


def _is_mutual(fact: Stated, role: str, other: str) -> bool:
    """Return True if two things in these roles may be said in either order, or one of them must be many."""
    fixed = (
        "wear",
        "have",
        "of",
        "with",
        "is with",
        "is in",
        "is inside",
        "is among",
        *frames()["mutual"],
        *frames()["encircling"],
    )
    return fact.name in fixed or "partner" in (role, other)


def _only_look(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> bool:
    """Return True if two things only look somewhere: who stares may be who looks away."""
    events = [f for t in (left, right) for f, role in scene.facts_of(t) if role == "agent" and not f.is_relation]
    looking = bool(events) and all(f.name in facts()["looks"] for f in events)
    return looking and not any(not f.is_relation for f, *_ in links)


def _has_own(scene: ParsedScene, thing: Any, other: Any) -> bool:
    """Return True if a phrase after a noun says something of it alone: `a man in a hat and a woman in a scarf`."""
    own = [f for f, _ in scene.facts_of(thing) if f.name != "of" and other.i not in {i for _, i in f.roles}]
    return any(scene.doc[fact.token].head == thing for fact in own)


def _are_apart(left: Any, right: Any) -> bool:
    """Return True unless one phrase contains the other: `a cup of tea`."""
    return left.i not in {t.i for c in right.children if c.dep_ in ("poss", "compound", "nmod") for t in c.subtree}


NO_SWAP = "-"
#: Relations that two things of one sort may have in either order.
UPRIGHT = frozenset(("is above", "is below", "is over", "is beneath", "is on top of"))


def why_absurd(scene: ParsedScene, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> str:
    """Return why nobody would expect two things in each other's places; empty if somebody would; `NO_SWAP` if neither
    order makes sense to compare.
    """
    sorts = sort_here(left), sort_here(right)
    names = f"*{named(left)}* and *{named(right)}* could change places, but"
    if "" in sorts and not links:
        return NO_SWAP
    if set(sorts) <= {"person", "name"} or sorts == ("animal", "animal"):
        return _why_not_animate(names, left, right, links)
    if set(sorts) <= ANIMATE:
        crossed = bool(links) and all(f.name in frames()["crossed"] or _is_idle(scene, f) for f, *_ in links)
        crossed = crossed and not any(t.lower_ in ("its", "his", "her") or t.dep_ == "relcl" for t in scene.doc)
        return "" if crossed else f"{names} few animals do what people do (--plausible no)"
    if links:
        alike = sorts[0] == sorts[1]
        turned = all((is_beside(f.name) or (alike and f.name in UPRIGHT)) and _is_bare(scene, f) for f, *_ in links)
        alone = all(
            f in [g for g, *_ in links] or not f.is_relation for t in (left, right) for f, _ in scene.facts_of(t)
        )
        if turned and alone and not set(sorts) & {"place", "", *ANIMATE, "name"}:
            return ""
        if any(f.is_relation or {a, b} <= {"agent", "patient"} for f, a, b in links):
            return f"{names} nobody would expect one where the other is (--plausible no)"
        return NO_SWAP
    return "" if sorts[0] == sorts[1] and _is_same_place(scene, left, right) else NO_SWAP


def _why_not_animate(names: str, left: Any, right: Any, links: list[tuple[Stated, str, str]]) -> str:
    both = base_of(left), base_of(right)
    weak_doer = any(age_of(base_of(t)) == "baby" and not is_subject(t) for t in (left, right))
    if weak_doer:
        return f"{names} a baby does little (--plausible no)"
    if sort_here(left) == "animal" and any(t.lower_ in frames()["one_sided"] for t in left.doc):
        return f"{names} not every animal can do it (--plausible no)"
    if sort_here(left) == "animal" and links and all(f.name in frames()["near"] for f, *_ in links):
        return NO_SWAP  # both may do it
    verbs = [f.name for f, *_ in links if not f.is_relation]
    weak = [verb for verb in verbs if not turns(verb, *both, sort_here(left))]
    return f"{names} not everybody can {weak[0]} the other (--plausible no)" if weak else ""


def turns(verb: str, first: str, second: str, sort: str = "") -> bool:
    """Return True if each of two animate nouns could do the action to the other. For verbs such as `carry` both must be
    people of one age. `sort` is what both are, if their nouns do not tell.

    >>> turns("chase", "goat", "girl"), turns("feed", "man", "dog"), turns("hit", "player", "ball")
    (True, False, False)
    """
    kinds = {sort} if sort else {kind_of(first), kind_of(second)}
    if len(kinds) == 2 and kinds <= ANIMATE:
        return verb in frames()["crossed"]
    if verb.split()[0] not in frames()["grown"]:
        return kinds <= {*ANIMATE, "name"}
    return kinds <= {"person", "name"} and len({age_of(first) == "child", age_of(second) == "child"}) == 1


def is_beside(relation: str) -> bool:
    """Return True for a relation that either of two things may have to the other, whatever they are: `behind`."""
    return relation.removeprefix("is ") in frames()["beside"]


def _is_idle(scene: ParsedScene, fact: Stated) -> bool:
    """Return True for a place that people and animals may have: `sits behind`; not `throws a ball toward`."""
    event = [f for f in scene.reading.facts if f.token == fact.event and not f.is_relation]
    return is_beside(fact.name) and all(f.name in frames()["resting"] and len(f.roles) == 1 for f in event)


def _is_bare(scene: ParsedScene, fact: Stated) -> bool:
    """Return True if no verb says more than that something is there: not `A man walks behind a car.`"""
    verbs = {f.name for f in scene.reading.facts if not f.is_relation and f.token == fact.event}
    return verbs <= set(frames()["resting_things"])


def _is_same_place(scene: ParsedScene, left: Any, right: Any) -> bool:
    """Return True if two things of one sort are in the same role of two facts of one name: two hats that two people
    wear, two chairs that two cats are on, two cars that do different things.
    """
    own, theirs = ([(f, role) for f, role in scene.facts_of(t)] for t in (left, right))
    acts = all(role in ("agent", "figure") for _, role in (*own, *theirs))
    within = any(scene.doc[f.token].dep_ in ("ccomp", "xcomp") for f, _ in (*own, *theirs))
    if sort_here(left) in MADE and acts and not within:
        return not joined(left, right)
    shared = [(f, g) for f, role in own for g, other in theirs if f.name == g.name and role == other and f is not g]
    return any(_others(f, left) and not _others(f, left) & _others(g, right) for f, g in shared)


def _others(fact: Stated, thing: Any) -> set[int]:
    return {number for role, number in fact.roles if number != thing.i}


def is_tied(noun: Any) -> bool:
    """Return True if a thing cannot be moved: it is a part of another, or belongs or refers to one."""
    if noun.head.lower_ == "of" and of_group(noun.head.head) != noun and noun.head.head.lower_ not in frames()["sides"]:
        return True
    if base_of(noun) in frames()["parts"] or noun.lower_ in frames()["around"] or noun.dep_ == "npadvmod":
        return True
    if noun.i and noun.nbor(-1).text == "-" and not noun.nbor(-1).whitespace_:
        return True  # `a four-wheeler`
    around = (*noun.children, *outer(noun).children)
    if any(c.dep_ in ("appos", "case") for c in around):
        return True  # `the winner, Dalia Okonjo`, `the chef's counter`
    return any(c.lower_ in frames()["unmoved"] for c in around) or (
        noun.tag_ == "NN" and noun.lower_ not in PRONOUNS and lacks_determiner(noun) and not _may_be_bare(noun)
    )


def _may_be_bare(noun: Any) -> bool:
    """Return True for a noun that stands without an article: a mass noun, a name, one of a list after `with`."""
    return is_mass(base_of(noun)) or noun.text[:1].isupper() or bool(dependents(noun, "amod")) or noun.dep_ == "conj"


# -- attributes ------------------------------------------------------------------------------------------------------


def swapped_attributes(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the attributes of two things, if each could be said of the other."""
    worn = [t for t in doc if t.dep_ == "pobj" and t.head.lower_ == "in" and dimension_of(t.lower_) == "colour"]
    for left, right in (*combinations(qualities(doc), 2), *combinations(worn, 2)):
        one, other = described(left), described(right)
        if one is None or other is None or one == other or left.lower_ == right.lower_:
            continue
        spans = attribute_span(left), attribute_span(right)
        said = [{t.lower_ for t in doc[slice(*s)]} for s in spans]
        if spans[0][1] > spans[1][0] or said[0] & said[1] or (said[0] | said[1]) & set(frames()["gendered"]):
            continue
        if base_of(one) == base_of(other) and not any(t.tag_[:2] in ("VB", "IN") for t in doc[one.i : other.i]):
            continue  # `a red car, … and a blue car`
        if look_of(left) != look_of(right) or not look_of(left):
            continue
        change = f"{doc[slice(*spans[0])].text} ↔ {doc[slice(*spans[1])].text}"
        fits = _acts_alone(one, other) if left.dep_ == "pobj" else _fit(left, right, one, other, corpus)
        if fits and not any(_is_doubled(t, s) for t, s in zip((left, right), spans)):
            yield CaptionEdit(exchange_spans(doc, *spans, repair=True), change, left.i, (left, right))


def _acts_alone(one: Any, other: Any) -> bool:
    """Return True if two things are told apart by their names, or by what only one does: not `fights`."""
    links = [f.name for f, *_ in ParsedScene(one.doc).between(one, other) if not f.is_relation]
    alone = any(not is_reciprocal(verb) and verb not in frames()["mutual"] for verb in links)
    return base_of(one) != base_of(other) or alone


def _is_doubled(adjective: Any, span: tuple[int, int]) -> bool:
    """Return True if a noun has another attribute of the same dimension: `a gray, white dog`."""
    own, before = look_of(adjective), adjective.doc[max(0, span[0] - 2) : span[0]]
    beside = [c for c in adjective.head.lefts if c.i not in range(*span)]
    joint = before if any(t.lower_ in ("and", ",") for t in before) else ()
    return any(look_of(c) == own for c in (*beside, *joint))


def _fit(left: Any, right: Any, one: Any, other: Any, corpus: WordCounts) -> bool:
    """Return True if each of two attributes could be said of the other thing."""
    grown = look_of(left) in ("size", "age") and len({sort_here(t) in ANIMATE for t in (one, other)}) > 1
    own = _may_look(left, one, corpus) and _may_look(right, other, corpus)
    return not grown and own and _may_look(left, other, corpus) and _may_look(right, one, corpus)


def _may_look(attribute: Any, noun: Any, corpus: WordCounts) -> bool:
    """Return True if a thing could have an attribute: made things any colour and material, others as `may_be` says."""
    senses = topics(base_of(noun))
    made = sort_here(noun) in MADE or 6 in senses[:3] or is_worn(base_of(noun))
    whole = not made and is_name(f"{attribute.lower_} {base_of(noun)}")  # `red onion`
    if sort_here(noun) in ANIMATE or look_of(attribute) in ("size", "age", "state", "number"):
        return may_be(attribute.lower_, noun, corpus)
    return (made or 20 in senses[:1]) and not whole and base_of(noun) not in things()["inborn"]


def described(adjective: Any) -> Any | None:
    """Return the noun that an adjective describes, before it or after `is`; None if there is none."""
    if (noun := named_noun(adjective)) is not None:
        return noun
    if adjective.dep_ == "pobj":  # `a cyclist in red`
        before = adjective.doc[max(0, adjective.head.i - 1)]  # whatever the parse attaches it to
        return before if before.tag_[:2] == "NN" else None
    subjects = [c for c in adjective.head.lefts if c.dep_ == "nsubj"] if adjective.dep_ == "acomp" else []
    return subjects[0] if len(subjects) == 1 else None


def attribute_span(adjective: Any) -> tuple[int, int]:
    """Return an adjective with the words that say it more exactly: `dark blue`, `black and white`."""
    inside = {adjective.i}
    for c in adjective.subtree:
        if c.dep_ in ("conj", "cc", "advmod", "amod", "npadvmod") or c.text in ("-", ","):
            inside.add(c.i)
    shades = set(frames()["shades"])
    while adjective.i and min(inside) and adjective.doc[min(inside) - 1].lower_ in shades:
        inside.add(min(inside) - 1)
    return min(inside), max(inside) + 1


# -- counts ----------------------------------------------------------------------------------------------------------


def swapped_counts(doc: Any, corpus: WordCounts) -> Iterator[CaptionEdit]:
    """Yield edits that swap the numbers of two things: `one bottle and three glasses`."""
    scene = ParsedScene(doc)
    counted = [(number, thing) for thing in scene.things if (number := _number(thing)) is not None]
    if is_divided(doc):
        return
    for (one, left), (other, right) in combinations(counted, 2):
        if one.lower_ == other.lower_ or {one.lower_, other.lower_} <= {"a", "an", "one"}:
            continue
        article = not {one.lower_, other.lower_} <= COUNTS.keys()
        said = [scene.reading.entities[t.i].attributes for t in (left, right)]
        if (base_of(left) == base_of(right) and said[0] == said[1]) or (
            article and sort_here(left) != sort_here(right)
        ):
            continue
        crowding = ("around", "among", "between", *frames()["encircling"])
        if any({f.name, f.name.removeprefix("is ")} & set(crowding) for f, *_ in scene.between(left, right)) or any(
            {"single", "lone", "only"} & words for words in said
        ):
            continue
        changes = {one.i: plain(other), other.i: plain(one)}
        for noun, number in ((left, other), (right, one)):
            plural = number.lower_ not in ("a", "an", "one")
            if plural != (noun.tag_ == "NNS"):
                changes[noun.i] = in_number(plain(noun), plural)
                changes |= reagreed(noun, plural) if not dependents(noun, "conj") and noun.dep_ != "conj" else {}
        yield CaptionEdit(reworded(doc, changes), f"{one.text} ↔ {other.text}", one.i, (left, right))


def _number(noun: Any) -> Any | None:
    """Return the word that counts a noun: a number, or `a`; None if it has none or stands after other words."""
    if noun.tag_ not in ("NN", "NNS") or base_of(noun) in frames()["paired"] or is_mass(base_of(noun)):
        return None
    words = [c for c in noun.lefts if c.dep_ in ("det", "nummod", "quantmod", "predet", "poss")]
    if len(words) != 1 or outer(noun) is not noun or (words[0].i and words[0].nbor(-1).lower_ in ("least", "than")):
        return None
    return words[0] if words[0].lower_ in (*COUNTS, "a", "an") and not list(words[0].children) else None


# -- pairs that the published makers swap ----------------------------------------------------------------------------


def noun_pairs(nouns: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of nouns with different lemmas that are not joined by `and`."""
    for left, right in combinations(nouns, 2):
        if not joined(left, right) and base_of(left) != base_of(right):
            yield left, right


def adjective_pairs(adjectives: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of adjectives of different nouns that are not joined by `and`."""
    for left, right in combinations(adjectives, 2):
        nouns = left.head.tag_[:2] == right.head.tag_[:2] == "NN"
        if nouns and left.head != right.head and left.lower_ != right.lower_ and not joined(left, right):
            yield left, right
