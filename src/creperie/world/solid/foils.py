"""The clean kinds of the world in three dimensions: how the two rooms of a pair differ.

Each function proposes a draft, or returns None if the random choices leave nothing to work with; `find_rooms`
certifies.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from creperie.world.dice import Dice
from creperie.world.foils import CHOICE, QUAD, TRIPLE, TWINS, CleanKind
from creperie.world.solid.arrange import RoomDraft, Slot, against_wall, lay_out
from creperie.world.solid.models import SOLIDS
from creperie.world.solid.paints import COLOURS, NATURAL
from creperie.world.solid.scene import GROUNDS, PATTERNS, WALLS, Room, Solid
from creperie.world.solid.space import RoomGraph
from creperie.world.splits import SHARES
from creperie.world.truth import CONVERSE, Desc, Fact, LogicalForm
from creperie.world.twins import Twins, confirmed

_KINDS = list(SOLIDS)
_COLOURS = [name for name in COLOURS if name != "brown"]  # too much like wood
SMALL = tuple(k for k in SOLIDS if "table" in SOLIDS[k].place)
FREE = tuple(k for k in SOLIDS if "floor" in SOLIDS[k].place and "back" not in SOLIDS[k].place)
BACK = tuple(k for k in SOLIDS if {"back", "wall"} & {*SOLIDS[k].place})
_FURNITURE = tuple(k for k in SOLIDS if "floor" in SOLIDS[k].place and SOLIDS[k].top and "table" not in SOLIDS[k].place)
_LOADS = ("teddy bear", "plant", "hat", "box", "basket", "ball", "cushion", "lamp", "vase", "toy car", "bucket")
_TUCKED = ("ball", "box", "basket", "bucket", "toy car", "teddy bear", "hat", "toy boat")
_BESIDE = ("left", "right", "front", "behind", "near")
_EXCHANGED = (*_BESIDE[:4], "nearer", "farther", "between")
_STATED = tuple(k for k in SOLIDS if SOLIDS[k].states and k != "umbrella")
#: setting, relation → the kinds that can be its arguments
ROLES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    **{("table", r): (SMALL, SMALL) for r in (*_BESIDE, "nearer", "farther")},
    **{("room", r): (FREE, FREE) for r in (*_BESIDE, "nearer", "farther")},
    ("table", "on"): (tuple(k for k in SMALL if k not in ("ball", "plate", "book")), ("plate", "book", "block")),
    ("room", "on"): (_LOADS, (*_FURNITURE, "shelf")),
    ("table", "inside"): (("apple", "ball", "block", "teddy bear", "toy boat"), ("bowl", "box", "basket")),
    ("room", "inside"): (("ball", "teddy bear", "block", "toy boat"), ("box", "basket")),
    ("room", "under"): (_TUCKED, ("table", "bench", "chair")),
    ("room", "above"): (("framed picture",), ("bench", "chair", "table", "stool", "plant", "shelf")),
    ("table", "between"): (SMALL, SMALL, SMALL),
    ("room", "between"): (FREE, FREE, FREE),
    ("table", "depth"): (SMALL, SMALL, SMALL),
    ("room", "depth"): (FREE, FREE, FREE),
}
_UPRIGHT = {s: tuple(k for k in pool if SOLIDS[k].upright) for s, pool in (("table", SMALL), ("room", FREE))}


@dataclass(frozen=True)
class RoomSampler:
    """Random looks; with `seen`, only combinations of kind and colour that training may show."""

    dice: Dice
    seen: bool

    def setting(self, *needs: str) -> str:
        """Return a setting in which all these relations are possible."""
        options = [s for s in ("table", "table", "room") if all((s, r) in ROLES for r in needs)]
        return self.dice.pick(options)

    def colours(self, kind: str) -> list[str]:
        options = SOLIDS[kind].colours or _COLOURS
        return [c for c in options if not (self.seen and novel_colour(kind, c))]

    def look(self, kind: str, setting: str, used: Sequence[str] = ()) -> Solid:
        """Return a thing of this kind with a random look, in none of the used colours where it can be avoided."""
        dice, model = self.dice, SOLIDS[kind]
        material = dice.pick(model.materials)
        colour = ""
        if material not in NATURAL:
            free = [c for c in self.colours(kind) if c not in used]
            colour = dice.pick(free or self.colours(kind))
        marked = patterned(kind, material) and dice.chance(30)
        small = "table" in model.place and setting == "room"
        state = "open" if kind == "umbrella" else dice.pick(model.states) if model.states else ""
        return Solid(
            kind, colour, material, dice.pick(PATTERNS[1:]) if marked else "", "big" if small else "medium", state
        )

    def slots(
        self, relation: str, setting: str, bystander: int = 50, pools: Sequence[Sequence[str]] = ()
    ) -> list[Slot] | None:
        """Return things in a relation, in `bystander` percent of cases with others; equal in both scenes."""
        dice = self.dice
        kinds: list[str] = []
        for pool in pools or ROLES[setting, relation]:
            options = [k for k in pool if k not in kinds]
            if not options:
                return None
            kinds.append(dice.pick(options))
        main = len(kinds)
        if dice.chance(bystander):
            pool = SMALL if setting == "table" else FREE + BACK
            kinds += dice.shuffled([k for k in pool if k not in kinds])[: dice.between(1, 3)]
        looks: list[Solid] = []
        for k, kind in enumerate(kinds):
            look = self.look(kind, setting, [x.colour for x in looks[:main]])
            if relation == "inside" and k < 2:
                look = (
                    replace(look, size="small")
                    if not k
                    else replace(look, size="big", state="open" if kind == "box" else "empty")
                )
            if relation == "on" and k == 1 and kind == "book":
                look = replace(look, state="closed")
            looks.append(look)
        return [(look, look) for look in looks]


def novel_colour(kind: str, colour: str) -> bool:
    """Return whether this combination of kind and colour is held out for the test split."""
    return bool(colour) and (_KINDS.index(kind) + list(COLOURS).index(colour)) % 5 == 0 and not SOLIDS[kind].colours


def patterned(kind: str, material: str) -> bool:
    """Return whether a thing of this kind and material can have stripes, checks or spots."""
    return not SOLIDS[kind].plain and material in ("ceramic", "plastic", "cloth")


def describe(slot: Slot, side: int, dice_says: Sequence[str], must: Sequence[str] = ()) -> Desc:
    """Return the description of a look with the mentioned attributes; without `must` only those both sides share."""
    look, other = slot[side], slot[1 - side]
    values: dict[str, str] = {}
    for field in (*dice_says, *must):
        value = getattr(look, field)
        if field == "pattern":
            value = value or ("plain" if field in must else "")
        if field == "material" and value not in ("wood", "metal", "glass"):
            continue
        if value and (field in must or value == getattr(other, field)):
            values[field] = value
    return Desc(look.kind, **values)


def _mentions(s: RoomSampler, slots: Sequence[Slot]) -> list[list[str]]:
    """Return which attributes to mention of each thing; two of one kind are told apart by colour."""
    odds = {"colour": 55, "material": 40, "pattern": 30, "state": 35}
    return [[field for field, percent in odds.items() if s.dice.chance(percent)] for _ in slots]


def _claims(
    relations: tuple[str, str], slots: Sequence[Slot], says: Sequence[Sequence[str]], must: dict[int, Sequence[str]]
) -> tuple[LogicalForm, LogicalForm]:
    n = {"depth": 3, "between": 3}.get(relations[0], 2)
    forms = []
    for side, relation in enumerate(relations):
        things = tuple(describe(slots[k], side, says[k], must.get(k, ())) for k in range(n))
        forms.append(LogicalForm(things, (Fact(relation, tuple(range(n))),)))
    return forms[0], forms[1]


def _drafted(
    s: RoomSampler,
    setting: str,
    relations: tuple[str, str],
    slots: Sequence[Slot],
    note: str,
    must: dict[int, Sequence[str]] | None = None,
    says: Sequence[Sequence[str]] | None = None,
) -> RoomDraft:
    forms = _claims(relations, slots, says or _mentions(s, slots), must or {})
    return RoomDraft(setting, tuple(slots), relations, forms, note)


def _some(s: RoomSampler, bystander: int = 50) -> tuple[str, str, list[Slot] | None]:
    relation = s.dice.pick((*_BESIDE, "on", "on", "inside", "under", "above", "between"))
    setting = s.setting(relation)
    return relation, setting, s.slots(relation, setting, bystander)


def replace_obj(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms in which one thing is another kind of thing."""
    relation, setting, slots = _some(s)
    if slots is None:
        return None
    pools = ROLES[setting, relation]
    k = s.dice.roll(len(pools))
    options = [n for n in pools[k] if n not in [x.kind for x, _ in slots]]
    if not options:
        return None
    old = slots[k][0]
    new = replace(s.look(s.dice.pick(options), setting), size=old.size)
    if old.colour and old.colour in s.colours(new.kind) and new.colour:
        new = replace(new, colour=old.colour)
    slots[k] = (old, new)
    return _drafted(s, setting, (relation, relation), slots, f"{relation}, thing {k + 1}")


def _changed(s: RoomSampler, look: Solid, used: Sequence[str]) -> tuple[Solid, str] | None:
    """Return the thing with another colour, pattern, material or state, and what changed."""
    model = SOLIDS[look.kind]
    field = s.dice.pick(("colour", "colour", "pattern", "material", "state"))
    if field == "colour" and look.colour:
        options = [c for c in s.colours(look.kind) if c not in used]
    elif field == "pattern" and patterned(look.kind, look.material):
        options = [p for p in PATTERNS if p != look.pattern]
    elif field == "material" and look.material in ("wood", "metal", "glass"):
        options = [m for m in model.materials if m != look.material and m in ("wood", "metal", "glass")]
    elif field == "state" and look.kind in _STATED and not look.base:
        options = [x for x in model.states if x != look.state]
    else:
        return None
    if not options:
        return None
    change: dict[str, Any] = {field: s.dice.pick(options)}
    return replace(look, **change), field


def replace_att(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms in which one thing has another colour, pattern, material or state."""
    relation, setting, slots = _some(s)
    if slots is None:
        return None
    k = s.dice.roll(len(ROLES[setting, relation]))
    changed = _changed(s, slots[k][0], [x.colour for x, _ in slots])
    if changed is None or (changed[1] == "state" and relation in ("on", "inside") and k == 1):
        return None
    slots[k] = (slots[k][0], changed[0])
    must = (changed[1], "colour") if changed[1] == "pattern" else (changed[1],)
    return _drafted(s, setting, (relation, relation), slots, f"{changed[1]} of thing {k + 1}", {k: must})


def _states(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms in which a thing is open or closed, full or empty, lit or not."""
    setting = s.setting("near")
    pools = ROLES[setting, "near"]
    relation = s.dice.pick(_BESIDE)
    pool = [k for k in pools[0] if k in _STATED]
    k = s.dice.roll(2)
    slots = s.slots(relation, setting, 60, (pool, pools[1]) if not k else (pools[0], pool))
    if slots is None:
        return None
    look = slots[k][0]
    slots[k] = (look, replace(look, state=next(x for x in SOLIDS[look.kind].states if x != look.state)))
    return _drafted(s, setting, (relation, relation), slots, f"state of thing {k + 1}", {k: ("state",)})


def _other_relation(s: RoomSampler, relation: str, others: Sequence[str]) -> RoomDraft | None:
    setting = s.setting(relation)
    slots = s.slots(relation, setting)
    if slots is None:
        return None
    a, b = slots[0][0], slots[1][0]
    if relation in ("on", "inside", "under"):  # sizes and states that the first relation asked for stay
        others = [r for r in others if r not in ("on", "inside")]
    fitting = [
        r for r in others if (setting, r) in ROLES and a.kind in ROLES[setting, r][0] and b.kind in ROLES[setting, r][1]
    ]
    if relation in ("on", "inside", "under", "above"):
        fitting += [r for r in others if r in _BESIDE and a.kind != "framed picture"]
    fitting = [r for r in fitting if r != relation]
    if not fitting:
        return None
    other = s.dice.pick(fitting)
    return _drafted(s, setting, (relation, other), slots, f"{relation} to {other}")


def replace_rel(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms with the same things in another relation."""
    return _other_relation(s, s.dice.pick((*_BESIDE[:4], "on", "inside", "under")), (*_BESIDE[:4], "on", "under"))


def spatial(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms in which one thing is on the other side of the other."""
    relation = s.dice.pick(_BESIDE[:4])
    if s.dice.chance(40):
        return swap_obj(s, (relation,))
    return _other_relation(s, relation, (CONVERSE[relation],) if s.dice.chance(70) else _BESIDE[:4])


def swap_obj(s: RoomSampler, relations: Sequence[str] = _EXCHANGED) -> RoomDraft | None:
    """Propose rooms in which two things have changed places."""
    relation = s.dice.pick(relations)
    setting = s.setting(relation)
    slots = s.slots(relation, setting)
    if slots is None or any(against_wall(x) for x, _ in slots[:2]):
        return None
    a, b = slots[0][0], slots[1][0]
    slots[:2] = [(a, b), (b, a)]
    says = _mentions(s, slots)
    first = _claims((relation, relation), [(a, a), (b, b), *slots[2:]], says, {})[0]
    second = _claims((relation, relation), [(b, b), (a, a), *slots[2:]], [says[1], says[0], *says[2:]], {})[0]
    return RoomDraft(setting, tuple(slots), (relation, relation), (first, second), relation)


def swap_att(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms in which two things have exchanged their colours or patterns."""
    relation, setting, slots = _some(s)
    if slots is None:
        return None
    a, b = slots[0][0], slots[1][0]
    field = s.dice.pick(("colour", "colour", "pattern"))
    if field == "colour" and not (
        a.colour and b.colour and a.colour in s.colours(b.kind) and b.colour in s.colours(a.kind)
    ):
        return None
    if field == "pattern" and not all(patterned(x.kind, x.material) for x in (a, b)):
        return None
    one, two = getattr(a, field), getattr(b, field)
    if one == two:
        return None
    slots[:2] = [(a, replace(a, **{field: two})), (b, replace(b, **{field: one}))]
    must = ("pattern", "colour") if field == "pattern" else ("colour",)
    return _drafted(s, setting, (relation, relation), slots, field, {0: must, 1: must})


def add_obj(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms that differ in their third thing, which each caption adds to what is true of both."""
    relation, setting, slots = _some(s, 100)
    n = len(ROLES[setting, relation])
    if slots is None or n > 2 or against_wall(slots[2][0]):
        return None
    pool = SMALL if setting == "table" else FREE
    kind = s.dice.pick([k for k in pool if k not in [x.kind for x, _ in slots]])
    slots[2] = (slots[2][0], s.look(kind, setting))
    draft = _drafted(s, setting, (relation, relation), slots, relation)
    base = draft.forms[0]
    colour = ["colour"] if all(look.colour for look in slots[2]) and s.dice.coin() else []
    first, second = (replace(base, things=(*base.things, describe(slots[2], side, (), colour))) for side in (0, 1))
    return replace(draft, forms=(first, second), base=base)


def add_att(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms whose captions are equal except for an added colour, which is another one."""
    relation, setting, slots = _some(s)
    if slots is None:
        return None
    k = s.dice.roll(2)
    look = slots[k][0]
    options = [c for c in s.colours(look.kind) if c not in [x.colour for x, _ in slots]] if look.colour else []
    if not options:
        return None
    slots[k] = (look, replace(look, colour=s.dice.pick(options)))
    says = _mentions(s, slots)
    says[k] = [field for field in says[k] if field not in ("colour", "pattern")]
    draft = _drafted(s, setting, (relation, relation), slots, f"colour of thing {k + 1}", {k: ("colour",)}, says)
    return replace(draft, base=_claims((relation, relation), slots, says, {})[0])


def negation(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms that differ in what is absent, or in a relation that does not hold; both captions negate."""
    if s.dice.chance(40):
        relation = s.dice.pick(_BESIDE[:4])
        draft = _other_relation(s, relation, (CONVERSE[relation],))
        if draft is None:
            return None
        first, second = (replace(f, facts=(replace(f.facts[0], negated=True),)) for f in draft.forms)
        return replace(draft, forms=(second, first), note="relation")
    draft = replace_obj(s)
    if draft is None:
        return None
    slot = next(slot for slot in draft.slots if slot[0].kind != slot[1].kind)
    here, there = (Desc(look.kind) for look in slot)
    forms = LogicalForm((here,), absent=(there,)), LogicalForm((there,), absent=(here,))
    return replace(draft, forms=forms, note="presence", tails=False)


def depth(s: RoomSampler) -> RoomDraft | None:
    """Propose three things from front to back, with two of them exchanged."""
    setting = s.setting("depth")
    slots = s.slots("depth", setting, 25)
    if slots is None:
        return None
    says = _mentions(s, slots)
    order = s.dice.pick(((2, 1, 0), (1, 0, 2), (0, 2, 1)))
    looks = [x for x, _ in slots]
    mixed = [(looks[k], looks[order[k]]) for k in range(3)]
    first = _claims(("depth", "depth"), slots, says, {})[0]
    second = _claims(("depth", "depth"), [slots[k] for k in order], [says[k] for k in order], {})[0]
    return RoomDraft(setting, (*mixed, *slots[3:]), ("depth", "depth"), (first, second), f"order {order}")


def _crowd(s: RoomSampler, looks: Sequence[Slot], forms: tuple[LogicalForm, LogicalForm], note: str) -> RoomDraft:
    return RoomDraft("table", tuple(looks), ("crowd", "crowd"), forms, note)


_FEW = tuple(k for k in SMALL if k not in ("book", "basket", "plate", "hat", "box", "lamp"))  # there is room for seven


def count(s: RoomSampler) -> RoomDraft | None:
    """Propose tables with counts of two kinds of things: the counts are exchanged, or one of them differs."""
    a, b, c = (s.look(k, "table") for k in s.dice.shuffled(_FEW)[:3])
    n, m = s.dice.pick(((3, 2), (2, 3), (4, 3), (4, 2), (3, 4)))
    if s.dice.chance(60):
        low, more = (a, b) if n < m else (b, a)
        slots = [(a, a)] * min(n, m) + [(b, b)] * min(n, m) + [(more, low)] * abs(n - m)
        counts = (n, m), (m, n)
    else:
        slots = [(a, a)] * (n - 1) + [(b, b)] * m + [(a, c)]
        counts = (n, m), (n - 1, m)
    if min(map(min, counts)) < 2:
        return None
    descs = Desc(a.kind), Desc(b.kind)
    forms = tuple(LogicalForm((), counts=tuple(zip(descs, pair))) for pair in counts)
    return _crowd(s, slots, (forms[0], forms[1]), f"{counts[0]} to {counts[1]}")


def confusion(s: RoomSampler) -> RoomDraft | None:
    """Propose six things of three kinds in three colours, each twice: two of them exchange their colours."""
    kinds = [
        k for k in _FEW if {"ceramic", "plastic", "wax", "cloth"} & {*SOLIDS[k].materials} and not SOLIDS[k].colours
    ]
    a, b, c = s.dice.shuffled(kinds)[:3]
    free = [x for x in s.colours(a) if x in s.colours(b) and x in s.colours(c)]
    if len(free) < 3:
        return None
    x, y, z = s.dice.shuffled(free)[:3]

    def look(kind: str, colour: str) -> Solid:
        material = next(m for m in SOLIDS[kind].materials if m not in NATURAL)
        state = SOLIDS[kind].states[0] if SOLIDS[kind].states else ""
        return Solid(kind, colour, material, state=state)

    slots = [(look(a, x), look(a, z)), (look(b, z), look(b, x))]
    forms = tuple(LogicalForm(tuple(describe(slot, side, (), ("colour",)) for slot in slots)) for side in (0, 1))
    rest = [(look(k, v), look(k, v)) for k, v in ((a, y), (b, y), (c, z), (c, x))]
    return _crowd(s, [*slots, *rest], (forms[0], forms[1]), f"{x} and {z}")


def compare(s: RoomSampler) -> RoomDraft | None:
    """Propose rooms in which the taller or bigger of two things has become the shorter or smaller one."""
    relation = s.dice.pick(("taller", "shorter", "bigger", "smaller"))
    setting = s.dice.pick(("table", "table", "room"))
    height = relation in ("taller", "shorter")
    pool = (
        _UPRIGHT[setting]
        if height
        else tuple(k for k in (SMALL if setting == "table" else FREE) if not SOLIDS[k].colours)
    )
    slots = s.slots("near", setting, 40, (pool, pool))
    if slots is None:
        return None
    a, b = slots[0][0], slots[1][0]
    must: tuple[str, ...] = ()
    if not height:
        b, must = replace(s.look(a.kind, setting, [a.colour]), material=a.material), ("colour",)
        if (
            not (a.colour and b.colour)
            or a.colour == b.colour
            or ("table" not in SOLIDS[a.kind].place and setting == "table")
        ):
            return None
    small, big = "small", "big"
    one, two = (big, small) if relation in ("taller", "bigger") else (small, big)
    slots[:2] = [
        (replace(a, size=one), replace(a, size=two)),
        (replace(b, size=two), replace(b, size=one)),
    ]
    forms = _claims((relation, relation), slots, _mentions(s, slots), {0: must, 1: must})
    turned = replace(forms[0], facts=(Fact(CONVERSE[relation], (0, 1)),))
    draft = RoomDraft(setting, tuple(slots), (relation, relation), (forms[0], turned), relation)
    return draft


_ROOM_FORMS = (CHOICE, TRIPLE, QUAD, TWINS)
ROOM_KINDS: dict[str, Callable[[RoomSampler], RoomDraft | None]] = {
    "replace_obj": replace_obj, "replace_att": replace_att, "replace_rel": replace_rel, "swap_obj": swap_obj,
    "swap_att": swap_att, "add_obj": add_obj, "add_att": add_att, "spatial": spatial, "negation": negation,
    "depth": depth, "count": count, "confusion": confusion, "compare": compare, "state": _states,
}  # fmt: skip


def _no_drawing(sampler: object) -> None:
    """Propose nothing: the drawn world does not have this kind."""


#: The kinds that only this world has.
ROOM_ONLY = {
    "compare": CleanKind(
        "rooms", "the taller or bigger of two things is the shorter or smaller one", _no_drawing, _ROOM_FORMS
    ),
    "state": CleanKind("rooms", "a thing is open or closed, full or empty, lit or not", _no_drawing, _ROOM_FORMS),
}


def find_rooms(kind: str, dice: Dice, split: str) -> Twins:
    """Draw proposals of a kind until one is certified and return it."""
    while True:
        novel = split == "test" and dice.coin()
        for _ in range(300):
            draft = ROOM_KINDS[kind](RoomSampler(dice, seen=not novel))
            rooms = lay_out(draft, dice.tape()) if draft else None
            if draft is None or rooms is None or any(_is_novel(room) != novel for room in rooms):
                continue
            placed = _settle(rooms, split)
            graphs = [RoomGraph(room) for room in placed or ()]
            twins = (
                confirmed(draft, placed, graphs, dice, novel, SMALL if draft.setting == "table" else FREE)
                if placed
                else None
            )
            if twins:
                return twins


def _is_novel(room: Room) -> bool:
    return any(novel_colour(thing.kind, thing.colour) for thing in room.things)


def _settle(rooms: tuple[Room, Room], split: str) -> tuple[Room, Room] | None:
    """Return the rooms with the first wall and ground that put both into the split; None if there are none."""
    for k in range(WALLS * GROUNDS):
        wall, ground = (rooms[0].wall + k // GROUNDS) % WALLS, (rooms[0].ground + k) % GROUNDS
        moved = [replace(room, wall=wall, ground=ground) for room in rooms]
        if all(((zlib.crc32(room.code.encode()) * 0x9E3779B1) & 0xFFFFFFFF) >> 28 in SHARES[split] for room in moved):
            return moved[0], moved[1]
    return None
