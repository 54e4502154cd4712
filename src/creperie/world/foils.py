"""The clean kinds: how the two scenes of a pair, and so the two captions, differ.

Each function proposes a pair of drafts and claims, or returns None if the random choices leave nothing to work with.
Certification (twins.py) decides afterwards, so proposals need not be valid, only promising.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from creperie.world.kinds import HANDED, KINDS, PATTERNS, UNWRITTEN
from creperie.world.layout import Look, SceneDraft
from creperie.world.sample import ACTIONS, RELATIONS, ROLES, SPATIAL, Mention, Sampler, change, describe
from creperie.world.scene import GIVING
from creperie.world.sprites import WORDS
from creperie.world.truth import CONVERSE, Fact, LogicalForm
from creperie.world.twins import Propose, TwinDrafts

CHOICE, TRIPLE, QUAD, WINOGROUND, TWINS, HALF = "choice", "triple", "quad", "winoground", "twins", "half"
FORMS = (CHOICE, TRIPLE, QUAD, WINOGROUND, TWINS, HALF)
_ONE_WAY = ("left", "right", "above", "below", "front", "behind", "pushes", "pulls", "carries", "follows", "faces")


@dataclass(frozen=True, slots=True)
class CleanKind:
    """A kind of clean foil: the benchmark that introduced it, what it does, and the forms of item it can have."""

    family: str
    says: str
    propose: Propose
    forms: tuple[str, ...] = (CHOICE, TRIPLE, QUAD, TWINS)


def claim(draft: SceneDraft, mentions: Sequence[Mention]) -> LogicalForm:
    """Return the claim that a draft makes true: its main things with their mentioned attributes, and the relation."""
    n = draft.arity
    things = tuple(describe(look, mention) for look, mention in zip(draft.looks[:n], mentions[:n], strict=True))
    return LogicalForm(things, (Fact(draft.relation, tuple(range(n))),))


def _any_relation(sampler: Sampler) -> str:
    """Return a random relation: spatial relations and actions equally often, in 7 % giving (handing over, throwing)."""
    dice = sampler.dice
    if dice.chance(7):
        return dice.pick(GIVING)
    return dice.pick(SPATIAL) if dice.coin() else dice.pick(ACTIONS)


def replace_obj(sampler: Sampler) -> TwinDrafts | None:
    relation = _any_relation(sampler)
    draft = sampler.draft(relation)
    if draft is None:
        return None
    k = sampler.dice.roll(draft.arity)
    look = draft.looks[k]
    used = [x.kind for x in draft.looks]
    pool = [n for n in ROLES[relation][k] if n not in used and (look.pattern == "plain" or KINDS[n].patterned)]
    if not pool:
        return None
    mentions = sampler.mentions(draft)
    other = change(draft, k, kind=sampler.dice.pick(pool))
    if not KINDS[other.looks[k].kind].patterned:
        mentions[k] = replace(mentions[k], pattern=False)
    return TwinDrafts((draft, other), (claim(draft, mentions), claim(other, mentions)), f"{relation}, thing {k + 1}")


def _free_colours(sampler: Sampler, draft: SceneDraft, kind: str) -> list[str]:
    """Return the colours that a thing of this kind may have and nothing in the scene has; possibly none."""
    return [colour for colour in sampler.colours(kind) if all(colour != look.colour for look in draft.looks)]


def _other_value(sampler: Sampler, draft: SceneDraft, k: int, attribute: str) -> dict[str, str] | None:
    """Return another value for an attribute of a thing, if the image can show it, else None."""
    look = draft.looks[k]
    if attribute == "colour":
        colours = _free_colours(sampler, draft, look.kind)
        return {"colour": sampler.dice.pick(colours)} if colours else None
    if look.size == "small" or not KINDS[look.kind].patterned:
        return None
    return {"pattern": sampler.dice.pick([p for p in PATTERNS if p != look.pattern])}


def replace_att(sampler: Sampler) -> TwinDrafts | None:
    draft = sampler.draft(_any_relation(sampler))
    if draft is None:
        return None
    k = sampler.dice.roll(draft.arity)
    attribute = "colour" if sampler.dice.chance(55) else "pattern"
    value = _other_value(sampler, draft, k, attribute)
    if value is None:
        return None
    mentions = sampler.mentions(draft)
    mentions[k] = replace(mentions[k], colour=True, pattern=mentions[k].pattern or attribute == "pattern")
    other = change(draft, k, **value)
    return TwinDrafts((draft, other), (claim(draft, mentions), claim(other, mentions)), f"{attribute} of thing {k + 1}")


def replace_rel(sampler: Sampler) -> TwinDrafts | None:
    relation = sampler.dice.pick(SPATIAL) if sampler.dice.coin() else sampler.dice.pick(ACTIONS)
    draft = sampler.draft(relation)
    if draft is None:
        return None
    a, b = (look.kind for look in draft.looks[:2])
    options = [r for r in RELATIONS if r != relation and a in ROLES[r][0] and b in ROLES[r][1]]
    return _changed_relation(sampler, draft, sampler.dice.pick(options)) if options else None


def _changed_relation(sampler: Sampler, draft: SceneDraft, relation: str) -> TwinDrafts:
    """Return twins of the same things in two relations; sizes and patterns, which may not show, are left out."""
    mentions = [replace(m, pattern=False, size=False) for m in sampler.mentions(draft)]
    size = "small" if len(draft.looks) > 3 else None
    other = SceneDraft(tuple(replace(x, size=size, pattern="plain") for x in draft.looks), relation)
    first = SceneDraft(other.looks, draft.relation)
    return TwinDrafts(
        (first, other), (claim(first, mentions), claim(other, mentions)), f"{draft.relation} to {relation}"
    )


def _exchanged(draft: SceneDraft) -> SceneDraft:
    a, b, *rest = draft.looks
    return replace(draft, looks=(replace(b, size=a.size), replace(a, size=b.size), *rest))


def _exchange_in(*relations: str) -> Propose:
    return lambda sampler: _role_exchange(sampler, sampler.dice.pick(relations))


def _role_exchange(sampler: Sampler, relation: str) -> TwinDrafts | None:
    """Propose twins in which the two main things are exchanged: "a cat pushes a dog", "a dog pushes a cat"."""
    pool = tuple(n for n in ROLES[relation][0] if n in ROLES[relation][1])
    draft = sampler.draft(relation, (pool, pool))
    if draft is None:
        return None
    mentions = [replace(m, size=False) for m in sampler.mentions(draft)]
    if relation in ("carries", "on"):
        mentions = [replace(m, pattern=False) for m in mentions]
    other = _exchanged(draft)
    back = [mentions[1], mentions[0]]
    return TwinDrafts((draft, other), (claim(draft, mentions), claim(other, back)), relation)


def swap_att(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins whose main things exchange an attribute: "a red cat and a blue dog", "a blue cat and a red dog"."""
    draft = sampler.draft(_any_relation(sampler))
    if draft is None or draft.looks[0].kind == draft.looks[1].kind:
        return None
    a, b = draft.looks[:2]
    attribute = sampler.dice.pick(("colour", "colour", "pattern", "size"))
    mentions = sampler.mentions(draft)
    if attribute == "size" and (draft.relation == "inside" or {a.size, b.size} != {"small", "big"}):
        return None
    if attribute == "size":
        plain = tuple(replace(x, pattern="plain") for x in draft.looks)
        draft, (a, b) = replace(draft, looks=plain), plain[:2]
        mentions = [replace(m, pattern=False) for m in mentions]
    if attribute == "pattern" and (a.pattern == b.pattern or not _both_patterned(a, b)):
        return None
    for k in (0, 1):
        mentions[k] = replace(mentions[k], **{attribute: True})
        mentions[k] = replace(mentions[k], colour=mentions[k].colour or mentions[k].pattern)
    swapped = replace(a, **{attribute: getattr(b, attribute)}), replace(b, **{attribute: getattr(a, attribute)})
    other = replace(draft, looks=(*swapped, *draft.looks[2:]))
    return TwinDrafts((draft, other), (claim(draft, mentions), claim(other, mentions)), attribute)


def _both_patterned(a: Look, b: Look) -> bool:
    return all(KINDS[x.kind].patterned and x.size != "small" for x in (a, b))


def add_obj(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins that differ in their third thing, which each caption adds to what is true of both scenes."""
    draft = sampler.draft(_any_relation(sampler), bystander=100)
    if draft is None or draft.relation in GIVING:
        return None
    mentions = sampler.mentions(draft)
    other = change(draft, 2, kind=sampler.kind(UNWRITTEN, [x.kind for x in draft.looks]))
    colours = _free_colours(sampler, draft, other.looks[2].kind)
    if sampler.dice.coin() and colours:
        other = change(other, 2, colour=sampler.dice.pick(colours))
    base = claim(draft, mentions)
    first, second = (
        replace(base, things=(*base.things, describe(d.looks[2], Mention(mentions[2].colour)))) for d in (draft, other)
    )
    return TwinDrafts((draft, other), (first, second), draft.relation, base)


def add_att(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins whose captions are equal except for one added attribute each, of one thing or of two."""
    draft = sampler.draft(_any_relation(sampler))
    if draft is None or draft.looks[0].kind == draft.looks[1].kind:
        return None
    dice = sampler.dice
    mentions = [replace(m, size=False) for m in sampler.mentions(draft)]
    mentions[:2] = [replace(m, colour=False, pattern=False) if dice.chance(70) else m for m in mentions[:2]]
    places = (dice.roll(2), dice.roll(2))
    named = tuple("colour" if dice.chance(55) else "pattern" for _ in places)
    if places[0] == places[1]:
        named = (named[0], named[0])
    if any(getattr(mentions[k], attribute) for k, attribute in zip(places, named)):
        return None
    for k, attribute in zip(places, named):
        mentions[k] = replace(mentions[k], colour=mentions[k].colour or attribute == "pattern")
    other = draft
    for k, attribute in sorted(set(zip(places, named))):
        value = _other_value(sampler, other, k, attribute)
        if value is None:
            return None
        other = change(other, k, **value)
    base = claim(draft, mentions)
    forms = []
    for shown, k, attribute in zip((draft, other), places, named, strict=True):
        richer = list(mentions)
        richer[k] = replace(richer[k], **{attribute: True})
        forms.append(claim(shown, richer))
    note = f"{named[0]} of thing {places[0] + 1}, {named[1]} of thing {places[1] + 1}"
    return TwinDrafts((draft, other), (forms[0], forms[1]), note, base)


def spatial(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins with the same things in another spatial relation, mostly the opposite one."""
    relation = sampler.dice.pick(SPATIAL)
    draft = sampler.draft(relation)
    if draft is None:
        return None
    if relation in CONVERSE and sampler.dice.chance(40):
        return _role_exchange(sampler, relation)
    opposite = CONVERSE.get(relation) or {"near": "far", "far": "near"}.get(relation)
    if opposite and sampler.dice.chance(60):
        return _changed_relation(sampler, draft, opposite)
    a, b = (look.kind for look in draft.looks[:2])
    options = [r for r in SPATIAL if r != relation and a in ROLES[r][0] and b in ROLES[r][1]]
    return _changed_relation(sampler, draft, sampler.dice.pick(options))


def dative(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins in which the giver and the taker are exchanged."""
    draft = sampler.draft(sampler.dice.pick(GIVING), bystander=25)
    if draft is None:
        return None
    mentions = [replace(m, size=False) for m in sampler.mentions(draft)][:3]
    other = replace(draft, looks=(*draft.looks[2::-1], *draft.looks[3:]))
    return TwinDrafts((draft, other), (claim(draft, mentions), claim(other, mentions[::-1])), draft.relation)


def negation(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins that differ in what is absent, or in a relation that does not hold; both captions negate."""
    if sampler.dice.chance(35):
        return _denied_relation(sampler)
    draft = sampler.draft(sampler.dice.pick(SPATIAL))
    if draft is None or draft.looks[0].kind == draft.looks[1].kind:
        return None
    other = change(draft, 0, kind=sampler.kind(UNWRITTEN, [x.kind for x in draft.looks]))
    if other.looks[0].kind not in ROLES[draft.relation][0] or not KINDS[other.looks[0].kind].patterned:
        return None
    mention = Mention(colour=sampler.dice.chance(40))
    here, there = describe(draft.looks[0], mention), describe(other.looks[0], mention)
    forms = LogicalForm((here,), absent=(there,)), LogicalForm((there,), absent=(here,))
    return TwinDrafts((draft, other), forms, "presence", tails=False)


def _denied_relation(sampler: Sampler) -> TwinDrafts | None:
    relation = sampler.dice.pick(("left", "right", "above", "below", "front", "behind", "pushes", "pulls"))
    draft = sampler.draft(relation, (HANDED, HANDED) if relation in ACTIONS else None)
    if draft is None or draft.looks[0].kind == draft.looks[1].kind:
        return None
    contrary = CONVERSE.get(relation) or ("pulls" if relation == "pushes" else "pushes")
    pair = _changed_relation(sampler, draft, contrary)
    first, second = (replace(form, facts=(replace(form.facts[0], negated=True),)) for form in pair.forms)
    return replace(pair, forms=(second, first), note="relation")


def depth(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins of three things that partly hide each other, with two of them exchanged."""
    draft = sampler.draft("depth", bystander=25)
    if draft is None:
        return None
    mentions = [replace(m, size=False, pattern=False) for m in sampler.mentions(draft)]
    order = sampler.dice.pick(((2, 1, 0), (1, 0, 2), (0, 2, 1)))
    other = replace(draft, looks=(*(draft.looks[k] for k in order), *draft.looks[3:]))
    forms = claim(draft, mentions), claim(other, [mentions[k] for k in order])
    return TwinDrafts((draft, other), forms, f"order {order}")


def text(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins with signs: two signs exchange their words, or one has another word."""
    dice = sampler.dice
    relation = dice.pick(("left", "right", "near"))
    kinds = ["sign", "sign" if dice.coin() else dice.pick(UNWRITTEN)]
    draft = SceneDraft(tuple(replace(x, size=None) for x in sampler.looks(kinds, relation)), relation)
    first, second = dice.shuffled(WORDS)[:2]
    draft, other = change(draft, 0, pattern=first), change(draft, 0, pattern=second)
    if kinds[1] == "sign":
        draft, other = change(draft, 1, pattern=second), change(other, 1, pattern=first)
    mentions = [Mention(kinds[k] == "sign", kinds[k] == "sign") for k in (0, 1)]
    return TwinDrafts((draft, other), (claim(draft, mentions), claim(other, mentions)), f"{first}, {second}")


def count(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins with counts of two kinds of things: the counts are exchanged, or one of them differs."""
    dice = sampler.dice
    a, b = dice.shuffled(UNWRITTEN)[:2]
    n, m = dice.shuffled((2, 3, 4))[:2]
    looks = [Look(kind, sampler.colour(kind, ()), size="small") for kind in (a, b)]
    mentions = [Mention(dice.chance(40)) for _ in looks]
    pairs = (n, m), ((m, n) if dice.chance(60) else (n, 9 - n - m))
    descs = [describe(look, mention) for look, mention in zip(looks, mentions)]
    drafts = tuple(SceneDraft((looks[0],) * i + (looks[1],) * j, "crowd") for i, j in pairs)
    forms = tuple(LogicalForm((), counts=((descs[0], i), (descs[1], j))) for i, j in pairs)
    return TwinDrafts((drafts[0], drafts[1]), (forms[0], forms[1]), f"{pairs[0]} to {pairs[1]}")


def confusion(sampler: Sampler) -> TwinDrafts | None:
    """Propose twins of six things, with three kinds and three colours, each twice: two things exchange their colours.

    Every word of both captions fits something in both scenes; only the binding of colour to thing differs.
    """
    a, b, c = sampler.dice.shuffled(UNWRITTEN)[:3]
    free = [x for x in sampler.colours(a) if x in sampler.colours(b) and x in sampler.colours(c)]
    x, y, z = sampler.dice.shuffled(free)[:3]
    rest = ((a, y), (b, y), (c, z), (c, x))
    drafts, forms = [], []
    for first, second in (((a, x), (b, z)), ((a, z), (b, x))):
        looks = [Look(kind, colour, size="small") for kind, colour in (first, second, *rest)]
        drafts.append(SceneDraft(tuple(looks), "crowd"))
        forms.append(LogicalForm((describe(looks[0], Mention(True)), describe(looks[1], Mention(True)))))
    return TwinDrafts((drafts[0], drafts[1]), (forms[0], forms[1]), f"{x} and {z}")


_SAME_WORDS = FORMS[:5]
_ADDED = (CHOICE, TRIPLE, QUAD, TWINS, HALF)
CLEAN: dict[str, CleanKind] = {
    "replace_obj": CleanKind("sugarcrepe", "one thing is another kind of thing", replace_obj),
    "replace_att": CleanKind("sugarcrepe", "one thing has another colour or pattern", replace_att),
    "replace_rel": CleanKind("sugarcrepe", "the things stand in another relation", replace_rel),
    "swap_obj": CleanKind("sugarcrepe", "two things change places", _exchange_in(*_ONE_WAY), _SAME_WORDS),
    "swap_att": CleanKind("sugarcrepe", "two things change colour, pattern or size", swap_att, _SAME_WORDS),
    "add_obj": CleanKind("sugarcrepe", "a thing is added that is not there", add_obj, _ADDED),
    "add_att": CleanKind("sugarcrepe", "an attribute is added that is not true", add_att, _ADDED),
    "spatial": CleanKind("visla", "the things are in another place", spatial, _SAME_WORDS),
    "active_passive": CleanKind(
        "hit-or-be-hit", "agent and patient change roles", _exchange_in(*_ONE_WAY[6:10]), _SAME_WORDS
    ),
    "dative": CleanKind("hit-or-be-hit", "giver and taker change roles", dative, _SAME_WORDS),
    "negation": CleanKind("negation", "something is denied that is true", negation, _SAME_WORDS),
    "depth": CleanKind("crowd", "things stand in another order from front to back", depth, _SAME_WORDS),
    "text": CleanKind("crowd", "a sign says another word, or two exchange theirs", text, _SAME_WORDS),
    "count": CleanKind("crowd", "there are more or fewer of some things", count, _SAME_WORDS),
    "confusion": CleanKind("crowd", "two of six things exchange colours that others have too", confusion, _SAME_WORDS),
}
