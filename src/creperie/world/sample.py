"""Random drafts: which things, in which colours, in which relation, and what a caption mentions of them."""

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
#: Who can stand in which role of a relation.
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
#: Relations whose picture leaves room for a big and a small thing.
SIZABLE = frozenset({"left", "right", "above", "below", "near", "front", "behind", "faces"})
#: Roles that the layout fills with small things; these are too small for patterns.
SMALL_ROLES = {"far": (0, 1), "inside": (0,), **dict.fromkeys(("holds", "carries", *GIVING), (1,))}
BIG_ROLES = {"inside": (1,)}


@dataclass(frozen=True, slots=True)
class Mention:
    """What a caption says of a thing besides its kind."""

    colour: bool = False
    pattern: bool = False
    size: bool = False


def describe(look: Look, mention: Mention) -> Desc:
    """The description of a look, as far as it is mentioned."""
    return Desc(
        look.kind,
        look.colour if mention.colour else None,
        look.pattern if mention.pattern else None,
        look.size if mention.size else None,
    )


class Sampler:
    """Random choices; `seen` draws only combinations that training may show."""

    def __init__(self, dice: Dice, seen: bool) -> None:
        self.dice = dice
        self.seen = seen

    def colour(self, kind: str, used: Sequence[str]) -> str:
        """A colour for a thing of this kind that no other thing has."""
        return self.dice.pick([c for c in self.colours(kind) if c not in used])

    def colours(self, kind: str) -> Sequence[str]:
        """The colours that things of this kind may have."""
        return SEEN_COLOURS[kind] if self.seen else COLOURS

    def kind(self, pool: Sequence[str], used: Sequence[str]) -> str:
        """A kind from the pool that is not used yet."""
        return self.dice.pick([name for name in pool if name not in used])

    def pattern(self, kind: str, small: bool) -> str:
        if small or not KINDS[kind].patterned or self.dice.chance(45):
            return "plain"
        return self.dice.pick(PATTERNS[1:])

    def draft(self, relation: str, pools: Pools | None = None, bystander: int = 45) -> SceneDraft | None:
        """Things in a relation, and with some chance (in percent) others beside them, up to eight in all."""
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
        """What to say of each thing; twins of one kind are always told apart by their colours."""
        dice = self.dice
        sized = {look.size for look in draft.looks[:2]} == {"small", "big"} and dice.coin()
        twins = draft.looks[0].kind == draft.looks[1].kind
        result = []
        for k, look in enumerate(draft.looks):
            tiny = look.size == "small" or k >= draft.arity
            likely = 18 if look.pattern == "plain" else 40
            result.append(
                Mention(
                    colour=(twins and k < 2) or dice.chance(55),
                    pattern=not tiny and KINDS[look.kind].patterned and dice.chance(likely),
                    size=sized and k < 2 and dice.chance(70),
                )
            )
        return result


def change(draft: SceneDraft, k: int, **values: str) -> SceneDraft:
    """The same draft with one thing looking different."""
    looks = list(draft.looks)
    looks[k] = replace(looks[k], **values)
    return replace(draft, looks=tuple(looks))
