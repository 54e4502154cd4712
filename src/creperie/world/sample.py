"""Random drafts of twins: which things two scenes show, what they look like, how they are related, and what the
captions claim.

The classes for drawings and for rooms both implement `Stage`, and the proposals in foils.py use nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from creperie.world.dice import Dice, Tape, UnfitError
from creperie.world.scene import GIVING
from creperie.world.sprites import TABLES
from creperie.world.truth import CONVERSE, SYMMETRIC, Desc, Fact, LogicalForm, Relations

Slot = tuple[Any, Any]  #: the look of a thing in each of the two scenes
HEAVY = frozenset(TABLES["heavy"]["kinds"])
COMPARING = frozenset({"taller", "shorter", "bigger", "smaller", "nearer", "farther"})
SIDES = (frozenset(CONVERSE) | SYMMETRIC) - COMPARING  #: relations of a thing to another that is not moved
_ARITY = {"crowd": 0, **dict.fromkeys(("depth", "between", *GIVING), 3)}


def arity_of(relation: str) -> int:
    """Return the number of things that take part in a relation; 0 for `crowd`, which is no relation between things."""
    return _ARITY.get(relation, 2)


@dataclass(frozen=True, slots=True)
class Draft:
    """Two scenes without positions, and a claim about each. A slot holds the looks that one thing has in the two
    scenes. The first slots are those of the things that take part in the relation; the others are bystanders.

    Each claim is meant to be true of its own scene and false of the other. `note` describes how the scenes differ.
    """

    setting: str
    slots: tuple[Slot, ...]
    relations: tuple[str, str]
    forms: tuple[LogicalForm, LogicalForm]
    note: str
    base: LogicalForm | None = None  #: the claim without the addition, for kinds that add something

    @property
    def arity(self) -> int:
        return arity_of(self.relations[0])


class Stage:
    """The interface of a kind of world (drawings or rooms), used by the functions that propose drafts. It says what
    things can look like, and lays out the scenes of a draft.
    """

    name = ""
    fields: Sequence[str]  #: attributes of things
    pools: ClassVar[dict[str, Sequence[str]]]

    def __init__(self) -> None:
        self.tables: dict[str, Any] = TABLES["worlds"][self.name]
        self.fields = tuple(self.tables["mentioned"])
        self.roles: dict[str, dict[str, list[Sequence[str]]]] = {
            setting: {r: [self.pools[p] for p in pools] for r, pools in TABLES["roles"][setting].items()}
            for setting in self.tables["settings"]
        }

    def colours(self, kind: str, seen: bool) -> Sequence[str]:
        """Return the colours that things of this kind can have; with `seen`, only those that also occur in training
        scenes.
        """
        raise NotImplementedError

    def others(self, kinds: Sequence[str], setting: str, dice: Dice) -> list[str]:
        """Return the kinds of a few random things to add to a scene as bystanders. `kinds` are the kinds that the scene
        already has.
        """
        raise NotImplementedError

    def looks(self, kinds: Sequence[str], relation: str, setting: str, s: Sampler) -> list[Any]:
        """Return a look for each thing; the things that take part in the relation differ in colour."""
        raise NotImplementedError

    def painted(self, kinds: Sequence[str], s: Sampler) -> list[Any]:
        """Return looks for things in a crowd, chosen so that they can be given any colour."""
        raise NotImplementedError

    def as_kind(self, look: Any, kind: str, s: Sampler, setting: str) -> Any:
        """Return a look for a thing of the kind `kind`. It is as similar as possible to `look`, which belongs to a
        thing of another kind.
        """
        raise NotImplementedError

    def at_place_of(self, look: Any, other: Any) -> Any:
        """Return the look that a thing gets when it takes the place of another thing, whose look is `other`."""
        return look

    def said(self, look: Any, field: str) -> str:
        """Return the word that captions use for an attribute of a look; empty if they do not mention it."""
        raise NotImplementedError

    def values(self, look: Any, field: str, s: Sampler) -> Sequence[str]:
        """Return the values of an attribute that a thing with this look could have and that captions can mention."""
        raise NotImplementedError

    def allows(self, setting: str, relation: str, kinds: Sequence[str]) -> bool:
        """Return whether things of these kinds can be in this relation in this setting."""
        pools = self.roles[setting].get(relation)
        return pools is not None and all(kind in pool for kind, pool in zip(kinds, pools))

    def unposed(self, look: Any, crowded: bool) -> Any:
        """Return a simplified look, with which the thing can also be shown in other relations. `crowded` says whether
        the scene has many things.
        """
        return look

    def scenes(self, draft: Draft, tape: Tape, split: str, novel: bool) -> Sequence[Any] | None:
        """Return both scenes of a draft, laid out with the tape. With `novel`, both must show a combination that is
        held out from training; without it, neither may. Return None if they do not meet this condition, are invalid,
        or are not in the split.
        """
        raise NotImplementedError

    def graph(self, scene: Any) -> Relations:
        """Return the scene graph: all relations between the things of a scene."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sampler:
    """Random choices for drafts (proposals for two scenes). With `seen`, they include only combinations of kind,
    colour and relation that training scenes may show.
    """

    stage: Stage
    dice: Dice
    seen: bool

    def relation(self, group: str) -> str:
        """Return a random relation from a list of relations in tables.toml, such as `either` or `sided`. Drawings and
        rooms have lists of their own.
        """
        return self.dice.pick(self.stage.tables[group])

    def setting(self, relation: str) -> str:
        """Return a random setting in which a relation is possible."""
        return self.dice.pick([x for x in self.stage.tables["settings"] if relation in self.stage.roles[x]])

    def colours(self, kind: str) -> Sequence[str]:
        return self.stage.colours(kind, self.seen)

    def slots(
        self, relation: str, setting: str, bystanders: int = 45, pools: Sequence[Sequence[str]] = ()
    ) -> list[Slot]:
        """Return things for a relation; they are the same in both scenes. `pools` has one list of possible kinds per
        role; by default, these are the kinds that the relation allows. As a rule, the things have different kinds. If
        a heavy and a light thing stand beside each other, the light thing has the first role. With a probability of
        `bystanders` percent, things outside the relation are added.
        """
        kinds: list[str] = []
        for pool in pools or self.stage.roles[setting][relation]:
            options = [kind for kind in pool if kind not in kinds]
            if not options:
                raise UnfitError
            kinds.append(self.dice.pick(options))
        if relation in SIDES and not pools:
            if self.dice.chance(8):
                kinds[1] = kinds[0]
            elif kinds[0] in HEAVY and self.stage.allows(setting, relation, kinds[1::-1]):
                kinds.reverse()
        if self.dice.chance(bystanders):
            kinds += self.stage.others(kinds, setting, self.dice)
        return [(look, look) for look in self.stage.looks(kinds, relation, setting, self)]

    def mentions(self, looks: Sequence[Any], *relations: str) -> list[list[str]]:
        """Return, for each thing, the attributes to mention, at most two. If the first two things are of one kind,
        their colours are mentioned. The state of a container that has something in it is never mentioned.
        """
        odds: dict[str, int] = self.stage.tables["mentioned"]
        sized = {look.size for look in looks[:2]} == {"small", "big"}
        result = []
        for k, _ in enumerate(looks):
            barred = {"" if sized and k < 2 else "size", "state" if k and "inside" in relations else ""}
            fields = [f for f, percent in odds.items() if f not in barred and self.dice.chance(percent)]
            twins = k < 2 <= len(looks) and looks[0].kind == looks[1].kind
            result.append(["colour", *fields[:1]] if twins else sorted(self.dice.shuffled(fields)[:2]))
        return result

    def describe(self, look: Any, fields: Sequence[str]) -> Desc:
        """Return a description of a look by some of its attributes. If the colour is mentioned, so is the pattern."""
        values = {field: said for field in fields if (said := self.stage.said(look, field))}
        if "colour" in values and (pattern := self.stage.said(look, "pattern")):
            values["pattern"] = pattern
            if len(values) > 2 and fields[0] == "colour":
                values.pop(fields[1])
        return Desc(look.kind, **values)

    def shared(self, slot: Slot, fields: Sequence[str]) -> list[str]:
        """Return the attributes among `fields` for which captions of both scenes would use the same word."""
        alike = [f for f in self.stage.fields if self.stage.said(slot[0], f) == self.stage.said(slot[1], f)]
        return [f for f in fields if f in alike and (f != "colour" or "pattern" in alike)]

    def claim(self, relation: str, looks: Sequence[Any], says: Sequence[Sequence[str]]) -> LogicalForm:
        """Return the claim that the first things (as many as the relation needs) are in the relation. Each is
        described by the attributes that `says` lists for it.
        """
        n = arity_of(relation)
        things = tuple(self.describe(look, fields) for look, fields in zip(looks[:n], says))
        return LogicalForm(things, (Fact(relation, tuple(range(n))),))

    def draft(
        self,
        setting: str,
        relations: tuple[str, str],
        slots: Sequence[Slot],
        note: str,
        must: dict[int, str] | None = None,
        says: Sequence[Sequence[str]] | None = None,
    ) -> Draft:
        """Return a draft whose two claims differ in the relation, or in attributes of the things. `must` maps the
        index of a thing to an attribute that the captions always mention. `says` lists, for each thing, the
        attributes to mention; by default, they are chosen at random.
        """
        says = says or self.mentions([look for look, _ in slots], *relations)
        says = [
            [must[k], *self.shared(slot, says[k])[:1]] if must and k in must else self.shared(slot, says[k])
            for k, slot in enumerate(slots)
        ]
        forms = [self.claim(r, [slot[side] for slot in slots], says) for side, r in enumerate(relations)]
        return Draft(setting, tuple(slots), relations, (forms[0], forms[1]), note)

    def exchanged(self, relation: str, order: Sequence[int], bystanders: int = 45) -> Draft:
        """Return a draft in which things exchange their roles in a relation: the thing with the role `order[k]` in the
        first scene has the role k in the second. With a probability of `bystanders` percent, other things are added.
        """
        setting = self.setting(relation)
        pools = self.stage.roles[setting][relation]
        moved = [k for k, other in enumerate(order) if k != other]
        common = [kind for kind in pools[moved[0]] if all(kind in pools[k] for k in moved)]
        slots = self.slots(relation, setting, bystanders, [common if k in moved else p for k, p in enumerate(pools)])
        if relation in SIDES and len({slots[k][0].kind in HEAVY for k in moved}) > 1:
            raise UnfitError
        looks = [look for look, _ in slots]
        says = self.mentions(looks)
        mixed = [(looks[k], self.stage.at_place_of(looks[other], looks[k])) for k, other in enumerate(order)]
        forms = (
            self.claim(relation, looks, says),
            self.claim(relation, [two for _, two in mixed], [says[k] for k in order]),
        )
        return Draft(setting, (*mixed, *slots[len(order) :]), (relation, relation), forms, relation)


def opposite(relation: str) -> str | None:
    """Return a relation that excludes this one ("left" for "right", "pulls" for "pushes"); None if there is none."""
    return CONVERSE.get(relation) or {"near": "far", "far": "near", "pushes": "pulls", "pulls": "pushes"}.get(relation)
