"""The clean kinds of foil, for drawings and rooms: nothing in the text of such a foil gives it away. Each kind is a
way in which two scenes, and so their captions, differ.

Each function proposes a draft, or raises an UnfitError if its random choices do not lead to usable scenes.
Certification (twins.py) decides afterwards, so a proposal need not be valid, only promising.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from creperie.world.dice import UnfitError
from creperie.world.kinds import UNWRITTEN
from creperie.world.sample import HEAVY, SIDES, Draft, Sampler, Slot, arity_of, opposite
from creperie.world.scene import GIVING
from creperie.world.solid.models import SOLIDS
from creperie.world.sprites import TABLES, WORDS
from creperie.world.truth import CONVERSE, Fact, LogicalForm

CHOICE, TRIPLE, QUAD, WINOGROUND, TWINS, HALF = "choice", "triple", "quad", "winoground", "twins", "half"
FORMS = (CHOICE, TRIPLE, QUAD, WINOGROUND, TWINS, HALF)
Propose = Callable[[Sampler], Draft]


@dataclass(frozen=True, slots=True)
class CleanKind:
    """A kind of clean foil: nothing in the text of such a foil gives it away.

    `family` is the benchmark that introduced it, and `says` describes the difference. The function `propose` makes a
    draft. `forms` lists the forms of item that the kind can have. `worlds` says whether it exists in drawings ("2d")
    and in rooms ("3d").
    """

    family: str
    says: str
    propose: Propose
    forms: tuple[str, ...]
    worlds: tuple[str, ...] = ("2d", "3d")


def _random_relation(s: Sampler) -> tuple[str, str, list[Slot]]:
    """Return a random relation, a setting in which it is possible, and things for it."""
    relation = s.relation("any")
    setting = s.setting(relation)
    return relation, setting, s.slots(relation, setting)


def replace_obj(s: Sampler) -> Draft:
    relation, setting, slots = _random_relation(s)
    k = s.dice.roll(arity_of(relation))
    old = slots[k][0]
    used = [look.kind for look, _ in slots]
    options = [
        kind
        for kind in s.stage.roles[setting][relation][k]
        if kind not in used and (relation not in SIDES or (kind in HEAVY) == (old.kind in HEAVY))
    ]
    if not options or len(used) > len({*used}):
        raise UnfitError
    slots[k] = (old, s.stage.as_kind(old, s.dice.pick(options), s, setting))
    return s.draft(setting, (relation, relation), slots, f"{relation}, thing {k + 1}")


def _changed(s: Sampler, slots: Sequence[Slot], k: int, field: str) -> Slot | None:
    """Return two looks of thing `k`, one for each scene. They differ only in the attribute `field`. The second look has
    a new value, and so has the first if captions do not mention its old value. A new colour is never that of another
    thing. Return None if there are too few values.
    """
    look = slots[k][0]
    used = [x.colour for x, _ in slots] if field == "colour" else [getattr(look, field)]
    first, values = s.stage.said(look, field), s.dice.shuffled(s.stage.values(look, field, s))
    others = [value for value in values if value not in used]
    if not first:
        first, others = (values[0], values[1:]) if len(values) > 1 else ("", [])
    return (replace(look, **{field: first}), replace(look, **{field: others[0]})) if others else None


def replace_att(s: Sampler) -> Draft:
    relation, setting, slots = _random_relation(s)
    k, field = s.dice.roll(arity_of(relation)), s.relation("changed")
    slot = _changed(s, slots, k, field)
    if slot is None or (field == "state" and relation in ("on", "inside") and k == 1):
        raise UnfitError
    slots[k] = slot
    return s.draft(setting, (relation, relation), slots, f"{field} of thing {k + 1}", {k: field})


def _other_relation(s: Sampler, relation: str, others: Sequence[str]) -> Draft:
    """Propose twin scenes that show the same things, one in the relation `relation`, the other in one of the
    relations `others`. The looks of the things are simplified, because they must suit both relations.
    """
    setting = s.setting(relation)
    slots = s.slots(relation, setting)
    kinds = [look.kind for look, _ in slots[:2]]
    posed = relation in ("on", "inside", "under")
    fitting = [
        r
        for r in others
        if r != relation
        and s.stage.allows(setting, r, kinds)
        and not (posed and r in ("on", "inside") and setting != "drawn")
    ]
    if not fitting:
        raise UnfitError
    other = s.dice.pick(fitting)
    looks = [s.stage.unposed(look, len(slots) > 3) for look, _ in slots]
    return s.draft(setting, (relation, other), [(look, look) for look in looks], f"{relation} to {other}")


def replace_rel(s: Sampler) -> Draft:
    return _other_relation(s, s.relation("replaced"), s.stage.tables["replaced"])


def spatial(s: Sampler) -> Draft:
    """Propose twin scenes that show the same things in two different spatial relations, usually opposite ones."""
    relation = s.relation("sided")
    if relation in CONVERSE and s.dice.chance(40):
        return s.exchanged(relation, (1, 0))
    contrary = opposite(relation)
    return _other_relation(s, relation, [contrary] if contrary and s.dice.chance(70) else s.stage.tables["sided"])


def swap_obj(s: Sampler) -> Draft:
    relation = s.relation("exchanged")
    return s.exchanged(relation, (1, 0, 2)[: arity_of(relation)])


def active_passive(s: Sampler) -> Draft:
    return s.exchanged(s.dice.pick(("pushes", "pulls", "carries", "follows")), (1, 0))


def dative(s: Sampler) -> Draft:
    return s.exchanged(s.dice.pick(GIVING), (2, 1, 0), 25)


def depth(s: Sampler) -> Draft:
    return s.exchanged("depth", s.dice.pick(((2, 1, 0), (1, 0, 2), (0, 2, 1))), 25)


def swap_att(s: Sampler) -> Draft:
    """Propose twin scenes in which two things swap an attribute: "a red cat and a blue dog", "a blue cat and a red
    dog".
    """
    relation, setting, slots = _random_relation(s)
    field = s.relation("swapped")
    a, b = (slot[0] for slot in slots[:2])
    both = [v for v in s.stage.values(a, field, s) if v in s.stage.values(b, field, s)]
    if field == "pattern" and len(both) > 1:
        one, two = s.dice.shuffled(both)[:2]
    else:
        one, two = s.stage.said(a, field), s.stage.said(b, field)
    if a.kind == b.kind or one == two or not {one, two} <= {*both} or (field == "size" and relation == "inside"):
        raise UnfitError
    if field == "size":  # small things have no room for patterns
        a, b = replace(a, pattern="plain"), replace(b, pattern="plain")
    slots[:2] = [
        (replace(a, **{field: one}), replace(a, **{field: two})),
        (replace(b, **{field: two}), replace(b, **{field: one})),
    ]
    return s.draft(setting, (relation, relation), slots, field, {0: field, 1: field})


def add_obj(s: Sampler) -> Draft:
    """Propose twin scenes with the same first two things and a different third thing. The captions differ only in the
    third thing.
    """
    relation = s.dice.pick(("left", "right", "front", "behind"))
    setting = s.setting(relation)
    *kinds, other = s.dice.shuffled(s.stage.roles[setting][relation][0])[:4]
    looks = s.stage.looks(kinds, relation, setting, s)
    slots = [(look, look) for look in looks[:2]] + [(looks[2], s.stage.as_kind(looks[2], other, s, setting))]
    mentions = [[field for field in fields if field != "state"][:1] for fields in s.mentions(looks)]
    says = [s.shared(slot, fields) for slot, fields in zip(slots, mentions)]
    forms = [LogicalForm(tuple(s.describe(slot[side], f) for slot, f in zip(slots, says))) for side in (0, 1)]
    base = LogicalForm(forms[0].things[:2])
    return Draft(setting, tuple(slots), (relation, relation), (forms[0], forms[1]), relation, base)


def add_att(s: Sampler) -> Draft:
    """Propose twin scenes in which one thing differs in its colour or pattern. Each caption adds this attribute to the
    same short caption: "a red cat on a box" and "a blue cat on a box" are made from "a cat on a box".
    """
    relation, setting, slots = _random_relation(s)
    k, field = s.dice.roll(2), s.dice.pick(("colour", "colour", "pattern"))
    slot = _changed(s, slots, k, field)
    if slot is None or slots[0][0].kind == slots[1][0].kind:
        raise UnfitError
    slots[k] = slot
    says = s.mentions([look for look, _ in slots], relation)
    says[k] = [f for f in says[k] if f not in ("colour", "pattern")][:1]
    draft = s.draft(setting, (relation, relation), slots, f"{field} of thing {k + 1}", {k: field}, says)
    return replace(draft, base=s.claim(relation, [look for look, _ in slots], says))


def negation(s: Sampler) -> Draft:
    """Propose twin scenes whose captions contain "not": they deny either where a thing is or which state it is in."""
    return (_not_the_state if s.stage.name == "3d" and s.dice.chance(12) else _not_the_other)(s)


def _not_the_other(s: Sampler) -> Draft:
    """Propose twin scenes with captions such as "The ball is in the basket, not in the box". In the other scene, the
    second thing (the basket) and the third (the box) have changed places. These two may be of the same kind, in
    different colours.
    """
    relation = s.relation("either")
    setting = s.setting(relation)
    pools = s.stage.roles[setting][relation]
    kinds: list[str] = []
    alike = s.dice.coin()
    for k, pool in enumerate((*pools, pools[1])):
        options = [kinds[1]] if alike and k == 2 else [kind for kind in pool if kind not in kinds]
        if not options:
            raise UnfitError
        kinds.append(s.dice.pick(options))
    if relation in SIDES and kinds[0] in HEAVY:
        raise UnfitError
    looks = s.stage.looks(kinds, relation, setting, s)
    a, b, c = looks[0], looks[1], replace(looks[2], size=looks[1].size) if setting == "drawn" else looks[2]
    says = [fields[:1] for fields in s.mentions([a, b, c], relation)]
    if alike:
        says[1:] = [["colour"]] * 2
    things = [s.describe(look, fields) for look, fields in zip((a, b, c), says)]
    facts = Fact(relation, (0, 1)), Fact(relation, (0, 2), True)
    forms = LogicalForm(tuple(things), facts), LogicalForm((things[0], things[2], things[1]), facts)
    return Draft(setting, ((a, a), (b, c), (c, b)), (relation, relation), forms, relation)


def _not_the_state(s: Sampler) -> Draft:
    """Propose twin scenes with captions such as "The red candle is lit, but the blue one is not" and, for the other
    scene, the reverse.
    """
    relation, setting = s.dice.pick(("left", "right")), s.setting("left")
    state = s.dice.pick(("open", "closed", "empty", "lit", "lit", "on"))
    pool = [k for k in s.stage.roles[setting][relation][0] if state in SOLIDS[k].states and k != "umbrella"]
    if not pool:
        raise UnfitError
    first = s.dice.pick(pool)
    second = first if s.dice.chance(65) else s.dice.pick(pool)
    if first != second:
        slots = s.slots(relation, setting, 40, ([first], [second]))
    else:
        slots = [(look, look) for look in s.stage.looks([first, second], relation, setting, s)]
    pairs = [[x for x in (state, *SOLIDS[kind].states) if x] for kind in (first, second)]
    others = [next(x for x in pair if x != state) for pair in pairs]
    a, b = slots[0][0], slots[1][0]
    slots[:2] = [
        (replace(a, state=state), replace(a, state=others[0])),
        (replace(b, state=others[1]), replace(b, state=state)),
    ]
    coloured = first == second or s.dice.coin()
    one, two = (
        [s.describe(slot[side], ["state", "colour"] if coloured else ["state"]) for slot in slots[:2]]
        for side in (0, 1)
    )
    if coloured and not all(desc.colour for desc in (*one, *two)):
        raise UnfitError
    forms = LogicalForm((one[0], one[1])), LogicalForm((two[1], two[0]))
    return Draft(setting, tuple(slots), (relation, relation), forms, state)


def text(s: Sampler) -> Draft:
    """Propose twin scenes with signs: either two signs exchange their words, or one sign has a different word."""
    relation = s.dice.pick(("left", "right", "near"))
    kinds = ["sign", "sign" if s.dice.coin() else s.dice.pick(UNWRITTEN)]
    first, second = s.dice.shuffled(WORDS)[:2]
    a, b = (s.stage.unposed(look, False) for look in s.stage.looks(kinds, relation, "drawn", s))
    slots = [(replace(a, pattern=first), replace(a, pattern=second)), (b, b)]
    says = [["colour"] if s.dice.coin() else [], []]
    if kinds[1] == "sign":
        slots[1] = (replace(b, pattern=second), replace(b, pattern=first))
        forms = [LogicalForm(tuple(s.describe(slot[side], ["colour"]) for slot in slots)) for side in (0, 1)]
        return Draft("drawn", tuple(slots), (relation, relation), (forms[0], forms[1]), f"{first}, {second}")
    return s.draft("drawn", (relation, relation), slots, f"{first}, {second}", {0: "pattern"}, says)


_FEW = tuple(
    k for k in SOLIDS if "table" in SOLIDS[k].place and k not in ("book", "basket", "plate", "hat", "box", "lamp")
)


def _crowd(s: Sampler) -> tuple[str, list[str]]:
    """Return a setting for a crowd, and the kinds of things that are small enough for eight of them to fit into it."""
    setting = s.setting("crowd")
    return setting, s.dice.shuffled(_FEW if setting == "table" else UNWRITTEN)


def count(s: Sampler) -> Draft:
    """Propose twin scenes with things of two kinds: one scene has more things of the first kind, the other more of
    the second. The captions state the numbers. Each caption is false of the other scene even if a number such as
    "two" is read as "at least two".
    """
    setting, kinds = _crowd(s)
    a, b = (
        replace(look, size="medium" if setting == "table" else "small")
        for look in s.stage.looks(kinds[:2], "crowd", setting, s)
    )
    (i, j), (k, m) = s.dice.shuffled(
        [(x, total - x) for total in [s.dice.between(5, 7)] for x in (2, 3, 4) if 2 <= total - x <= 4]
    )[:2]
    slots = [(a, a)] * min(i, k) + [(b, b)] * min(j, m) + [(a, b) if i > k else (b, a)] * abs(i - k)
    says = [["colour"] if setting == "drawn" and s.dice.chance(40) else [] for _ in (a, b)]
    descs = [s.describe(look, fields) for look, fields in zip((a, b), says)]
    forms = [LogicalForm((), counts=tuple(zip(descs, pair))) for pair in ((i, j), (k, m))]
    return Draft(setting, tuple(slots), ("crowd", "crowd"), (forms[0], forms[1]), f"{i, j} to {k, m}")


def confusion(s: Sampler) -> Draft:
    """Propose twin scenes with six things each: two things of each of three kinds, and two things in each of three
    colours. Between the scenes, two things exchange their colours.

    Every word of both captions fits something in both scenes; the scenes differ only in which thing has which colour.
    """
    setting, kinds = _crowd(s)
    painted = [
        k
        for k in kinds
        if setting == "drawn"
        or (not SOLIDS[k].colours and {"ceramic", "plastic", "wax", "cloth"} & {*SOLIDS[k].materials})
    ]
    a, b, c = painted[:3]
    free = [x for x in s.colours(a) if x in s.colours(b) and x in s.colours(c)]
    if len(free) < 3:
        raise UnfitError
    x, y, z = s.dice.shuffled(free)[:3]
    looks = dict(zip((a, b, c), s.stage.painted((a, b, c), s)))
    pairs = ((a, x, z), (b, z, x), (a, y, y), (b, y, y), (c, z, z), (c, x, x))
    slots = [(replace(looks[kind], colour=one), replace(looks[kind], colour=two)) for kind, one, two in pairs]
    forms = [LogicalForm(tuple(s.describe(slots[k][side], ["colour"]) for k in (0, 2, 1, 3))) for side in (0, 1)]
    return Draft(setting, tuple(slots), ("crowd", "crowd"), (forms[0], forms[1]), f"{x} and {z}")


def compare(s: Sampler) -> Draft:
    """Propose twin rooms in which two things exchange their sizes: the bigger thing in one room is the smaller one in
    the other.
    """
    relation = s.dice.pick(("taller", "shorter", "bigger", "smaller"))
    setting = s.setting("near")
    height = relation in ("taller", "shorter")
    pool = [k for k in s.stage.roles[setting]["near"][0] if (SOLIDS[k].upright if height else not SOLIDS[k].colours)]
    slots = s.slots("near", setting, 40, (pool, pool))
    a, b = slots[0][0], slots[1][0]
    if not height:
        a = replace(a, pattern="")
        b = replace(s.stage.looks([a.kind, a.kind], "near", setting, s)[1], material=a.material, pattern=a.pattern)
        if not (a.colour and b.colour) or a.colour == b.colour:
            raise UnfitError
        b = replace(b, state=a.state)
    one, two = ("big", "small") if relation in ("taller", "bigger") else ("small", "big")
    slots[:2] = [(replace(x, size=p), replace(x, size=q)) for x, p, q in ((a, one, two), (b, two, one))]
    draft = s.draft(setting, (relation, relation), slots, relation, None if height else {0: "colour", 1: "colour"})
    return replace(draft, forms=(draft.forms[0], replace(draft.forms[0], facts=(Fact(CONVERSE[relation], (0, 1)),))))


def state(s: Sampler) -> Draft:
    """Propose twin rooms in which a thing is in opposite states: open or closed, full or empty, lit or not."""
    relation = s.dice.pick(("left", "right", "front", "behind", "near"))
    setting = s.setting(relation)
    pool = s.stage.roles[setting][relation][0]
    slots = s.slots(relation, setting, 60, ([k for k in pool if SOLIDS[k].states and k != "umbrella"], pool))
    slots[0] = _changed(s, slots, 0, "state") or slots[0]
    draft = s.draft(setting, (relation, relation), slots, "state of thing 1", {0: "state"})
    if s.dice.coin():
        return draft
    first, second = (LogicalForm(form.things[:1]) for form in draft.forms)
    return replace(draft, forms=(first, second))


_PROPOSALS = (
    replace_obj, replace_att, replace_rel, swap_obj, swap_att, add_obj, add_att, spatial, active_passive, dative,
    negation, depth, text, count, confusion, compare, state,
)  # fmt: skip
EVERY = {f.__name__: CleanKind(propose=f, **TABLES["clean"][f.__name__]) for f in _PROPOSALS}
CLEAN = {name: kind for name, kind in EVERY.items() if "2d" in kind.worlds}  #: of the drawn world
ROOM_KINDS = {name: kind for name, kind in EVERY.items() if "3d" in kind.worlds}
ROOM_ONLY = {name: kind for name, kind in EVERY.items() if "2d" not in kind.worlds}
