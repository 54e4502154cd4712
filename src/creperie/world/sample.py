"""Random drafts: which things, in which colours and relation, and which attributes a caption mentions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from creperie.world.dice import Dice
from creperie.world.kinds import (
    ANIMATES,
    COLOURS,
    CONTAINERS,
    HANDED,
    HELD,
    KINDS,
    MOVED,
    PATTERNS,
    SUPPORTS,
    UNWRITTEN,
)
from creperie.world.layout import Look, SceneDraft
from creperie.world.scene import GIVING, MOST
from creperie.world.splits import SEEN_COLOURS
from creperie.world.truth import Desc

Pools = tuple[Sequence[str], ...]

_BODIES = tuple(n for n in UNWRITTEN if n not in ("cage", "tent", "house"))
#: Kinds that can fill each role of a relation.
ROLES: dict[str, Pools] = {
    **dict.fromkeys(("left", "right", "above", "below", "near", "far", "front", "behind"), (UNWRITTEN, UNWRITTEN)),
    "inside": (_BODIES, CONTAINERS),
    "on": (_BODIES, SUPPORTS),
    "pushes": (HANDED, ANIMATES + MOVED),
    "pulls": (HANDED, ANIMATES + MOVED),
    "carries": (HANDED, HANDED + HELD),
    "holds": (HANDED, HELD),
    "follows": (ANIMATES, ANIMATES),
    "faces": (ANIMATES, UNWRITTEN),
    **dict.fromkeys(GIVING, (HANDED, HELD, HANDED)),
    "depth": (UNWRITTEN, UNWRITTEN, UNWRITTEN),
    "crowd": (),
}
SPATIAL = ("left", "right", "above", "below", "inside", "on", "front", "behind", "near", "far")
ACTIONS = ("pushes", "pulls", "carries", "holds", "follows", "faces")
RELATIONS = SPATIAL + ACTIONS
#: Relations whose image has room for a big and a small thing.
SIZABLE = frozenset({"left", "right", "above", "below", "near", "front", "behind", "faces"})
#: Roles that the layout fills with small things, which are too small for patterns.
SMALL_ROLES = {"far": (0, 1), "inside": (0,), **dict.fromkeys(("holds", "carries", *GIVING), (1,))}
BIG_ROLES = {"inside": (1,)}


@dataclass(frozen=True, slots=True)
class Mention:
    """Which attributes of a thing a caption mentions, besides its kind."""

    colour: bool = False
    pattern: bool = False
    size: bool = False


def describe(look: Look, mention: Mention) -> Desc:
    """Return the description of a look, with the attributes that are mentioned."""
    return Desc(
        look.kind,
        look.colour if mention.colour else None,
        look.pattern if mention.pattern else None,
        look.size if mention.size else None,
    )


@dataclass(frozen=True)
class Sampler:
    """Random choices for drafts; with `seen`, only combinations that training may show."""

    dice: Dice
    seen: bool

    def colour(self, kind: str, used: Sequence[str]) -> str:
        """Return a random colour for a thing of this kind that is not in `used`."""
        return self.dice.pick([c for c in self.colours(kind) if c not in used])

    def colours(self, kind: str) -> Sequence[str]:
        """Return the colours that things of this kind may have."""
        return SEEN_COLOURS[kind] if self.seen else COLOURS

    def kind(self, pool: Sequence[str], used: Sequence[str]) -> str:
        """Return a random kind from the pool that is not in `used`."""
        return self.dice.pick([name for name in pool if name not in used])

    def pattern(self, kind: str, small: bool) -> str:
        if small or not KINDS[kind].patterned or self.dice.chance(45):
            return "plain"
        return self.dice.pick(PATTERNS[1:])

    def draft(self, relation: str, pools: Pools | None = None, bystander: int = 45) -> SceneDraft | None:
        """Return a draft of things in a relation, in `bystander` percent of cases with others, up to eight in all; None
        if no kind is left for a role.
        """
        dice = self.dice
        kinds: list[str] = []
        for pool in pools or ROLES[relation]:
            options = [name for name in pool if name not in kinds]
            if not options:
                return None
            kinds.append(dice.pick(options))
        if relation in SPATIAL[:4] and dice.chance(8):
            kinds[1] = kinds[0]
        if dice.chance(bystander):
            others = 1 if dice.chance(25) else dice.between(3, MOST - len(kinds))
            for _ in range(others):
                kinds.append(self.kind(UNWRITTEN, kinds))
        return SceneDraft(self.looks(kinds, relation), relation)

    def looks(self, kinds: Sequence[str], relation: str) -> tuple[Look, ...]:
        small, big = SMALL_ROLES.get(relation, ()), BIG_ROLES.get(relation, ())
        crowded = len(kinds) > len(ROLES[relation]) + 1
        contrast = relation in SIZABLE and not crowded and self.dice.chance(18)
        sizes: list[str | None] = list(self.dice.shuffled(("small", "big"))) if contrast else []
        sizes += ["small" if crowded else None] * 3
        looks: list[Look] = []
        for k, kind in enumerate(kinds):
            size = sizes[k] if k < len(ROLES[relation]) else sizes[2]
            if k in small or k in big:
                size = "small" if k in small else "big"
            tiny = size == "small" or k >= len(ROLES[relation])
            used = [x.colour for x in looks[: len(ROLES[relation])]]
            looks.append(Look(kind, self.colour(kind, used), self.pattern(kind, tiny), size))
        return tuple(looks)

    def mentions(self, draft: SceneDraft) -> list[Mention]:
        """Return what to mention of each thing; two main things of one kind are always distinguished by colour."""
        dice = self.dice
        sized = {look.size for look in draft.looks[:2]} == {"small", "big"} and dice.coin()
        twins = draft.looks[0].kind == draft.looks[1].kind
        result = []
        for k, look in enumerate(draft.looks):
            tiny = look.size == "small" or k >= draft.arity
            likely = 18 if look.pattern == "plain" else 40
            pattern = not tiny and KINDS[look.kind].patterned and dice.chance(likely)
            colour = (twins and k < 2) or dice.chance(55) or pattern  # "a plain red cat", never "a plain cat"
            result.append(Mention(colour, pattern, sized and k < 2 and dice.chance(70)))
        return result


def change(draft: SceneDraft, k: int, **values: str) -> SceneDraft:
    """Return the draft with the appearance of one thing changed."""
    looks = list(draft.looks)
    looks[k] = replace(looks[k], **values)
    return replace(draft, looks=tuple(looks))
