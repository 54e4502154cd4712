"""Compare the readings of two captions: which things they share, what the second adds, and what in one contradicts the
other.

A reading is the things and facts that a caption states. Things of the second reading are aligned with things of the
first by their names, attributes and roles. The best alignment is kept: one under which everything in the second reading
follows from the first or, if there is none, the one with the fewest differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from creperie.lang.alignment import alignments
from creperie.lang.lexicon import dimension_of, facts, in_one_group, is_reciprocal, kind_of
from creperie.lang.likeness import (
    Likeness,
    are_two_kinds,
    attribute_likeness,
    forms,
    is_place,
    is_right,
    joins,
    may_be_done_as,
    noun_likeness,
    place_likeness,
    verb_likeness,
)
from creperie.lang.relations import goes_back, relations
from creperie.lang.scene import MANY, Entity, Reading, Stated

#: Maximum number of alignments that are compared.
MOST_ALIGNMENTS = 120
#: Events from which a relation follows.
_IMPLIED = {
    "have": ("wear", "hold", "carry", "with", "own"),
    "with": ("have", "hold", "carry"),
    "wear": ("dress",),
    "is touching": ("hold", "carry", "hug", "kiss", "pet", "grab", "lick", "bite", "ride", "lift"),
}
#: Relations of the table that two things may have to each other at the same time.
_EITHER_WAY = frozenset(("is facing", "is facing away from", "is against", "with", "have", "own", "of"))


@dataclass(frozen=True)
class Unmatched:
    """Something that the second caption says and the first does not."""

    why: str
    edit: str  #: the words of both
    new: tuple[str, ...]  #: words of the second
    kind: str
    is_open: bool = False  #: both may hold


@dataclass
class ReadingComparison:
    """The comparison of two captions' readings under one alignment (from things of the second to things of the
    first).
    """

    own: Reading
    other: Reading
    aligned: Mapping[int, int]
    score: float = 0.0
    missing: list[Unmatched] = field(default_factory=list)
    clashes: list[Unmatched] = field(default_factory=list)
    used: set[int] = field(default_factory=set)  #: facts of the first reading that support the second
    notes: list[str] = field(default_factory=list)  #: what is said in other words

    def __post_init__(self) -> None:
        self._reversed = {own: other for other, own in self.aligned.items()}
        for number, thing in self.other.entities.items():
            self._compare_thing(number, thing)
        for fact in self.other.facts:
            if fact.denied < 0:
                self._compare_fact(fact)
        self._compare_denials()
        for one, two in self.other.order:
            if (two, one) in self.own.order:
                self.clashes.append(Unmatched("the other way round in time", f"{one}, {two}", (one,), "order"))
        read = {f.denied for f in self.other.facts} | {f.denied for f in self.own.facts if not self.other.denied}
        nobody = any(e.quantity == "no" for r in (self.own, self.other) for e in r.entities.values())
        for opener, denied in self.other.denied.items():
            if opener not in read and not nobody:
                self.missing.append(Unmatched("a denial that is not read", " ".join(sorted(denied)), (), "unread"))
        unread = set(self.own.unread)
        for word in self.other.unread:
            if word not in unread:
                self.missing.append(Unmatched("not read", word, (word,), "unread"))

    @property
    def shared(self) -> bool:
        return bool(self.aligned)

    @property
    def left(self) -> str:
        """The first phrase of the first caption that matches nothing in the second; empty if there is none."""
        facts = [f.words for k, f in enumerate(self.own.facts) if k not in self.used and f.denied < 0]
        things = [thing.words for k, thing in self.own.entities.items() if k not in self._reversed]
        more = (self.own.entities[o].attributes - self.other.entities[t].attributes for t, o in self.aligned.items())
        return next(iter([*facts, *things, *(a for some in more for a in sorted(some))]), "")

    @property
    def cost(self) -> float:
        return len(self.missing) + sum(-2 if c.kind == "denial" else 1 for c in self.clashes)

    def contradiction(self) -> Unmatched | None:
        """Return a difference that shows that the captions cannot both be true of one picture, or None."""
        sure = [c for c in self.clashes if c.kind in ("denial", "roles", "order")]
        if sure:
            return sure[0]
        if not self.clashes or [m for m in self.missing if not m.is_open]:
            return None
        kinds = {c.kind for c in self.clashes}
        if len(self.clashes) == 1 or kinds <= {"attribute", "count"} or self._exchanges():
            return self.clashes[0]
        return None

    def _exchanges(self) -> bool:
        """Return whether the two captions use the same names, but for different things. Only aligned things whose names
        exclude each other count: the list of their names must be the same in both captions, apart from its order.
        """
        pairs = [(self.own.entities[o].head, self.other.entities[t].head) for t, o in self.aligned.items()]
        apart = [pair for pair in pairs if noun_likeness(*pair) == "apart"]
        return sorted(a for a, _ in apart) == sorted(b for _, b in apart)

    # -- things

    def _compare_thing(self, number: int, new: Entity) -> None:
        if new.denied or new.quantity == "no" or not self._is_stated(number):
            return
        if number not in self.aligned:
            self._unmatched(new)
            return
        old = self.own.entities[self.aligned[number]]
        if old.quantity == "no" or old.denied:
            self.missing.append(
                Unmatched("the caption does not say that there is one", new.words, (new.head,), "thing")
            )
        likeness = _likeness(old, new)
        edit = f"{old.words} → {new.words}"
        if old.head != new.head and is_right(likeness):
            self.notes.append(f"one is a kind of the other: {edit}")
        if likeness == "apart" and "all" in (old.quantity, new.quantity):
            self.missing.append(Unmatched("said of all: both may hold", edit, (new.head,), "name", True))
        elif likeness == "apart" and new.head not in old.attributes:  # a toy truck is a toy
            self.clashes.append(Unmatched("two things that exclude each other", edit, (new.head,), "thing"))
        elif not is_right(likeness):
            what = "it says more" if likeness == "below" else "both may be said of one thing"
            self.missing.append(Unmatched(what, edit, (new.head,), "name", likeness not in ("apart", "unknown")))
        if unreal := (old.attributes - new.attributes) & {*facts()["unreal"]}:
            self.missing.append(Unmatched("it may not be a real one", edit, tuple(unreal), "name", True))
        self._compare_attributes(old, new)
        self._compare_counts(old, new, edit)

    def _is_stated(self, number: int) -> bool:
        """Return False if the second caption denies everything that it says about a thing, else True. A thing that is
        only mentioned counts as stated.
        """
        own = [f.denied for f in self.other.facts if number in {i for _, i in f.roles}]
        return not own or min(own) < 0

    def _unmatched(self, new: Entity) -> None:
        """Record a thing of the second caption that matches nothing in the first. Also record whether it certainly
        differs from every thing that the first caption mentions.
        """
        free = [e for i, e in self.own.entities.items() if i not in self._reversed and not e.denied]
        known = bool(kind_of(new.head))
        alone = all(noun_likeness(e.head, new.head) in ("apart",) or kind_of(e.head) != kind_of(new.head) for e in free)
        self.missing.append(Unmatched("it says more", new.words, (new.head,), "thing", (known and alone) or not free))

    def _compare_attributes(self, old: Entity, new: Entity) -> None:
        names = old.attributes | {old.head}
        for attribute in sorted(new.attributes - names):
            if any(is_right(noun_likeness(a, attribute)) for a in names if " " not in a and not dimension_of(a)):
                continue
            known = {a: attribute_likeness(a, attribute) for a in sorted(old.attributes)}
            if "same" in known.values():
                continue
            elsewhere = any(attribute in e.attributes for e in self.own.entities.values())
            apart = next(
                (
                    a
                    for a, of in known.items()
                    if of == "apart"
                    or (elsewhere and _are_opposites(a, attribute))
                    or (old.head == new.head and are_two_kinds(old.head, a, attribute))
                ),
                None,
            )
            if apart and attribute not in self.own.unread and not self._has_both(old, apart, attribute):
                edit = f"{apart} {old.head} → {attribute} {new.head}"
                why = "two attributes that exclude each other"
                self.clashes.append(Unmatched(why, edit, (attribute,), "attribute"))
            else:
                edit = f"{attribute} {new.head}"
                is_open = "unknown" not in known.values() or not known
                self.missing.append(Unmatched("it says more", edit, (attribute,), "attribute", is_open))

    def _has_both(self, old: Entity, apart: str, attribute: str) -> bool:
        return len([a for a in old.attributes if dimension_of(a) == dimension_of(apart) != ""]) > 1

    def _compare_counts(self, old: Entity, new: Entity, edit: str) -> None:
        a, b = old.count, new.count
        peers = [e for e in self.own.entities.values() if is_right(_likeness(e, new)) and not e.denied]
        if len(peers) > 1 and (b or 0) > 1 and a != b:
            if sum(e.count or 0 for e in peers) != b:
                self.missing.append(Unmatched("the counts may agree", edit, (), "count", True))
            return
        if new.quantity == "all" and old.quantity != "all":
            self.missing.append(Unmatched("it says it of all", edit, ("all",), "count", True))
        if "inexact" in (old.quantity, new.quantity):
            if a != b or old.words != new.words:
                why = "a limit or an estimate: both counts may hold"
                self.missing.append(Unmatched(why, edit, (), "count", True))
        elif (new.quantity in ("few", "several") and old.quantity != new.quantity) or (
            new.quantity == "group" and a == 2
        ):
            why = "the counts may agree" if old.quantity != "several" else "fewer or more"
            self.missing.append(Unmatched(why, edit, (), "count", True))
        elif old.quantity == "several" and b == 1 and new.quantity == "exactly":
            self.clashes.append(Unmatched("another count", edit, (), "count"))
        elif a is None or b is None or a == b or (b == MANY and a > 1) or (a == MANY and b == 1):
            return
        elif MANY in (a, b):
            self.missing.append(Unmatched("the counts may agree", edit, (), "count", 1 not in (a, b)))
        else:
            self.clashes.append(Unmatched("another count", edit, (), "count"))

    # -- facts

    def _compare_fact(self, fact: Stated) -> None:
        reasons: list[Unmatched] = []
        for k, own in enumerate(self.own.facts):
            if own.denied >= 0:
                continue
            likeness = self._fact_likeness(own, fact)
            if likeness is not None and is_right(likeness) and fact.manner <= own.manner:
                self.used.add(k)
                self._note(own, fact)
                return
            edit = f"{own.words} → {fact.words}"
            apart = [(a, b) for a in own.manner for b in fact.manner if attribute_likeness(a, b) == "apart"]
            if apart and likeness is not None and is_right(likeness):
                reasons.append(
                    Unmatched("two manners that exclude each other", " → ".join(apart[0]), apart[0][1:], "manner")
                )
            elif self._is_mirrored(own, fact) or (likeness is not None and self._goes_back(own, fact)):
                reasons.append(Unmatched("each has the other's part", self._parts(own, fact), (), "roles"))
            elif likeness == "apart" and not self._does_both(own, fact):
                kind = "place" if fact.is_relation else "action"
                why = "places that exclude each other" if fact.is_relation else "two actions that exclude each other"
                reasons.append(Unmatched(why, edit, (fact.name, *fact.name.split()), kind))
            elif likeness in ("alike", "below"):
                reasons.append(Unmatched("both may hold", edit, (), "fact", True))
            elif likeness is not None and is_right(likeness):
                words = " ".join(sorted(fact.manner - own.manner))
                reasons.append(Unmatched("it says more", words, (), "fact", True))
            elif likeness == "unknown":
                reasons.append(Unmatched("nothing is known of the two", edit, (), "fact"))
        best = next(
            (r for kind in ("roles", "manner", "place", "action", "fact") for r in reasons if r.kind == kind), None
        )
        if best is None:
            fresh = any(i not in self.aligned for _, i in fact.roles)
            best = Unmatched("it says more", fact.words, (), "fact", fresh or self._is_spare(fact))
        (self.clashes if best.kind in ("roles", "manner", "place", "action") else self.missing).append(best)

    def _note(self, own: Stated, fact: Stated) -> None:
        crossed = self._crosses(own, fact, "agent", "patient") or self._crosses(own, fact, "figure", "ground")
        if crossed and own.name == fact.name:
            self.notes.insert(0, f"it holds both ways: {fact.words}")
        elif own.words.lower() != fact.words.lower():
            self.notes.append(f"in other words: {own.words} → {fact.words}")

    def _does_both(self, own: Stated, new: Stated) -> bool:
        """Return whether one of the two captions states both actions, `own` and `new`. The actions then do not
        contradict each other.
        """
        return any(f.name == own.name for f in self.other.facts) or any(f.name == new.name for f in self.own.facts)

    def _is_spare(self, fact: Stated) -> bool:
        """Return True if `fact`, a fact of the second caption, has no rival in the first caption. A rival is an
        unmatched fact about at least one of the same things.
        """
        things = {self.aligned[i] for _, i in fact.roles if i in self.aligned}
        rivals = [
            f
            for k, f in enumerate(self.own.facts)
            if k not in self.used and f.denied < 0 and f.is_relation == fact.is_relation
        ]
        return not any(things & {i for _, i in f.roles} for f in rivals)

    def _parts(self, own: Stated, fact: Stated) -> str:
        names = [" / ".join(r.entities[i].words for _, i in f.roles) for r, f in ((self.own, own), (self.other, fact))]
        return f"{names[0]} ({own.words}) → {names[1]} ({fact.words})"

    def _fact_likeness(self, own: Stated, new: Stated) -> Likeness | None:
        """Return how the fact `new` relates to the fact `own` if both have the same participants, else None."""
        if new.is_relation:
            return self._relation_likeness(own, new)
        if own.is_relation:
            return None
        likeness = verb_likeness(own.name, new.name)
        both = likeness == "same" and not own.passive and not new.passive and _goes_both_ways(new.name)
        if all(self._fills(own, role, thing, both) for role, thing in new.roles):
            if likeness == "apart" and {r for r, _ in own.roles} != {r for r, _ in new.roles}:
                return "alike"
            return likeness
        return None

    def _fills(self, own: Stated, role: str, thing: int, both: bool) -> bool:
        counterpart = self.aligned.get(thing)
        if counterpart is None:
            return False
        roles = {r for r, i in own.roles if i == counterpart}
        if both and role in ("agent", "patient", "partner"):
            return bool(roles & {"agent", "patient", "partner"})
        return role in roles or (role in ("recipient", "for") and bool(roles & {"recipient", "for"}))

    def _relation_likeness(self, own: Stated, new: Stated) -> Likeness | None:
        (ground,) = (self.aligned.get(i) for i in new.fillers("ground"))
        figures = {self.aligned[i] for i in new.fillers("figure") if i in self.aligned}
        if not own.is_relation:
            implied = own.name in _IMPLIED.get(new.name, ())
            return "above" if implied and figures & own.fillers("agent") and ground in own.fillers("patient") else None
        bare = _is_bare(self.own, own) and _is_bare(self.other, new)
        if own.event >= 0 and new.event >= 0 and not self._of_same_event(own, new):
            return None
        if ground in own.fillers("ground") and (figures & self._holders(own) or not new.fillers("figure")):
            if own.name in _IMPLIED.get(new.name, ()):
                unclear = len(own.fillers("figure")) > len(figures)  # `overtakes another with a helmet`: whose is it?
                return "alike" if unclear else "above"
            return place_likeness(own.name, new.name, False, bare)
        if ground in own.fillers("figure") and figures & own.fillers("ground"):
            turned = place_likeness(own.name, new.name, True, bare)
            return turned if is_place(own.name) and is_place(new.name) else None
        return None

    def _of_same_event(self, own: Stated, new: Stated) -> bool:
        """Return whether the phrase `own` of the first caption and the phrase `new` of the second may describe the same
        action.
        """
        here, there = ({f.token: f.name for f in r.facts if not f.is_relation} for r in (self.own, self.other))
        name = there.get(new.event)
        return name not in here.values() or here.get(own.event) == name

    def _holders(self, own: Stated) -> set[int]:
        """Return the numbers of the things that the phrase `own` may describe. There can be several, because a parse
        may attach a phrase such as `in the park` to the verb or to the verb's object.
        """
        figures = own.fillers("figure")
        if own.name in ("wear", "have", "own"):
            return figures
        for fact in self.own.facts:
            things = {i for _, i in fact.roles}
            same = len({self.own.entities[i].head for i in things}) < len(things)
            if same and not _goes_both_ways(fact.name):
                continue  # a man and another man
            if not fact.is_relation and figures & things:
                figures = figures | things
        return figures

    def _is_mirrored(self, own: Stated, new: Stated) -> bool:
        """Return whether two participants have exchanged their roles between the two facts."""
        if own.is_relation != new.is_relation:
            return False
        if own.is_relation:
            crosses = own.name == new.name and self._crosses(own, new, "figure", "ground")
            return crosses and not self._holds_turned(own)
        if not is_right(verb_likeness(own.name, new.name)) or self._fact_likeness(own, new) is not None:
            return False
        pairs = [("agent", "patient"), ("agent", "recipient"), ("patient", "recipient")]
        if joins(own.name):
            pairs = pairs[:2]  # what is locked to something has that locked to it
        return any(self._crosses(own, new, *pair) for pair in pairs)

    def _goes_back(self, own: Stated, new: Stated) -> bool:
        """Return whether somebody comes from a place in the first caption and goes to this place in the second. The
        first caption must also say where they go.
        """
        return goes_back(own.name, new.name) and any(f.name == new.name for f in self.own.facts)

    def _holds_turned(self, own: Stated) -> bool:
        """Return whether a relation may also hold with its two things exchanged.

        This is the case for `with`, `against`, and relations that are their own converse, such as `near`. It is the
        case for `in front of` if only one of the two things has a front: a man is in front of a house, and the house
        may be in front of him. It is also assumed if the first thing is at the same time the second thing of another
        such relation, as the grass is in `a dog in high grass in a wooded area`.
        """
        fronted = {kind_of(self.own.entities[i].head) in ("person", "animal", "vehicle") for _, i in own.roles}
        if own.name in _EITHER_WAY or (own.name in ("is in front of", "is ahead of") and len(fronted) > 1):
            return True
        within = {i for f in self.own.facts if f.name == own.name and f is not own for i in f.fillers("ground")}
        if own.fillers("figure") <= within:
            return True  # `in high grass in a wooded area`
        return relations().get(own.name, {}).get("converse") == own.name

    def _crosses(self, own: Stated, new: Stated, first: str, second: str) -> bool:
        there = [{self.aligned[i] for i in new.fillers(role) if i in self.aligned} for role in (first, second)]
        here = [own.fillers(role) for role in (first, second)]
        if not (there[0] & here[1] and there[1] & here[0]) or there[0] & here[0] or there[1] & here[1]:
            return False
        names = [self.own.entities[min(side)].head for side in here]
        return noun_likeness(*names) not in ("above", "below")

    # -- denial

    def _compare_denials(self) -> None:
        for opener, group in _denied(self.other).items():
            stated = [f for f in self.own.facts if f.denied < 0]
            if self._all_hold(stated, group[0], group[1]) or self._says_all(self.own, self.other, opener, group[0]):
                edit = " ".join(f.words for f in group[0]) or group[1][0].words
                self.clashes.append(Unmatched("it denies what the caption says", edit, (), "denial"))
            elif not any(self._denied_alike(theirs, group) for theirs in _denied(self.own).values()):
                words = " ".join(f.words for f in group[0]) or f"{opener}"
                if len({f.name for f in group[0]}) != 1 or not any(map(self._excluded, group[0])):
                    self.missing.append(Unmatched("it denies something", words, (), "denial", True))
        for opener, group in _denied(self.own).items():
            stated = [f for f in self.other.facts if f.denied < 0]
            turned = ReadingComparison.__new__(ReadingComparison)
            turned.own, turned.other, turned.aligned = self.other, self.own, self._reversed
            turned._reversed = dict(self.aligned)
            if turned._all_hold(stated, *group) or turned._says_all(self.other, self.own, opener, group[0]):
                edit = " ".join(f.words for f in group[0]) or group[1][0].words
                self.clashes.append(Unmatched("it says what the caption denies", edit, (), "denial"))

    def _says_all(self, own: Reading, new: Reading, opener: int, group: list[Stated]) -> bool:
        """Return whether the caption `own` contains all the words that `new` denies, with every participant in the same
        role. `opener` is the position of the negating word, and `group` holds the facts that it denies.

        Words are compared because parses differ (`no monkey kicking`, `a monkey is kicking`).
        """
        denied = new.denied.get(opener, frozenset())
        said = {form for w in own.words for form in forms(w)}
        if not denied or any(said.isdisjoint(forms(w)) for w in denied):
            return False
        pairs = [(f, g) for f in own.facts for g in group]
        return not any(
            self._is_mirrored(f, g) or (self._fact_likeness(f, g) == "apart" and not self._does_both(f, g))
            for f, g in pairs
        )

    def _all_hold(self, stated: list[Stated], facts: list[Stated], things: list[Entity]) -> bool:
        """Return whether the first caption states what a negation in the second denies: all the denied `facts` or, if
        there are none, one of the denied `things`. `stated` holds the facts that the first caption states; a fact
        counts as the same if the things in it may be the same.
        """
        if not facts:
            heads = [e for e in self.own.entities.values() if e.quantity != "no" and not e.denied]
            return bool(things) and any(is_right(noun_likeness(e.head, t.head)) for e in heads for t in things)
        for fact in facts:
            if fact.name.startswith("be "):
                (thing,) = fact.fillers("agent")
                own = self.own.entities.get(self.aligned.get(thing, -1))
                if own is None or fact.name[3:] not in own.attributes:
                    return False
            elif not any(self._states(own, fact) for own in stated):
                return False
        return True

    def _states(self, own: Stated, fact: Stated) -> bool:
        likeness = self._fact_likeness(own, fact)
        if likeness is None and fact.is_relation and own.is_relation:  # whatever the parse attaches the phrase to
            grounds = {self.aligned.get(i) for i in fact.fillers("ground")} & own.fillers("ground")
            likeness = place_likeness(own.name, fact.name) if grounds else None
        if likeness == "unknown" and not fact.is_relation and may_be_done_as(own.name, fact.name):
            likeness = "alike"
        if likeness in (None, "apart", "unknown") or not fact.manner <= own.manner:
            return False
        pairs = [
            (self.own.entities[self.aligned[i]], self.other.entities[i]) for _, i in fact.roles if i in self.aligned
        ]
        described = all(b.attributes <= a.attributes for a, b in pairs if b.denied or b.quantity == "no")
        return described and all(_likeness(a, b) not in ("apart", "unknown") for a, b in pairs)

    def _excluded(self, fact: Stated) -> bool:
        """Return whether the first caption excludes a fact that the second denies. For example, `outside the oven`
        excludes `in the oven`.
        """
        stated = [f for f in self.own.facts if f.denied < 0 and f.is_relation and not self._is_mirrored(f, fact)]
        return any(self._fact_likeness(own, fact) == "apart" for own in stated)

    def _denied_alike(self, own: tuple[list[Stated], list[Entity]], new: tuple[list[Stated], list[Entity]]) -> bool:
        """Return whether each fact that the first caption denies matches a fact that the second denies. `own` and `new`
        hold the facts and things that the two captions deny.
        """
        return all(any(self._is_narrower(f, g) for g in new[0]) for f in own[0]) and bool(own[0])

    def _is_narrower(self, own: Stated, new: Stated) -> bool:
        likeness = self._fact_likeness(
            own, Stated(new.name, tuple(r for r in new.roles if r[1] in self.aligned), "", 0)
        )
        pairs = [
            (self.other.entities[i], self.own.entities[self.aligned[i]]) for _, i in new.roles if i in self.aligned
        ]
        wider = all(is_right(_likeness(*pair)) and pair[1].attributes <= pair[0].attributes for pair in pairs)
        if any(new.quantity == "no" and own.words.lower().startswith("some ") for new, own in pairs):
            return False  # some people do not
        return wider and likeness == "same" and {r for r, _ in own.roles} <= {r for r, _ in new.roles}


def _are_opposites(attribute: str, other: str) -> bool:
    """Return whether two attributes that are not colours exclude each other, such as `striped` and `plaid`."""
    return dimension_of(attribute) != "colour" and in_one_group("opposites", attribute, other)


def _is_bare(reading: Reading, fact: Stated) -> bool:
    """Return whether a clause states nothing but this relation, as in `The cat is on the bed.`"""
    return fact.event >= 0 and not any(f.token == fact.event for f in reading.facts)


def _goes_both_ways(verb: str) -> bool:
    return any(is_reciprocal(verb, preposition) for preposition in facts()["reciprocal"])


def _denied(reading: Reading) -> dict[int, tuple[list[Stated], list[Entity]]]:
    """Return, by the index of each negating word of a caption, the facts and the things that it denies. It denies a
    thing if it only says that the thing is absent, as in `no dog`.
    """
    groups: dict[int, tuple[list[Stated], list[Entity]]] = {}
    for fact in reading.facts:
        if fact.denied >= 0:
            groups.setdefault(fact.denied, ([], []))[0].append(fact)
    for number, thing in reading.entities.items():
        if thing.quantity == "no" and not any(number in {i for _, i in f.roles} for g in groups.values() for f in g[0]):
            opener = max((o for o in reading.denied if o <= number and o not in groups), default=-2 - number)
            groups.setdefault(opener, ([], []))[1].append(thing)
    return groups


# -- alignment -------------------------------------------------------------------------------------------------------


def _likeness(old: Entity, new: Entity) -> Likeness:
    return noun_likeness(old.head, new.head)


def best_comparison(own: Reading, other: Reading) -> ReadingComparison:
    """Return the comparison of two readings under their best alignment. This is one under which `other` follows from
    `own` or, if there is none, the one under which the two readings differ least.
    """
    best: ReadingComparison | None = None
    denies = bool(_denied(other))
    for aligned, score in islice(alignments(own, other), MOST_ALIGNMENTS):
        found = ReadingComparison(own, other, aligned, score)
        if not found.missing and not found.clashes and not denies:
            return found
        if best is None or (-found.cost, found.score) > (-best.cost, best.score):
            best = found
    assert best is not None
    return best
